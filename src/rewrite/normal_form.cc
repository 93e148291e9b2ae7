#include "rewrite/normal_form.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "ir/application.h"

namespace hone {
namespace {

// Longer products keep their operands whole, so that x*x, x2*x2, ... stays small.
constexpr size_t kMaxFactors = 8;
// Constants up to this size are looked through for a splat.
constexpr int64_t kMaxSplatElements = 4096;

// How far two numbers of the type may be apart by rounding alone, relatively.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x4p-53;
    case DType::f32: return 0x4p-24;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0;
  }
}

uint64_t payload_of(double number) { return std::bit_cast<uint64_t>(number); }

}  // namespace

size_t NormalForms::ExpansionHash::operator()(const ExpansionKey& key) const {
  Hasher hasher(key.op.hash());
  hasher.add(reinterpret_cast<uintptr_t>(key.form));
  for (Type t : key.operands) hasher.add(t ? t.hash() : 0);
  return hasher.value();
}

NormalForms::NormalForms() : slots_(1024, kNoForm) {}

// ---- The table ----------------------------------------------------------------------------------

Form NormalForms::intern(FormNode node, std::span<const Form> operands) {
  Hasher hasher(node.kind == FormKind::op ? node.op.hash() : 0);
  hasher.add(node.kind).add(node.result).add(node.type.hash()).add(node.payload);
  for (Form f : operands) hasher.add(f);
  const uint64_t hash = hasher.value();
  auto equal = [&](Form f) {
    const FormNode& other = nodes_[f];
    return hashes_[f] == hash && other.kind == node.kind && other.result == node.result &&
           other.op == node.op && other.type == node.type && other.payload == node.payload &&
           std::ranges::equal(this->operands(f), operands);
  };
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != kNoForm; slot = (slot + 1) & (slots_.size() - 1))
    if (equal(slots_[slot])) return slots_[slot];

  const Form made = static_cast<Form>(nodes_.size());
  node.begin = static_cast<uint32_t>(operands_.size());
  node.count = static_cast<uint32_t>(operands.size());
  // The operands may lie in operands_ itself.
  const std::vector<Form> copy(operands.begin(), operands.end());
  operands_.insert(operands_.end(), copy.begin(), copy.end());
  nodes_.push_back(node);
  hashes_.push_back(hash);
  slots_[slot] = made;
  if (2 * nodes_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), kNoForm);
    for (Form f = 0; f < nodes_.size(); ++f) {
      size_t at = hashes_[f] & (slots_.size() - 1);
      while (slots_[at] != kNoForm) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = f;
    }
  }
  return made;
}

Form NormalForms::leaf(Type type) {
  return intern({.kind = FormKind::leaf, .op = {}, .type = type, .payload = ++leaves_}, {});
}

Form NormalForms::make(Op op, std::span<const Form> operands, Type type) {
  return intern({.kind = FormKind::op, .op = op, .type = type, .payload = operands.size()},
                operands);
}

Form NormalForms::constant(const Tensor& tensor) {
  const Type type = tensor.type();
  const int64_t count = tensor.elements();
  const bool visible = count == 1 || (tensor.is_materialized() && count <= kMaxSplatElements);
  if (count > 0 && visible) {
    const size_t width = static_cast<size_t>(count);
    if (is_real(type.dtype())) {
      std::vector<double> numbers(width);
      tensor.read_reals(0, std::span(numbers));
      if (std::ranges::all_of(numbers, [&](double d) { return d == numbers[0]; }))
        return splat(type, numbers[0]);
    } else {
      std::vector<int64_t> numbers(width);
      tensor.read_integers(0, numbers);
      if (std::ranges::all_of(numbers, [&](int64_t i) { return i == numbers[0]; })) {
        return intern({.kind = FormKind::splat,
                       .op = {},
                       .type = type,
                       .payload = static_cast<uint64_t>(numbers[0])},
                      {});
      }
    }
  }
  const Form made = intern(
      {.kind = FormKind::constant, .op = {}, .type = type, .payload = tensor.content_hash()}, {});
  tensors_.emplace(made, tensor);
  return made;
}

