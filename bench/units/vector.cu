#include "../kernels/vector.cuh"
#include "unit.hpp"

BENCH_UNIT(vector, bench::gpu::vector_rows)
