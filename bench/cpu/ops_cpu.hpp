// The primitives of kernels/ops_gpu.cuh on the model: same results, and counted.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "../kernels/shapes.hpp"
#include "machine.hpp"
#include "numbers.hpp"

namespace bench::cpu {

inline uint32_t thread() { return machine.thread; }
inline uint32_t threads() { return machine.threads; }
inline uint32_t block() { return machine.block; }
inline uint32_t blocks() { return machine.blocks; }
inline void barrier() { machine.barrier(); }
inline uint32_t multiprocessor() { return machine.block; }
inline uint64_t clock_cycles() { return 0; }
inline uint64_t clock_nanoseconds() { return 0; }

// ---- arithmetic; a division counts the operations of its compiled fast path (vector.cuh)
template <class T>
inline T counted(double operations, T value) {
  machine.counted.operations += operations;
  return value;
}
inline double multiply_add(double x, double y, double z) { return counted(2, std::fma(x, y, z)); }
inline double multiply(double x, double y) { return counted(1, x * y); }
inline double add(double x, double y) { return counted(1, x + y); }
inline double divide(double x, double y) { return counted(15, x / y); }
inline float multiply_add(float x, float y, float z) { return counted(2, std::fmaf(x, y, z)); }
inline float multiply(float x, float y) { return counted(1, x * y); }
inline float add(float x, float y) { return counted(1, x + y); }
inline float divide(float x, float y) { return counted(10, x / y); }
inline uint32_t multiply_add(uint32_t x, uint32_t y, uint32_t z) { return counted(2, x * y + z); }
inline uint32_t float_bits(float x) { return bit_cast<uint32_t>(x); }
inline float bits_float(uint32_t x) { return bit_cast<float>(x); }

struct HalfFormat {
  static double get(uint32_t bits) { return decode_half(bits); }
  static uint32_t put(double x) { return encode_half(x); }
};
struct BfloatFormat {
  static double get(uint32_t bits) { return decode_bfloat(bits); }
  static uint32_t put(double x) { return encode_bfloat(x); }
};
template <class Format, class F>
inline uint32_t both(uint32_t x, uint32_t y, uint32_t z, F f) {
  const auto one = [&](int shift) {
    return Format::put(f(Format::get(x >> shift), Format::get(y >> shift), Format::get(z >> shift))) << shift;
  };
  return one(0) | one(16);
}
// Products of such short numbers are exact in FP64, and so is nearly every sum: one rounding, as the FMA of the GPU does it.
#define BENCH_PACKED(T, FORMAT)                                                                                         \
  inline T multiply_add(T x, T y, T z) {                                                                                \
    return counted(4, T{both<FORMAT>(x.bits, y.bits, z.bits, [](double a, double b, double c) { return a * b + c; })}); \
  }                                                                                                                     \
  inline T multiply(T x, T y) {                                                                                         \
    return counted(2, T{both<FORMAT>(x.bits, y.bits, 0, [](double a, double b, double) { return a * b; })});            \
  }                                                                                                                     \
  inline T add(T x, T y) {                                                                                              \
    return counted(2, T{both<FORMAT>(x.bits, y.bits, 0, [](double a, double b, double) { return a + b; })});            \
  }
BENCH_PACKED(Half2Value, HalfFormat)
BENCH_PACKED(Bfloat2Value, BfloatFormat)
#undef BENCH_PACKED
inline Float2Value multiply_add(Float2Value x, Float2Value y, Float2Value z) {
  const auto one = [&](int shift) {
    return uint64_t{float_bits(multiply_add(bits_float(static_cast<uint32_t>(x.bits >> shift)),
                                            bits_float(static_cast<uint32_t>(y.bits >> shift)),
                                            bits_float(static_cast<uint32_t>(z.bits >> shift))))}
           << shift;
  };
  return {one(0) | one(32)};
}

// ---- memory
template <Path, class V>
inline void load(V& v, const void* p) {
  machine.check(p, sizeof v);
  machine.counted.global_bytes += sizeof v;
  std::memcpy(&v, p, sizeof v);
}
template <Path>
inline void store(void* p, const Vector4& v) {
  machine.check(p, sizeof v);
  machine.counted.global_bytes += sizeof v;
  std::memcpy(p, &v, sizeof v);
}
inline void reduce(uint32_t* p, uint32_t v) {
  machine.check(p, sizeof v);
  machine.counted.global_bytes += sizeof v;
  *p += v;
}
inline uint32_t after_loads() { return 0; }
inline unsigned char* dynamic_shared() { return machine.shared.data(); }
inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const unsigned char*>(p) - machine.shared.data());
}
inline void load_shared(Vector4& v, uint32_t address) {
  machine.counted.shared_bytes += sizeof v;
  if (address + sizeof v > machine.shared.size()) std::abort();
  std::memcpy(&v, &machine.shared[address], sizeof v);
}
inline void store_shared(uint32_t address, const Vector4& v) {  // no kernel is counted by its stores
  if (address + sizeof v > machine.shared.size()) std::abort();
  std::memcpy(&machine.shared[address], &v, sizeof v);
}
inline uint32_t add_shared(uint32_t address, uint32_t v) {
  machine.counted.shared_bytes += sizeof v;
  uint32_t old;
  std::memcpy(&old, &machine.shared.at(address), sizeof old);
  v += old;
  std::memcpy(&machine.shared.at(address), &v, sizeof v);
  return old;
}
inline void pair_barrier() { machine.cluster_barrier(); }
constexpr uint32_t kOther = 1u << 31;  // in an address of the cluster's shared memory: the other block's
inline uint32_t other_shared_address(uint32_t own) { return own | kOther; }
inline void load_other_shared(Vector4& v, uint32_t address) {
  const std::vector<unsigned char>& from = address & kOther ? machine.peer.shared : machine.shared;
  address &= ~kOther;
  machine.counted.shared_bytes += sizeof v;
  if (address + sizeof v > from.size()) std::abort();
  std::memcpy(&v, &from[address], sizeof v);
}
inline void barrier_init(uint32_t bar) { machine.barriers[bar] = {}; }
inline void barrier_wait(uint32_t bar, uint32_t phase) {
  const auto done = [&] { return machine.barriers[bar].phases % 2 != phase; };
  for (int turn = 0; !done(); ++turn) {
    if (turn == 1000) std::abort();  // nobody will ever arrive
    machine.pause();
  }
}
inline void fence_barrier_init() {}
inline void fence_shared_for_async() {}
inline void bulk_expect(uint32_t bar, uint32_t bytes) { machine.barriers[bar].expected = bytes; }
inline void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  machine.check(from, 16);
  machine.check(static_cast<const char*>(from) + bytes - 16, 16);
  machine.counted.global_bytes += bytes;
  if (to + bytes > machine.shared.size()) std::abort();
  std::memcpy(&machine.shared[to], from, bytes);
  BulkBarrier& at = machine.barriers[bar];
  if (bytes > at.expected) std::abort();
  at.expected -= bytes;
  at.phases += at.expected == 0;
}
inline void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  machine.check(to, 16);
  machine.check(static_cast<char*>(to) + bytes - 16, 16);
  machine.counted.global_bytes += bytes;
  if (from + bytes > machine.shared.size()) std::abort();
  std::memcpy(to, &machine.shared[from], bytes);
}
template <int>
inline void bulk_wait_read() {}
inline void bulk_wait() {}

