#pragma once

#include "cli/arguments.h"
#include "io/onnx/onnx.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

#include <string>
#include <string_view>
#include <vector>

// From --dim, --shape, --input, --inputs and --seed to the tensors of a graph's parameters.

namespace hone::cli {

class Console;

struct RunInputs {
  std::vector<Tensor> tensors;      // of all parameters, in order
  Bindings bindings;                // of all symbols
  Bindings chosen;                  // those of them that --dim and --shape tell
  int64_t memory_left = INT64_MAX;  // bytes for what native code computes on the way
};

// What needs the memory. The reference has room for native code beside it.
enum class Engine : uint8_t { native, reference };
// What the machine has beside inputs, outputs and constants; an error if a run needs more than it
// has. All symbols are bound. What arenas take is known once there is code, and is not in it.
Result<int64_t> memory_left(const Graph& graph, const Bindings& bindings, Engine engine);

// --dim and --shape, as they were given.
struct Sizes {
  std::vector<std::string> dims;    // "NAME=N"
  std::vector<std::string> shapes;  // "NAME=1x3x224x224"
};
Sizes sizes_of(const Arguments& arguments);

// Says on the console what was chosen: symbols, random inputs and their seed.
Result<RunInputs> resolve_inputs(const Graph& graph, const Sizes& sizes, const Arguments& arguments,
                                 Engine engine, Console& console);

// What the sizes say about symbols of the graph, each checked.
Result<Bindings> size_bindings(const Graph& graph, const Sizes& sizes, Console& console);
// And the smallest for those of which they say nothing, which is said on the console.
Result<Bindings> all_size_bindings(const Graph& graph, const Sizes& sizes, Console& console);
// The same for the import of an ONNX file, which checks them itself.
Result<OnnxImport> onnx_sizes(const Sizes& sizes);

// "--dim N=1 --dim M=2": what binds these.
std::string dim_options(const Bindings& sizes);

// A .pb of ONNX, otherwise a .npy.
Result<Tensor> read_tensor(const std::string& path);

// "2x3xf32=1 2 3 4 5 6", "i64=7", or one number for all elements: "8xf16=0.5".
Result<Type> parse_literal_type(std::string_view text);  // the part before the sign
Result<Tensor> parse_literal(std::string_view text);

}  // namespace hone::cli
