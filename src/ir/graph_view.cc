#include "ir/graph_view.h"

#include <algorithm>
#include <numeric>

namespace hone {

// ---- Overlay ------------------------------------------------------------------------------------

void Overlay::add(const Graph& graph, const Users& users, CopyOverlay copy) {
  restore(graph, users, copies_.size(), std::move(copy));
}

void Overlay::restore(const Graph& graph, const Users& users, size_t at, CopyOverlay copy) {
  if (at == copies_.size()) copies_.emplace_back();
  const ValueId value{static_cast<uint32_t>(graph.value_count() + at)};
  for (NodeId reader : copy.readers) read(graph, reader, copy.of, value);
  const ValueId of = copy.of;
  copies_[at] = std::move(copy);
  find_users(graph, users, of);
}

void Overlay::remove(const Graph& graph, const Users& users, size_t copy) {
  const ValueId value{static_cast<uint32_t>(graph.value_count() + copy)};
  const ValueId of = copies_[copy].of;
  for (NodeId reader : copies_[copy].readers) read(graph, reader, value, of);
  copies_[copy] = {};
  users_.erase(value.index);
  if (copy + 1 == copies_.size()) copies_.pop_back();
  find_users(graph, users, of);
}

void Overlay::read(const Graph& graph, NodeId reader, ValueId from, ValueId to) {
  const std::span<const ValueId> own = graph.operands(reader);
  const auto at = operands_.try_emplace(reader.index, own.begin(), own.end()).first;
  std::ranges::replace(at->second, from, to);
  if (std::ranges::equal(at->second, own)) operands_.erase(at);
}

void Overlay::find_users(const Graph& graph, const Users& users, ValueId of) {
  std::vector<NodeId> remaining;
  bool has_copies = false;
  for (NodeId n : users.of(of)) {
    const std::vector<ValueId>* operands = this->operands(n);
    const bool reads = operands == nullptr || std::ranges::find(*operands, of) != operands->end();
    if (reads) remaining.push_back(n);
  }
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].of != of || copies_[i].readers.empty()) continue;
    has_copies = true;
    const ValueId value{static_cast<uint32_t>(graph.value_count() + i)};
    std::vector<NodeId> readers;  // as often as they read it
    for (NodeId n : users.of(of))
      if (std::ranges::binary_search(copies_[i].readers, n)) readers.push_back(n);
    users_[value.index] = std::move(readers);
    const bool is_constant = graph.opcode(graph.producer(of)) == Opcode::constant;
    if (!is_constant) remaining.push_back({static_cast<uint32_t>(graph.node_count() + i)});
  }
  if (has_copies)
    users_[of.index] = std::move(remaining);
  else
    users_.erase(of.index);
}

// ---- GraphView ----------------------------------------------------------------------------------

std::vector<NodeId> GraphView::nodes() const {
  std::vector<NodeId> all;
  all.reserve(node_count());
  for (NodeId n : graph_->nodes()) all.push_back(n);
  if (overlay_ == nullptr) return all;
  for (size_t i = 0; i < overlay_->copies().size(); ++i)
    if (!overlay_->copies()[i].readers.empty())
      all.push_back({static_cast<uint32_t>(graph_->node_count() + i)});
  std::ranges::sort(all, {}, [&](NodeId n) { return position(n); });
  return all;
}

Op GraphView::copy_op(NodeId n) const {
  const ValueId of = original(result(n));
  const NodeId producer = graph_->producer(of);
  if (graph_->opcode(producer) == Opcode::constant) return graph_->op(producer);
  Ints order(static_cast<size_t>(graph_->type(of).rank()));
  std::iota(order.begin(), order.end(), 0);
  return Op::get(Opcode::transpose, {{"permutation", std::move(order)}});
}

std::span<const ValueId> GraphView::overlaid_operands(NodeId n) const {
  if (is_copy(n)) {
    const ValueId& of = overlay_->copies()[n.index - graph_->node_count()].of;
    if (graph_->opcode(graph_->producer(of)) == Opcode::constant) return {};
    return {&of, 1};
  }
  const std::vector<ValueId>* operands = overlay_->operands(n);
  return operands == nullptr ? graph_->operands(n) : std::span<const ValueId>(*operands);
}

std::vector<Type> GraphView::operand_types(NodeId n) const {
  if (!is_copy(n)) return graph_->operand_types(n);
  std::vector<Type> types;
  for (ValueId v : operands(n)) types.push_back(type(v));
  return types;
}

std::vector<Type> GraphView::result_types(NodeId n) const {
  return is_copy(n) ? std::vector<Type>{type(result(n))} : graph_->result_types(n);
}

std::string GraphView::describe(NodeId n) const {
  if (!is_copy(n)) return graph_->describe(n);
  return fmt::format("node '{}' ({})", label(result(n)), op(n).name());
}

}  // namespace hone
