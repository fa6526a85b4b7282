// Parts of the runner: what can be measured, how one trial goes, how results are told (JSON lines).
#pragma once
#include <cuda_runtime.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../kernels/table.hpp"

namespace bench {

using Failure = std::runtime_error;
void check(cudaError_t status, const char* doing);

struct Options {
  int trials = 5;
  double min_milliseconds = 20;
  bool zeros = false;
  uint64_t seed = 1;
  double pause_milliseconds = 0;  // before each trial, so that the GPU rests
  uint64_t trips = 0;             // of kernels, rounded up to whole passes; 0: as min_milliseconds asks for
};

struct Measurable {
  Row row;
  const void* kernel;  // null for links and launches
};
std::vector<Measurable> measurables();
std::vector<Row> link_rows();
std::vector<Row> launch_rows();

struct Device {
  int index = 0, capability = 0, sms = 0;
  size_t l2_bytes = 0;
  cudaDeviceProp properties{};
};
Device describe_device(int index);  // asks the driver without making a context: a GPU that others hold can be described
Device open_device(int index);
void print_device(const Device& device);
int device_count();
std::string quoted(const std::string& text);  // a JSON string

// One trial: seconds, operations or bytes or launches done in them, SM clock in MHz (0: unknown), whether results were right,
// and when it began and ended by the host's monotonic clock (s).
struct Trial {
  double seconds, work, sm_mhz;
  bool correct;
  double begin, end;
};
double now();                       // of the host's monotonic clock, s
void rest(const Options& options);  // what --pause-ms asks for
struct Summary {
  unsigned blocks = 0, threads = 0;
  double trips = 0;
};
using Report = std::function<bool(const Trial&)>;  // false: no more trials

Summary measure_kernel(const Measurable& item, const Device& device, const Options& options, const Report& report);
Summary measure_link(const Row& row, const Device& device, const Options& options, const Report& report);
Summary measure_launch(const Row& row, const Options& options, const Report& report);

// ---- CUDA with owners
class Events {
 public:
  Events() {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Events(const Events&) = delete;
  void start(cudaStream_t stream = nullptr) { check(cudaEventRecord(begin_, stream), "cudaEventRecord"); }
  double stop(cudaStream_t stream = nullptr) {  // seconds
    check(cudaEventRecord(end_, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "the measured work");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }
  cudaEvent_t begin() const { return begin_; }

 private:
  cudaEvent_t begin_{}, end_{};
};

void* ordinary_memory(size_t bytes);  // of the host, zeros, to be freed: the driver is asked to leave it there
enum class Where { device, pinned_host, ordinary_host };
class Buffer {
 public:
  Buffer() = default;
  Buffer(size_t bytes, Where where = Where::device) : bytes_(bytes), where_(where) {
    if (bytes == 0) return;
    if (where == Where::device)
      check(cudaMalloc(&data_, bytes), "allocating GPU memory");
    else if (where == Where::pinned_host)
      check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped), "allocating pinned memory");
    else
      data_ = ordinary_memory(bytes);
  }
  ~Buffer() {
    if (!data_) return;
    if (where_ == Where::device)
      cudaFree(data_);
    else if (where_ == Where::pinned_host)
      cudaFreeHost(data_);
    else
      std::free(data_);
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(where_, other.where_);
    return *this;
  }
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Where where_ = Where::device;
};

// Random words (zeros if asked) in GPU or mapped memory, and the sum of all words modulo 2^32 by a kernel of its own.
void fill(const Buffer& buffer, uint64_t seed, bool zeros, bool reals);
uint32_t word_sum(const Buffer& buffer, size_t bytes);

// Repeats that make a trial last at least the wanted time.
template <class F>
uint64_t calibrate(uint64_t unit, uint64_t limit, double min_milliseconds, F&& seconds_for) {
  uint64_t count = unit;
  for (;;) {
    const double milliseconds = seconds_for(count) * 1e3;
    if (milliseconds >= min_milliseconds || count >= limit / 2) return count;
    const double factor = milliseconds > 0 ? min_milliseconds * 1.1 / milliseconds : 64;
    const double next = double(count) * (factor < 1.1 ? 1.1 : factor > 64 ? 64 : factor);
    const uint64_t units = static_cast<uint64_t>(next / double(unit)) + 1;
    count = units * unit < limit ? units * unit : limit / unit * unit;
  }
}

}  // namespace bench
