// ncu-roofline-bench-cpu: measures ceilings of the CPU at hand, variant by variant, and prints JSON lines (SI units).
//   list | devices | device --device 0
//   run --device 0 --ceiling ID --variant V --trials N --min-time-ms T [--data random|zeros] [--seed S]
//       [--trips N: just so many, for a profiler, instead of what the time asks for]
//   serve --device 0: jobs from standard input, each a line with the words of `run` without --device
// All but list take [--threads N], by default one per physical core that this process may use.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>

#include "machine.hpp"
#include "measure.hpp"
#include "row.hpp"

namespace {

using bench::Failure;
using bench::kExitUsage;
using Arguments = std::map<std::string, std::string>;

Arguments parse(const std::vector<std::string>& words) {
  Arguments found;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (words[i].substr(0, 2) != "--" || i + 1 == words.size())
      throw Failure(kExitUsage, "expected --name VALUE, not " + words[i]);
    found[words[i].substr(2)] = words[i + 1];
  }
  return found;
}

std::string text(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const auto found = arguments.find(name);
  if (found != arguments.end()) return found->second;
  if (!otherwise) throw Failure(kExitUsage, std::string("--") + name + " is missing");
  return otherwise;
}

double number(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const std::string value = text(arguments, name, otherwise);
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(parsed >= 0 && parsed < 1e18))
    throw Failure(kExitUsage, std::string("--") + name + " is no number: " + value);
  return parsed;
}

std::vector<bench::Row> rows() {
  std::vector<bench::Row> all = bench::memory_rows();
  for (const auto& more : {bench::fused_rows(), bench::separate_rows()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

bench::Machine machine(const Arguments& arguments) {
  const double index = number(arguments, "device", "0");
  if (index != 0) throw Failure(bench::kExitNoDevice, "there is no device " + text(arguments, "device") + ", the CPU is device 0");
  return bench::find_machine(int(number(arguments, "threads", "0")));
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string printed(const char* format, double value) {
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

void list(const bench::Machine& here) {
  for (const bench::Row& row : rows())
    say(std::string("{\"ceiling\": \"") + row.ceiling + "\", \"variant\": \"" + row.variant + "\", \"unit\": \"" + row.unit +
        "\", \"capabilities\": [], \"kernel\": \"" + row.kernel + "\", \"reason\": \"" + bench::missing(row, here) +
        "\", \"pipe\": \"" + row.pipe + "\", \"operations_per_trip\": " + printed("%.17g", row.operations) +
        ", \"bytes_per_trip\": " + printed("%.17g", row.bytes) + "}");
}

bench::Row find(const std::string& ceiling, const std::string& variant) {
  for (const bench::Row& row : rows())
    if (ceiling == row.ceiling && variant == row.variant) return row;
  throw Failure(kExitUsage, "there is no ceiling " + ceiling + " in variant " + variant);
}

// Jobs from standard input, read ahead while one runs: a line "stop" says that its trials are enough.
std::deque<std::string> waiting;
bool next_line(std::string& line) {
  if (waiting.empty()) return bool(std::getline(std::cin, line));
  line = waiting.front();
  waiting.pop_front();
  return true;
}
bool stopped() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  std::string line;
  if (poll(&input, 1, 0) <= 0 || !std::getline(std::cin, line)) return false;
  if (line != "stop") waiting.push_back(line);
  return line == "stop";
}

void run(const Arguments& arguments, const bench::Machine& here, bench::Arena& arena, bool may_stop) {
  const bench::Row row = find(text(arguments, "ceiling"), text(arguments, "variant"));
  bench::Options options;
  options.trials = int(number(arguments, "trials"));
  options.min_milliseconds = number(arguments, "min-time-ms");
  options.seed = uint64_t(number(arguments, "seed", "1"));
  options.trips = uint64_t(number(arguments, "trips", "0"));
  const std::string data = text(arguments, "data", "random");
  if (data != "random" && data != "zeros") throw Failure(kExitUsage, "--data is random or zeros, not " + data);
  options.zeros = data == "zeros";
  if (!bench::missing(row, here).empty()) throw Failure(bench::kExitFailed, std::string(row.ceiling) + " is unsupported on this CPU");
  int index = 0;
  const bench::Summary done = bench::measure(row, here, arena, options, [&](const bench::Trial& trial) {
    say("{\"trial\": " + std::to_string(index++) + ", \"seconds\": " + printed("%.9e", trial.end - trial.begin) +
        ", \"work\": " + printed("%.17g", trial.work) +
        ", \"sm_mhz\": " + (trial.core_mhz > 0 ? printed("%.2f", trial.core_mhz) : "null") +
        ", \"checksum_ok\": " + (trial.correct ? "true" : "false") + ", \"begin\": " + printed("%.9f", trial.begin) +
        ", \"end\": " + printed("%.9f", trial.end) + "}");
    return !(may_stop && stopped());
  });
  say("{\"done\": true, \"threads\": " + std::to_string(done.threads) + ", \"trips\": " + printed("%.17g", done.trips) +
      ", \"passes\": " + printed("%.17g", done.passes) + ", \"window_bytes\": " + printed("%.17g", done.window_bytes) +
      ", \"repeated\": " + std::to_string(done.repeated) + ", \"disturbed\": " + printed("%.4f", done.disturbed) +
      ", \"reason\": \"\", \"note\": " + bench::quoted(done.note) + "}");
}

void say_failure(const std::string& reason) { say("{\"error\": " + bench::quoted(reason) + "}"); }

void serve(const Arguments& arguments) {
  const bench::Machine here = machine(arguments);
  bench::Arena arena;
  for (std::string line; next_line(line);) {
    std::stringstream parts(line);
    std::vector<std::string> words;
    for (std::string word; parts >> word;) words.push_back(word);
    if (words.empty() || line == "stop") continue;  // one that came after the last trial
    try {
      run(parse(words), here, arena, true);
    } catch (const std::exception& failure) {
      say_failure(failure.what());
    }
  }
}

void command(const std::string& name, const Arguments& arguments) {
  if (name == "list") {
    list(machine(arguments));
  } else if (name == "devices" || name == "device") {
    say(bench::device_line(machine(arguments)));
  } else if (name == "run") {
    bench::Arena arena;
    run(arguments, machine(arguments), arena, false);
  } else if (name == "serve") {
    serve(arguments);
  } else {
    throw Failure(kExitUsage, "the commands are list, devices, device, run and serve");
  }
}

}  // namespace

int main(int count, char** texts) {
  try {
    command(count > 1 ? texts[1] : "", parse({texts + std::min(count, 2), texts + count}));
    return 0;
  } catch (const Failure& failure) {
    say_failure(failure.what());
    return failure.code;
  } catch (const std::exception& error) {
    say_failure(error.what());
    return bench::kExitFailed;
  }
}
