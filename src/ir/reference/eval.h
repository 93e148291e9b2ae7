#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "ir/reference/domain.h"

// How an op's evaluation plugs into the reference evaluator.

namespace hone {

struct EvalState;  // run.h: what all graphs of one evaluation share

struct EvalContext {
  ThreadPool& pool;
  EvalState& state;
  std::vector<int> devices;  // those that run in lockstep here, ascending: all, or one branch's
  int device_count = 1;      // of the whole evaluation
  int depth = 0;             // nesting of regions and expansions, bounded
  bool rounds = false;       // round each node's real results to their element type
};

// One application on one device. Results are typed and sized, their contents zero (unwritten if the
// table says that it fills them); an op with regions gets empty ones and assigns them.
template <class D>
struct EvalCall {
  Op op;
  std::span<const Buffer<D>* const> operands;  // null: an absent optional operand
  std::span<Buffer<D>> results;
  std::span<const GraphRef> regions;
  EvalContext& context;
  int device = 0;

  const Buffer<D>& operand(int i) const { return *operands[static_cast<size_t>(i)]; }
  bool has_operand(int i) const {
    return i < static_cast<int>(operands.size()) && operands[static_cast<size_t>(i)] != nullptr;
  }
  Buffer<D>& result(int i = 0) const { return results[static_cast<size_t>(i)]; }
};

// A per-device evaluation, or a joint one that sees the calls of all devices at once (control flow
// and collectives).
template <class D>
using LocalEval = Status (*)(EvalCall<D>&);
template <class D>
using JointEval = Status (*)(std::span<EvalCall<D>>);

template <class D>
struct EvalEntry {
  LocalEval<D> local = nullptr;
  JointEval<D> joint = nullptr;
};

// The evaluation of an op in every domain.
struct EvalTable {
  EvalEntry<WideDomain> wide;
  EvalEntry<Fp32Domain> fp32;
  EvalEntry<FieldDomain> field;
  EvalEntry<DependencyDomain> dependency;
  // Every element of the results is written. Large ones then come into memory where the threads
  // write them, rather than one page after the other before.
  bool fills = false;

  template <class D>
  const EvalEntry<D>& entry() const {
    if constexpr (std::is_same_v<D, WideDomain>)
      return wide;
    else if constexpr (std::is_same_v<D, Fp32Domain>)
      return fp32;
    else if constexpr (std::is_same_v<D, FieldDomain>)
      return field;
    else
      return dependency;
  }
};

// F has `template <class D> static Status run(EvalCall<D>&)`:
//   const EvalTable kEvalReshape = local_eval<EvalReshape>();
template <class F>
constexpr EvalTable local_eval(bool fills = false) {
  return {{&F::template run<WideDomain>, nullptr},
          {&F::template run<Fp32Domain>, nullptr},
          {&F::template run<FieldDomain>, nullptr},
          {&F::template run<DependencyDomain>, nullptr},
          fills};
}
// F has `template <class D> static Status run(std::span<EvalCall<D>>)`.
template <class F>
constexpr EvalTable joint_eval() {
  return {{nullptr, &F::template run<WideDomain>},
          {nullptr, &F::template run<Fp32Domain>},
          {nullptr, &F::template run<FieldDomain>},
          {nullptr, &F::template run<DependencyDomain>}};
}

// Calls fn(T{}, in, out) with the element type that `sample` holds: for ops that only move data.
//   return with_elements(call.operand(0), [&]<class T>(std::type_identity<T>) { ... });
template <class D, class Fn>
decltype(auto) with_elements(const Buffer<D>& sample, const Fn& fn) {
  if (sample.holds_reals()) return fn(std::type_identity<typename D::Real>());
  return fn(std::type_identity<typename D::Int>());
}

// The op has no meaning for field elements.
Status no_field_meaning(Op op);

}  // namespace hone