double NormalForms::snapped(DType dtype, double number) {
  if (!std::isfinite(number) || number == 0) return number;
  const double reach = std::abs(number) * tolerance(dtype);
  auto near = numbers_.lower_bound({dtype, number - reach});
  double best = number, distance = INFINITY;
  for (; near != numbers_.end() && near->first.first == dtype; ++near) {
    const double known = near->first.second;
    if (known > number + reach) break;
    if (std::abs(known - number) < distance) best = known, distance = std::abs(known - number);
  }
  if (distance == INFINITY) numbers_.emplace(std::pair(dtype, number), 0);
  return best;
}

Form NormalForms::splat(Type type, double number) {
  uint64_t payload = 0;
  if (is_real(type.dtype())) {
    payload = payload_of(snapped(type.dtype(), number));
  } else {
    payload = static_cast<uint64_t>(Tensor::scalar(type.dtype(), number).integer_at(0));
  }
  return intern({.kind = FormKind::splat, .op = {}, .type = type, .payload = payload}, {});
}

double NormalForms::number(Form f) const {
  const FormNode& node = nodes_[f];
  if (node.kind == FormKind::splat && !is_real(node.type.dtype()))
    return integer_to_real(node.type.dtype(), static_cast<int64_t>(node.payload));
  if (node.kind == FormKind::splat || node.kind == FormKind::product)
    return std::bit_cast<double>(node.payload);
  return 1;
}

bool NormalForms::is_splat(Form f, double number) const {
  return is(f, FormKind::splat) && this->number(f) == number;
}

// ---- Graphs -------------------------------------------------------------------------------------

std::vector<Form> NormalForms::of_graph(const Graph& graph, std::span<const Form> inputs) {
  std::vector<Form> forms(graph.value_count(), kNoForm);
  for (size_t i = 0; i < inputs.size(); ++i) forms[graph.inputs()[i].index] = inputs[i];
  std::vector<Form> operands;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::parameter) continue;
    operands.clear();
    for (ValueId v : graph.operands(n)) operands.push_back(v.is_none() ? kNoForm : forms[v.index]);
    const std::vector<Form> results = apply(graph, n, operands);
    for (size_t i = 0; i < results.size(); ++i) forms[graph.result(n, i).index] = results[i];
  }
  return forms;
}

std::vector<Form> NormalForms::of_graph(const Graph& graph) {
  std::vector<Form> inputs;
  for (Type type : graph.input_types()) inputs.push_back(leaf(type));
  return of_graph(graph, inputs);
}

// The outputs of a closed region in terms of its parameters, which are the same for all regions.
std::vector<Form> NormalForms::region(const Graph& graph) {
  std::vector<Form> parameters;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    // Numbers from the top, where leaves do not come.
    parameters.push_back(intern({.kind = FormKind::leaf,
                                 .op = {},
                                 .type = graph.type(graph.inputs()[i]),
                                 .payload = UINT64_MAX - i},
                                {}));
  }
  const std::vector<Form> forms = of_graph(graph, parameters);
  std::vector<Form> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(forms[v.index]);
  return outputs;
}

std::vector<Form> NormalForms::of_composite(Op op, std::span<const Form> operands, ExpandFn form) {
  ExpansionKey key{op, form == nullptr ? op.def().expand : form, {}};
  std::vector<Form> inputs;
  for (Form f : operands) {
    key.operands.push_back(f == kNoForm ? Type() : type(f));
    if (f != kNoForm) inputs.push_back(f);
  }
  auto known = expansions_.find(key);
  if (known == expansions_.end()) {
    // Checks of the op itself come first: a form is only asked about what its op accepts.
    Result<std::vector<Type>> types = infer({op, key.operands});
    Result<Graph> spelled = types.ok() ? expansion(op, key.operands, key.form)
                                       : Result<Graph>(std::move(types).error());
    known = expansions_.emplace(std::move(key), std::move(spelled)).first;
  }
  if (!known->second.ok()) return {};
  const Graph& graph = *known->second;
  const std::vector<Form> forms = of_graph(graph, inputs);
  std::vector<Form> results;
  for (ValueId v : graph.outputs()) results.push_back(forms[v.index]);
  return results;
}

