// Shapes of warp-wide mma.sync.m?n8k? and of the asynchronous tensor instructions, shared by kernels, PTX and model.
#pragma once
#include <cstdint>

namespace bench {

// Element types: elements per 32-bit register and the mask that turns B into the B' of every second product, so that
// accumulators neither overflow nor freeze: -B, for integers ~B = -B - 1 (accumulators then walk, and may wrap).
struct Half {
  static constexpr int kPerRegister = 2;
  static constexpr uint32_t kFlip = 0x80008000u;
};
struct Bfloat {
  static constexpr int kPerRegister = 2;
  static constexpr uint32_t kFlip = 0x80008000u;
};
struct Tf32 {
  static constexpr int kPerRegister = 1;
  static constexpr uint32_t kFlip = 0x80000000u;
};
struct Int8 {
  static constexpr int kPerRegister = 4;
  static constexpr uint32_t kFlip = 0xffffffffu;
};
struct Fp8 {
  static constexpr int kPerRegister = 4;
  static constexpr uint32_t kFlip = 0x80808080u;
};
struct Fp6 {  // E3M2, in the lower six bits of a byte
  static constexpr int kPerRegister = 4;
  static constexpr uint32_t kFlip = 0x20202020u;
};
struct Fp6Packed {  // as tcgen05 reads it: 16 elements of six bits, 32 bits of padding; the runner flips the signs
  static constexpr int kPerRegister = 4;
  static constexpr uint32_t kFlip = 0;
};
struct Fp4 {
  static constexpr int kPerRegister = 8;
  static constexpr uint32_t kFlip = 0x88888888u;
};
struct Double {
  static constexpr int kPerRegister = 1;
  static constexpr uint32_t kFlip = 0;
};

struct Half2 {};  // two FP16 accumulators in one 32-bit register

// tag, element, accumulator register, M, K, operand form, constraint letter, PTX.  N is 8.
#define BENCH_MMA_SHAPES(X)                                                          \
  X(F16M8K4, Half, float, 8, 4, VOLTA, "+f", "m8n8k4.row.col.f32.f16.f16.f32")       \
  X(F16K8, Half, float, 16, 8, 214, "+f", "m16n8k8.row.col.f32.f16.f16.f32")         \
  X(F16Acc16K8, Half, Half2, 16, 8, 212, "+r", "m16n8k8.row.col.f16.f16.f16.f16")    \
  X(S8K16, Int8, uint32_t, 8, 16, 112, "+r", "m8n8k16.row.col.s32.s8.s8.s32")        \
  X(F16K16, Half, float, 16, 16, 424, "+f", "m16n8k16.row.col.f32.f16.f16.f32")      \
  X(F16Acc16K16, Half, Half2, 16, 16, 422, "+r", "m16n8k16.row.col.f16.f16.f16.f16") \
  X(Bf16K16, Bfloat, float, 16, 16, 424, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32") \
  X(Tf32K8, Tf32, float, 16, 8, 424, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32")      \
  X(S8K32, Int8, uint32_t, 16, 32, 424, "+r", "m16n8k32.row.col.s32.s8.s8.s32")      \
  X(E4m3K32, Fp8, float, 16, 32, 424, "+f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")    \
  X(F64M8K4, Double, double, 8, 4, 112, "+d", "m8n8k4.row.col.f64.f64.f64.f64")      \
  X(F64K16, Double, double, 16, 16, 844, "+d", "m16n8k16.row.col.f64.f64.f64.f64")

// 2:4 sparse A: of every four elements two are held (of TF32's: of every two one), and which they were, as two bits each.  The
// same 16 bits for any four chunks, so that it does not matter which lane tells of which rows; indices rise within a chunk.
// Operations are those of the dense product, as NVIDIA's counters count them: twice what is multiplied.
#define BENCH_SPARSE_SHAPES(X)                                                            \
  X(F16SparseK32, Half, float, 16, 32, SP, "+f", "m16n8k32.row.col.f32.f16.f16.f32")      \
  X(Bf16SparseK32, Bfloat, float, 16, 32, SP, "+f", "m16n8k32.row.col.f32.bf16.bf16.f32") \
  X(Tf32SparseK16, Tf32, float, 16, 16, SP, "+f", "m16n8k16.row.col.f32.tf32.tf32.f32")   \
  X(S8SparseK64, Int8, uint32_t, 16, 64, SP, "+r", "m16n8k64.row.col.s32.s8.s8.s32")      \
  X(E4m3SparseK64, Fp8, float, 16, 64, SP, "+f", "m16n8k64.row.col.f32.e4m3.e4m3.f32")
template <class Element>
constexpr uint32_t kMetadata = 0x4c9e4c9eu;  // elements 2 and 3, 1 and 2, 0 and 3, 0 and 1

// Block scales: a row of A and a column of B have so many factors along K, one byte each in a 32-bit word.  Factors are made of
// operand words: a few random bits of each byte and a base (UE8M0: 1/2 and 1; UE4M3: 1/2 to 15/16), so that no sum overflows.
// tag, element, K, factors per row, random bits, base, PTX kind, PTX type, PTX type of factors.  M is 16.
#define BENCH_SCALED_SHAPES(X)                                                                                  \
  X(Nvf4K64, Fp4, 64, 4, 0x07070707u, 0x30303030u, "kind::mxf4nvf4.block_scale.scale_vec::4X", "e2m1", "ue4m3") \
  X(Mxf4K64, Fp4, 64, 2, 0x01010101u, 0x7e7e7e7eu, "kind::mxf4.block_scale.scale_vec::2X", "e2m1", "ue8m0")     \
  X(Mxf6K32, Fp6, 32, 1, 0x01010101u, 0x7e7e7e7eu, "kind::mxf8f6f4.block_scale.scale_vec::1X", "e3m2", "ue8m0") \
  X(Mxf8K32, Fp8, 32, 1, 0x01010101u, 0x7e7e7e7eu, "kind::mxf8f6f4.block_scale.scale_vec::1X", "e4m3", "ue8m0")

template <class T>
struct RegisterOf {
  using type = uint32_t;
};
template <>
struct RegisterOf<Double> {
  using type = double;
};
template <>
struct RegisterOf<double> {
  using type = double;
};
template <>
struct RegisterOf<float> {
  using type = float;
};
template <class T>
constexpr int kAccumulatorsPerRegister = 1;
template <>
inline constexpr int kAccumulatorsPerRegister<Half2> = 2;

// kSparse: elements of A for one that is held; kScales: block scales per row and column, in a word behind A's and B's.
#define BENCH_MMA_TAG(SPARSE, SCALES, FREE, BASE, NAME, ELEMENT, ACCUMULATOR, M_, K_)          \
  struct NAME {                                                                                \
    using Element = ELEMENT;                                                                   \
    using Input = RegisterOf<ELEMENT>::type;                                                   \
    using Accumulator = ACCUMULATOR;                                                           \
    using Register = RegisterOf<ACCUMULATOR>::type;                                            \
    static constexpr int kM = M_, kN = 8, kK = K_, kSparse = SPARSE, kScales = SCALES;         \
    static constexpr uint32_t kScaleFree = FREE, kScaleBase = BASE;                            \
    static constexpr bool kVolta = M_ == 8 && sizeof(Input) == 4 && K_ == 4;                   \
    static constexpr int kProducts = kVolta ? 4 : 1; /* Volta's quad pairs: four at a time */  \
    static constexpr int kA = kProducts * M_ * K_ / SPARSE / 32 / Element::kPerRegister;       \
    static constexpr int kB = kProducts * 8 * K_ / 32 / Element::kPerRegister;                 \
    static constexpr int kAllA = kA + (SCALES > 0), kAllB = kB + (SCALES > 0);                 \
    static constexpr int kC = kProducts * M_ * 8 / 32 / kAccumulatorsPerRegister<ACCUMULATOR>; \
    static constexpr double kOperations = 2.0 * kProducts * M_ * 8 * K_ / 32; /* per thread */ \
  };
#define BENCH_DENSE_TAG(NAME, ELEMENT, ACCUMULATOR, M_, K_, ...) BENCH_MMA_TAG(1, 0, 0, 0, NAME, ELEMENT, ACCUMULATOR, M_, K_)
#define BENCH_SPARSE_TAG(NAME, ELEMENT, ACCUMULATOR, M_, K_, ...) BENCH_MMA_TAG(2, 0, 0, 0, NAME, ELEMENT, ACCUMULATOR, M_, K_)
#define BENCH_SCALED_TAG(NAME, ELEMENT, K_, SCALES, FREE, BASE, ...) \
  BENCH_MMA_TAG(1, SCALES, FREE, BASE, NAME, ELEMENT, float, 16, K_)
BENCH_MMA_SHAPES(BENCH_DENSE_TAG)
BENCH_SPARSE_SHAPES(BENCH_SPARSE_TAG)
BENCH_SCALED_SHAPES(BENCH_SCALED_TAG)
template <>
inline constexpr uint32_t kMetadata<Tf32> = 0xe44ee44eu;  // 1, 0, 0, 1: told as the halves of a pair

// wgmma and tcgen05 take 32 bytes of K per instruction.  Operand slices lie in shared memory as core matrices of 8 rows x 16
// bytes (no swizzle, K-major): (row group, K half) at 256 x group + 128 x half.
constexpr int kSliceBytes = 32;
constexpr int kSlices = 4;  // different operands per trip
constexpr uint32_t kHalfStride = 128, kGroupStride = 256;

// tag, element, accumulator, K, PTX type of the wgmma, its tail, kind of tcgen05, bits of its instruction descriptor
#define BENCH_ASYNC_SHAPES(X)                                                     \
  X(AsyncF16, Half, float, 16, "f32.f16.f16", ", 1, 1, 0, 0", "f16", 0x010u)      \
  X(AsyncF16Acc16, Half, Half2, 16, "f16.f16.f16", ", 1, 1, 0, 0", "f16", 0x000u) \
  X(AsyncBf16, Bfloat, float, 16, "f32.bf16.bf16", ", 1, 1, 0, 0", "f16", 0x490u) \
  X(AsyncTf32, Tf32, float, 8, "f32.tf32.tf32", ", 1, 1", "tf32", 0x910u)         \
  X(AsyncS8, Int8, uint32_t, 32, "s32.s8.s8", "", "i8", 0x4a0u)                   \
  X(AsyncE4m3, Fp8, float, 32, "f32.e4m3.e4m3", ", 1, 1", "f8f6f4", 0x010u)

#define BENCH_ASYNC_TAG(NAME, ELEMENT, ACCUMULATOR, K_, TYPES, TAIL, KIND, FORMATS)         \
  struct NAME {                                                                             \
    using Element = ELEMENT;                                                                \
    using Accumulator = ACCUMULATOR;                                                        \
    using Register = RegisterOf<ACCUMULATOR>::type;                                         \
    static constexpr int kK = K_, kScales = 0, kRowBytes = kSliceBytes;                     \
    static constexpr uint32_t kFormats = FORMATS; /* D at bit 4, A at bit 7, B at bit 10 */ \
  };
BENCH_ASYNC_SHAPES(BENCH_ASYNC_TAG)
#undef BENCH_ASYNC_TAG

// Sparse, wgmma only: A held in registers as mma.sync holds it (four per slice), because the wider B takes all of the bandwidth
// of shared memory.  tag, what a warp holds, K, PTX type, tail
#define BENCH_ASYNC_SPARSE_SHAPES(X)                                  \
  X(AsyncF16Sparse, F16SparseK32, 32, "f32.f16.f16", ", 1, 1, 0")     \
  X(AsyncBf16Sparse, Bf16SparseK32, 32, "f32.bf16.bf16", ", 1, 1, 0") \
  X(AsyncTf32Sparse, Tf32SparseK16, 16, "f32.tf32.tf32", ", 1, 1")    \
  X(AsyncS8Sparse, S8SparseK64, 64, "s32.s8.s8", "")                  \
  X(AsyncE4m3Sparse, E4m3SparseK64, 64, "f32.e4m3.e4m3", ", 1, 1")
#define BENCH_ASYNC_SPARSE_TAG(NAME, HELD, ...) \
  struct NAME : HELD {                          \
    static constexpr int kRowBytes = 64;        \
  };
BENCH_ASYNC_SPARSE_SHAPES(BENCH_ASYNC_SPARSE_TAG)
#undef BENCH_ASYNC_SPARSE_TAG

// With block scales, tcgen05 only.  10.3 reaches its FP4 rate by products of 96 elements, 48 bytes (bit 31).
// tag, element, K, factors per row, random bits, base, kind, bits of the instruction descriptor (A at bit 7, B at bit 10, UE8M0
// at bit 23)
#define BENCH_ASYNC_SCALED_SHAPES(X)                                                                        \
  X(AsyncNvf4, Fp4, 64, 4, 0x07070707u, 0x30303030u, "mxf4nvf4.block_scale.scale_vec::4X", 0x480u)          \
  X(AsyncMxf4, Fp4, 64, 2, 0x01010101u, 0x7e7e7e7eu, "mxf4.block_scale.scale_vec::2X", 0x800480u)           \
  X(AsyncMxf6, Fp6Packed, 32, 1, 0x01010101u, 0x7e7e7e7eu, "mxf8f6f4.block_scale.scale_vec::1X", 0x801200u) \
  X(AsyncMxf8, Fp8, 32, 1, 0x01010101u, 0x7e7e7e7eu, "mxf8f6f4.block_scale.scale_vec::1X", 0x800000u)
#define BENCH_ASYNC_K96_SHAPES(X)                                                                    \
  X(AsyncNvf4K96, Fp4, 96, 6, 0x07070707u, 0x30303030u, "mxf4nvf4.block_scale.block16", 0x80000480u) \
  X(AsyncMxf4K96, Fp4, 96, 3, 0x01010101u, 0x7e7e7e7eu, "mxf4.block_scale.block32", 0x80800480u)

#define BENCH_ASYNC_SCALED_TAG(NAME, ELEMENT, K_, SCALES, FREE, BASE, KIND, FORMATS)            \
  struct NAME {                                                                                 \
    using Element = ELEMENT;                                                                    \
    using Accumulator = float;                                                                  \
    using Register = float;                                                                     \
    static constexpr int kK = K_, kScales = SCALES, kRowBytes = K_ / Element::kPerRegister * 4; \
    static constexpr uint32_t kFormats = FORMATS, kScaleFree = FREE, kScaleBase = BASE;         \
  };
BENCH_ASYNC_SCALED_SHAPES(BENCH_ASYNC_SCALED_TAG)
BENCH_ASYNC_K96_SHAPES(BENCH_ASYNC_SCALED_TAG)
#undef BENCH_ASYNC_SCALED_TAG

}  // namespace bench
