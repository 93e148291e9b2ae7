#include "cost/analytic_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hone {
namespace {

struct Blocks {
  double count = 1;
  double divided = 1;  // those that threads take
};

Blocks blocks_of(const KernelBody& body, const Schedule& chain) {
  const Type results = body.graph.type(body.graph.outputs()[0]);
  Blocks blocks;
  for (size_t i = 0; i < chain.order.size(); ++i) {
    const int dim = chain.order[i];
    const double points = static_cast<double>(block_points(body, chain, dim));
    const double trips = static_cast<double>(results.dim(dim).value()) / points;
    blocks.count *= trips;
    if (i < static_cast<size_t>(chain.threads)) blocks.divided *= std::ceil(trips);
  }
  return blocks;
}

// All blocks, if one of them takes so long on one thread.
double seconds_of(const Blocks& blocks, double block, double threads) {
  return block * blocks.count * std::ceil(blocks.divided / threads) / blocks.divided;
}

// What a stage leaves for others, in a block, as if numbers had four bytes.
double bytes_kept(const Stage& stage, const KernelFacts& facts, const KernelBody& body,
                  const Schedule& chain) {
  double bytes = 4;
  for (size_t d = 0; d < std::min(stage.along.size(), facts.loops.size()); ++d)
    bytes *= stage.along[d] < 0 ? facts.loops[d].extent
                                : static_cast<double>(block_points(body, chain, stage.along[d]));
  return bytes;
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

std::vector<PriceTerm> AnalyticKernel::terms(const Schedule& schedule) {
  if (schedule.algorithm() == Algorithm::chain) return {};
  return whole_.terms(schedule).named();
}

// A chain costs what its stages do, each as often as there are blocks. Stages come one after
// another, so none hides what others take.
double AnalyticKernel::chain_seconds(const Schedule& chain) {
  Cut& cut = cut_of(chain);
  double block = 0;
  for (size_t s = 0; s < cut.size(); ++s)
    block += stage_price(cut[s], chain).seconds(chain.get<ChainFields>().stages[s]);
  const auto threads = static_cast<double>(threads_);
  const double seconds = seconds_of(blocks_of(facts_->body, chain), block, threads);
  return seconds + (threads_ > 1 && chain.threads > 0 ? target_.fork_join : 0);
}

double AnalyticKernel::describe(const Schedule& schedule, Features& features) {
  if (schedule.algorithm() == Algorithm::chain) return describe_chain(schedule, features);
  return whole_.describe(schedule, features).total();
}

double AnalyticKernel::describe_chain(const Schedule& chain, Features& features) {
  features = of_kernel();
  Cut& cut = cut_of(chain);
  double all = 0, kept = 0;
  std::array<double, kFeatures> sums = {};
  for (size_t s = 0; s < cut.size(); ++s) {
    Features stage;
    const double seconds =
        stage_price(cut[s], chain).describe(chain.get<ChainFields>().stages[s], stage).total();
    all += seconds;
    for (size_t f = kKernelFeatures; f < kFeatures; ++f)
      sums[f] += seconds * static_cast<double>(stage.all()[f]);
    if (s + 1 < cut.size()) kept += bytes_kept(cut[s].stage, cut[s].facts, facts_->body, chain);
  }
  for (size_t f = kKernelFeatures; f < kFeatures; ++f)
    features.all()[f] = static_cast<float>(sums[f] / std::max(all, 1e-30));
  const Blocks blocks = blocks_of(facts_->body, chain);
  const auto threads = static_cast<double>(threads_);
  const double with_work = blocks.divided / std::ceil(blocks.divided / threads);
  double seconds = seconds_of(blocks, all, threads);
  seconds += threads_ > 1 && chain.threads > 0 ? target_.fork_join : 0;
  double points = 1;
  for (int dim : chain.order) points *= static_cast<double>(block_points(facts_->body, chain, dim));
  features.is_chain = 1;
  features.stages = log_feature(static_cast<double>(cut.size()));
  features.blocks = log_feature(blocks.count);
  features.chain_points = log_feature(points);
  const size_t second = std::min<size_t>(1, target_.caches.size() - 1);
  features.chain_kept = log_feature(kept / static_cast<double>(target_.caches[second].bytes));
  features.seconds = log_feature(seconds * 1e9);
  features.threads = log_feature(with_work);
  features.balance = static_cast<float>(with_work / threads);
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
    cut.push_back({std::move(stage), std::move(facts)});
  }
  return cut;
}

const KernelPrice& AnalyticKernel::stage_price(CutStage& stage, const Schedule& chain) {
  window_ = stage.facts.body.window;
  for (size_t d = 0; d < window_.size(); ++d)
    if (stage.stage.along[d] >= 0)
      window_[d] = block_points(facts_->body, chain, stage.stage.along[d]);
  if (const auto known = stage.prices.find(window_); known != stage.prices.end())
    return known->second;
  ++kept_;
  const KernelPrice price(stage.facts, target_, prices_, 1, window_);
  return stage.prices.try_emplace(window_, price).first->second;
}

}  // namespace hone
