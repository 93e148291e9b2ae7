#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "session/face.h"
#include "session/memory.h"
#include "session/sizes.h"
#include "tensor/tensor.h"

// Makes the tensors of a graph's parameters from sizes, tensors and a seed.

namespace hone {

struct GivenInput {
  std::string name;
  Tensor tensor;                    // null: `read` gives it
  std::string from = "the tensor";  // names it in errors and notices: "x.npy"
  std::string label = "the input";  // what the user wrote to give it: "--input"
  // For a tensor in a file: the type of its header, and how to read the data, which is left until
  // the model is known to take it.
  Type header = {};
  std::function<Result<Tensor>()> read = {};

  Type type() const { return tensor ? tensor.type() : header; }
  Result<Tensor> value() const;
};

// The inputs and sizes that a user gives before the model is read.
struct Given {
  Sizes sizes = {};
  std::vector<GivenInput> inputs = {};
  SmallestSizes smallest = {};
};
// The sizes, and those that the given tensors have.
Sizes all_sizes(const Given& given);

struct RunInputs {
  std::vector<Tensor> tensors;  // of all parameters, in order
  Bindings bindings;            // of all symbols
  Bindings chosen;              // those of them that the sizes tell
  Bindings guessed;             // those that nothing tells: the smallest
  MemoryLeft memory_left = {};
  std::vector<bool> is_random;  // by parameter: drawn from the seed; empty: none is
  uint64_t seed = 0;
};

// Refuses a model that calls what its file does not have: nobody can give the result.
Status refuse_missing_calls(const Graph& signature);

// Sizes that are open follow from the given tensors, or are the smallest. Inputs that are not given
// are random, of this seed. Reals are rounded to a narrower type of an input. The face is told of
// each. Data are read or made once it is known that the run has enough memory.
Result<RunInputs> resolve_inputs(const Graph& signature, Given given, int64_t seed, Engine engine,
                                 const Face& face = {});

}  // namespace hone
