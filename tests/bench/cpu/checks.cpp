#include "checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../../../bench/cpu/machine.hpp"
#include "../../../bench/cpu/reference.hpp"
#include "../../../bench/kernels/mma.cuh"
#include "../../../bench/kernels/tcgen05.cuh"
#include "../../../bench/kernels/wgmma.cuh"
#include "../../../bench/runner/data.hpp"

namespace {

using bench::Row;
using bench::Shape;
using Words = std::vector<uint32_t>;
constexpr unsigned kBlocks = 2;
constexpr uint32_t kTiles = 6;

bool contains(const char* text, const char* part) { return std::string_view(text).find(part) != std::string_view::npos; }
bool in_shared(const Row& row) { return row.shape == Shape::shared || row.shape == Shape::pair; }
bool global(const Row& row) { return row.shape != Shape::compute && !in_shared(row); }

// A launch of two blocks and all it touches.
struct Problem {
  alignas(32) Words in, in2, dst, out;
  std::vector<bench::Stamp> stamps{kBlocks};
  bench::Args args{};
  size_t tile_words;

  explicit Problem(const Row& row) : tile_words(size_t(row.bytes) / row.streams * row.threads / 4) {
    bench::Random random(7);
    if (global(row)) {
      for (Words* array : {&in, &in2})
        for (size_t i = 0; i < kTiles * tile_words; ++i)
          array->push_back(row.streams == 3 ? bench::bit_cast<uint32_t>(float(random.real(1, 2))) : random.word());
      dst.resize(in.size());
    } else {
      in = bench::operands(row, 7, false);
    }
    out.resize(size_t(row.results) * row.threads * kBlocks);
    args = {aligned(in), aligned(in2), aligned(dst), out.data(), stamps.data(), 0, kTiles, kBlocks, 0};
    if (row.shape == Shape::l1) {  // own windows
      args.tiles = 1;
      args.stride = 0;
      args.block_bytes = tile_words * 4;
    }
  }
  // 32-byte loads want aligned arrays; a gap behind each keeps one array's end from being the next one's begin.
  static uint32_t* aligned(Words& words) {
    const Words values = words;
    words.reserve(values.size() + (1 << 18));
    size_t shift = 0;
    while (reinterpret_cast<uintptr_t>(words.data() + shift) % 32) ++shift;
    words.insert(words.begin(), shift, 0);
    return words.data() + shift;
  }
  const uint32_t* in_words() const { return static_cast<const uint32_t*>(args.in); }
  bench::cpu::Counted run(const Row& row, uint32_t trips) {
    using bench::cpu::machine;
    machine.forget();
    for (const Words* array : {&in, &in2, &dst}) machine.allow(array->data(), array->size() * 4);
    machine.counted = {};
    std::fill(dst.begin(), dst.end(), 0);  // where reductions begin
    args.trips = trips;
    bench::run_reference(row, args, kBlocks);
    return machine.counted;
  }
};

std::string wrong(const char* what, double got, double wanted) {
  char text[160];
  std::snprintf(text, sizeof text, "%s is %.9g, not %.9g", what, got, wanted);
  return text;
}

uint32_t sum_of(const uint32_t* words, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

// Reads: every tile that Args says (table.hpp) counted once per visit.  Writes: what must stand in the tiles.
std::string check_memory(const Row& row, const Problem& problem) {
  uint32_t wanted = 0;
  std::map<uint32_t, uint32_t> visited;  // how often
  for (uint32_t block = 0; block < kBlocks; ++block)
    for (uint32_t t = 0; t < problem.args.trips; ++t) {
      const uint32_t tile = (block + t * problem.args.stride) % problem.args.tiles;
      ++visited[tile];
      wanted +=
          sum_of(problem.in_words() + block * (problem.args.block_bytes / 4) + tile * problem.tile_words, problem.tile_words);
    }
  const bool reduces = contains(row.ceiling, ".red"), writes = row.streams > 1 || reduces || contains(row.symbol, "write");
  const uint32_t got = sum_of(problem.out.data(), problem.out.size());
  if (!writes) return got == wanted ? "" : wrong("the sum of all words", got, wanted);
  const uint32_t* dst = static_cast<const uint32_t*>(problem.args.dst);
  const float* x = static_cast<const float*>(problem.args.in);
  const float* y = static_cast<const float*>(problem.args.in2);
  for (const auto& [tile, times] : visited)
    for (size_t i = tile * problem.tile_words; i < (tile + 1) * problem.tile_words; ++i) {
      constexpr uint32_t kMasks[4] = {0, 0x85ebca6bu, 0xc2b2ae35u, 0x27d4eb2fu};
      const uint32_t word = reduces            ? times * static_cast<uint32_t>(i % problem.tile_words + 1)
                            : row.streams == 3 ? bench::bit_cast<uint32_t>(std::fmaf(y[i], 0.4f, x[i]))
                            : row.streams == 2 ? problem.in_words()[i]
                                               : static_cast<uint32_t>(i / 4) * 0x9e3779b1u ^ kMasks[i % 4];
      if (dst[i] != word) return wrong("a written word", dst[i], word);
    }
  return "";
}

// Loads of windows that are as the operands; of a pair each vector's first word has its block's number added.
std::string check_shared(const Row& row, const Problem& problem) {
  for (uint32_t block = 0; block < kBlocks; ++block) {
    uint32_t wanted = 0;
    for (uint32_t t = 0; t < problem.args.trips; ++t)
      for (int thread = 0; thread < row.threads; ++thread)
        for (int i = 0; i < 8; ++i)
          wanted += sum_of(problem.in_words() + ((thread + 32 * t) % 1024 + i * 128) * 4, 4) +
                    (row.shape == Shape::pair ? 1 - block : 0);
    const uint32_t got = sum_of(problem.out.data() + size_t(block) * row.threads, row.threads);
    if (got != wanted) return wrong("the sum of all words", got, wanted);
  }
  return "";
}

// What stood in each word before its t-th addition, summed.
std::string check_atomics(const Row& row, const Problem& problem) {
  for (uint32_t at = 0; at < problem.out.size(); ++at) {
    const uint32_t thread = at % row.threads;
    uint32_t wanted = 0;
    for (uint32_t t = 0; t < problem.args.trips; ++t)
      for (uint32_t i = 0; i < 8; ++i) wanted += problem.in_words()[thread + i * row.threads] + t * (thread + i + 1);
    if (problem.out[at] != wanted) return wrong("a thread's sum", problem.out[at], wanted);
  }
  return "";
}

std::vector<double> results(const Row& row, const Words& words) {
  std::vector<double> found;
  for (size_t i = 0; i < words.size(); ++i) switch (row.result) {
      case bench::Result::bits: found.push_back(static_cast<int32_t>(words[i])); break;
      case bench::Result::fp32: found.push_back(bench::bit_cast<float>(words[i])); break;
      case bench::Result::fp16: found.push_back(bench::decode_half(words[i])); break;
      case bench::Result::fp16x2:
        found.push_back(bench::decode_half(words[i]));
        found.push_back(bench::decode_half(words[i] >> 16));
        break;
      case bench::Result::bf16x2:
        found.push_back(bench::decode_bfloat(words[i]));
        found.push_back(bench::decode_bfloat(words[i] >> 16));
        break;
      case bench::Result::fp64:
        if (i % 2) found.push_back(bench::bit_cast<double>(uint64_t{words[i]} << 32 | words[i - 1]));
        break;
    }
  return found;
}

// Chains stay finite and bounded, and differ from thread to thread.
std::string check_chains(const Row& row, const Problem& problem) {
  const std::vector<double> found = results(row, problem.out);
  std::set<double> distinct;
  for (double value : found) {
    if (!(std::fabs(value) <= 3) && row.result != bench::Result::bits) return wrong("a result", value, 3);
    distinct.insert(value);
  }
  return distinct.size() >= 20 ? "" : wrong("the number of different results", double(distinct.size()), 20);
}

template <class T>
T first_chain(const Problem& problem, T (*step)(T, T, T), int steps) {
  const T* in = static_cast<const T*>(problem.args.in);
  T x = in[2 * 256];
  for (int i = 0; i < steps; ++i) x = step(x, in[0], in[256]);
  return x;
}
// The first thread's first chain, by a loop of one's own.
std::string check_scalar(const Row& row, const Problem& problem) {
  const std::string_view name = row.symbol;
  const int unroll = name == "bench_fp32_fma_xxb" ? 60 : name == "bench_fp64_nofma" || name == "bench_fp32_nofma" ? 16 : 32;
  const int steps = static_cast<int>(problem.args.trips) * unroll;
  double wanted = NAN;
  if (name == "bench_fp64_fma_xxb")
    wanted = first_chain<double>(problem, [](double x, double, double b) { return std::fma(x, x, b); }, steps);
  if (name == "bench_fp64_nofma")
    wanted = first_chain<double>(problem, [](double x, double, double b) { return x * x + b; }, steps);
  if (name == "bench_fp32_fma_xxb")
    wanted = first_chain<float>(problem, [](float x, float, float b) { return std::fmaf(x, x, b); }, steps);
  if (name == "bench_fp32_nofma")
    wanted = first_chain<float>(problem, [](float x, float, float b) { return x * x + b; }, steps);
  if (name == "bench_int32_mad")
    wanted = static_cast<int32_t>(
        first_chain<uint32_t>(problem, [](uint32_t x, uint32_t a, uint32_t b) { return x * a + b; }, steps));
  const double got = results(row, problem.out)[0];
  return std::isnan(wanted) || got == wanted ? "" : wrong("the first result", got, wanted);
}

// Tensor kernels leave A*B.  The sum of all elements of a product is the sum
// over k of A's column sums times B's row sums: that asks for no layout of the
// result. Where what is held of a sparse A stood, as kMetadata says of each
// four chunks, and block scales, from the words themselves.
int position(int held, int per_register) {
  constexpr int kOfFour[8] = {2, 3, 1, 2, 0, 3, 0, 1}, kOfTwo[4] = {1, 0, 0, 1};
  return per_register == 1 ? held * 2 + kOfTwo[held % 4] : held / 2 * 4 + kOfFour[held % 8];
}
template <class Tag>
double factor(uint32_t word, int k) {
  const uint32_t byte = word >> 8 * (k * Tag::kScales / Tag::kK % 4);
  return Tag::kScaleBase == 0x30303030u ? 0.5 + (byte & 7) / 16.0 : byte & 1 ? 1.0 : 0.5;
}
template <class Tag>
double warp_product_sum(const typename Tag::Input* in) {
  constexpr int kE = Tag::Element::kPerRegister, kH = Tag::kM / 8, kStride = Tag::kAllA + Tag::kAllB;
  const auto part = [](auto word, int e) { return bench::cpu::element(typename Tag::Element{}, word, e); };
  double total = 0;
  for (int held = 0; held < Tag::kK / Tag::kSparse; ++held) {
    const int k = Tag::kSparse == 2 ? position(held, kE) : held, q = held / kE % 4, r = held / (4 * kE), of = k / kE % 4;
    double a = 0, b = 0;
    for (int g = 0; g < 8; ++g) {
      for (int h = 0; h < kH; ++h) {
        const double scale = Tag::kScales ? factor<Tag>(uint32_t(in[(g * 4 + h) * kStride + Tag::kA]), k) : 1;
        a += scale * part(in[(g * 4 + q) * kStride + r * kH + h], held % kE);
      }
      const double scale = Tag::kScales ? factor<Tag>(uint32_t(in[g * 4 * kStride + Tag::kAllA + Tag::kB]), k) : 1;
      b += scale * part(in[(g * 4 + of) * kStride + Tag::kAllA + k / (4 * kE)], k % kE);
    }
    total += a * b;
  }
  return total;
}
// Element i of 16 bytes; the bits of FP6 run on through words.
template <class Element>
double in_bytes(const uint32_t* words, int i) {
  if (std::is_same_v<Element, bench::Fp6Packed>) {
    const uint64_t low = words[6 * i / 32], high = 6 * i / 32 < 3 ? words[6 * i / 32 + 1] : 0;
    return bench::decode<3, 2>((low | high << 32) >> 6 * i % 32 & 63);
  }
  using Plain = std::conditional_t<std::is_same_v<Element, bench::Fp6Packed>, bench::Fp6, Element>;
  return bench::cpu::element(Plain{}, words[i / Element::kPerRegister], i % Element::kPerRegister);
}
template <class Tag>
double async_product_sum(const uint32_t* in, int rows, int columns) {
  constexpr int kChunk = 4 * Tag::Element::kPerRegister, kWords = Tag::kRowBytes / 4, kFactors = Tag::kK == 96 ? 32 : 256;
  const uint32_t* all_b = in + 4 * rows * kWords;
  double total = 0;
  for (int slice = 0; slice < 4; ++slice)
    for (int k = 0; k < Tag::kK; ++k) {
      const auto column_sum = [&](const uint32_t* tile, int height, const uint32_t* factors) {
        double sum = 0;
        for (int row = 0; row < height; ++row) {
          double scale = 1;
          if constexpr (Tag::kScales > 0) scale = factor<Tag>(factors[row % kFactors], k);
          const uint32_t* words = tile + row / 8 * 8 * kWords + k / kChunk * 32 + row % 8 * 4;
          sum += scale * in_bytes<typename Tag::Element>(words, k % kChunk);
        }
        return sum;
      };
      total += column_sum(in + slice * rows * kWords, rows, in) * column_sum(all_b + slice * columns * kWords, columns, all_b);
    }
  return total;
}
// The model rounds accumulators as their format does, and sums products in FP64.
double tolerance(const Row& row) {
  return row.result == bench::Result::fp16x2 || row.result == bench::Result::fp16 ? 1e-3 : row.result == bench::Result::fp64 ? 1e-12 : 1e-6;
}
std::string near(double got, double wanted, double tolerance) {
  return std::fabs(got - wanted) <= tolerance ? "" : wrong("the sum of the product's elements", got, wanted);
}

template <class Tag>
std::string check_mma(const Row& row, const Problem& problem) {
  if (Tag::kVolta) return "";
  const auto* in = static_cast<const typename Tag::Input*>(problem.args.in);
  double wanted = 0, got = 0, size = 0;
  for (int warp = 0; warp < row.threads / 32; ++warp)
    wanted += warp_product_sum<Tag>(in + warp * 32 * (Tag::kAllA + Tag::kAllB));
  const std::vector<double> found = results(row, problem.out);
  for (double value : found) got += value, size += std::fabs(value);
  const double copies = kBlocks * row.operations / (Tag::kOperations * 8);  // blocks x chains
  return near(got, wanted * copies, tolerance(row) * size);
}
template <class Tag>
std::string check_async(const Row& row, const Problem& problem) {
  const bool wgmma = contains(row.symbol, "wgmma");
  const double wanted = async_product_sum<Tag>(problem.in_words(), wgmma ? 64 : 128, 256) * kBlocks * (wgmma ? 2 : 1);
  double got = 0, size = 0;
  for (double value : results(row, problem.out)) got += value, size += std::fabs(value);
  return near(got, wanted, tolerance(row) * size);
}

// Eight warps of other A, of 16 rows, and one B.
template <class Tag>
std::string check_wgmma_sparse(const Row& row, const Problem& problem) {
  constexpr int kE = Tag::Element::kPerRegister;
  const uint32_t *in = problem.in_words(), *all_b = in + 256 * 16;
  double wanted = 0, got = 0, size = 0;
  for (int slice = 0; slice < 4; ++slice)
    for (int held = 0; held < Tag::kK / 2; ++held) {
      const int k = position(held, kE), q = held / kE % 4, r = held / (4 * kE);
      double a = 0, b = 0;
      for (int group = 0; group < 64; ++group)
        for (int h = 0; h < 2; ++h)
          a += in_bytes<typename Tag::Element>(in + (group * 4 + q) * 16 + slice * 4, (r * 2 + h) * kE + held % kE);
      for (int column = 0; column < 256; ++column)
        b += in_bytes<typename Tag::Element>(all_b + slice * 4096 + column / 8 * 128 + k / (4 * kE) * 32 + column % 8 * 4,
                                             k % (4 * kE));
      wanted += a * b;
    }
  for (double value : results(row, problem.out)) got += value, size += std::fabs(value);
  return near(got, wanted * kBlocks, tolerance(row) * size);
}

std::string check_tensor(const Row& row, Problem& problem) {
  const std::string_view name = row.symbol;
#define BENCH_CHECK(NAME, CEILING, VARIANT, PIPE, TAG, ...) \
  if (name == "bench_" #NAME) return check_mma<bench::TAG>(row, problem);
  BENCH_MMA_KERNELS(BENCH_CHECK)
#undef BENCH_CHECK
#define BENCH_CHECK(NAME, CEILING, VARIANT, PIPE, TAG, ...) \
  if (name == "bench_" #NAME) return check_async<bench::TAG>(row, problem);
  BENCH_WGMMA_KERNELS(BENCH_CHECK)
  BENCH_TCGEN05_KERNELS(BENCH_CHECK)
#undef BENCH_CHECK
#define BENCH_CHECK(NAME, CEILING, VARIANT, PIPE, TAG, ...) \
  if (name == "bench_" #NAME) return check_wgmma_sparse<bench::TAG>(row, problem);
  BENCH_WGMMA_SPARSE_KERNELS(BENCH_CHECK)
#undef BENCH_CHECK
  return "no check of this kernel";
}

// After two trips the accumulators are back where they were, and the last product is left, as after none.
std::string check_return(const Row& row, Problem& problem) {
  const std::vector<double> some = results(row, problem.out);
  problem.run(row, 0);
  if (row.result == bench::Result::bits) return "";  // integers walk by design
  const std::vector<double> none = results(row, problem.out);
  double largest = 0;
  for (double value : none) largest = std::fmax(largest, std::fabs(value));
  for (size_t i = 0; i < none.size(); ++i)
    if (std::fabs(none[i] - some[i]) > 20 * tolerance(row) * largest) return wrong("an accumulator", some[i], none[i]);
  return "";
}

}  // namespace

void check_row(const Row& row) {
  Problem problem(row);
  const uint32_t more = global(row) ? 8 : 1;  // nine trips of two blocks meet all tiles, and all slots of a ring more than once
  const bench::cpu::Counted once = problem.run(row, 1), then = problem.run(row, 1 + more);
  const double threads = double(row.threads) * kBlocks * more;
  const double operations = (then.operations - once.operations) / threads;
  const double all = in_shared(row) ? then.shared_bytes - once.shared_bytes : then.global_bytes - once.global_bytes;
  const double bytes = all / threads;
  std::string reason;
  if (std::string_view(row.pipe).substr(0, 6) == "tensor") {
    reason = check_return(row, problem);
    if (reason.empty()) reason = check_tensor(row, problem);
  } else if (in_shared(row)) {
    reason = contains(row.symbol, "atom") ? check_atomics(row, problem) : check_shared(row, problem);
  } else if (global(row)) {
    reason = check_memory(row, problem);
  } else {
    reason = check_chains(row, problem);
    if (reason.empty()) reason = check_scalar(row, problem);
  }
  std::printf("{\"symbol\": \"%s\", \"operations\": %.17g, \"bytes\": %.17g, \"reason\": \"%s\"}\n", row.symbol, operations,
              bytes, reason.c_str());
}
