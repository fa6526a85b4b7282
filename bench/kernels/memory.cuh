// Ceilings of the memory levels.  All global kernels walk tiles: which of them, and how often, makes the level (table.hpp,
// Shape).
#pragma once
#include "base.cuh"

namespace bench::BENCH_MACHINE {

constexpr int kLoads = 8;  // per thread and trip unless said, all in flight

BENCH_FN uint32_t sum(const Vector4& v) { return v.x + v.y + v.z + v.w; }
BENCH_FN uint32_t sum(const Vector8& v) {
  uint32_t total = 0;
  BENCH_UNROLL for (int i = 0; i < 8; ++i) total += v.word[i];
  return total;
}

// The words of `in` this thread meets in a tile; the next tile modulo the number of tiles.
template <class V, int Threads, int Loads = kLoads>
BENCH_FN const V* tile_of(const Args& args, const void* base, uint32_t tile) {
  const char* window = static_cast<const char*>(base) + args.block_bytes * block();
  return reinterpret_cast<const V*>(window) + size_t{tile} * (Threads * Loads) + thread();
}
BENCH_FN uint32_t first_tile(const Args& args) { return block() % args.tiles; }
BENCH_FN uint32_t next_tile(const Args& args, uint32_t tile) {
  tile += args.stride;
  return tile >= args.tiles ? tile - args.tiles : tile;
}

// Sums all words (a sum, unlike a parity, does not vanish after an even number of passes).
template <class V, Path P, int Threads>
BENCH_FN void read_body(const Args& args) {
  stamp_start(args);
  uint32_t even = 0, odd = 0, tile = first_tile(args);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const V* p = tile_of<V, Threads>(args, args.in, tile);
    V v[kLoads];
    BENCH_UNROLL for (int i = 0; i < kLoads; ++i) load<P>(v[i], p + i * Threads);
    even += after_loads();
    BENCH_UNROLL for (int i = 0; i < kLoads; i += 2) {
      even += sum(v[i]);
      odd += sum(v[i + 1]);
    }
    tile = next_tile(args, tile);
  }
  args.out[grid_thread()] = even + odd;
  stamp_end(args);
}

// What word group `index` of a written buffer must hold.
BENCH_FN Vector4 pattern(uint32_t index) {
  const uint32_t h = index * 0x9e3779b1u;
  return {h, h ^ 0x85ebca6bu, h ^ 0xc2b2ae35u, h ^ 0x27d4eb2fu};
}

template <Path P, int Threads>
BENCH_FN void write_body(const Args& args) {
  stamp_start(args);
  uint32_t tile = first_tile(args);
  Vector4* dst = static_cast<Vector4*>(args.dst);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const uint32_t index = tile * (Threads * kLoads) + thread();
    Vector4* p = dst + size_t{tile} * (Threads * kLoads) + thread();
    BENCH_UNROLL for (int i = 0; i < kLoads; ++i) store<P>(p + i * Threads, pattern(index + i * Threads));
    tile = next_tile(args, tile);
  }
  stamp_end(args);
}

template <Path P, int Threads, int Loads>
BENCH_FN void copy_body(const Args& args) {
  stamp_start(args);
  uint32_t tile = first_tile(args);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const Vector4* from = tile_of<Vector4, Threads, Loads>(args, args.in, tile);
    Vector4* to = static_cast<Vector4*>(args.dst) + size_t{tile} * (Threads * Loads) + thread();
    Vector4 v[Loads];
    BENCH_UNROLL for (int i = 0; i < Loads; ++i) load<P>(v[i], from + i * Threads);
    BENCH_UNROLL for (int i = 0; i < Loads; ++i) store<P>(to + i * Threads, v[i]);
    tile = next_tile(args, tile);
  }
  stamp_end(args);
}

