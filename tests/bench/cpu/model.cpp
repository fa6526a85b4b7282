// The kernels on the CPU model, for tests:  model table | model check | model run
#include <cstdio>
#include <string_view>

#include "../../../bench/cpu/machine.hpp"
#include "../../../bench/cpu/reference.hpp"
#include "checks.hpp"

namespace {

void print_row(const bench::Row& row) {
  std::printf(
      "{\"symbol\": \"%s\", \"ceiling\": \"%s\", \"variant\": \"%s\", \"unit\": \"%s\", \"pipe\": \"%s\", \"since\": %d, "
      "\"until\": %d, \"emulated\": \"%s\", \"threads\": %d, \"operations\": %.17g, \"bytes\": %.17g, \"streams\": %d}\n",
      row.symbol, row.ceiling, row.variant, row.unit, row.pipe, row.since, row.until, row.emulated, row.threads, row.operations,
      row.bytes, row.streams);
}

template <class F>
void each_row(F&& f) {
  for (int unit = 0; unit < bench::kUnits; ++unit)
    for (size_t i = 0; i < bench::reference_unit(unit).count; ++i) f(bench::reference_unit(unit).rows[i]);
}

}  // namespace

int main(int count, char** texts) {
  const std::string_view command = count > 1 ? texts[1] : "";
  if (command == "table")
    each_row(print_row);
  else if (command == "check")
    each_row(check_row);
  else if (command == "run")
    each_row([](const bench::Row& row) {  // tensor kernels are fed as vector kernels are, and slow on the model
      if (std::string_view(row.pipe).substr(0, 6) != "tensor") run_row(row);
    });
  else
    return 2;
  return 0;
}
