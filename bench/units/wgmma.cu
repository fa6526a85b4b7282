#include "../kernels/wgmma.cuh"
#include "unit.hpp"

using namespace bench::gpu;

BENCH_UNIT(wgmma, BENCH_WGMMA_KERNELS(BENCH_ENTRY) BENCH_WGMMA_SPARSE_KERNELS(BENCH_ENTRY))
