// The primitives as PTX.  Their counted twins for the CPU model: cpu/ops_cpu.hpp.
#pragma once
#include <type_traits>

#include "shapes.hpp"

namespace bench::gpu {

BENCH_FN uint32_t thread() { return threadIdx.x; }
BENCH_FN uint32_t threads() { return blockDim.x; }
BENCH_FN uint32_t block() { return blockIdx.x; }
BENCH_FN uint32_t blocks() { return gridDim.x; }
BENCH_FN void barrier() { __syncthreads(); }
BENCH_FN uint32_t multiprocessor() {
  uint32_t index;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(index));
  return index;
}
BENCH_FN uint64_t clock_cycles() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
  return value;
}
BENCH_FN uint64_t clock_nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

// ---- arithmetic.  The _rn intrinsics and explicit .rn are never contracted, whatever -fmad says.
BENCH_FN double multiply_add(double x, double y, double z) { return __fma_rn(x, y, z); }
BENCH_FN double multiply(double x, double y) { return __dmul_rn(x, y); }
BENCH_FN double add(double x, double y) { return __dadd_rn(x, y); }
BENCH_FN double divide(double x, double y) { return __ddiv_rn(x, y); }
BENCH_FN float multiply_add(float x, float y, float z) { return __fmaf_rn(x, y, z); }
BENCH_FN float multiply(float x, float y) { return __fmul_rn(x, y); }
BENCH_FN float add(float x, float y) { return __fadd_rn(x, y); }
BENCH_FN float divide(float x, float y) { return __fdiv_rn(x, y); }

BENCH_FN Half2Value multiply_add(Half2Value x, Half2Value y, Half2Value z) {
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits), "r"(z.bits));
  return x;
}
BENCH_FN Half2Value multiply(Half2Value x, Half2Value y) {
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits));
  return x;
}
BENCH_FN Half2Value add(Half2Value x, Half2Value y) {
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits));
  return x;
}
BENCH_FN Bfloat2Value multiply_add(Bfloat2Value x, Bfloat2Value y, Bfloat2Value z) {
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits), "r"(z.bits));
  return x;
}
// sm_80 ... sm_89 have no packed BF16 multiply and add: an FMA with -0 or 1, as the compiler's headers do it.
BENCH_FN Bfloat2Value multiply(Bfloat2Value x, Bfloat2Value y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits), "r"(0x80008000u));
#endif
  return x;
}
BENCH_FN Bfloat2Value add(Bfloat2Value x, Bfloat2Value y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(x.bits) : "r"(x.bits), "r"(y.bits));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x.bits) : "r"(x.bits), "r"(0x3f803f80u), "r"(y.bits));
#endif
  return x;
}
BENCH_FN Float2Value multiply_add(Float2Value x, Float2Value y, Float2Value z) {
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(x.bits) : "l"(x.bits), "l"(y.bits), "l"(z.bits));
  return x;
}
BENCH_FN uint32_t multiply_add(uint32_t x, uint32_t y, uint32_t z) {
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(x) : "r"(x), "r"(y), "r"(z));
  return x;
}

BENCH_FN uint32_t float_bits(float x) { return __float_as_uint(x); }
BENCH_FN float bits_float(uint32_t x) { return __uint_as_float(x); }

