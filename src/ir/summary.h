#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// The parts of a graph, in numbers.

namespace hone {

struct NamedType {
  std::string name;
  Type type;
};

struct GraphSummary {
  std::string name;
  std::vector<NamedType> inputs;
  std::vector<NamedType> outputs;
  std::vector<Symbol> symbols;
  std::vector<Donation> donations;

  // Nodes of regions count once each.
  int64_t nodes = 0;
  std::map<std::string_view, int64_t> op_counts;  // primitives, without leaves
  std::map<std::string_view, int64_t> composite_counts;
  int64_t constants = 0;
  int64_t parameters = 0;  // elements of constants that are no scalars and not bool
  int64_t constant_bytes = 0;

  // Work is stated at these numbers for the symbols: given ones, otherwise the smallest legal.
  Bindings work_at;
  double flops = 0;
  double macs = 0;         // multiply-adds of dots and convolutions
  double bytes = 0;        // operands and results of each node
  int64_t peak_bytes = 0;  // of results alive at once, in the order of the nodes
  int64_t peak_elements = 0;
  std::vector<NamedType> largest;  // results and constants, largest first
};

// Does not read the bytes of any constant.
Result<GraphSummary> summarize(const Graph& graph, const Bindings& bindings = {},
                               size_t largest = 5);

// A name for each output, all different: its own, or "output0".
std::vector<std::string> output_names(const Graph& graph);

struct TensorStatistics {
  double min = 0;  // of the elements that are numbers; all 0 without such
  double mean = 0;
  double max = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
};
TensorStatistics statistics(const Tensor& tensor);
// "0.1, 0.2, -0.1, ...": at most `count` elements.
std::string first_elements(const Tensor& tensor, int64_t count);

// The bindings, and for each other symbol of the graph its smallest legal value of at least 1.
Bindings smallest_bindings(const Graph& graph, const Bindings& bindings);

}  // namespace hone
