#pragma once

#include "kernel/schedule_space.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

namespace hone {

// Counts of the random chains of a body.
struct DrawnChains {
  int chains = 0, gemms = 0, divided = 0, uneven = 0;

  void add(const KernelBody& body, const Schedule& schedule) {
    ++chains;
    divided += schedule.threads > 0 ? 1 : 0;
    const ChainFields& own = schedule.get<ChainFields>();
    for (const Schedule& stage : own.stages) gemms += stage.algorithm() == Algorithm::gemm;
    for (const Tile& block : own.block)
      uneven += body.graph.type(body.graph.outputs()[0]).dim(block.dim).value() % block.count > 0;
  }
};

// A random chain, or none in many random schedules.
inline std::optional<Schedule> random_chain(const KernelBody& body, const Target& target,
                                            Rng& rng) {
  for (int i = 0; i < 60; ++i)
    if (Schedule schedule = random_schedule(body, target, rng);
        schedule.algorithm() == Algorithm::chain)
      return schedule;
  return std::nullopt;
}

// Runs them on random inputs, and compares what they compute with the reference.
inline DrawnChains check_random_chains(const KernelBody& body, uint64_t count) {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  DrawnChains drawn;
  for (uint64_t seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::optional<Schedule> chain = random_chain(body, target, rng);
    if (!chain) continue;
    check_kernel(body, *chain, random_inputs(body.graph, rng), 16);
    drawn.add(body, *chain);
  }
  return drawn;
}

}  // namespace hone
