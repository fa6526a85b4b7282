// A translation unit's kernels, for the runner: their rows, and where a row's kernel is.
#pragma once
#include <string_view>

#include "../kernels/table.hpp"

namespace bench {

struct Unit {
  const Row* rows;
  size_t count;
  const void* (*kernel)(std::string_view symbol);
};

}  // namespace bench
