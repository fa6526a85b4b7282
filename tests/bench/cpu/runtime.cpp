#include <cuda_runtime.h>

#include <cstdio>
#include <string>

#include "../../../bench/cpu/reference.hpp"
#include "../../../bench/runner/runner.hpp"
#include "checks.hpp"

namespace bench {

void check(cudaError_t, const char*) {}
double now() { return model_clock; }
void rest(const Options&) {}
void* ordinary_memory(size_t bytes) { return std::calloc(bytes, 1); }

}  // namespace bench

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* kernel, void** arguments) {
  const bench::Row& row = *static_cast<const bench::Row*>(kernel);
  const bench::Args& args = *static_cast<const bench::Args*>(arguments[0]);
  const unsigned cluster = how->numAttrs ? how->attrs->val.clusterDim.x : 1;
  if (cluster != (row.shape == bench::Shape::pair ? bench::kPair : 1) || how->blockDim.x != unsigned(row.threads)) std::abort();
  for (unsigned pass = 0; pass < how->gridDim.y; ++pass) {
    bench::run_reference(row, args, how->gridDim.x);
    model_clock += 1e-5 * args.trips;
  }
  return cudaSuccess;
}

// The runner on a chip of two SMs with 1 MiB of L2: each trial must last 60 us and leave what it should.
void run_row(const bench::Row& row) {
  bench::Device device;
  device.sms = 2;
  device.l2_bytes = 1 << 20;
  device.properties = {228 << 10, 227 << 10, 1};
  bench::Options options;
  options.min_milliseconds = 0.06;
  options.trials = 2;
  std::string reason;
  int trials = 0;
  double seconds = 0, work = 0;
  try {
    const bench::Summary done = bench::measure_kernel({row, &row}, device, options, [&](const bench::Trial& trial) {
      if (!trial.correct) reason = "a trial leaves something else than the launch before it, or than it should";
      if (trial.seconds < 0.9e-3 * options.min_milliseconds) reason = "a trial is too short";
      seconds = trial.seconds;
      work = trial.work;
      return ++trials < options.trials;
    });
    const double per_trip = row.bytes > 0 ? row.bytes : row.operations;
    if (work != per_trip * done.trips * done.blocks * done.threads) reason = "its work is not that of its trips";
    if (std::abs(seconds - 1e-5 * done.trips) > 1e-9) reason = "its trips are not those of the launch";
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (model_buffers) reason = "memory is not given back";
  std::printf("{\"symbol\": \"%s\", \"trials\": %d, \"reason\": \"%s\"}\n", row.symbol, trials, reason.c_str());
}
