#include "io/onnx/registry.h"

namespace hone::onnx_io {

void map_relu(Node& n) { n.out(relu(n.in())); }

}  // namespace hone::onnx_io
