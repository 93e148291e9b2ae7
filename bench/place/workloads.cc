// The fourteen kinds of training graphs on which the GO paper (2020) places nodes, made here of the
// layers' definitions: recurrent models unrolled over time, each with its way back. "bound", and
// the step of each placer, are in milliseconds; "over_rival" is a placer's step over that of the
// best quick rival. "tuned" is the policy after its tuning for the graph, if --tune says how many
// steps.
//   --workload_seconds=S of each search (default 5); --tune=N steps (default 0); --workload=NAME:
//   it alone
// Rows are kept in build/bench/place.rows.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bench/flags.h"
#include "bench/rows.h"
#include "lab/models/tune_placement.h"
#include "place/placer.h"
#include "place/plain_system.h"
#include "place/policy.h"

namespace {

using namespace hone;

const bench::Flag search_seconds("workload_seconds", "5"), tune_steps("tune", "0"),
    only("workload", "");

constexpr double kOperations = 1e13;  // of a device, per second
constexpr double kLaunch = 5e-6;      // seconds of each kernel
constexpr double kLinkBytes = 1e10;   // per second
constexpr int64_t kMemory = int64_t{12} << 30;

// A training graph: layers are added forward, and the way back behind them.
class Workload {
 public:
  uint32_t add(double operations, double bytes_out, std::initializer_list<uint32_t> inputs,
               int64_t weights = 0) {
    return add(operations, bytes_out, std::vector<uint32_t>(inputs), weights);
  }
  uint32_t add(double operations, double bytes_out, const std::vector<uint32_t>& inputs,
               int64_t weights = 0) {
    PlaceNode node;
    node.id = std::ssize(problem_.nodes);
    node.seconds = {operations / kOperations + (operations > 0 ? kLaunch : 0)};
    node.held = 3 * weights;  // the weights, their gradients and the optimizer's state
    problem_.nodes.push_back(node);
    inputs_.push_back(inputs);
    bytes_.push_back(bytes_out);
    return static_cast<uint32_t>(node.id);
  }

  // A node of the way back takes twice as long. It needs what the forward node took and made, and
  // what came back from those that used it; it is with the forward node's weights.
  PlaceProblem finished(std::string name, int64_t devices) {
    const auto forward = static_cast<uint32_t>(problem_.nodes.size());
    std::vector<std::vector<uint32_t>> users(forward);
    for (uint32_t i = 0; i < forward; ++i)
      for (const uint32_t input : inputs_[i]) users[input].push_back(i);
    std::vector<uint32_t> back(forward);
    for (uint32_t i = forward; i-- > 0;) {
      std::vector<uint32_t> needs = {i};
      for (const uint32_t user : users[i]) needs.push_back(back[user]);
      const double seconds = problem_.nodes[i].seconds[0];
      back[i] = add(0, bytes_[i], needs);
      problem_.nodes[back[i]].seconds = {2 * seconds};
      problem_.nodes[back[i]].backward = true;
      if (problem_.nodes[i].held > 0)
        problem_.nodes[i].together = problem_.nodes[back[i]].together = i;
    }
    std::vector<std::vector<uint32_t>> all(problem_.nodes.size());
    for (uint32_t i = 0; i < inputs_.size(); ++i)
      for (const uint32_t input : inputs_[i])
        if (all[input].empty() || all[input].back() != i) all[input].push_back(i);
    for (uint32_t i = 0; i < all.size(); ++i)
      if (!all[i].empty())
        problem_.tensors.push_back({i, all[i], bytes_[i], static_cast<int64_t>(bytes_[i])});
    problem_.name = std::move(name);
    System& system = problem_.system;
    system.name = fmt::format("{} devices", devices);
    system.targets = {plain_target("device", kMemory)};
    system.devices = {{devices, 0, kMemory}};
    if (devices > 1) system.links = {star_links("port", kLinkBytes)};
    HONE_CHECK(check(system).ok() && check(problem_).ok(), "a workload is wrong");
    return std::move(problem_);
  }

