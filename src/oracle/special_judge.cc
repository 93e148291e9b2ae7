#include "oracle/special_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "oracle/short_reals.h"
#include "rewrite/passes.h"
#include "tensor/real_format.h"

namespace hone {
namespace {

using Tensors = std::vector<Tensor>;

double least_denormal(DType type) {
  if (type == DType::f64) return std::numeric_limits<double>::denorm_min();
  if (type == DType::f32) return std::numeric_limits<float>::denorm_min();
  const RealFormat& format = real_format(type);
  return std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
}

// In which sums are taken.
DType sum_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

// How the op combines many elements; none if it does not, or if the order means nothing.
std::optional<Opcode> combination(Op op) {
  switch (class_of(op.opcode())) {
    case OpClass::contraction: return Opcode::add;
    case OpClass::reduction:
    case OpClass::window:
    case OpClass::segmented:
    case OpClass::ordered: break;
    default: return std::nullopt;
  }
  for (const AttrSpec& attr : op.def().attrs) {
    if (attr.name != "kind" && attr.name != "combine") continue;
    const std::string_view word = op.word(attr.name);
    if (word == "sum" || word == "add") return Opcode::add;
    if (word == "product" || word == "mul") return Opcode::mul;
  }
  return std::nullopt;
}

bool has_such_sums(const Graph& graph) {
  for (NodeId n : graph.nodes()) {
    if (combination(graph.op(n)) && is_real(graph.type(graph.result(n)).dtype())) return true;
    for (const GraphRef& region : graph.regions(n))
      if (has_such_sums(*region)) return true;
  }
  return false;
}

// The values of all nodes, each rounded to its type.
Result<Tensors> all_values(Graph graph, std::span<const Tensor> inputs) {
  std::vector<ValueId> values;
  for (uint32_t v = 0; v < graph.value_count(); ++v) values.push_back({v});
  graph.set_outputs(values);
  return evaluate(graph, inputs, {.numerics = Numerics::rounded});
}

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return numbers;
}

// Applies `change` to tensors of reals; leaves other tensors as they are.
template <class Change>
Tensor changed(const Tensor& tensor, const Change& change) {
  if (!is_real(tensor.dtype())) return tensor;
  std::vector<double> numbers = reals_of(tensor);
  for (double& number : numbers) number = change(number);
  return Tensor::from_reals(tensor.type(), numbers);
}

// The result of the op for the operands, in double.
Result<std::vector<double>> result_of(Op op, std::span<const Tensor> operands) {
  Builder b("one");
  std::vector<Value> values;
  for (const Tensor& operand : operands) values.push_back(b.parameter("", operand.type()));
  const Graph graph = HONE_TRY(b.finish(b.ops(op, values)));
  return reals_of(HONE_TRY(evaluate(graph, operands, {.real_outputs_as_f64 = true}))[0]);
}

// A sum: of `sizes`, the sums of the terms' sizes.
bool cancels(DType type, const std::vector<double>& sums, const std::vector<double>& sizes,
             double terms) {
  const double unit = type == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double highest = highest_finite(sum_type(type));
  constexpr double kPart = 0.25;  // of the tolerance
  const Tolerance tolerance = tolerance_of_each(type);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sizes[i] > highest) return true;
    const double error = unit * terms * sizes[i];
    if (std::isfinite(sums[i]) &&
        error > kPart * (tolerance.relative * std::fabs(sums[i]) + tolerance.absolute))
      return true;
  }
  return false;
}

double finite_size(double x) { return std::isfinite(x) ? std::fabs(x) : 0; }
bool is_finite(const Tensor& tensor) {
  if (!is_real(tensor.dtype())) return true;
  return std::ranges::all_of(reals_of(tensor), [](double x) { return std::isfinite(x); });
}

Result<bool> order_decides(Op op, std::span<const Tensor> operands, const Tensor& sums) {
  Tensors sizes;
  for (const Tensor& operand : operands) sizes.push_back(changed(operand, finite_size));
  if (combination(op) == Opcode::mul) {
    // Products on the way lie between those of the numbers above 1 and of those below it.
    const auto part = [&](bool is_above) {
      Tensors factors;
      for (const Tensor& size : sizes)
        factors.push_back(changed(size, [&](double x) {
          return x == 0 ? 1 : is_above ? std::max(x, 1.0) : std::min(x, 1.0);
        }));
      return result_of(op, factors);
    };
    const double highest = highest_finite(sum_type(sums.dtype())), least = 2 / highest;
    const auto is_out = [&](double x) { return x > highest || x < least; };
    return std::ranges::any_of(HONE_TRY(part(true)), is_out) || std::ranges::any_of(
                                                                    HONE_TRY(part(false)), is_out);
  }
  // Padding may be multiplied as zeros, and tiles of transforms share what is not finite.
  if (is_convolution(op.opcode()) && !std::ranges::all_of(operands, is_finite)) return true;
  const double terms = static_cast<double>(operands[0].elements() + 1);
  return cancels(sums.dtype(), reals_of(sums), HONE_TRY(result_of(op, sizes)), terms);
}

using SumTest = Result<bool> (*)(Op op, std::span<const Tensor> operands, const Tensor& sums);

