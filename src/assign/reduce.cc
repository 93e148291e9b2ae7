#include <algorithm>

#include "assign/core_draft.h"

// Reductions, until none applies:
//   * an option that no option of a neighbour allows is left out;
//   * a node with one option becomes a constant;
//   * costs of an edge that are a sum u(a) + v(b) move into its nodes;
//   * if each option of a allows one option of b alone, b is a function of a and joins it;
//   * an option is left out if another one is never worse;
//   * a node that uses the same whatever it takes goes if it has at most two neighbours: for each
//     pair of their options it takes the best.

namespace hone {
namespace {

constexpr size_t kMaxMadeTable = size_t{1} << 16;  // costs of an edge that takes a node's place
constexpr size_t kMaxComparedOptions = 256;        // of a node whose options are compared

class Reducer {
 public:
  Reducer(const AssignProblem& problem, const CoreOptions& options, CoreDraft& draft)
      : problem_(problem), options_(options), draft_(draft) {}

  Result<Core> run() {
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].options() == 0) return no_option(i);
    HONE_TRY(settle());
    while (options_.reduce) {
      const size_t before = draft_.changes;
      remove_dominated();
      HONE_TRY(settle());
      remove_free();
      HONE_TRY(settle());
      if (draft_.changes == before) break;
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].is_gone && nodes_[i].options() == 1) fix(i);
    return draft_.finish();
  }

 private:
  Error no_option(uint32_t node) const {
    return check_failed(
        "node {}: each of its {} options is forbidden, alone or beside what other "
        "nodes may take",
        node, problem_.options(node));
  }

  // Leaves out options of both nodes that no option of the other allows.
  Status make_consistent(const CoreEdge& edge) {
    const size_t rows = nodes_[edge.first].options(), columns = nodes_[edge.second].options();
    std::vector<bool> row(rows), column(columns);
    for (size_t i = 0; i < edge.costs.size(); ++i)
      if (!is_never(edge.costs[i])) row[i / columns] = column[i % columns] = true;
    const uint32_t first = edge.first, second = edge.second;
    for (const auto& [node, keep] : {std::pair{first, &row}, std::pair{second, &column}}) {
      if (std::ranges::find(*keep, false) == keep->end()) continue;
      draft_.prune(node, *keep);
      if (nodes_[node].options() == 0) return no_option(node);
    }
    return {};
  }

  // ---- Edges -----------------------------------------------------------------------------------

  Status settle() {
    while (const std::optional<uint32_t> index = draft_.next_changed()) {
      if (edges_[*index].costs.empty()) continue;
      HONE_TRY(make_consistent(edges_[*index]));
      if (options_.reduce) simplify(*index);
    }
    return {};
  }

  void simplify(uint32_t index) {
    if (move_into_nodes(index)) return;
    const CoreEdge& edge = edges_[index];
    const uint32_t a = edge.first, b = edge.second;
    const bool b_follows = is_function(draft_.rows_of(edge, a), nodes_[b].options());
    const bool a_follows = is_function(draft_.rows_of(edge, b), nodes_[a].options());
    if (!a_follows && !b_follows) return;
    // Where both follow, the one with fewer edges goes.
    const bool b_goes =
        a_follows && b_follows ? nodes_[b].edges.size() <= nodes_[a].edges.size() : b_follows;
    if (b_goes)
      merge(index, a, b);
    else
      merge(index, b, a);
  }

  // True if each row has one cost that is not forbidden.
  static bool is_function(const std::vector<int64_t>& costs, size_t columns) {
    for (size_t at = 0; at < costs.size(); at += columns) {
      size_t allowed = 0;
      for (size_t y = 0; y < columns; ++y) allowed += is_never(costs[at + y]) ? 0 : 1;
      if (allowed != 1) return false;
    }
    return true;
  }

  // Drops an edge whose costs are u(first) + v(second).
  bool move_into_nodes(uint32_t index) {
    const CoreEdge& edge = edges_[index];
    DraftNode &first = nodes_[edge.first], &second = nodes_[edge.second];
    const size_t columns = second.options();
    const int64_t corner = edge.costs[0];
    if (is_never(corner)) return false;
    for (size_t i = 0; i < edge.costs.size(); ++i) {
      const int64_t u = edge.costs[i / columns * columns], v = edge.costs[i % columns];
      if (is_never(edge.costs[i]) || edge.costs[i] != u + v - corner) return false;
    }
    for (size_t x = 0; x < first.options(); ++x) first.costs[x] += edge.costs[x * columns];
    for (size_t y = 0; y < columns; ++y) second.costs[y] += edge.costs[y] - corner;
    draft_.drop_edge(index);
    ++draft_.changes;
    return true;
  }

  // b is a function of a: it joins a.
  void merge(uint32_t index, uint32_t a, uint32_t b) {
    ++draft_.changes;
    const std::vector<int64_t> costs = draft_.rows_of(edges_[index], a);
    const size_t columns = nodes_[b].options();
    std::vector<uint32_t> option_of(nodes_[a].options());
    for (size_t x = 0; x < option_of.size(); ++x) {
      while (is_never(costs[x * columns + option_of[x]])) ++option_of[x];
      nodes_[a].costs[x] += nodes_[b].costs[option_of[x]] + costs[x * columns + option_of[x]];
    }
    draft_.derive(b, a, option_of);
    draft_.drop_edge(index);
    DraftNode gone = std::move(nodes_[b]);
    nodes_[b] = {};
    nodes_[b].is_gone = true;
    for (DraftPiece& piece : gone.pieces) {
      DraftPiece of_a = {piece.span, {}};
      for (uint32_t option : option_of) of_a.usages.push_back(piece.usages[option]);
      draft_.add_piece(nodes_[a], std::move(of_a));
    }
    nodes_[b].costs = gone.costs;  // rows_of asks for their number
    for (uint32_t e : gone.edges) {
      const uint32_t c = edges_[e].other(b);
      const std::vector<int64_t> rows = draft_.rows_of(edges_[e], b);
      const size_t others = nodes_[c].options();
      std::vector<int64_t> of_a;
      of_a.reserve(option_of.size() * others);
      for (uint32_t option : option_of)
        of_a.insert(of_a.end(), rows.begin() + static_cast<ptrdiff_t>(option * others),
                    rows.begin() + static_cast<ptrdiff_t>((option + 1) * others));
      std::erase(nodes_[c].edges, e);
      edges_[e].costs = {};
      draft_.join(a, c, std::move(of_a));
    }
    nodes_[b].costs = {};
  }

  // ---- Nodes -----------------------------------------------------------------------------------

  // A node with one option goes.
  void fix(uint32_t index) {
    DraftNode& node = nodes_[index];
    draft_.settle_on(index, 0, node.costs[0]);
    node.is_gone = true;
    for (uint32_t e : std::vector(node.edges)) {
      const CoreEdge& edge = edges_[e];
      DraftNode& other = nodes_[edge.other(index)];
      for (size_t y = 0; y < other.options(); ++y) other.costs[y] += edge.costs[y];
      draft_.drop_edge(e);
    }
  }

  // Nodes whose usage does not depend on their option, with at most two neighbours.
  void remove_free() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const DraftNode& node = nodes_[i];
      if (node.is_gone || !node.pieces.empty()) continue;
      if (node.options() == 1) {
        ++draft_.changes;
        fix(i);
      } else if (node.edges.size() <= 1) {
        remove_leaf(i);
      } else if (node.edges.size() == 2) {
        remove_between(i);
      }
    }
  }

  // The best option of a node beside others that cost this much.
  static std::pair<int64_t, size_t> best_of(const DraftNode& node, const int64_t* a,
                                            const int64_t* b) {
    std::pair<int64_t, size_t> best = {kNeverCost, 0};
    for (size_t z = 0; z < node.options(); ++z) {
      const int64_t cost = cost_of_both(cost_of_both(node.costs[z], a == nullptr ? 0 : a[z]),
                                        b == nullptr ? 0 : b[z]);
      if (cost < best.first) best = {cost, z};
    }
    return best;
  }

  void remove_leaf(uint32_t index) {
    ++draft_.changes;
    DraftNode& node = nodes_[index];
    node.is_gone = true;
    if (node.edges.empty()) {
      const auto [cost, z] = best_of(node, nullptr, nullptr);
      draft_.settle_on(index, z, cost);
      return;
    }
    const uint32_t e = node.edges[0], a = edges_[e].other(index);
    const std::vector<int64_t> rows = draft_.rows_of(edges_[e], a);
    std::vector<uint32_t> option_of;
    for (size_t x = 0; x < nodes_[a].options(); ++x) {
      const auto [cost, z] = best_of(node, rows.data() + x * node.options(), nullptr);
      nodes_[a].costs[x] += cost;
      option_of.push_back(static_cast<uint32_t>(z));
    }
    draft_.derive(index, a, option_of);
    draft_.drop_edge(e);
  }

  void remove_between(uint32_t index) {
    DraftNode& node = nodes_[index];
    const uint32_t to_a = node.edges[0], to_b = node.edges[1];
    const uint32_t a = edges_[to_a].other(index), b = edges_[to_b].other(index);
    const size_t rows = nodes_[a].options(), columns = nodes_[b].options();
    if (rows * columns > kMaxMadeTable) return;
    ++draft_.changes;
    node.is_gone = true;
    const std::vector<int64_t> of_a = draft_.rows_of(edges_[to_a], a),
                               of_b = draft_.rows_of(edges_[to_b], b);
    CoreDerived derived = {index, a, b, {}};
    const size_t width = problem_.options(b), own = node.options();
    derived.choice.resize(problem_.options(a) * width);
    std::vector<int64_t> costs(rows * columns);
    for (size_t x = 0; x < rows; ++x)
      for (size_t y = 0; y < columns; ++y) {
        const auto [cost, z] = best_of(node, of_a.data() + x * own, of_b.data() + y * own);
        costs[x * columns + y] = cost;
        derived.choice[nodes_[a].origins[x] * width + nodes_[b].origins[y]] = node.origins[z];
      }
    draft_.derive(std::move(derived));
    draft_.drop_edge(to_a);
    draft_.drop_edge(to_b);
    draft_.join(a, b, std::move(costs));
  }

  // Leaves out each option that another one of the node is never worse than.
  void remove_dominated() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const DraftNode& node = nodes_[i];
      if (node.is_gone || node.options() > kMaxComparedOptions) continue;
      std::vector<std::vector<int64_t>> rows;
      for (uint32_t e : node.edges) rows.push_back(draft_.rows_of(edges_[e], i));
      std::vector<bool> keep(node.options(), true);
      bool is_smaller = false;
      for (size_t x = 0; x < node.options(); ++x)
        for (size_t y = 0; y < node.options() && keep[x]; ++y)
          if (x != y && keep[y] && is_never_worse(node, rows, y, x)) {
            keep[x] = false;
            is_smaller = true;
          }
      if (is_smaller) draft_.prune(i, keep);
    }
  }

  // True if option y may take the place of x in every solution.
  static bool is_never_worse(const DraftNode& node, const std::vector<std::vector<int64_t>>& rows,
                             size_t y, size_t x) {
    int64_t more = node.costs[y] - node.costs[x];
    for (const std::vector<int64_t>& costs : rows) {
      const size_t others = costs.size() / node.options();
      const int64_t *of_y = costs.data() + y * others, *of_x = costs.data() + x * others;
      int64_t most = -kNeverCost;
      for (size_t z = 0; z < others; ++z) {
        if (is_never(of_x[z])) continue;
        if (is_never(of_y[z])) return false;
        most = std::max(most, of_y[z] - of_x[z]);
      }
      more += most;
    }
    if (more > 0) return false;
    return std::ranges::all_of(node.pieces,
                               [&](const DraftPiece& p) { return p.usages[y] <= p.usages[x]; });
  }

  const AssignProblem& problem_;
  const CoreOptions options_;
  CoreDraft& draft_;
  std::vector<DraftNode>& nodes_ = draft_.nodes;
  std::vector<CoreEdge>& edges_ = draft_.edges;
};

}  // namespace

