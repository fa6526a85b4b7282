// One line of JSON per kernel: what was counted against what its row promises, and whether its results are right.
#pragma once
#include "../../../bench/kernels/table.hpp"

void check_row(const bench::Row& row);
// The same of the runner with the model in the GPU's place: how it feeds a kernel, how long, and what it then finds.
void run_row(const bench::Row& row);
