// Public graphs split over accelerators and a host core for the least load (Tarnawski and others,
// NeurIPS 2020), by each placer alone and by all together with the same time. "load" is in the
// files' unit; "over_contiguous" is it by the least load of contiguous splits, as the authors'
// program finds it: at most 1 is wanted, and below 1 is a better split that is not contiguous.
// "gap_percent" is to the bound.
//   --seconds=S of each run; --seeds=N, of which the median is taken; --by=NAME: one placer alone,
//   each: all of them

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"
#include "place/partition_json.h"
#include "place/placer.h"

namespace {

using namespace hone;

const bench::Flag seconds("seconds", "20"), seeds("seeds", "1"), by("by", "");

struct SplitGraph {
  std::string_view name;
  std::string_view file;
  double contiguous;  // the least load, in the file's unit
};
constexpr SplitGraph kSplits[] = {
    {"layer_resnet50", "LayerGraphs/resnet50_inference.json", 33.775},
    {"layer_resnet50_training", "LayerGraphs/resnet50_training.json", 78.632},
    {"bert3", "OperatorGraphs/bert_l-3_inference.json", 27.919},
    {"bert3_training", "OperatorGraphs/bert_l-3_training.json", 65.303},
    {"bert6", "OperatorGraphs/bert_l-6_inference.json", 29.580},
    {"bert6_training", "OperatorGraphs/bert_l-6_training.json", 72.865},
    {"resnet50", "OperatorGraphs/resnet50_inference.json", 124.349},
    {"resnet50_training", "OperatorGraphs/resnet50_training.json", 255.194}};

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void split(benchmark::State& state, const SplitGraph& graph, const std::string& placer) {
  const std::filesystem::path path =
      bench::root() / "build/bench/place/throughput-inputs" / graph.file;
  if (!std::filesystem::exists(path)) return state.SkipWithError("no such file");
  const PlaceProblem problem =
      parse_partition_json(read_file(path, kMaxPartitionBytes).value(), path.string()).value();
  const PlaceJudge judge(problem);
  std::string notes;
  for (auto _ : state) {
    std::vector<double> loads, gaps;
    for (int seed = 1; seed <= static_cast<int>(seeds.number()); ++seed) {
      const Result<PlaceResult> result = place(judge, {.goal = PlaceGoal::load,
                                                       .by = placer,
                                                       .seconds = seconds.number(),
                                                       .seed = static_cast<uint64_t>(seed)});
      if (!result.ok()) return state.SkipWithError(result.error().what().c_str());
      HONE_CHECK(check(problem, result->placement).ok() &&
                     judge.value(result->placement, PlaceGoal::load) == result->value,
                 "a wrong placement");
      loads.push_back(1e3 * result->value);
      gaps.push_back(100 * result->gap(PlaceGoal::load));
      notes = fmt::format("by {}", result->by);
      for (const PlacerOutcome& one : result->placers)
        if (!one.note.empty()) notes += fmt::format("; {}: {}", one.name, one.note);
    }
    state.counters["load"] = middle(loads);
    state.counters["over_contiguous"] = middle(loads) / graph.contiguous;
    state.counters["gap_percent"] = middle(gaps);
  }
  state.SetLabel(notes);
}

const bench::Rows rows([] {
  for (const SplitGraph& graph : kSplits) {
    std::vector<std::string> placers_of = {by.text()};
    if (by.text() == "each")
      for (placers_of.clear(); const PlacerRow& row : placers()) placers_of.emplace_back(row.name);
    for (const std::string& placer : placers_of)
      benchmark::RegisterBenchmark(
          fmt::format("split/{}/{}", graph.name, placer.empty() ? "all" : placer).c_str(),
          [=](benchmark::State& state) { split(state, graph, placer); })
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
  }
});

}  // namespace
