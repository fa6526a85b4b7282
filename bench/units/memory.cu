#include "../kernels/memory.cuh"
#include "unit.hpp"

using namespace bench::gpu;

BENCH_UNIT(memory, BENCH_MEMORY_KERNELS(BENCH_ENTRY))
