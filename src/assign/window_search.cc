#include "assign/window_search.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr int kTries = 4;  // windows are solved again with higher prices this often
constexpr size_t kTimeStep = 16;
constexpr int64_t kPicksEvery = 4;  // every fourth round begins at what the bound picks
constexpr double kMaxWindow = 300;  // nodes

// The stages of a round. A penalty of 0 means: no time may become fuller than it may be.
struct Stage {
  double penalty;  // by the prices
  double share;    // of the prices that is paid
};
constexpr Stage kStages[] = {{1, 1},    {1.5, 1}, {2.5, 1}, {5, 1},   {20, 1},
                             {1000, 1}, {0, 1},   {0, 0.6}, {0, 0.3}, {0, 0}};

}  // namespace

WindowSearch::WindowSearch(const Core& core, const CoreTables& tables, uint64_t seed)
    : CoreSearch(core, tables, seed),
      window_(core, tables),
      costs_(core.nodes.size()),
      is_in_(core.nodes.size()),
      alive_(core.slack.size() / kTimeStep + 1) {
  for (uint32_t i = 0; i < core.nodes.size(); ++i)
    for (const CoreSpan& span : core.nodes[i].spans)
      for (size_t t = span.from / kTimeStep; t <= (span.to - 1) / kTimeStep; ++t)
        if (alive_[t].empty() || alive_[t].back() != i) alive_[t].push_back(i);
  prices_.resize(core.slack.size());
  for (const CoreNode& node : core.nodes) paid_.emplace_back(node.options());
}

void WindowSearch::set_prices(const std::vector<double>& prices,
                              std::vector<std::vector<double>> costs, std::vector<uint32_t> picks) {
  prices_ = prices;
  picks_ = std::move(picks);
  paid_ = std::move(costs);
  for (size_t i = 0; i < paid_.size(); ++i)
    for (size_t x = 0; x < paid_[i].size(); ++x)
      paid_[i][x] -= static_cast<double>(core_.nodes[i].costs[x]);
}

void WindowSearch::start(std::vector<uint32_t> options) {
  CoreSearch::start(std::move(options));
  stage_ = 0;
  begin_stage();
}

// ---- Rounds -------------------------------------------------------------------------------------

void WindowSearch::begin_round() {
  ++round_;
  start(round_ % kPicksEvery == 0 && !picks_.empty() ? picks_ : best());
}

void WindowSearch::begin_stage() {
  const Stage& stage = kStages[stage_];
  stage_left_ = std::max<int64_t>(50, static_cast<int64_t>(core_.nodes.size()) / 4);
  share_ = stage.share;
  double mean = 0;
  for (double price : prices_) mean += price / static_cast<double>(prices_.size());
  if (mean == 0) mean = 1;
  const double penalty = stage.penalty == 0 ? 1e9 : stage.penalty;
  std::vector<double> penalties;
  for (double price : prices_) penalties.push_back(penalty * (price + 0.1 * mean));
  state_.set_penalties(std::move(penalties));
}

// ---- Windows ------------------------------------------------------------------------------------

void WindowSearch::enter(uint32_t node) {
  if (is_in_[node]) return;
  is_in_[node] = true;
  nodes_.push_back(node);
}

// A connected part: neighbours of its nodes join at random.
void WindowSearch::grow_by_edges(uint32_t from, size_t size) {
  const size_t begin = nodes_.size();
  enter(from);
  for (size_t tries = 4 * size; nodes_.size() < size && begin < nodes_.size() && tries > 0;
       --tries) {
    // The last ones are taken more often than the first ones: parts are long as well as round.
    const size_t at =
        rng_.chance(0.5) ? begin + rng_.below(nodes_.size() - begin) : nodes_.size() - 1;
    const std::vector<uint32_t>& edges = core_.nodes[nodes_[at]].edges;
    if (edges.empty()) return;
    enter(core_.edges[edges[rng_.below(edges.size())]].other(nodes_[at]));
  }
}

// Nodes that compete for what is free at a time, and some around them.
void WindowSearch::grow_by_time(uint32_t time, size_t size) {
  const std::vector<uint32_t>& alive = alive_[time / kTimeStep];
  if (alive.empty()) return;
  const size_t each = 1 + rng_.below(8);
  for (size_t tries = 0; nodes_.size() < size && tries < size; ++tries)
    grow_by_edges(alive[rng_.below(alive.size())], std::min(size, nodes_.size() + each));
}