// dst = in + 0.4 * in2 in FP32: 16 bytes of each array per thread and step, so 3 x Loads x 16 per trip (GPUs do not read what
// they overwrite whole).
BENCH_FN uint32_t triad(uint32_t x, uint32_t y) { return float_bits(multiply_add(bits_float(y), 0.4f, bits_float(x))); }
BENCH_FN Vector4 triad(const Vector4& x, const Vector4& y) {
  return {triad(x.x, y.x), triad(x.y, y.y), triad(x.z, y.z), triad(x.w, y.w)};
}
template <Path P, int Threads, int Loads>
BENCH_FN void triad_body(const Args& args) {
  stamp_start(args);
  uint32_t tile = first_tile(args);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const Vector4* x = tile_of<Vector4, Threads, Loads>(args, args.in, tile);
    const Vector4* y = tile_of<Vector4, Threads, Loads>(args, args.in2, tile);
    Vector4* to = static_cast<Vector4*>(args.dst) + size_t{tile} * (Threads * Loads) + thread();
    Vector4 v[Loads], w[Loads];
    BENCH_UNROLL for (int i = 0; i < Loads; ++i) {
      load<P>(v[i], x + i * Threads);
      load<P>(w[i], y + i * Threads);
    }
    BENCH_UNROLL for (int i = 0; i < Loads; ++i) store<P>(to + i * Threads, triad(v[i], w[i]));
    tile = next_tile(args, tile);
  }
  stamp_end(args);
}

// Atomic additions without result: the same numbers to the same words on every visit.
template <int Threads>
BENCH_FN void reduce_body(const Args& args) {
  stamp_start(args);
  uint32_t tile = first_tile(args);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    uint32_t* p = static_cast<uint32_t*>(args.dst) + size_t{tile} * (Threads * kLoads) + thread();
    BENCH_UNROLL for (int i = 0; i < kLoads; ++i) reduce(p + i * Threads, thread() + i * Threads + 1);
    tile = next_tile(args, tile);
  }
  stamp_end(args);
}

// Loads without bank conflicts (a warp reads 512 adjacent bytes) from 32 KB of the block's own shared memory, or of the other
// block's of a pair, which is on another SM.  Windows of a pair differ in every vector.
constexpr int kSharedBytes = 32768;
template <bool Other>
BENCH_FN void shared_body(const Args& args) {
  stamp_start(args);
  Vector4* window = reinterpret_cast<Vector4*>(dynamic_shared());
  for (uint32_t i = thread(); i < kSharedBytes / 16; i += threads()) {
    window[i] = static_cast<const Vector4*>(args.in)[i];
    if (Other) window[i].x += block() % kPair;
  }
  if constexpr (Other)
    pair_barrier();
  else
    barrier();
  uint32_t even = 0, odd = 0, index = thread();
  uint32_t base = shared_address(window);
  if constexpr (Other) base = other_shared_address(base);
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const uint32_t p = base + (index % 1024) * 16;
    Vector4 v[kLoads];
    BENCH_UNROLL for (int i = 0; i < kLoads; ++i) {
      if constexpr (Other)
        load_other_shared(v[i], p + i * 2048);
      else
        load_shared(v[i], p + i * 2048);
    }
    even += after_loads();
    BENCH_UNROLL for (int i = 0; i < kLoads; i += 2) {
      even += sum(v[i]);
      odd += sum(v[i + 1]);
    }
    index += 32;
  }
  if constexpr (Other) pair_barrier();  // nobody leaves while his shared memory is read
  args.out[grid_thread()] = even + odd;
  stamp_end(args);
}

// Atomic additions in shared memory whose results are used; each thread has words of its own, a warp's are adjacent.
template <int Threads>
BENCH_FN void shared_atomic_body(const Args& args) {
  stamp_start(args);
  uint32_t* window = reinterpret_cast<uint32_t*>(dynamic_shared());
  for (uint32_t i = thread(); i < Threads * kLoads; i += Threads) window[i] = static_cast<const uint32_t*>(args.in)[i];
  barrier();
  uint32_t even = 0, odd = 0;
  const uint32_t base = shared_address(window) + thread() * 4;
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    uint32_t v[kLoads];
    BENCH_UNROLL for (int i = 0; i < kLoads; ++i) v[i] = add_shared(base + i * Threads * 4, thread() + i + 1);
    BENCH_UNROLL for (int i = 0; i < kLoads; i += 2) {
      even += v[i];
      odd += v[i + 1];
    }
  }
  args.out[grid_thread()] = even + odd;
  stamp_end(args);
}

