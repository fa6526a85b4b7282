#include "machine.hpp"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

namespace bench {
namespace {

using Set = std::set<int>;
const std::string kCpus = "/sys/devices/system/cpu/cpu";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Set parse_list(const std::string& text) {  // "0-3,8"
  Set found;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int read = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    for (int i = first; read >= 1 && i <= (read == 2 ? last : first); ++i) found.insert(i);
  }
  return found;
}

size_t parse_size(const std::string& text) {  // "48K", "32M"
  size_t number = 0;
  char unit = 0;
  std::sscanf(text.c_str(), "%zu%c", &number, &unit);
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : unit == 'G' ? number << 30 : number;
}

// With OMP_PROC_BIND set, the run time has bound this thread to its first place already: the others are allowed, too.
Set allowed_cpus() {
  Set found;
  cpu_set_t* mask = CPU_ALLOC(CPU_SETSIZE * 16);
  const size_t size = CPU_ALLOC_SIZE(CPU_SETSIZE * 16);
  CPU_ZERO_S(size, mask);
  if (sched_getaffinity(0, size, mask) == 0)
    for (int i = 0; i < CPU_SETSIZE * 16; ++i)
      if (CPU_ISSET_S(i, size, mask)) found.insert(i);
  CPU_FREE(mask);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(omp_get_place_num_procs(place));
    if (!ids.empty()) omp_get_place_proc_ids(place, ids.data());
    found.insert(ids.begin(), ids.end());
  }
  if (found.empty()) throw Failure(kExitFailed, "the system does not tell which CPUs this process may use");
  return found;
}

std::string cpuinfo(const char* key) {  // of the first processor
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.rfind(key, 0) == 0 && colon + 2 <= line.size()) return line.substr(colon + 2);
  }
  return "";
}

size_t meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  size_t kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == key + ":") file >> kilobytes;
  return kilobytes << 10;
}

// The folders of this process's control group and of those above it (version 2); a container sees its own as the root.
std::vector<std::string> group_folders() {
  std::vector<std::string> found = {"/sys/fs/cgroup"};
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::/", 0) != 0) continue;
    for (std::string path = line.substr(3); path.size() > 1; path.erase(path.find_last_of('/')))
      found.push_back("/sys/fs/cgroup" + path);
  }
  return found;
}

double number_in(const std::string& path, double otherwise) {  // "max" and -1 limit nothing
  double number = -1;
  std::sscanf(first_line(path).c_str(), "%lf", &number);
  return number >= 0 ? number : otherwise;
}

double group_cpus() {
  double found = std::numeric_limits<double>::infinity();
  for (const std::string& folder : group_folders()) {
    double quota = 0, period = 0;
    if (std::sscanf(first_line(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) == 2 && period > 0)
      found = std::min(found, quota / period);
  }
  const std::string old = "/sys/fs/cgroup/cpu/cpu.cfs_";  // version 1
  return std::min(found, number_in(old + "quota_us", found) / number_in(old + "period_us", 1));
}

struct Memory {
  double total, available;
};
Memory memory() {
  Memory found = {double(meminfo("MemTotal")), double(meminfo("MemAvailable"))};
  const auto limit = [&](double most, double used) {
    found.total = std::min(found.total, most);
    found.available = std::max(0.0, std::min(found.available, most - used));
  };
  for (const std::string& folder : group_folders())
    limit(number_in(folder + "/memory.max", found.total), number_in(folder + "/memory.current", 0));
  const std::string old = "/sys/fs/cgroup/memory/memory.";  // version 1
  limit(number_in(old + "limit_in_bytes", found.total), number_in(old + "usage_in_bytes", 0));
  return found;
}

std::vector<std::string> known_isa() {
  std::set<std::string> have;
  std::stringstream words(cpuinfo("flags") + " " + cpuinfo("Features"));
  for (std::string word; words >> word;) have.insert(word);
  std::vector<std::string> found;
  for (const char* one : {"sse2", "sse4_2", "avx", "fma", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_bf16",
                          "avx512_fp16", "amx_tile", "asimd", "asimdhp", "sve", "sve2"})
    if (have.count(one)) found.push_back(one);
  return found;
}

std::string core_of(int cpu) {
  const std::string topology = kCpus + std::to_string(cpu) + "/topology/";
  std::string siblings = first_line(topology + "core_cpus_list");
  if (siblings.empty()) siblings = first_line(topology + "thread_siblings_list");
  return siblings.empty() ? std::to_string(cpu) : siblings;
}

// One CPU of each core first, evenly over the cores if not all are wanted; then their second hardware threads.
std::vector<int> choose(const std::vector<std::vector<int>>& cores, int threads) {
  std::vector<int> chosen;
  const int count = int(cores.size());
  for (int i = 0; i < std::min(threads, count); ++i) chosen.push_back(cores[size_t(i) * count / std::min(threads, count)][0]);
  for (size_t depth = 1; int(chosen.size()) < threads; ++depth)
    for (const auto& core : cores)
      if (depth < core.size() && int(chosen.size()) < threads) chosen.push_back(core[depth]);
  return chosen;
}

struct Cache {
  size_t size = 0, share = 0, total = 0;
};

Cache cache(int level, const std::vector<int>& cpus, int fallback) {
  Cache found;
  std::map<std::string, std::pair<size_t, int>> instances;  // size and how many of our threads are on it
  for (int cpu : cpus) {
    for (int index = 0;; ++index) {
      const std::string folder = kCpus + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
      const std::string type = first_line(folder + "type");
      if (type.empty()) break;
      if (type == "Instruction" || first_line(folder + "level") != std::to_string(level)) continue;
      auto& instance = instances[first_line(folder + "shared_cpu_list")];
      instance.first = parse_size(first_line(folder + "size"));
      ++instance.second;
    }
  }
  for (const auto& [place, instance] : instances) {
    const size_t share = instance.first / instance.second;
    found.size = std::max(found.size, instance.first);
    found.share = found.share ? std::min(found.share, share) : share;
    found.total += instance.first;
  }
  const long told = found.size ? 0 : sysconf(fallback);
  if (told > 0) {  // without a word on sharing: L1 and L2 are mostly a core's own, and L3 everyone's
    found.size = found.total = size_t(told);
    found.share = level < 3 ? found.size : found.size / cpus.size();
  }
  return found;
}

// The same for the same machine, whatever runs on it: from its id, or its name where it has none.
std::string stable_uuid(const Machine& machine) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string id = first_line("/etc/machine-id");
  const std::string text = (id.empty() ? host : id) + "\n" + machine.name + "\n" + std::to_string(machine.sockets);
  uint64_t hash[2] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};  // FNV-1a from two starts
  for (uint64_t& part : hash)
    for (unsigned char c : text) part = (part ^ c) * 0x100000001b3u;
  char out[64];
  std::snprintf(out, sizeof out, "CPU-%08x-%04x-%04x-%04x-%012llx", unsigned(hash[0] >> 32), unsigned(hash[0] >> 16 & 0xffff),
                unsigned(hash[0] & 0xffff), unsigned(hash[1] >> 48), (unsigned long long)(hash[1] & 0xffffffffffff));
  return out;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char escape[8] = {char(c), 0};
    if (c == '"' || c == '\\' || c < 0x20) std::snprintf(escape, sizeof escape, "\\u%04x", c);
    out += escape;
  }
  return out + '"';
}