// ---- memory
#define BENCH_LOAD4(MODIFIER, V, P) \
  asm volatile("ld.global" MODIFIER ".v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(V.x), "=r"(V.y), "=r"(V.z), "=r"(V.w) : "l"(P))
template <Path P>
BENCH_FN void load(Vector4& v, const void* p) {
  if constexpr (P == Path::streaming) BENCH_LOAD4(".cs", v, p);
  if constexpr (P == Path::past_l1) BENCH_LOAD4(".L1::no_allocate", v, p);
  if constexpr (P == Path::plain) BENCH_LOAD4("", v, p);
}
template <Path>
BENCH_FN void load(Vector8& v, const void* p) {
  asm volatile("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]), "=r"(v.word[4]), "=r"(v.word[5]),
                 "=r"(v.word[6]), "=r"(v.word[7])
               : "l"(p));
}
template <Path P>
BENCH_FN void store(void* p, const Vector4& v) {
  if constexpr (P == Path::streaming)
    asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
  else
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
BENCH_FN void reduce(uint32_t* p, uint32_t v) { asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
// ptxas may spread a batch of loads among their uses and leave 4-5 in flight; a clock value read after the batch and folded
// into the sum keeps it whole.  Its top bit is always zero, which no compiler knows.
BENCH_FN uint32_t after_loads() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return static_cast<uint32_t>(now >> 63);
}

BENCH_FN unsigned char* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char bench_shared[];
  return bench_shared;
}
BENCH_FN uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
BENCH_FN void load_shared(Vector4& v, uint32_t address) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
}
BENCH_FN void store_shared(uint32_t address, const Vector4& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
BENCH_FN uint32_t add_shared(uint32_t address, uint32_t v) {
  asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(v) : "r"(address) : "memory");
  return v;
}
// ---- the other block of a cluster of two
BENCH_FN void pair_barrier() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
BENCH_FN uint32_t other_shared_address(uint32_t own) {
  asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(own) : "r"(blockIdx.x % kPair ^ 1));
  return own;
}
BENCH_FN void load_other_shared(Vector4& v, uint32_t address) {
  asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
}
// ---- asynchronous copies and barriers in shared memory
BENCH_FN void barrier_init(uint32_t bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory"); }
BENCH_FN void barrier_wait(uint32_t bar, uint32_t phase) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(bar), "r"(phase)
                 : "memory");
}
BENCH_FN void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
BENCH_FN void fence_shared_for_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
BENCH_FN void bulk_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
BENCH_FN void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(bar)
               : "memory");
}
BENCH_FN void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
template <int Left>  // until of the thread's stores all but so many have read shared memory
BENCH_FN void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Left) : "memory");
}
BENCH_FN void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ---- tensor cores, one warp
#define BENCH_MMA_OPERANDS_214(L, T) \
  " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : L(c[0]), L(c[1]), L(c[2]), L(c[3]) : T(a[0]), T(a[1]), T(b[0])
#define BENCH_MMA_OPERANDS_212(L, T) " {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : L(c[0]), L(c[1]) : T(a[0]), T(a[1]), T(b[0])
#define BENCH_MMA_OPERANDS_112(L, T) " {%0,%1}, {%2}, {%3}, {%0,%1};" : L(c[0]), L(c[1]) : T(a[0]), T(b[0])
#define BENCH_MMA_OPERANDS_424(L, T)                                  \
  " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : L(c[0]), \
                                                             L(c[1]), \
                                                             L(c[2]), \
                                                             L(c[3])  \
      : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(b[0]), T(b[1])
#define BENCH_MMA_OPERANDS_422(L, T) \
  " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : L(c[0]), L(c[1]) : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(b[0]), T(b[1])
#define BENCH_MMA_OPERANDS_844(L, T)                                                          \
  " {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};" : L(c[0]), \
                                                                                     L(c[1]), \
                                                                                     L(c[2]), \
                                                                                     L(c[3])  \
      : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(a[4]), T(a[5]), T(a[6]), T(a[7]), T(b[0]), T(b[1]), T(b[2]), T(b[3])
#define BENCH_MMA_OPERANDS_VOLTA(L, T)                                                    \
  " {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};" : L(c[0]), \
                                                                                 L(c[1]), \
                                                                                 L(c[2]), \
                                                                                 L(c[3]), \
                                                                                 L(c[4]), \
                                                                                 L(c[5]), \
                                                                                 L(c[6]), \
                                                                                 L(c[7])  \
      : T(a[0]), T(a[1]), T(b[0]), T(b[1])
#define BENCH_LETTER_IN_Double "d"
#define BENCH_LETTER_IN_Half "r"
#define BENCH_LETTER_IN_Bfloat "r"
#define BENCH_LETTER_IN_Tf32 "r"
#define BENCH_LETTER_IN_Int8 "r"
#define BENCH_LETTER_IN_Fp8 "r"
#define BENCH_MMA_OPERANDS_SP(L, T)                                                     \
  " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : L(c[0]), \
                                                                               L(c[1]), \
                                                                               L(c[2]), \
                                                                               L(c[3])  \
      : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(b[0]), T(b[1]), T(b[2]), T(b[3]), "r"(kMetadata<typename Tag::Element>)
