// Small floating-point formats: E exponent and M mantissa bits, IEEE 754 rules, round to nearest even.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace bench {

template <int E, int M>
inline double decode(uint32_t bits) {
  constexpr int kBias = (1 << (E - 1)) - 1;
  const int exponent = bits >> M & ((1 << E) - 1);
  const uint32_t mantissa = bits & ((1u << M) - 1);
  const double sign = bits >> (E + M) & 1 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - kBias - M);
  if (E > 4 && exponent == (1 << E) - 1) return mantissa ? NAN : sign * INFINITY;
  return sign * std::ldexp(mantissa | 1u << M, exponent - kBias - M);
}

template <int E, int M>
inline uint32_t encode(double x) {
  constexpr int kBias = (1 << (E - 1)) - 1, kTop = (1 << E) - 1;
  const uint32_t sign = std::signbit(x) ? 1u << (E + M) : 0;
  if (std::isnan(x)) return sign | kTop << M | 1;
  x = std::fabs(x);
  if (x == 0) return sign;
  int exponent = std::isinf(x) ? kTop : std::ilogb(x);
  if (exponent < 1 - kBias) exponent = 1 - kBias;  // subnormal
  const double scaled = std::isinf(x) ? 0 : std::nearbyint(std::ldexp(x, M - exponent));
  // Adding the scaled mantissa to the exponent field carries a rounding up into it; subnormals have no hidden bit.
  const double field = scaled + std::ldexp(double(exponent + kBias - 1), M);
  const double largest = std::ldexp(double(kTop), M);
  return sign | static_cast<uint32_t>(field < largest ? field : largest);
}

inline double decode_half(uint32_t bits) { return decode<5, 10>(bits & 0xffff); }
inline double decode_bfloat(uint32_t bits) { return decode<8, 7>(bits & 0xffff); }
inline double decode_fp8(uint32_t bits) { return decode<4, 3>(bits & 0xff); }
inline double decode_fp6(uint32_t bits) { return decode<3, 2>(bits & 0x3f); }
inline double decode_fp4(uint32_t bits) { return decode<2, 1>(bits & 0xf); }
inline double decode_ue8m0(uint32_t bits) { return std::ldexp(1.0, int(bits & 0xff) - 127); }
inline uint32_t encode_half(double x) { return encode<5, 10>(x); }
inline uint32_t encode_bfloat(double x) { return encode<8, 7>(x); }
inline uint32_t encode_fp8(double x) { return encode<4, 3>(x); }

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace bench
