// One kernel on all threads: sized for its level, timed, checked.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "machine.hpp"
#include "row.hpp"

namespace bench {

struct Options {
  int trials = 5;
  double min_milliseconds = 20;
  bool zeros = false;
  uint64_t seed = 1;
  uint64_t trips = 0;  // of each thread, rounded up to whole passes; 0: as min_milliseconds asks for
};

// Work done (operations or bytes) from `begin` to `end` (CLOCK_MONOTONIC, s), core clock in MHz (0: unknown), how long other
// processes kept the worst thread off its CPU meanwhile (s), and whether results were right.
struct Trial {
  double begin, end, work, core_mhz, waited;
  bool correct;
  double disturbed() const { return end > begin ? waited / (end - begin) : 0; }
};
using Report = std::function<bool(const Trial&)>;  // false: no more trials

struct Summary {
  int threads = 0;
  double trips = 0, passes = 0;  // of each thread
  double window_bytes = 0;       // of each thread
  int repeated = 0;              // trials that were measured again
  double disturbed = 0;          // mean share of the trials that other processes kept a thread off its CPU
  std::string note;              // "" or what to know of the working set
};

// Memory that is kept from one measurement to the next, each thread's part on its side of the machine.
class Arena {
 public:
  ~Arena();
  char* reserve(size_t bytes);  // throws Failure

 private:
  void* memory_ = nullptr;
  size_t mapped_ = 0;
};

// Why a kernel can't be measured here, "" where it can.
std::string missing(const Row& row, const Machine& machine);
Summary measure(const Row& row, const Machine& machine, Arena& arena, const Options& options, const Report& report);

}  // namespace bench
