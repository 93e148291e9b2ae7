#include "front/onnx/registry.h"

// Ops that are known and refused, so that the reason is the true one.

namespace hone::onnx_io {

void map_random(Node& n) {
  n.unsupported("it draws random numbers, which no two runtimes draw alike");
}

void map_dictionary(Node& n) { n.unsupported("its operand is a map; hone handles tensors"); }

}  // namespace hone::onnx_io
