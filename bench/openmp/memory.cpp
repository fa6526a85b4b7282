// Ceilings of memory and caches: loads, stores, copies and triads over windows private to each thread.
#include <utility>

#include "row.hpp"
#include "vector.hpp"

namespace bench {
namespace {

using Words = Vector<uint64_t>;
using Reals = Vector<double>;

template <class V>
uint64_t lanes_sum(V value) {
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof(V) / 8; ++i) sum += value[i];
  return sum;
}

// All indices are compile-time constants, so that sums stay in registers.
template <int... I>
void read_block(Words (&sums)[sizeof...(I)], const char* from, std::integer_sequence<int, I...>) {
  ((sums[I] += load<Words>(from + I * sizeof(Words))), ...);
}

template <int Unroll>
void read(Work& work) {
  Words sums[Unroll] = {};
  for (uint64_t pass = 0; pass < work.passes; ++pass) {
    const char* from = work.data;
    forget_memory();
    for (uint64_t trip = 0; trip < work.trips_per_pass; ++trip, from += Unroll * sizeof(Words))
      read_block(sums, from, std::make_integer_sequence<int, Unroll>());
  }
  uint64_t total = 0;
  for (const Words& sum : sums) total += lanes_sum(sum);
  work.result = total;
}

template <class Store, int Unroll>
void write(Work& work) {
  for (uint64_t pass = 0; pass < work.passes; ++pass) {
    const Words value = Words{} + (work.salt + pass);
    char* to = work.data;
    for (uint64_t trip = 0; trip < work.trips_per_pass; ++trip, to += Unroll * sizeof(Words)) {
      for (int i = 0; i < Unroll; ++i) Store::store(to + i * sizeof(Words), value);
      forget_memory();
    }
  }
  Store::fence();
}

template <class Store, int Unroll>
void copy(Work& work) {
  for (uint64_t pass = 0; pass < work.passes; ++pass) {
    char* to = work.data;
    const char* from = work.data + work.stride;
    for (uint64_t trip = 0; trip < work.trips_per_pass; ++trip, to += Unroll * sizeof(Words), from += Unroll * sizeof(Words)) {
      for (int i = 0; i < Unroll; ++i) Store::store(to + i * sizeof(Words), load<Words>(from + i * sizeof(Words)));
      forget_memory();
    }
  }
  Store::fence();
}

template <class Store, int Unroll>
void triad(Work& work) {
  const Reals factor = Reals{} + work.factor;
  for (uint64_t pass = 0; pass < work.passes; ++pass) {
    char* to = work.data;
    const char *b = work.data + work.stride, *c = b + work.stride;
    for (uint64_t trip = 0; trip < work.trips_per_pass; ++trip) {
      for (int i = 0; i < Unroll; ++i) {
        const size_t at = trip * Unroll * sizeof(Reals) + i * sizeof(Reals);
        Store::store(to + at, load<Reals>(b + at) + factor * load<Reals>(c + at));
      }
      forget_memory();
    }
  }
  Store::fence();
}

Row row(const char* ceiling, const char* variant, Level level, Shape shape, int streams, int unroll, bool exists,
        void (*run)(Work&)) {
  const char* kernels[] = {"read", "write", "copy", "triad"};
  const char* pipes[] = {"", "l1", "l2", "l3", "dram"};
  const double bytes = double(unroll) * kWidth * streams;
  const double operations = shape == Shape::triad ? bytes / 12 : 0;  // two per three words of eight bytes
  return {ceiling, variant, "B/s", kernels[int(shape)], pipes[int(level)], level, shape, streams, operations, bytes,
          exists, run, 8, 0, nullptr, nullptr};
}

}  // namespace

// The first variant of a ceiling is the one of a quick run.
std::vector<Row> memory_rows() {
  const bool nt = Streaming::exists;
  return {
      row("dram.read", "u8", Level::dram, Shape::read, 1, 8, true, read<8>),
      row("dram.read", "u16", Level::dram, Shape::read, 1, 16, true, read<16>),
      row("dram.write", "nt_u8", Level::dram, Shape::write, 1, 8, nt, write<Streaming, 8>),
      row("dram.write", "plain_u8", Level::dram, Shape::write, 1, 8, true, write<Plain, 8>),
      row("dram.copy", "nt_u8", Level::dram, Shape::copy, 2, 8, nt, copy<Streaming, 8>),
      row("dram.copy", "plain_u8", Level::dram, Shape::copy, 2, 8, true, copy<Plain, 8>),
      row("dram.triad", "nt_u8", Level::dram, Shape::triad, 3, 8, nt, triad<Streaming, 8>),
      row("dram.triad", "plain_u8", Level::dram, Shape::triad, 3, 8, true, triad<Plain, 8>),
      row("l1.read", "u16", Level::l1, Shape::read, 1, 16, true, read<16>),
      row("l1.read", "u8", Level::l1, Shape::read, 1, 8, true, read<8>),
      row("l1.read", "u12", Level::l1, Shape::read, 1, 12, true, read<12>),
      row("l2.read", "u8", Level::l2, Shape::read, 1, 8, true, read<8>),
      row("l2.read", "u16", Level::l2, Shape::read, 1, 16, true, read<16>),
      row("l3.read", "u8", Level::l3, Shape::read, 1, 8, true, read<8>),
      row("l3.read", "u16", Level::l3, Shape::read, 1, 16, true, read<16>),
  };
}

}  // namespace bench
