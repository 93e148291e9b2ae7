#include "cost/analytic_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hone {
namespace {

using BlockPhase = AnalyticKernel::BlockPhase;

// If a block takes so long on one thread.
double seconds_of(const BlockPhase& phase, double block, double threads) {
  return block * phase.blocks * std::ceil(phase.divided / threads) / phase.divided;
}

// The points of a dim of a stage's results that a block needs.
int64_t points_along(const Along& along, const BlockPhase& phase) {
  return along.points(phase.points[static_cast<size_t>(along.dim)]);
}

// The bytes that a stage leaves for others, in a block, as if numbers had four bytes.
double bytes_kept(const Stage& stage, const KernelFacts& facts, const BlockPhase& phase) {
  double bytes = 4;
  for (size_t d = 0; d < std::min(stage.along.size(), facts.loops.size()); ++d)
    bytes *= stage.along[d].is_whole() ? facts.loops[d].extent
                                       : static_cast<double>(points_along(stage.along[d], phase));
  return bytes;
}

// The bytes that it reads from earlier stages, or leaves for later ones.
std::vector<ValueId> held_by(const Stage& stage, size_t parameters, bool is_last) {
  const Graph& graph = stage.body.graph;
  std::vector<ValueId> held;
  for (size_t i = 0; i < stage.sources.size(); ++i)
    if (stage.sources[i] >= parameters) held.push_back(graph.inputs()[i]);
  if (!is_last) held.push_back(graph.outputs()[0]);
  return held;
}

}  // namespace

AnalyticKernel::AnalyticKernel(std::shared_ptr<const KernelFacts> facts, Target target,
                               Prices prices, int64_t threads)
    : facts_(std::move(facts)),
      target_(std::move(target)),
      prices_(prices),
      threads_(threads),
      whole_(*facts_, target_, prices_, threads) {}

void AnalyticKernel::price(std::span<const Schedule> schedules, double limit,
                           std::span<double> seconds) {
  for (size_t i = 0; i < schedules.size(); ++i)
    seconds[i] = schedules[i].algorithm() == Algorithm::chain ? chain_seconds(schedules[i])
                                                              : whole_.seconds(schedules[i], limit);
}

void AnalyticKernel::reprice(const Prices& prices) {
  prices_ = prices;
  whole_.reprice(prices);
  for (auto& [key, cut] : cuts_)
    for (CutStage& stage : cut)
      for (auto& [window, price] : stage.prices) price.reprice(prices);
}

std::vector<PriceTerm> AnalyticKernel::terms(const Schedule& schedule) {
  if (schedule.algorithm() == Algorithm::chain) return {};
  return whole_.terms(schedule).named();
}

// Stages come one after another, so none hides what others take.
double AnalyticKernel::block_seconds(Cut& cut, const Schedule& chain, const BlockPhase& phase) {
  double seconds = 0;
  for (size_t s = 0; s < cut.size(); ++s)
    seconds += stage_price(cut[s], phase).seconds(chain.get<ChainFields>().stages[s]);
  return seconds;
}

// Blocks at the end of a dim may be smaller.
std::span<const BlockPhase> AnalyticKernel::phases_of(const Schedule& chain) {
  const Type results = facts_->body.graph.type(facts_->body.graph.outputs()[0]);
  phases_.assign(1, {});
  for (int d = 0; d < results.rank(); ++d)
    phases_[0].points[static_cast<size_t>(d)] = results.dim(d).value();
  for (size_t i = 0; i < chain.order.size(); ++i) {
    const auto dim = static_cast<size_t>(chain.order[i]);
    const int64_t points = block_points(facts_->body, chain, chain.order[i]);
    const int64_t whole = phases_[0].points[dim] / points, rest = phases_[0].points[dim] % points;
    finer_.clear();
    for (const BlockPhase& phase : phases_)
      for (const auto& [size, count] : {std::pair(points, whole), {rest, int64_t{1}}}) {
        if (size == 0) continue;
        BlockPhase& part = finer_.emplace_back(phase);
        part.points[dim] = size;
        part.blocks *= static_cast<double>(count);
        if (i < static_cast<size_t>(chain.threads)) part.divided *= static_cast<double>(count);
      }
    std::swap(phases_, finer_);
  }
  return phases_;
}

double AnalyticKernel::fork_seconds(const Schedule& chain) const {
  return threads_ > 1 && chain.threads > 0 ? target_.fork_join : 0;
}