std::vector<Form> NormalForms::apply(const Graph& graph, NodeId n, std::span<const Form> operands) {
  const Op op = graph.op(n);
  if (op.opcode() == Opcode::constant) return {constant(graph.constant(n))};
  if (op.def().expand != nullptr) {
    std::vector<Form> results = of_composite(op, operands);
    HONE_CHECK(results.size() == graph.results(n).size(), "{} does not expand", graph.describe(n));
    return results;
  }
  if (op.def().traits.has_effect) {
    // Two of them are two things, even if they look alike.
    std::vector<Form> results;
    for (ValueId v : graph.results(n)) results.push_back(leaf(graph.type(v)));
    return results;
  }
  std::span<const GraphRef> regions = graph.regions(n);
  if (regions.empty() && graph.results(n).size() == 1)
    return {simplified(op, operands, graph.type(graph.result(n)))};

  std::vector<Form> all(operands.begin(), operands.end());
  for (const GraphRef& r : regions) {
    const std::vector<Form> outputs = region(*r);
    all.insert(all.end(), outputs.begin(), outputs.end());
  }
  std::vector<Form> results;
  for (uint32_t i = 0; i < graph.results(n).size(); ++i) {
    results.push_back(intern({.kind = FormKind::op,
                              .result = i,
                              .op = op,
                              .type = graph.type(graph.result(n, i)),
                              .payload = operands.size()},
                             all));
  }
  return results;
}

// ---- Products and sums of reals -----------------------------------------------------------------

Factors NormalForms::factors(Form f) const {
  const FormNode& node = nodes_[f];
  if (node.kind == FormKind::product) {
    const std::span<const Form> list = operands(f);
    return {number(f), {list.begin(), list.end()}};
  }
  if (node.kind == FormKind::splat && is_real(node.type.dtype())) return {number(f), {}};
  return {1, {f}};
}

Form NormalForms::product(Type type, Factors factors) {
  if (factors.list.empty()) return splat(type, factors.number);
  const double number = snapped(type.dtype(), factors.number);
  if (number == 1 && factors.list.size() == 1) return factors.list[0];
  std::ranges::sort(factors.list);
  return intern({.kind = FormKind::product, .op = {}, .type = type, .payload = payload_of(number)},
                factors.list);
}

Form NormalForms::scaled(Form x, double number) {
  Factors f = factors(x);
  f.number *= number;
  return product(type(x), std::move(f));
}

Form NormalForms::multiply(Form a, Form b) {
  const Type type = this->type(a);
  Factors x = factors(a), y = factors(b);
  if (x.list.size() + y.list.size() > kMaxFactors) {
    if (x.list.size() > 1) x.list = {product(type, {1, x.list})};
    if (y.list.size() > 1) y.list = {product(type, {1, y.list})};
  }
  x.number *= y.number;
  x.list.insert(x.list.end(), y.list.begin(), y.list.end());
  return product(type, std::move(x));
}

Form NormalForms::unary(Opcode opcode, Form x) {
  return make(Op::get(opcode), std::span(&x, 1), type(x));
}

// sqrt or rsqrt. The deviation of statistics that were given dims of 1 is taken before those dims.
Form NormalForms::root(Opcode opcode, Form x) {
  if (is(x, FormKind::splat)) {
    const double y = std::sqrt(number(x));
    return splat(type(x), opcode == Opcode::sqrt ? y : 1 / y);
  }
  if (is(x, Opcode::add)) {
    for (size_t i = 0; i < 2; ++i) {
      const Form epsilon = operand(x, i), view = operand(x, 1 - i);
      if (!is(epsilon, FormKind::splat) || !is(view, Opcode::reshape)) continue;
      const Form core = squeezed(view);
      if (is(core, Opcode::reshape)) continue;
      const Form shifted = sum(core, splat(type(core), number(epsilon)));
      return reshape(unary(opcode, shifted), dims(x));
    }
  }
  return unary(opcode, x);
}

