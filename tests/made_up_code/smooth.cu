// Made to show what `ncu-roofline source` finds: two nested loops, a stride, a double by accident.
__device__ __forceinline__ float weight(int k)
{
    return 0.5 * k;
}

extern "C" __global__ void smooth_made_up(const float *in, float *out, int rows, int width, int sweeps)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
#pragma unroll 1
    for (int sweep = 0; sweep < sweeps; ++sweep) {
#pragma unroll 1
        for (int k = 0; k < width; ++k)
            sum += weight(k) * in[row * width + k];
        sum *= 0.99f;
    }
    out[row] = sum;
}
