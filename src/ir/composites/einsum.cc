#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "ir/composites/expansion.h"
#include "tensor/demand.h"

// Einstein summation, with all that numpy allows: repeated letters, "...", an implicit result.

namespace hone {
namespace {

using In = std::span<const Value>;

// One label per dim. Letters stand for themselves; the dims of "..." are -1 for the last one, -2
// for the one before, and so on, so that operands align from the back.
using Label = int;
using Labels = std::vector<Label>;

struct Term {
  std::string letters;             // without "..."
  std::optional<size_t> ellipsis;  // where "..." stood among the letters
};

struct Equation {
  std::vector<Term> operands;
  std::optional<Term> result;
};

// A value with the labels of its dims.
struct Labelled {
  Value value;
  Labels labels;
};

bool has_label(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string text_of(Label label) {
  return label > 0 ? fmt::format("'{}'", static_cast<char>(label))
                   : fmt::format("dim {} of '...'", label);
}

// ---- Parsing ------------------------------------------------------------------------------------

Result<Term> parse_term(std::string_view text, std::string_view equation) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      term.letters += text[i];
    } else if (text.substr(i, 3) == "...") {
      if (term.ellipsis) return bad_input("'...' is twice in '{}'", text);
      term.ellipsis = term.letters.size();
      i += 2;
    } else {
      return bad_input("unexpected '{}' in equation '{}'", escape(text.substr(i, 1)), equation);
    }
  }
  return term;
}

Result<Equation> parse_equation(std::string_view equation) {
  std::string text(equation);
  std::erase(text, ' ');
  Equation parsed;
  std::string_view inputs = text;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    inputs = inputs.substr(0, arrow);
    parsed.result = HONE_TRY(parse_term(std::string_view(text).substr(arrow + 2), equation));
  }
  for (std::string_view term : split(inputs, ','))
    parsed.operands.push_back(HONE_TRY(parse_term(term, equation)));
  return parsed;
}

// The labels of a term whose "..." stands for `ellipsis` dims.
Labels labels_of(const Term& term, size_t ellipsis) {
  Labels labels(term.letters.begin(), term.letters.end());
  if (!term.ellipsis) return labels;
  Labels dots;
  for (size_t i = 0; i < ellipsis; ++i)
    dots.push_back(static_cast<Label>(i) - static_cast<Label>(ellipsis));
  labels.insert(labels.begin() + static_cast<int64_t>(*term.ellipsis), dots.begin(), dots.end());
  return labels;
}

Result<Labels> operand_labels(const Term& term, Value v, size_t index) {
  const size_t rank = static_cast<size_t>(v.rank()), letters = term.letters.size();
  if (letters > rank || (letters < rank && !term.ellipsis)) {
    return bad_input("operand {} is {}, of rank {}; its term '{}' has {} letters", index,
                     v.type().to_string(), rank, term.letters, letters);
  }
  return labels_of(term, rank - letters);
}

// The labels of the result if the equation leaves them out: the dims of "...", then the letters
// that appear once, in alphabetical order.
Labels implicit_result(const std::vector<Labelled>& operands) {
  std::map<Label, int> count;
  for (const Labelled& operand : operands)
    for (Label label : operand.labels) ++count[label];
  Labels result;
  for (auto [label, times] : count)
    if (label < 0 || times == 1) result.push_back(label);
  return result;
}

// ---- One spelling -------------------------------------------------------------------------------

// Without blanks, with the result spelled out, letters in the order of their appearance. As it is
// if it does not parse.
std::string canonical_equation(const std::string& text) {
  Result<Equation> parsed = parse_equation(text);
  if (!parsed.ok()) return text;
  if (!parsed->result) {
    std::map<char, int> count;
    Term result;
    for (const Term& term : parsed->operands) {
      if (term.ellipsis) result.ellipsis = 0;
      for (char c : term.letters) ++count[c];
    }
    for (auto [letter, times] : count)
      if (times == 1) result.letters += letter;
    parsed->result = result;
  }
  std::map<char, char> names;
  auto spelled = [&](const Term& term) {
    std::string out;
    for (size_t i = 0; i <= term.letters.size(); ++i) {
      if (term.ellipsis == i) out += "...";
      if (i == term.letters.size()) break;
      const size_t next = names.size();
      const char fresh = static_cast<char>(next < 26 ? 'a' + next : 'A' + (next - 26));
      out += names.emplace(term.letters[i], fresh).first->second;
    }
    return out;
  };
  std::string out;
  for (size_t i = 0; i < parsed->operands.size(); ++i)
    out += (i > 0 ? "," : "") + spelled(parsed->operands[i]);
  return out + "->" + spelled(*parsed->result);
}

