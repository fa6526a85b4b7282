// ncu-roofline-bench: measures ceilings of one GPU, variant by variant, and prints JSON lines (SI units).
//   list [--capabilities 90,100] | devices | run --device I JOB | serve --device I: jobs from standard input, one per line,
//   each followed by a line "stop" where fewer trials are enough
//   JOB: --ceiling ID --variant V --trials N --min-time-ms T [--data random|zeros] [--seed S] [--pause-ms P: before each trial]
//   [--trips N: just so many, for a profiler, instead of what the time asks for]
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "runner.hpp"

namespace {

using bench::Failure;
using Arguments = std::map<std::string, std::string>;

Arguments parse(const std::vector<std::string>& words) {
  Arguments found;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string& name = words[i];
    if (name.substr(0, 2) != "--" || i + 1 == words.size())
      throw Failure("expected --name VALUE, not " + name);
    found[name.substr(2)] = words[i + 1];
  }
  return found;
}

std::string text(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const auto found = arguments.find(name);
  if (found != arguments.end()) return found->second;
  if (!otherwise) throw Failure(std::string("--") + name + " is missing");
  return otherwise;
}
double number(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const std::string value = text(arguments, name, otherwise);
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(parsed >= 0))
    throw Failure(std::string("--") + name + " is no number: " + value);
  return parsed;
}