Form NormalForms::inverse(Form x) {
  const Type type = this->type(x);
  if (is(x, FormKind::splat)) return splat(type, 1 / number(x));
  if (is(x, FormKind::product)) {
    Factors f = factors(x);
    f.number = 1 / f.number;
    for (Form& factor : f.list) factor = inverse(factor);
    return product(type, std::move(f));
  }
  if (is(x, FormKind::inverse)) return operand(x, 0);
  if (is(x, Opcode::sqrt)) return unary(Opcode::rsqrt, operand(x, 0));
  if (is(x, Opcode::rsqrt)) return unary(Opcode::sqrt, operand(x, 0));
  // Inside of views, so that x / broadcast(s) and x * broadcast(1 / s) meet.
  if (is_view(x)) {
    const Op view = op(x);
    const Form inner = inverse(operand(x, 0));
    if (view.opcode() == Opcode::reshape) return reshape(inner, view.dims("dims"));
    if (view.opcode() == Opcode::transpose) return transpose(inner, view.ints("permutation"));
    return broadcast(inner, view.dims("dims"), view.ints("map"));
  }
  // 1 / (1 + exp(-z))
  if (is(x, Opcode::add)) {
    for (size_t i = 0; i < 2; ++i) {
      const Form e = operand(x, 1 - i);
      if (is_splat(operand(x, i), 1) && is(e, Opcode::exp))
        return unary(Opcode::logistic, scaled(operand(e, 0), -1));
    }
  }
  return intern({.kind = FormKind::inverse, .op = {}, .type = type}, std::span(&x, 1));
}

Form NormalForms::sum(Form a, Form b) {
  if (is(a, FormKind::splat) && is(b, FormKind::splat))
    return splat(type(a), number(a) + number(b));
  const Form sorted[] = {std::min(a, b), std::max(a, b)};
  return make(Op::get(Opcode::add), sorted, type(a));
}

Form NormalForms::real_power(Op op, Form x, Form exponent) {
  const Type type = this->type(x);
  if (is(exponent, FormKind::splat)) {
    const double e = number(exponent);
    if (e == 1) return x;
    if (e == 2) return multiply(x, x);
    if (e == 3) return multiply(multiply(x, x), x);
    if (e == -1) return inverse(x);
    if (e == 0.5) return root(Opcode::sqrt, x);
    if (e == -0.5) return root(Opcode::rsqrt, x);
  }
  const Form both[] = {x, exponent};
  return make(op, both, type);
}

Form NormalForms::clamped(Op op, std::span<const Form> operands, Type type) {
  std::vector<Form> sorted(operands.begin(), operands.end());
  std::ranges::sort(sorted);
  if (op.opcode() == Opcode::min) {
    for (size_t i = 0; i < 2; ++i) {
      const Form high = sorted[i], inner = sorted[1 - i];
      if (!is(high, FormKind::splat) || !is(inner, Opcode::max)) continue;
      for (size_t j = 0; j < 2; ++j) {
        const Form low = operand(inner, j), x = operand(inner, 1 - j);
        if (!is(low, FormKind::splat) || !(number(low) <= number(high))) continue;
        const Form below[] = {x, high};
        const Form swapped[] = {low, clamped(Op::get(Opcode::min), below, type)};
        return clamped(Op::get(Opcode::max), swapped, type);
      }
    }
  }
  return make(op, sorted, type);
}

// ---- Rules per op -------------------------------------------------------------------------------

// A rule gives another form of an application, or kNoForm if the op stays.
struct NormalForms::Rules {
  using In = std::span<const Form>;
  using Rule = Form (*)(NormalForms& f, Op op, In in, Type type);
  struct Row {
    Opcode opcode;
    Rule rule;
    bool reals_only = false;
  };

