// Ceilings of the tensor cores through mma.sync: the roof of every part up to sm_89 and of sm_120, and a lower one on sm_90 and
// sm_100, where wgmma and tcgen05 are the roof.
#pragma once
#include "base.cuh"

namespace bench::BENCH_MACHINE {

constexpr int kMmaThreads = 256;
constexpr int kMmaSteps = 8;  // per chain and trip, half of them with B, half with B'

BENCH_FN uint32_t flipped(uint32_t b, uint32_t mask) { return b ^ mask; }
BENCH_FN double flipped(double b, uint32_t) { return -b; }

// Every chain multiplies the same A by B and B' in turn, so that its accumulators come back to where they were (nearly, and for
// integers modulo a walk).  One last product by B leaves A*B: what the CPU model must find, too.
template <class Tag, int Chains>
BENCH_FN void mma_body(const Args& args) {
  stamp_start(args);
  using Input = typename Tag::Input;
  using Register = typename Tag::Register;
  const Input* in = static_cast<const Input*>(args.in) + thread() * (Tag::kAllA + Tag::kAllB);
  Input a[Tag::kAllA], b[Tag::kAllB], other[Tag::kAllB];
  Register c[Chains][Tag::kC];
  BENCH_UNROLL for (int i = 0; i < Tag::kAllA; ++i) a[i] = in[i];
  BENCH_UNROLL for (int i = 0; i < Tag::kAllB; ++i) b[i] = in[Tag::kAllA + i];
  BENCH_UNROLL for (int i = 0; i < Tag::kB; ++i) other[i] = flipped(b[i], Tag::Element::kFlip);
  if constexpr (Tag::kScales > 0) {
    a[Tag::kA] = scale_factors<Tag>(a[Tag::kA]);
    b[Tag::kB] = other[Tag::kB] = scale_factors<Tag>(b[Tag::kB]);
  }
  BENCH_UNROLL for (int j = 0; j < Chains; ++j) { BENCH_UNROLL for (int i = 0; i < Tag::kC; ++i) c[j][i] = Register(0); }
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    BENCH_UNROLL for (int u = 0; u < kMmaSteps; u += 2) {
      BENCH_UNROLL for (int j = 0; j < Chains; ++j) mma<Tag>(c[j], a, b);
      BENCH_UNROLL for (int j = 0; j < Chains; ++j) mma<Tag>(c[j], a, other);
    }
  }
  const size_t lanes = size_t{blocks()} * threads();
  BENCH_UNROLL for (int j = 0; j < Chains; ++j) {
    mma<Tag>(c[j], a, b);
    BENCH_UNROLL for (int i = 0; i < Tag::kC;
                      ++i) reinterpret_cast<Register*>(args.out)[(j * Tag::kC + i) * lanes + grid_thread()] = c[j][i];
  }
  stamp_end(args);
}

