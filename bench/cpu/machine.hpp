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

struct BulkBarrier {  // an mbarrier whose copies complete at once: the number of completed phases
  unsigned phases = 0;
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
    double a[32][32], b[32][16];
    uint32_t factors[2][32];  // block scales of A and B
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

  void launch(unsigned grid, unsigned block_threads, size_t shared_bytes, std::function<void()> kernel) {
    kernel_ = std::move(kernel);
    blocks = grid;
    threads = block_threads;
    fibers_.resize(block_threads);
    for (block = 0; block < grid; ++block) run_block(shared_bytes);
  }

  void barrier() { wait_for(block_, threads); }
  void warp_barrier() { wait_for(warps_[thread / 32], 32); }
  void pause() { swapcontext(&fibers_[thread].context, &scheduler_); }

 private:
  static constexpr size_t kStack = 256 * 1024;
  std::vector<std::pair<const char*, size_t>> allowed_;
  std::vector<Fiber> fibers_;
  std::function<void()> kernel_;
  ucontext_t scheduler_{};
  Waiting block_;
  std::vector<Waiting> warps_;

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
  void run_block(size_t shared_bytes) {
    shared.assign(shared_bytes, 0);
    barriers.clear();
    tiles.clear();
    block_ = {};
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
      for (thread = 0; thread < threads; ++thread) {
        if (fibers_[thread].done) continue;
        running = true;
        swapcontext(&scheduler_, &fibers_[thread].context);
      }
    }
  }
};

inline Machine machine;

inline void Machine::enter() {
  machine.kernel_();
  machine.fibers_[machine.thread].done = true;
}

}  // namespace bench::cpu
