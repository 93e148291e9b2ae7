#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/problem.h"

namespace hone {

// A placement as an SVG drawing: time to the right, offsets upwards, a rectangle wherever a buffer
// is in use, the capacity as a line; spaces one above the other. Drawings of thousands of buffers
// do without the rectangles' titles, and the largest of them leave out the smallest rectangles.
// The placement is one that heights_of accepts; without ids, buffers are called by their index.
std::string plot_memory(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
                        std::span<const std::string_view> ids = {});

}  // namespace hone
