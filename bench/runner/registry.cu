#include "../units/unit.hpp"
#include "runner.hpp"

namespace bench {

std::vector<Measurable> measurables() {
  std::vector<Measurable> all;
  // Copy engines before the zero-copy kernels: the first variant of a ceiling is the one that a quick measurement takes.
  for (const Row& row : link_rows()) all.push_back({row, nullptr});
  for (const Unit& unit : {memory_unit(), vector_unit(), mma_unit(), wgmma_unit(), tcgen05_unit()})
    for (size_t i = 0; i < unit.count; ++i) all.push_back({unit.rows[i], unit.kernels[i].kernel});
  for (const Row& row : launch_rows()) all.push_back({row, nullptr});
  return all;
}

}  // namespace bench
