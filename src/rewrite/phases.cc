#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "ir/ops/conv_order.h"
#include "ir/reference/evaluate.h"
#include "rewrite/constants.h"
#include "rewrite/passes.h"
#include "rewrite/taps.h"

// A conv whose input elements lie d apart (a transposed conv, the derivative of one with stride d)
// multiplies the zeros between them. Results that are d apart along a dim, a *phase*, meet elements
// of the input with the same taps of the kernel, every d-th one. So each phase is a conv of the
// input as it is with a part of the kernel, and the results are those of the phases in turns.
// Phases that see the same windows are one conv with the features of all of them.

namespace hone {
namespace {

constexpr int64_t kMostPhases = 64, kMostConvs = 32;

struct Phase {
  int64_t first_tap = 0, taps = 0;  // of the kernel, every d-th one
  int64_t begin = 0;                // of the first window, from the input's first element on
  bool sees_as(const Phase& other) const { return taps == other.taps && begin == other.begin; }
};

// A spatial dim whose input elements lie apart.
struct PhasedDim {
  size_t number;  // of the spatial dims
  int64_t input, kernel, output;
  int64_t windows;  // of a phase: the last one may have one less, which is cut off
  std::vector<Phase> phases;

  int64_t count() const { return std::ssize(phases); }
  int64_t low(const Phase& phase) const { return -phase.begin; }
  int64_t high(const Phase& phase) const { return windows + phase.taps - 1 - input + phase.begin; }
  // Padding may crop, but not all of the input.
  bool leaves_input(const Phase& phase) const {
    return input + std::min<int64_t>(low(phase), 0) + std::min<int64_t>(high(phase), 0) > 0;
  }
};

int64_t entry(const Ints& numbers, size_t i, int64_t usual) {
  return numbers.empty() ? usual : numbers[i];
}

class PhasedConv {
 public:
  // None: nothing lies apart, or nothing is known of how far.
  static std::optional<PhasedConv> of(const Graph& graph, NodeId n) {
    PhasedConv conv(graph, n);
    int64_t phases = 1;
    for (size_t i = 0; i < conv.order_.input_spatial.size(); ++i) {
      if (entry(conv.op_.ints("input_dilation"), i, 1) == 1) continue;
      if (!conv.add(i)) return std::nullopt;
      phases *= conv.dims_.back().count();
      if (phases > kMostPhases) return std::nullopt;
    }
    if (conv.dims_.empty()) return std::nullopt;
    conv.join(phases);
    if (std::ssize(conv.parts_) > kMostConvs) return std::nullopt;
    return conv;
  }

  // For an input and weights, which may be known.
  Result<Graph> build(const std::optional<Tensor>& known) const {
    Builder b;
    const Value x = b.parameter("x", graph_.type(graph_.operands(conv_)[0]));
    Value w;
    if (!known) w = b.parameter("w", graph_.type(graph_.operands(conv_)[1]));
    std::vector<Value> results;
    for (const Part& part : parts_) {
      if (has_no_tap(part)) {
        results.push_back(b.full(result().dtype(), dims_of(part), 0));
        continue;
      }
      Value taps;
      if (known) {
        Builder alone;
        const Graph graph = HONE_TRY(alone.finish({weights(part, alone.constant(*known))}));
        taps = b.constant(std::move(HONE_TRY(evaluate(graph, {}))[0]));
      } else {
        taps = weights(part, w);
      }
      results.push_back(b.op(Opcode::conv, {x, taps}, changed_attrs(op_, changes(part))));
    }
    return b.finish({in_turns(concat(results, order_.output_feature))});
  }

 private:
  using Phases = std::vector<Phase>;  // one of each dim
  using Part = std::vector<Phases>;   // that see the same windows

  PhasedConv(const Graph& graph, NodeId n)
      : graph_(graph),
        conv_(n),
        op_(graph.op(n)),
        order_(*parse_conv_order(op_.word("order"), graph.type(graph.result(n)).rank() - 2)) {}

  Type result() const { return graph_.type(graph_.result(conv_)); }

  bool add(size_t i) {
    const Dim input = graph_.type(graph_.operands(conv_)[0]).dim(order_.input_spatial[i]);
    const Dim kernel = graph_.type(graph_.operands(conv_)[1]).dim(order_.kernel_spatial[i]);
    const Dim output = result().dim(order_.output_spatial[i]);
    if (!input.is_static() || !kernel.is_static() || !output.is_static()) return false;
    if (input.is(0) || kernel.is(0) || output.is(0)) return false;
    if (entry(op_.ints("stride"), i, 1) != 1 || entry(op_.ints("kernel_dilation"), i, 1) != 1)
      return false;
    const int64_t apart = entry(op_.ints("input_dilation"), i, 1);
    const int64_t low = entry(op_.ints("pad_low"), i, 0);
    if (apart > kMostPhases) return false;
    PhasedDim dim = {.number = i,
                     .input = input.value(),
                     .kernel = kernel.value(),
                     .output = output.value(),
                     .windows = ceil_div(output.value(), apart),
                     .phases = {}};
    for (int64_t r = 0; r < apart; ++r) {
      const int64_t first = ((low - r) % apart + apart) % apart;
      const int64_t taps = first < dim.kernel ? ceil_div(dim.kernel - first, apart) : 0;
      dim.phases.push_back({first, taps, (r + first - low) / apart});
      if (taps > 0 && !dim.leaves_input(dim.phases.back())) return false;
    }
    dims_.push_back(std::move(dim));
    return true;
  }

