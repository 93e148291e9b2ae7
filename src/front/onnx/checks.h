#pragma once

#include "front/onnx/body.h"
#include "front/onnx/flow.h"

// Checks for values without a meaning. The finding of a check is f64[3]: its number, from 1 on, the
// place of the value, and the value; zeros if there is none. A subgraph hands the findings of its
// checks to the graph around it, as one more result.

namespace hone::onnx_io {

Type found_type();
Value nothing_found(Builder& builder);
// The first, if it is something.
Value first_found(Value first, Value second);

// Takes the last result, which a checked import has beyond those of the subgraph.
void lift_found(Node& n, std::vector<Value>& results, std::span<const int64_t> checks);

// In a loop: the last result is what an iteration has found, which goes to `out` after what the
// iterations before have found. `before` is empty where nothing is checked.
void keep_found(std::span<const Value> before, std::vector<Value>& results,
                std::vector<Value>& out);

}  // namespace hone::onnx_io
