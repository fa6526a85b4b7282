"""Short kernel names, from names as demanglers and compilers really spell them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.base.texts import MAX_LENGTH, clean, shorten
from ncu_roofline.model.names import matching_brackets, parse, short_names, split_arguments

KOKKOS = (
    "void Kokkos::Impl::cuda_parallel_launch_constant_memory<Kokkos::Impl::ParallelFor<benchmark_collocation(Config)::"
    "[lambda(const Kokkos::Impl::CudaTeamMember &) (instance 5)], Kokkos::TeamPolicy<Kokkos::Cuda>, Kokkos::Cuda>>()"
)
KOKKOS_REDUCE = (
    "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelReduce<Kokkos::Impl::CombinedFunctorReducer<"
    "my::DotFunctor<double>, Kokkos::Impl::FunctorAnalysis<X>::Reducer, void>, Kokkos::RangePolicy<Kokkos::Cuda>, "
    "Kokkos::Cuda> >(T1)"
)
RAJA = (
    "void RAJA::policy::cuda::impl::forall_cuda_kernel<RAJA::policy::cuda::cuda_exec_explicit<RAJA::iteration_mapping::Direct, "
    "256ul>, 1ul, RAJA::Iterators::numeric_iterator<long>, Stream::runCuda(int)::{lambda(long)#2}, long>(Stream)"
)
RAJA_EXTENDED_LAMBDA = (
    "void RAJA::policy::cuda::impl::forall_cuda_kernel<A, 1ul, B, "
    "__nv_dl_wrapper_t<__nv_dl_tag<int (*)(int, char **), &main, 1u>, double*>, long>(int)"
)
CUTLASS = "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_f16_256x128_32x3_nn_align8>(Params)"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, at::native::{}<float> >, "
    "at::detail::Array<char*, 2> >(int)"
)
AGENT = (
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
    "thrust::cuda_cub::__transform::{}<A, B>, long>, X>(X)"
)


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("gpp(int, double*)", "gpp"),
        ("void gpp_kernel<double, 256>(int, int, double const*, double*)", "gpp_kernel"),
        ("double* ns::foo<3>(int)", "foo"),
        ("void std::enable_if<(1>2), int>::type ns::func<(a)3>(X)", "func"),
        ("void f(void (*)(int))", "f"),
        ("(anonymous namespace)::bar(int)", "bar"),
        ("void <unnamed>::baz<int>(int)", "baz"),
        ("void cub::CUB_200301_520_NS::DeviceMergeSortBlockSortKernel<(bool)0, cub::P<int>::Policy600, int>(bool, T3)",
         "DeviceMergeSortBlockSortKernel"),
        (KOKKOS, "benchmark_collocation lambda#5"),
        (KOKKOS_REDUCE, "DotFunctor"),
        (RAJA, "runCuda lambda#2"),
        (RAJA_EXTENDED_LAMBDA, "main lambda#1"),
        (CUTLASS, "cutlass_80_tensorop_s16...32x3_nn_align8"),
        (AGENT.format("unary_transform_f"), "ParallelForAgent"),
        ("main::{lambda(int)#1}::operator()(int) const", "main lambda#1"),
        ("main::'lambda0'(int)", "main lambda#0"),
        ("ns::Functor::operator()(int) const", "Functor"),
        ("bool operator<(A, B)", "operator<"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
        ("matmul_kernel_0d1d2d3d4d5d6c7d", "matmul_kernel"),
        ("julia_bb_4477(CuDeviceArray<Int8x4, (int)1, (int)1>)", "bb"),
        ("julia__5_11155(CuKernelContext, Float16x2)", "julia__5_11155"),
        ("__omp_offloading_10303_1a2b3c_main_l42", "main:42"),
        ("__omp_offloading_10303_1a2b3c__Z4gemmPd_l25", "gemm:25"),
        ("nvkernel_main_F1L42_2", "nvkernel_main_F1L42_2"),
        ("crate::kernels::saxpy::h0123456789abcdef", "saxpy"),
        ("_ZN2ns6kernelEv", "kernel"),
        ("my range (step 1)", "my range (step 1)"),
        ("cost$_a^{2}$ and $x_y$", "cost$_a^{2}$ and $x_y$"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("evil\x1b[31m\nname\u202e", "evil[31m name"),
        ("", "(unnamed)"),
        ("\x00\x1b", "(unnamed)"),
    ],
)  # fmt: skip
def test_names_alone(full: str, short: str) -> None:
    assert short_names([full]) == [short]


@pytest.mark.parametrize(
    ("full", "short"),
    [
        (["void k<double, 256>(int)", "void k<double, 128>(int)"], ["k<256>", "k<128>"]),
        (["k<(int)128, (bool)1>(int)", "k<(int)64, (bool)1>(int)"], ["k<128>", "k<64>"]),
        (
            ["void k(int) [with int BM = 64; int BN = 8]", "void k(int) [with int BM = 32; int BN = 8]"],
            ["k<BM=64>", "k<BM=32>"],
        ),
        (["a::scale(float*)", "b::scale(float*)"], ["a::scale", "b::scale"]),
        (["ns::K<A>::run(int)", "ns::K<B>::run(int)"], ["K<A>::run", "K<B>::run"]),
        (["foo(int)", "foo(double)"], ["foo(int)", "foo(double)"]),
        ([AGENT.format("unary_f"), AGENT.format("binary_f")], ["ParallelForAgent<unary_f>", "ParallelForAgent<binary_f>"]),
        (["k", "void k(int)", "k"], ["k", "k(int)", "k"]),
        (["x" * 60, "x" * 61], ["xxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxx #2"]),
    ],
)
def test_different_kernels_get_different_names(full: list[str], short: list[str]) -> None:
    assert short_names(full) == short


def test_functors_tell_template_kernels_apart() -> None:
    names = short_names([ELEMENTWISE.format("MulFunctor"), ELEMENTWISE.format("DivFunctor")])
    assert ["MulFunctor" in names[0], "DivFunctor" in names[1]] == [True, True]


@given(st.lists(st.text(max_size=80) | st.text(alphabet=string.ascii_letters + "<>()[]{}:,*& _1", max_size=120), max_size=12))
def test_any_names(full: list[str]) -> None:
    short = short_names(full)
    assert len(short) == len(full)
    assert all(0 < len(name) <= MAX_LENGTH and name.isprintable() for name in short)
    assert len(set(short)) == len(set(full))
    assert short == short_names(full)


@pytest.mark.parametrize(
    "name", ["a<" * 3000, "a<" * 2000 + ">" * 2000 + "(int)", "(" * 5000, "::" * 3000, "operator" * 900, "_Z9" * 2000]
)
def test_hostile_names_end(name: str) -> None:
    assert len(short_names([name])[0]) <= MAX_LENGTH


def test_brackets() -> None:
    assert matching_brackets("a<b>(c)") == {1: 3, 4: 6}
    assert matching_brackets("f<(a > b)>") == {2: 8, 1: 9}
    assert matching_brackets("operator<<(x)") == {10: 12}
    assert split_arguments("a, b<c, d>, (e, f)") == ("a", "b<c, d>", "(e, f)")
    assert split_arguments("  ") == ()


def test_parse_keeps_the_parts() -> None:
    name = parse("void ns::K<A>::run<1, B<2>>(int, char const*) const")
    assert name is not None
    assert (name.scopes, name.base, name.template, name.arguments) == (
        ("ns", "K<A>"),
        "run",
        ("1", "B<2>"),
        ("int", "char const*"),
    )


def test_clean_and_shorten() -> None:
    assert clean("a\t\tb\n\u202ec\ud800") == "a b c"
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde...jk"
    assert shorten("abcdef", 3) == "abc"