  static Form logarithm(NormalForms& f, Op, In in, Type) {
    if (!f.is(in[0], Opcode::add)) return kNoForm;
    for (size_t i = 0; i < 2; ++i)
      if (f.is_splat(f.operand(in[0], i), 1))
        return f.unary(Opcode::log1p, f.operand(in[0], 1 - i));
    return kNoForm;
  }
  static Form root(NormalForms& f, Op op, In in, Type) { return f.root(op.opcode(), in[0]); }
  static Form clamped(NormalForms& f, Op op, In in, Type type) { return f.clamped(op, in, type); }
  static Form reduce(NormalForms& f, Op op, In in, Type type) {
    if (op.word("kind") != "sum") return kNoForm;
    Factors factors = f.factors(in[0]);
    if (factors.number == 1 || factors.list.empty()) return kNoForm;
    const Form plain = f.product(f.type(in[0]), {1, factors.list});
    return f.scaled(f.make(op, std::span(&plain, 1), type), factors.number);
  }
  static Form cast(NormalForms& f, Op, In in, Type type) {
    if (!f.is(in[0], FormKind::splat) || std::abs(f.number(in[0])) > 0x1p31) return kNoForm;
    const Form converted = f.splat(type, f.number(in[0]));
    return f.number(converted) == f.number(in[0]) ? converted : kNoForm;
  }
  static Form compare(NormalForms& f, Op op, In in, Type type) {
    const std::string& direction = op.word("direction");
    const Form swapped[] = {in[1], in[0]};
    if (direction == "gt")
      return f.make(Op::get(Opcode::compare, {{"direction", "lt"}}), swapped, type);
    if (direction == "ge")
      return f.make(Op::get(Opcode::compare, {{"direction", "le"}}), swapped, type);
    const bool is_symmetric = direction == "eq" || direction == "ne";
    return is_symmetric && in[0] > in[1] ? f.make(op, swapped, type) : kNoForm;
  }
  static Form select(NormalForms& f, Op op, In in, Type type) {
    if (!f.is(in[0], Opcode::not_)) return kNoForm;
    const Form swapped[] = {f.operand(in[0], 0), in[2], in[1]};
    return f.make(op, swapped, type);
  }
  static Form slice(NormalForms& f, Op, In in, Type type) {
    return type == f.type(in[0]) ? in[0] : kNoForm;
  }
  static Form concat(NormalForms&, Op, In in, Type) { return in.size() == 1 ? in[0] : kNoForm; }

  static const Row* find(Opcode opcode);
};

const NormalForms::Rules::Row* NormalForms::Rules::find(Opcode opcode) {
  using F = NormalForms;
  static constexpr bool kReals = true;
  static constexpr Row kRows[] = {
      {Opcode::reshape, [](F& f, Op op, In in, Type) { return f.reshape(in[0], op.dims("dims")); }},
      {Opcode::broadcast, [](F& f, Op op, In in,
                             Type) { return f.broadcast(in[0], op.dims("dims"), op.ints("map")); }},
      {Opcode::transpose,
       [](F& f, Op op, In in, Type) { return f.transpose(in[0], op.ints("permutation")); }},
      {Opcode::dot,
       [](F& f, Op op, In in, Type type) { return f.contraction(op, in[0], in[1], type); }},
      {Opcode::add, [](F& f, Op, In in, Type) { return f.sum(in[0], in[1]); }, kReals},
      {Opcode::sub, [](F& f, Op, In in, Type) { return f.sum(in[0], f.scaled(in[1], -1)); },
       kReals},
      {Opcode::mul, [](F& f, Op, In in, Type) { return f.multiply(in[0], in[1]); }, kReals},
      {Opcode::div, [](F& f, Op, In in, Type) { return f.multiply(in[0], f.inverse(in[1])); },
       kReals},
      {Opcode::neg, [](F& f, Op, In in, Type) { return f.scaled(in[0], -1); }, kReals},
      {Opcode::pow, [](F& f, Op op, In in, Type) { return f.real_power(op, in[0], in[1]); },
       kReals},
      {Opcode::reduce, &reduce, kReals},
      {Opcode::max, &clamped},
      {Opcode::min, &clamped},
      {Opcode::log, &logarithm},
      {Opcode::sqrt, &root},
      {Opcode::rsqrt, &root},
      {Opcode::cast, &cast},
      {Opcode::compare, &compare},
      {Opcode::select, &select},
      {Opcode::slice, &slice},
      {Opcode::concat, &concat}};
  const auto row = std::ranges::find(kRows, opcode, &Row::opcode);
  return row == std::end(kRows) ? nullptr : &*row;
}

Form NormalForms::simplified(Op op, std::span<const Form> in, Type type) {
  const Rules::Row* row = Rules::find(op.opcode());
  if (row != nullptr && (is_real(type.dtype()) || !row->reals_only))
    if (const Form other = row->rule(*this, op, in, type); other != kNoForm) return other;
  if (op.def().traits.commutative && in.size() == 2 && in[0] > in[1]) {
    const Form sorted[] = {in[1], in[0]};
    return make(op, sorted, type);
  }
  return make(op, in, type);
}

}  // namespace hone
