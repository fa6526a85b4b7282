// The kernels on the CPU model: what a GPU's results are compared with.
#pragma once
#include <string_view>

#include "../kernels/table.hpp"

namespace bench {

struct ReferenceUnit {
  const Row* rows;
  size_t count;
};
// All rows, unit by unit, in the order they are listed.
constexpr int kUnits = 5;
ReferenceUnit reference_unit(int index);

// Runs a row's kernel on the model.  Returns false for an unknown one.
bool run_reference(const Row& row, const Args& args, unsigned blocks);

}  // namespace bench
