// Ceilings of kernel launches: an empty kernel back to back, launched and waited for, replayed as a graph.
#include <chrono>
#include <string_view>

#include "runner.hpp"

extern "C" __global__ void bench_empty() {}

namespace bench {
namespace {

constexpr int kNodes = 1000;
constexpr Row launch_row(const char* ceiling, const char* variant) {
  return {"bench_empty",
          ceiling,
          variant,
          "s",
          "launch",
          Shape::launch,
          Data::words,
          Result::bits,
          0,
          70,
          0,
          "",
          32,
          1,
          0,
          0,
          0,
          0,
          0};
}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "the launched kernels"); }

 private:
  cudaStream_t stream_{};
};

// A graph of empty kernels, each after the one before.
class Replay {
 public:
  explicit Replay(cudaStream_t stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < kNodes; ++i) bench_empty<<<1, 32, 0, stream>>>();
    check(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check(cudaGraphInstantiateWithFlags(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Replay() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  Replay(const Replay&) = delete;
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_{};
  cudaGraphExec_t executable_{};
};

}  // namespace

std::vector<Row> launch_rows() {
  return {launch_row("launch.stream", "empty_kernel"), launch_row("launch.sync", "empty_kernel"),
          launch_row("launch.graph", "graph_1000_nodes")};
}

Summary measure_launch(const Row& row, const Options& options, const Report& report) {
  const Stream stream;
  const std::string_view ceiling = row.ceiling;
  const Replay replay(stream);
  const bool graph = ceiling == "launch.graph", waits = ceiling == "launch.sync";
  const auto seconds_for = [&](uint64_t launches) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < launches; i += graph ? kNodes : 1) {
      if (graph)
        replay.launch(stream);
      else
        bench_empty<<<1, 32, 0, stream>>>();
      if (waits) stream.wait();
    }
    stream.wait();
    check(cudaGetLastError(), "launching an empty kernel");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds_for(kNodes);
  const uint64_t launches = calibrate(kNodes, 100'000'000, options.min_milliseconds, seconds_for);
  for (int i = 0; i < options.trials; ++i) {
    rest(options);
    const double begin = now();
    const double seconds = seconds_for(launches);
    if (!report({seconds, double(launches), 0, true, begin, now()})) break;
  }
  return {1, 32, double(launches)};
}

}  // namespace bench
