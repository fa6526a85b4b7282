// A function with a loop, called from another file.
__device__ __noinline__ float apart(float value, int n) {
    for (int i = 0; i < n; ++i)
        value = value * value + __sinf(value);
    return value;
}
