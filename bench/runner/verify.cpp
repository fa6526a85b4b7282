#include "verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../cpu/numbers.hpp"

namespace bench {
namespace {

std::vector<double> values(Result kind, const std::vector<uint32_t>& words) {
  std::vector<double> found;
  for (size_t i = 0; i < words.size(); ++i) {
    switch (kind) {
      case Result::bits: found.push_back(words[i]); break;
      case Result::fp32: found.push_back(bit_cast<float>(words[i])); break;
      case Result::fp16: found.push_back(decode_half(words[i])); break;  // the upper half is nobody's
      case Result::fp16x2:
        found.push_back(decode_half(words[i]));
        found.push_back(decode_half(words[i] >> 16));
        break;
      case Result::bf16x2:
        found.push_back(decode_bfloat(words[i]));
        found.push_back(decode_bfloat(words[i] >> 16));
        break;
      case Result::fp64:
        if (i % 2 == 1) found.push_back(bit_cast<double>(uint64_t{words[i]} << 32 | words[i - 1]));
        break;
    }
  }
  return found;
}

}  // namespace

std::string compare(const Row& row, const std::vector<uint32_t>& got, const std::vector<uint32_t>& wanted) {
  const std::vector<double> left = values(row.result, got), right = values(row.result, wanted);
  double largest = 0;
  for (double value : right) largest = std::max(largest, std::fabs(value));
  char text[200];
  for (size_t i = 0; i < right.size(); ++i) {
    const bool same = row.tolerance > 0 ? std::fabs(left[i] - right[i]) <= row.tolerance * largest : left[i] == right[i];
    if (same) continue;  // a NaN is never the same
    std::snprintf(text, sizeof text, "result %zu of %zu is %.9g and not %.9g", i, right.size(), left[i], right[i]);
    return text;
  }
  return "";
}

}  // namespace bench