// One-dimensional bulk copies (TMA) into a ring of 5 x 16 KB of shared memory, which fits 99 KB (12.x) once and 227 KB
// (9.0, 10.x) twice: 80 or 160 KB in flight per SM without a register.  All threads sum what came, then thread 0 refills the
// slot: a tile is a chunk here.
constexpr int kBulkThreads = 256, kChunk = 16384, kSlots = 5;
constexpr int kBulkShared = kSlots * kChunk + kSlots * 8;
BENCH_FN void bulk_issue(const Args& args, uint32_t ring, uint32_t bars, uint32_t slot, uint32_t tile) {
  bulk_expect(bars + slot * 8, kChunk);
  bulk_load(ring + slot * kChunk, static_cast<const char*>(args.in) + size_t{tile} * kChunk, kChunk, bars + slot * 8);
}
BENCH_FN void bulk_body(const Args& args) {
  stamp_start(args);
  const uint32_t ring = shared_address(dynamic_shared()), bars = ring + kSlots * kChunk;
  uint32_t tile = first_tile(args), even = 0, odd = 0;
  if (thread() == 0) {
    for (uint32_t i = 0; i < kSlots; ++i) barrier_init(bars + i * 8);
    fence_barrier_init();
    for (uint32_t i = 0; i < kSlots && i < args.trips; ++i) {
      bulk_issue(args, ring, bars, i, tile);
      tile = next_tile(args, tile);
    }
  }
  barrier();
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const uint32_t slot = t % kSlots;
    barrier_wait(bars + slot * 8, t / kSlots % 2);
    constexpr int kSteps = kChunk / 16 / kBulkThreads;
    Vector4 v[kSteps];
    BENCH_UNROLL for (int i = 0; i < kSteps; ++i) load_shared(v[i], ring + slot * kChunk + (i * kBulkThreads + thread()) * 16);
    BENCH_UNROLL for (int i = 0; i < kSteps; i += 2) {
      even += sum(v[i]);
      odd += sum(v[i + 1]);
    }
    barrier();
    if (thread() == 0 && t + kSlots < args.trips) {
      bulk_issue(args, ring, bars, slot, tile);
      tile = next_tile(args, tile);
    }
  }
  args.out[grid_thread()] = even + odd;
  stamp_end(args);
}

// Copy and triad by the same ring: what came, or what all threads made of it in place, goes back to memory by a bulk copy.
// When one has begun, the one before has left its slot, which is refilled: a store and four loads are then on their way.
template <int Streams>
BENCH_FN void bulk_refill(const Args& args, uint32_t ring, uint32_t bars, uint32_t slot, uint32_t tile) {
  constexpr int kPart = kChunk / (Streams - 1);
  const uint32_t to = ring + slot * kChunk, bar = bars + slot * 8;
  bulk_expect(bar, kChunk);
  bulk_load(to, static_cast<const char*>(args.in) + size_t{tile} * kPart, kPart, bar);
  if constexpr (Streams == 3) bulk_load(to + kPart, static_cast<const char*>(args.in2) + size_t{tile} * kPart, kPart, bar);
}
template <int Streams>
BENCH_FN void bulk_mix_body(const Args& args) {
  stamp_start(args);
  constexpr int kPart = kChunk / (Streams - 1), kSteps = kPart / 16 / kBulkThreads;
  const uint32_t ring = shared_address(dynamic_shared()), bars = ring + kSlots * kChunk;
  uint32_t tile = first_tile(args), ahead = tile;
  if (thread() == 0) {
    for (uint32_t i = 0; i < kSlots; ++i) barrier_init(bars + i * 8);
    fence_barrier_init();
    for (uint32_t i = 0; i < kSlots && i < args.trips; ++i) {
      bulk_refill<Streams>(args, ring, bars, i, ahead);
      ahead = next_tile(args, ahead);
    }
  }
  barrier();
  BENCH_LOOP for (uint32_t t = 0; t < args.trips; ++t) {
    const uint32_t slot = t % kSlots;
    barrier_wait(bars + slot * 8, t / kSlots % 2);
    if constexpr (Streams == 3) {
      const uint32_t own = ring + slot * kChunk + thread() * 16;
      Vector4 v[kSteps], w[kSteps];
      BENCH_UNROLL for (int i = 0; i < kSteps; ++i) {
        load_shared(v[i], own + i * kBulkThreads * 16);
        load_shared(w[i], own + kPart + i * kBulkThreads * 16);
      }
      BENCH_UNROLL for (int i = 0; i < kSteps; ++i) store_shared(own + i * kBulkThreads * 16, triad(v[i], w[i]));
      fence_shared_for_async();
    }
    barrier();
    if (thread() == 0) {
      bulk_store(static_cast<char*>(args.dst) + size_t{tile} * kPart, ring + slot * kChunk, kPart);
      if (t > 0 && t - 1 + kSlots < args.trips) {
        bulk_wait_read<1>();
        bulk_refill<Streams>(args, ring, bars, (t - 1) % kSlots, ahead);
        ahead = next_tile(args, ahead);
      }
    }
    tile = next_tile(args, tile);
  }
  if (thread() == 0) bulk_wait();
  stamp_end(args);
}

