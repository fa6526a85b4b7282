// What every kernel promises, in one table row written next to it: the runner lists and feeds kernels by it, the static proof
// holds the compiled code to it, the CPU model counts against it.  Plain C++17, no CUDA.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bench {

// How the runner feeds a kernel, and so what `Args` means to it.
enum class Shape {
  compute,    // in: one block's operands, shared by all blocks; out: `results` words per thread
  dram,       // tiles dealt round robin over a buffer far larger than L2
  dram_grid,  // the same buffer, but a block per tile and one trip, as users write it; passes are the launch's second dimension
  l2,         // as dram, over a quarter of L2; no two blocks share a line, for the GPU merges simultaneous requests before L2
  l1,         // every block has its own small window
  shared,     // shared memory only
  pair,       // the same, in clusters of two blocks
  zero_copy,  // as dram, over mapped memory of the host
  coherent,   // as dram, over memory of the host that no library allocated: where GPU and CPU share page tables (NVLink-C2C)
  link,       // no kernel: copies by the copy engines
  launch      // an empty kernel
};

constexpr int kPair = 2;  // blocks of a cluster in Shape::pair

// Type of the words in `out`, for comparing with the CPU model; `bits` must agree exactly.
enum class Result { bits, fp16, fp16x2, bf16x2, fp32, fp64 };

// How operands are made (runner/data.hpp); always random and bounded, unless zeros were asked for.
enum class Data {
  words,
  chaos_fp64,
  chaos_fp32,
  chaos_fp16,
  chaos_bf16,
  odd_words,
  mixed_fp64,
  mixed_fp32,
  fp64,
  fp32,
  fp16,
  bf16,
  tf32,
  int8,
  fp8,
  fp6,
  fp6_packed,
  reals
};

struct Row {
  const char* symbol;   // kernel name in the binary
  const char* ceiling;  // id of the ceiling it measures
  const char* variant;  // what tells it from others of the same ceiling
  const char* unit;     // "FLOP/s", "OP/s" or "B/s"
  const char* pipe;     // what must bind: id of a peak (fp64, tensor.fp16.mma, ...) or of a memory level
  Shape shape;
  Data data;
  Result result;
  double tolerance;       // relative to the largest result; 0 with Result::bits
  int since, until;       // compute capabilities x 10, inclusive; until 0: no end
  const char* emulated;   // capabilities where the compiler emulates it ("9.0 10.x"): listed, no ceiling there
  int threads;            // per block
  int blocks;             // per SM; 0: as many as are resident
  int shared_bytes;       // dynamic shared memory per block
  int input_words;        // 32-bit words of operands (Shape::compute, Shape::shared)
  int results;            // 32-bit words per thread in out
  double operations;      // of `pipe`'s type, per thread and trip of the hot loop, as hardware counters count them
  double bytes;           // through the level under test, per thread and trip
  int streams = 1;        // arrays these bytes are spread over; a tile holds bytes / streams x threads of each
  int flipped_words = 0;  // the last operands are the as many words before them, each ^ flip: B' behind B
  uint32_t flip = 0;
  int cluster = 1;  // blocks that work together
};

// Start and end of a block by the SM clock and by the GPU's wall clock, and the SM it ran on.
struct Stamp {
  uint64_t start_cycles, start_ns, end_cycles, end_ns, sm;
};

struct Args {
  const void* in;   // operands, or what is read
  const void* in2;  // second array of the triad
  void* dst;        // what is written
  uint32_t* out;    // results[i * threads of the grid + thread]
  Stamp* stamps;    // one per block
  uint32_t trips;   // of the hot loop
  uint32_t tiles;   // tile of trip t in block b: (b + t * stride) mod tiles
  uint32_t stride;  // <= tiles
  uint64_t block_bytes;  // distance of two blocks' windows
};

constexpr bool exists(const Row& row, int capability) {
  return capability >= row.since && (row.until == 0 || capability <= row.until);
}

}  // namespace bench
