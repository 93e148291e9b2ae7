#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "session/face.h"
#include "session/memory.h"
#include "session/sizes.h"
#include "tensor/tensor.h"

// From sizes, tensors and a seed to the tensors of a graph's parameters.

namespace hone {

struct GivenInput {
  size_t index;  // input_index()
  Tensor tensor;
  std::string from = "the tensor";  // names it in errors and notices: "x.npy"
};

struct RunInputs {
  std::vector<Tensor> tensors;      // of all parameters, in order
  Bindings bindings;                // of all symbols
  Bindings chosen;                  // those of them that the sizes tell
  int64_t memory_left = INT64_MAX;  // bytes for what native code computes on the way
};

// Sizes that are open follow from the given tensors, or are the smallest. What is not given is
// random, of this seed. Reals are rounded to a narrower type of an input. The face is told of each.
Result<RunInputs> resolve_inputs(const Graph& signature, const Sizes& sizes,
                                 std::vector<GivenInput> given, int64_t seed, Engine engine,
                                 const Face& face = {});

// A .pb of ONNX, otherwise a .npy.
Result<Tensor> read_tensor(const std::string& path);

}  // namespace hone
