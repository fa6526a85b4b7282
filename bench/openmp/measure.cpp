#include "measure.hpp"

#include <omp.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace bench {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
constexpr size_t kLeastMemory = size_t{512} << 20;  // of the working set of memory, all threads together
constexpr double kFactor = 3.0;                     // of the triad: with whole numbers below 2^50 its sums are exact

// A trial that other processes disturb for more than this share of its time is measured again, until there are twice as many
// as were asked for.
constexpr double kUndisturbed = 0.005;

double seconds_of(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}
double now() { return seconds_of(CLOCK_MONOTONIC); }

// A chain of additions takes one cycle each, on all cores that have a register to register add.
double core_mhz() {
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr int kRounds = 4096, kAdds = 32;
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {  // the fastest is the one that nothing interrupted
    uint64_t x = 1;
    const uint64_t one = 1;
    const double begin = now();
    for (int i = 0; i < kRounds; ++i) {
#if defined(__x86_64__)
      asm volatile(".rept 32\n\tadd %1, %0\n\t.endr" : "+r"(x) : "r"(one) : "cc");
#else
      asm volatile(".rept 32\n\tadd %0, %0, %1\n\t.endr" : "+r"(x) : "r"(one));
#endif
    }
    best = std::min(best, now() - begin);
  }
  return kRounds * kAdds / best * 1e-6;
#else
  return 0;
#endif
}

void pin(int cpu) {
  cpu_set_t* mask = CPU_ALLOC(cpu + 1);
  const size_t size = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(size, mask);
  CPU_SET_S(cpu, size, mask);
  sched_setaffinity(0, size, mask);
  CPU_FREE(mask);
}

// `work` (of a thread's number) on all threads, each on its CPU.
template <class F>
void on_all(const Machine& machine, F&& work) {
  const int threads = int(machine.cpus.size());
  int got = 0;
  omp_set_dynamic(0);
#pragma omp parallel num_threads(threads)
  {
    thread_local bool pinned = false;
    const int thread = omp_get_thread_num();
    if (!pinned) pin(machine.cpus[thread]);
    pinned = true;
#pragma omp single
    got = omp_get_num_threads();
    if (got == threads) work(thread);
  }
  if (got != threads)
    throw Failure(kExitFailed, "OpenMP gives " + std::to_string(got) + " threads of the " + std::to_string(threads) +
                                   " that are wanted (OMP_THREAD_LIMIT)");
}

// How much each thread does: windows as large as the level asks for, in whole trips.
struct Plan {
  size_t stream = 0, stride = 0, window = 0;  // bytes: of a stream, from one to the next, of all streams
  uint64_t trips_per_pass = 1;
  std::string note;
};

size_t window_bytes(Level level, const Machine& m, std::string& note) {
  switch (level) {
    case Level::l1: return m.l1_share / 2;
    case Level::l2: return m.l2_share / 2;
    // What L2 holds of a window that is run through in order is gone before its turn comes again, if the window is larger.
    case Level::l3: return m.l2_share + m.l3_share / 2;
    case Level::dram: {
      const size_t wanted = std::max(kLeastMemory, 4 * m.last_level_total);
      const size_t possible = std::min(wanted, m.memory_available / 2);
      if (possible < wanted)
        note = "memory is short: a working set of " + std::to_string(possible >> 20) + " MiB instead of " +
               std::to_string(wanted >> 20);
      return possible / m.cpus.size();
    }
    case Level::none: return 0;
  }
  return 0;
}

Plan make_plan(const Row& row, const Machine& machine) {
  Plan plan;
  if (row.streams == 0) {
    plan.stride = (row.operand_bytes + kPage - 1) / kPage * kPage;
    return plan;
  }
  const size_t block = size_t(row.bytes) / row.streams;
  plan.window = window_bytes(row.level, machine, plan.note);
  plan.trips_per_pass = std::max<size_t>(1, plan.window / row.streams / block);
  plan.stream = plan.trips_per_pass * block;
  plan.window = plan.stream * row.streams;
  plan.stride = (plan.stream + kPage - 1) / kPage * kPage;
  return plan;
}

