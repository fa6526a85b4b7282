// Calls: of a function in the same section, of one compiled apart, through a pointer, of the driver's printf.
#include <cstdio>

__device__ float apart(float value, int n);

static __device__ __noinline__ float near(float value) {
    return __sinf(value) /
           (value + 3.0f);
}

__device__ float (*table[2])(float);

__global__ void caller(float* data, int n) {
    data[threadIdx.x] = apart(data[threadIdx.x], n) +
                        near(data[threadIdx.x]);
}

__global__ void pointers(float* data, int n) {
    data[threadIdx.x] = table[n](data[threadIdx.x]);
    if (threadIdx.x == 0)
        printf("%f\n", data[0]);
}
