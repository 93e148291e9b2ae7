#pragma once

#include <string_view>

#include "front/onnx/node.h"

// Helpers that mappings of several families share.

namespace hone::onnx_io {

// Where the "max" or "min" along the axis stands, the first or the last of equals. An axis without
// elements gives a number without meaning, if that is only seen when the graph runs. reduction.cc
Value arg_extreme(Value x, std::string_view kind, int axis, bool last = false);

// All elements as one vector.
inline Value flattened(Value x) { return reshape(x, {x.type().elements()}); }

}  // namespace hone::onnx_io
