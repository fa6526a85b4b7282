// Vectors as wide as the target has them, by the extension that GCC and Clang share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace bench {

#if defined(__AVX512F__)
constexpr int kWidth = 64;
#elif defined(__AVX__)
constexpr int kWidth = 32;
#else
constexpr int kWidth = 16;  // SSE2, NEON
#endif
// The next narrower one: some CPUs lower the clock for their widest vectors, some have fewer units for them.
constexpr int kNarrow = kWidth > 16 ? kWidth / 2 : kWidth;

#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;
#endif

template <class T, int Width>
struct VectorOf {
  typedef T type __attribute__((vector_size(Width), may_alias));
};
template <class T, int Width = kWidth>
using Vector = typename VectorOf<T, Width>::type;

template <class V>
inline V load(const char* from) {
  return *reinterpret_cast<const V*>(from);
}

// Memory may have changed: keeps the compiler from moving loads out of a loop, from merging stores of several passes, and from
// calling memcpy or memset, which choose their stores themselves.
inline void forget_memory() { asm volatile("" ::: "memory"); }

struct Plain {
  template <class V>
  static void store(char* to, V value) {
    *reinterpret_cast<V*>(to) = value;
  }
  static void fence() {}
};

// Stores that go past the caches and read no line before they write it.
struct Streaming {
#if defined(__AVX512F__)
  static constexpr bool exists = true;
  template <class V>
  static void store(char* to, V value) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
  }
  static void fence() { _mm_sfence(); }
#elif defined(__AVX__)
  static constexpr bool exists = true;
  template <class V>
  static void store(char* to, V value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)value);
  }
  static void fence() { _mm_sfence(); }
#elif defined(__SSE2__)
  static constexpr bool exists = true;
  template <class V>
  static void store(char* to, V value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)value);
  }
  static void fence() { _mm_sfence(); }
#elif defined(__clang__)
  static constexpr bool exists = true;
  template <class V>
  static void store(char* to, V value) {
    __builtin_nontemporal_store(value, reinterpret_cast<V*>(to));
  }
  static void fence() {}
#else
  static constexpr bool exists = false;
  template <class V>
  static void store(char* to, V value) {
    Plain::store(to, value);
  }
  static void fence() {}
#endif
};

}  // namespace bench
