// The assignment problem that automatic sharding solves: the public files of the contest of ASPLOS
// and EuroSys 2025, within the contest's time on two threads. "over_best" is the cost by the best
// known one; below 1 is better. "gap_percent" is to the solver's own bound; "over_bound" is that
// bound by the published one. Rows are the medians of the seeds.
//   --seconds=S: less time than the contest gives; --seeds=N; --files=AGMS; --search=NAME

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "assign/core_search.h"
#include "assign/json.h"
#include "assign/solve.h"
#include "base/file.h"
#include "bench/flags.h"
#include "bench/onnx_runtime.h"

namespace {

using namespace hone;

const bench::Flag seconds("seconds", "0"), seeds("seeds", "5"), files("files", "AGMS"),
    search("search", "");

struct ContestFile {
  char letter;
  double seconds;  // of the contest
  double best;     // cost
  double bound;
};
constexpr ContestFile kContest[] = {{'A', 60, 6548641531, 6513812172},
                                    {'G', 120, 217039, 216931},
                                    {'M', 180, 49928157537, 49407421919},
                                    {'S', 240, 1521949307, 1511240135}};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void solve_file(benchmark::State& state, const ContestFile& file) {
  const std::filesystem::path path =
      bench::root() /
      fmt::format("../shared/data/iopddl/asplos-2025-iopddl-{}.json.gz", file.letter);
  if (!std::filesystem::exists(path)) return state.SkipWithError("no such file");
  if (const auto known = find_core_search(search.text()); !search.text().empty() && !known.ok())
    return state.SkipWithError(known.error().to_string().c_str());
  const AssignProblem problem =
      parse_assign_json(read_file(path, kMaxAssignBytes).value(), path.string()).value();
  for (auto _ : state) {
    std::vector<double> costs, bounds, gaps;
    for (int seed = 1; seed <= static_cast<int>(seeds.number()); ++seed) {
      const AssignResult result =
          solve(problem, {.search = search.text(),
                          .seconds = seconds.number() > 0 ? seconds.number() : file.seconds,
                          .seed = static_cast<uint64_t>(seed),
                          .threads = 2})
              .value();
      if (!result.bounds.cost) return state.SkipWithError("no solution");
      const AssignValue value = evaluate(problem, result.assignment).value();
      HONE_CHECK(value.fits(problem) && value.cost == *result.bounds.cost, "a wrong solution");
      costs.push_back(static_cast<double>(value.cost));
      bounds.push_back(static_cast<double>(result.bounds.bound));
      gaps.push_back(100 * result.bounds.gap());
    }
    state.counters["cost"] = median(costs);
    state.counters["over_best"] = median(costs) / file.best;
    state.counters["worst_over_best"] = std::ranges::max(costs) / file.best;
    state.counters["bound"] = median(bounds);
    state.counters["over_bound"] = median(bounds) / file.bound;
    state.counters["gap_percent"] = median(gaps);
  }
}

const bench::Rows rows([] {
  for (const ContestFile& file : kContest)
    if (files.text().find(file.letter) != std::string::npos)
      benchmark::RegisterBenchmark(fmt::format("assign/{}", file.letter).c_str(),
                                   [=](benchmark::State& state) { solve_file(state, file); })
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
});

}  // namespace
