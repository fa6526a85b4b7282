#include "../kernels/tcgen05.cuh"
#include "unit.hpp"

using namespace bench::gpu;

BENCH_UNIT(tcgen05, BENCH_TCGEN05_KERNELS(BENCH_ENTRY))