// ---- tensor cores
inline double element(Half, uint32_t word, int e) { return decode_half(word >> 16 * e); }
inline double element(Bfloat, uint32_t word, int e) { return decode_bfloat(word >> 16 * e); }
inline double element(Tf32, uint32_t word, int) { return bit_cast<float>(word & 0xffffe000u); }
inline double element(Int8, uint32_t word, int e) { return static_cast<int8_t>(word >> 8 * e); }
inline double element(Fp8, uint32_t word, int e) { return decode_fp8(word >> 8 * e); }
inline double element(Fp6, uint32_t word, int e) { return decode_fp6(word >> 8 * e); }
inline double element(Fp4, uint32_t word, int e) { return decode_fp4(word >> 4 * e); }
inline double element(Double, double word, int) { return word; }
inline float accumulate(float c, double sum) { return static_cast<float>(c + sum); }
inline double accumulate(double c, double sum) { return c + sum; }
inline uint32_t accumulate(uint32_t c, double sum) { return c + static_cast<uint32_t>(static_cast<int64_t>(sum)); }
inline uint32_t accumulate_half(uint32_t c, double sum) { return encode_half(decode_half(c) + sum); }

// The k of a held element: the first or second of a chunk of four; for TF32 the one of a pair, and metadata name its halves.
template <class Tag>
inline int sparse_position(int held) {
  constexpr bool kPairs = Tag::Element::kPerRegister > 1;
  const int chunk = kPairs ? held / 2 : held;
  const uint32_t told = kMetadata<typename Tag::Element> >> chunk % 8 * 4;
  return kPairs ? chunk * 4 + (told >> held % 2 * 2 & 3) : chunk * 2 + ((told & 15) == 0xe);
}
// One factor, exactly: UE8M0 a power of two, UE4M3 as FP8 without sign.
template <class Tag>
inline double scale_factor(uint32_t byte) {
  return Tag::kScaleBase == 0x7e7e7e7eu ? decode_ue8m0(byte) : decode_fp8(byte & 0x7f);
}

