#pragma once

#include <string_view>

#include "io/onnx/node.h"

// What mappings of several families share.

namespace hone::onnx_io {

// A hint for evaluation in place, which many ops had before version 6.
inline void ignore_consumed_inputs(Node& n) {
  if (n.version() < 6) n.ignore("consumed_inputs");
}

// Where the "max" or "min" along the axis stands, the first or the last of equals. An axis without
// elements gives a number without meaning, if that is only seen when the graph runs. reduction.cc
Value arg_extreme(Value x, std::string_view kind, int axis, bool last = false);

}  // namespace hone::onnx_io
