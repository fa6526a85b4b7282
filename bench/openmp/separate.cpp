// Multiplies and adds that stay apart: the build forbids to fuse (-ffp-contract=off).
#include "arithmetic.hpp"

namespace bench {
namespace {

struct Separate {
  static constexpr const char* kernel = "chains<Separate>";
  static constexpr bool exists = true;
  template <class V>
  static V step(V x, V b) {
    return x * x + b;
  }
  template <class T>
  static T scalar(T x, T b) {
    return x * x + b;
  }
};

}  // namespace

std::vector<Row> separate_rows() {
  std::vector<Row> rows;
  add_rows<Separate, double>(rows, "fp64.nofma", "fp64");
  add_rows<Separate, float>(rows, "fp32.nofma", "fp32");
  return rows;
}

}  // namespace bench
