// Ceilings of the tensor cores of data-center Blackwell: tcgen05.mma, accumulators in tensor memory (sm_100a, sm_103a,
// sm_110a).
#pragma once
#include "base.cuh"

namespace bench::BENCH_MACHINE {

constexpr int kTcgenThreads = 128, kTcgenM = 128, kTcgenN = 256, kTcgenMmas = 16;
template <class Tag>
constexpr int kTcgenTileA = kTcgenM * Tag::kRowBytes;
template <class Tag>
constexpr int kTcgenTileB = kTcgenN * Tag::kRowBytes;
// A, B, B'; of two blocks that issue as one each has its own 128 rows of A and of D, and half of B.
template <class Tag, int Pair>
constexpr int kTcgenOperands = kSlices * (kTcgenTileA<Tag> + 2 * kTcgenTileB<Tag> / Pair);
constexpr int kTcgenBehind = 64;  // three barriers, the address in tensor memory
// Columns of tensor memory: accumulators, and behind them block scales: 8 of A, 16 of B (half of them used up to K = 64).
template <class Tag>
constexpr uint32_t kTcgenColumns = Tag::kScales ? 512 : 256;

// As wgmma's, and a version number at bit 46.  Eight rows are as many core matrices of 128 bytes as K needs.
template <class Tag>
BENCH_FN uint64_t tcgen05_descriptor(uint32_t address) {
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{kHalfStride >> 4} << 16 | uint64_t{8 * Tag::kRowBytes >> 4} << 32 |
         1ull << 46;
}
template <class Tag, int Pair>
constexpr uint32_t kInstruction =
    Tag::kFormats | (kTcgenN >> 3) << 17 | (Tag::kScales ? (Pair * kTcgenM >> 7) << 27 : (Pair * kTcgenM >> 4) << 24);

// Block scales of row r of A (column of B): the bytes of a word in lane r mod 32, column r / 32, the same in all four quarters
// of the lanes.  They are made of the first words of the operands.  More than four of a row go on in other columns: there all
// columns are alike, so that their order does not matter.
template <class Tag>
BENCH_FN void tcgen05_scales(uint32_t own, const uint32_t* a, const uint32_t* b) {
  uint32_t words[8];
  const uint32_t lane = thread() % 32;
  constexpr int kStep = Tag::kK == 96 ? 0 : 32;
  BENCH_UNROLL for (int i = 0; i < 8; ++i) words[i] = scale_factors<Tag>(a[i % 4 * kStep + lane]);
  tcgen05_store(own + kTcgenN, words);
  BENCH_UNROLL for (int i = 0; i < 8; ++i) words[i] = scale_factors<Tag>(b[i * kStep + lane]);
  tcgen05_store(own + kTcgenN + 8, words);
  if constexpr (Tag::kK == 96) tcgen05_store(own + kTcgenN + 16, words);
}

// One warp issues a trip's products and a commit, then waits for the trip before: the tensor core never runs dry.  Of a pair of
// blocks the first issues for both, and the last commit tells both (third barrier).
template <class Tag, int Pair>
BENCH_FN void tcgen05_loop(const Args& args, uint32_t d, uint32_t operands, uint32_t bars) {
  const uint64_t a = tcgen05_descriptor<Tag>(operands), b = tcgen05_descriptor<Tag>(operands + kSlices * kTcgenTileA<Tag>),
                 other = tcgen05_descriptor<Tag>(operands + kSlices * (kTcgenTileA<Tag> + kTcgenTileB<Tag> / Pair));
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    tcgen05_products<Tag, Pair>(d, a, b, other, kInstruction<Tag, Pair>, d + kTcgenN);
    tcgen05_commit<Pair>(bars + t % 2 * 8);
    if (t > 0) barrier_wait(bars + (t + 1) % 2 * 8, (t - 1) / 2 % 2);
  }
  if (args.trips > 0) barrier_wait(bars + (args.trips + 1) % 2 * 8, (args.trips - 1) / 2 % 2);
  tcgen05_last_products<Tag, Pair>(d, a, b, kInstruction<Tag, Pair>, d + kTcgenN);
  if constexpr (Pair == 2)
    tcgen05_commit_to_both(bars + 16);
  else
    tcgen05_commit<Pair>(bars + 16);
}

