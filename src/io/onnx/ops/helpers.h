#pragma once

#include "io/onnx/node.h"

// What mappings of several families share.

namespace hone::onnx_io {

// A hint for evaluation in place, which many ops had before version 6.
inline void ignore_consumed_inputs(Node& n) {
  if (n.version() < 6) n.ignore("consumed_inputs");
}

}  // namespace hone::onnx_io
