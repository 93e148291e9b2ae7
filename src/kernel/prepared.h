#pragma once

#include <functional>
#include <optional>

#include "kernel/facts.h"
#include "tensor/tensor.h"

namespace hone {

// A parameter of a body that the kernel of a schedule reads in another form than its layout says.
// It is a constant, and gets that form when the model is built.
struct PreparedInput {
  size_t parameter = 0;
  Type type;                                   // of its memory
  std::function<Tensor(const Tensor&)> value;  // of the tensor as the graph has it
};

// None: the kernel reads all parameters as they lie. The schedule fits the body.
std::optional<PreparedInput> prepared_input(const KernelBody& body, const Schedule& schedule);

}  // namespace hone
