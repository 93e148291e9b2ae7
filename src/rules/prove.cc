#include "rules/prove.h"

#include <algorithm>

#include "base/text.h"
#include "rewrite/expand.h"
#include "rules/sum_form.h"

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
  OutputProof(const Graph& left, const Graph& right, size_t output, bool unrolls, Proof& proof)
      : left_(left), right_(right), output_(output), unrolls_(unrolls), proof_(proof) {}

  bool run() {
    Box whole;
    for (Dim dim : left_.type(left_.outputs()[output_]).dims()) {
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
    for (int side = 0; side < 2; ++side) {
      const Graph& graph = side == 0 ? left_ : right_;
      FormMaker maker(graph, variables_, unrolls_);
      const SumForm form = maker.element(graph.outputs()[output_], box.index);
      if (!maker.fault.empty()) return stop(maker.fault);
      if (maker.wanted) return refine(std::move(box), *maker.wanted);
      std::vector<std::string> names(variables_.size());
      for (size_t i = 0; i < box.variables.size(); ++i)
        names[static_cast<size_t>(box.variables[i])] = fmt::format("i{}", i);
      const std::optional<std::string> text = canonical_text(form, variables_, names);
      if (!text) return stop("the factors are too large");
      texts[side] = *text;
    }
    if (texts[0] != texts[1])
      return stop(fmt::format("the forms differ: {} and {}", excerpt(texts[0]), excerpt(texts[1])));
    ++proof_.boxes;
    return true;
  }

  bool refine(Box box, const Refinement& refinement) {
    const auto mine = std::ranges::find(box.variables, refinement.variable);
    HONE_CHECK(mine != box.variables.end(), "a variable that no loop has");
    const Dim extent = variables_.extent(refinement.variable);
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
      with(IndexForm::variable(before), {before});
      with(IndexForm::variable(behind) + IndexForm(refinement.at), {behind});
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
  LoopVariables variables_;
  std::vector<Box> open_;
};

Proof attempt(const Graph& left, const Graph& right, bool unrolls) {
  Proof proof;
  for (size_t o = 0; o < left.outputs().size(); ++o)
    if (!OutputProof(left, right, o, unrolls, proof).run()) return proof;
  proof.proved = true;
  return proof;
}

}  // namespace

Proof prove(const Rule& rule) {
  const auto every = [](Opcode) { return true; };
  const Result<Graph> left = expand_composites(rule.left, every);
  const Result<Graph> right = expand_composites(rule.right, every);
  for (const Result<Graph>* side : {&left, &right})
    if (!side->ok()) return {.proved = false, .boxes = 0, .stopped = side->error().what()};
  Proof proof = attempt(*left, *right, false);
  if (!proof.proved) {
    // Short sums may differ in how they are divided.
    const Proof other = attempt(*left, *right, true);
    if (other.proved) return other;
  }
  return proof;
}

}  // namespace hone
