#include "rewrite/taken_parts.h"

#include <algorithm>
#include <vector>

#include "ir/op_facts.h"
#include "rewrite/numbers.h"

namespace hone {
namespace {

constexpr int64_t kMostPlaces = 4096;  // of a gather that is looked at

// Elements [first, end) at this distance.
struct Places {
  int64_t first = 0, end = 0, distance = 1;
};

std::optional<Places> places_of(const Graph& graph, ValueId indices, int64_t size) {
  const NodeId n = graph.producer(indices);
  std::optional<Tensor> tensor = repeated_element(graph, indices);
  const Type type = graph.type(indices);
  if (!type.is_static() || (tensor && type.static_elements() != 1)) return std::nullopt;
  if (!tensor && is_constant(graph.opcode(n))) tensor = graph.constant(n);
  if (!tensor || tensor->elements() < 1 || tensor->elements() > kMostPlaces) return std::nullopt;
  const auto at = [&](int64_t i) { return static_cast<int64_t>(tensor->real_at(i)); };
  Places places{.first = at(0), .end = at(tensor->elements() - 1) + 1};
  if (tensor->elements() > 1) places.distance = at(1) - at(0);
  if (places.first < 0 || places.end > size || places.distance < 1) return std::nullopt;
  for (int64_t i = 1; i < tensor->elements(); ++i)
    if (at(i) - at(i - 1) != places.distance) return std::nullopt;
  return places;
}

// The dim that the gather takes elements of, if the others are taken whole and stay in their order
// around the indices' dims.
std::optional<int> dim_of_whole_others(const Graph& graph, NodeId n) {
  const Op op = graph.op(n);
  const Type x = graph.type(graph.operands(n)[0]), y = graph.type(graph.result(n));
  const Ints& map = op.ints("index_map");
  if (map.size() != 1 || !op.ints("operand_batch_dims").empty()) return std::nullopt;
  const int64_t dim = map[0];
  const std::span<const Dim> sizes = op.dims("sizes");
  for (int i = 0; i < x.rank(); ++i)
    if (i == dim ? !sizes[static_cast<size_t>(i)].is(1) : sizes[static_cast<size_t>(i)] != x.dim(i))
      return std::nullopt;
  if (op.ints("collapsed_dims") != Ints{dim}) return std::nullopt;
  Ints others;
  const int64_t added = y.rank() - (x.rank() - 1);  // dims of the indices
  for (int64_t i = 0; i < y.rank(); ++i)
    if (i < dim || i >= dim + added) others.push_back(i);
  if (op.ints("offset_dims") != others) return std::nullopt;
  return static_cast<int>(dim);
}

}  // namespace

Result<std::optional<ValueId>> part_taken_by_gather(GraphCopy& copy, NodeId gather) {
  const Graph& graph = copy.source();
  const ValueId x = graph.operands(gather)[0];
  const Type type = graph.type(x), result = graph.type(graph.result(gather));
  const std::optional<int> dim = dim_of_whole_others(graph, gather);
  if (!dim || !type.is_static()) return std::optional<ValueId>();
  const std::optional<Places> places =
      places_of(graph, graph.operands(gather)[1], type.dim(*dim).value());
  if (!places) return std::optional<ValueId>();
  Dims start(static_cast<size_t>(type.rank()), Dim(0)),
      limit(type.dims().begin(), type.dims().end());
  Ints stride(static_cast<size_t>(type.rank()), 1);
  start[static_cast<size_t>(*dim)] = places->first;
  limit[static_cast<size_t>(*dim)] = places->end;
  stride[static_cast<size_t>(*dim)] = places->distance;
  const Op slice = Op::get(Opcode::slice, {{"start", start}, {"limit", limit}, {"stride", stride}});
  const ValueId operand = copy(x);
  const ValueId part = HONE_TRY(append_value(copy.target(), slice, {&operand, 1}));
  if (copy.target().type(part) == result) return std::optional(part);
  const Op reshape =
      Op::get(Opcode::reshape, {{"dims", Dims(result.dims().begin(), result.dims().end())}});
  return std::optional(HONE_TRY(append_value(copy.target(), reshape, {&part, 1})));
}

}  // namespace hone
