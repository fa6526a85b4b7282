// One line of JSON per kernel: what was counted against what its row promises, and whether its results are right.
#pragma once
#include "../../../bench/kernels/table.hpp"

void check_row(const bench::Row& row);