// Some sum or product of many passes the test. Nothing is known of those inside of regions.
Result<bool> any_sum(const Graph& graph, std::span<const Tensor> inputs, SumTest test) {
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  const Graph sized = HONE_TRY(specialize(graph, HONE_TRY(bind_inputs(graph, types))));
  const Graph spelt = HONE_TRY(expand_composites(HONE_TRY(widen_composites(sized))));
  const Tensors values = HONE_TRY(all_values(spelt, inputs));
  for (NodeId n : spelt.nodes()) {
    for (const GraphRef& region : spelt.regions(n))
      if (has_such_sums(*region)) return true;
    if (!combination(spelt.op(n))) continue;
    const Tensor& sums = values[spelt.result(n).index];
    if (!is_real(sums.dtype())) continue;
    Tensors operands;
    for (ValueId operand : spelt.operands(n)) operands.push_back(values[operand.index]);
    if (HONE_TRY(test(spelt.op(n), operands, sums))) return true;
  }
  return false;
}

// A product of two numbers may be too small for the sum's type. It becomes a zero, and its sign is
// lost where it is added without being rounded before.
Result<bool> products_vanish(Op op, std::span<const Tensor> operands, const Tensor& sums) {
  if (class_of(op.opcode()) != OpClass::contraction) return false;
  int exponent = 1;
  for (const Tensor& operand : operands) {
    int least = 0;
    for (double x : reals_of(operand))
      if (x != 0 && std::isfinite(x)) least = std::min(least, std::ilogb(x));
    exponent += least;
  }
  return exponent < std::ilogb(least_denormal(sum_type(sums.dtype())));
}

Result<bool> order_decides(const Graph& graph, std::span<const Tensor> inputs) {
  return any_sum(graph, inputs, order_decides);
}
Result<bool> zeros_lose_signs(const Graph& graph, std::span<const Tensor> inputs) {
  return HONE_TRY(any_sum(graph, inputs, products_vanish)) ||
         HONE_TRY(order_decides(graph, inputs));
}

// The modes are not the same within a part of the tolerance; or the outputs are those of composites
// whose constants have more than 16 bits.
Result<bool> is_undecided(const Graph& graph, std::span<const Tensor> inputs, size_t output,
                          const Tensor& actual, const Tensor& expected,
                          std::span<const Tensor> ways) {
  constexpr double kPart = 0.0625;
  const Tolerance whole = tolerance_of_each(expected.dtype());
  const Tolerance part = {kPart * whole.relative, whole.absolute};
  for (const Tensor& way : ways)
    if (!HONE_TRY(compare(way, expected, part)).passed()) return true;
  const Graph widened = HONE_TRY(widen_composites(graph));
  const Tensor of_widened = HONE_TRY(evaluate(widened, inputs))[output];
  return HONE_TRY(compare(of_widened, actual, whole)).passed() ||
         HONE_TRY(order_decides(graph, inputs));
}

}  // namespace

Tolerance tolerance_of_each(DType type) {
  constexpr double kLeast = 4;
  if (!is_real(type)) return {};
  return {default_tolerance(type).relative, kLeast * least_denormal(type)};
}

std::optional<int64_t> first_other_zero(const Tensor& actual, const Tensor& expected,
                                        std::span<const Tensor> ways) {
  if (!is_real(expected.dtype())) return std::nullopt;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double zero = expected.real_at(i);
    if (zero != 0 || actual.real_at(i) != 0) continue;
    const auto is_same = [&](double x) { return x == 0 && std::signbit(x) == std::signbit(zero); };
    if (is_same(actual.real_at(i))) continue;
    if (std::ranges::all_of(ways, [&](const Tensor& way) { return is_same(way.real_at(i)); }))
      return i;
  }
  return std::nullopt;
}

Result<std::vector<Difference>> differences_of_specials(const Graph& graph,
                                                        std::span<const Tensor> inputs,
                                                        std::span<const Tensor> actual) {
  std::vector<Tensors> ways;
  for (Numerics numerics : {Numerics::rounded, Numerics::wide, Numerics::fp32})
    ways.push_back(HONE_TRY(evaluate(graph, inputs, {.numerics = numerics})));
  const bool has_short = has_short_reals(graph);
  std::vector<Difference> differences;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor expected = has_short ? nearer(actual[i], ways[0][i], ways[1][i]) : ways[0][i];
    const Tensor others[] = {ways[0][i], ways[1][i], ways[2][i]};
    const Comparison comparison =
        HONE_TRY(compare(actual[i], expected, tolerance_of_each(expected.dtype())));
    if (!comparison.passed()) {
      differences.push_back(
          {i, comparison.to_string(),
           HONE_TRY(is_undecided(graph, inputs, i, actual[i], expected, others))});
    } else if (const std::optional<int64_t> zero = first_other_zero(actual[i], expected, others)) {
      const std::string at = index_text(expected.type(), *zero);
      differences.push_back({i, fmt::format("the zero at {} has the other sign", at),
                             HONE_TRY(zeros_lose_signs(graph, inputs))});
    }
  }
  return differences;
}

}  // namespace hone