// Fragments of mma.sync as the PTX manual lays them out.  With g = lane / 4, q = lane % 4, E elements per register and H = M /
// 8: A register r, element e: row g + 8 (r mod H), k = q E + e + 4 E (r / H);  B: k = q E + e + 4 E r, column g; C register i
// (32 bits and more): row g + 8 (i / 2), column 2 q + i mod 2;  packed: row g + 8 i, columns 2 q + e.
template <class Tag>
struct Fragments {
  static constexpr int kE = Tag::Element::kPerRegister, kH = Tag::kM / 8;
  const Machine::Exchange& warp;
  // The elements of A that are held, one after another: of a sparse A the metadata tell which k each is.
  double product(int row, int column) const {
    double sum = 0;
    for (int held = 0; held < Tag::kK / Tag::kSparse; ++held) {
      const int k = Tag::kSparse == 2 ? sparse_position<Tag>(held) : held;
      const double b = warp.b[column * 4 + k / kE % 4][k / (4 * kE) * kE + k % kE];
      sum += this->held(row, held) * b * scale(row, column, k);
    }
    return sum;
  }
  double held(int row, int index) const {
    return warp.a[row % 8 * 4 + index / kE % 4][(index / (4 * kE) * kH + row / 8) * kE + index % kE];
  }
  double scale(int row, int column, int k) const {
    if constexpr (Tag::kScales == 0) return 1;
    const int shift = 8 * (k / (Tag::kK / std::max(1, Tag::kScales)));
    return scale_factor<Tag>(warp.factors[0][row % 8 * 4 + row / 8] >> shift) *
           scale_factor<Tag>(warp.factors[1][column * 4] >> shift);
  }
};

// Volta's m8n8k4: quad pair p of lanes 4p..4p+3 and 16+4p..16+4p+3 multiplies on its own.
inline double volta_product(const Machine::Exchange& warp, int pair, int row, int column) {
  const auto lane = [&](int index) { return pair * 4 + index % 4 + index / 4 * 16; };
  double sum = 0;
  for (int k = 0; k < 4; ++k) sum += warp.a[lane(row)][k] * warp.b[lane(column)][k];
  return sum;
}

template <class Tag>
inline void mma(typename Tag::Register (&c)[Tag::kC], const typename Tag::Input (&a)[Tag::kAllA],
                const typename Tag::Input (&b)[Tag::kAllB]) {
  Machine::Exchange& warp = machine.exchange[thread() / 32];
  const int lane = thread() % 32, g = lane / 4, q = lane % 4;
  constexpr int kE = Tag::Element::kPerRegister;
  for (int i = 0; i < Tag::kA * kE; ++i) warp.a[lane][i] = element(typename Tag::Element{}, a[i / kE], i % kE);
  for (int i = 0; i < Tag::kB * kE; ++i) warp.b[lane][i] = element(typename Tag::Element{}, b[i / kE], i % kE);
  if constexpr (Tag::kScales > 0) {
    warp.factors[0][lane] = a[Tag::kA];
    warp.factors[1][lane] = b[Tag::kB];
  }
  machine.warp_barrier();
  machine.counted.operations += Tag::kOperations;
  for (int i = 0; i < Tag::kC; ++i) {
    if constexpr (Tag::kVolta) {
      const int row = (lane & 1) + (i & 2) + (lane < 16 ? 0 : 4), column = (i & 4) + (lane & 2) + (i & 1);
      c[i] = accumulate(c[i], volta_product(warp, lane % 16 / 4, row, column));
    } else if constexpr (std::is_same_v<typename Tag::Accumulator, Half2>) {
      const Fragments<Tag> f{warp};
      c[i] = accumulate_half(c[i] & 0xffff, f.product(g + 8 * i, 2 * q)) |
             accumulate_half(c[i] >> 16, f.product(g + 8 * i, 2 * q + 1)) << 16;
    } else {
      c[i] = accumulate(c[i], Fragments<Tag>{warp}.product(g + 8 * (i / 2), 2 * q + i % 2));
    }
  }
  machine.warp_barrier();
}

