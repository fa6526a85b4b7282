// One kernel: sized for its level, checked against the CPU model, then timed.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <optional>
#include <string_view>

#include "../cpu/reference.hpp"
#include "affinity.hpp"
#include "data.hpp"
#include "runner.hpp"
#include "verify.hpp"

namespace bench {
namespace {

#if defined(__CUDACC__)
#define BENCH_LAUNCH(KERNEL, ...) KERNEL<<<1024, 256>>>(__VA_ARGS__)
#else
#define BENCH_LAUNCH(KERNEL, ...) KERNEL(__VA_ARGS__)
#endif

__global__ void fill_kernel(uint32_t* words, size_t count, uint64_t seed, bool zeros, bool reals) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const uint32_t word = random_word(seed, i);
    words[i] = zeros ? 0 : reals ? 0x3f800000u | word >> 9 : word;  // reals lie in [1, 2)
  }
}

__global__ void sum_kernel(const uint32_t* words, size_t count, uint32_t* total) {
  uint32_t sum = 0;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    sum += words[i];
  atomicAdd(total, sum);
}

}  // namespace

void fill(const Buffer& buffer, uint64_t seed, bool zeros, bool reals) {
  if (buffer.bytes() == 0) return;
  BENCH_LAUNCH(fill_kernel, buffer.as<uint32_t>(), buffer.bytes() / 4, seed, zeros, reals);
  check(cudaGetLastError(), "filling memory");
  check(cudaDeviceSynchronize(), "filling memory");
}

uint32_t word_sum(const Buffer& buffer, size_t bytes) {
  const Buffer total(4);
  uint32_t sum = 0;
  check(cudaMemset(total.as(), 0, 4), "cudaMemset");
  BENCH_LAUNCH(sum_kernel, buffer.as<uint32_t>(), bytes / 4, total.as<uint32_t>());
  check(cudaGetLastError(), "summing memory");
  check(cudaMemcpy(&sum, total.as(), 4, cudaMemcpyDeviceToHost), "summing memory");
  return sum;
}

namespace {

bool is_grid(const Row& row) { return row.shape == Shape::dram_grid; }
bool in_dram(const Row& row) { return row.shape == Shape::dram || is_grid(row); }
bool on_host(const Row& row) { return row.shape == Shape::zero_copy || row.shape == Shape::coherent; }
bool in_global(const Row& row) { return in_dram(row) || on_host(row) || row.shape == Shape::l2 || row.shape == Shape::l1; }
size_t tile_bytes(const Row& row) { return static_cast<size_t>(row.bytes) / row.streams * row.threads; }
bool named(const char* text, const char* part) { return std::string_view(text).find(part) != std::string_view::npos; }
bool writes(const Row& row) { return row.streams > 1 || named(row.symbol, "write") || named(row.ceiling, ".red"); }
bool reads(const Row& row) { return row.streams > 1 || !writes(row); }

// How many blocks, tiles and trips; a pass is the least number of trips that meets every tile equally often.
struct Plan {
  unsigned blocks = 1;
  uint32_t tiles = 1, stride = 0;
  uint64_t pass = 1, block_bytes = 0;
  size_t array_bytes = 0;  // of each global array
};

Plan spread(const Row& row, unsigned blocks, size_t bytes) {  // over memory: tile after tile, round robin over blocks
  Plan plan;
  plan.blocks = blocks;
  const size_t tiles = std::min<size_t>(bytes / tile_bytes(row), UINT32_MAX / 2) / blocks * blocks;
  plan.tiles = static_cast<uint32_t>(std::max<size_t>(tiles, blocks));
  plan.stride = blocks;
  plan.pass = plan.tiles / blocks;
  plan.array_bytes = plan.tiles * tile_bytes(row);
  return plan;
}

Plan make_plan(const Row& row, const Device& device, unsigned blocks) {
  size_t free_bytes = 0, total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "asking for free GPU memory");
  // What stays in L2 from one pass to the next is then less than 1/64 of it.
  const size_t large = std::min(std::max(size_t{2} << 30, 64 * device.l2_bytes), free_bytes / 2);
  switch (row.shape) {
    case Shape::dram: return spread(row, blocks, large / row.streams);
    case Shape::dram_grid: {
      const size_t bytes = large / row.streams;
      return spread(row, static_cast<unsigned>(bytes / tile_bytes(row)), bytes);
    }
    case Shape::zero_copy:
    case Shape::coherent: return spread(row, blocks, std::min(large, size_t{256} << 20));
    case Shape::l2: return spread(row, blocks, device.l2_bytes / 4 / row.streams);
    case Shape::l1: {
      Plan plan;
      plan.blocks = blocks;
      plan.block_bytes = tile_bytes(row);
      plan.array_bytes = plan.block_bytes * blocks;
      return plan;
    }
    default: {
      Plan plan;
      plan.blocks = blocks;
      return plan;
    }
  }
}

