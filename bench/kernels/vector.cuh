// Ceilings of the ordinary arithmetic units: FMA, multiplies and adds apart, and a mix with one division in nine.
#pragma once
#include "base.cuh"

namespace bench::BENCH_MACHINE {

constexpr int kVectorThreads = 256;

// Forms of one step of a chain.  Three different source registers per instruction cost register bandwidth on SMs with 128
// lanes, so forms with two are tried as well.
struct SquareAdd {  // x*x + b, b in (-2, -1.4): chaotic, so the bits never come to rest
  template <class T>
  static BENCH_FN T step(T x, T, T b) {
    return multiply_add(x, x, b);
  }
};
struct ScaleAdd {  // x*a + b
  template <class T>
  static BENCH_FN T step(T x, T a, T b) {
    return multiply_add(x, a, b);
  }
};
struct SquareThenAdd {  // of 16 bits as ptxas writes it: on some chips half or all as HFMA2 with one or zero for an operand
  template <class T>
  static BENCH_FN T step(T x, T, T b) {
    return add(multiply(x, x), b);
  }
};

template <class T>
BENCH_FN void load_chain(T& x, const T* in, int row) {
  x = in[row * kVectorThreads + thread()];
}

template <class T>
BENCH_FN void store_chain(uint32_t* out, int chain, const T& x) {
  const size_t lanes = size_t{blocks()} * threads();
  reinterpret_cast<T*>(out)[chain * lanes + grid_thread()] = x;
}

// Operands by rows of 256: a, b, then one start value per chain.
template <class T, class Form, int Chains, int Unroll>
BENCH_FN void vector_body(const Args& args) {
  stamp_start(args);
  const T* in = static_cast<const T*>(args.in);
  T a, b, x[Chains];
  load_chain(a, in, 0);
  load_chain(b, in, 1);
  BENCH_UNROLL for (int i = 0; i < Chains; ++i) load_chain(x[i], in, 2 + i);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    BENCH_UNROLL for (int u = 0; u < Unroll; ++u) {
      BENCH_UNROLL for (int i = 0; i < Chains; ++i) x[i] = Form::step(x[i], a, b);
    }
  }
  BENCH_UNROLL for (int i = 0; i < Chains; ++i) store_chain(args.out, i, x[i]);
  stamp_end(args);
}

// Eight FMAs, then one division, per chain and trip; a in (0.3, 0.6), b in (0.5, 1) keep x in (0.2, 2.5).
constexpr int kMixChains = 4, kMixFmas = 8;
template <class T>
BENCH_FN void mix_body(const Args& args) {
  stamp_start(args);
  const T* in = static_cast<const T*>(args.in);
  T a, b, x[kMixChains];
  load_chain(a, in, 0);
  load_chain(b, in, 1);
  BENCH_UNROLL for (int i = 0; i < kMixChains; ++i) load_chain(x[i], in, 2 + i);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    BENCH_UNROLL for (int i = 0; i < kMixChains; ++i) {
      BENCH_UNROLL for (int u = 0; u < kMixFmas; ++u) x[i] = multiply_add(x[i], a, b);
      x[i] = divide(b, x[i]);
    }
  }
  BENCH_UNROLL for (int i = 0; i < kMixChains; ++i) store_chain(args.out, i, x[i]);
  stamp_end(args);
}

// kernel, ceiling, variant, pipe, type, form, chains, unroll, operations per step, since, until, emulated, data, result
#define BENCH_VECTOR_KERNELS(X)                                                                                         \
  X(fp64_fma_xxb, "fp64.fma", "xxb_c8", "fp64", double, SquareAdd, 8, 32, 2, 70, 0, "", chaos_fp64, fp64)               \
  X(fp64_nofma, "fp64.nofma", "xx_b_c8", "fp64", double, SquareThenAdd, 8, 16, 2, 70, 0, "", chaos_fp64, fp64)          \
  X(fp32_fma_xxb, "fp32.fma", "xxb_c8_u60", "fp32", float, SquareAdd, 8, 60, 2, 70, 0, "", chaos_fp32, fp32)            \
  X(fp32_fma_pair, "fp32.fma", "f32x2_c8", "fp32", Float2Value, SquareAdd, 8, 32, 4, 100, 109, "", chaos_fp32, fp32)    \
  X(fp32_nofma, "fp32.nofma", "xx_b_c8", "fp32", float, SquareThenAdd, 8, 16, 2, 70, 0, "", chaos_fp32, fp32)           \
  X(fp16_fma_xxb, "fp16.fma", "xxb_c8_u60", "fp16", Half2Value, SquareAdd, 8, 60, 4, 70, 0, "", chaos_fp16, fp16x2)     \
  X(fp16_nofma, "fp16.nofma", "xx_b_c8_compiled", "fp16", Half2Value, SquareThenAdd, 8, 16, 4, 70, 0, "", chaos_fp16,   \
    fp16x2)                                                                                                             \
  X(bf16_fma_xxb, "bf16.fma", "xxb_c8_u60", "bf16", Bfloat2Value, SquareAdd, 8, 60, 4, 80, 0, "", chaos_bf16, bf16x2)   \
  X(bf16_nofma, "bf16.nofma", "xx_b_c8_compiled", "bf16", Bfloat2Value, SquareThenAdd, 8, 16, 4, 80, 0, "", chaos_bf16, \
    bf16x2)                                                                                                             \
  X(int32_mad, "int32.mad", "xab_c8", "int32", uint32_t, ScaleAdd, 8, 32, 2, 70, 0, "", odd_words, bits)

