#include <algorithm>
#include <map>

#include "ir/graph_copy.h"
#include "rewrite/normal_form.h"
#include "rewrite/passes.h"

// Dots, with the transposes, sums and diagonals around them, become one einsum; so do chains of
// dots, from left to right. An einsum names what every dim is (batch, contracted, kept), which is
// what splitting a computation over devices asks for.
//
// Guess, then verify, as in `raise`: dims are labelled from the result back to the operands, and an
// equation is taken only if its expansion has the value's normal form. Values that others use stay.
//
// Not taken: a sum of elementwise products, although it is the sum that a dot stands for. Its
// products are rounded to the element type one by one, those of a dot are not.
// An einsum that only names its operand's dims ("ab->ab") has no ops: what comes back is the
// operand.

namespace hone {
namespace {

// One per dim of a value; dims with one label run together.
using Labels = std::vector<int>;

struct Term {
  ValueId value;
  Labels labels;
};

// A way to see a value: operands with labelled dims, and dims of 1 whose label is open because
// another operand may stretch them.
struct View {
  std::vector<Term> terms;
  std::map<int, Dim> sizes;
  std::vector<int> open;
  int steps = 0;  // nodes seen through
};

// Letters that an equation can have.
constexpr size_t kMaxLabels = 52;
constexpr size_t kMaxTerms = 16;

// How far to see: through the dots to the left too, through one dot, through the root alone.
enum class Reach { chain, dot, root };

class Labeller {
 public:
  Labeller(const Graph& graph, const std::vector<uint32_t>& uses) : graph_(graph), uses_(uses) {}

  View of(ValueId root, Reach reach, Labels& result) {
    view_ = {};
    reach_ = reach;
    result.clear();
    for (Dim d : graph_.type(root).dims()) result.push_back(fresh(d));
    root_ = root;
    see(root, result, true);
    return std::move(view_);
  }

 private:
  int fresh(Dim size) {
    const int label = static_cast<int>(view_.sizes.size()) + 1;
    view_.sizes.emplace(label, size);
    return label;
  }

  // Walks from the value to the operands of the einsum.
  void see(ValueId v, Labels labels, bool may_be_dot) {
    while (true) {
      const NodeId n = graph_.producer(v);
      const bool inner = v == root_ || (reach_ != Reach::root && uses_[v.index] == 1);
      if (inner && graph_.opcode(n) == Opcode::dot && may_be_dot &&
          view_.terms.size() + 2 <= kMaxTerms) {
        ++view_.steps;
        see_dot(n, labels);
        return;
      }
      if (!inner || !step(n, v, labels)) break;
      ++view_.steps;
    }
    view_.terms.push_back({v, std::move(labels)});
  }

  // To the operand of an op of one operand; false if an einsum has no such op inside.
  bool step(NodeId n, ValueId& v, Labels& labels) {
    const Op op = graph_.op(n);
    if (op.opcode() == Opcode::reshape) return see_squeeze(n, v, labels);
    if (op.opcode() == Opcode::reduce) return op.word("kind") == "sum" && see_sum(n, v, labels);
    if (op.opcode() != Opcode::transpose) return false;
    const Ints& permutation = op.ints("permutation");
    Labels inner(labels.size());
    for (size_t i = 0; i < labels.size(); ++i)
      inner[static_cast<size_t>(permutation[i])] = labels[i];
    labels = std::move(inner);
    v = graph_.operands(n)[0];
    return true;
  }

  bool see_sum(NodeId n, ValueId& v, Labels& labels) {
    const Ints& axes = graph_.op(n).ints("axes");
    v = graph_.operands(n)[0];
    const std::span<const Dim> dims = graph_.type(v).dims();
    Labels inner(dims.size(), 0);
    for (size_t i = 0, next = 0; i < dims.size(); ++i)
      if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) inner[i] = labels[next++];
    // The sum over what a mask left of one axis: a diagonal.
    const NodeId select = graph_.producer(v);
    if (axes.size() == 1 && graph_.opcode(select) == Opcode::select && uses_[v.index] == 1) {
      const NodeId mask = graph_.producer(graph_.operands(select)[0]);
      if (graph_.opcode(mask) == Opcode::broadcast) {
        const Ints& map = graph_.op(mask).ints("map");
        const bool is_pair = map.size() == 2 && (map[0] == axes[0] || map[1] == axes[0]);
        if (is_pair && map[0] != map[1]) {
          const int64_t other = map[0] == axes[0] ? map[1] : map[0];
          inner[static_cast<size_t>(axes[0])] = inner[static_cast<size_t>(other)];
          v = graph_.operands(select)[1];
          labels = std::move(inner);
          return true;
        }
      }
    }
    for (size_t i = 0; i < dims.size(); ++i)
      if (inner[i] == 0) inner[i] = fresh(dims[i]);
    labels = std::move(inner);
    return true;
  }

  // A reshape that drops dims of 1.
  bool see_squeeze(NodeId n, ValueId& v, Labels& labels) {
    const ValueId x = graph_.operands(n)[0];
    const std::span<const Dim> from = graph_.type(x).dims(), to = graph_.type(v).dims();
    if (from.size() <= to.size()) return false;
    Labels inner;
    size_t next = 0;
    for (Dim d : from) {
      // Of neighbouring ones it does not matter which are dropped.
      if (next < to.size() && to[next] == d) {
        inner.push_back(labels[next++]);
      } else if (d.is(1)) {
        inner.push_back(fresh(d));
        view_.open.push_back(inner.back());
      } else {
        return false;
      }
    }
    if (next != to.size()) return false;
    labels = std::move(inner);
    v = x;
    return true;
  }

