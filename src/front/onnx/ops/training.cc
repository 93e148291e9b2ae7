#include <span>
#include <unordered_map>
#include <unordered_set>

#include "front/onnx/frame.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

// ---- Optimizers ---------------------------------------------------------------------------------

// The operands are the learning rate and the count of updates. Then come the value and the gradient
// of each optimized tensor, and what is kept between updates. All values come first, then all
// gradients, ...
class Optimizer {
 public:
  Optimizer(Node& n, size_t kinds)
      : n_(n), norm_(n.real("norm_coefficient", 0)), updates_(scalar(1)) {
    if (n.inputs() < 2 + kinds || (n.inputs() - 2) % kinds != 0)
      n.bad("there are {} operands, must be 2 and {} for each tensor", n.inputs(), kinds);
    count_ = (n.inputs() - 2) / kinds;
  }

  size_t count() const { return count_; }
  // The kind-th operand of the i-th tensor.
  Value of(size_t i, size_t kind) const { return n_.in(2 + kind * count_ + i); }
  void out(size_t i, size_t kind, Value v) const {
    if (n_.wants(kind * count_ + i)) n_.out(kind * count_ + i, v);
  }
  Value rate(DType dtype) const { return cast(scalar(0), dtype); }
  Value updates(DType dtype) const { return cast(updates_, dtype); }
  // `later` once there was an update, `first` before.
  Value after_first(Value later, Value first) const {
    return select(compare("gt", updates_, 0), later, first);
  }
  Value regularized_gradient(size_t i) const { return of(i, 0) * norm_ + of(i, 1); }

 private:
  Value scalar(size_t i) const {
    Value v = n_.in(i);
    if (!v.type().elements().is(1))
      n_.bad("operand {} is {}, must be a scalar", i, v.type().to_string());
    return reshape(v, {});
  }

  Node& n_;
  double norm_;
  Value updates_;
  size_t count_ = 0;
};

}  // namespace

void map_adagrad(Node& n) {
  Optimizer o(n, 3);
  double decay = n.real("decay_factor", 0), epsilon = n.real("epsilon", 1e-6);
  for (size_t i = 0; i < o.count(); ++i) {
    Value x = o.of(i, 0), g = o.regularized_gradient(i);
    Value squares = o.of(i, 2) + g * g;
    Value rate = o.rate(x.dtype()) / (o.updates(x.dtype()) * decay + 1);
    o.out(i, 0, x - rate * g / (sqrt(squares) + epsilon));
    o.out(i, 1, squares);
  }
}

void map_adam(Node& n) {
  Optimizer o(n, 4);
  double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999);
  double epsilon = n.real("epsilon", 1e-6), shrink = 1 - n.real("norm_coefficient_post", 0);
  for (size_t i = 0; i < o.count(); ++i) {
    Value x = o.of(i, 0), g = o.regularized_gradient(i);
    DType dtype = x.dtype();
    Value mean = o.of(i, 2) * alpha + g * (1 - alpha);
    Value squares = o.of(i, 3) * beta + g * g * (1 - beta);
    // The averages begin with 0, which the rate makes up for.
    auto missing = [&](double factor) {
      return 1.0 - binary(Opcode::pow, n.builder().scalar(dtype, factor), o.updates(dtype));
    };
    Value rate = o.rate(dtype);
    rate = o.after_first(rate * sqrt(missing(beta)) / missing(alpha), rate);
    o.out(i, 0, (x - rate * (mean / (sqrt(squares) + epsilon))) * shrink);
    o.out(i, 1, mean);
    o.out(i, 2, squares);
  }
}

void map_momentum(Node& n) {
  Optimizer o(n, 3);
  for (std::string_view name : {"alpha", "beta", "norm_coefficient", "mode"})
    if (!n.has_attribute(name)) n.bad("attribute '{}' is missing", name);
  double alpha = n.real("alpha"), beta = n.real("beta");
  std::string mode = n.word("mode", "");
  if (mode != "standard" && mode != "nesterov")
    n.bad("mode is '{}', must be standard or nesterov", mode);
  for (size_t i = 0; i < o.count(); ++i) {
    Value x = o.of(i, 0), g = o.regularized_gradient(i);
    Value momentum = o.of(i, 2) * alpha + o.after_first(g * beta, g);
    Value step = mode == "nesterov" ? g + momentum * alpha : momentum;
    o.out(i, 0, x - o.rate(x.dtype()) * step);
    o.out(i, 1, momentum);
  }
}

// ---- Gradient -----------------------------------------------------------------------------------

