// A stencil whose sum comes from a header, inlined two levels deep.
#include "shapes.h"

__global__ void stencil(const float* from, float* to, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1)
        to[i] = blend(from[i - 1], from[i], n) +
                blend(from[i], from[i + 1], n);
}