// Memory of one launch.
struct Memory {
  Buffer in, in2, dst, out, stamps;
  Memory(const Row& row, const Plan& plan, const Options& options) {
    const Where where = row.shape == Shape::zero_copy  ? Where::pinned_host
                        : row.shape == Shape::coherent ? Where::ordinary_host
                                                       : Where::device;
    const bool reals = row.data == Data::reals;
    if (!in_global(row)) {
      const std::vector<uint32_t> words = operands(row, options.seed, options.zeros);
      in = Buffer(words.size() * 4);
      check(cudaMemcpy(in.as(), words.data(), in.bytes(), cudaMemcpyHostToDevice), "copying operands");
    } else {
      if (reads(row)) in = Buffer(plan.array_bytes, where);
      if (row.streams == 3) in2 = Buffer(plan.array_bytes, where);
      if (writes(row)) dst = Buffer(plan.array_bytes, where);
      fill(in, options.seed, options.zeros, reals);
      fill(in2, options.seed + 1, options.zeros, reals);
    }
    out = Buffer(size_t(row.results) * 4 * row.threads * plan.blocks);
    stamps = Buffer(plan.blocks * sizeof(Stamp));
  }
  void clear() const {
    if (out.bytes()) check(cudaMemset(out.as(), 0xff, out.bytes()), "cudaMemset");
    if (dst.bytes()) check(cudaMemset(dst.as(), 0, dst.bytes()), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
  }
};

Args arguments(const Plan& plan, const Memory& memory, uint64_t trips) {
  return {memory.in.as(),
          memory.in2.as(),
          memory.dst.as(),
          memory.out.as<uint32_t>(),
          memory.stamps.as<Stamp>(),
          static_cast<uint32_t>(trips),
          plan.tiles,
          plan.stride,
          plan.block_bytes};
}

// How a kernel is launched; `cluster` holds what the configuration points to.
cudaLaunchConfig_t configuration(const Row& row, dim3 blocks, size_t shared, cudaLaunchAttribute& cluster) {
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kPair;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t found{};
  found.gridDim = blocks;
  found.blockDim = dim3(row.threads);
  found.dynamicSmemBytes = shared;
  found.attrs = &cluster;
  found.numAttrs = row.shape == Shape::pair;
  return found;
}
double launch(const Measurable& item, const Plan& plan, Args args, size_t shared, Events& events) {
  const dim3 blocks(plan.blocks, is_grid(item.row) ? args.trips : 1);
  if (is_grid(item.row)) args.trips = 1;
  void* pointers[] = {&args};
  cudaLaunchAttribute cluster;
  const cudaLaunchConfig_t how = configuration(item.row, blocks, shared, cluster);
  events.start();
  check(cudaLaunchKernelExC(&how, item.kernel, pointers), "launching the kernel");
  return events.stop();
}

// Host memory at addresses as even as the GPU's: the model takes whole vectors from it.
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
class HostWords {
 public:
  explicit HostWords(size_t bytes, uint32_t value = 0) : count_(bytes / 4) {
    data_.reset(static_cast<uint32_t*>(std::aligned_alloc(256, (bytes + 256) / 256 * 256)));
    if (!data_) throw Failure("allocating host memory: there is none left");
    std::fill(data_.get(), data_.get() + count_, value);
  }
  explicit HostWords(const Buffer& buffer) : HostWords(buffer.bytes()) {
    if (count_) check(cudaMemcpy(data(), buffer.as(), buffer.bytes(), cudaMemcpyDefault), "copying results");
  }
  uint32_t* data() const { return data_.get(); }
  std::vector<uint32_t> words() const { return {data(), data() + count_}; }