 private:
  PlaceProblem problem_;
  std::vector<std::vector<uint32_t>> inputs_;
  std::vector<double> bytes_;
};

constexpr double kBatch = 64, kWide = 2048, kWords = 32000, kFloat = 4;
constexpr double kState = kBatch * kWide * kFloat;
constexpr double kCell = 2 * kBatch * 2 * kWide * 4 * kWide;  // a step of a long short-term memory
constexpr auto kCellWeights = static_cast<int64_t>(8 * kWide * kWide * kFloat);

// A layer over time; its weights are read by each step.
std::vector<uint32_t> recur(Workload& net, const std::vector<uint32_t>& inputs) {
  const uint32_t weights = net.add(0, static_cast<double>(kCellWeights), {}, kCellWeights);
  std::vector<uint32_t> states;
  for (const uint32_t input : inputs) {
    std::vector<uint32_t> needs = {weights, input};
    if (!states.empty()) needs.push_back(states.back());
    states.push_back(net.add(kCell, kState, needs));
  }
  return states;
}

std::vector<uint32_t> embedded(Workload& net, int64_t steps) {
  const auto weights = static_cast<int64_t>(kWords * kWide * kFloat);
  const uint32_t table = net.add(kBatch * kWide, kState, {}, weights);
  std::vector<uint32_t> all;
  for (int64_t t = 0; t < steps; ++t) all.push_back(net.add(kBatch * kWide, kState, {table}));
  return all;
}

void add_losses(Workload& net, const std::vector<uint32_t>& states) {
  const auto weights = static_cast<int64_t>(kWords * kWide * kFloat);
  const uint32_t table = net.add(0, static_cast<double>(weights), {}, weights);
  for (const uint32_t state : states) net.add(2 * kBatch * kWide * kWords, 4, {table, state});
}

PlaceProblem rnnlm(int64_t layers) {
  Workload net;
  std::vector<uint32_t> states = embedded(net, 32);
  for (int64_t l = 0; l < layers; ++l) states = recur(net, states);
  add_losses(net, states);
  return net.finished(fmt::format("rnnlm{}", layers), layers);
}

PlaceProblem gnmt(int64_t layers) {
  Workload net;
  std::vector<uint32_t> coded = embedded(net, 24);
  std::vector<uint32_t> reversed(coded.rbegin(), coded.rend());
  reversed = recur(net, reversed);
  coded = recur(net, coded);
  for (size_t t = 0; t < coded.size(); ++t)
    coded[t] = net.add(kBatch * kWide, kState, {coded[t], reversed[coded.size() - 1 - t]});
  for (int64_t l = 1; l < layers; ++l) coded = recur(net, coded);
  std::vector<uint32_t> told = recur(net, embedded(net, 24));
  for (uint32_t& state : told) {
    std::vector<uint32_t> needs = coded;
    needs.push_back(state);
    state = net.add(4 * kBatch * kWide * 24, kState, needs);
  }
  for (int64_t l = 1; l < layers; ++l) told = recur(net, told);
  add_losses(net, told);
  return net.finished(fmt::format("gnmt{}", layers), layers);
}

// Segments of 128 words; a layer also looks at the state of the segment before.
PlaceProblem transformer_xl(int64_t layers) {
  constexpr double kLength = 128, kRows = kBatch * kLength, kBytes = kRows * kWide * kFloat;
  Workload net;
  std::vector<uint32_t> before;
  std::vector<uint32_t> weights;
  for (int64_t l = 0; l < 3 * layers; ++l) {
    const auto bytes = static_cast<int64_t>(4 * kWide * kWide * kFloat);
    weights.push_back(net.add(0, static_cast<double>(bytes), {}, bytes));
  }
  for (int64_t segment = 0; segment < 4; ++segment) {
    std::vector<uint32_t> now = {net.add(kRows * kWide, kBytes, {})};
    for (int64_t l = 0; l < layers; ++l) {
      std::vector<uint32_t> needs = {now.back(), weights[static_cast<size_t>(3 * l)]};
      if (!before.empty()) needs.push_back(before[static_cast<size_t>(l)]);
      const uint32_t asked = net.add(8 * kRows * kWide * kWide, kBytes, needs);
      const uint32_t seen = net.add(8 * kRows * kLength * kWide, kBytes, {asked});
      const uint32_t wide = net.add(8 * kRows * kWide * kWide, 4 * kBytes,
                                    {seen, weights[static_cast<size_t>(3 * l + 1)]});
      now.push_back(net.add(8 * kRows * kWide * kWide, kBytes,
                            {wide, weights[static_cast<size_t>(3 * l + 2)]}));
    }
    net.add(2 * kRows * kWide * 1000, 4, {now.back()});
    before = std::move(now);
  }
  return net.finished(fmt::format("transformer_xl{}", layers), layers);
}

PlaceProblem inception(int64_t batch) {
  const double bytes = static_cast<double>(batch) * 17 * 17 * 768 * kFloat;
  const double conv = 2 * static_cast<double>(batch) * 17 * 17 * 192 * 192 * 7;
  Workload net;
  uint32_t last = net.add(20 * conv, bytes, {});
  for (int64_t block = 0; block < 11; ++block) {
    std::vector<uint32_t> ends;
    for (int64_t branch = 0; branch < 4; ++branch) {
      uint32_t at = last;
      for (int64_t k = 0; k <= branch; ++k) at = net.add(conv * (k == 0 ? 4 : 1), bytes / 4, {at});
      ends.push_back(at);
    }
    last = net.add(static_cast<double>(batch) * 17 * 17 * 768, bytes, ends);
  }
  return net.finished(fmt::format("inception_{}", batch), 2);
}

PlaceProblem amoeba() {
  constexpr double kBytes = 64 * 28 * 28 * 512 * kFloat, kConv = 2.0 * 64 * 28 * 28 * 512 * 512;
  Workload net;
  uint32_t before = net.add(kConv, kBytes, {}), last = net.add(kConv, kBytes, {before});
  for (int64_t cell = 0; cell < 18; ++cell) {
    std::vector<uint32_t> states = {before, last};
    for (size_t k = 0; k < 5; ++k) {
      const uint32_t left = net.add(kConv, kBytes, {states[k % states.size()]});
      const uint32_t right = net.add(kConv / 9, kBytes, {states[(2 * k + 1) % states.size()]});
      states.push_back(net.add(kBytes / kFloat, kBytes, {left, right}));
    }
    before = last;
    last = net.add(kConv / 2, kBytes, {states[4], states[5], states[6]});
  }
  return net.finished("amoeba", 4);
}

PlaceProblem wavenet(int64_t stacks, int64_t layers, int64_t devices) {
  constexpr double kBytes = 16 * 8000 * 64 * kFloat, kConv = 2.0 * 16 * 8000 * 64 * 64 * 2;
  Workload net;
  uint32_t last = net.add(kConv, kBytes, {});
  std::vector<uint32_t> skipped;
  for (int64_t k = 0; k < stacks * layers; ++k) {
    const uint32_t filter = net.add(kConv, kBytes, {last}), gate = net.add(kConv, kBytes, {last});
    const uint32_t both = net.add(kBytes / kFloat, kBytes, {filter, gate});
    skipped.push_back(net.add(kConv / 2, kBytes, {both}));
    last = net.add(kConv / 2, kBytes, {both, last});
    if (k % layers == layers - 1) {
      last = net.add(kBytes / kFloat, kBytes, {last});
      skipped = {net.add(static_cast<double>(layers) * kBytes / kFloat, kBytes, skipped)};
    }
  }
  net.add(4 * kConv, 4, skipped);
  return net.finished(fmt::format("wavenet_{}x{}", stacks, layers), devices);
}

constexpr std::string_view kQuick[] = {"one", "contiguous", "heft",      "etf",
                                       "sct", "critical",   "multilevel"};

// The steps in seconds, by placer; one that finds nothing that fits has none. "rival" is the number
// of the best quick one.
bench::Row measured(const PlaceProblem& problem) {
  bench::Row row;
  const PlaceJudge judge(problem);
  double best = kCannotRun;
  std::optional<DevicePlacement> start;
  const auto run = [&](std::string_view by, double seconds, const PlacePolicy* policy) {
    PlaceOptions options = {.by = std::string(by), .seconds = seconds, .policy = policy};
    if (start && seconds < 1e8) options.start = start;
    const Result<PlaceResult> found = place(judge, options);
    if (!found.ok()) return;
    row["bound"] = found->bounds.of(PlaceGoal::step);
    row[std::string(by)] = found->value;
    const auto* const quick = std::ranges::find(kQuick, by);
    if (quick == std::end(kQuick) || found->value >= best) return;
    best = found->value;
    start = found->placement;
    row["rival"] = static_cast<double>(quick - kQuick);
  };
  for (const std::string_view by : kQuick) run(by, 1e9, nullptr);
  run("policy", 1e9, nullptr);
  const auto steps = static_cast<int64_t>(tune_steps.number());
  std::optional<TunedPlacement> tuned;
  if (steps > 0 && shipped_policy() != nullptr) {
    Result<TunedPlacement> made = tune_placement(judge, *shipped_policy(), {.steps = steps});
    if (made.ok()) tuned = *std::move(made);
  }
  if (tuned) row["tuned"] = tuned->value;
  run("annealing", search_seconds.number(), nullptr);
  run("guided", search_seconds.number(), tuned ? &tuned->policy : nullptr);
  return row;
}

void place_workload(benchmark::State& state, const PlaceProblem& problem) {
  const Target target = host_target().value();
  const std::string version =
      fmt::format("search {} s, {} steps", search_seconds.number(), tune_steps.number());
  for (auto _ : state) {
    const Result<bench::Row> found = bench::kept_row({"place", problem.name, target, version},
                                                     [&] { return measured(problem); });
    if (!found.ok()) return state.SkipWithError(found.error().to_string().c_str());
    const auto rival = found->find("rival");
    if (rival == found->end()) return state.SkipWithError("no quick placer finds what fits");
    const std::string_view won = kQuick[static_cast<size_t>(rival->second)];
    const double best = found->at(std::string(won));
    for (const auto& [name, value] : *found)
      if (name != "rival") state.counters[name] = 1e3 * value;
    for (const char* name : {"policy", "tuned", "annealing", "guided"})
      if (const auto one = found->find(name); one != found->end())
        state.counters[fmt::format("{}_over_rival", name)] = one->second / best;
    state.counters["nodes"] = static_cast<double>(problem.nodes.size());
    state.SetLabel(fmt::format("best quick rival {}", won));
  }
}

const bench::Rows workload_rows([] {
  const std::vector<std::function<PlaceProblem()>> all = {
      [] { return rnnlm(2); },          [] { return rnnlm(4); },
      [] { return rnnlm(8); },          [] { return gnmt(2); },
      [] { return gnmt(4); },           [] { return gnmt(8); },
      [] { return transformer_xl(2); }, [] { return transformer_xl(4); },
      [] { return transformer_xl(8); }, [] { return inception(32); },
      [] { return inception(64); },     [] { return amoeba(); },
      [] { return wavenet(2, 18, 2); }, [] { return wavenet(4, 36, 4); }};
  for (const auto& make : all) {
    const PlaceProblem problem = make();
    if (!only.text().empty() && only.text() != problem.name) continue;
    benchmark::RegisterBenchmark(fmt::format("workload/{}", problem.name).c_str(),
                                 [=](benchmark::State& state) { place_workload(state, problem); })
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
});

}  // namespace