// A chain costs what its stages do, each as often as there are blocks. To them it seems that blocks
// lie in the last cache, which may be too small for all of them.
double AnalyticKernel::chain_seconds(const Schedule& chain) {
  Cut& cut = cut_of(chain);
  const auto threads = static_cast<double>(threads_);
  double seconds = 0;
  for (const BlockPhase& phase : phases_of(chain))
    seconds += seconds_of(phase, block_seconds(cut, chain, phase), threads) + fork_seconds(chain);
  return std::max(seconds, whole_.memory_seconds());
}

double AnalyticKernel::describe(const Schedule& schedule, Features& features) {
  if (schedule.algorithm() == Algorithm::chain) return describe_chain(schedule, features);
  return whole_.describe(schedule, features).total();
}

// The features are those of a whole block.
double AnalyticKernel::describe_chain(const Schedule& chain, Features& features) {
  features = of_kernel();
  Cut& cut = cut_of(chain);
  const std::span<const BlockPhase> phases = phases_of(chain);
  double all = 0, kept = 0;
  std::array<double, kFeatures> sums = {};
  for (size_t s = 0; s < cut.size(); ++s) {
    Features stage;
    const double seconds =
        stage_price(cut[s], phases[0]).describe(chain.get<ChainFields>().stages[s], stage).total();
    all += seconds;
    for (size_t f = kKernelFeatures; f < kFeatures; ++f)
      sums[f] += seconds * static_cast<double>(stage.all()[f]);
    if (s + 1 < cut.size()) kept += bytes_kept(cut[s].stage, cut[s].facts, phases[0]);
  }
  for (size_t f = kKernelFeatures; f < kFeatures; ++f)
    features.all()[f] = static_cast<float>(sums[f] / std::max(all, 1e-30));
  double seconds = 0, on_one_thread = 0, blocks = 0, points = 1;
  for (const BlockPhase& phase : phases) {
    const double block = &phase == &phases[0] ? all : block_seconds(cut, chain, phase);
    seconds += seconds_of(phase, block, static_cast<double>(threads_)) + fork_seconds(chain);
    on_one_thread += block * phase.blocks;
    blocks += phase.blocks;
  }
  seconds = std::max(seconds, whole_.memory_seconds());
  for (int dim : chain.order)
    points *= static_cast<double>(phases[0].points[static_cast<size_t>(dim)]);
  features.is_chain = 1;
  features.stages = log_feature(static_cast<double>(cut.size()));
  features.blocks = log_feature(blocks);
  features.chain_points = log_feature(points);
  const size_t second = std::min<size_t>(1, target_.caches.size() - 1);
  features.chain_kept = log_feature(kept / static_cast<double>(target_.caches[second].bytes));
  features.seconds = log_feature(seconds * 1e9);
  const double with_work = on_one_thread / std::max(seconds, 1e-30);
  features.threads = log_feature(with_work);
  features.balance = static_cast<float>(with_work / static_cast<double>(threads_));
  features.divided_loops = static_cast<float>(chain.threads);
  return seconds;
}

AnalyticKernel::Cut& AnalyticKernel::cut_of(const Schedule& chain) {
  if (kept_ >= kMaxKept || cuts_.size() >= kMaxKept) {
    cuts_.clear();
    kept_ = 0;
  }
  key_.first = chain.get<ChainFields>().keep;
  key_.second = chain.order;
  std::ranges::sort(key_.second);
  if (const auto known = cuts_.find(key_); known != cuts_.end()) return known->second;
  Cut& cut = cuts_[key_];
  std::vector<Stage> stages = stages_of(facts_->body, chain).value();
  for (Stage& stage : stages) {
    KernelFacts facts(stage.body);
    std::vector<ValueId> held =
        held_by(stage, facts_->body.graph.inputs().size(), cut.size() + 1 == stages.size());
    cut.push_back({std::move(stage), std::move(facts), std::move(held)});
  }
  return cut;
}

const KernelPrice& AnalyticKernel::stage_price(CutStage& stage, const BlockPhase& phase) {
  window_ = stage.facts.body.window;
  for (size_t d = 0; d < window_.size(); ++d)
    if (const Along& along = stage.stage.along[d]; !along.is_whole())
      window_[d] = points_along(along, phase);
  if (const auto known = stage.prices.find(window_); known != stage.prices.end())
    return known->second;
  ++kept_;
  return stage.prices
      .try_emplace(window_, stage.facts, target_, prices_, int64_t{1}, window_, stage.held)
      .first->second;
}

}  // namespace hone
