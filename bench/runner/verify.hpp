// Results of a GPU against results of the CPU model.
#pragma once
#include <string>
#include <vector>

#include "../kernels/table.hpp"

namespace bench {

// "" when they agree as the row demands, else what differs.
std::string compare(const Row& row, const std::vector<uint32_t>& got, const std::vector<uint32_t>& wanted);

}  // namespace bench