// Random words that are doubles of whole numbers below 2^50 at the same time.
void fill(char* to, size_t bytes, uint64_t seed, bool zeros) {
  double* words = reinterpret_cast<double*>(to);
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = zeros ? 0 : double(int64_t(random_word(seed, i) >> 14));
}

uint64_t word_sum(const char* from, size_t bytes) {
  uint64_t sum = 0, word;
  for (size_t i = 0; i < bytes; i += 8) {
    std::memcpy(&word, from + i, 8);
    sum += word;
  }
  return sum;
}

uint64_t number_sum(const char* from, size_t bytes) {
  uint64_t sum = 0;
  double number;
  for (size_t i = 0; i < bytes; i += 8) {
    std::memcpy(&number, from + i, 8);
    sum += uint64_t(int64_t(number));
  }
  return sum;
}

bool holds_only(const char* from, size_t bytes, uint64_t wanted) {
  uint64_t different = 0, word;
  for (size_t i = 0; i < bytes; i += 8) {
    std::memcpy(&word, from + i, 8);
    different |= word ^ wanted;
  }
  return different == 0;
}

// One thread's memory, and what its result must be.
struct Part {
  Work work;
  uint64_t expected = 0;  // of a pass
  double begin = 0, end = 0, mhz = 0;
  double used = 0;  // seconds of CPU time in between
  bool correct = false;
};

void prepare(const Row& row, const Plan& plan, const Options& options, int thread, Part& part) {
  char* data = part.work.data;
  if (row.shape == Shape::arithmetic) {
    row.operands(data, options.seed, options.zeros);
    part.expected = row.model(data);
    return;
  }
  for (int stream = 0; stream < row.streams; ++stream)
    fill(data + stream * plan.stride, plan.stream, options.seed + 1000003 * thread + 101 * stream, options.zeros);
  const char *first = data + plan.stride, *second = first + plan.stride;
  if (row.shape == Shape::read) part.expected = word_sum(data, plan.stream);
  if (row.shape == Shape::copy) part.expected = word_sum(first, plan.stream);
  if (row.shape == Shape::triad)
    part.expected = number_sum(first, plan.stream) + uint64_t(kFactor) * number_sum(second, plan.stream);
}

// What a trial writes must not be there already from the one before.
void spoil(const Row& row, const Plan& plan, uint64_t salt, Part& part) {
  part.work.salt = salt;
  part.work.result = 0;
  if (row.shape == Shape::copy || row.shape == Shape::triad)
    for (size_t i = 0; i < plan.stream; i += kPage) std::memcpy(part.work.data + i, &salt, 8);
}

bool correct(const Row& row, const Plan& plan, const Part& part) {
  const Work& work = part.work;
  switch (row.shape) {
    case Shape::read: return work.result == work.passes * part.expected;
    case Shape::write: return holds_only(work.data, plan.stream, work.salt + work.passes - 1);
    case Shape::copy: return word_sum(work.data, plan.stream) == part.expected;
    case Shape::triad: return number_sum(work.data, plan.stream) == part.expected;
    case Shape::arithmetic: {
      const uint64_t mask = row.word_bytes == 8 ? ~uint64_t{0} : ~uint64_t{0} >> 32;
      return ((work.result ^ work.passes * part.expected) & mask) == 0;
    }
  }
  return false;
}

