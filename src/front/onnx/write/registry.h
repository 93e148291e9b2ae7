#pragma once

#include "front/onnx/write/emit.h"

namespace hone::onnx_io {

// An export returns false if the op at hand has no ONNX form of its own. A composite is then
// spelled out, and a primitive is refused.
#define HONE_EXPORT(opcode, since, function) bool function(Emit& emit);
#include "front/onnx/write/exports.def"

// A window sum divided by the number of elements in each window, as one op.
bool export_average(Emit& emit);
// exp(x - max(x)) divided by its sum along one axis, as one op.
bool export_softmax_in_steps(Emit& emit);

struct ExportRow {
  Opcode opcode;
  int since;
  bool (*write)(Emit&);
};

// The row for an opset; null if there is none.
const ExportRow* find_export(Opcode opcode, int opset);

}  // namespace hone::onnx_io
