// Ceilings of Hopper's tensor cores: wgmma, both operands in shared memory (sm_90a only).
#pragma once
#include "base.cuh"

namespace bench::BENCH_MACHINE {

// Two warpgroups, so that one multiplies while the other waits for its group.  m64n256: 128 accumulators per thread, 80 bytes
// of shared memory per cycle and SM of 128.
constexpr int kWgmmaThreads = 256, kWgmmaM = 64, kWgmmaN = 256, kWgmmas = 16;
constexpr int kTileA = kWgmmaM * kSliceBytes, kTileB = kWgmmaN * kSliceBytes;
constexpr int kWgmmaShared = kSlices * (kTileA + 2 * kTileB);  // A, B, B'

// Descriptor of an operand tile, in units of 16 bytes: address at bit 0, K stride at 16, row group stride at 32.
BENCH_FN uint64_t wgmma_descriptor(uint32_t address, uint32_t group_stride = kGroupStride) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{kHalfStride >> 4} << 16 | uint64_t{group_stride >> 4} << 32;
}

template <class Tag>
constexpr int kWgmmaRegisters = kWgmmaN / 2 / kAccumulatorsPerRegister<typename Tag::Accumulator>;

template <class Tag>
BENCH_FN void wgmma_body(const Args& args) {
  stamp_start(args);
  using Register = typename Tag::Register;
  Vector4* tiles = reinterpret_cast<Vector4*>(dynamic_shared());
  for (uint32_t i = thread(); i < kWgmmaShared / 16; i += threads()) tiles[i] = static_cast<const Vector4*>(args.in)[i];
  fence_shared_for_async();
  barrier();
  const uint32_t base = shared_address(tiles);
  const uint64_t a = wgmma_descriptor(base), b = wgmma_descriptor(base + kSlices * kTileA),
                 other = wgmma_descriptor(base + kSlices * (kTileA + kTileB));
  Register c[kWgmmaRegisters<Tag>];
  BENCH_UNROLL for (int i = 0; i < kWgmmaRegisters<Tag>; ++i) c[i] = Register(0);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    wgmma_fence();
    BENCH_UNROLL for (int u = 0; u < kWgmmas; u += 2) {
      const int slice = u / 2 % kSlices;
      wgmma<Tag>(c, a + slice * (kTileA / 16), b + slice * (kTileB / 16));
      wgmma<Tag>(c, a + slice * (kTileA / 16), other + slice * (kTileB / 16));
    }
    wgmma_wait();
  }
  wgmma_fence();
  BENCH_UNROLL for (int slice = 0; slice < kSlices; ++slice)
      wgmma<Tag>(c, a + slice * (kTileA / 16), b + slice * (kTileB / 16));
  wgmma_wait();
  const size_t lanes = size_t{blocks()} * threads();
  BENCH_UNROLL for (int i = 0; i < kWgmmaRegisters<Tag>; ++i) reinterpret_cast<Register*>(args.out)[i * lanes + grid_thread()] =
      c[i];
  stamp_end(args);
}

// Sparse: twice as much of B per instruction, 128 bytes per cycle; A, other for each warpgroup, in registers.
constexpr int kSparseTileB = kWgmmaN * 64, kSparseShared = kSlices * 2 * kSparseTileB, kSparseA = 4 * kSlices;
template <class Tag>
BENCH_FN void wgmma_sparse_body(const Args& args) {
  stamp_start(args);
  using Register = typename Tag::Register;
  const uint32_t* in = static_cast<const uint32_t*>(args.in);
  uint32_t a[kSlices][4];
  BENCH_UNROLL for (int i = 0; i < kSparseA; ++i) a[i / 4][i % 4] = in[thread() * kSparseA + i];
  Vector4* tiles = reinterpret_cast<Vector4*>(dynamic_shared());
  for (uint32_t i = thread(); i < kSparseShared / 16; i += threads())
    tiles[i] = reinterpret_cast<const Vector4*>(in + kWgmmaThreads * kSparseA)[i];
  fence_shared_for_async();
  barrier();
  const uint32_t base = shared_address(tiles);
  const uint64_t b = wgmma_descriptor(base, 8 * Tag::kRowBytes),
                 other = wgmma_descriptor(base + kSlices * kSparseTileB, 8 * Tag::kRowBytes);
  Register c[128];
  BENCH_UNROLL for (int i = 0; i < 128; ++i) c[i] = Register(0);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    wgmma_fence();
    BENCH_UNROLL for (int u = 0; u < kWgmmas; u += 2) {
      const int slice = u / 2 % kSlices;
      wgmma_sparse<Tag>(c, a[slice], b + slice * (kSparseTileB / 16));
      wgmma_sparse<Tag>(c, a[slice], other + slice * (kSparseTileB / 16));
    }
    wgmma_wait();
  }
  wgmma_fence();
  BENCH_UNROLL for (int slice = 0; slice < kSlices; ++slice) wgmma_sparse<Tag>(c, a[slice], b + slice * (kSparseTileB / 16));
  wgmma_wait();
  const size_t lanes = size_t{blocks()} * threads();
  BENCH_UNROLL for (int i = 0; i < 128; ++i) reinterpret_cast<Register*>(args.out)[i * lanes + grid_thread()] = c[i];
  stamp_end(args);
}

