#include "assign/core_draft.h"

#include <algorithm>

namespace hone {

Result<CoreDraft> CoreDraft::of(const AssignProblem& problem) {
  CoreDraft draft(problem);
  draft.times_ = HONE_TRY(core_times(problem));
  draft.core_.are_usages_exact = draft.times_.usage_shift == 0;
  draft.make_nodes();
  draft.make_edges();
  return draft;
}

// ---- From the problem ---------------------------------------------------------------------------

// The shift by which all costs together fit.
int CoreDraft::shift_for_costs() const {
  Int128 sum = 0;
  const auto add_largest = [&](const std::vector<int64_t>& costs) {
    int64_t largest = 0;
    for (int64_t cost : costs)
      if (cost < kForbiddenCost) largest = std::max(largest, cost);
    return largest;
  };
  for (const AssignNode& node : problem_->nodes) sum += add_largest(node.costs);
  std::vector<int64_t> of_tables;
  for (const std::vector<int64_t>& table : problem_->tables)
    of_tables.push_back(add_largest(table));
  for (const AssignEdge& edge : problem_->edges) sum += of_tables[edge.table];
  int shift = 0;
  while ((sum >> shift) >= kNeverCost / 8) ++shift;
  return shift;
}

int64_t CoreDraft::scaled(int64_t cost) const {
  return cost >= kForbiddenCost ? kNeverCost : cost >> core_.cost_shift;
}

void CoreDraft::make_nodes() {
  core_.cost_shift = shift_for_costs();
  nodes.resize(problem_->nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const AssignNode& from = problem_->nodes[i];
    const CoreSpan span = times_.spans[i];
    DraftNode& node = nodes[i];
    for (uint32_t option = 0; option < from.costs.size(); ++option) {
      const int64_t cost = scaled(from.costs[option]);
      if (is_never(cost)) continue;
      if (from.is_ever_alive() && from.usages[option] > problem_->limit()) continue;
      node.origins.push_back(option);
      node.costs.push_back(cost);
    }
    if (span.from == span.to || node.options() == 0) continue;
    DraftPiece piece = {span, {}};
    for (uint32_t option : node.origins) piece.usages.push_back(times_.scaled(from.usages[option]));
    add_piece(node, std::move(piece));
  }
}

// The usage that all options share is taken from the slack.
void CoreDraft::add_piece(DraftNode& node, DraftPiece piece) {
  const int64_t least = std::ranges::min(piece.usages);
  if (least > 0) {
    times_.use(piece.span, least);
    for (int64_t& usage : piece.usages) usage -= least;
  }
  if (std::ranges::max(piece.usages) > 0) node.pieces.push_back(std::move(piece));
}

void CoreDraft::make_edges() {
  for (const AssignEdge& from : problem_->edges) {
    const DraftNode &first = nodes[from.first], &second = nodes[from.second];
    const size_t columns = problem_->options(from.second);
    std::vector<int64_t> costs;
    costs.reserve(first.options() * second.options());
    for (uint32_t row : first.origins)
      for (uint32_t column : second.origins)
        costs.push_back(scaled(problem_->tables[from.table][row * columns + column]));
    join(from.first, from.second, std::move(costs));
  }
}

// ---- Edges --------------------------------------------------------------------------------------

CoreEdge* CoreDraft::edge_between(uint32_t a, uint32_t b) {
  if (nodes[a].edges.size() > nodes[b].edges.size()) std::swap(a, b);
  for (uint32_t edge : nodes[a].edges)
    if (edges[edge].other(a) == b) return &edges[edge];
  return nullptr;
}

void CoreDraft::join(uint32_t a, uint32_t b, std::vector<int64_t> costs) {
  if (CoreEdge* edge = edge_between(a, b)) {
    const size_t rows = nodes[a].options(), columns = nodes[b].options();
    for (size_t x = 0; x < rows; ++x)
      for (size_t y = 0; y < columns; ++y) {
        int64_t& to = edge->costs[edge->first == a ? x * columns + y : y * rows + x];
        to = cost_of_both(to, costs[x * columns + y]);
      }
    enqueue(static_cast<uint32_t>(edge - edges.data()));
    return;
  }
  const auto index = static_cast<uint32_t>(edges.size());
  edges.push_back({a, b, std::move(costs)});
  queued_.push_back(false);
  nodes[a].edges.push_back(index);
  nodes[b].edges.push_back(index);
  enqueue(index);
}

void CoreDraft::drop_edge(uint32_t index) {
  CoreEdge& edge = edges[index];
  for (uint32_t node : {edge.first, edge.second}) std::erase(nodes[node].edges, index);
  edge.costs = {};
}

void CoreDraft::enqueue(uint32_t edge) {
  if (queued_[edge]) return;
  queued_[edge] = true;
  queue_.push_back(edge);
}

std::vector<int64_t> CoreDraft::rows_of(const CoreEdge& edge, uint32_t node) const {
  if (edge.first == node) return edge.costs;
  const size_t rows = nodes[node].options(), columns = nodes[edge.first].options();
  std::vector<int64_t> costs(edge.costs.size());
  for (size_t x = 0; x < rows; ++x)
    for (size_t y = 0; y < columns; ++y) costs[x * columns + y] = edge.costs[y * rows + x];
  return costs;
}

std::optional<uint32_t> CoreDraft::next_changed() {
  if (queue_.empty()) return {};
  const uint32_t index = queue_.front();
  queue_.pop_front();
  queued_[index] = false;
  return index;
}

// ---- Options ------------------------------------------------------------------------------------

void CoreDraft::prune(uint32_t index, const std::vector<bool>& keep) {
  ++changes;
  DraftNode& node = nodes[index];
  const size_t options = node.options();
  const auto compact = [&](auto& values) {
    size_t to = 0;
    for (size_t i = 0; i < options; ++i)
      if (keep[i]) values[to++] = values[i];
    values.resize(to);
  };
  for (uint32_t e : node.edges) {
    CoreEdge& edge = edges[e];
    const bool is_row = edge.first == index;
    const size_t other = nodes[edge.other(index)].options();
    size_t to = 0;
    for (size_t i = 0; i < edge.costs.size(); ++i)
      if (keep[is_row ? i / other : i % options]) edge.costs[to++] = edge.costs[i];
    edge.costs.resize(to);
    enqueue(e);
  }
  compact(node.costs);
  compact(node.origins);
  std::vector<DraftPiece> pieces = std::move(node.pieces);
  node.pieces.clear();
  if (node.options() == 0) return;
  for (DraftPiece& piece : pieces) {
    compact(piece.usages);
    add_piece(node, std::move(piece));
  }
}

void CoreDraft::settle_on(uint32_t node, size_t option, int64_t cost) {
  core_.constant += cost;
  core_.derived.push_back(
      {node, CoreDerived::kNone, CoreDerived::kNone, {nodes[node].origins[option]}});
}

void CoreDraft::derive(uint32_t b, uint32_t a, const std::vector<uint32_t>& option_of) {
  CoreDerived derived = {b, a, CoreDerived::kNone, std::vector<uint32_t>(problem_->options(a))};
  for (size_t x = 0; x < option_of.size(); ++x)
    derived.choice[nodes[a].origins[x]] = nodes[b].origins[option_of[x]];
  core_.derived.push_back(std::move(derived));
}

// ---- To the core --------------------------------------------------------------------------------

namespace {

// Cuts the pieces at each other's ends.
void add_spans(const std::vector<DraftPiece>& pieces, CoreNode& node) {
  std::vector<uint32_t> cuts;
  for (const DraftPiece& piece : pieces) {
    cuts.push_back(piece.span.from);
    cuts.push_back(piece.span.to);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  if (cuts.empty()) return;
  const size_t options = node.options();
  // Changes at each cut, then their running sums.
  std::vector<int64_t> sums(cuts.size() * options);
  for (const DraftPiece& piece : pieces) {
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

}  // namespace

Result<Core> CoreDraft::finish() {
  std::vector<uint32_t> index_of(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    DraftNode& node = nodes[i];
    if (node.is_gone) continue;
    index_of[i] = static_cast<uint32_t>(core_.nodes.size());
    CoreNode made = {i, std::move(node.origins), std::move(node.costs), {}, {}, {}};
    add_spans(node.pieces, made);
    core_.nodes.push_back(std::move(made));
  }
  for (CoreEdge& edge : edges) {
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
        problem_->limit());
  drop_idle_times(core_);
  return std::move(core_);
}

}  // namespace hone