// kernel, ceiling, variant, pipe, shape, body, threads, blocks per SM, shared bytes, since, until, bytes per thread and trip,
// arrays
#define BENCH_MEMORY_KERNELS(X)                                                                                                \
  X(dram_read, "dram.read", "ldg128_cs_b512_i8", "dram", dram, (read_body<Vector4, Path::streaming, 512>), 512, 0, 0, 70, 0,   \
    128, 1)                                                                                                                    \
  X(dram_read_256, "dram.read", "ldg256_b512_i8", "dram", dram, (read_body<Vector8, Path::plain, 512>), 512, 0, 0,             \
    kWideLoadSince, 0, 256, 1)                                                                                                 \
  X(dram_read_bulk, "dram.read", "bulk16k_s5", "dram", dram, bulk_body, kBulkThreads, 0, kBulkShared, kBulkSince, 0, 64, 1)    \
  X(dram_write, "dram.write", "stg128_cs_b512_i8", "dram", dram, (write_body<Path::streaming, 512>), 512, 0, 0, 70, 0, 128, 1) \
  X(dram_copy, "dram.copy", "ldg128_cs_b256_i4", "dram", dram, (copy_body<Path::streaming, 256, 4>), 256, 0, 0, 70, 0, 128, 2) \
  X(dram_copy_grid, "dram.copy", "ldg128_b256_i4_grid", "dram", dram_grid, (copy_body<Path::plain, 256, 4>), 256, 0, 0, 70, 0, \
    128, 2)                                                                                                                    \
  X(dram_copy_512, "dram.copy", "ldg128_cs_b512_i8", "dram", dram, (copy_body<Path::streaming, 512, 8>), 512, 0, 0, 70, 0,     \
    256, 2)                                                                                                                    \
  X(dram_copy_bulk, "dram.copy", "bulk16k_s5", "dram", dram, bulk_mix_body<2>, kBulkThreads, 0, kBulkShared, kBulkSince, 0,    \
    128, 2)                                                                                                                    \
  X(dram_triad, "dram.triad", "ldg128_cs_b256_i4", "dram", dram, (triad_body<Path::streaming, 256, 4>), 256, 0, 0, 70, 0, 192, \
    3)                                                                                                                         \
  X(dram_triad_grid, "dram.triad", "ldg128_b256_i2_grid", "dram", dram_grid, (triad_body<Path::plain, 256, 2>), 256, 0, 0, 70, \
    0, 96, 3)                                                                                                                  \
  X(dram_triad_i2, "dram.triad", "ldg128_cs_b256_i2", "dram", dram, (triad_body<Path::streaming, 256, 2>), 256, 0, 0, 70, 0,   \
    96, 3)                                                                                                                     \
  X(dram_triad_bulk, "dram.triad", "bulk16k_s5", "dram", dram, bulk_mix_body<3>, kBulkThreads, 0, kBulkShared, kBulkSince, 0,  \
    96, 3)                                                                                                                     \
  X(l2_read, "l2.read", "ldg128_na_b256_i8", "l2", l2, (read_body<Vector4, Path::past_l1, 256>), 256, 0, 0, 70, 0, 128, 1)     \
  X(l2_read_bulk, "l2.read", "bulk16k_s5", "l2", l2, bulk_body, kBulkThreads, 0, kBulkShared, kBulkSince, 0, 64, 1)            \
  X(l2_write, "l2.write", "stg128_b256_i8", "l2", l2, (write_body<Path::plain, 256>), 256, 0, 0, 70, 0, 128, 1)                \
  X(l2_copy, "l2.copy", "ldg128_na_b512_i2", "l2", l2, (copy_body<Path::past_l1, 512, 2>), 512, 0, 0, 70, 0, 64, 2)            \
  X(l2_red, "l2.red", "red32_b256_i8", "l2", l2, reduce_body<256>, 256, 0, 0, 70, 0, 32, 1)                                    \
  X(l1_read, "l1.read", "ldg128_b256_x1", "l1", l1, (read_body<Vector4, Path::plain, 256>), 256, 1, 0, 70, 79, 128, 1)         \
  X(l1_read_x2, "l1.read", "ldg128_b256_x2", "l1", l1, (read_body<Vector4, Path::plain, 256>), 256, 2, 0, 80, 0, 128, 1)       \
  X(smem_read, "smem.read", "lds128_b512_i8", "shared", shared, shared_body<false>, 512, 1, kSharedBytes, 70, 0, 128, 1)       \
  X(smem_atom, "smem.atom", "atoms32_b512_i8", "shared", shared, shared_atomic_body<512>, 512, 1, kSharedBytes, 70, 0, 32, 1)  \
  X(dsmem_read, "dsmem.read", "ld128_cluster2_b512_i8", "dsmem", pair, shared_body<true>, 512, 1, kSharedBytes, kPairSince, 0, \
    128, 1)                                                                                                                    \
  X(host_read, "host.h2d", "zero_copy_ldg128", "host", zero_copy, (read_body<Vector4, Path::streaming, 512>), 512, 0, 0, 70,   \
    0, 128, 1)                                                                                                                 \
  X(host_write, "host.d2h", "zero_copy_stg128", "host", zero_copy, (write_body<Path::streaming, 512>), 512, 0, 0, 70, 0, 128,  \
    1)                                                                                                                         \
  X(c2c_read, "host.h2d", "coherent_ldg128", "host", coherent, (read_body<Vector4, Path::plain, 512>), 512, 0, 0, 90, 0, 128,  \
    1)                                                                                                                         \
  X(c2c_write, "host.d2h", "coherent_stg128", "host", coherent, (write_body<Path::plain, 512>), 512, 0, 0, 90, 0, 128, 1)      \
  X(c2c_copy, "host.bidir", "coherent_ldg128_i4", "host", coherent, (copy_body<Path::plain, 256, 4>), 256, 0, 0, 90, 0,        \
    128, 2)

