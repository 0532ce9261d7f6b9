# cuda_kernels(OUT.c): compiles the .cu files here to PTX and embeds it as `kernel_ptx`
# (common/embed.h). With nvcc where there is one, else with clang, which needs no toolkit: only
# that its build knows the NVPTX target. With neither, or with -DCUDA_KERNELS=off, the table is
# empty, and the product says so when a job needs a kernel on a GPU.
#
# The PTX is for sm_75 and everything newer: the driver finishes it for the card at hand. A driver
# takes PTX of its own ISA version or an older one, and nvcc writes its toolkit's, which drivers in
# the field are behind of; so the version is set to 6.3, the first that knows sm_75 (CUDA 10), and
# ptxas, which comes with nvcc, proves that the text holds to it.
set(CUDA_KERNELS auto CACHE STRING "compiler of the CUDA kernels: auto, nvcc, clang or off")
set_property(CACHE CUDA_KERNELS PROPERTY STRINGS auto nvcc clang off)

set(cuda_arch 75)
set(cuda_isa 6.3)

# Sets `${ret}` to the command that turns a .cu into PTX, "" when this compiler cannot.
function(cuda_compiler name ret)
    set(${ret} "" PARENT_SCOPE)
    set(program "")
    set(path "")
    if(name STREQUAL nvcc)
        find_program(NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES bin
                     PATHS /usr/local/cuda)
        set(program ${NVCC} -ptx -arch=compute_${cuda_arch} -O3 -fmad=false)
    elseif(name STREQUAL clang)
        find_program(CLANG NAMES clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16
                     clang-15 clang-14)
        string(REPLACE . "" feature ptx${cuda_isa})
        set(program ${CLANG} -x cuda --cuda-device-only -nocudainc -nocudalib -S
            --cuda-gpu-arch=sm_${cuda_arch} -O3 -ffp-contract=off -Wno-unknown-cuda-version
            -Xclang -target-feature -Xclang +${feature})
    endif()
    if(program)
        list(GET program 0 path)
    endif()
    if(NOT EXISTS "${path}")
        return()
    endif()
    file(WRITE ${CMAKE_BINARY_DIR}/try.cu
         "#include \"pipelines/media/kernels/kernel.h\"\nextern \"C\" __global__ void f(int *a) { *a = KERNEL_AT(x); }\n")
    execute_process(COMMAND ${program} -I${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/try.cu
                            -o ${CMAKE_BINARY_DIR}/try.ptx
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE why)
    if(status EQUAL 0)
        set(${ret} "${program}" PARENT_SCOPE)
    else()
        message(STATUS "CUDA kernels: ${path} cannot compile them: ${why}")
    endif()
endfunction()

function(cuda_kernels out)
    set(command "")
    set(wanted ${CUDA_KERNELS})
    if(wanted STREQUAL auto)
        set(wanted nvcc clang)
    endif()
    foreach(name ${wanted})
        if(NOT command AND NOT name STREQUAL off)
            cuda_compiler(${name} command)
        endif()
    endforeach()
    set(texts "")
    if(command)
        list(GET command 0 path)
        message(STATUS "CUDA kernels: PTX by ${path}")
        get_filename_component(bin ${path} DIRECTORY)
        find_program(PTXAS ptxas HINTS ${bin})
        file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pipelines/media/kernels/*.cu)
        file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pipelines/media/kernels/*.h)
        foreach(source ${sources})
            get_filename_component(stem ${source} NAME_WE)
            set(text ${CMAKE_BINARY_DIR}/kernels/${stem}.ptx)
            add_custom_command(OUTPUT ${text}
                COMMAND ${CMAKE_COMMAND} "-DCOMMAND=${command}" -DROOT=${CMAKE_SOURCE_DIR}
                        -DSOURCE=${source} -DOUT=${text} -DISA=${cuda_isa} -DARCH=${cuda_arch}
                        -DPTXAS=${PTXAS}
                        -P ${CMAKE_SOURCE_DIR}/pipelines/media/kernels/ptx_write.cmake
                DEPENDS ${source} ${headers}
                        ${CMAKE_SOURCE_DIR}/pipelines/media/kernels/ptx_write.cmake
                VERBATIM)
            list(APPEND texts ${text})
        endforeach()
    elseif(CUDA_KERNELS STREQUAL auto OR CUDA_KERNELS STREQUAL off)
        message(STATUS "CUDA kernels: built without them (they need nvcc, or clang with the NVPTX "
                       "target); HDR on a GPU will be refused, all else works")
    else()
        message(FATAL_ERROR "CUDA_KERNELS=${CUDA_KERNELS}: it is not here, or cannot compile them")
    endif()
    embed_list(${out} kernel_ptx ${texts})
endfunction()
