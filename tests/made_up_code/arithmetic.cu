// Made for the rule on arithmetic and the source view to find the same; each kernel is called by what its loop has.
extern "C" __global__ void apart(const float *in, float *out, int n)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        sum = sum + in[i] * in[i + n];
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void accident(const float *in, float *out, int n)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        sum += in[i] * in[i + n] * in[i + 2 * n] * in[i + 3 * n];
        sum *= 0.99;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void divided(const float *in, float *out, unsigned n, unsigned width)
{
    float sum = 0;
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        sum = fmaxf(sum, in[n / (i + width)]);
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void converted(const float *in, unsigned char *out, int n)
{
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < 2; ++k) {
            float value = in[2 * i + k];
            out[2 * i + k] = value;
        }
        out[i] += 1;
    }
}
