// A GPU in miniature: the threads of a block are fibers, blocks run one after another; what kernels do is counted.
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

// What a block has for itself.
struct Block {
  std::vector<unsigned char> shared;
  std::map<uint32_t, BulkBarrier> barriers;
  std::map<uint64_t, std::vector<double>> tiles;  // operands by descriptor, decoded once per block
  std::vector<uint32_t> tensor_memory;            // 128 lanes x 512 columns
  struct Exchange {
    double a[32][32], b[32][16];
    uint32_t factors[2][32];  // block scales of A and B
  };                               // by lane: the elements of its registers
  std::vector<Exchange> exchange;  // one per warp
  unsigned block = 0, rank = 0;    // in the grid, in the cluster
  Waiting everyone;
  std::vector<Waiting> warps;
};

class Machine : public Block {  // the block that runs now
 public:
  Counted counted;
  unsigned thread = 0, threads = 0, blocks = 0;
  Block peer;  // the other block of a cluster of two

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
    fibers_.resize(cluster * block_threads);
    for (unsigned first = 0; first < grid; first += cluster) {
      together_ = {};
      for (unsigned one = cluster; one-- > 0;) {  // the first block is the one that runs first
        swap_blocks();
        start_block(first + one, one, shared_bytes);
      }
      run_blocks(cluster);
    }
  }

  void swap_blocks() { std::swap(static_cast<Block&>(*this), peer); }
  void barrier() { wait_for(everyone, threads); }
  void cluster_barrier() { wait_for(together_, static_cast<unsigned>(fibers_.size())); }
  void warp_barrier() { wait_for(warps[thread / 32], 32); }
  void pause() { swapcontext(&fibers_[rank * threads + thread].context, &scheduler_); }

 private:
  static constexpr size_t kStack = 256 * 1024;
  std::vector<std::pair<const char*, size_t>> allowed_;
  std::vector<Fiber> fibers_;
  std::function<void()> kernel_;
  ucontext_t scheduler_{};
  Waiting together_;

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
  void start_block(unsigned index, unsigned in_cluster, size_t shared_bytes) {
    static_cast<Block&>(*this) = {};
    block = index;
    rank = in_cluster;
    shared.assign(shared_bytes, 0);
    warps.assign(threads / 32, {});
    exchange.resize(threads / 32);
    for (unsigned one = 0; one < threads; ++one) {
      Fiber& fiber = fibers_[rank * threads + one];
      if (!fiber.stack) fiber.stack.reset(new char[kStack]);
      fiber.done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = &scheduler_;
      makecontext(&fiber.context, &Machine::enter, 0);
    }
  }
  void run_blocks(unsigned cluster) {
    for (bool running = true; running;) {
      running = false;
      for (unsigned turn = 0; turn < cluster; ++turn) {
        for (thread = 0; thread < threads; ++thread) {
          Fiber& fiber = fibers_[rank * threads + thread];
          if (fiber.done) continue;
          running = true;
          swapcontext(&scheduler_, &fiber.context);
        }
        if (cluster == 2) swap_blocks();
      }
    }
  }
};

inline Machine machine;

inline void Machine::enter() {
  machine.kernel_();
  machine.fibers_[machine.rank * machine.threads + machine.thread].done = true;
}

}  // namespace bench::cpu
