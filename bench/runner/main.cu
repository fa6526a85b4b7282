// ncu-roofline-bench: measures ceilings of one GPU, variant by variant, and prints JSON lines (SI units).
//   list [--capabilities 90,100] | device --device I | run --device I --ceiling ID --variant V --trials N --min-time-ms T
//   [--data random|zeros] [--seed S] [--trips N: just so many, for a profiler, instead of what the time asks for]
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "runner.hpp"

namespace {

using bench::Failure;
using Arguments = std::map<std::string, std::string>;

Arguments parse(int count, char** texts) {
  Arguments found;
  for (int i = 0; i < count; i += 2) {
    const std::string name = texts[i];
    if (name.substr(0, 2) != "--" || i + 1 == count) throw Failure(bench::kExitUsage, "expected --name VALUE, not " + name);
    found[name.substr(2)] = texts[i + 1];
  }
  return found;
}

std::string text(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const auto found = arguments.find(name);
  if (found != arguments.end()) return found->second;
  if (!otherwise) throw Failure(bench::kExitUsage, std::string("--") + name + " is missing");
  return otherwise;
}
double number(const Arguments& arguments, const char* name, const char* otherwise = nullptr) {
  const std::string value = text(arguments, name, otherwise);
  char* end = nullptr;
  const double parsed = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(parsed >= 0))
    throw Failure(bench::kExitUsage, std::string("--") + name + " is no number: " + value);
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
  std::printf("{\"trial\": %d, \"seconds\": %.9e, \"work\": %.17g, \"sm_mhz\": %s, \"checksum_ok\": %s}\n", index,
              trial.seconds, trial.work, clock, trial.correct ? "true" : "false");
  std::fflush(stdout);
}

bench::Measurable find(const std::string& ceiling, const std::string& variant) {
  for (const bench::Measurable& item : bench::measurables())
    if (ceiling == item.row.ceiling && variant == item.row.variant) return item;
  throw Failure(bench::kExitUsage, "there is no ceiling " + ceiling + " in variant " + variant);
}

void run(const Arguments& arguments) {
  const std::string ceiling = text(arguments, "ceiling");
  const bench::Measurable item = find(ceiling, text(arguments, "variant"));
  bench::Options options;
  options.device = static_cast<int>(number(arguments, "device"));
  options.trials = static_cast<int>(number(arguments, "trials"));
  options.min_milliseconds = number(arguments, "min-time-ms");
  options.seed = static_cast<uint64_t>(number(arguments, "seed", "1"));
  options.trips = static_cast<uint64_t>(number(arguments, "trips", "0"));
  const std::string data = text(arguments, "data", "random");
  if (data != "random" && data != "zeros") throw Failure(bench::kExitUsage, "--data is random or zeros, not " + data);
  options.zeros = data == "zeros";
  const bench::Device device = bench::open_device(options.device);
  const std::string why = reason(item.row, device.capability);
  if (why == "unsupported") throw Failure(bench::kExitFailed, std::string(item.row.ceiling) + " is unsupported on this GPU");
  int index = 0;
  const bench::Report report = [&](const bench::Trial& trial) { print_trial(index++, trial); };
  const bench::Summary done = item.row.shape == bench::Shape::link     ? bench::measure_link(item.row, options, report)
                              : item.row.shape == bench::Shape::launch ? bench::measure_launch(item.row, options, report)
                                                                       : bench::measure_kernel(item, device, options, report);
  std::printf("{\"done\": true, \"grid\": %u, \"block\": %u, \"trips\": %.17g, \"reason\": \"%s\"}\n", done.blocks,
              done.threads, done.trips, why.c_str());
}

void command(int count, char** texts) {
  const std::string name = count > 1 ? texts[1] : "";
  const Arguments arguments = parse(count > 2 ? count - 2 : 0, texts + 2);
  if (name == "list")
    list(arguments);
  else if (name == "device")
    print_device(bench::open_device(static_cast<int>(number(arguments, "device", "0"))));
  else if (name == "run")
    run(arguments);
  else
    throw Failure(bench::kExitUsage, "the commands are list, device and run");
}

}  // namespace

int main(int count, char** texts) {
  try {
    command(count, texts);
    return 0;
  } catch (const Failure& failure) {
    std::printf("{\"error\": %s}\n", bench::quoted(failure.what()).c_str());
    return failure.code;
  } catch (const std::exception& error) {
    std::printf("{\"error\": %s}\n", bench::quoted(error.what()).c_str());
    return bench::kExitFailed;
  }
}
