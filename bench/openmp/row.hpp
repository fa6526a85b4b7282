// What a kernel is fed with and what it promises: one row of the table per kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

enum class Level { none, l1, l2, l3, dram };

// How memory is laid out and what must be in it afterwards; `arithmetic` only knows its operands.
enum class Shape { read, write, copy, triad, arithmetic };

// One thread's part of a trial.  `data` begins with the stream that is written, if one is; the streams have `stride` bytes
// from one begin to the next.
struct Work {
  char* data;
  size_t stride;
  uint64_t trips_per_pass;
  uint64_t passes;
  uint64_t salt;    // what a write stores, plus the number of the pass
  double factor;    // of the triad
  uint64_t result;  // sum of all that was read or computed
};

struct Row {
  const char* ceiling;
  const char* variant;
  const char* unit;    // "B/s" or "FLOP/s"
  const char* kernel;  // name of the function template in the program
  const char* pipe;    // what must bind
  Level level;
  Shape shape;
  int streams;          // memory streams; 0: arithmetic
  double operations;    // per trip and thread, each add and multiply is one
  double bytes;         // per trip and thread, of loads and stores; what the caches do beyond is not counted
  bool exists;          // false: this CPU lacks the instructions
  void (*run)(Work&);   // null where it doesn't exist
  int word_bytes;       // of `result` of arithmetic: sums are modulo 2^(8 word_bytes)
  size_t operand_bytes; // of arithmetic
  void (*operands)(void* out, uint64_t seed, bool zeros);
  uint64_t (*model)(const void* operands);  // what one trip adds to `result`, computed by scalar code
};

std::vector<Row> memory_rows();
std::vector<Row> fused_rows();
std::vector<Row> separate_rows();

// A random word from a seed and a position (the finaliser of SplitMix64).
inline uint64_t random_word(uint64_t seed, uint64_t position) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + position * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace bench
