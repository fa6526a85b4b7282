// Ceilings of arithmetic: chains of x*x + b, many at once so that none waits for its own last result.  With b in (-2, -1.4) the
// values are bounded and chaotic: their bits never come to rest, as those of real data.
#pragma once
#include <type_traits>
#include <utility>

#include "row.hpp"
#include "vector.hpp"

namespace bench {

constexpr int kSteps = 1024;  // of each chain and trip; then all begin again, and what they reached goes into the sum

template <class Form, class V, int... I>
inline void step(V (&x)[sizeof...(I)], V b, std::integer_sequence<int, I...>) {
  ((x[I] = Form::step(x[I], b)), ...);
}

// `Form` says what a step is; operands are `Chains` vectors of starts, then b.
template <class Form, class T, int Width, int Chains>
void chains(Work& work) {
  using V = Vector<T, Width>;
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  using BitsV = Vector<Bits, Width>;
  BitsV sums[Chains] = {};
  const V b = load<V>(work.data + Chains * Width);
  for (uint64_t trip = 0; trip < work.passes * work.trips_per_pass; ++trip) {
    forget_memory();
    V x[Chains];
    for (int i = 0; i < Chains; ++i) x[i] = load<V>(work.data + i * Width);
    for (int i = 0; i < kSteps; ++i) step<Form>(x, b, std::make_integer_sequence<int, Chains>());
    for (int i = 0; i < Chains; ++i) sums[i] += (BitsV)x[i];
  }
  Bits total = 0;
  for (const BitsV& sum : sums)
    for (int lane = 0; lane < int(Width / sizeof(T)); ++lane) total += sum[lane];
  work.result = total;
}

template <class T, int Width, int Chains>
void operands(void* out, uint64_t seed, bool zeros) {
  T* values = static_cast<T*>(out);
  const int lanes = Width / sizeof(T);
  for (int i = 0; i < (Chains + 1) * lanes; ++i) {
    const double unit = double(random_word(seed, i) >> 11) * 0x1p-53;
    values[i] = zeros ? T(0) : i < Chains * lanes ? T(2 * unit - 1) : T(-1.4 - 0.6 * unit);
  }
}

template <class Form, class T, int Width, int Chains>
uint64_t model(const void* from) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const T* values = static_cast<const T*>(from);
  const int lanes = Width / sizeof(T);
  Bits total = 0;
  for (int i = 0; i < Chains * lanes; ++i) {
    T x = values[i];
    for (int k = 0; k < kSteps; ++k) x = Form::scalar(x, values[Chains * lanes + i % lanes]);
    Bits bits;
    std::memcpy(&bits, &x, sizeof bits);
    total += bits;
  }
  return total;
}

template <class Form, class T, int Width, int Chains>
Row chains_row(const char* ceiling, const char* variant, const char* pipe) {
  Row row = {ceiling, variant, "FLOP/s", Form::kernel, pipe, Level::none, Shape::arithmetic, 0,
             2.0 * kSteps * Chains * (Width / sizeof(T)), 0, Form::exists, nullptr, sizeof(T), (Chains + 1) * Width,
             operands<T, Width, Chains>, nullptr};
  if constexpr (Form::exists) {
    row.run = chains<Form, T, Width, Chains>;
    row.model = model<Form, T, Width, Chains>;
  }
  return row;
}

// Latency x pipes decides how many chains it takes, registers how many there can be: both differ between CPUs.
template <class Form, class T>
void add_rows(std::vector<Row>& rows, const char* ceiling, const char* pipe) {
  rows.push_back(chains_row<Form, T, kWidth, 12>(ceiling, "wide_c12", pipe));
  rows.push_back(chains_row<Form, T, kWidth, 8>(ceiling, "wide_c8", pipe));
  rows.push_back(chains_row<Form, T, kWidth, 16>(ceiling, "wide_c16", pipe));
  rows.push_back(chains_row<Form, T, kWidth, 24>(ceiling, "wide_c24", pipe));
  if constexpr (kNarrow != kWidth) {
    rows.push_back(chains_row<Form, T, kNarrow, 12>(ceiling, "narrow_c12", pipe));
    rows.push_back(chains_row<Form, T, kNarrow, 16>(ceiling, "narrow_c16", pipe));
  }
}

}  // namespace bench
