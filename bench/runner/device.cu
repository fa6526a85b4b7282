#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runner.hpp"

namespace bench {

void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) throw Failure(std::string(doing) + ": " + cudaGetErrorString(status));
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

void* ordinary_memory(size_t bytes) {
  constexpr size_t kPage = 65536;  // the largest that such hosts have
  void* memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!memory) throw Failure("allocating host memory: there is none left");
  std::memset(memory, 0, bytes);  // the first touch says where pages are; what a GPU uses much may move to it unless advised
#if CUDART_VERSION >= 13000
  const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
#else
  const int host = cudaCpuDeviceId;
#endif
  const cudaError_t status = cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, host);
  if (status != cudaSuccess) std::free(memory);
  check(status, "keeping memory on the host");
  return memory;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void rest(const Options& options) {
  if (options.pause_milliseconds > 0)
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause_milliseconds));
}

int device_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  return count;
}

Device open_device(int index) {
  check(cudaSetDevice(index), "selecting the GPU");
  return describe_device(index);
}

Device describe_device(int index) {
  Device device;
  device.index = index;
  check(cudaGetDeviceProperties(&device.properties, index), "asking for the GPU's properties");
  device.capability = device.properties.major * 10 + device.properties.minor;
  device.sms = device.properties.multiProcessorCount;
  device.l2_bytes = static_cast<size_t>(device.properties.l2CacheSize);
  return device;
}

namespace {
int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "asking for an attribute of the GPU");
  return value;
}
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}
std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }
}  // namespace

void print_device(const Device& device) {
  const cudaDeviceProp& p = device.properties;
  char bus[32] = "";
  int driver = 0;
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, device.index), "asking for the GPU's PCI address");
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  std::printf(
      "{\"index\": %d, \"name\": %s, \"uuid\": \"%s\", \"pci_bus_id\": \"%s\", \"cc\": \"%d.%d\", \"sm_count\": %d, "
      "\"l2_bytes\": %zu, \"mem_total_bytes\": %zu, \"sm_clock_max_mhz\": %g, "
      "\"mem_clock_max_mhz\": %g, \"bus_bits\": %d, \"driver\": \"%s\"}\n",
      device.index, quoted(p.name).c_str(), uuid_text(p.uuid).c_str(), bus, p.major, p.minor, device.sms, device.l2_bytes,
      p.totalGlobalMem, attribute(cudaDevAttrClockRate, device.index) * 1e-3,
      attribute(cudaDevAttrMemoryClockRate, device.index) * 1e-3, p.memoryBusWidth, version(driver).c_str());
}

}  // namespace bench
