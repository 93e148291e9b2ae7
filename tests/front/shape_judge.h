#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "front/onnx/proto.h"

// A second reading of the ONNX operators that compute shapes and take them: small, slow, written
// from the text of the standard alone. It shares no code with import or the reference, so that a
// fault of both does not pass.

namespace hone::shape_judge {

enum class Kind { f32, i32, i64, boolean };

// Elements in row-major order. All numbers that the judge allows are exact as double.
struct Array {
  Kind kind = Kind::f32;
  std::vector<int64_t> dims;
  std::vector<double> values;
};

// The standard does not allow the operands.
struct Illegal {
  std::string why;
};
// The standard gives them no result, leaves it open, or the judge does not know the op.
struct Unclear {
  std::string why;
};

using Arrays = std::map<std::string, Array>;

// Computes the outputs of the node from the arrays. Throws Illegal or Unclear.
void run_node(const onnx::NodeProto& node, Arrays& arrays);

}  // namespace hone::shape_judge
