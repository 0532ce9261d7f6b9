# Run by cuda_kernels(): compiles SOURCE to OUT by COMMAND, sets the ISA version, and lets ptxas,
# where there is one, prove it.
execute_process(COMMAND ${COMMAND} -I${ROOT} ${SOURCE} -o ${OUT}.raw RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE}: cannot be compiled to PTX; build with -DCUDA_KERNELS=off to do without")
endif()
file(READ ${OUT}.raw text)
string(REGEX REPLACE "\n\\.version [0-9.]+\n" "\n.version ${ISA}\n" older "${text}")
string(REGEX REPLACE "\n[\t ]*\\.pragma \"used_bytes_mask[^\n]*" "" older "${older}") # a hint of newer ISAs
file(WRITE ${OUT}.tmp "${older}")
if(PTXAS)
    execute_process(COMMAND ${PTXAS} -arch=sm_${ARCH} ${OUT}.tmp -o ${OUT}.cubin
                    RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(WARNING "${SOURCE}: its PTX does not hold to ISA ${ISA}; drivers older than this "
                        "compiler will not take it")
        file(WRITE ${OUT}.tmp "${text}")
    endif()
endif()
file(REMOVE ${OUT}.raw ${OUT}.cubin)
file(RENAME ${OUT}.tmp ${OUT})
