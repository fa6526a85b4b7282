// The same kernel with its two findings mended: constants of float, and rows that lie side by side in memory.
__device__ __forceinline__ float weight(int k)
{
    return 0.5f * k;
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
            sum += weight(k) * in[k * rows + row];
        sum *= 0.99f;
    }
    out[row] = sum;
}
