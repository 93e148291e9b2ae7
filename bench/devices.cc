// The batch of a model on two devices, each with one of two cores, beside two threads of one device
// that share each kernel. Eight models at batch 8, in turns. Counters: the time of a run on each
// side, the ratio (two threads / two devices: above 1, devices are faster) with its interval, and
// the share of a run in which a device waits for the other.
//
//   --rounds=N    of each duel (12)
//   --batch=N     examples in a batch (8)

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/flags.h"
#include "compile/batch_model.h"
#include "compile/native_model.h"
#include "measure/duel.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

const bench::Flag kRounds("rounds", "12"), kBatch("batch", "8");

constexpr int64_t kCores = 2;
constexpr double kBlockSeconds = 0.3;

struct Subject {
  std::string_view model;
  std::vector<std::string> batch = {};  // inputs that have it; none: as it is found
};
const Subject kSubjects[] = {{"mlp"},       {"resnet18"}, {"mobilenet_v2"}, {"squeezenet"},
                             {"bert_base"}, {"vit_b16"},  {"gpt2"},         {"lstm", {"tokens:1"}}};

// The seconds of a run in which a device waits, as a share of all that devices did.
double waiting_share(std::span<const DeviceTimes> times) {
  double waiting = 0, all = 0;
  for (const DeviceTimes& one : times) {
    waiting += one.waiting;
    all += one.waiting + one.computing + one.moving;
  }
  return all == 0 ? 0 : waiting / all;
}

Status measure(benchmark::State& state, const Subject& subject) {
  const Graph graph =
      HONE_TRY(build_zoo_model(subject.model, {.batch = static_cast<int64_t>(kBatch.number())}));
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 1));
  const Target target = HONE_TRY(host_target());
  CompileOptions options;
  options.plan.threads = kCores;
  const auto threads = HONE_TRY(NativeModel::make(model_of(graph), target, options));
  const BatchModel model(graph, target, {},
                         {.devices = {"cpu 0", "cpu 1"}, .inputs = subject.batch, .threads = 1});
  const auto devices = HONE_TRY(model.devices_for(graph.input_types()));
  std::vector<DeviceTimes> times(devices->devices().size());
  const auto run_threads = [&]() -> Status {
    HONE_TRY(threads->run(inputs));
    return {};
  };
  const auto run_devices = [&]() -> Status {
    HONE_TRY(devices->run(inputs, {}, std::span(times)));
    return {};
  };
  HONE_TRY(run_threads());
  HONE_TRY(run_devices());
  std::ranges::fill(times, DeviceTimes());
  const CancelToken cancel;
  const Duel duel = HONE_TRY(measure_in_turns(static_cast<int64_t>(kRounds.number()), cancel,
                                              {.run = block_of(kBlockSeconds, run_devices)},
                                              {.run = block_of(kBlockSeconds, run_threads)}));
  state.SetIterationTime(duel.a.median());
  state.counters["devices_ms"] = 1e3 * duel.a.median();
  state.counters["threads_ms"] = 1e3 * duel.b.median();
  state.counters["ratio"] = duel.ratio;
  if (duel.interval) {
    state.counters["ratio_low"] = duel.interval->low;
    state.counters["ratio_high"] = duel.interval->high;
  }
  state.counters["waiting"] = waiting_share(times);
  return {};
}

const bench::Rows kAdded([] {
  for (const Subject& subject : kSubjects)
    benchmark::RegisterBenchmark(std::string(subject.model).c_str(),
                                 [&subject](benchmark::State& state) {
                                   for (auto _ : state)
                                     if (const Status status = measure(state, subject);
                                         !status.ok())
                                       state.SkipWithError(status.error().to_string().c_str());
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
});

}  // namespace
}  // namespace hone::HONE_FILE