template <class Tag, int Pair>
BENCH_FN void tcgen05_body(const Args& args) {
  stamp_start(args);
  constexpr uint32_t kVectorsA = kSlices * kTcgenTileA<Tag> / 16, kHalfB = kTcgenTileB<Tag> / 16 / Pair,
                     kOperands = kTcgenOperands<Tag, Pair>;
  Vector4* tiles = reinterpret_cast<Vector4*>(dynamic_shared());
  const Vector4* in = static_cast<const Vector4*>(args.in);
  const uint32_t rank = Pair == 2 ? cluster_rank() : 0;
  // All of A; of each slice of B and B' the columns that this block has.
  for (uint32_t i = thread(); i < kVectorsA; i += threads()) tiles[i] = in[i];
  for (uint32_t i = thread(); i < 2 * kSlices * kHalfB; i += threads())
    tiles[kVectorsA + i] = in[kVectorsA + (i / kHalfB * Pair + rank) * kHalfB + i % kHalfB];
  const uint32_t operands = shared_address(tiles), bars = operands + kOperands, slot = bars + 24;
  const uint32_t warp = warp_index();  // uniform for the compiler: no loop over lanes around each instruction
  if (warp == 0) tcgen05_allocate<Pair>(slot, kTcgenColumns<Tag>);
  if (thread() == 0) {
    BENCH_UNROLL for (int i = 0; i < 3; ++i) barrier_init(bars + i * 8);
    fence_barrier_init();
  }
  fence_shared_for_async();
  barrier();
  const uint32_t d = load_shared_word(slot), own = d + (warp << 21);  // a warp reaches its 32 of the 128 lanes
  for (uint32_t column = 0; column < kTcgenN; column += 8) tcgen05_clear(own + column);
  if constexpr (Tag::kScales > 0) {
    const uint32_t* words = static_cast<const uint32_t*>(args.in);
    tcgen05_scales<Tag>(own, words, words + kSlices * kTcgenTileA<Tag> / 4);
  }
  tcgen05_fence();
  if constexpr (Pair == 2)
    cluster_barrier();
  else
    barrier();
  tcgen05_fence();
  if (warp == 0) {
    if (rank == 0) tcgen05_loop<Tag, Pair>(args, d, operands, bars);
    barrier_wait(bars + 16, 0);
  }
  barrier();
  tcgen05_fence();
  const size_t lanes = size_t{blocks()} * threads();
  for (uint32_t column = 0; column < kTcgenN; column += 8) {
    uint32_t c[8];
    tcgen05_load(c, own + column);
    BENCH_UNROLL for (int i = 0; i < 8; ++i) args.out[(column + i) * lanes + grid_thread()] = c[i];
  }
  tcgen05_fence();
  if constexpr (Pair == 2)
    cluster_barrier();
  else
    barrier();
  if (warp == 0) tcgen05_free<Pair>(d, kTcgenColumns<Tag>);
  stamp_end(args);
}

