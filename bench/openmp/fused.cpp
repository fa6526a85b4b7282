// Multiply-adds: here the compiler may fuse, in all other files it may not.
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif
#include "arithmetic.hpp"

#include <cmath>

namespace bench {
namespace {

struct Fused {
  static constexpr const char* kernel = "chains<Fused>";
  static constexpr bool exists = kHasFma;
  template <class V>
  static V step(V x, V b) {
    return x * x + b;
  }
  template <class T>
  static T scalar(T x, T b) {
    return std::fma(x, x, b);
  }
};

}  // namespace

std::vector<Row> fused_rows() {
  std::vector<Row> rows;
  add_rows<Fused, double>(rows, "fp64.fma", "fp64");
  add_rows<Fused, float>(rows, "fp32.fma", "fp32");
  return rows;
}

}  // namespace bench
