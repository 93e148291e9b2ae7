#include <algorithm>
#include <cmath>

#include "cost/kernel_price.h"
#include "plan/stages.h"

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

// Stages come one after another, so none hides what others take.
double chain_seconds(const KernelBody& body, const Schedule& chain, const Target& target,
                     int64_t threads) {
  double block = 0;
  const std::vector<Stage> stages = stages_of(body, chain).value();
  for (size_t s = 0; s < stages.size(); ++s)
    block += KernelPrice(stages[s].body, target, 1).seconds(chain.stages[s]);
  const Blocks blocks = blocks_of(body, chain);
  const double shares = std::ceil(blocks.divided / static_cast<double>(threads));
  const double seconds = block * blocks.count * shares / blocks.divided;
  return seconds + (threads > 1 && chain.threads > 0 ? target.fork_join : 0);
}

}  // namespace

double kernel_seconds(const KernelBody& body, const Schedule& schedule, const Target& target,
                      int64_t threads) {
  if (schedule.algorithm == Algorithm::chain) return chain_seconds(body, schedule, target, threads);
  return KernelPrice(body, target, threads).seconds(schedule);
}

}  // namespace hone
