#include "kernel/kernel_name.h"

namespace hone {

std::string kernel_name(const Graph& body) {
  constexpr int kMaxOps = 4;
  std::string name;
  int ops = 0;
  for (NodeId n : body.nodes()) {
    if (is_leaf(body.opcode(n))) continue;
    if (++ops > kMaxOps) continue;
    if (ops > 1) name += '_';
    name += body.op(n).name();
  }
  return ops > kMaxOps ? fmt::format("{}_and_{}", name, ops - kMaxOps) : name;
}

}  // namespace hone