 private:
  size_t count_;
  std::unique_ptr<uint32_t, FreeMemory> data_;
};

// A launch of two blocks, or a block per tile, small enough for the model; throws when the GPU's results differ from the
// model's.
void verify(const Measurable& item, const Options& options) {
  const Row& row = item.row;
  Plan plan;
  plan.blocks = 2;
  if (row.shape == Shape::l1) {
    plan.block_bytes = tile_bytes(row);
    plan.array_bytes = 2 * plan.block_bytes;
  } else if (in_global(row)) {
    plan = spread(row, is_grid(row) ? 6 : 2, 6 * tile_bytes(row));
  }
  const uint64_t trips = in_global(row) ? 9 : 2;
  const Memory memory(row, plan, options);
  memory.clear();
  Events events;
  launch(item, plan, arguments(plan, memory, trips), item.row.shared_bytes, events);
  const HostWords in(memory.in), in2(memory.in2), dst(memory.dst.bytes()), out(memory.out.bytes(), 0xffffffffu);
  std::vector<Stamp> stamps(plan.blocks);
  const Args args = {in.data(),  in2.data(),  dst.data(),      out.data(), stamps.data(), static_cast<uint32_t>(trips),
                     plan.tiles, plan.stride, plan.block_bytes};
  if (!run_reference(row, args, plan.blocks)) throw Failure("no model of the kernel");
  Row exact = row;
  exact.result = Result::bits;
  exact.tolerance = 0;
  std::string wrong = compare(row, HostWords(memory.out).words(), out.words());
  if (wrong.empty()) wrong = compare(exact, HostWords(memory.dst).words(), dst.words());
  if (!wrong.empty()) throw Failure(std::string(row.symbol) + " computes something else than its model: " + wrong);
}

std::vector<Stamp> stamps_of(const Memory& memory, unsigned blocks) {
  std::vector<Stamp> stamps(blocks);
  check(cudaMemcpy(stamps.data(), memory.stamps.as(), memory.stamps.bytes(), cudaMemcpyDeviceToHost), "copying clocks");
  return stamps;
}

// Throws when an SM got more blocks than its share: the roof would be that of fewer SMs.
void check_places(const std::vector<Stamp>& stamps, int sms) {
  std::map<uint64_t, size_t> blocks;
  for (const Stamp& stamp : stamps) ++blocks[stamp.sm];
  const size_t share = (stamps.size() + sms - 1) / sms;
  for (const auto& [sm, count] : blocks)
    if (count > share)
      throw Failure("SM " + std::to_string(sm) + " got " + std::to_string(count) + " blocks where " +
                                     std::to_string(share) + " were meant: does something else use the GPU");
}

// The median over SMs, of each from its first block's start to its last block's end.
double clock_mhz(const std::vector<Stamp>& stamps) {
  std::map<uint64_t, Stamp> spans;
  for (const Stamp& stamp : stamps) {
    Stamp& span = spans.emplace(stamp.sm, stamp).first->second;
    if (stamp.start_ns < span.start_ns) span.start_ns = stamp.start_ns, span.start_cycles = stamp.start_cycles;
    if (stamp.end_ns > span.end_ns) span.end_ns = stamp.end_ns, span.end_cycles = stamp.end_cycles;
  }
  std::vector<double> rates;
  for (const auto& [sm, span] : spans)
    if (span.end_ns > span.start_ns && span.end_cycles > span.start_cycles)
      rates.push_back(1e3 * double(span.end_cycles - span.start_cycles) / double(span.end_ns - span.start_ns));
  if (rates.empty()) return 0;
  std::nth_element(rates.begin(), rates.begin() + rates.size() / 2, rates.end());
  return rates[rates.size() / 2];
}

// What a timed launch leaves, as one number; for reads the sum of all words read, which is known beforehand.
uint32_t trace(const Memory& memory) {
  const Buffer& left = memory.dst.bytes() ? memory.dst : memory.out;
  return word_sum(left, left.bytes());
}
uint32_t expected(const Row& row, const Plan& plan, const Memory& memory, uint64_t trips, uint32_t first) {
  if (!in_global(row) || row.streams == 3 || !reads(row)) return first;  // what the first launch left; the model checked it
  const uint32_t once = word_sum(memory.in, memory.in.bytes());
  if (row.streams == 2) return once;
  const uint64_t met = row.shape == Shape::l1 ? trips : trips * plan.blocks / plan.tiles;
  return static_cast<uint32_t>(once * met);
}

// Dynamic shared memory of a block; one block per SM where that is meant, because two would not fit.
size_t shared_bytes(const Row& row, const Device& device) {
  if (row.blocks != 1 || row.shape == Shape::l1) return row.shared_bytes;
  const size_t alone = std::min(device.properties.sharedMemPerMultiprocessor / 2, device.properties.sharedMemPerBlockOptin);
  return std::max<size_t>(row.shared_bytes, alone);
}

unsigned resident_blocks(const Measurable& item, const Device& device) {
  const Row& row = item.row;
  const size_t shared = shared_bytes(row, device);
  if (shared > device.properties.sharedMemPerBlockOptin)
    throw Failure("a block wants " + std::to_string(shared) + " bytes of shared memory, and this GPU has " +
                                   std::to_string(device.properties.sharedMemPerBlockOptin));
  if (shared > 48 * 1024)
    check(cudaFuncSetAttribute(item.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
          "reserving shared memory");
  if (row.shape == Shape::l1)
    check(cudaFuncSetAttribute(item.kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 0), "preferring L1");
  int blocks = 0;
  if (row.shape == Shape::pair) {  // not on all SMs where a group of them has an odd number
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t how = configuration(row, dim3(kPair), shared, cluster);
    check(cudaOccupancyMaxActiveClusters(&blocks, item.kernel, &how), "asking for the occupancy");
    if (blocks == 0) throw Failure("no pair of its blocks fits on this GPU");
    return static_cast<unsigned>(blocks * kPair);
  }
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, item.kernel, row.threads, shared), "asking for the occupancy");
  if (blocks < std::max(1, row.blocks)) throw Failure("its blocks do not fit on an SM of this GPU");
  if (row.blocks != 0) blocks = row.blocks;
  if (row.shape == Shape::l2) {  // one tile per block, and no more blocks than tiles fit
    const size_t fitting = device.l2_bytes / 4 / (tile_bytes(row) * row.streams * device.sms);
    blocks = std::min(blocks, static_cast<int>(std::max<size_t>(1, fitting)));
  }
  if (row.shape == Shape::l2 && size_t(blocks) * device.sms * tile_bytes(row) * row.streams > device.l2_bytes / 4 * 3)
    throw Failure("this L2 cache is too small for what is in flight");
  return static_cast<unsigned>(blocks * device.sms / row.cluster * row.cluster);
}

}  // namespace

