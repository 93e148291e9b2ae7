#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/application.h"
#include "ir/graph.h"
#include "ir/reference/domain.h"
#include "ir/reference/eval.h"
#include "ir/reference/evaluate.h"

// How the reference evaluator runs graphs: regions of control flow, expansions of composites, and
// the outermost graph all go through run_graph.

namespace hone {

inline constexpr int kMaxEvalDepth = 64;

// The facts about a graph that running it needs, in any domain: found once per evaluation. Symbols
// are bound here; the graph itself stays as it is.
class RunPlan {
 public:
  static Result<RunPlan> make(const Graph& graph, const Bindings& bindings);

  struct Step {
    NodeId node;
    Op op;  // bound
    const OpDef* def;
    std::vector<ValueId> dying;  // values that nothing reads after this step
  };
  std::vector<Step> steps;         // live nodes, without parameters and constants
  std::vector<uint32_t> input_of;  // per value: the input that it is, or UINT32_MAX

  Type type(ValueId v) const { return types_.empty() ? graph_->type(v) : types_[v.index]; }
  std::vector<Type> types_of(std::span<const ValueId> values) const;  // null for absent ones

 private:
  explicit RunPlan(const Graph& graph) : graph_(&graph) {}
  Status bind(const Bindings& bindings);

  const Graph* graph_;
  std::vector<Type> types_;  // per value, of those that are computed; empty if nothing is bound
};

// The state that all graphs of one evaluation share.
struct EvalState {
  explicit EvalState(const EvalOptions& options, Bindings bindings = {})
      : options(options), bindings_(std::move(bindings)) {}
  EvalState(const EvalState&) = delete;

  // To be asked before allocating.
  Status check_memory(int64_t more_bytes) const;
  void charge(int64_t bytes) {
    live_bytes += bytes;
    if (live_bytes > stats.peak_bytes) stats.peak_bytes = live_bytes;
  }
  Result<const RunPlan*> plan_of(const Graph& graph);
  // The composite spelled out; made once per op and operand types.
  Result<const Graph*> expansion_of(Op op, std::span<const Type> operands);

  EvalOptions options;
  EvalStats stats;
  int64_t live_bytes = 0;

 private:
  const Bindings bindings_;
  std::unordered_map<const Graph*, std::unique_ptr<RunPlan>> plans_;
  std::unordered_map<ApplicationKey, std::unique_ptr<Graph>, ApplicationHash> expansions_;
};

// A value of a running graph: owned, perhaps by several Refs, or borrowed from an owner that
// outlives the run. Owned bytes count as memory in use.
template <class D>
class Ref {
 public:
  Ref() = default;
  static Ref own(Buffer<D> buffer, EvalState& state) {
    Ref ref;
    ref.held_ = std::make_shared<Held>(std::move(buffer), state);
    ref.data_ = &ref.held_->buffer;
    return ref;
  }
  static Ref borrow(const Buffer<D>& buffer) {
    Ref ref;
    ref.data_ = &buffer;
    return ref;
  }

  explicit operator bool() const { return data_ != nullptr; }
  const Buffer<D>& operator*() const { return *data_; }
  const Buffer<D>* operator->() const { return data_; }
  const Buffer<D>* get() const { return data_; }
  bool is_sole_owner() const { return held_ != nullptr && held_.use_count() == 1; }
  // Moves the buffer out if this is its only owner, else copies it.
  Buffer<D> take() && {
    Ref self = std::move(*this);
    return self.is_sole_owner() ? std::move(self.held_->buffer) : *self.data_;
  }

 private:
  struct Held {
    Held(Buffer<D> content, EvalState& owner);
    Held(const Held&) = delete;
    ~Held() { state.live_bytes -= bytes; }
    Buffer<D> buffer;
    EvalState& state;
    int64_t bytes;
  };
  std::shared_ptr<Held> held_;
  const Buffer<D>* data_ = nullptr;
};

template <class D>
int64_t buffer_bytes(Type type) {
  return type.static_elements() * static_cast<int64_t>(is_real(type.dtype())
                                                           ? sizeof(typename D::Real)
                                                           : sizeof(typename D::Int));
}

template <class D>
Ref<D>::Held::Held(Buffer<D> content, EvalState& owner)
    : buffer(std::move(content)), state(owner), bytes(buffer_bytes<D>(buffer.type())) {
  state.charge(bytes);
}

// With the constants of regions, which are converted once and not at each iteration.
template <class D>
struct DomainState : EvalState {
  using EvalState::EvalState;
  std::map<std::pair<const Graph*, uint32_t>, Ref<D>> constants;
};

template <class D>
using Row = std::vector<Ref<D>>;  // the arguments or results of one device

// Runs a graph, whose symbols are bound, on context.devices in lockstep: arguments[position in
// devices][input].
template <class D>
Result<std::vector<Row<D>>> run_graph(const Graph& graph, std::vector<Row<D>> arguments,
                                      EvalContext& context);

// The outermost graph: inputs are tensors, converted when they are first read. context.state is a
// DomainState<D> in both.
template <class D>
Result<std::vector<Row<D>>> run_graph(const Graph& graph,
                                      std::span<const std::vector<Tensor>> inputs,
                                      EvalContext& context);

}  // namespace hone
