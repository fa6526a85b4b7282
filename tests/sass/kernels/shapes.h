#pragma once

__device__ inline float weigh(float value, float weight) {
    return value * weight +
           0.25f;
}

__device__ inline float blend(float left, float right, int steps) {
    float result = weigh(left, 0.5f);
    if (steps > 3)
        result = result * weigh(right, 0.75f);
    return result;
}