Op canonical_einsum(Op op) {
  const std::string equation = canonical_equation(op.word("equation"));
  if (equation == op.word("equation")) return op;
  return Op::get(Opcode::einsum, {{"equation", equation}});
}

// ---- Dims ---------------------------------------------------------------------------------------

using Sizes = std::map<Label, Dim>;

// The size of each label; 1 gives way to others.
Result<Sizes> sizes_of(const std::vector<Labelled>& operands) {
  Sizes sizes;
  for (const Labelled& operand : operands) {
    Sizes own;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const Label label = operand.labels[i];
      const Dim d = operand.value.dim(static_cast<int>(i));
      if (!own.emplace(label, d).second && !(own.at(label) == d)) {
        demand(Demand::Kind::equal, d, own.at(label));
        return bad_input("{} is {} and {} in one operand", text_of(label),
                         own.at(label).to_string(), d.to_string());
      }
    }
    for (auto [label, d] : own) {
      auto [known, fresh] = sizes.emplace(label, d);
      if (fresh || known->second == d || d.is(1)) continue;
      if (!known->second.is(1)) {
        demand(Demand::Kind::broadcast, d, known->second);
        return bad_input("{} is {} and {}", text_of(label), known->second.to_string(),
                         d.to_string());
      }
      known->second = d;
    }
  }
  return sizes;
}

// ---- Steps on labelled values -------------------------------------------------------------------

// Replaces a repeated label by the diagonal.
Labelled with_diagonals(Labelled x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    for (size_t j = x.labels.size() - 1; j > i; --j) {
      if (x.labels[j] != x.labels[i]) continue;
      Builder& b = x.value.builder();
      const Dims dims = x.value.dims(), square = {dims[i], dims[j]};
      Value diagonal =
          compare("eq", iota(b, DType::i64, square, 0), iota(b, DType::i64, square, 1));
      diagonal = broadcast(diagonal, dims, {static_cast<int64_t>(i), static_cast<int64_t>(j)});
      Value kept = select(diagonal, x.value, b.scalar(x.value.dtype(), 0));
      x.value = reduce_sum(kept, {static_cast<int64_t>(j)});
      x.labels.erase(x.labels.begin() + static_cast<int64_t>(j));
    }
  }
  return x;
}

// Drops the dims of size 1 that other operands stretch.
Labelled without_ones(Labelled x, const Sizes& sizes) {
  Labels kept;
  Dims dims;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const Dim d = x.value.dim(static_cast<int>(i));
    if (d.is(1) && !sizes.at(x.labels[i]).is(1)) continue;
    kept.push_back(x.labels[i]);
    dims.push_back(d);
  }
  return {reshape(x.value, dims), kept};
}

