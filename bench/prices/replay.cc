// How soon a tuner would have measured a schedule within 2 % of the fastest one, by the data:
// kernels of programs that training has not seen come in batches of 16 schedules, of which the
// cheapest four by price are measured. "refit": prices are corrected by what was measured before.
// "random": a search without a price, which measures all of them as they come.
// `needed` counts measurements, all of the kernel's schedules where none of those was as fast;
// `missed` is how often that was so; `slower` by how much the best of 16 measured was.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "bench/flags.h"
#include "bench/prices/trials.h"
#include "cost/learned_cost.h"
#include "tune/refit.h"

namespace hone::bench {
namespace {

constexpr size_t kBatch = 16, kMeasured = 4, kOrders = 6, kLeastOfKernel = 24, kSome = 16;
constexpr double kNear = 1.02;

struct Replayed {
  double needed = 0, missed = 0, slower = 0;
};

// The schedules of a kernel behind the planned one, in random order.
std::vector<size_t> drawn_order(const TimedKernel& kernel, uint64_t seed) {
  std::vector<size_t> drawn(kernel.seconds.size() - 1);
  std::iota(drawn.begin(), drawn.end(), size_t{1});
  Rng(seed).shuffle(drawn);
  return drawn;
}

// In the order in which they are measured, the planned one first.
std::vector<size_t> measured_order(const TimedKernel& timed, const Cost& cost,
                                   const KernelData& data, bool refits, uint64_t seed) {
  const std::vector<size_t> drawn = drawn_order(timed, seed);
  const std::unique_ptr<PricedKernel> price = cost.kernel(timed.facts, data.threads);
  Refit refit(timed.facts, data.target, data.threads);
  std::vector<size_t> measured;
  const auto measure = [&](size_t i, double priced) {
    refit.keep(timed.schedules[i], priced, timed.seconds[i]);
    measured.push_back(i);
  };
  measure(0, price->seconds(timed.schedules[0]));
  for (size_t at = 0; at < drawn.size(); at += kBatch) {
    const auto batch = std::span(drawn).subspan(at, std::min(kBatch, drawn.size() - at));
    std::vector<Schedule> schedules;
    for (size_t i : batch) schedules.push_back(timed.schedules[i]);
    std::vector<double> prices(batch.size());
    price->price(schedules, INFINITY, prices);
    std::vector<double> corrected = prices;
    if (refits) refit.correct(schedules, corrected);
    std::vector<size_t> by_price(batch.size());
    std::iota(by_price.begin(), by_price.end(), size_t{0});
    std::ranges::sort(by_price, {}, [&](size_t j) { return std::pair(corrected[j], j); });
    by_price.resize(std::min(kMeasured, by_price.size()));
    for (size_t j : by_price) measure(batch[j], prices[j]);
  }
  return measured;
}

std::vector<size_t> random_order(const TimedKernel& timed, uint64_t seed) {
  std::vector<size_t> order = drawn_order(timed, seed);
  order.insert(order.begin(), size_t{0});
  return order;
}

Replayed replayed(const TimedKernel& timed, std::span<const size_t> measured) {
  const size_t count = timed.seconds.size();
  const double best = *std::ranges::min_element(timed.seconds);
  std::vector<double> fastest;  // after each measurement
  for (size_t i : measured)
    fastest.push_back(std::min(timed.seconds[i], fastest.empty() ? INFINITY : fastest.back()));
  const auto near = std::ranges::find_if(fastest, [&](double s) { return s <= kNear * best; });
  return {.needed = near == fastest.end() ? static_cast<double>(count)
                                          : static_cast<double>(near - fastest.begin()),
          .missed = near == fastest.end() ? 1.0 : 0.0,
          .slower = fastest[std::min(kSome, fastest.size() - 1)] / best - 1};
}

enum class Order : uint8_t { random, analytic, learned };
constexpr std::pair<Order, std::string_view> kOrderNames[] = {
    {Order::random, "random"}, {Order::analytic, "analytic"}, {Order::learned, "learned"}};

void report(benchmark::State& state, Order order, bool refits) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(0);
  const Trials& all = *trials();
  Replayed sum;
  double count = 0;
  for (size_t t = 0; t < all.splits.size(); ++t) {
    const AnalyticCost analytic(all.data.target);
    const LearnedCost learned(all.data.target,
                              std::make_shared<const KernelModel>(all.unseen[t].model));
    const Cost& cost = order == Order::learned ? static_cast<const Cost&>(learned) : analytic;
    for (const KernelSample& kernel : part(all.data, all.splits[t], Part::test))
      for (uint64_t seed = 1; seed <= kOrders; ++seed) {
        if (kernel.timed.seconds.size() < kLeastOfKernel) continue;
        const TimedKernel& timed = kernel.timed;
        const Replayed one = replayed(
            timed, order == Order::random ? random_order(timed, seed)
                                          : measured_order(timed, cost, all.data, refits, seed));
        sum.needed += one.needed;
        sum.missed += one.missed;
        sum.slower += one.slower;
        ++count;
      }
  }
  state.counters["needed"] = sum.needed / count;
  state.counters["missed"] = sum.missed / count;
  state.counters["slower"] = sum.slower / count;
}

const Rows kRows([] {
  for (const auto& [order, name] : kOrderNames)
    for (bool refits : {false, true}) {
      if (refits && order == Order::random) continue;
      benchmark::RegisterBenchmark(fmt::format("replay/{}{}", name, refits ? "/refit" : "").c_str(),
                                   [order, refits](auto& state) { report(state, order, refits); })
          ->Iterations(1)
          ->UseManualTime();
    }
});

}  // namespace
}  // namespace hone::bench
