// Threads of a warp that part ways: a loop whose length depends on the data, and a switch.
__global__ void collatz(const unsigned* from, unsigned* to) {
    unsigned value = from[threadIdx.x], steps = 0;
    while (value > 1) {
        if (value % 2)
            value = 3 * value + 1;
        else
            value /= 2;
        ++steps;
    }
    to[threadIdx.x] = steps;
}

__global__ void choose(const int* kind, float* data) {
    float value = data[threadIdx.x];
    switch (kind[threadIdx.x]) {
        case 0: value = sinf(value); break;
        case 1: value = expf(value); break;
        case 2: value = sqrtf(value); break;
        case 3: value = 1.0f / value; break;
        case 4: value = value * value * value; break;
        case 5: value = fabsf(value) + 2.0f; break;
        case 6: value = log2f(value); break;
        case 7: value = atanf(value); break;
        default: return;
    }
    data[threadIdx.x] = value;
}
