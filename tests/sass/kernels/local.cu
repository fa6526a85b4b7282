// A function that isn't inlined, in the section of the kernel that calls it.
__device__ __noinline__ float local(float value, float by) {
    return __cosf(value) / by;
}

__global__ void kernel(float* data, float by, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        data[i] = local(data[i], by);
}