// kernel, ceiling, variant, pipe, tag, blocks that issue as one, unit, since, until, data, result, tolerance.  sm_103a has no
// integer kind, and FP4 by K = 96 alone.
#define BENCH_TCGEN05_KERNELS(X)                                                                                               \
  X(tcgen05_f16, "tensor.fp16.tcgen05", "m128n256k16_ss", "tensor.fp16", AsyncF16, 1, "FLOP/s", 100, 110, fp16, fp32, 1e-5)    \
  X(tcgen05_f16acc16, "tensor.fp16_acc16.tcgen05", "m128n256k16_ss", "tensor.fp16", AsyncF16Acc16, 1, "FLOP/s", 100, 110,      \
    fp16, fp16, 2e-2)                                                                                                          \
  X(tcgen05_bf16, "tensor.bf16.tcgen05", "m128n256k16_ss", "tensor.bf16", AsyncBf16, 1, "FLOP/s", 100, 110, bf16, fp32, 1e-5)  \
  X(tcgen05_tf32, "tensor.tf32.tcgen05", "m128n256k8_ss", "tensor.tf32", AsyncTf32, 1, "FLOP/s", 100, 110, tf32, fp32, 1e-5)   \
  X(tcgen05_s8, "tensor.int8.tcgen05", "m128n256k32_ss", "tensor.int8", AsyncS8, 1, "OP/s", 100, 100, int8, bits, 0)           \
  X(tcgen05_s8_110, "tensor.int8.tcgen05", "m128n256k32_ss", "tensor.int8", AsyncS8, 1, "OP/s", 110, 110, int8, bits, 0)       \
  X(tcgen05_nvf4, "tensor.fp4.tcgen05", "nvf4_m128n256k64_ss", "tensor.fp4", AsyncNvf4, 1, "FLOP/s", 100, 100, words, fp32,    \
    1e-2)                                                                                                                      \
  X(tcgen05_nvf4_110, "tensor.fp4.tcgen05", "nvf4_m128n256k64_ss", "tensor.fp4", AsyncNvf4, 1, "FLOP/s", 110, 110, words,      \
    fp32, 1e-2)                                                                                                                \
  X(tcgen05_nvf4_k96, "tensor.fp4.tcgen05", "nvf4_m128n256k96_ss", "tensor.fp4.k96", AsyncNvf4K96, 1, "FLOP/s", 103, 103,      \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_mxf4, "tensor.fp4.tcgen05", "mxf4_m128n256k64_ss", "tensor.fp4", AsyncMxf4, 1, "FLOP/s", 100, 100, words, fp32,    \
    1e-2)                                                                                                                      \
  X(tcgen05_mxf4_110, "tensor.fp4.tcgen05", "mxf4_m128n256k64_ss", "tensor.fp4", AsyncMxf4, 1, "FLOP/s", 110, 110, words,      \
    fp32, 1e-2)                                                                                                                \
  X(tcgen05_mxf4_k96, "tensor.fp4.tcgen05", "mxf4_m128n256k96_ss", "tensor.fp4.k96", AsyncMxf4K96, 1, "FLOP/s", 103, 103,      \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_mxf6, "tensor.fp6fp4.tcgen05", "mxf6_m128n256k32_ss", "tensor.fp6fp4", AsyncMxf6, 1, "FLOP/s", 100, 110,           \
    fp6_packed, fp32, 1e-2)                                                                                                    \
  X(tcgen05_mxf8, "tensor.mxfp8.tcgen05", "m128n256k32_ss", "tensor.mxfp8", AsyncMxf8, 1, "FLOP/s", 100, 110, fp8, fp32, 1e-2) \
  X(tcgen05_e4m3, "tensor.fp8.tcgen05", "m128n256k32_ss", "tensor.fp8", AsyncE4m3, 1, "FLOP/s", 100, 110, fp8, fp32, 1e-2)     \
  X(tcgen05_f16_pair, "tensor.fp16.tcgen05", "m256n256k16_ss_pair", "tensor.fp16", AsyncF16, 2, "FLOP/s", 100, 110, fp16,      \
    fp32, 1e-5)                                                                                                                \
  X(tcgen05_bf16_pair, "tensor.bf16.tcgen05", "m256n256k16_ss_pair", "tensor.bf16", AsyncBf16, 2, "FLOP/s", 100, 110, bf16,    \
    fp32, 1e-5)                                                                                                                \
  X(tcgen05_tf32_pair, "tensor.tf32.tcgen05", "m256n256k8_ss_pair", "tensor.tf32", AsyncTf32, 2, "FLOP/s", 100, 110, tf32,     \
    fp32, 1e-5)                                                                                                                \
  X(tcgen05_nvf4_pair, "tensor.fp4.tcgen05", "nvf4_m256n256k64_ss_pair", "tensor.fp4", AsyncNvf4, 2, "FLOP/s", 100, 100,       \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_nvf4_pair_110, "tensor.fp4.tcgen05", "nvf4_m256n256k64_ss_pair", "tensor.fp4", AsyncNvf4, 2, "FLOP/s", 110, 110,   \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_nvf4_k96_pair, "tensor.fp4.tcgen05", "nvf4_m256n256k96_ss_pair", "tensor.fp4.k96", AsyncNvf4K96, 2, "FLOP/s", 103, \
    103, words, fp32, 1e-2)                                                                                                    \
  X(tcgen05_mxf4_pair, "tensor.fp4.tcgen05", "mxf4_m256n256k64_ss_pair", "tensor.fp4", AsyncMxf4, 2, "FLOP/s", 100, 100,       \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_mxf4_pair_110, "tensor.fp4.tcgen05", "mxf4_m256n256k64_ss_pair", "tensor.fp4", AsyncMxf4, 2, "FLOP/s", 110, 110,   \
    words, fp32, 1e-2)                                                                                                         \
  X(tcgen05_mxf4_k96_pair, "tensor.fp4.tcgen05", "mxf4_m256n256k96_ss_pair", "tensor.fp4.k96", AsyncMxf4K96, 2, "FLOP/s", 103, \
    103, words, fp32, 1e-2)                                                                                                    \
  X(tcgen05_mxf6_pair, "tensor.fp6fp4.tcgen05", "mxf6_m256n256k32_ss_pair", "tensor.fp6fp4", AsyncMxf6, 2, "FLOP/s", 100, 110, \
    fp6_packed, fp32, 1e-2)                                                                                                    \
  X(tcgen05_mxf8_pair, "tensor.mxfp8.tcgen05", "m256n256k32_ss_pair", "tensor.mxfp8", AsyncMxf8, 2, "FLOP/s", 100, 110, fp8,   \
    fp32, 1e-2)                                                                                                                \
  X(tcgen05_e4m3_pair, "tensor.fp8.tcgen05", "m256n256k32_ss_pair", "tensor.fp8", AsyncE4m3, 2, "FLOP/s", 100, 110, fp8, fp32, \
    1e-2)