// Element i of 16 bytes.
template <class Element>
inline double packed(Element kind, const unsigned char* bytes, int i) {
  uint32_t word;
  std::memcpy(&word, bytes + i / Element::kPerRegister * 4, 4);
  return element(kind, word, i % Element::kPerRegister);
}
inline double packed(Fp6Packed, const unsigned char* bytes, int i) {
  return decode_fp6(uint32_t(bytes[6 * i / 8] | bytes[6 * i / 8 + 1] << 8) >> 6 * i % 8);
}

// An operand tile in shared memory, rows x K, by its descriptor (strides as the manual defines them without swizzle).
template <class Tag>
inline const std::vector<double>& tile(uint64_t descriptor, int rows) {
  std::vector<double>& values = machine.tiles[descriptor];
  if (!values.empty()) return values;
  const uint32_t start = (descriptor & 0x3fff) << 4, half = (descriptor >> 16 & 0x3fff) << 4,
                 group = (descriptor >> 32 & 0x3fff) << 4;
  constexpr int kChunk = 4 * Tag::Element::kPerRegister;  // elements of 16 bytes
  values.resize(size_t(rows) * Tag::kK);
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < Tag::kK; ++k) {
      const unsigned char* bytes = &machine.shared.at(start + row / 8 * group + k / kChunk * half + row % 8 * 16);
      values[size_t(row) * Tag::kK + k] = packed(typename Tag::Element{}, bytes, k % kChunk);
    }
  return values;
}
template <class Tag>
inline double tile_product(const double* a, const double* b) {
  double sum = 0;
  for (int k = 0; k < Tag::kK; ++k) sum += a[k] * b[k];
  return sum;
}

inline void wgmma_fence() {}
inline void wgmma_wait() {}
template <class Tag, class Register, int N>
inline void wgmma(Register (&c)[N], uint64_t a, uint64_t b) {
  constexpr int kPacked = kAccumulatorsPerRegister<typename Tag::Accumulator>, kColumns = N * kPacked * 2;
  const int lane = thread() % 32, warp = thread() % 128 / 32;
  const double* left = tile<Tag>(a, 64).data();
  const double* right = tile<Tag>(b, kColumns).data();
  machine.counted.operations += 2.0 * 64 * kColumns * Tag::kK / 128;
  const auto product = [&](int row, int column) { return tile_product<Tag>(left + row * Tag::kK, right + column * Tag::kK); };
  for (int i = 0; i < N; ++i) {
    const int j = i * kPacked;  // accumulator number: pairs of columns, then two row groups, then the next eight columns
    const int row = 16 * warp + lane / 4 + 8 * (j / 2 % 2), column = j / 4 * 8 + lane % 4 * 2 + j % 2;
    if constexpr (kPacked == 2)
      c[i] = accumulate_half(c[i] & 0xffff, product(row, column)) | accumulate_half(c[i] >> 16, product(row, column + 1)) << 16;
    else
      c[i] = accumulate(c[i], product(row, column));
  }
}

// A is held by each warp for its 16 rows, as mma.sync holds it.
template <class Tag, class Register>
inline void wgmma_sparse(Register (&c)[128], const uint32_t (&a)[4], uint64_t b) {
  Machine::Exchange& warp = machine.exchange[thread() / 32];
  const int lane = thread() % 32;
  constexpr int kE = Tag::Element::kPerRegister;
  for (int i = 0; i < 4 * kE; ++i) warp.a[lane][i] = element(typename Tag::Element{}, a[i / kE], i % kE);
  const double* right = tile<Tag>(b, 256).data();
  machine.warp_barrier();
  machine.counted.operations += 2.0 * 64 * 256 * Tag::kK / 128;
  for (int i = 0; i < 128; ++i) {  // as wgmma
    const int row = lane / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    double sum = 0;
    for (int held = 0; held < Tag::kK / 2; ++held)
      sum += Fragments<Tag>{warp}.held(row, held) * right[column * Tag::kK + sparse_position<Tag>(held)];
    c[i] = accumulate(c[i], sum);
  }
  machine.warp_barrier();
}