// From CUDA 12.5 on metadata are known to be in order; without that word 12.0 sorts them anew for every product.
#if __CUDACC_VER_MAJOR__ * 10 + __CUDACC_VER_MINOR__ >= 125
#define BENCH_SPARSE "mma.sp::ordered_metadata.sync.aligned."
#else
#define BENCH_SPARSE "mma.sp.sync.aligned."
#endif
// volatile keeps the order +B, -B
#define BENCH_MMA_ASM(NAME, ...)                                                                                          \
  template <class Tag>                                                                                                    \
  BENCH_FN auto mma(NAME::Register(&c)[NAME::kC], const NAME::Input(&a)[NAME::kAllA], const NAME::Input(&b)[NAME::kAllB]) \
      -> std::enable_if_t<std::is_same_v<Tag, NAME>> {                                                                    \
    asm volatile(__VA_ARGS__);                                                                                            \
  }
#define BENCH_DENSE_OP(NAME, ELEMENT, ACCUMULATOR, M_, K_, FORM, LETTER, PTX) \
  BENCH_MMA_ASM(NAME, "mma.sync.aligned." PTX BENCH_MMA_OPERANDS_##FORM(LETTER, BENCH_LETTER_IN_##ELEMENT))
#define BENCH_SPARSE_OP(NAME, ELEMENT, ACCUMULATOR, M_, K_, FORM, LETTER, PTX) \
  BENCH_MMA_ASM(NAME, BENCH_SPARSE PTX BENCH_MMA_OPERANDS_##FORM(LETTER, BENCH_LETTER_IN_##ELEMENT))
// Factors of A come from lanes 0 and 1 of each four, for rows g and g + 8, those of B from lane 0.
#define BENCH_SCALED_OP(NAME, ELEMENT, K_, SCALES, FREE, BASE, KIND, TYPE, FACTORS)                                    \
  BENCH_MMA_ASM(NAME,                                                                                                  \
                "mma.sync.aligned.m16n8k" #K_ ".row.col." KIND ".f32." TYPE "." TYPE ".f32." FACTORS                   \
                " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0,0}, %11, {0,0};" : "+f"(c[0]),         \
                "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), \
                "r"(a[4]), "r"(b[2]))
BENCH_MMA_SHAPES(BENCH_DENSE_OP)
BENCH_SPARSE_SHAPES(BENCH_SPARSE_OP)
BENCH_SCALED_SHAPES(BENCH_SCALED_OP)
#undef BENCH_DENSE_OP
#undef BENCH_SPARSE_OP
#undef BENCH_SCALED_OP

// ---- tensor cores, one warpgroup: accumulators c[0..63] or c[0..127]
BENCH_FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
BENCH_FN void wgmma_wait() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
#define BENCH_EIGHT(L, I) L(c[I]), L(c[I + 1]), L(c[I + 2]), L(c[I + 3]), L(c[I + 4]), L(c[I + 5]), L(c[I + 6]), L(c[I + 7])
#define BENCH_64(L, I)                                                                                              \
  BENCH_EIGHT(L, I), BENCH_EIGHT(L, I + 8), BENCH_EIGHT(L, I + 16), BENCH_EIGHT(L, I + 24), BENCH_EIGHT(L, I + 32), \
      BENCH_EIGHT(L, I + 40), BENCH_EIGHT(L, I + 48), BENCH_EIGHT(L, I + 56)
#define BENCH_NAMES_64                                               \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"           \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define BENCH_NAMES_128                                                              \
  BENCH_NAMES_64                                                                     \
      ","                                                                            \
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"             \
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"             \
      "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
      "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define BENCH_WGMMA_64(L, TYPES, K, TAIL)                                                                 \
  asm volatile(                                                                                           \
      "{.reg .pred p; setp.eq.u32 p, 0, 0;\n"                                                             \
      "wgmma.mma_async.sync.aligned.m64n256k" #K "." TYPES " {" BENCH_NAMES_64 "}, %64, %65, p" TAIL ";}" \
      : BENCH_64(L, 0)                                                                                    \
      : "l"(a), "l"(b))
#define BENCH_WGMMA_128(L, TYPES, K, TAIL)                                                                   \
  asm volatile(                                                                                              \
      "{.reg .pred p; setp.eq.u32 p, 0, 0;\n"                                                                \
      "wgmma.mma_async.sync.aligned.m64n256k" #K "." TYPES " {" BENCH_NAMES_128 "}, %128, %129, p" TAIL ";}" \
      : BENCH_64(L, 0), BENCH_64(L, 64)                                                                      \
      : "l"(a), "l"(b))
#define BENCH_WGMMA_float BENCH_WGMMA_128("+f",
#define BENCH_WGMMA_uint32_t BENCH_WGMMA_128("+r",
#define BENCH_WGMMA_Half2 BENCH_WGMMA_64("+r",
template <class Tag, class Register, int N>
BENCH_FN void wgmma(Register (&c)[N], uint64_t a, uint64_t b) {
#define BENCH_WGMMA(NAME, ELEMENT, ACCUMULATOR, K, TYPES, TAIL, KIND, FORMATS) \
  if constexpr (std::is_same_v<Tag, NAME>) BENCH_WGMMA_##ACCUMULATOR TYPES, K, TAIL);
  BENCH_ASYNC_SHAPES(BENCH_WGMMA)
#undef BENCH_WGMMA
}

#define BENCH_WGMMA_SPARSE(L, K, TYPES, TAIL)                                      \
  asm volatile(                                                                    \
      "{.reg .pred p; setp.eq.u32 p, 0, 0;\n"                                      \
      "wgmma.mma_async.sp.sync.aligned.m64n256k" #K "." TYPES " {" BENCH_NAMES_128 \
      "}, {%128,%129,%130,%131}, %132, %133, 0, p" TAIL ";}"                       \
      : BENCH_64(L, 0), BENCH_64(L, 64)                                            \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(kMetadata<typename Tag::Element>))
template <class Tag, class Register>
BENCH_FN void wgmma_sparse(Register (&c)[128], const uint32_t (&a)[4], uint64_t b) {
#define BENCH_SPARSE_CASE(NAME, HELD, K, TYPES, TAIL) \
  if constexpr (std::is_same_v<Tag, NAME>) {          \
    if constexpr (std::is_same_v<Register, float>)    \
      BENCH_WGMMA_SPARSE("+f", K, TYPES, TAIL);       \
    else                                              \
      BENCH_WGMMA_SPARSE("+r", K, TYPES, TAIL);       \
  }
  BENCH_ASYNC_SPARSE_SHAPES(BENCH_SPARSE_CASE)
#undef BENCH_SPARSE_CASE
}

// ---- tensor cores of sm_100a, sm_103a
BENCH_FN uint32_t warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
BENCH_FN uint32_t load_shared_word(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
// Pair: blocks of a cluster that issue as one, 1 or 2; both of two allocate and free.
template <int Pair>
BENCH_FN void tcgen05_allocate(uint32_t slot, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot), "r"(columns), "n"(Pair)
               : "memory");
}
template <int Pair>
BENCH_FN void tcgen05_free(uint32_t d, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(d), "r"(columns), "n"(Pair) : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(Pair) : "memory");
}
BENCH_FN uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
BENCH_FN void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Orders tensor memory between a barrier's two sides, and waits for this warp's own loads and stores of it.
BENCH_FN void tcgen05_fence() {
  asm volatile("tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;" ::: "memory");
}
BENCH_FN void tcgen05_clear(uint32_t d) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1,%1,%1,%1,%1,%1,%1,%1};" ::"r"(d), "r"(0) : "memory");
}
BENCH_FN void tcgen05_store(uint32_t d, const uint32_t (&c)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8};" ::"r"(d), "r"(c[0]), "r"(c[1]),
               "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(c[5]), "r"(c[6]), "r"(c[7])
               : "memory");
}
BENCH_FN void tcgen05_load(uint32_t (&c)[8], uint32_t d) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];\n tcgen05.wait::ld.sync.aligned;"
               : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]), "=r"(c[4]), "=r"(c[5]), "=r"(c[6]), "=r"(c[7])
               : "r"(d)
               : "memory");
}
template <int Pair>
BENCH_FN void tcgen05_commit(uint32_t bar) {
  asm volatile(
      "{.reg .pred e; elect.sync _|e, 0xffffffff;\n"
      "@e tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];}" ::"r"(bar),
      "n"(Pair)
      : "memory");
}
// To the barriers of both blocks of a pair.
BENCH_FN void tcgen05_commit_to_both(uint32_t bar) {
  asm volatile(
      "{.reg .pred e; elect.sync _|e, 0xffffffff;\n"
      "@e tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;}" ::"r"(bar),
      "h"(uint16_t{3})
      : "memory");
}
// The slices of A are 256 apart in units of 16 bytes, those of B 512 (tcgen05.cuh; K = 96: half as much more), for half of it
// half; one elected lane issues all.  Block scales of A and B stand in tensor memory.
#define BENCH_PRODUCT(KIND, SCALES, B, SLICE)                                                               \
  "add.u64 a, %1, " #SLICE "*%6; add.u64 b, " B ", " #SLICE "*%7; @e tcgen05.mma.cta_group::%5.kind::" KIND \
  " [%0], a, b, %4, " SCALES "p;\n"