void WindowSearch::choose_window() {
  for (uint32_t node : nodes_) is_in_[node] = false;
  nodes_.clear();
  const double largest = std::min(static_cast<double>(core_.nodes.size()), kMaxWindow);
  const auto size = static_cast<size_t>(std::exp(rng_.uniform(0, std::log(largest + 0.5))));
  if (!core_.slack.empty() && rng_.chance(0.5)) {
    // The tightest of some times.
    auto time = static_cast<uint32_t>(rng_.below(core_.slack.size()));
    for (int i = 0; i < 3; ++i)
      if (const auto other = static_cast<uint32_t>(rng_.below(core_.slack.size()));
          state_.free()[other] < state_.free()[time])
        time = other;
    grow_by_time(time, size);
  }
  if (nodes_.empty()) grow_by_edges(static_cast<uint32_t>(rng_.below(core_.nodes.size())), size);
}

// Windows are judged by the cost, penalties, and a share of what usage costs at the prices.
// With all of it usage is saved that others can use.
double WindowSearch::judged() const {
  double sum = state_.cost() + state_.penalty();
  for (uint32_t node : nodes_) sum += share_ * paid_[node][state_.options()[node]];
  return sum;
}

void WindowSearch::price_window() {
  for (uint32_t i : nodes_) {
    const CoreNode& node = core_.nodes[i];
    std::vector<double>& costs = costs_[i];
    costs.resize(node.options());
    for (size_t x = 0; x < costs.size(); ++x)
      costs[x] = static_cast<double>(node.costs[x]) + share_ * paid_[i][x];
  }
}

// Adds prices of times that are too full at the moment: the penalty, or a price at which the gain
// is gone, if that is less.
void WindowSearch::price_times(double gain) {
  uint32_t from = UINT32_MAX, to = 0;
  for (uint32_t i : nodes_)
    for (const CoreSpan& span : core_.nodes[i].spans) {
      from = std::min(from, span.from);
      to = std::max(to, span.to);
    }
  double norm = 0;
  for (uint32_t t = from; t < to; ++t) {
    const double over = std::min(state_.free()[t], 0.0);
    norm += over * over;
  }
  if (norm == 0) return;
  const double length = 1.2 * gain / norm;
  extra_sums_.resize(core_.slack.size() + 1);
  extra_sums_[from] = 0;
  for (uint32_t t = from; t < to; ++t)
    extra_sums_[t + 1] =
        extra_sums_[t] + std::min(state_.penalties()[t], length * std::max(-state_.free()[t], 0.0));
  for (uint32_t i : nodes_) {
    const CoreNode& node = core_.nodes[i];
    for (size_t s = 0; s < node.spans.size(); ++s) {
      const double price = extra_sums_[node.spans[s].to] - extra_sums_[node.spans[s].from];
      if (price == 0) continue;
      const int64_t* usages = node.usages_in(s);
      for (size_t x = 0; x < costs_[i].size(); ++x)
        costs_[i][x] += price * static_cast<double>(usages[x]);
    }
  }
}

bool WindowSearch::try_window() {
  before_.clear();
  for (uint32_t node : nodes_) before_.push_back(state_.options()[node]);
  const double judged_before = judged();
  price_window();
  if (state_.full_times() > 0) price_times(kNever);
  std::vector<uint32_t> options = state_.options();
  for (int tries = 0; tries < kTries; ++tries) {
    const double penalty_before = state_.penalty();
    window_.improve(nodes_, costs_, options);
    bool is_changed = false;
    for (uint32_t node : nodes_)
      if (options[node] != state_.options()[node]) {
        take(node, options[node]);
        is_changed = true;
      }
    if (!is_changed) return false;
    const double gain = judged_before - judged();
    if (gain >= 0) return true;
    const double hoped = gain + state_.penalty() - penalty_before;
    if (hoped > 0) price_times(hoped);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (state_.options()[nodes_[i]] != before_[i]) take(nodes_[i], before_[i]);
      options[nodes_[i]] = before_[i];
    }
    if (hoped <= 0) return false;
  }
  return false;
}

void WindowSearch::step() {
  if (core_.nodes.empty()) return;
  if (stage_left_-- == 0) {
    if (++stage_ == std::ssize(kStages))
      begin_round();
    else
      begin_stage();
  }
  choose_window();
  if (try_window()) keep_best();
}

std::unique_ptr<CoreSearch> make_windows_search(const Core& core, const CoreTables& tables,
                                                uint64_t seed) {
  return std::make_unique<WindowSearch>(core, tables, seed);
}

}  // namespace hone