Machine find_machine(int threads) {
  Machine m;
  const Set allowed = allowed_cpus();
  std::map<std::string, std::vector<int>> by_core;
  Set packages;
  for (int cpu : allowed) by_core[core_of(cpu)].push_back(cpu);
  std::vector<std::vector<int>> cores;
  for (const auto& [key, cpus] : by_core) cores.push_back(cpus);
  std::sort(cores.begin(), cores.end());
  m.cores = int(cores.size());
  m.logical = int(allowed.size());
  if (threads > m.logical)
    throw Failure(kExitUsage, "there are no " + std::to_string(threads) + " CPUs for threads: this process may use " +
                                  std::to_string(m.logical));
  if (threads == 0) threads = std::max(1, int(std::min<double>(m.cores, group_cpus())));
  m.cpus = choose(cores, threads);
  for (int cpu : parse_list(first_line("/sys/devices/system/cpu/online"))) {
    const std::string package = first_line(kCpus + std::to_string(cpu) + "/topology/physical_package_id");
    if (!package.empty()) packages.insert(std::stoi(package));
  }
  m.sockets = std::max<int>(1, int(packages.size()));
  m.nodes = std::max<int>(1, int(parse_list(first_line("/sys/devices/system/node/online")).size()));
  const Cache l1 = cache(1, m.cpus, _SC_LEVEL1_DCACHE_SIZE), l2 = cache(2, m.cpus, _SC_LEVEL2_CACHE_SIZE),
              l3 = cache(3, m.cpus, _SC_LEVEL3_CACHE_SIZE);
  m.l1 = l1.size, m.l2 = l2.size, m.l3 = l3.size;
  m.l1_share = l1.share, m.l2_share = l2.share, m.l3_share = l3.share;
  m.last_level_total = l3.total ? l3.total : l2.total;
  const Memory memory_here = memory();
  m.memory_total = size_t(memory_here.total);
  m.memory_available = size_t(memory_here.available);
  m.name = cpuinfo("model name");
  if (m.name.empty())  // Arm gives numbers only
    m.name = "CPU implementer " + cpuinfo("CPU implementer") + " part " + cpuinfo("CPU part");
  m.isa = known_isa();
  m.uuid = stable_uuid(m);
  return m;
}

std::string device_line(const Machine& m) {
  std::string isa;
  for (const std::string& one : m.isa) isa += (isa.empty() ? "" : ", ") + quoted(one);
  std::stringstream out;
  out << "{\"kind\": \"cpu\", \"index\": 0, \"name\": " << quoted(m.name) << ", \"uuid\": " << quoted(m.uuid)
      << ", \"cores\": " << m.cores << ", \"logical_cpus\": " << m.logical << ", \"threads\": " << m.cpus.size()
      << ", \"sockets\": " << m.sockets << ", \"numa_nodes\": " << m.nodes << ", \"l1_bytes\": " << m.l1
      << ", \"l2_bytes\": " << m.l2 << ", \"l3_bytes\": " << m.l3 << ", \"mem_total_bytes\": " << m.memory_total
      << ", \"isa\": [" << isa << "]}";
  return out.str();
}

}  // namespace bench
