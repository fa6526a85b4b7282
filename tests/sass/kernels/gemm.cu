// A matrix product by tiles in shared memory: two nested loops, the inner one unrolled.
constexpr int kTile = 16;

__global__ void gemm(const float* a, const float* b, float* c, int n) {
    __shared__ float left[kTile][kTile];
    __shared__ float right[kTile][kTile];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
    float sum = 0;
    for (int tile = 0; tile < n; tile += kTile) {
        left[y][x] = a[row * n + tile + x];
        right[y][x] = b[(tile + y) * n + column];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < kTile; ++k)
            sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Three nested loops, none unrolled, and work between them.
__global__ void nested(const double* a, double* b, int n, int m) {
    double total = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double row = 0;
#pragma unroll 1
        for (int j = 0; j < m; ++j) {
            double inner = 1;
#pragma unroll 1
            for (int k = 0; k < j; ++k)
                inner = inner * 0.5 + a[k];
            row += inner;
        }
        total += row * row;
    }
    b[threadIdx.x] = total;
}
