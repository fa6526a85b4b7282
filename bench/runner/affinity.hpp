// Which CPUs are next to a GPU: copies over a link to the other socket measure that link.
#pragma once
#include <sched.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string>

#include "runner.hpp"

namespace bench {

// Keeps this thread, and so the memory it touches first, on the CPUs next to the GPU.
class NextToGpu {
 public:
  explicit NextToGpu(const Device& device) {
    char bus[32] = "";
    check(cudaDeviceGetPCIBusId(bus, sizeof bus, device.index), "asking for the GPU's PCI address");
    std::string path = std::string("/sys/bus/pci/devices/") + bus + "/local_cpulist", list;
    for (char& letter : path) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (!std::getline(std::ifstream(path), list) || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t near;
    CPU_ZERO(&near);
    for (const char* at = list.c_str(); *at >= '0' && *at <= '9';) {  // 0-7,16-23
      char* end = nullptr;
      const long first = std::strtol(at, &end, 10), last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
      for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &near);
      at = *end == ',' ? end + 1 : end;
    }
    moved_ = CPU_COUNT(&near) > 0 && sched_setaffinity(0, sizeof near, &near) == 0;
  }
  ~NextToGpu() {
    if (moved_) sched_setaffinity(0, sizeof before_, &before_);
  }
  NextToGpu(const NextToGpu&) = delete;

 private:
  cpu_set_t before_{};
  bool moved_ = false;
};

}  // namespace bench
