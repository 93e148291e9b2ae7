#include "tune/kernel_meter.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/forked.h"
#include "base/subprocess.h"
#include "kernel/prepared.h"
#include "runtime/cuda/device.h"
#include "tune/gpu_race.h"

namespace hone {
namespace {

constexpr double kSampleSeconds = 1e-4;  // a sample repeats shorter launches
constexpr int64_t kMostLaunches = 1000;  // in a sample
constexpr double kBehind = 1.1;          // as kHopeless, after twice as many rounds
// A first launch may take kCutOff times as long as the champion's, and kLeastCutOff seconds in any
// case.
constexpr double kCutOff = 10, kLeastCutOff = 0.25;
constexpr double kLongLaunch = 3e-3;  // seconds; its operands do not wait in caches
constexpr int64_t kMostPlaceBytes = int64_t{256} << 20;  // larger operands have one place

std::string how_it_ended(const ForkEnd& end) {
  if (end.timed_out) return "it took too long";
  if (end.no_memory) return "it wanted too much memory";
  if (end.signal != 0) return fmt::format("killed by {}", signal_name(end.signal));
  return "it ended too early";
}

Outcome outcome_of(const ForkEnd& end) {
  if (end.timed_out) return Outcome::timed_out;
  return end.no_memory ? Outcome::out_of_memory : Outcome::crashed;
}

double least(std::span<const double> samples) {
  return samples.empty() ? INFINITY : *std::ranges::min_element(samples);
}

std::vector<Tensor> outputs_of(const OperandPlace& place, const Operands& operands) {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < operands.outputs.size(); ++i) {
    const Type type = operands.outputs[i];
    const auto* const bytes = static_cast<const std::byte*>(place.outputs()[i]);
    outputs.push_back(Tensor::copy_of(type, {bytes, static_cast<size_t>(type.static_bytes())}));
  }
  return outputs;
}

// The result of a candidate's first launch.
struct Trial {
  Outcome outcome = Outcome::crashed;
  std::string detail = {};
};

// Launches a candidate for the first time, in a copy of this process: one that crashes or takes too
// long leaves those beside it alone. `expected` is what it has to compute.
Trial try_out(const KernelCandidate& candidate, const std::string& object, const Target& target,
              int64_t threads, const OperandPlace& place, const Operands& operands,
              std::span<const Tensor> expected, double most_seconds) {
  Trial trial;
  const ForkedWork work = [&](const Tell& tell) {
    const auto end = [&](Outcome outcome, std::string_view why) {
      tell(fmt::format("{}{}", static_cast<int>(outcome), why));
    };
    const std::shared_ptr<Team> team = Team::create({.threads = threads}).value();
    Result<KernelLaunches> code = KernelLaunches::load(candidate, object, target, team);
    tell("");
    const Status status = code.ok() ? code->run(place) : Status(code.error());
    tell("");
    if (!status.ok()) return end(Outcome::refused, status.error().what());
    const std::string how = result_difference(outputs_of(place, operands), expected);
    end(how.empty() ? Outcome::measured : Outcome::wrong, how);
  };
  const auto told = [&](size_t, std::string_view message) {
    if (!message.empty())
      trial = {static_cast<Outcome>(message[0] - '0'), std::string(message.substr(1))};
  };
  const Result<std::vector<ForkEnd>> ends = run_forked(
      {&work, 1}, {.silence_seconds = most_seconds}, told);  // and the memory of this one
  if (!ends.ok()) return {Outcome::refused, ends.error().what()};
  if (!ends->front().is_done()) trial = {outcome_of(ends->front()), how_it_ended(ends->front())};
  std::ranges::replace(trial.detail, '\n', ' ');
  return trial;
}

}  // namespace

std::string MeterConditions::text() const {
  std::string flags;
  for (bool is_cold : cold) flags += is_cold ? '1' : '0';
  return fmt::format("protocol=1 threads={} cold={}", threads,
                     all_cold                               ? "all"
                     : flags.find('1') == std::string::npos ? "none"
                                                            : flags);
}

Status unless_own(const Error& error, const CudaDevice* device) {
  if (error.code() == ErrorCode::interrupted) return Status(error);
  if (device == nullptr || device->answers().ok()) return {};
  return Error(error).with_hint(
      "the GPU is lost; the same command in a new process goes on after what was measured");
}

Result<KernelMeter> KernelMeter::make(KernelCandidate champion, const Target& target,
                                      const MeterOptions& options) {
  KernelMeter meter(std::move(champion), target, options);
  if (target.gpu) {
    meter.on_gpu_ = HONE_TRY(GpuRace::make(meter.champion_, target, options));
    return meter;
  }
  meter.operands_ = HONE_TRY(random_operands(*meter.champion_.kernel.body, {}, options.seed));
  std::vector<Entrant> alone(1);
  alone[0].candidate = &meter.champion_;
  HONE_TRY(meter.compile(alone));
  if (alone[0].object.empty())
    return over_limit("the kernel cannot be compiled: {}", alone[0].result.detail);
  meter.champion_object_ = std::move(alone[0].object);
  return meter;
}