// kernel, ceiling, variant, pipe, type, operations of the pipe per division, data, result.
// A correctly rounded division is 7 DFMA + 1 DMUL (and 1 FFMA, of another pipe) in FP64, 5 FFMA in FP32: its fast path.
// Shorter types have none of their own: the compiler divides in FP32.
#define BENCH_MIX_KERNELS(X)                                                    \
  X(fp64_div, "fp64.div", "fma8_div1_c4", "fp64", double, 15, mixed_fp64, fp64) \
  X(fp32_div, "fp32.div", "fma8_div1_c4", "fp32", float, 10, mixed_fp32, fp32)

#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, T, FORM, CHAINS, UNROLL, OPERATIONS, SINCE, UNTIL, ...) \
  BENCH_KERNEL(bench_##NAME, kVectorThreads, 2) {                                                          \
    if constexpr (kExists<SINCE, UNTIL>) vector_body<T, FORM, CHAINS, UNROLL>(args);                       \
  }
BENCH_VECTOR_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE
#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, T, ...) \
  BENCH_KERNEL(bench_##NAME, kVectorThreads, 2) { mix_body<T>(args); }
BENCH_MIX_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE

constexpr const char* vector_unit(const char* pipe) { return pipe[0] == 'i' ? "OP/s" : "FLOP/s"; }

inline constexpr Row vector_rows[] = {
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, T, FORM, CHAINS, UNROLL, OPERATIONS, SINCE, UNTIL, EMULATED, DATA, RESULT) \
  {"bench_" #NAME,                                                                                                         \
   CEILING,                                                                                                                \
   VARIANT,                                                                                                                \
   vector_unit(PIPE),                                                                                                      \
   PIPE,                                                                                                                   \
   Shape::compute,                                                                                                         \
   Data::DATA,                                                                                                             \
   Result::RESULT,                                                                                                         \
   0.0,                                                                                                                    \
   SINCE,                                                                                                                  \
   UNTIL,                                                                                                                  \
   EMULATED,                                                                                                               \
   kVectorThreads,                                                                                                         \
   0,                                                                                                                      \
   0,                                                                                                                      \
   (2 + CHAINS) * kVectorThreads * int{sizeof(T) / 4},                                                                     \
   CHAINS * int{sizeof(T) / 4},                                                                                            \
   double{OPERATIONS} * CHAINS * UNROLL,                                                                                   \
   0.0},
    BENCH_VECTOR_KERNELS(BENCH_ROW)
#undef BENCH_ROW
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, T, OPERATIONS, DATA, RESULT) \
  {"bench_" #NAME,                                                           \
   CEILING,                                                                  \
   VARIANT,                                                                  \
   "FLOP/s",                                                                 \
   PIPE,                                                                     \
   Shape::compute,                                                           \
   Data::DATA,                                                               \
   Result::RESULT,                                                           \
   0.0,                                                                      \
   70,                                                                       \
   0,                                                                        \
   "",                                                                       \
   kVectorThreads,                                                           \
   0,                                                                        \
   0,                                                                        \
   (2 + kMixChains) * kVectorThreads * int{sizeof(T) / 4},                   \
   kMixChains * int{sizeof(T) / 4},                                          \
   (kMixFmas * 2.0 + OPERATIONS) * kMixChains,                               \
   0.0},
        BENCH_MIX_KERNELS(BENCH_ROW)
#undef BENCH_ROW
};

}  // namespace bench::BENCH_MACHINE
