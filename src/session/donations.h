#pragma once

#include <map>
#include <string>

#include "ir/model.h"

namespace hone {

// The model, a single graph, whose named outputs may lie in the memory of inputs, if who runs it
// gives these up: `outputs` says for an input its output. Both have the same type. Donations of
// the graph stay.
Result<Model> with_donations(const Model& model, const std::map<std::string, std::string>& outputs);

}  // namespace hone