#define BENCH_BODY_1(NAME) BENCH_KERNEL(bench_##NAME, kTcgenThreads, 1)
#define BENCH_BODY_2(NAME) BENCH_CLUSTER_KERNEL(bench_##NAME, kTcgenThreads, 1, 2)
#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, TAG, PAIR, UNIT, SINCE, UNTIL, ...) \
  BENCH_BODY_##PAIR(NAME) {                                                            \
    if constexpr (kHasTcgen05 && kExists<SINCE, UNTIL>) tcgen05_body<TAG, PAIR>(args); \
  }
BENCH_TCGEN05_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE

inline constexpr Row tcgen05_rows[] = {
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, TAG, PAIR, UNIT, SINCE, UNTIL, DATA, RESULT, TOLERANCE) \
  {"bench_" #NAME,                                                                                      \
   CEILING,                                                                                             \
   VARIANT,                                                                                             \
   UNIT,                                                                                                \
   PIPE,                                                                                                \
   Shape::compute,                                                                                      \
   Data::DATA,                                                                                          \
   Result::RESULT,                                                                                      \
   TOLERANCE,                                                                                           \
   SINCE,                                                                                               \
   UNTIL,                                                                                               \
   "",                                                                                                  \
   kTcgenThreads,                                                                                       \
   1,                                                                                                   \
   kTcgenOperands<TAG, PAIR> + kTcgenBehind,                                                            \
   kTcgenOperands<TAG, 1> / 4,                                                                          \
   kTcgenN,                                                                                             \
   2.0 * kTcgenM * kTcgenN * TAG::kK * kTcgenMmas / kTcgenThreads,                                      \
   0.0,                                                                                                 \
   1,                                                                                                   \
   kSlices * kTcgenTileB<TAG> / 4,                                                                      \
   TAG::Element::kFlip,                                                                                 \
   PAIR},
    BENCH_TCGEN05_KERNELS(BENCH_ROW)
#undef BENCH_ROW
};

}  // namespace bench::BENCH_MACHINE