// All threads together: from the first one's begin to the last one's end.
Trial run_once(const Row& row, const Plan& plan, const Machine& machine, uint64_t passes, uint64_t salt,
               std::vector<Part>& parts) {
  on_all(machine, [&](int thread) {
    Part& part = parts[thread];
    spoil(row, plan, salt, part);
    part.work.passes = passes;
#pragma omp barrier
    part.begin = now();
    const double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    row.run(part.work);
    part.used = seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
    part.end = now();
    part.mhz = core_mhz();
    part.correct = correct(row, plan, part);
  });
  Trial trial = {parts[0].begin, parts[0].end, 0, 0, 0, true};
  for (const Part& part : parts) {
    trial.begin = std::min(trial.begin, part.begin);
    trial.end = std::max(trial.end, part.end);
    trial.core_mhz += part.mhz / double(parts.size());
    trial.correct = trial.correct && part.correct;
  }
  for (const Part& part : parts) trial.waited = std::max(trial.waited, part.end - trial.begin - part.used);
  const double per_trip = row.streams ? row.bytes : row.operations;
  trial.work = per_trip * double(plan.trips_per_pass) * double(passes) * double(parts.size());
  return trial;
}

}  // namespace

Arena::~Arena() {
  if (memory_) munmap(memory_, mapped_);
}

char* Arena::reserve(size_t bytes) {
  const size_t wanted = bytes + kHugePage;
  if (wanted > mapped_) {
    if (memory_) munmap(memory_, mapped_);
    mapped_ = 0;
    memory_ = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      throw Failure(kExitFailed, "the system gives no " + std::to_string(wanted >> 20) + " MiB of memory");
    }
    mapped_ = wanted;
    madvise(memory_, mapped_, MADV_HUGEPAGE);  // fewer address translations; nothing is lost where there are none
  }
  const size_t begin = reinterpret_cast<size_t>(memory_);
  return reinterpret_cast<char*>((begin + kHugePage - 1) / kHugePage * kHugePage);
}

std::string missing(const Row& row, const Machine& machine) {
  const bool known = row.level == Level::none || row.level == Level::dram ||
                     (row.level == Level::l1 && machine.l1_share) || (row.level == Level::l2 && machine.l2_share) ||
                     (row.level == Level::l3 && machine.l3_share);
  return row.exists && known ? "" : "unsupported";
}

Summary measure(const Row& row, const Machine& machine, Arena& arena, const Options& options, const Report& report) {
  const Plan plan = make_plan(row, machine);
  const size_t per_thread = (plan.stride * std::max(1, row.streams) + kHugePage - 1) / kHugePage * kHugePage;
  char* memory = arena.reserve(per_thread * machine.cpus.size());
  std::vector<Part> parts(machine.cpus.size());
  on_all(machine, [&](int thread) {  // the first to touch a page decides where it lies
    parts[thread].work = {memory + thread * per_thread, plan.stride, plan.trips_per_pass, 0, 0, kFactor, 0};
    prepare(row, plan, options, thread, parts[thread]);
  });
  const auto run = [&](uint64_t passes, int trial) {
    return run_once(row, plan, machine, passes, random_word(options.seed, trial), parts);
  };
  uint64_t passes = std::max<uint64_t>(1, (options.trips + plan.trips_per_pass - 1) / plan.trips_per_pass);
  const double wanted = options.min_milliseconds * 1e-3;
  for (int i = -1; options.trips == 0; --i) {  // longer until it lasts, never more than 64 times as long at once
    const Trial trial = run(passes, i);
    const double seconds = trial.end - trial.begin - trial.waited;  // one that was disturbed is no long one
    if (seconds >= wanted) break;
    const double factor = seconds > 0 ? std::min(64.0, wanted * 1.05 / seconds) : 64;
    passes = std::max(passes + 1, uint64_t(std::ceil(double(passes) * factor)));
  }
  Summary done = {int(parts.size()), double(passes * plan.trips_per_pass), double(passes), double(plan.window), 0, 0, plan.note};
  bool more = true;
  for (int i = 0; i < options.trials && more; ++i) {
    Trial trial = run(passes, i);
    while (done.repeated < options.trials && trial.correct && trial.disturbed() > kUndisturbed) {
      const Trial again = run(passes, options.trials + done.repeated++);
      if (!again.correct || again.disturbed() < trial.disturbed()) trial = again;
    }
    done.disturbed += (trial.disturbed() - done.disturbed) / (i + 1);
    more = report(trial);
  }
  return done;
}

}  // namespace bench