Result<Core> reduce(const AssignProblem& problem, const CoreOptions& options) {
  CoreDraft draft = HONE_TRY(CoreDraft::of(problem));
  return Reducer(problem, options, draft).run();
}

Assignment restore(const AssignProblem& problem, const Core& core,
                   const std::vector<uint32_t>& options) {
  Assignment assignment(problem.nodes.size());
  for (size_t i = 0; i < options.size(); ++i)
    assignment[core.nodes[i].origin] = core.nodes[i].origins[options[i]];
  for (const CoreDerived& derived : core.derived) {
    size_t at = 0;
    if (derived.first != CoreDerived::kNone) at = assignment[derived.first];
    if (derived.second != CoreDerived::kNone)
      at = at * problem.options(derived.second) + assignment[derived.second];
    assignment[derived.node] = derived.choice[at];
  }
  return assignment;
}

std::vector<std::optional<uint32_t>> project(const Core& core, const Assignment& assignment) {
  std::vector<std::optional<uint32_t>> options;
  for (const CoreNode& node : core.nodes) {
    const auto at = std::ranges::find(node.origins, assignment[node.origin]);
    options.push_back(at == node.origins.end()
                          ? std::nullopt
                          : std::optional(static_cast<uint32_t>(at - node.origins.begin())));
  }
  return options;
}

}  // namespace hone
