// A translation unit's kernels, for the runner: their rows, and where a row's kernel is.
#pragma once
#include <cstddef>
#include <iterator>
#include <string_view>

#include "../kernels/table.hpp"

namespace bench {

struct KernelEntry {
  std::string_view symbol;
  const void* kernel;
};
struct Unit {
  const Row* rows;
  size_t count;
  const KernelEntry* kernels;  // of the same number and order
};

Unit memory_unit();
Unit vector_unit();
Unit mma_unit();
Unit wgmma_unit();
Unit tcgen05_unit();

#define BENCH_ENTRY(NAME, ...) {"bench_" #NAME, reinterpret_cast<const void*>(bench_##NAME)},
#define BENCH_UNIT(NAME, KERNELS)                                     \
  bench::Unit bench::NAME##_unit() {                                  \
    static const KernelEntry kernels[] = {KERNELS};                   \
    static_assert(std::size(kernels) == std::size(gpu::NAME##_rows)); \
    return {gpu::NAME##_rows, std::size(gpu::NAME##_rows), kernels};  \
  }

}  // namespace bench