int64_t KernelMeter::compiles() const {
  return on_gpu_ == nullptr ? compiles_ : on_gpu_->compiles();
}

Status KernelMeter::compile(std::span<Entrant> entrants) {
  // Whoever crashes takes those behind it along, so the rest has another copy.
  std::vector<size_t> left;
  for (size_t i = 0; i < entrants.size(); ++i) left.push_back(i);
  const auto copies = static_cast<size_t>(std::max<int64_t>(target_.cores, 1));
  while (!left.empty()) {
    std::vector<std::vector<size_t>> shares(std::min(copies, left.size()));
    for (size_t k = 0; k < left.size(); ++k) shares[k % shares.size()].push_back(left[k]);
    std::vector<ForkedWork> works;
    for (const std::vector<size_t>& share : shares)
      works.emplace_back([&, share](const Tell& tell) {
        for (size_t i : share) {
          const Result<std::string> object = options_.compile(*entrants[i].candidate, target_);
          tell(object.ok() ? "o" + *object : "e" + object.error().what());
        }
      });
    std::vector<size_t> done(shares.size());
    const auto told = [&](size_t copy, std::string_view message) {
      Entrant& entrant = entrants[shares[copy][done[copy]++]];
      (message[0] == 'o' ? entrant.object : entrant.result.detail) = message.substr(1);
    };
    const std::vector<ForkEnd> ends = HONE_TRY(run_forked(
        works, {.silence_seconds = options_.compile_seconds, .memory_bytes = options_.memory_bytes},
        told, options_.cancel));
    left.clear();
    for (size_t c = 0; c < shares.size(); ++c) {
      if (done[c] == shares[c].size()) continue;
      Entrant& culprit = entrants[shares[c][done[c]]];
      culprit.result = {outcome_of(ends[c]), "while it was compiled " + how_it_ended(ends[c])};
      left.insert(left.end(), shares[c].begin() + static_cast<std::ptrdiff_t>(done[c]) + 1,
                  shares[c].end());
    }
  }
  compiles_ += static_cast<int64_t>(entrants.size());
  return {};
}

Result<std::vector<Measured>> KernelMeter::race(std::span<const KernelCandidate> candidates,
                                                int64_t rounds) {
  if (on_gpu_ != nullptr) return on_gpu_->race(candidates, rounds);
  std::vector<Entrant> entrants(candidates.size() + 1);
  for (size_t i = 0; i < candidates.size(); ++i) entrants[i].candidate = &candidates[i];
  HONE_TRY(compile(std::span(entrants).first(candidates.size())));
  entrants.back().candidate = &champion_;
  entrants.back().object = champion_object_;
  HONE_TRY(run(entrants, rounds));
  std::vector<Measured> results;
  for (Entrant& entrant : entrants) results.push_back(std::move(entrant.result));
  if (results.back().outcome != Outcome::measured)
    return over_limit("the kernel cannot be measured: {}", results.back().detail);
  return results;
}

// The messages: "b i": entrant i is tried from now on. "e i outcome why": it takes no part. "s i
// x": a sample. "a i": it took part to the end.
Status KernelMeter::run(std::span<Entrant> entrants, int64_t rounds) {
  for (bool is_done = false; !is_done;) {
    size_t tried = entrants.size();  // nobody
    for (Entrant& entrant : entrants) entrant.result.seconds.clear();
    const ForkedWork work = [&](const Tell& tell) { run_in_copy(entrants, rounds, tell); };
    const auto told = [&](size_t, std::string_view message) {
      std::istringstream words{std::string(message)};
      char what = ' ';
      size_t i = 0;
      words >> what >> i;
      Measured& result = entrants[i].result;
      if (what == 'b') tried = i;
      if (what == 'a') result.is_ahead = true;
      if (int outcome = 0; what == 'e' && words >> outcome) {
        result.outcome = static_cast<Outcome>(outcome);
        std::getline(words >> std::ws, result.detail);
        entrants[i].object.clear();
      }
      double seconds = 0;
      if (what == 's' && words >> seconds) result.seconds.push_back(seconds);
    };
    const std::vector<ForkEnd> ends = HONE_TRY(run_forked(
        {&work, 1},
        {.silence_seconds = options_.launch_seconds, .memory_bytes = options_.memory_bytes}, told,
        options_.cancel));
    is_done = ends[0].is_done();
    if (is_done) break;
    if (tried >= entrants.size() - 1)  // the champion, or before there was anyone
      return over_limit("the kernel cannot be measured: {}", how_it_ended(ends[0]));
    entrants[tried].result = {outcome_of(ends[0]), how_it_ended(ends[0])};
    entrants[tried].object.clear();
  }
  for (Entrant& entrant : entrants)
    if (!entrant.result.seconds.empty()) entrant.result.outcome = Outcome::measured;
  return {};
}