Summary measure_kernel(const Measurable& item, const Device& device, const Options& options, const Report& report) {
  const Row& row = item.row;
  if (row.shape == Shape::coherent && !device.properties.pageableMemoryAccessUsesHostPageTables)
    throw Failure(std::string(row.variant) + " is unsupported on this GPU: it has no coherent link to the host");
  std::optional<NextToGpu> near;
  if (on_host(row)) near.emplace(device);
  const Plan plan = make_plan(row, device, resident_blocks(item, device));
  static std::set<std::string_view> verified;  // in this process
  if (verified.count(row.symbol) == 0 || options.zeros) verify(item, options);
  if (!options.zeros) verified.insert(row.symbol);
  const Memory memory(row, plan, options);
  memory.clear();
  Events events;
  const size_t shared = shared_bytes(row, device);
  const auto seconds_for = [&](uint64_t trips) { return launch(item, plan, arguments(plan, memory, trips), shared, events); };
  // Lines written last stay in L2 and never reach DRAM within the trial: of ten passes that is less than 1/640.
  const uint64_t unit = in_dram(row) && writes(row) ? 10 * plan.pass : plan.pass;
  uint64_t trips = (options.trips + plan.pass - 1) / plan.pass * plan.pass;
  if (trips == 0) {
    seconds_for(plan.pass);
    trips = calibrate(unit, is_grid(row) ? 65535 : UINT32_MAX, options.min_milliseconds, seconds_for);
  }
  memory.clear();
  seconds_for(trips);
  const uint32_t wanted = expected(row, plan, memory, trips, trace(memory));
  const double per_trip = std::string_view(row.unit) == "B/s" ? row.bytes : row.operations;
  const double work = per_trip * double(trips) * row.threads * plan.blocks;
  for (int i = 0; i < options.trials; ++i) {
    memory.clear();
    rest(options);
    const double begin = now();
    const double seconds = seconds_for(trips);
    const double end = now();
    const std::vector<Stamp> stamps = stamps_of(memory, plan.blocks);
    if (!is_grid(row)) check_places(stamps, device.sms);
    if (!report({seconds, work, clock_mhz(stamps), trace(memory) == wanted, begin, end})) break;
  }
  return {plan.blocks, static_cast<unsigned>(row.threads), double(trips)};
}

}  // namespace bench