namespace {

// Sums over what a broadcast repeated.
Value unbroadcast(Value g, const Op& op, Type operand) {
  const Ints& map = op.ints("map");
  Ints repeated;
  for (int64_t axis = 0, i = 0; axis < g.rank(); ++axis) {
    bool mapped = i < operand.rank() && map[static_cast<size_t>(i)] == axis;
    if (!mapped || !(operand.dim(static_cast<int>(i)) == g.dim(static_cast<int>(axis))))
      repeated.push_back(axis);
    if (mapped) ++i;
  }
  return reshape(repeated.empty() ? g : reduce_sum(g, repeated),
                 Dims(operand.dims().begin(), operand.dims().end()));
}

Value untransposed(Value g, const Op& op) {
  const Ints& permutation = op.ints("permutation");
  Ints back(permutation.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return transpose(g, back);
}

// The gradients of the operands of y = op(x), given that of y.
std::vector<Value> derivatives(Node& n, const Op& op, const std::vector<Value>& x, Value y,
                               Value g) {
  switch (op.opcode()) {
    case Opcode::add: return {g, g};
    case Opcode::sub: return {g, -g};
    case Opcode::mul: return {g * x[1], g * x[0]};
    case Opcode::div: return {g / x[1], -(g * y / x[1])};
    case Opcode::neg: return {-g};
    case Opcode::exp: return {g * y};
    case Opcode::log: return {g / x[0]};
    case Opcode::sqrt: return {g / (y * 2)};
    case Opcode::tanh: return {g * (1.0 - y * y)};
    case Opcode::logistic: return {g * y * (1.0 - y)};
    case Opcode::sin: return {g * unary(Opcode::cos, x[0])};
    case Opcode::cos: return {-(g * unary(Opcode::sin, x[0]))};
    case Opcode::broadcast: return {unbroadcast(g, op, x[0].type())};
    case Opcode::reshape: return {reshape(g, x[0].dims())};
    case Opcode::transpose: return {untransposed(g, op)};
    default: n.unsupported("the derivative of '{}' is not known here", op.name());
  }
}

// Carries what `y` gets, ones, back to `xs`, whose values are taken as given, as are those of `zs`.
class Sweep {
 public:
  Sweep(Node& n, Value y, std::span<const Value> xs, std::span<const Value> zs)
      : n_(n), graph_(n.builder().graph()), y_(y), origins_(graph_.value_count(), 0) {
    charge();
    for (Value v : zs) given_.insert(v.id());
    for (Value v : xs) given_.insert(v.id());
    for (Value v : xs) origin(v) = kWanted;
    for (uint32_t i = 0; i < nodes(); ++i) trace(NodeId{i});
    if ((origin(y) & kForeign) != 0)
      n.bad(
          "y depends on more inputs of the model, or of its part after sizes that depend on data, "
          "than xs and zs name");
    if ((origin(y) & kWanted) == 0) return;
    gradients_[y.id()] = n.builder().full(y.dtype(), y.dims(), 1);
    for (uint32_t i = nodes(); i-- > 0;)
      for (ValueId result : graph_.results(NodeId{i})) step(NodeId{i}, result);
  }

  // Absent if y does not depend on it.
  Value gradient(Value x) const {
    auto found = gradients_.find(x.id());
    return found == gradients_.end() ? Value() : found->second;
  }

 private:
  // The values that a value is computed from, besides constants and zs.
  static constexpr uint8_t kWanted = 1;   // xs
  static constexpr uint8_t kForeign = 2;  // parameters that nobody named
  struct Hash {
    size_t operator()(ValueId v) const { return v.index; }
  };

  uint8_t& origin(Value v) { return origins_[v.id().index]; }
  uint32_t nodes() const { return graph_.producer(y_.id()).index + 1; }

  // Gradients of gradients of ... grow without end, so they count as the nodes that they look at.
  void charge() {
    int64_t limit = n_.frame().source()->options.limits.nodes;
    n_.frame().node_count() += nodes();
    if (n_.frame().node_count() > limit)
      throw Failure{over_limit("gradients over more than {} nodes, all together", limit)};
  }

  void trace(NodeId node) {
    uint8_t sum = graph_.opcode(node) == Opcode::parameter ? kForeign : 0;
    for (ValueId operand : graph_.operands(node))
      if (!operand.is_none()) sum |= origins_[operand.index];
    for (ValueId result : graph_.results(node))
      if (!given_.contains(result)) origins_[result.index] = sum;
  }

  void step(NodeId node, ValueId result) {
    auto found = gradients_.find(result);
    if (found == gradients_.end() || given_.contains(result)) return;
    Op op = graph_.op(node);
    std::vector<Value> operands;
    for (ValueId v : graph_.operands(node)) operands.emplace_back(&n_.builder(), v);
    Value y(&n_.builder(), result), g = found->second;
    std::vector<Value> parts = derivatives(n_, op, operands, y, g);
    for (size_t i = 0; i < operands.size(); ++i) {
      if ((origin(operands[i]) & kWanted) == 0) continue;
      Value& sum = gradients_[operands[i].id()];
      sum = sum ? sum + parts[i] : parts[i];
    }
  }

  Node& n_;
  const Graph& graph_;
  Value y_;
  std::vector<uint8_t> origins_;  // of the values that there are before the sweep
  std::unordered_set<ValueId, Hash> given_;
  std::unordered_map<ValueId, Value, Hash> gradients_;
};

}  // namespace

// The derivatives of the sum of y by each of xs, all else being constant.
void map_gradient(Node& n) {
  std::vector<std::string> names = n.words("xs"), others = n.words("zs");
  size_t wanted = names.size();
  names.insert(names.end(), others.begin(), others.end());
  if (names.size() != n.inputs())
    n.bad("{} operands for {} names in xs and zs", n.inputs(), names.size());
  auto named = [&](std::string_view name) { return n.flow().value_of(*n.frame().find(name)); };
  Value y = named(n.word("y", ""));
  n.require(is_real(y.dtype()), "y must have reals");
  std::vector<Value> values;
  for (size_t i = 0; i < names.size(); ++i) {
    values.push_back(named(names[i]));
    if (values[i].id() != n.in(i).id())
      n.unsupported("operand {} is not the value of '{}'; gradients are taken where the graph is",
                    i, names[i]);
  }
  std::span<const Value> all = values;
  Sweep sweep(n, y, all.first(wanted), all.subspan(wanted));
  for (size_t i = 0; i < wanted; ++i) {
    if (!n.wants(i)) continue;
    Value g = sweep.gradient(n.in(i));
    n.out(i, g ? g : n.builder().full(n.in(i).dtype(), n.in(i).dims(), 0));
  }
}

}  // namespace hone::onnx_io