// Where there is m16n8k16, the m8n8k4 of FP64 is not measured: on an H100 it reached half of the peak.
// kernel, ceiling, variant, pipe, tag, chains, unit, since, until, emulated, data, result, tolerance
#define BENCH_MMA_KERNELS(X)                                                                                                   \
  X(mma_f16_m8n8k4, "tensor.fp16.mma", "m8n8k4_c4", "tensor.fp16", F16M8K4, 4, "FLOP/s", 70, 72, "", fp16, fp32, 1e-5)         \
  X(mma_f16_k8, "tensor.fp16.mma", "m16n8k8_c8", "tensor.fp16", F16K8, 8, "FLOP/s", 75, 75, "", fp16, fp32, 1e-5)              \
  X(mma_f16acc16_k8, "tensor.fp16_acc16.mma", "m16n8k8_c8", "tensor.fp16", F16Acc16K8, 8, "FLOP/s", 75, 75, "", fp16, fp16x2,  \
    2e-2)                                                                                                                      \
  X(mma_s8_k16, "tensor.int8.mma", "m8n8k16_c8", "tensor.int8", S8K16, 8, "OP/s", 75, 75, "", int8, bits, 0)                   \
  X(mma_f16, "tensor.fp16.mma", "m16n8k16_c8", "tensor.fp16", F16K16, 8, "FLOP/s", 80, 0, "", fp16, fp32, 1e-5)                \
  X(mma_f16acc16, "tensor.fp16_acc16.mma", "m16n8k16_c8", "tensor.fp16", F16Acc16K16, 8, "FLOP/s", 80, 0, "", fp16, fp16x2,    \
    2e-2)                                                                                                                      \
  X(mma_bf16, "tensor.bf16.mma", "m16n8k16_c8", "tensor.bf16", Bf16K16, 8, "FLOP/s", 80, 0, "", bf16, fp32, 1e-5)              \
  X(mma_tf32, "tensor.tf32.mma", "m16n8k8_c8", "tensor.tf32", Tf32K8, 8, "FLOP/s", 80, 0, "", tf32, fp32, 1e-5)                \
  X(mma_s8, "tensor.int8.mma", "m16n8k32_c8", "tensor.int8", S8K32, 8, "OP/s", 80, 0, "", int8, bits, 0)                       \
  X(mma_e4m3, "tensor.fp8.mma", "m16n8k32_c8", "tensor.fp8", E4m3K32, 8, "FLOP/s", kFp8Since, 0, "9.0 10.x 11.0", fp8, fp32,   \
    1e-2)                                                                                                                      \
  X(mma_f16_sparse, "tensor.fp16.mma.sparse", "m16n8k32_c8", "tensor.fp16.sparse", F16SparseK32, 8, "FLOP/s", 80, 0, "", fp16, \
    fp32, 1e-5)                                                                                                                \
  X(mma_bf16_sparse, "tensor.bf16.mma.sparse", "m16n8k32_c8", "tensor.bf16.sparse", Bf16SparseK32, 8, "FLOP/s", 80, 0, "",     \
    bf16, fp32, 1e-5)                                                                                                          \
  X(mma_tf32_sparse, "tensor.tf32.mma.sparse", "m16n8k16_c8", "tensor.tf32.sparse", Tf32SparseK16, 8, "FLOP/s", 80, 0, "",     \
    tf32, fp32, 1e-5)                                                                                                          \
  X(mma_s8_sparse, "tensor.int8.mma.sparse", "m16n8k64_c8", "tensor.int8.sparse", S8SparseK64, 8, "OP/s", 80, 0, "", int8,     \
    bits, 0)                                                                                                                   \
  X(mma_e4m3_sparse, "tensor.fp8.mma.sparse", "m16n8k64_c8", "tensor.fp8.sparse", E4m3SparseK64, 8, "FLOP/s", kFp8Since, 0,    \
    "9.0 10.x 11.0", fp8, fp32, 1e-2)                                                                                          \
  X(mma_nvf4, "tensor.fp4.mma", "nvf4_m16n8k64_c8", "tensor.fp4", Nvf4K64, 8, "FLOP/s", 120, 0, "", words, fp32, 1e-2)         \
  X(mma_mxf4, "tensor.fp4.mma", "mxf4_m16n8k64_c8", "tensor.fp4", Mxf4K64, 8, "FLOP/s", 120, 0, "", words, fp32, 1e-2)         \
  X(mma_mxf6, "tensor.fp6fp4.mma", "mxf6_m16n8k32_c8", "tensor.fp6fp4", Mxf6K32, 8, "FLOP/s", 120, 0, "", fp6, fp32, 1e-2)     \
  X(mma_mxf8, "tensor.mxfp8.mma", "m16n8k32_c8", "tensor.mxfp8", Mxf8K32, 8, "FLOP/s", 120, 0, "", fp8, fp32, 1e-2)            \
  X(mma_f64_k16, "tensor.fp64.mma", "m16n8k16_c4", "tensor.fp64", F64K16, 4, "FLOP/s", 90, 0, "12.0 12.1", fp64, fp64, 1e-13)  \
  X(mma_f64, "tensor.fp64.mma", "m8n8k4_c8", "tensor.fp64", F64M8K4, 8, "FLOP/s", 80, 89, "8.6 8.7 8.9", fp64, fp64, 1e-13)

#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, TAG, CHAINS, UNIT, SINCE, UNTIL, ...)                        \
  BENCH_KERNEL(bench_##NAME, kMmaThreads, 1) {                                                                  \
    if constexpr (kExists<SINCE, UNTIL> && (TAG::kScales == 0 || kHasBlockScales)) mma_body<TAG, CHAINS>(args); \
  }
BENCH_MMA_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE

inline constexpr Row mma_rows[] = {
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, TAG, CHAINS, UNIT, SINCE, UNTIL, EMULATED, DATA, RESULT, TOLERANCE) \
  {"bench_" #NAME,                                                                                                  \
   CEILING,                                                                                                         \
   VARIANT,                                                                                                         \
   UNIT,                                                                                                            \
   PIPE,                                                                                                            \
   Shape::compute,                                                                                                  \
   Data::DATA,                                                                                                      \
   Result::RESULT,                                                                                                  \
   TOLERANCE,                                                                                                       \
   SINCE,                                                                                                           \
   UNTIL,                                                                                                           \
   EMULATED,                                                                                                        \
   kMmaThreads,                                                                                                     \
   0,                                                                                                               \
   0,                                                                                                               \
   kMmaThreads * (TAG::kAllA + TAG::kAllB) * int{sizeof(TAG::Input) / 4},                                           \
   CHAINS * TAG::kC * int{sizeof(TAG::Register) / 4},                                                               \
   TAG::kOperations * CHAINS * kMmaSteps,                                                                           \
   0.0},
    BENCH_MMA_KERNELS(BENCH_ROW)
#undef BENCH_ROW
};

}  // namespace bench::BENCH_MACHINE
