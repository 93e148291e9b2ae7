#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace hone {

// A copy of a value, which some nodes read instead of it. `readers` is empty: the copy is gone.
struct CopyOverlay {
  std::string name;
  ValueId of;
  std::vector<NodeId> readers;  // each once, in the graph's order
  bool operator==(const CopyOverlay&) const = default;
};

// Copies of values behind the ids of a graph that stays as it is: the copy `i` is the value
// value_count() + i and the node node_count() + i of the graph. A copy of a constant is a constant,
// any other one a transpose that leaves the dims in their order.
class Overlay {
 public:
  const std::vector<CopyOverlay>& copies() const { return copies_; }

  // The readers read `of`, and the copy from now on; all are nodes of the graph.
  void add(const Graph& graph, const Users& users, CopyOverlay copy);
  // The readers of the copy read what it is of again. A copy that was the last loses its id.
  void remove(const Graph& graph, const Users& users, size_t copy);
  // Takes a copy back that remove() has taken away.
  void restore(const Graph& graph, const Users& users, size_t at, CopyOverlay copy);

  // Null: those of the graph.
  const std::vector<ValueId>* operands(NodeId n) const { return find(operands_, n.index); }
  const std::vector<NodeId>* users(ValueId v) const { return find(users_, v.index); }

  bool operator==(const Overlay& other) const { return copies_ == other.copies_; }

 private:
  template <class T>
  static const T* find(const std::unordered_map<uint32_t, T>& map, uint32_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }
  void read(const Graph& graph, NodeId reader, ValueId from, ValueId to);
  void find_users(const Graph& graph, const Users& users, ValueId of);

  std::vector<CopyOverlay> copies_;
  std::unordered_map<uint32_t, std::vector<ValueId>> operands_;  // by reader
  std::unordered_map<uint32_t, std::vector<NodeId>> users_;      // of copies and what they are of
};

// A graph, and copies of its values if there are any: what to ask where both count alike.
class GraphView {
 public:
  GraphView(const Graph& graph) : graph_(&graph) {}  // NOLINT: implicit
  GraphView(const Graph& graph, const Overlay& overlay)
      : graph_(&graph), overlay_(overlay.copies().empty() ? nullptr : &overlay) {}

  const Graph& graph() const { return *graph_; }
  size_t node_count() const { return graph_->node_count() + copy_count(); }
  size_t value_count() const { return graph_->value_count() + copy_count(); }
  bool is_copy(NodeId n) const { return n.index >= graph_->node_count(); }
  bool is_copy(ValueId v) const { return v.index >= graph_->value_count(); }
  // The copy's; of others the one that is asked about.
  ValueId original(ValueId v) const { return is_copy(v) ? copy_of(v).of : v; }
  // In the order of positions, which is that of the nodes but for copies: each stands right before
  // its first reader. Copies that are gone are left out.
  std::vector<NodeId> nodes() const;
  uint64_t position(NodeId n) const {
    if (!is_copy(n)) return uint64_t{n.index} << 32 | UINT32_MAX;
    const CopyOverlay& copy = overlay_->copies()[n.index - graph_->node_count()];
    return copy.readers.empty() ? UINT64_MAX
                                : uint64_t{copy.readers[0].index} << 32 | copy.of.index;
  }

  Op op(NodeId n) const { return is_copy(n) ? copy_op(n) : graph_->op(n); }
  Opcode opcode(NodeId n) const { return op(n).opcode(); }
  std::span<const ValueId> operands(NodeId n) const {
    if (overlay_ == nullptr) return graph_->operands(n);
    return overlaid_operands(n);
  }
  ValueRange results(NodeId n) const {
    return is_copy(n) ? ValueRange(value_of(n), 1) : graph_->results(n);
  }
  ValueId result(NodeId n, size_t i = 0) const { return results(n)[i]; }
  std::span<const GraphRef> regions(NodeId n) const {
    return is_copy(n) ? std::span<const GraphRef>() : graph_->regions(n);
  }
  const Tensor& constant(NodeId n) const {
    return graph_->constant(is_copy(n) ? graph_->producer(original(result(n))) : n);
  }
  std::vector<Type> operand_types(NodeId n) const;
  std::vector<Type> result_types(NodeId n) const;

  Type type(ValueId v) const { return graph_->type(original(v)); }
  NodeId producer(ValueId v) const { return is_copy(v) ? node_of(v) : graph_->producer(v); }
  uint32_t result_index(ValueId v) const { return is_copy(v) ? 0 : graph_->result_index(v); }
  std::string_view name(ValueId v) const {
    return is_copy(v) ? std::string_view(copy_of(v).name) : graph_->name(v);
  }
  std::string label(ValueId v) const {
    return is_copy(v) ? "%" + copy_of(v).name : graph_->label(v);
  }
  std::string describe(NodeId n) const;

  std::span<const ValueId> inputs() const { return graph_->inputs(); }
  std::span<const ValueId> outputs() const { return graph_->outputs(); }
  std::span<const Donation> donations() const { return graph_->donations(); }
  bool is_static() const { return graph_->is_static(); }

 private:
  size_t copy_count() const { return overlay_ == nullptr ? 0 : overlay_->copies().size(); }
  const CopyOverlay& copy_of(ValueId v) const {
    return overlay_->copies()[v.index - graph_->value_count()];
  }
  uint32_t value_of(NodeId n) const {
    return n.index - static_cast<uint32_t>(graph_->node_count() - graph_->value_count());
  }
  NodeId node_of(ValueId v) const {
    return {v.index + static_cast<uint32_t>(graph_->node_count() - graph_->value_count())};
  }
  Op copy_op(NodeId n) const;
  std::span<const ValueId> overlaid_operands(NodeId n) const;

  const Graph* graph_;
  const Overlay* overlay_ = nullptr;
};

// Who reads a value, where copies count. A copy is never an output.
class UsersView {
 public:
  UsersView(const Users& users) : users_(&users) {}  // NOLINT: implicit
  UsersView(const Graph& graph, const Users& users, const Overlay& overlay)
      : users_(&users),
        overlay_(overlay.copies().empty() ? nullptr : &overlay),
        count_(graph.value_count()) {}

  std::span<const NodeId> of(ValueId v) const {
    if (overlay_ == nullptr) return users_->of(v);
    const std::vector<NodeId>* users = overlay_->users(v);
    if (users != nullptr) return *users;
    return v.index < count_ ? users_->of(v) : std::span<const NodeId>();
  }
  bool is_output(ValueId v) const {
    return (overlay_ == nullptr || v.index < count_) && users_->is_output(v);
  }

 private:
  const Users* users_;
  const Overlay* overlay_ = nullptr;
  size_t count_ = 0;
};

}  // namespace hone
