#include "reference.hpp"

#include "../kernels/memory.cuh"
#include "../kernels/mma.cuh"
#include "../kernels/tcgen05.cuh"
#include "../kernels/vector.cuh"
#include "../kernels/wgmma.cuh"

namespace bench {
namespace {

using Kernel = void (*)(Args);
struct Entry {
  std::string_view symbol;
  Kernel kernel;
};

#define BENCH_ENTRY(NAME, ...) {"bench_" #NAME, cpu::bench_##NAME},
constexpr Entry kEntries[] = {BENCH_VECTOR_KERNELS(BENCH_ENTRY) BENCH_MIX_KERNELS(BENCH_ENTRY) BENCH_MEMORY_KERNELS(BENCH_ENTRY)
                                  BENCH_MMA_KERNELS(BENCH_ENTRY) BENCH_WGMMA_KERNELS(BENCH_ENTRY)
                                      BENCH_WGMMA_SPARSE_KERNELS(BENCH_ENTRY) BENCH_TCGEN05_KERNELS(BENCH_ENTRY)};

}  // namespace

ReferenceUnit reference_unit(int index) {
  const ReferenceUnit units[kUnits] = {{cpu::memory_rows, std::size(cpu::memory_rows)},
                                       {cpu::vector_rows, std::size(cpu::vector_rows)},
                                       {cpu::mma_rows, std::size(cpu::mma_rows)},
                                       {cpu::wgmma_rows, std::size(cpu::wgmma_rows)},
                                       {cpu::tcgen05_rows, std::size(cpu::tcgen05_rows)}};
  return units[index];
}

bool run_reference(const Row& row, const Args& args, unsigned blocks) {
  for (const Entry& entry : kEntries) {
    if (entry.symbol != row.symbol) continue;
    cpu::machine.launch(blocks, row.threads, row.shared_bytes, row.cluster, [&] { entry.kernel(args); });
    return true;
  }
  return false;
}

}  // namespace bench
