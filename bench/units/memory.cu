#include "../kernels/memory.cuh"
#include "unit.hpp"

BENCH_UNIT(memory, bench::gpu::memory_rows)
