#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

// "dot_add_max", "dot_add_max_exp_and_3": what a kernel's body computes, for people.
std::string kernel_name(const Graph& body);

}  // namespace hone
