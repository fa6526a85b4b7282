#include "../kernels/vector.cuh"
#include "unit.hpp"

using namespace bench::gpu;

BENCH_UNIT(vector, BENCH_VECTOR_KERNELS(BENCH_ENTRY) BENCH_MIX_KERNELS(BENCH_ENTRY))
