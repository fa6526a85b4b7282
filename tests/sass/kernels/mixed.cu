// Precisions side by side, conversions between them, strided accesses, conflicts of banks.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void mixed(const double* doubles, const float* floats, const __half2* halves, const __nv_bfloat162* brains, float* to) {
    const int i = threadIdx.x;
    double high = doubles[i] * 3.0 + 1.0;
    float single = floats[i] * 2.0f;
    single = single + 1.0f;
    __half2 low = __hfma2(halves[i], halves[i], halves[i]);
    __nv_bfloat162 brain = __hmul2(brains[i], brains[i]);
    float narrowed = static_cast<float>(high);
    float accident = single * 1.1;
    to[i] = narrowed + single + accident + __low2float(low) + __low2float(brain);
}

__global__ void strided(const float* from, float* to, int stride) {
    __shared__ float tile[32 * 33];
    tile[threadIdx.x * 32] = from[threadIdx.x * stride];
    __syncthreads();
    to[threadIdx.x] = tile[threadIdx.x];
}
