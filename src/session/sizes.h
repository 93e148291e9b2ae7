#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "front/onnx/onnx.h"
#include "ir/graph.h"
#include "session/face.h"

// Turns a user's words about sizes into the numbers of a graph's symbols.

namespace hone {

struct Sizes {
  std::map<std::string, int64_t, std::less<>> dims = {};  // of symbols: N -> 4
  std::map<std::string, Ints, std::less<>> shapes = {};   // of inputs: x -> 1x3x224x224
};

// "NAME=N" for each symbol and "NAME=1x3x224x224" for each input; "NAME=" is the shape of a scalar.
Result<Sizes> parse_sizes(std::span<const std::string> dims, std::span<const std::string> shapes,
                          const Labels& labels = {});
// "NAME=VALUE" at its first sign. `label` names the option in errors.
Result<std::pair<std::string, std::string>> split_pair(std::string_view label,
                                                       const std::string& text);

// The smallest sizes that a model takes, beside those that are told; empty: the smallest of each
// symbol.
using SmallestSizes = std::function<Bindings(const Bindings& told)>;

// Symbols of a graph, bound one after another. Each number is checked against what is known.
class SizeBinder {
 public:
  // Both outlive the binder.
  SizeBinder(const Graph& signature, const Face& face);

  Status add(const Sizes& sizes);
  // The shape of input i; symbols follow.
  Status add_shape(size_t i, std::span<const int64_t> dims);
  // Symbols that nothing has decided take their smallest value, or what `smallest` says for those
  // that are decided. The face is told.
  Status add_smallest(const SmallestSizes& smallest = {});

  const Bindings& bindings() const { return bindings_; }

 private:
  Status add_dim(std::string_view name, int64_t size);

  const Graph& signature_;
  const Face& face_;
  std::vector<std::optional<Ints>> shapes_;  // by input, as given
  Bindings bindings_;
};

// The values that the sizes give to symbols of the graph.
Result<Bindings> size_bindings(const Graph& signature, const Sizes& sizes, const Face& face = {});
// And the smallest for those of which they say nothing, as SizeBinder::add_smallest.
Result<Bindings> all_size_bindings(const Graph& signature, const Sizes& sizes,
                                   const Face& face = {}, const SmallestSizes& smallest = {});
// The same for the import of an ONNX file, which checks them itself.
ImportOptions import_sizes(const Sizes& sizes);

// The options that a user writes to bind these: "--dim N=1 --dim M=2".
std::string size_text(const Bindings& sizes, const Labels& labels);

// The place of an input among the inputs; an unknown name is an error that lists them.
Result<size_t> input_index(const Graph& signature, std::string_view name);

}  // namespace hone