// kernel, ceiling, variant, pipe, tag, unit, data, result, tolerance
#define BENCH_WGMMA_KERNELS(X)                                                                                                 \
  X(wgmma_f16, "tensor.fp16.wgmma", "m64n256k16_ss_w2", "tensor.fp16", AsyncF16, "FLOP/s", fp16, fp32, 1e-5)                   \
  X(wgmma_f16acc16, "tensor.fp16_acc16.wgmma", "m64n256k16_ss_w2", "tensor.fp16", AsyncF16Acc16, "FLOP/s", fp16, fp16x2, 2e-2) \
  X(wgmma_bf16, "tensor.bf16.wgmma", "m64n256k16_ss_w2", "tensor.bf16", AsyncBf16, "FLOP/s", bf16, fp32, 1e-5)                 \
  X(wgmma_tf32, "tensor.tf32.wgmma", "m64n256k8_ss_w2", "tensor.tf32", AsyncTf32, "FLOP/s", tf32, fp32, 1e-5)                  \
  X(wgmma_s8, "tensor.int8.wgmma", "m64n256k32_ss_w2", "tensor.int8", AsyncS8, "OP/s", int8, bits, 0)                          \
  X(wgmma_e4m3, "tensor.fp8.wgmma", "m64n256k32_ss_w2", "tensor.fp8", AsyncE4m3, "FLOP/s", fp8, fp32, 1e-2)

#define BENCH_WGMMA_SPARSE_KERNELS(X)                                                                                         \
  X(wgmma_f16_sparse, "tensor.fp16.wgmma.sparse", "m64n256k32_rs_w2", "tensor.fp16.sparse", AsyncF16Sparse, "FLOP/s", fp16,   \
    fp32, 1e-5)                                                                                                               \
  X(wgmma_bf16_sparse, "tensor.bf16.wgmma.sparse", "m64n256k32_rs_w2", "tensor.bf16.sparse", AsyncBf16Sparse, "FLOP/s", bf16, \
    fp32, 1e-5)                                                                                                               \
  X(wgmma_tf32_sparse, "tensor.tf32.wgmma.sparse", "m64n256k16_rs_w2", "tensor.tf32.sparse", AsyncTf32Sparse, "FLOP/s", tf32, \
    fp32, 1e-5)                                                                                                               \
  X(wgmma_s8_sparse, "tensor.int8.wgmma.sparse", "m64n256k64_rs_w2", "tensor.int8.sparse", AsyncS8Sparse, "OP/s", int8, bits, \
    0)                                                                                                                        \
  X(wgmma_e4m3_sparse, "tensor.fp8.wgmma.sparse", "m64n256k64_rs_w2", "tensor.fp8.sparse", AsyncE4m3Sparse, "FLOP/s", fp8,    \
    fp32, 1e-2)

#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, TAG, ...) \
  BENCH_KERNEL(bench_##NAME, kWgmmaThreads, 1) {             \
    if constexpr (kHasWgmma) wgmma_body<TAG>(args);          \
  }
BENCH_WGMMA_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE
#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, TAG, ...) \
  BENCH_KERNEL(bench_##NAME, kWgmmaThreads, 1) {             \
    if constexpr (kHasWgmma) wgmma_sparse_body<TAG>(args);   \
  }
BENCH_WGMMA_SPARSE_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE

inline constexpr Row wgmma_rows[] = {
#define BENCH_ROW_OF(NAME, CEILING, VARIANT, PIPE, UNIT, DATA, RESULT, TOLERANCE, SHARED, INPUT, RESULTS, K, FLIPPED, FLIP) \
  {"bench_" #NAME,                                                                                                          \
   CEILING,                                                                                                                 \
   VARIANT,                                                                                                                 \
   UNIT,                                                                                                                    \
   PIPE,                                                                                                                    \
   Shape::compute,                                                                                                          \
   Data::DATA,                                                                                                              \
   Result::RESULT,                                                                                                          \
   TOLERANCE,                                                                                                               \
   90,                                                                                                                      \
   90,                                                                                                                      \
   "",                                                                                                                      \
   kWgmmaThreads,                                                                                                           \
   1,                                                                                                                       \
   SHARED,                                                                                                                  \
   INPUT,                                                                                                                   \
   RESULTS,                                                                                                                 \
   2.0 * kWgmmaM * kWgmmaN * K * kWgmmas / 128,                                                                             \
   0.0,                                                                                                                     \
   1,                                                                                                                       \
   FLIPPED,                                                                                                                 \
   FLIP},
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, TAG, UNIT, DATA, RESULT, TOLERANCE)                         \
  BENCH_ROW_OF(NAME, CEILING, VARIANT, PIPE, UNIT, DATA, RESULT, TOLERANCE, kWgmmaShared, kWgmmaShared / 4, \
               kWgmmaRegisters<TAG>, TAG::kK, kSlices * kTileB / 4, TAG::Element::kFlip)
    BENCH_WGMMA_KERNELS(BENCH_ROW)
#undef BENCH_ROW
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, TAG, UNIT, DATA, RESULT, TOLERANCE)        \
  BENCH_ROW_OF(NAME, CEILING, VARIANT, PIPE, UNIT, DATA, RESULT, TOLERANCE, kSparseShared, \
               kWgmmaThreads* kSparseA + kSparseShared / 4, 128, TAG::kK, kSlices * kSparseTileB / 4, TAG::Element::kFlip)
        BENCH_WGMMA_SPARSE_KERNELS(BENCH_ROW)
#undef BENCH_ROW
#undef BENCH_ROW_OF
};

}  // namespace bench::BENCH_MACHINE