#define BENCH_PAIR(KIND, SCALES, SLICE) BENCH_PRODUCT(KIND, SCALES, "%2", SLICE) BENCH_PRODUCT(KIND, SCALES, "%3", SLICE)
#define BENCH_PAIRS(KIND, SCALES) \
  BENCH_PAIR(KIND, SCALES, 0) BENCH_PAIR(KIND, SCALES, 1) BENCH_PAIR(KIND, SCALES, 2) BENCH_PAIR(KIND, SCALES, 3)
#define BENCH_LASTS(KIND, SCALES)      \
  BENCH_PRODUCT(KIND, SCALES, "%2", 0) \
  BENCH_PRODUCT(KIND, SCALES, "%2", 1) \
  BENCH_PRODUCT(KIND, SCALES, "%2", 2) BENCH_PRODUCT(KIND, SCALES, "%2", 3)
#define BENCH_ISSUE(PRODUCTS, ...)                                                                                             \
  asm volatile("{.reg .pred e, p; .reg .b64 a, b;\n elect.sync _|e, 0xffffffff; setp.eq.u32 p, 0, 0;\n" PRODUCTS "}" ::"r"(d), \
               "l"(a), "l"(b), "l"(other), "r"(instruction), "n"(Pair), "n"(Tag::kRowBytes * 8),                               \
               "n"(Tag::kRowBytes * 16 / Pair) __VA_ARGS__                                                                     \
               : "memory")
