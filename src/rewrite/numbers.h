#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace hone {

// The element of a constant that is repeated to the dims of `v`; none for other values.
std::optional<Tensor> repeated_element(const Graph& graph, ValueId v);

// How many operands and outputs each value of the graph is.
std::vector<int> count_readers(const Graph& graph);

// Appends a number, repeated to a type.
Result<ValueId> append_number(Graph& graph, const Tensor& element, const Type& type);
Result<ValueId> append_number(Graph& graph, double number, const Type& type);

// Appends an op of one result.
Result<ValueId> append_value(Graph& graph, Op op, std::span<const ValueId> operands);

}  // namespace hone
