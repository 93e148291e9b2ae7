#include "cost/schedule_price.h"

#include <algorithm>
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

}  // namespace

SchedulePrice::SchedulePrice(KernelBody body, Target target, int64_t threads)
    : body_(std::move(body)), target_(std::move(target)), threads_(threads) {}

double SchedulePrice::seconds(const Schedule& schedule) {
  if (schedule.algorithm == Algorithm::chain) return chain_seconds(schedule);
  if (!whole_) whole_.emplace(body_, target_, threads_);
  return whole_->seconds(schedule);
}

// Stages come one after another, so none hides what others take.
double SchedulePrice::chain_seconds(const Schedule& chain) {
  Cut& cut = cut_of(chain);
  double block = 0;
  for (size_t s = 0; s < cut.stages.size(); ++s)
    block += stage_price(cut, s, chain).seconds(chain.stages[s]);
  const Blocks blocks = blocks_of(body_, chain);
  const double shares = std::ceil(blocks.divided / static_cast<double>(threads_));
  const double seconds = block * blocks.count * shares / blocks.divided;
  return seconds + (threads_ > 1 && chain.threads > 0 ? target_.fork_join : 0);
}

SchedulePrice::Cut& SchedulePrice::cut_of(const Schedule& chain) {
  if (kept_ >= kMaxKept || cuts_.size() >= kMaxKept) {
    cuts_.clear();
    kept_ = 0;
  }
  CutKey key = {chain.keep, chain.order};
  std::ranges::sort(key.second);
  const auto [at, is_new] = cuts_.try_emplace(std::move(key));
  Cut& cut = at->second;
  if (is_new) {
    cut.stages = stages_of(body_, chain).value();
    cut.prices.resize(cut.stages.size());
  }
  return cut;
}

const KernelPrice& SchedulePrice::stage_price(Cut& cut, size_t number, const Schedule& chain) {
  const Stage& stage = cut.stages[number];
  std::vector<int64_t> window = stage.body.window;
  for (size_t d = 0; d < window.size(); ++d)
    if (stage.along[d] >= 0) window[d] = block_points(body_, chain, stage.along[d]);
  auto& prices = cut.prices[number];
  if (const auto known = prices.find(window); known != prices.end()) return known->second;
  KernelBody body = stage.body;
  body.window = window;
  ++kept_;
  return prices.try_emplace(std::move(window), body, target_, 1).first->second;
}

}  // namespace hone