  void see_dot(NodeId n, const Labels& labels) {
    const Op op = graph_.op(n);
    const ValueId sides[] = {graph_.operands(n)[0], graph_.operands(n)[1]};
    const Ints* batch[] = {&op.ints("lhs_batch"), &op.ints("rhs_batch")};
    const Ints* contract[] = {&op.ints("lhs_contract"), &op.ints("rhs_contract")};
    Labels inner[2], shared;
    size_t next = batch[0]->size();
    for (int64_t axis : *contract[0])
      shared.push_back(fresh(graph_.type(sides[0]).dim(static_cast<int>(axis))));
    for (size_t side = 0; side < 2; ++side) {
      inner[side].assign(static_cast<size_t>(graph_.type(sides[side]).rank()), 0);
      for (size_t i = 0; i < batch[side]->size(); ++i)
        inner[side][static_cast<size_t>((*batch[side])[i])] = labels[i];
      for (size_t i = 0; i < contract[side]->size(); ++i)
        inner[side][static_cast<size_t>((*contract[side])[i])] = shared[i];
      for (int& label : inner[side])
        if (label == 0) label = labels[next++];
    }
    // An einsum works from left to right: dots stand on the left alone.
    see(sides[0], std::move(inner[0]), reach_ == Reach::chain);
    see(sides[1], std::move(inner[1]), false);
  }

  const Graph& graph_;
  const std::vector<uint32_t>& uses_;
  View view_;
  ValueId root_;
  Reach reach_ = Reach::root;
};

class EinsumRaiser {
 public:
  explicit EinsumRaiser(const Graph& graph) : graph_(graph), copy_(graph) {
    form_of_ = forms_.of_graph(graph);
    uses_.resize(graph.value_count());
    for (NodeId n : graph.nodes())
      for (ValueId v : graph.operands(n))
        if (!v.is_none()) ++uses_[v.index];
    // An output is for others, however often it is used.
    for (ValueId v : graph.outputs()) uses_[v.index] += 2;
  }

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      if (HONE_TRY(raised(n))) continue;
      HONE_TRY(copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, raise_einsum))));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  // Whether the node became an einsum.
  Result<bool> raised(NodeId n) {
    const Opcode opcode = graph_.opcode(n);
    if (opcode != Opcode::dot && opcode != Opcode::transpose && opcode != Opcode::reduce)
      return false;
    const ValueId root = graph_.result(n);
    Labeller labeller(graph_, uses_);
    for (Reach reach : {Reach::chain, Reach::dot, Reach::root}) {
      Labels result;
      View view = labeller.of(root, reach, result);
      if (view.steps == 0) return false;
      if (HONE_TRY(tried(n, std::move(view), result))) return true;
    }
    return false;
  }

  // Every dim of 1 that was dropped gets a letter that stretches it. It does not matter which, for
  // its operand has no such dim after that; one that it has already would be a diagonal.
  Result<bool> tried(NodeId n, View view, const Labels& result) {
    for (Term& term : view.terms) {
      for (int& label : term.labels) {
        if (std::ranges::find(view.open, label) == view.open.end()) continue;
        for (auto it = view.sizes.rbegin(); it != view.sizes.rend(); ++it) {
          const auto [other, size] = *it;
          if (size.is(1) || std::ranges::find(term.labels, other) != term.labels.end()) continue;
          label = other;
          break;
        }
      }
    }
    return proposed(n, view, result);
  }

  Result<bool> proposed(NodeId n, const View& view, const Labels& result) {
    std::map<int, char> letters;
    std::string equation;
    auto spell = [&](const Labels& labels) {
      for (int label : labels) {
        const size_t next = letters.size();
        const char letter = static_cast<char>(next < 26 ? 'a' + next : 'A' + (next - 26));
        equation += letters.emplace(label, letter).first->second;
      }
    };
    std::vector<Form> operands;
    std::vector<ValueId> values;
    for (const Term& term : view.terms) {
      if (!operands.empty()) equation += ',';
      spell(term.labels);
      operands.push_back(form_of_[term.value.index]);
      values.push_back(copy_(term.value));
    }
    equation += "->";
    const size_t known = letters.size();
    spell(result);
    if (letters.size() != known || known > kMaxLabels) return false;
    const Op op = Op::get(Opcode::einsum, {{"equation", equation}});
    const std::vector<Form> forms = forms_.of_composite(op, operands);
    const ValueId root = graph_.result(n);
    if (forms.empty() || forms[0] != form_of_[root.index]) return false;
    const NodeId made = HONE_TRY(copy_.target().append(op, values));
    copy_.replace(root, copy_.target().result(made));
    return true;
  }

  const Graph& graph_;
  GraphCopy copy_;
  NormalForms forms_;
  std::vector<Form> form_of_;   // per value
  std::vector<uint32_t> uses_;  // per value
};

}  // namespace

Result<Graph> raise_einsum(const Graph& graph) { return EinsumRaiser(graph).run(); }

}  // namespace hone