  // Features of groups stand between those of others, so these stay apart.
  void join(int64_t count) {
    const bool is_grouped = op_.integer("groups") != 1;
    for (int64_t number = 0; number < count; ++number) {
      Phases phases(dims_.size());
      int64_t rest = number;
      for (size_t i = dims_.size(); i-- > 0; rest /= dims_[i].count())
        phases[i] = dims_[i].phases[static_cast<size_t>(rest % dims_[i].count())];
      if (is_grouped || parts_.empty() ||
          !std::ranges::equal(parts_.back().back(), phases, &Phase::sees_as))
        parts_.emplace_back();
      parts_.back().push_back(std::move(phases));
    }
  }

  static bool has_no_tap(const Part& part) {
    return std::ranges::any_of(part[0], [](const Phase& phase) { return phase.taps == 0; });
  }

  Dims dims_of(const Part& part) const {
    Dims dims(result().dims().begin(), result().dims().end());
    Dim& features = dims[static_cast<size_t>(order_.output_feature)];
    features = features * std::ssize(part);
    for (const PhasedDim& dim : dims_)
      dims[static_cast<size_t>(order_.output_spatial[dim.number])] = dim.windows;
    return dims;
  }

  Value weights(const Part& part, Value w) const {
    std::vector<Value> all;
    for (const Phases& phases : part) {
      Value taps = w;
      for (size_t i = 0; i < dims_.size(); ++i)
        taps = slice(taps, order_.kernel_spatial[dims_[i].number], phases[i].first_tap,
                     dims_[i].kernel, dims_[i].count());
      all.push_back(taps);
    }
    return concat(all, order_.kernel_output);
  }

  Attrs changes(const Part& part) const {
    Ints low, high, dilation;
    for (size_t i = 0; i < order_.input_spatial.size(); ++i) {
      low.push_back(entry(op_.ints("pad_low"), i, 0));
      high.push_back(entry(op_.ints("pad_high"), i, 0));
    }
    dilation.assign(low.size(), 1);
    for (size_t i = 0; i < dims_.size(); ++i) {
      low[dims_[i].number] = dims_[i].low(part[0][i]);
      high[dims_[i].number] = dims_[i].high(part[0][i]);
    }
    return {{"pad_low", low}, {"pad_high", high}, {"input_dilation", dilation}};
  }

  // Features of phases one after another become neighbours along the dims.
  Value in_turns(Value all) const {
    Dims split, joined;
    Ints order;
    int first = 0;  // of what features become
    for (int dim = 0; dim < result().rank(); ++dim) {
      if (dim == order_.output_feature) {
        first = static_cast<int>(split.size());
        for (const PhasedDim& each : dims_) split.push_back(each.count());
        split.push_back(result().dim(dim));
      } else {
        split.push_back(all.dim(dim));
      }
    }
    for (int dim = 0; dim < result().rank(); ++dim) {
      const int behind = dim > order_.output_feature ? static_cast<int>(dims_.size()) : 0;
      joined.push_back(all.dim(dim));
      if (dim == order_.output_feature) {
        order.push_back(first + static_cast<int64_t>(dims_.size()));
        joined.back() = result().dim(dim);
        continue;
      }
      order.push_back(dim + behind);
      for (size_t i = 0; i < dims_.size(); ++i) {
        if (order_.output_spatial[dims_[i].number] != dim) continue;
        order.push_back(first + static_cast<int64_t>(i));
        joined.back() = dims_[i].windows * dims_[i].count();
      }
    }
    Value x = reshape(transpose(reshape(all, split), order), joined);
    for (const PhasedDim& each : dims_)
      if (each.windows * each.count() > each.output)
        x = slice(x, order_.output_spatial[each.number], 0, each.output);
    return x;
  }

  const Graph& graph_;
  const NodeId conv_;
  const Op op_;
  const ConvOrder order_;
  std::vector<PhasedDim> dims_;
  std::vector<Part> parts_;  // in the order of their phases, the last dim's first
};

// Sets `is_changed` if a conv is replaced.
Result<Graph> convs_replaced_once(const Graph& graph, bool& is_changed) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    const std::optional<PhasedConv> conv =
        is_convolution(graph.opcode(n)) ? PhasedConv::of(graph, n) : std::nullopt;
    if (!conv && is_convolution(graph.opcode(n)))
      if (const std::optional<Graph> trimmed = HONE_TRY(without_idle_taps(graph, n))) {
        const std::vector<ValueId> arguments = copy(graph.operands(n));
        copy.replace(graph.result(n), HONE_TRY(copy.append(*trimmed, arguments))[0]);
        is_changed = true;
        continue;
      }
    if (!conv) {
      HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, convs_by_phase))));
      continue;
    }
    const std::optional<Tensor> weights = HONE_TRY(made_of_constants(graph, graph.operands(n)[1]));
    std::vector<ValueId> arguments = {copy(graph.operands(n)[0])};
    if (!weights) arguments.push_back(copy(graph.operands(n)[1]));
    copy.replace(graph.result(n),
                 HONE_TRY(copy.append(HONE_TRY(conv->build(weights)), arguments))[0]);
    is_changed = true;
  }
  return copy.finish();
}

}  // namespace

// Taps of a part may be idle, and without them a conv may have input elements that lie apart. Each
// round takes taps away or parts a conv for good, so there is a last one.
Result<Graph> convs_by_phase(const Graph& graph) {
  bool is_changed = false;
  Graph made = HONE_TRY(convs_replaced_once(graph, is_changed));
  while (std::exchange(is_changed, false)) made = HONE_TRY(convs_replaced_once(made, is_changed));
  return made;
}

}  // namespace hone