std::string capability_text(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

bool emulated(const bench::Row& row, int capability) {
  const std::string list = std::string(" ") + row.emulated + " ";
  const std::string any_minor = " " + std::to_string(capability / 10) + ".x ";
  return list.find(" " + capability_text(capability) + " ") != std::string::npos || list.find(any_minor) != std::string::npos;
}

const char* reason(const bench::Row& row, int capability) {
  return !exists(row, capability) ? "unsupported" : emulated(row, capability) ? "emulated" : "";
}

// Where the compiler only emulates it, a row of its own says so.
void print_row(const bench::Row& row, bool imitated, const std::vector<int>& asked) {
  std::string capabilities;
  for (int one : asked)
    if (exists(row, one) && emulated(row, one) == imitated)
      capabilities += (capabilities.empty() ? "\"" : ", \"") + capability_text(one) + "\"";
  if (capabilities.empty()) return;
  std::printf(
      "{\"ceiling\": \"%s\", \"variant\": \"%s\", \"unit\": \"%s\", \"capabilities\": [%s], \"kernel\": \"%s\", "
      "\"reason\": \"%s\"}\n",
      row.ceiling, row.variant, row.unit, capabilities.c_str(), row.symbol, imitated ? "emulated" : "");
}

// --capabilities 90,100: which to tell of; those that this program is compiled for unless said.
std::vector<int> asked_capabilities(const Arguments& arguments) {
  std::vector<int> found;
  std::stringstream list(text(arguments, "capabilities", ""));
  for (std::string word; std::getline(list, word, ',');) found.push_back(std::atoi(word.c_str()));
  if (found.empty())
    for (int one : {__CUDA_ARCH_LIST__}) found.push_back(one / 10);
  return found;
}

void list(const Arguments& arguments) {
  const std::vector<int> asked = asked_capabilities(arguments);
  for (const bench::Measurable& item : bench::measurables())
    for (bool imitated : {false, true}) print_row(item.row, imitated, asked);
}

void print_trial(int index, const bench::Trial& trial) {
  char clock[32] = "null";
  if (trial.sm_mhz > 0) std::snprintf(clock, sizeof clock, "%.2f", trial.sm_mhz);
  std::printf(
      "{\"trial\": %d, \"seconds\": %.9e, \"work\": %.17g, \"sm_mhz\": %s, \"checksum_ok\": %s, \"begin\": %.6f, "
      "\"end\": %.6f}\n",
      index, trial.seconds, trial.work, clock, trial.correct ? "true" : "false", trial.begin, trial.end);
  std::fflush(stdout);
}

// A variant may have rows of its own for some capabilities; where it is on none of them, any tells what it is.
bench::Measurable find(const std::string& ceiling, const std::string& variant, int capability) {
  for (bool here : {true, false})
    for (const bench::Measurable& item : bench::measurables())
      if (ceiling == item.row.ceiling && variant == item.row.variant && (!here || exists(item.row, capability))) return item;
  throw Failure("there is no ceiling " + ceiling + " in variant " + variant);
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

void run(const bench::Device& device, const Arguments& arguments, bool may_stop) {
  const std::string ceiling = text(arguments, "ceiling");
  const bench::Measurable item = find(ceiling, text(arguments, "variant"), device.capability);
  bench::Options options;
  options.trials = static_cast<int>(number(arguments, "trials"));
  options.min_milliseconds = number(arguments, "min-time-ms");
  options.pause_milliseconds = number(arguments, "pause-ms", "0");
  options.seed = static_cast<uint64_t>(number(arguments, "seed", "1"));
  options.trips = static_cast<uint64_t>(number(arguments, "trips", "0"));
  const std::string data = text(arguments, "data", "random");
  if (data != "random" && data != "zeros") throw Failure("--data is random or zeros, not " + data);
  options.zeros = data == "zeros";
  const std::string why = reason(item.row, device.capability);
  if (why == "unsupported") throw Failure(std::string(item.row.ceiling) + " is unsupported on this GPU");
  int index = 0;
  const bench::Report report = [&](const bench::Trial& trial) {
    print_trial(index++, trial);
    return !(may_stop && stopped());
  };
  const bench::Summary done = item.row.shape == bench::Shape::link     ? bench::measure_link(item.row, device, options, report)
                              : item.row.shape == bench::Shape::launch ? bench::measure_launch(item.row, options, report)
                                                                       : bench::measure_kernel(item, device, options, report);
  std::printf("{\"done\": true, \"grid\": %u, \"block\": %u, \"trips\": %.17g, \"reason\": \"%s\"}\n", done.blocks,
              done.threads, done.trips, why.c_str());
  std::fflush(stdout);
}

void print_error(const char* what, bool fatal) {
  std::printf("{\"error\": %s%s}\n", bench::quoted(what).c_str(), fatal ? ", \"fatal\": true" : "");
  std::fflush(stdout);
}

// One job per line, so that the GPU's context is made once.  An error that sticks to the context ends the program.
void serve(const bench::Device& device) {
  for (std::string line; next_line(line);) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (line == "stop") continue;  // it came after the last trial
    try {
      run(device, parse(words), true);
    } catch (const std::exception& error) {
      cudaGetLastError();
      const bool fatal = cudaDeviceSynchronize() != cudaSuccess || cudaFree(nullptr) != cudaSuccess;
      print_error(error.what(), fatal);
      if (fatal) std::exit(1);
    }
  }
}

void print_devices() {
  const int count = bench::device_count();
  for (int index = 0; index < count; ++index) {
    try {
      bench::print_device(bench::describe_device(index));
    } catch (const std::exception& error) {  // one that can't be used hides no other
      std::printf("{\"index\": %d, \"unusable\": %s}\n", index, bench::quoted(error.what()).c_str());
    }
  }
}

void command(const std::vector<std::string>& texts) {
  const std::string name = texts.empty() ? "" : texts[0];
  const Arguments arguments = parse({texts.begin() + (texts.empty() ? 0 : 1), texts.end()});
  const auto opened = [&] { return bench::open_device(static_cast<int>(number(arguments, "device", "0"))); };
  if (name == "list")
    list(arguments);
  else if (name == "devices")
    print_devices();
  else if (name == "run")
    run(opened(), arguments, false);
  else if (name == "serve")
    serve(opened());
  else
    throw Failure("the commands are list, devices, run and serve");
}

}  // namespace

int main(int count, char** texts) {
  try {
    command({texts + 1, texts + count});
    return 0;
  } catch (const std::exception& error) {
    print_error(error.what(), false);
    return 1;
  }
}