void KernelMeter::run_in_copy(std::span<Entrant> entrants, int64_t rounds,
                              const std::function<void(std::string_view)>& tell) const {
  const std::shared_ptr<Team> team = Team::create({.threads = options_.conditions.threads}).value();
  const auto places_of = [&](const Operands& operands) {
    std::vector<OperandPlace> places;
    const size_t count = operands_.bytes() > kMostPlaceBytes ? 1 : kPlaces;
    for (size_t p = 0; p < count; ++p)
      places.push_back(OperandPlace::make(operands, options_.seed + p).value());
    return std::make_shared<const std::vector<OperandPlace>>(std::move(places));
  };
  const auto places = places_of(operands_);
  std::vector<bool> cold = options_.conditions.cold;
  if (options_.conditions.all_cold) cold.assign(operands_.inputs.size(), true);
  const bool is_cold = std::ranges::find(cold, true) != cold.end();

  struct Runner {
    size_t entrant;
    KernelLaunches launches;
    std::shared_ptr<const std::vector<OperandPlace>> places;
    std::vector<double> seconds = {};
  };
  std::vector<Runner> runners;
  std::vector<Tensor> expected;
  double champions = 0;  // seconds of a launch
  for (size_t k = 0; k < entrants.size(); ++k) {
    const size_t i = entrants.size() - 1 - k;  // the champion is first
    if (entrants[i].object.empty()) continue;
    tell(fmt::format("b {}", i));
    const KernelCandidate& candidate = *entrants[i].candidate;
    const KernelBody& body = *candidate.kernel.body;
    const auto own =
        prepared_input(body, candidate.schedule)
            ? places_of(random_operands(body, candidate.schedule, options_.seed).value())
            : places;
    const Trial trial =
        runners.empty()
            ? Trial{Outcome::measured}
            : try_out(candidate, entrants[i].object, target_, team->threads(), own->front(),
                      operands_, expected,
                      std::clamp(kCutOff * champions, kLeastCutOff, options_.launch_seconds / 2));
    if (trial.outcome != Outcome::measured) {
      tell(fmt::format("e {} {} {}", i, static_cast<int>(trial.outcome), trial.detail));
      continue;
    }
    Result<KernelLaunches> code =
        KernelLaunches::load(candidate, entrants[i].object, target_, team);
    const Status status = code.ok() ? code->run(own->front()) : Status(code.error());
    if (!status.ok()) {
      tell(fmt::format("e {} {} {}", i, static_cast<int>(Outcome::refused), status.error().what()));
      continue;
    }
    if (runners.empty()) expected = outputs_of(own->front(), operands_);
    const double seconds = code->seconds(own->front()).value();
    if (runners.empty()) champions = seconds;
    if (options_.drops && seconds > kOut * champions) {
      tell(fmt::format("s {} {:.9g}", i, seconds));
      continue;
    }
    if (!is_cold)
      HONE_CHECK(code->repeat(times_in(kSampleSeconds, seconds, 1, kMostLaunches)).ok(),
                 "code that was loaded before");
    runners.push_back({i, *std::move(code), own});
  }

  rounds = rounds_of(champions, rounds);
  const auto drop = [&](double factor) {
    if (!options_.drops) return;
    double fastest = INFINITY;
    for (const Runner& runner : runners) fastest = std::min(fastest, least(runner.seconds));
    std::erase_if(runners, [&](const Runner& runner) {
      return runner.entrant + 1 != entrants.size() && least(runner.seconds) > factor * fastest;
    });
  };
  for (int64_t round = 0; round < rounds; ++round) {
    // Who is first finds the place's operands farther away than the others, so everybody is in
    // turn.
    if (round > 0) std::ranges::rotate(runners, runners.begin() + 1);
    for (Runner& runner : runners) {
      const OperandPlace& place =
          runner.places->at(static_cast<size_t>(round) % runner.places->size());
      // Its data in caches come back.
      if (champions < kLongLaunch) (void)runner.launches.run(place).ok();
      if (is_cold) place.evict(cold);
      const double seconds = runner.launches.seconds(place).value();
      runner.seconds.push_back(seconds);
      tell(fmt::format("s {} {:.9g}", runner.entrant, seconds));
    }
    if (round + 1 == kLeastRounds) drop(kHopeless);
    if (round + 1 == 2 * kLeastRounds) drop(kBehind);
  }
  for (const Runner& runner : runners) tell(fmt::format("a {}", runner.entrant));
}

}  // namespace hone
