// A GPU in miniature: the threads of a block are fibers, blocks run one after another, those of a cluster side by side; what
// kernels do is counted.
#pragma once
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace bench::cpu {

struct Counted {
  double operations = 0, global_bytes = 0, shared_bytes = 0;
};

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  bool done = false;
};

struct Waiting {  // fibers gathered at a barrier
  unsigned arrived = 0, generation = 0;
};

struct BulkBarrier {  // an mbarrier whose copies complete at once: the number of completed phases, bytes that are still to come
  unsigned phases = 0;
  uint32_t expected = 0;
};

struct Place {  // what a block has for itself while others of its cluster run
  std::vector<unsigned char> shared;
  Waiting barrier;
};

class Machine {
 public:
  Counted counted;
  unsigned thread = 0, threads = 0, block = 0, blocks = 0;
  std::vector<unsigned char> shared;
  std::map<uint32_t, BulkBarrier> barriers;
  std::map<uint64_t, std::vector<double>> tiles;  // operands by descriptor, decoded once per block
  std::vector<uint32_t> tensor_memory;            // 128 lanes x 512 columns
  struct Exchange {
    double a[32][16], b[32][8];
  };                               // by lane: the elements of its registers
  std::vector<Exchange> exchange;  // one per warp

  // Memory kernels may touch; anything else ends the program.
  void allow(const void* p, size_t bytes) { allowed_.emplace_back(static_cast<const char*>(p), bytes); }
  void forget() { allowed_.clear(); }
  void check(const void* p, size_t bytes) const {
    if (reinterpret_cast<uintptr_t>(p) % bytes != 0) fail("misaligned", p);
    const char* at = static_cast<const char*>(p);
    for (const auto& [begin, size] : allowed_)
      if (at >= begin && at + bytes <= begin + size) return;
    if (!allowed_.empty()) fail("out of bounds", p);
  }

  void launch(unsigned grid, unsigned block_threads, size_t shared_bytes, unsigned cluster, std::function<void()> kernel) {
    kernel_ = std::move(kernel);
    blocks = grid;
    threads = block_threads;
    fibers_.resize(size_t(block_threads) * cluster);
    places_.resize(cluster);
    for (first_ = 0; first_ < grid; first_ += cluster) run_cluster(shared_bytes);
  }

  void barrier() { wait_for(places_[block - first_].barrier, threads); }
  void warp_barrier() { wait_for(warps_[thread / 32], 32); }
  void pair_barrier() { wait_for(cluster_, static_cast<unsigned>(fibers_.size())); }
  const std::vector<unsigned char>& other_shared() const { return places_[(block - first_) ^ 1].shared; }
  void pause() { swapcontext(&fiber().context, &scheduler_); }

 private:
  static constexpr size_t kStack = 256 * 1024;
  std::vector<std::pair<const char*, size_t>> allowed_;
  std::vector<Fiber> fibers_;
  std::function<void()> kernel_;
  ucontext_t scheduler_{};
  unsigned first_ = 0;  // block of the cluster that runs
  std::vector<Place> places_;
  Waiting cluster_;
  std::vector<Waiting> warps_;  // of one block: kernels with clusters have none

  [[noreturn]] static void fail(const char* what, const void* p) {
    std::fprintf(stderr, "the kernel model met an access %s: %p\n", what, p);
    std::abort();
  }
  void wait_for(Waiting& at, unsigned all) {
    const unsigned generation = at.generation;
    if (++at.arrived == all) {
      at.arrived = 0;
      ++at.generation;
      return;
    }
    while (generation == at.generation) pause();
  }
  static void enter();
  Fiber& fiber() { return fibers_[size_t(block - first_) * threads + thread]; }
  void run_cluster(size_t shared_bytes) {
    for (Place& place : places_) place = {std::vector<unsigned char>(shared_bytes), {}};
    barriers.clear();
    tiles.clear();
    cluster_ = {};
    warps_.assign(threads / 32, {});
    exchange.resize(threads / 32);
    for (Fiber& fiber : fibers_) {
      if (!fiber.stack) fiber.stack.reset(new char[kStack]);
      fiber.done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = &scheduler_;
      makecontext(&fiber.context, &Machine::enter, 0);
    }
    for (bool running = true; running;) {
      running = false;
      for (block = first_; block < first_ + places_.size(); ++block) {
        std::swap(shared, places_[block - first_].shared);
        for (thread = 0; thread < threads; ++thread) {
          if (fiber().done) continue;
          running = true;
          swapcontext(&scheduler_, &fiber().context);
        }
        std::swap(shared, places_[block - first_].shared);
      }
    }
  }
};

inline Machine machine;

inline void Machine::enter() {
  machine.kernel_();
  machine.fiber().done = true;
}

}  // namespace bench::cpu
