#include "../kernels/mma.cuh"
#include "unit.hpp"

using namespace bench::gpu;

BENCH_UNIT(mma, BENCH_MMA_KERNELS(BENCH_ENTRY))
