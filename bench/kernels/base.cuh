// One kernel source, two machines: PTX under nvcc, a counting model of the GPU (cpu/) under a host compiler.
#pragma once
#include "table.hpp"

#if defined(__CUDACC__)
#define BENCH_MACHINE gpu
#define BENCH_FN __device__ __forceinline__
#define BENCH_UNROLL _Pragma("unroll")
#define BENCH_LOOP _Pragma("unroll 1")  // the hot loop: exactly one per kernel, its trip count is known at run time only
#define BENCH_KERNEL(NAME, THREADS, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(const bench::Args args)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define BENCH_CLUSTER_KERNEL(NAME, THREADS, BLOCKS, CLUSTER) BENCH_KERNEL(NAME, THREADS, BLOCKS)
#else
#define BENCH_CLUSTER_KERNEL(NAME, THREADS, BLOCKS, CLUSTER) \
  extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS) NAME(const bench::Args args)
#endif
#else
#define BENCH_MACHINE cpu
#define BENCH_FN inline
#define BENCH_UNROLL
#define BENCH_LOOP
#define BENCH_KERNEL(NAME, THREADS, BLOCKS) inline void NAME([[maybe_unused]] bench::Args args)
#define BENCH_CLUSTER_KERNEL(NAME, THREADS, BLOCKS, CLUSTER) BENCH_KERNEL(NAME, THREADS, BLOCKS)
#endif

namespace bench::BENCH_MACHINE {

// Compute capability x 10 that this pass compiles for; the model has every instruction.  `kExists` keeps a kernel's body out of
// targets that lack its instructions.
#if defined(__CUDA_ARCH__)
constexpr int kTarget = __CUDA_ARCH__ / 10;
template <int Since, int Until>
constexpr bool kExists = kTarget >= Since && (Until == 0 || kTarget <= Until);
#elif defined(__CUDACC__)
template <int, int>
constexpr bool kExists = false;
#else
template <int, int>
constexpr bool kExists = true;
#endif
// The feature sets named 90a, 100a and so on: the compiler has no other name for wgmma and tcgen05.  All of 10.x and 11.0 from
// CUDA 12.9 on are told by the macro for any of them.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDACC__)
constexpr bool kHasWgmma = true;
#else
constexpr bool kHasWgmma = false;
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || !defined(__CUDACC__) || \
    (defined(__CUDA_ARCH_SPECIFIC__) && (__CUDA_ARCH__ / 100 == 10 || __CUDA_ARCH__ / 100 == 11))
constexpr bool kHasTcgen05 = true;
#else
constexpr bool kHasTcgen05 = false;
#endif
// Block scales of mma.sync, likewise: 12.x only.
#if (defined(__CUDA_ARCH_SPECIFIC__) && __CUDA_ARCH__ / 100 == 12) || defined(__CUDA_ARCH_FEAT_SM120_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM121_ALL) || !defined(__CUDACC__)
constexpr bool kHasBlockScales = true;
#else
constexpr bool kHasBlockScales = false;
#endif

// From which capability on the compiler at hand knows an instruction (999: not at all): bulk copies and barriers of clusters'
// blocks came with CUDA 12.0, FP8
// mma.sync with 12.4, 32-byte loads with 12.9.
#if defined(__CUDACC__)
constexpr int kCompiler = __CUDACC_VER_MAJOR__ * 10 + __CUDACC_VER_MINOR__;
#else
constexpr int kCompiler = 999;
#endif
constexpr int kBulkSince = kCompiler >= 120 ? 90 : 999, kPairSince = kBulkSince, kFp8Since = kCompiler >= 124 ? 89 : 999,
              kWideLoadSince = kCompiler >= 129 ? 100 : 999;

// Groups of words as one load takes them, and packed pairs of numbers.
struct alignas(16) Vector4 {
  uint32_t x, y, z, w;
};
struct alignas(32) Vector8 {
  uint32_t word[8];
};
struct Half2Value {
  uint32_t bits;
};
struct Bfloat2Value {
  uint32_t bits;
};
struct Float2Value {
  uint64_t bits;
};
// Weak loads, as compilers emit them: ld.global.cs, .L1::no_allocate, and plain.  (.ca and .cg are strong since Volta.)
enum class Path { streaming, past_l1, plain };

}  // namespace bench::BENCH_MACHINE

#if defined(__CUDACC__)
#include "ops_gpu.cuh"
#else
#include "../cpu/ops_cpu.hpp"
#endif

namespace bench::BENCH_MACHINE {

// Four block scales from a word of operands.
template <class Tag>
BENCH_FN uint32_t scale_factors(uint32_t word) {
  return (word & Tag::kScaleFree) + Tag::kScaleBase;
}
BENCH_FN uint32_t grid_thread() { return block() * threads() + thread(); }

// Whole blocks are timed by their thread 0; stamps go to memory at once, so that none stays in registers over the hot loop.
BENCH_FN void stamp_start(const Args& args) {
  if (thread() == 0) {
    args.stamps[block()].start_cycles = clock_cycles();
    args.stamps[block()].start_ns = clock_nanoseconds();
  }
}
BENCH_FN void stamp_end(const Args& args) {
  if (thread() == 0) {
    args.stamps[block()].end_cycles = clock_cycles();
    args.stamps[block()].end_ns = clock_nanoseconds();
    args.stamps[block()].sm = multiprocessor();
  }
}

}  // namespace bench::BENCH_MACHINE
