#include <algorithm>
#include <bit>
#include <deque>

#include "assign/core.h"
#include "assign/core_times.h"

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

// The usages of a node's options in a stretch of time.
struct Piece {
  CoreSpan span;
  std::vector<int64_t> usages;
};

struct WorkNode {
  std::vector<uint32_t> origins;
  std::vector<int64_t> costs;
  std::vector<Piece> pieces;
  std::vector<uint32_t> edges;
  bool is_gone = false;

  size_t options() const { return costs.size(); }
};

class Reducer {
 public:
  Reducer(const AssignProblem& problem, const CoreOptions& options)
      : problem_(problem), options_(options) {}

  Result<Core> run() {
    times_ = HONE_TRY(core_times(problem_));
    core_.are_usages_exact = times_.usage_shift == 0;
    make_nodes();
    HONE_TRY(make_edges());
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].options() == 0) return no_option(i);
    HONE_TRY(settle());
    while (options_.reduce) {
      const size_t before = changes_;
      remove_dominated();
      HONE_TRY(settle());
      remove_free();
      HONE_TRY(settle());
      if (changes_ == before) break;
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (!nodes_[i].is_gone && nodes_[i].options() == 1) fix(i);
    return finish();
  }

 private:
  static bool is_never(int64_t cost) { return cost >= kNeverCost; }
  static int64_t sum(int64_t a, int64_t b) {
    return is_never(a) || is_never(b) ? kNeverCost : a + b;
  }

  Error no_option(uint32_t node) const {
    return check_failed(
        "node {}: each of its {} options is forbidden, alone or beside what other "
        "nodes may take",
        node, problem_.options(node));
  }

  // ---- From the problem
  // --------------------------------------------------------------------------

  // The shift by which all costs together fit.
  int shift_for_costs() const {
    Int128 sum = 0;
    const auto add_largest = [&](const std::vector<int64_t>& costs) {
      int64_t largest = 0;
      for (int64_t cost : costs)
        if (cost < kForbiddenCost) largest = std::max(largest, cost);
      return largest;
    };
    for (const AssignNode& node : problem_.nodes) sum += add_largest(node.costs);
    std::vector<int64_t> of_tables;
    for (const std::vector<int64_t>& table : problem_.tables)
      of_tables.push_back(add_largest(table));
    for (const AssignEdge& edge : problem_.edges) sum += of_tables[edge.table];
    int shift = 0;
    while ((sum >> shift) >= kNeverCost / 8) ++shift;
    return shift;
  }

  int64_t scaled(int64_t cost) const {
    return cost >= kForbiddenCost ? kNeverCost : cost >> core_.cost_shift;
  }

  void make_nodes() {
    core_.cost_shift = shift_for_costs();
    nodes_.resize(problem_.nodes.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const AssignNode& from = problem_.nodes[i];
      const CoreSpan span = times_.spans[i];
      WorkNode& node = nodes_[i];
      for (uint32_t option = 0; option < from.costs.size(); ++option) {
        const int64_t cost = scaled(from.costs[option]);
        if (is_never(cost)) continue;
        if (from.is_ever_alive() && from.usages[option] > problem_.limit()) continue;
        node.origins.push_back(option);
        node.costs.push_back(cost);
      }
      if (span.from == span.to || node.options() == 0) continue;
      Piece piece = {span, {}};
      for (uint32_t option : node.origins)
        piece.usages.push_back(times_.scaled(from.usages[option]));
      add_piece(node, std::move(piece));
    }
  }

  // The usage that all options share is taken from the slack.
  void add_piece(WorkNode& node, Piece piece) {
    const int64_t least = std::ranges::min(piece.usages);
    if (least > 0) {
      times_.use(piece.span, least);
      for (int64_t& usage : piece.usages) usage -= least;
    }
    if (std::ranges::max(piece.usages) > 0) node.pieces.push_back(std::move(piece));
  }

  Status make_edges() {
    for (const AssignEdge& from : problem_.edges) {
      const WorkNode &first = nodes_[from.first], &second = nodes_[from.second];
      const size_t columns = problem_.options(from.second);
      std::vector<int64_t> costs;
      costs.reserve(first.options() * second.options());
      for (uint32_t row : first.origins)
        for (uint32_t column : second.origins)
          costs.push_back(scaled(problem_.tables[from.table][row * columns + column]));
      join(from.first, from.second, std::move(costs));
    }
    return {};
  }

  // ---- Edges
  // -------------------------------------------------------------------------------------

  CoreEdge* edge_between(uint32_t a, uint32_t b) {
    if (nodes_[a].edges.size() > nodes_[b].edges.size()) std::swap(a, b);
    for (uint32_t edge : nodes_[a].edges)
      if (edges_[edge].other(a) == b) return &edges_[edge];
    return nullptr;
  }

  // Adds costs of pairs of options: a row for each option of a.
  void join(uint32_t a, uint32_t b, std::vector<int64_t> costs) {
    if (CoreEdge* edge = edge_between(a, b)) {
      const size_t rows = nodes_[a].options(), columns = nodes_[b].options();
      for (size_t x = 0; x < rows; ++x)
        for (size_t y = 0; y < columns; ++y) {
          int64_t& to = edge->costs[edge->first == a ? x * columns + y : y * rows + x];
          to = sum(to, costs[x * columns + y]);
        }
      enqueue(static_cast<uint32_t>(edge - edges_.data()));
      return;
    }
    const auto index = static_cast<uint32_t>(edges_.size());
    edges_.push_back({a, b, std::move(costs)});
    queued_.push_back(false);
    nodes_[a].edges.push_back(index);
    nodes_[b].edges.push_back(index);
    enqueue(index);
  }

  void drop_edge(uint32_t index) {
    CoreEdge& edge = edges_[index];
    for (uint32_t node : {edge.first, edge.second}) std::erase(nodes_[node].edges, index);
    edge.costs = {};
  }

  void enqueue(uint32_t edge) {
    if (queued_[edge]) return;
    queued_[edge] = true;
    queue_.push_back(edge);
  }

  // The costs of an edge with a row for each option of this one of its nodes.
  std::vector<int64_t> rows_of(const CoreEdge& edge, uint32_t node) const {
    if (edge.first == node) return edge.costs;
    const size_t rows = nodes_[node].options(), columns = nodes_[edge.first].options();
    std::vector<int64_t> costs(edge.costs.size());
    for (size_t x = 0; x < rows; ++x)
      for (size_t y = 0; y < columns; ++y) costs[x * columns + y] = edge.costs[y * rows + x];
    return costs;
  }

  // ---- Options
  // -----------------------------------------------------------------------------------

  // Leaves out options; those of which `keep` is true stay.
  void prune(uint32_t index, const std::vector<bool>& keep) {
    ++changes_;
    WorkNode& node = nodes_[index];
    const size_t options = node.options();
    const auto compact = [&](auto& values) {
      size_t to = 0;
      for (size_t i = 0; i < options; ++i)
        if (keep[i]) values[to++] = values[i];
      values.resize(to);
    };
    for (uint32_t e : node.edges) {
      CoreEdge& edge = edges_[e];
      const bool is_row = edge.first == index;
      const size_t other = nodes_[edge.other(index)].options();
      size_t to = 0;
      for (size_t i = 0; i < edge.costs.size(); ++i)
        if (keep[is_row ? i / other : i % options]) edge.costs[to++] = edge.costs[i];
      edge.costs.resize(to);
      enqueue(e);
    }
    compact(node.costs);
    compact(node.origins);
    std::vector<Piece> pieces = std::move(node.pieces);
    node.pieces.clear();
    if (node.options() == 0) return;
    for (Piece& piece : pieces) {
      compact(piece.usages);
      add_piece(node, std::move(piece));
    }
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
      prune(node, *keep);
      if (nodes_[node].options() == 0) return no_option(node);
    }
    return {};
  }

  // ---- Simplification of edges
  // -------------------------------------------------------------------

  Status settle() {
    while (!queue_.empty()) {
      const uint32_t index = queue_.front();
      queue_.pop_front();
      queued_[index] = false;
      if (edges_[index].costs.empty()) continue;
      HONE_TRY(make_consistent(edges_[index]));
      if (options_.reduce) simplify(index);
    }
    return {};
  }

  void simplify(uint32_t index) {
    if (move_into_nodes(index)) return;
    const CoreEdge& edge = edges_[index];
    const uint32_t a = edge.first, b = edge.second;
    const bool b_follows = is_function(rows_of(edge, a), nodes_[b].options());
    const bool a_follows = is_function(rows_of(edge, b), nodes_[a].options());
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
    WorkNode &first = nodes_[edge.first], &second = nodes_[edge.second];
    const size_t columns = second.options();
    const int64_t corner = edge.costs[0];
    if (is_never(corner)) return false;
    for (size_t i = 0; i < edge.costs.size(); ++i) {
      const int64_t u = edge.costs[i / columns * columns], v = edge.costs[i % columns];
      if (is_never(edge.costs[i]) || edge.costs[i] != u + v - corner) return false;
    }
    for (size_t x = 0; x < first.options(); ++x) first.costs[x] += edge.costs[x * columns];
    for (size_t y = 0; y < columns; ++y) second.costs[y] += edge.costs[y] - corner;
    drop_edge(index);
    ++changes_;
    return true;
  }

  // b is a function of a: it joins a.
  void merge(uint32_t index, uint32_t a, uint32_t b) {
    ++changes_;
    const std::vector<int64_t> costs = rows_of(edges_[index], a);
    const size_t columns = nodes_[b].options();
    std::vector<uint32_t> option_of(nodes_[a].options());
    for (size_t x = 0; x < option_of.size(); ++x) {
      while (is_never(costs[x * columns + option_of[x]])) ++option_of[x];
      nodes_[a].costs[x] += nodes_[b].costs[option_of[x]] + costs[x * columns + option_of[x]];
    }
    derive(b, a, option_of);
    drop_edge(index);
    WorkNode gone = std::move(nodes_[b]);
    nodes_[b] = {};
    nodes_[b].is_gone = true;
    for (Piece& piece : gone.pieces) {
      Piece of_a = {piece.span, {}};
      for (uint32_t option : option_of) of_a.usages.push_back(piece.usages[option]);
      add_piece(nodes_[a], std::move(of_a));
    }
    nodes_[b].costs = gone.costs;  // rows_of asks for their number
    for (uint32_t e : gone.edges) {
      const uint32_t c = edges_[e].other(b);
      const std::vector<int64_t> rows = rows_of(edges_[e], b);
      const size_t others = nodes_[c].options();
      std::vector<int64_t> of_a;
      of_a.reserve(option_of.size() * others);
      for (uint32_t option : option_of)
        of_a.insert(of_a.end(), rows.begin() + static_cast<ptrdiff_t>(option * others),
                    rows.begin() + static_cast<ptrdiff_t>((option + 1) * others));
      std::erase(nodes_[c].edges, e);
      edges_[e].costs = {};
      join(a, c, std::move(of_a));
    }
    nodes_[b].costs = {};
  }

  // Writes down that the option of b follows from that of a.
  void derive(uint32_t b, uint32_t a, const std::vector<uint32_t>& option_of) {
    CoreDerived derived = {b, a, CoreDerived::kNone, std::vector<uint32_t>(problem_.options(a))};
    for (size_t x = 0; x < option_of.size(); ++x)
      derived.choice[nodes_[a].origins[x]] = nodes_[b].origins[option_of[x]];
    core_.derived.push_back(std::move(derived));
  }

  // ---- Nodes
  // -------------------------------------------------------------------------------------

  // A node with one option goes.
  void fix(uint32_t index) {
    WorkNode& node = nodes_[index];
    core_.constant += node.costs[0];
    core_.derived.push_back({index, CoreDerived::kNone, CoreDerived::kNone, {node.origins[0]}});
    node.is_gone = true;
    for (uint32_t e : std::vector(node.edges)) {
      const CoreEdge& edge = edges_[e];
      WorkNode& other = nodes_[edge.other(index)];
      for (size_t y = 0; y < other.options(); ++y) other.costs[y] += edge.costs[y];
      drop_edge(e);
    }
  }

  // Nodes whose usage does not depend on their option, with at most two neighbours.
  void remove_free() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const WorkNode& node = nodes_[i];
      if (node.is_gone || !node.pieces.empty()) continue;
      if (node.options() == 1) {
        ++changes_;
        fix(i);
      } else if (node.edges.size() <= 1) {
        remove_leaf(i);
      } else if (node.edges.size() == 2) {
        remove_between(i);
      }
    }
  }

  // The best option of a node beside others that cost this much.
  static std::pair<int64_t, size_t> best_of(const WorkNode& node, const int64_t* a,
                                            const int64_t* b) {
    std::pair<int64_t, size_t> best = {kNeverCost, 0};
    for (size_t z = 0; z < node.options(); ++z) {
      const int64_t cost =
          sum(sum(node.costs[z], a == nullptr ? 0 : a[z]), b == nullptr ? 0 : b[z]);
      if (cost < best.first) best = {cost, z};
    }
    return best;
  }

  void remove_leaf(uint32_t index) {
    ++changes_;
    WorkNode& node = nodes_[index];
    node.is_gone = true;
    if (node.edges.empty()) {
      const auto [cost, z] = best_of(node, nullptr, nullptr);
      core_.constant += cost;
      core_.derived.push_back({index, CoreDerived::kNone, CoreDerived::kNone, {node.origins[z]}});
      return;
    }
    const uint32_t e = node.edges[0], a = edges_[e].other(index);
    const std::vector<int64_t> rows = rows_of(edges_[e], a);
    std::vector<uint32_t> option_of;
    for (size_t x = 0; x < nodes_[a].options(); ++x) {
      const auto [cost, z] = best_of(node, rows.data() + x * node.options(), nullptr);
      nodes_[a].costs[x] += cost;
      option_of.push_back(static_cast<uint32_t>(z));
    }
    derive(index, a, option_of);
    drop_edge(e);
  }

  void remove_between(uint32_t index) {
    WorkNode& node = nodes_[index];
    const uint32_t to_a = node.edges[0], to_b = node.edges[1];
    const uint32_t a = edges_[to_a].other(index), b = edges_[to_b].other(index);
    const size_t rows = nodes_[a].options(), columns = nodes_[b].options();
    if (rows * columns > kMaxMadeTable) return;
    ++changes_;
    node.is_gone = true;
    const std::vector<int64_t> of_a = rows_of(edges_[to_a], a), of_b = rows_of(edges_[to_b], b);
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
    core_.derived.push_back(std::move(derived));
    drop_edge(to_a);
    drop_edge(to_b);
    join(a, b, std::move(costs));
  }

  // Leaves out each option that another one of the node is never worse than.
  void remove_dominated() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const WorkNode& node = nodes_[i];
      if (node.is_gone || node.options() > kMaxComparedOptions) continue;
      std::vector<std::vector<int64_t>> rows;
      for (uint32_t e : node.edges) rows.push_back(rows_of(edges_[e], i));
      std::vector<bool> keep(node.options(), true);
      bool is_smaller = false;
      for (size_t x = 0; x < node.options(); ++x)
        for (size_t y = 0; y < node.options() && keep[x]; ++y)
          if (x != y && keep[y] && is_never_worse(node, rows, y, x)) {
            keep[x] = false;
            is_smaller = true;
          }
      if (is_smaller) prune(i, keep);
    }
  }

  // True if option y may take the place of x in every solution.
  static bool is_never_worse(const WorkNode& node, const std::vector<std::vector<int64_t>>& rows,
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
                               [&](const Piece& p) { return p.usages[y] <= p.usages[x]; });
  }

  // ---- To the core
  // -------------------------------------------------------------------------------

  Result<Core> finish() {
    std::vector<uint32_t> index_of(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      WorkNode& node = nodes_[i];
      if (node.is_gone) continue;
      index_of[i] = static_cast<uint32_t>(core_.nodes.size());
      CoreNode made = {i, std::move(node.origins), std::move(node.costs), {}, {}, {}};
      add_spans(node.pieces, made);
      core_.nodes.push_back(std::move(made));
    }
    for (CoreEdge& edge : edges_) {
      if (edge.costs.empty()) continue;
      edge.first = index_of[edge.first];
      edge.second = index_of[edge.second];
      const auto index = static_cast<uint32_t>(core_.edges.size());
      core_.nodes[edge.first].edges.push_back(index);
      core_.nodes[edge.second].edges.push_back(index);
      core_.edges.push_back(std::move(edge));
    }
    core_.slack = std::move(times_.slack);
    core_.moments = std::move(times_.moments);
    std::ranges::reverse(core_.derived);
    if (const auto least = std::ranges::min_element(core_.slack);
        least != core_.slack.end() && *least < 0 && core_.are_usages_exact)
      return check_failed(
          "at moment {} the nodes alive use at least {} above the limit {}, "
          "whatever allowed options they take",
          core_.moments[static_cast<size_t>(least - core_.slack.begin())], -*least,
          problem_.limit());
    drop_idle_times(core_);
    return std::move(core_);
  }

  // Cuts the pieces at each other's ends.
  static void add_spans(const std::vector<Piece>& pieces, CoreNode& node) {
    std::vector<uint32_t> cuts;
    for (const Piece& piece : pieces) {
      cuts.push_back(piece.span.from);
      cuts.push_back(piece.span.to);
    }
    std::ranges::sort(cuts);
    cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
    if (cuts.empty()) return;
    const size_t options = node.options();
    // Changes at each cut, then their running sums.
    std::vector<int64_t> sums(cuts.size() * options);
    for (const Piece& piece : pieces) {
      const auto row = [&](uint32_t cut) {
        return sums.data() +
               static_cast<size_t>(std::ranges::lower_bound(cuts, cut) - cuts.begin()) * options;
      };
      int64_t *from = row(piece.span.from), *to = row(piece.span.to);
      for (size_t x = 0; x < options; ++x) {
        from[x] += piece.usages[x];
        to[x] -= piece.usages[x];
      }
    }
    for (size_t i = options; i < sums.size(); ++i) sums[i] += sums[i - options];
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const auto row = sums.begin() + static_cast<ptrdiff_t>(i * options);
      if (std::all_of(row, row + static_cast<ptrdiff_t>(options),
                      [&](int64_t u) { return u == *row; }) &&
          *row == 0)
        continue;
      node.spans.push_back({cuts[i], cuts[i + 1]});
      node.usages.insert(node.usages.end(), row, row + static_cast<ptrdiff_t>(options));
    }
  }

  const AssignProblem& problem_;
  const CoreOptions options_;
  CoreTimes times_;
  Core core_;
  std::vector<WorkNode> nodes_;
  std::vector<CoreEdge> edges_;  // those without costs are gone
  std::deque<uint32_t> queue_;
  std::vector<bool> queued_;
  size_t changes_ = 0;
};

}  // namespace

Result<Core> reduce(const AssignProblem& problem, const CoreOptions& options) {
  return Reducer(problem, options).run();
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
