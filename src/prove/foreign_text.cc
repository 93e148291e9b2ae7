#include <algorithm>

#include "prove/foreign.h"
#include "prove/verify.h"

namespace hone {
namespace {

// Writes the values of one side.
class ForeignWriter {
 public:
  explicit ForeignWriter(const Graph& graph) : graph_(graph) {}

  Result<std::string> results() {
    std::vector<std::string> texts;
    for (ValueId v : graph_.outputs()) texts.push_back(HONE_TRY(text(v)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

 private:
  Result<std::string> text(ValueId v) {
    constexpr size_t kMaxText = 1 << 16;
    const NodeId n = graph_.producer(v);
    const Opcode opcode = graph_.opcode(n);
    if (opcode == Opcode::parameter)
      return fmt::format("?x{}", std::ranges::find(graph_.inputs(), v) - graph_.inputs().begin());
    std::string made = HONE_TRY(op(n));
    if (made.size() > kMaxText) return over_limit("the line is longer than {} bytes", kMaxText);
    return made;
  }

  Result<std::string> operand(NodeId n, size_t i) { return text(graph_.operands(n)[i]); }

  Error without_word(NodeId n) const {
    return unsupported("{} has a word that is missing", graph_.describe(n));
  }

  Result<std::string> op(NodeId n) {
    const Op op = graph_.op(n);
    constexpr std::pair<Opcode, std::string_view> kElementwise[] = {
        {Opcode::add, "ewadd"},       {Opcode::sub, "ewsub"}, {Opcode::mul, "ewmul"},
        {Opcode::div, "ewdiv"},       {Opcode::max, "ewmax"}, {Opcode::min, "ewmin"},
        {Opcode::relu, "relu"},       {Opcode::exp, "exp"},   {Opcode::tanh, "tanh"},
        {Opcode::logistic, "sigmoid"}};
    for (const auto& [opcode, word] : kElementwise) {
      if (op.opcode() != opcode) continue;
      std::string text = fmt::format("({}", word);
      for (size_t i = 0; i < graph_.operands(n).size(); ++i) text += " " + HONE_TRY(operand(n, i));
      return text + ")";
    }
    switch (graph_.operands(n).size()) {
      case 1: return unary(n);
      case 2: return binary(n);
      default: break;
    }
    if (op.opcode() == Opcode::concat) return concat(n);
    return without_word(n);
  }

  Result<std::string> unary(NodeId n) {
    const Op op = graph_.op(n);
    if (op.opcode() == Opcode::transpose)
      return fmt::format("(transpose {} {} 0)", HONE_TRY(operand(n, 0)),
                         fmt::join(op.ints("permutation"), "_"));
    if (op.opcode() == Opcode::slice) return part(n);
    return without_word(n);
  }

  // From two parts along one dim, the first or the second one.
  Result<std::string> part(NodeId n) {
    const Op op = graph_.op(n);
    const std::span<const Dim> dims = graph_.type(graph_.operands(n)[0]).dims();
    const Dims& start = op.dims("start");
    const Dims& limit = op.dims("limit");
    std::optional<size_t> axis;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (start[d].is(0) && limit[d] == dims[d]) continue;
      if (axis || (!start[d].is(0) && limit[d] != dims[d])) return without_word(n);
      axis = d;
    }
    if (!axis || !op.ints("stride").empty()) return without_word(n);
    return fmt::format("(split_{} (split {} {}))", start[*axis].is(0) ? 0 : 1, *axis,
                       HONE_TRY(operand(n, 0)));
  }

  Result<std::string> binary(NodeId n) {
    const Op op = graph_.op(n);
    if (op.opcode() == Opcode::concat) return concat(n);
    if (op.opcode() == Opcode::dot) {
      const bool is_plain =
          op == Op::get(Opcode::dot, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}})
                    .canonical() &&
          graph_.type(graph_.operands(n)[0]).rank() == 2 &&
          graph_.type(graph_.operands(n)[1]).rank() == 2;
      if (!is_plain) return without_word(n);
      return fmt::format("(matmul 0 {} {})", HONE_TRY(operand(n, 0)), HONE_TRY(operand(n, 1)));
    }
    if (op.opcode() == Opcode::conv) return conv(n);
    return without_word(n);
  }

  Result<std::string> concat(NodeId n) {
    const int64_t axis = graph_.op(n).integer("axis");
    std::string text = HONE_TRY(operand(n, 0));
    for (size_t i = 1; i < graph_.operands(n).size(); ++i)
      text = fmt::format("(concat {} {} {} {})", axis, graph_.type(graph_.result(n)).rank(), text,
                         HONE_TRY(operand(n, i)));
    return text;
  }

  Result<std::string> conv(NodeId n) {
    const Op op = graph_.op(n);
    const std::span<const Dim> kernel = graph_.type(graph_.operands(n)[1]).dims();
    const auto ones = [](const Ints& list) {
      return std::ranges::all_of(list, [](int64_t one) { return one == 1; });
    };
    const bool is_plain = kernel.size() == 4 && op.word("order").empty() &&
                          op.integer("groups") == 1 && ones(op.ints("stride")) &&
                          ones(op.ints("input_dilation")) && ones(op.ints("kernel_dilation"));
    if (!is_plain) return without_word(n);
    bool is_same = true, is_valid = true;
    for (size_t d = 0; d < 2; ++d) {
      const Dim size = kernel[d + 2];
      // Kernels of other sizes would be read back as those of 3.
      if (!size.is(3)) return without_word(n);
      const int64_t low = op.ints("pad_low").empty() ? 0 : op.ints("pad_low")[d];
      const int64_t high = op.ints("pad_high").empty() ? 0 : op.ints("pad_high")[d];
      is_same = is_same && low == 1 && high == 1;
      is_valid = is_valid && low == 0 && high == 0;
    }
    if (!is_same && !is_valid) return without_word(n);
    return fmt::format("(conv2d 1 1 {} 0 {} {})", is_same ? 0 : 1, HONE_TRY(operand(n, 0)),
                       HONE_TRY(operand(n, 1)));
  }

  const Graph& graph_;
};

}  // namespace

Result<std::string> foreign_text(const Rule& rule) {
  if (!rule.guard.empty()) return unsupported("it has a guard");
  std::string line = fmt::format("{} => {}", HONE_TRY(ForeignWriter(rule.left).results()),
                                 HONE_TRY(ForeignWriter(rule.right).results()));
  // Sizes are not written: those that a reader finds must make it true.
  const std::vector<ForeignRule> read = HONE_TRY(parse_foreign_rules(line, rule.name));
  const Result<TypedRule> typed = typed_rule(read[0]);
  if (!typed.ok()) return unsupported("its sizes are not told: {}", typed.error().what());
  const IdentityTest test = HONE_TRY(test_identity(typed->rule));
  if (test.counterexample) return unsupported("without its sizes it is not true");
  return line;
}

}  // namespace hone
