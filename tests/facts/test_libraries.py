"""Which source files are headers of toolkits and libraries."""

from __future__ import annotations

import pytest

from ncu_roofline.chips.findings import of_library


@pytest.mark.parametrize(
    "path",
    [
        "/usr/local/cuda/include/crt/mma.hpp",
        "mma.hpp",
        "/usr/local/cuda-12.4/targets/x86_64-linux/include/cuda/std/barrier",
        "/home/me/cutlass/include/cutlass/arch/barrier.h",
        "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.3\\include\\cooperative_groups.h",
        "/usr/include/c++/11/bits/stl_algo.h",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/23.1/cuda/12.0/include/cuda_fp16.hpp",
        "/home/me/lib/python3.10/site-packages/triton/language/standard.py",
        "/home/me/.julia/packages/LLVM/WjSQG/src/interop/base.jl",
        "./int.jl",
    ],
)
def test_of_libraries(path: str) -> None:
    assert of_library(path)


@pytest.mark.parametrize(
    "path",
    [
        "gemm.cu",
        "/home/me/cutlass/examples/00_basic/basic.cu",  # no header
        "/home/me/cuda/kernels.cuh",
        "src/include/kernel.hpp",
        "/home/me/src/IndexSpaces.jl",
        "model.F90",
        "",
    ],
)
def test_of_the_kernel_itself(path: str) -> None:
    assert not of_library(path)
