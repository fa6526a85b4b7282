// Operands: random mantissas within bounds that keep every chain finite; zeros only when asked for (they run cooler and
// faster).
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "../cpu/numbers.hpp"
#include "../kernels/table.hpp"

namespace bench {

// A counter-based generator: the same word for the same seed and index, on CPU and GPU.
#if defined(__CUDACC__)
__host__ __device__
#endif
    inline uint32_t random_word(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>((z ^ z >> 31) >> 16);
}

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint32_t word() { return random_word(seed_, next_++); }
  double real(double low, double high) { return low + (high - low) * ((word() + 0.5) / 4294967296.0); }
  double balanced(double size) { return (word() & 1 ? -1 : 1) * real(size / 4, size); }

 private:
  uint64_t seed_, next_ = 0;
};

template <class T>
inline void append(std::vector<uint32_t>& words, T value) {
  uint32_t parts[sizeof(T) / 4];
  std::memcpy(parts, &value, sizeof value);
  words.insert(words.end(), std::begin(parts), std::end(parts));
}

// Rows of 256 lanes: a, b, start values.  Chaotic forms x*x + b need b in (-2, -1.4); x*a + b decays slowly for a near -1.
// Nothing can be divided by zeros: the mixes then compute on one and the same number.
inline double chain_value(Random& random, size_t row, bool mixed, bool same) {
  if (same) return 0.5;
  if (mixed) return row == 0 ? random.real(0.3, 0.6) : random.real(0.5, 1.0);
  return row == 0 ? -random.real(0.99, 1.0) : row == 1 ? -random.real(1.4, 1.95) : random.balanced(0.9);
}

inline void append_element(std::vector<uint32_t>& words, Data data, Random& random, size_t row, bool same) {
  const auto pair = [&](uint32_t (*encoded)(double), auto value) {
    const uint32_t low = encoded(value());
    words.push_back(low | encoded(value()) << 16);
  };
  const bool mixed = data == Data::mixed_fp64 || data == Data::mixed_fp32;
  const auto chain = [&] { return chain_value(random, row, mixed, same); };
  const auto small = [&] { return random.balanced(1.0); };
  switch (data) {
    case Data::chaos_fp64:
    case Data::mixed_fp64: append(words, chain()); return;
    case Data::chaos_fp32:
    case Data::mixed_fp32: append(words, static_cast<float>(chain())); return;
    case Data::chaos_fp16: pair(encode_half, chain); return;
    case Data::chaos_bf16: pair(encode_bfloat, chain); return;
    case Data::odd_words: words.push_back(random.word() | 1); return;
    case Data::fp64: append(words, small()); return;
    case Data::fp32: append(words, static_cast<float>(small())); return;
    case Data::tf32: words.push_back(bit_cast<uint32_t>(static_cast<float>(small())) & 0xffffe000u); return;
    case Data::fp16: pair(encode_half, small); return;
    case Data::bf16: pair(encode_bfloat, small); return;
    case Data::fp8: {
      uint32_t word = 0;
      for (int i = 0; i < 4; ++i) word |= encode_fp8(small()) << 8 * i;
      words.push_back(word);
      return;
    }
    case Data::fp6: words.push_back(random.word() & 0x3f3f3f3fu); return;
    case Data::reals: append(words, static_cast<float>(random.real(1, 2))); return;
    case Data::fp6_packed:
    case Data::words:
    case Data::int8: words.push_back(random.word()); return;
  }
}

// The words of one block's operands.
inline std::vector<uint32_t> operands(const Row& row, uint64_t seed, bool zeros) {
  const bool mixed = row.data == Data::mixed_fp64 || row.data == Data::mixed_fp32;
  if (zeros && !mixed) return std::vector<uint32_t>(row.input_words);
  std::vector<uint32_t> words;
  Random random(seed);
  const size_t fresh = row.input_words - row.flipped_words;
  const bool wide =
      row.data == Data::chaos_fp64 || row.data == Data::mixed_fp64 || std::string_view(row.variant).find("f32x2") == 0;
  while (words.size() < fresh) append_element(words, row.data, random, words.size() / (wide ? 2 : 1) / row.threads, zeros);
  constexpr uint32_t kSigns[4] = {0x20820820u, 0x08208208u, 0x82082082u, 0};  // of 16 times six bits
  for (int i = 0; i < row.flipped_words; ++i)
    words.push_back(words[fresh - row.flipped_words + i] ^ (row.data == Data::fp6_packed ? kSigns[i % 4] : row.flip));
  return words;
}

}  // namespace bench
