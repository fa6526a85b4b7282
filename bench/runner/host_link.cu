// Ceilings of the link between host and GPU by its copy engines; zero-copy variants are kernels (memory.cuh).
#include <string_view>

#include "affinity.hpp"
#include "data.hpp"
#include "runner.hpp"

namespace bench {
namespace {

constexpr size_t kLinkBytes = size_t{256} << 20;
constexpr Row link_row(const char* ceiling) {
  return {"", ceiling, "memcpy_pinned", "B/s", "host", Shape::link, Data::words, Result::bits, 0, 70, 0, "", 0, 0, 0, 0, 0,
          0,  0};
}

// Pinned buffers of the host and their counterparts; `down` goes to the GPU, `up` comes back.
class Link {
 public:
  explicit Link(const Options& options)
      : down_host_(kLinkBytes, Where::pinned_host),
        up_host_(kLinkBytes, Where::pinned_host),
        down_(kLinkBytes),
        up_(kLinkBytes) {
    check(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming), "cudaEventCreate");
    fill(down_host_, options.seed, options.zeros, false);
    fill(up_, options.seed + 1, options.zeros, false);
  }
  ~Link() {
    cudaEventDestroy(joined_);
    cudaStreamDestroy(first_);
    cudaStreamDestroy(second_);
  }
  Link(const Link&) = delete;

  double seconds(uint64_t copies, bool down, bool up) {
    events_.start(first_);
    check(cudaStreamWaitEvent(second_, events_.begin(), 0), "cudaStreamWaitEvent");
    for (uint64_t i = 0; i < copies; ++i) {
      if (down) check(cudaMemcpyAsync(down_.as(), down_host_.as(), kLinkBytes, cudaMemcpyHostToDevice, first_), "copying");
      if (up) check(cudaMemcpyAsync(up_host_.as(), up_.as(), kLinkBytes, cudaMemcpyDeviceToHost, second_), "copying");
    }
    check(cudaEventRecord(joined_, second_), "cudaEventRecord");
    check(cudaStreamWaitEvent(first_, joined_, 0), "cudaStreamWaitEvent");
    return events_.stop(first_);
  }
  bool correct(bool down, bool up) const {
    return (!down || word_sum(down_, kLinkBytes) == word_sum(down_host_, kLinkBytes)) &&
           (!up || word_sum(up_, kLinkBytes) == word_sum(up_host_, kLinkBytes));
  }

 private:
  Buffer down_host_, up_host_, down_, up_;
  cudaStream_t first_{}, second_{};
  cudaEvent_t joined_{};
  Events events_;
};

}  // namespace

std::vector<Row> link_rows() { return {link_row("host.h2d"), link_row("host.d2h"), link_row("host.bidir")}; }

Summary measure_link(const Row& row, const Device& device, const Options& options, const Report& report) {
  const NextToGpu near(device);
  const std::string_view ceiling = row.ceiling;
  const bool down = ceiling != "host.d2h", up = ceiling != "host.h2d";
  Link link(options);
  link.seconds(1, down, up);
  const auto seconds_for = [&](uint64_t copies) { return link.seconds(copies, down, up); };
  const uint64_t copies = calibrate(1, 10'000, options.min_milliseconds, seconds_for);
  for (int i = 0; i < options.trials; ++i) {
    rest(options);
    const double begin = now();
    const double seconds = seconds_for(copies);
    const double end = now();
    if (!report({seconds, double(copies) * kLinkBytes * (down + up), 0, link.correct(down, up), begin, end})) break;
  }
  return {0, 0, double(copies)};
}

}  // namespace bench