#define BENCH_TCGEN05(NAME, ELEMENT, ACCUMULATOR, K, TYPES, TAIL, KIND, FORMATS) \
  if constexpr (std::is_same_v<Tag, NAME>) BENCH_ISSUE(BENCH_TRIP(KIND, ""));
#define BENCH_TCGEN05_SCALED(NAME, ELEMENT, K, SCALES, FREE, BASE, KIND, FORMATS) \
  if constexpr (std::is_same_v<Tag, NAME>) BENCH_ISSUE(BENCH_TRIP(KIND, "[%8], [%9], "), , "r"(scales), "r"(scales + 8));
template <class Tag, int Pair>
BENCH_FN void tcgen05_products(uint32_t d, uint64_t a, uint64_t b, uint64_t other, uint32_t instruction, uint32_t scales) {
#define BENCH_TRIP(KIND, SCALES) BENCH_PAIRS(KIND, SCALES) BENCH_PAIRS(KIND, SCALES)
  BENCH_ASYNC_SHAPES(BENCH_TCGEN05)
  BENCH_ASYNC_SCALED_SHAPES(BENCH_TCGEN05_SCALED)
  BENCH_ASYNC_K96_SHAPES(BENCH_TCGEN05_SCALED)
#undef BENCH_TRIP
}
template <class Tag, int Pair>
BENCH_FN void tcgen05_last_products(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t scales) {
  const uint64_t other = b;
#define BENCH_TRIP(KIND, SCALES) BENCH_LASTS(KIND, SCALES)
  BENCH_ASYNC_SHAPES(BENCH_TCGEN05)
  BENCH_ASYNC_SCALED_SHAPES(BENCH_TCGEN05_SCALED)
  BENCH_ASYNC_K96_SHAPES(BENCH_TCGEN05_SCALED)
#undef BENCH_TRIP
}
#undef BENCH_TCGEN05
#undef BENCH_TCGEN05_SCALED

}  // namespace bench::gpu
