// Collectives of hone over shared memory against those of the MPI of this machine, in turns. The
// ratio is MPI's time by hone's: above 1, hone is faster. hone has one thread for each device, MPI
// one process; more of them than cores take turns. Without mpicc and mpirun there are no rows.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "transport/collective.h"
#include "transport/local_group.h"
#include "transport/run_steps.h"

namespace {

using namespace hone;
using Clock = std::chrono::steady_clock;
using Cell = std::pair<std::string, int64_t>;  // collective, bytes of the whole vector

constexpr int kRounds = 3;
constexpr int64_t kLeast = 1 << 10, kMost = 64 << 20;

// The schedules of a collective; the fastest one counts, as the one that a price would choose.
struct Candidates {
  CollectiveKind kind;
  std::vector<const char*> schedules;
};
const std::vector<Candidates> kCandidates = {
    {CollectiveKind::all_reduce, {"direct", "doubling", "halving", "ring", "ring, 4 pieces"}},
    {CollectiveKind::all_gather, {"direct", "ring", "halving"}},
    {CollectiveKind::reduce_scatter, {"direct", "ring", "halving"}},
    {CollectiveKind::all_to_all, {"direct"}},
    {CollectiveKind::broadcast, {"tree", "ring"}}};

// The seconds of a collective, of the slowest device.
double seconds_of(const LocalGroup& group, int32_t devices, const Candidates& each,
                  const char* schedule, int64_t bytes) {
  Collective collective = {.kind = each.kind, .devices = {}, .elements = bytes / 4};
  for (int32_t i = 0; i < devices; ++i) collective.devices.push_back(i);
  const std::vector<DeviceProgram> programs =
      step_programs(collective, parse_collective_schedule(schedule).value()).value();
  const auto repeats = static_cast<int>(std::clamp<int64_t>((8 << 20) / bytes, 3, 300));
  std::vector<double> seconds(programs.size());
  std::vector<std::thread> running;
  for (size_t i = 0; i < programs.size(); ++i)
    running.emplace_back([&, i] {
      const std::vector<float> input(static_cast<size_t>(programs[i].input), 1);
      std::vector<float> output(static_cast<size_t>(programs[i].output));
      Clock::time_point begin;
      for (int k = -1; k < repeats; ++k) {  // the first one warms up
        if (k == 0) begin = Clock::now();
        const Status status = run_steps(programs[i], group.of(static_cast<int32_t>(i)), DType::f32,
                                        std::as_bytes(std::span(input)),
                                        std::as_writable_bytes(std::span(output)), "a rival");
        HONE_CHECK(status.ok(), "{}", status.error().to_string());
      }
      seconds[i] = std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
    });
  for (std::thread& thread : running) thread.join();
  return *std::ranges::max_element(seconds);
}

std::map<Cell, double> times_of_hone(int32_t devices) {
  const LocalGroup group = LocalGroup::join(TransportKind::shared_memory, devices).value();
  std::map<Cell, double> times;
  for (int64_t bytes = kLeast; bytes <= kMost; bytes *= 16)
    for (const Candidates& each : kCandidates)
      for (const char* schedule : each.schedules) {
        const double seconds = seconds_of(group, devices, each, schedule, bytes);
        const auto [found, is_new] =
            times.try_emplace({std::string(name(each.kind)), bytes}, seconds);
        found->second = std::min(found->second, seconds);
      }
  return times;
}

// The lines that the program of rival.c prints; none: there is no MPI.
std::map<Cell, double> times_of_mpi(int32_t devices, const std::filesystem::path& folder) {
  const std::string source = std::filesystem::path(__FILE__).parent_path() / "rival.c";
  const std::string program = folder / "rival", printed = folder / "printed";
  const std::string command = fmt::format(
      "([ -x {0} ] || mpicc -O2 -o {0} {1}) && OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n {2} {0} >{3}",
      program, source, devices, printed);
  std::map<Cell, double> times;
  if (std::system(command.c_str()) != 0) return times;
  for (const std::string_view line : split_lines(read_file(printed, 1 << 20).value())) {
    const std::vector<std::string_view> words = split_words(line);
    if (words.size() == 3)
      times[{std::string(words[0]), parse_int(words[1]).value()}] = parse_double(words[2]).value();
  }
  return times;
}

struct Duel {
  double hone = 0, mpi = 0;  // medians
  double ratio() const { return mpi / hone; }
};

// Measured once; the rows take their numbers from it.
const std::map<Cell, Duel>& duels_of(int32_t devices) {
  static std::map<int32_t, std::map<Cell, Duel>> all;
  if (all.contains(devices)) return all[devices];
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  std::map<Cell, std::vector<double>> hone, mpi;
  for (int i = 0; i < kRounds; ++i) {
    for (const auto& [cell, seconds] : times_of_mpi(devices, folder.path()))
      mpi[cell].push_back(seconds);
    if (mpi.empty()) break;
    for (const auto& [cell, seconds] : times_of_hone(devices)) hone[cell].push_back(seconds);
  }
  const auto median = [](std::vector<double>& times) {
    std::ranges::sort(times);
    return times[times.size() / 2];
  };
  for (auto& [cell, times] : hone)
    if (mpi.contains(cell)) all[devices][cell] = {median(times), median(mpi[cell])};
  return all[devices];
}

void rival(benchmark::State& state, const std::string& collective, int64_t bytes) {
  const auto devices = static_cast<int32_t>(state.range(0));
  const std::map<Cell, Duel>& duels = duels_of(devices);
  if (!duels.contains({collective, bytes})) return state.SkipWithError("there is no MPI");
  const Duel& duel = duels.at({collective, bytes});
  for (auto _ : state) state.SetIterationTime(duel.hone);
  state.counters["mpi_us"] = duel.mpi * 1e6;
  state.counters["ratio"] = duel.ratio();
}

void mean(benchmark::State& state) {
  const std::map<Cell, Duel>& duels = duels_of(static_cast<int32_t>(state.range(0)));
  if (duels.empty()) return state.SkipWithError("there is no MPI");
  double logs = 0;
  for (const auto& [cell, duel] : duels) logs += std::log(duel.ratio());
  for (auto _ : state) state.SetIterationTime(1e-9);
  state.counters["ratio"] = std::exp(logs / static_cast<double>(duels.size()));
}

const bool kRegistered = [] {
  for (const int64_t devices : {2, 4}) {
    for (const Candidates& each : kCandidates)
      for (int64_t bytes = kLeast; bytes <= kMost; bytes *= 16) {
        const std::string collective(name(each.kind));
        benchmark::RegisterBenchmark(fmt::format("rival/{}/bytes:{}", collective, bytes).c_str(),
                                     rival, collective, bytes)
            ->Args({devices})
            ->ArgNames({"devices"})
            ->UseManualTime()
            ->Iterations(1);
      }
    benchmark::RegisterBenchmark("rival/geometric_mean", mean)
        ->Args({devices})
        ->ArgNames({"devices"})
        ->UseManualTime()
        ->Iterations(1);
  }
  return true;
}();

}  // namespace
