#include "prove/prove.h"

#include <algorithm>

#include "base/text.h"
#include "prove/guard.h"
#include "prove/order_form.h"
#include "prove/sum_form.h"
#include "rewrite/expand.h"
#include "rules/statement.h"

namespace hone {
namespace {

constexpr size_t kMaxBoxes = 512;

// A box of a result: the position of an element, by variables of its own.
struct Box {
  std::vector<IndexForm> index;
  std::vector<int> variables;
};

class OutputProof {
 public:
  OutputProof(const Graph& left, const Graph& right, size_t output, bool unrolls, Proof& proof,
              std::vector<std::string>& steps)
      : left_(left),
        right_(right),
        output_(output),
        unrolls_(unrolls),
        proof_(proof),
        steps_(steps) {}

  bool run() {
    Box whole;
    for (Dim dim : left_.type(left_.outputs()[output_]).dims()) {
      if (dim.is(1)) {
        whole.index.push_back(IndexForm(0));
        continue;
      }
      whole.variables.push_back(variables_.add(dim));
      whole.index.push_back(IndexForm::variable(whole.variables.back()));
    }
    open_.push_back(std::move(whole));
    while (!open_.empty()) {
      Box box = std::move(open_.back());
      open_.pop_back();
      if (!is_equal_on(std::move(box))) return false;
    }
    return true;
  }

 private:
  bool is_equal_on(Box box) {
    if (proof_.boxes + open_.size() > kMaxBoxes) return stop("there are too many boxes");
    std::string texts[2];
    SumForm forms[2];
    std::vector<std::string> names;
    const size_t mark = steps_.size();
    steps_.emplace_back("box");
    for (int side = 0; side < 2; ++side) {
      const Graph& graph = side == 0 ? left_ : right_;
      FormMaker maker(graph, variables_, unrolls_, steps_);
      forms[side] = maker.element(graph.outputs()[output_], box.index);
      if (!maker.fault.empty()) return stop(maker.fault);
      if (maker.wanted) {
        steps_.resize(mark);
        return refine(std::move(box), *maker.wanted);
      }
      names.assign(variables_.size(), "");
      for (size_t i = 0; i < box.variables.size(); ++i)
        names[static_cast<size_t>(box.variables[i])] = fmt::format("i{}", i);
      const std::optional<std::string> text = canonical_text(forms[side], variables_, names);
      if (!text) return stop("the factors are too large");
      texts[side] = *text;
    }
    if (texts[0] != texts[1] && !is_equal_by_order(forms[0], forms[1], variables_, names))
      return stop(fmt::format("the forms differ: {} and {}", excerpt(texts[0]), excerpt(texts[1])));
    ++proof_.boxes;
    return true;
  }

  bool refine(Box box, const Refinement& refinement) {
    const auto mine = std::ranges::find(box.variables, refinement.variable);
    HONE_CHECK(mine != box.variables.end(), "a variable that no loop has");
    const Dim extent = variables_.extent(refinement.variable);
    steps_.push_back(
        step_text(refinement, static_cast<size_t>(mine - box.variables.begin()), extent));
    box.variables.erase(mine);
    const auto with = [&](const IndexForm& form, std::initializer_list<int> added) {
      Box refined = box;
      for (IndexForm& index : refined.index)
        index = index.with(refinement.variable, form, variables_);
      refined.variables.insert(refined.variables.end(), added.begin(), added.end());
      open_.push_back(std::move(refined));
    };
    if (refinement.kind == Refinement::digits) {
      const int high = variables_.add(*extent.divided_by(refinement.at));
      const int low = variables_.add(refinement.at);
      with(IndexForm::variable(high) * refinement.at + IndexForm::variable(low), {high, low});
    } else {
      const int before = variables_.add(refinement.at);
      const int behind = variables_.add(extent - refinement.at);
      with(IndexForm::variable(before, variables_), {before});
      with(IndexForm::variable(behind, variables_) + IndexForm(refinement.at), {behind});
    }
    return true;
  }

  bool stop(std::string why) {
    proof_.stopped = std::move(why);
    return false;
  }

  const Graph& left_;
  const Graph& right_;
  size_t output_;
  bool unrolls_;
  Proof& proof_;
  std::vector<std::string>& steps_;
  LoopVariables variables_;
  std::vector<Box> open_;
};

// Steps of one letter stand on one line.
std::string lines_of(const std::vector<std::string>& steps) {
  std::string text;
  bool is_letter = false;
  for (const std::string& step : steps) {
    const bool joins = is_letter && step.size() == 1;
    if (!text.empty()) text += joins ? " " : "\n";
    if (!joins) text += "  ";
    text += step;
    is_letter = step.size() == 1;
  }
  return text + "\n";
}

Proof attempt(const Graph& left, const Graph& right, bool unrolls) {
  Proof proof;
  std::vector<std::string> steps;
  if (unrolls) steps.emplace_back("unrolled");
  for (size_t o = 0; o < left.outputs().size(); ++o) {
    steps.emplace_back("result");
    if (!OutputProof(left, right, o, unrolls, proof, steps).run()) return proof;
  }
  proof.proved = true;
  proof.certificate = lines_of(steps);
  return proof;
}

// "symbol q0 in 0..31 step 1 = K/2" and "bind K = 2*q0 + 1"
std::string guard_lines(const Rule& plain, const GuardForm& form) {
  if (form.bindings.empty()) return "";
  std::string text;
  for (Symbol s : plain.symbols()) {
    Dim witness = s;
    for (const GuardForm::Made& made : form.made)
      if (made.symbol == s) witness = made.witness;
    text += fmt::format("  symbol {} in {}..{} step {} = {}\n", s.name(), s.min(), s.max(),
                        s.multiple_of(), witness.to_string());
  }
  for (const auto& [name, dim] : form.bindings)
    text += fmt::format("  bind {} = {}\n", name, dim.to_string());
  return text;
}

Proof prove_sides(const Rule& rule) {
  const auto every = [](Opcode) { return true; };
  const Result<Graph> left = expand_composites(rule.left, every);
  const Result<Graph> right = expand_composites(rule.right, every);
  for (const Result<Graph>* side : {&left, &right})
    if (!side->ok()) return {.stopped = side->error().what()};
  Proof proof = attempt(*left, *right, false);
  if (!proof.proved) {
    // Short sums may differ in how they are divided.
    const Proof other = attempt(*left, *right, true);
    if (other.proved) return other;
  }
  return proof;
}

}  // namespace

Proof prove(const Rule& rule) {
  const std::optional<GuardForm> form = form_of_guard(rule);
  if (!form) return {.stopped = "the guard admits no sizes"};
  Result<Rule> plain = without_guard(rule, *form);
  if (!plain.ok()) return {.stopped = plain.error().what()};
  Proof proof = prove_sides(*plain);
  if (proof.proved)
    proof.certificate =
        fmt::format("certificate @{} {:016x}\n{}{}", rule.name, statement_hash(rule),
                    guard_lines(*plain, *form), proof.certificate);
  return proof;
}

}  // namespace hone
