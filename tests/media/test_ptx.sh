#!/bin/bash
# The CUDA kernels as PTX: by each compiler that is here, embedded by the build, and assembled by
# ptxas for the cards of the field. A build without a compiler says so and goes on.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib.sh"

cards='75 86 89 90'
kernels=$(cd "$root/pipelines/media/kernels" && printf '%s\n' *.cu | sed 's/\.cu$//')

find_cuda() { # PROGRAM
    command -v "$1" || { [ -x "/usr/local/cuda/bin/$1" ] && echo "/usr/local/cuda/bin/$1"; }
}

configure() { # CUDA_KERNELS
    exits 0 cmake -S "$root" -B build -G Ninja -DCUDA_KERNELS="$1"
}

by() { # COMPILER
    local kernel card ptxas
    find_cuda "$1" >/dev/null || skip "$1 is not here"
    configure "$1"
    says "PTX by .*$1" stdout
    exits 0 ninja -C build kernels.c
    for kernel in $kernels; do
        says "\.entry $kernel\(" "build/kernels/$kernel.ptx"
        says '^\.version 6\.3$' "build/kernels/$kernel.ptx"
        # What the CPU does not fuse, the GPU must not either; nothing is left to be linked.
        ! grep -nE '\bfma\b|\bmad.*f32|^\.extern|approx' "build/kernels/$kernel.ptx" || fail "$kernel: see above"
        grep -q "\"$kernel\"" build/kernels.c || fail "$kernel is not embedded"
    done
    ptxas=$(find_cuda ptxas) || skip "ptxas is not here: the PTX is not assembled"
    for kernel in $kernels; do
        for card in $cards; do
            exits 0 "$ptxas" -arch="sm_$card" "build/kernels/$kernel.ptx" -o cubin
        done
    done
}

without() {
    configure off
    says 'built without them' stdout
    exits 0 ninja -C build kernels.c
    ! grep -q '"tonemap"' build/kernels.c || fail "a kernel is embedded all the same"
}

unknown() {
    exits 1 cmake -S "$root" -B build -G Ninja -DCUDA_KERNELS=none-such
    says 'none-such' stderr
}

check "nvcc" by nvcc
check "clang" by clang
check "no compiler" without
check "no such compiler" unknown
finish
