// Three kernels of a lecture on the roofline model, one bound each:
//   A: many additions per element (instruction bound);  B: A with so much shared memory per block that one block fits on an SM
//   (occupancy bound);  C: one addition per element of a strided stream (memory bound, 1/16 FLOP per byte).
//   lecture --kernel 0|1|2 (A, B, C) --elements N --adds N --stride S
#include <cmath>

#include "app.hpp"

namespace {

constexpr int kThreads = 256, kHungry = 96 * 1024;

__global__ void kernel_a(double* x, size_t count, int adds, double term) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double value = x[i];
  for (int k = 0; k < adds; ++k) value += term;
  x[i] = value;
}

__global__ void kernel_b(double* x, size_t count, int adds, double term) {
  extern __shared__ double unused[];
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double value = x[i];
  for (int k = 0; k < adds; ++k) value += term;
  if (value == -1.0) unused[threadIdx.x] = value;  // never: keeps the reservation
  x[i] = value;
}

__global__ void kernel_c(double* x, size_t count, int stride, double term) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) x[i * stride] += term;
}

}  // namespace

int main(int count, char** texts) {
  const app::Options options(count, texts, {{"kernel", 0}, {"elements", 1 << 22}, {"adds", 10000}, {"stride", 1}});
  const int kernel = options.within("kernel", 0, 2), adds = kernel == 2 ? 1 : options.within("adds", 1, 1 << 30),
            stride = kernel == 2 ? options.within("stride", 1, 1024) : 1;
  const size_t elements = static_cast<size_t>(options.within("elements", 1, 1l << 30));
  std::vector<double> values(elements * stride);
  app::Random random;
  for (double& value : values) value = random(1, 2);
  const app::Array<double> there(values);
  const double term = 0x1p-20;
  const unsigned blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
  if (kernel == 1)
    app::check(cudaFuncSetAttribute(kernel_b, cudaFuncAttributeMaxDynamicSharedMemorySize, kHungry), "reserving shared memory");
  const double time = app::seconds([&] {
    if (kernel == 0)
      kernel_a<<<blocks, kThreads>>>(there.get(), elements, adds, term);
    else if (kernel == 1)
      kernel_b<<<blocks, kThreads, kHungry>>>(there.get(), elements, adds, term);
    else
      kernel_c<<<blocks, kThreads>>>(there.get(), elements, stride, term);
  });
  const std::vector<double> found = there.host();
  double worst = 0;
  for (size_t i = 0; i < elements * stride; ++i) {
    const double wanted = values[i] + (i % stride == 0 ? adds * term : 0);
    worst = std::fmax(worst, std::fabs(found[i] - wanted) / wanted);
  }
  const char* names[] = {"lecture A", "lecture B", "lecture C"};
  return app::report(names[kernel], time, 1e-9 * double(elements) * adds, worst);
}
