#include "learn/graph_data.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace hone {
namespace {

Tensor integers(std::span<const int64_t> numbers) {
  return Tensor::from_integers(Type::get(DType::i32, {std::ssize(numbers)}), numbers);
}

// Where the numbers from 0 on begin in a sorted list.
std::vector<int64_t> offsets_of(std::span<const int64_t> sorted, int64_t size) {
  std::vector<int64_t> offsets(static_cast<size_t>(size) + 1);
  for (int64_t n = 0; n <= size; ++n)
    offsets[static_cast<size_t>(n)] = std::ranges::lower_bound(sorted, n) - sorted.begin();
  return offsets;
}

// The places of the numbers in increasing order, equal ones in theirs.
std::vector<int64_t> order_of(std::span<const int64_t> numbers) {
  std::vector<int64_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t place) {
    return std::pair(numbers[static_cast<size_t>(place)], place);
  });
  return order;
}

std::vector<int64_t> in_order(std::span<const int64_t> numbers, std::span<const int64_t> order) {
  std::vector<int64_t> sorted;
  for (int64_t place : order) sorted.push_back(numbers[static_cast<size_t>(place)]);
  return sorted;
}

Status check_numbers(std::string_view name, std::string_view what, std::span<const int64_t> numbers,
                     int64_t end) {
  if (numbers.size() > INT32_MAX || end > INT32_MAX)
    return over_limit("'{}' has {} {}; at most {} are possible", name, numbers.size(), what,
                      INT32_MAX);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < 0 || numbers[i] >= end)
      return bad_input("'{}': number {} of the {} is {}, outside of 0..{}", name, i, what,
                       numbers[i], end - 1);
  return {};
}

}  // namespace

Status add_segments(Batch& batch, std::string_view name, std::span<const int64_t> of,
                    int64_t size) {
  HONE_TRY(check_numbers(name, "segments", of, size + 1));
  if (!std::ranges::is_sorted(of))
    return bad_input("the segments of '{}' decrease", name)
        .with_hint("put the rows into the order of their segments");
  batch.insert_or_assign(fmt::format("{}.of", name), integers(of));
  batch.insert_or_assign(fmt::format("{}.offsets", name), integers(offsets_of(of, size)));
  return {};
}

Result<std::vector<int64_t>> add_edges(Batch& batch, std::string_view name,
                                       std::span<const int64_t> sources,
                                       std::span<const int64_t> targets, int64_t nodes) {
  if (sources.size() != targets.size())
    return bad_input("'{}' has {} sources and {} targets", name, sources.size(), targets.size());
  HONE_TRY(check_numbers(name, "sources", sources, nodes));
  HONE_TRY(check_numbers(name, "targets", targets, nodes + 1));
  std::vector<int64_t> order = order_of(targets);
  std::vector<int64_t> from = in_order(sources, order);
  const std::vector<int64_t> to = in_order(targets, order);
  HONE_TRY(add_segments(batch, fmt::format("{}.targets", name), to, nodes));
  // Padding comes from no node, so that nothing goes back along it.
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] == nodes) from[i] = nodes;
  const std::vector<int64_t> by_source = order_of(from);
  batch.insert_or_assign(fmt::format("{}.sources", name), integers(from));
  batch.insert_or_assign(fmt::format("{}.by_source", name), integers(by_source));
  batch.insert_or_assign(fmt::format("{}.source_offsets", name),
                         integers(offsets_of(in_order(from, by_source), nodes)));
  return order;
}

Status add_sequences(Batch& batch, std::string_view name,
                     std::span<const std::vector<int64_t>> graphs, int64_t places, int64_t nodes) {
  const int64_t count = std::ssize(graphs);
  std::vector<int64_t> nodes_of(static_cast<size_t>(places * count), 0), last;
  std::vector<float> share(nodes_of.size(), 0);
  for (int64_t g = 0; g < count; ++g) {
    const std::vector<int64_t>& graph = graphs[static_cast<size_t>(g)];
    if (graph.empty() || std::ssize(graph) > places)
      return bad_input("'{}': graph {} has {} nodes, not 1 to {}", name, g, graph.size(), places);
    HONE_TRY(check_numbers(name, "nodes", graph, nodes));
    for (int64_t place = 0; place < std::ssize(graph); ++place) {
      const auto at = static_cast<size_t>(place * count + g);
      nodes_of[at] = graph[static_cast<size_t>(place)];
      share[at] = 1.0F / static_cast<float>(graph.size());
    }
    last.push_back((std::ssize(graph) - 1) * count + g);
  }
  const Dims dims = {places, count};
  batch.insert_or_assign(fmt::format("{}.nodes", name),
                         Tensor::from_integers(Type::get(DType::i32, dims), nodes_of));
  batch.insert_or_assign(fmt::format("{}.share", name),
                         Tensor::of(Type::get(DType::f32, dims), std::span<const float>(share)));
  batch.insert_or_assign(fmt::format("{}.last", name), integers(last));
  return {};
}

}  // namespace hone