// Sums over the labels that are not needed.
Labelled summed(Labelled x, const Labels& needed) {
  Ints axes;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (has_label(needed, x.labels[i]))
      kept.push_back(x.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  return {reduce_sum(x.value, axes), kept};
}

// Multiplies over the labels of both operands; labels of both that are not needed are summed.
Labelled contracted(const Labelled& lhs, const Labelled& rhs, const Labels& needed) {
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  Labels batch, lhs_free, rhs_free;
  for (size_t i = 0; i < lhs.labels.size(); ++i) {
    const Label label = lhs.labels[i];
    auto other = std::find(rhs.labels.begin(), rhs.labels.end(), label);
    const bool kept = has_label(needed, label);
    if (other == rhs.labels.end()) {
      lhs_free.push_back(label);
      continue;
    }
    (kept ? lhs_batch : lhs_contract).push_back(static_cast<int64_t>(i));
    (kept ? rhs_batch : rhs_contract).push_back(other - rhs.labels.begin());
    if (kept) batch.push_back(label);
  }
  for (Label label : rhs.labels)
    if (!has_label(lhs.labels, label)) rhs_free.push_back(label);
  Labels labels = batch;
  labels.insert(labels.end(), lhs_free.begin(), lhs_free.end());
  labels.insert(labels.end(), rhs_free.begin(), rhs_free.end());
  return {dot_general(lhs.value, rhs.value, lhs_batch, rhs_batch, lhs_contract, rhs_contract),
          labels};
}

Value ordered(const Labelled& x, const Labels& wanted) {
  Ints permutation;
  for (Label label : wanted)
    permutation.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return transpose(x.value, permutation);
}

// ---- Expansion ----------------------------------------------------------------------------------

Result<Labels> result_labels(const Equation& equation, const std::vector<Labelled>& operands,
                             const Sizes& sizes) {
  if (!equation.result) return implicit_result(operands);
  size_t ellipsis = 0;
  for (auto [label, size] : sizes)
    if (label < 0) ellipsis = std::max(ellipsis, static_cast<size_t>(-label));
  if (ellipsis > 0 && !equation.result->ellipsis)
    return bad_input("the result lacks '...', which operands have");
  const Labels labels = labels_of(*equation.result, ellipsis);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (sizes.count(labels[i]) == 0)
      return bad_input("{} of the result is not in any operand", text_of(labels[i]));
    if (std::find(labels.begin(), labels.begin() + static_cast<int64_t>(i), labels[i]) !=
        labels.begin() + static_cast<int64_t>(i)) {
      return bad_input("{} is twice in the result", text_of(labels[i]));
    }
  }
  return labels;
}

struct Problem {
  std::vector<Labelled> operands;
  Sizes sizes;
  Labels result;
};

Result<Problem> understood(Op op, In in) {
  if (in.empty()) return bad_input("an equation needs operands");
  const Equation equation = HONE_TRY(parse_equation(op.word("equation")));
  if (equation.operands.size() != in.size()) {
    return bad_input("equation '{}' has {} terms for {} operands", op.word("equation"),
                     equation.operands.size(), in.size());
  }
  Problem problem;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype() != in[0].dtype()) {
      return bad_input("operands 0 and {} are {} and {}, want one element type", i,
                       name(in[0].dtype()), name(in[i].dtype()));
    }
    problem.operands.push_back({in[i], HONE_TRY(operand_labels(equation.operands[i], in[i], i))});
  }
  problem.sizes = HONE_TRY(sizes_of(problem.operands));
  problem.result = HONE_TRY(result_labels(equation, problem.operands, problem.sizes));
  return problem;
}

// The labels that the operands from `first` on, or the result, still need.
Labels needed_after(const Problem& problem, size_t first) {
  Labels needed = problem.result;
  for (size_t i = first; i < problem.operands.size(); ++i) {
    const Labels& labels = problem.operands[i].labels;
    needed.insert(needed.end(), labels.begin(), labels.end());
  }
  return needed;
}

std::vector<Value> expand_einsum(Builder& b, Op op, In in) {
  Result<Problem> understanding = understood(op, in);
  if (!understanding.ok()) return failed(b, std::move(understanding).error());
  Problem problem = std::move(*understanding);
  for (Labelled& operand : problem.operands)
    operand = without_ones(with_diagonals(operand), problem.sizes);

  // From left to right; what only one side has is summed before the product.
  Labelled x = summed(problem.operands[0], needed_after(problem, 1));
  for (size_t i = 1; i < problem.operands.size(); ++i) {
    Labels needed = needed_after(problem, i + 1);
    Labels for_rhs = needed;
    for_rhs.insert(for_rhs.end(), x.labels.begin(), x.labels.end());
    x = contracted(x, summed(problem.operands[i], for_rhs), needed);
    x = summed(x, needed);
  }
  return {ordered(x, problem.result)};
}

constexpr AttrSpec kEinsumAttrs[] = {
    {"equation", AttrKind::word, "", "\"ij,jk->ik\"; without \"->\": letters that appear once"}};

}  // namespace

extern const OpDef op_def_einsum;
const OpDef op_def_einsum = {
    .opcode = Opcode::einsum,
    .summary = "sums of products over named indices",
    .semantics =
        "As numpy.einsum: a letter that the result lacks is summed over, a letter twice in "
        "one term takes the diagonal, '...' stands for further dims that broadcast, a dim "
        "of size 1 stretches. Integers wrap.",
    .operands = "operands*",
    .attrs = kEinsumAttrs,
    .dtypes = kNumber,
    .expand = expand_einsum,
    .canonical = canonical_einsum};

}  // namespace hone