#define BENCH_DEFINE(NAME, CEILING, VARIANT, PIPE, SHAPE, BODY, THREADS, BLOCKS, SHARED, SINCE, UNTIL, BYTES, STREAMS) \
  template <int>                                                                                                       \
  BENCH_FN void NAME##_body(const Args& args) {                                                                        \
    BODY(args);                                                                                                        \
  }                                                                                                                    \
  BENCH_KERNEL(bench_##NAME, THREADS, (BLOCKS == 0 ? 1 : BLOCKS)) {                                                    \
    if constexpr (kExists<SINCE, UNTIL>) NAME##_body<SINCE>(args);                                                     \
  }
BENCH_MEMORY_KERNELS(BENCH_DEFINE)
#undef BENCH_DEFINE

inline constexpr Row memory_rows[] = {
#define BENCH_ROW(NAME, CEILING, VARIANT, PIPE, SHAPE, BODY, THREADS, BLOCKS, SHARED, SINCE, UNTIL, BYTES, STREAMS) \
  {"bench_" #NAME,                                                                                                  \
   CEILING,                                                                                                         \
   VARIANT,                                                                                                         \
   "B/s",                                                                                                           \
   PIPE,                                                                                                            \
   Shape::SHAPE,                                                                                                    \
   STREAMS == 3 ? Data::reals : Data::words,                                                                        \
   Result::bits,                                                                                                    \
   0.0,                                                                                                             \
   SINCE,                                                                                                           \
   UNTIL,                                                                                                           \
   "",                                                                                                              \
   THREADS,                                                                                                         \
   BLOCKS,                                                                                                          \
   SHARED,                                                                                                          \
   Shape::SHAPE == Shape::shared || Shape::SHAPE == Shape::pair ? kSharedBytes / 4 : 0,                             \
   STREAMS == 1,                                                                                                    \
   STREAMS == 3 ? BYTES / 6.0 : 0.0,                                                                                \
   BYTES,                                                                                                           \
   STREAMS,                                                                                                         \
   0,                                                                                                               \
   0,                                                                                                               \
   Shape::SHAPE == Shape::pair ? kPair : 1},
    BENCH_MEMORY_KERNELS(BENCH_ROW)
#undef BENCH_ROW
};

}  // namespace bench::BENCH_MACHINE