inline uint32_t warp_index() { return thread() / 32; }
inline uint32_t load_shared_word(uint32_t address) {
  uint32_t value;
  std::memcpy(&value, &machine.shared.at(address), 4);
  return value;
}
template <int>
inline void tcgen05_allocate(uint32_t slot, uint32_t columns) {
  machine.tensor_memory.assign(128 * 512, 0xdeadbeefu);
  const uint32_t first = 512 - columns;  // any address but zero
  std::memcpy(&machine.shared.at(slot), &first, 4);
}
template <int>
inline void tcgen05_free(uint32_t, uint32_t) {}
inline uint32_t cluster_rank() { return machine.rank; }
inline void cluster_barrier() { machine.cluster_barrier(); }
inline void tcgen05_fence() {}
inline uint32_t& tensor_word(uint32_t address, int lane, int column) {
  return machine.tensor_memory.at(((address >> 16) + lane) * 512 + (address & 0xffff) + column);
}
inline void tcgen05_clear(uint32_t d) {
  for (int i = 0; i < 8; ++i) tensor_word(d, thread() % 32, i) = 0;
}
inline void tcgen05_store(uint32_t d, const uint32_t (&c)[8]) {
  for (int i = 0; i < 8; ++i) tensor_word(d, thread() % 32, i) = c[i];
}
inline void tcgen05_load(uint32_t (&c)[8], uint32_t d) {
  for (int i = 0; i < 8; ++i) c[i] = tensor_word(d, thread() % 32, i);
}
template <int>
inline void tcgen05_commit(uint32_t bar) {
  machine.warp_barrier();  // as elect.sync: no lane runs ahead of its warp
  if (thread() % 32 == 0) ++machine.barriers[bar].phases;
}
inline void tcgen05_commit_to_both(uint32_t bar) {
  tcgen05_commit<2>(bar);
  if (thread() % 32 == 0) ++machine.peer.barriers[bar].phases;
}
// Block scale of element k of a row; each quarter of the lanes must have them.
template <class Tag>
inline double tensor_factor(uint32_t scales, int row, int k) {
  const int number = k * Tag::kScales / Tag::kK;
  return scale_factor<Tag>(tensor_word(scales, row % 32 + 32 * (k % 4), number / 4 * 4 + row / 32) >> number % 4 * 8);
}
// Of a pair each block has 128 rows of A and D and half of B's columns; products are issued by the first and done in both.
template <class Tag, int Pair>
inline void tcgen05_product(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t scales) {
  if (thread() % 32 != 0) return;  // the elected lane
  const int rows = (Tag::kScales ? (instruction >> 27 & 3) * 128 : (instruction >> 24 & 31) * 16) / Pair;
  const int columns = (instruction >> 17 & 63) * 8;
  std::vector<double> right;
  for (int block = 0; block < Pair; ++block) {
    if (block == 1) machine.swap_blocks();
    const std::vector<double>& half = tile<Tag>(b, columns / Pair);
    right.insert(right.end(), half.begin(), half.end());
  }
  for (int block = Pair - 1; block >= 0; --block) {
    std::vector<double> left = tile<Tag>(a, rows), scaled = right;
    if constexpr (Tag::kScales > 0) {
      for (int i = 0; i < rows * Tag::kK; ++i) left[i] *= tensor_factor<Tag>(scales, i / Tag::kK, i % Tag::kK);
      for (int i = 0; i < columns * Tag::kK; ++i) scaled[i] *= tensor_factor<Tag>(scales + 8, i / Tag::kK, i % Tag::kK);
    }
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        using Register = typename Tag::Register;
        uint32_t& word = tensor_word(d, row, column);
        const double sum = tile_product<Tag>(&left[row * Tag::kK], &scaled[column * Tag::kK]);
        if constexpr (std::is_same_v<typename Tag::Accumulator, Half2>)
          word = (word & 0xffff0000u) | accumulate_half(word & 0xffff, sum);  // 16 of the 32 bits: tcgen05.ld can pack them
        else
          word = bit_cast<uint32_t>(accumulate(bit_cast<Register>(word), sum));
      }
    machine.counted.operations += 2.0 * rows * columns * Tag::kK;
    if (block == 1) machine.swap_blocks();
  }
}
template <class Tag, int Pair>
inline void tcgen05_products(uint32_t d, uint64_t a, uint64_t b, uint64_t other, uint32_t instruction, uint32_t scales) {
  constexpr int kA = Tag::kRowBytes * 8, kB = Tag::kRowBytes * 16 / Pair;
  for (int i = 0; i < 8; ++i) {
    const int slice = i % kSlices;
    tcgen05_product<Tag, Pair>(d, a + slice * kA, b + slice * kB, instruction, scales);
    tcgen05_product<Tag, Pair>(d, a + slice * kA, other + slice * kB, instruction, scales);
  }
}
template <class Tag, int Pair>
inline void tcgen05_last_products(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t scales) {
  constexpr int kA = Tag::kRowBytes * 8, kB = Tag::kRowBytes * 16 / Pair;
  for (int slice = 0; slice < kSlices; ++slice)
    tcgen05_product<Tag, Pair>(d, a + slice * kA, b + slice * kB, instruction, scales);
}

}  // namespace bench::cpu
