// The CPU at hand: which of its cores this process may use, its caches and its memory, as Linux tells them.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

constexpr int kExitFailed = 1, kExitUsage = 2, kExitNoDevice = 3;
struct Failure : std::runtime_error {
  int code;
  Failure(int exit_code, const std::string& text) : std::runtime_error(text), code(exit_code) {}
};

std::string quoted(const std::string& text);  // a JSON string

// Sizes in bytes, 0 where the machine does not tell or there is none.
struct Machine {
  std::string name, uuid;
  std::vector<std::string> isa;
  std::vector<int> cpus;      // one per thread that measures: each on a core of its own as long as there are cores
  int cores = 0;              // physical cores that this process may use
  int logical = 0;            // logical CPUs that it may use
  int sockets = 0, nodes = 0;  // of the whole machine
  size_t l1 = 0, l2 = 0, l3 = 0;                    // of one instance
  size_t l1_share = 0, l2_share = 0, l3_share = 0;  // what the worst placed thread has of it
  size_t last_level_total = 0;                      // of all caches of the last level that the threads use
  size_t memory_total = 0, memory_available = 0;    // what this process may have
};

// `threads` 0: one per physical core, no more than the control group's share of time.  Throws Failure if there are not so many.
Machine find_machine(int threads);
std::string device_line(const Machine& machine);

}  // namespace bench
