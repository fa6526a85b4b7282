// What the proxy applications share: options, GPU memory, the clock.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace app {

inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(status));
  std::exit(1);
}

// --name VALUE pairs; a name that is not among the defaults ends the program with the list of them.
class Options {
 public:
  Options(int count, char** texts, std::map<std::string, long> defaults) : values_(std::move(defaults)) {
    for (int i = 1; i < count; i += 2) {
      const std::string name = texts[i] + (texts[i][0] == '-' && texts[i][1] == '-' ? 2 : 0);
      if (i + 1 == count || values_.count(name) == 0) usage(texts[0]);
      values_[name] = std::strtol(texts[i + 1], nullptr, 10);
    }
  }
  long operator[](const char* name) const { return values_.at(name); }
  // Ends the program unless low <= value <= high.
  int within(const char* name, long low, long high) const {
    const long value = values_.at(name);
    if (value >= low && value <= high) return static_cast<int>(value);
    std::fprintf(stderr, "--%s must be %ld ... %ld\n", name, low, high);
    std::exit(2);
  }

 private:
  std::map<std::string, long> values_;
  [[noreturn]] void usage(const char* program) const {
    std::fprintf(stderr, "usage: %s", program);
    for (const auto& [name, value] : values_) std::fprintf(stderr, " [--%s %ld]", name.c_str(), value);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
};

template <class T>
class Array {
 public:
  explicit Array(size_t size) : size_(size) { check(cudaMalloc(&data_, size * sizeof(T)), "allocating GPU memory"); }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copying to the GPU");
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Seconds of one launch.
template <class F>
double seconds(F&& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaEventRecord(begin), "cudaEventRecord");
  launch();
  check(cudaGetLastError(), "launching the kernel");
  check(cudaEventRecord(end), "cudaEventRecord");
  check(cudaEventSynchronize(end), "the kernel");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds * 1e-3;
}

// Reproducible numbers in (low, high).
class Random {
 public:
  double operator()(double low, double high) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return low + (high - low) * static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  unsigned long long state_ = 1;
};

inline int report(const char* name, double time, double gflop, double worst) {
  std::printf("%s: %.6f s, %.3f GFLOP as written, %.1f GFLOP/s, largest relative error %.1e\n", name, time, gflop, gflop / time,
              worst);
  const bool right = worst < 1e-9;
  if (!right) std::fprintf(stderr, "the results are wrong\n");
  return right ? 0 : 1;
}

}  // namespace app
