#include "tune/gpu_race.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_pool.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/gpu_kernels.h"
#include "cost/gpu_cost.h"
#include "program/instantiate.h"

namespace hone {

namespace {

constexpr double kKernelSampleSeconds = 2e-4;  // events tell about half a microsecond apart
constexpr int64_t kMostLaunchesOfRun = 100;
// A first launch has the time of its own launch beside that of the kernel; here it is a small part.
constexpr double kClearlyLong = 1e-4;
// A candidate of this many times the champion's price, and of this price, is not launched: no call
// of the driver stops it.
constexpr double kFarPrice = 100, kLongPrice = 0.01;

Status check_cancelled(const CancelToken* cancel) {
  return cancel == nullptr ? Status() : cancel->check();
}

}  // namespace

// ---- Kernels -----------------------------------------------------------------------------------

Result<std::shared_ptr<GpuRace>> GpuRace::make(const KernelCandidate& champion,
                                               const Target& target, const MeterOptions& options) {
  HONE_CHECK(target.gpu && options.device != nullptr, "a race on a GPU that is not there");
  std::shared_ptr<GpuRace> made(new GpuRace(target, options));
  made->cost_ = analytic_cost(target);
  made->price_ = made->cost_->kernel(std::make_shared<const KernelFacts>(*champion.kernel.body), 1);
  made->price_of_champion_ = made->price_->seconds(champion.schedule);
  const std::vector<Result<GpuKernel>> gpu = HONE_TRY(made->compile({&champion, 1}));
  if (!gpu.front().ok()) return Error(gpu.front().error());
  if (options.conditions.all_cold)
    made->flood_ = HONE_TRY(CudaMemory::make(options.device, 2 * target.caches.back().bytes));
  made->champion_ = HONE_TRY(made->runner(champion, *gpu.front()));
  return made;
}

// Candidates side by side, each to PTX and then by the driver's compiler. A candidate that
// either refuses is not tried again.
Result<std::vector<Result<GpuKernel>>> GpuRace::compile(
    std::span<const KernelCandidate> candidates) {
  const CancelToken* const cancel = options_.cancel;
  std::vector<std::optional<Result<GpuKernel>>> made(candidates.size());
  for (size_t i = 0; i < made.size(); ++i)
    if (Status near = check_price(candidates[i].schedule); !near.ok())
      made[i] = std::move(near).error();
  const auto count = static_cast<int64_t>(candidates.size());
  default_pool().parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
      if (!made[i] && check_cancelled(cancel).ok()) made[i] = compile_one(candidates[i]);
  });
  HONE_TRY(check_cancelled(cancel));
  compiles_ += count;
  std::vector<Result<GpuKernel>> all;
  for (std::optional<Result<GpuKernel>>& one : made) all.push_back(*std::move(one));
  return all;
}

Result<GpuKernel> GpuRace::compile_one(const KernelCandidate& candidate) {
  GpuKernel gpu =
      HONE_TRY(compile_for_gpu(candidate.kernel.tiles, target_.gpu->capability, kGpuSymbol));
  HONE_TRY(make_cubin(*options_.device, {gpu.ptx, gpu.is_exact}, store()));
  return gpu;
}

Status GpuRace::check_price(const Schedule& schedule) {
  const double price = price_->seconds(schedule);
  if (price < kLongPrice || price < kFarPrice * price_of_champion_) return {};
  return over_limit(
      "its price is {:.3g} s and that of the first schedule {:.3g} s; a launch cannot "
      "be stopped",
      price, price_of_champion_);
}

CubinStore GpuRace::store() {
  return {.find = [this](std::string_view key) -> std::optional<std::string> {
            const std::scoped_lock lock(mutex_);
            const auto found = cubins_.find(key);
            return found == cubins_.end() ? std::nullopt : std::optional(found->second);
          },
          .put =
              [this](std::string_view key, std::string_view cubin) {
                const std::scoped_lock lock(mutex_);
                cubins_.emplace(key, cubin);
              }};
}

Result<std::shared_ptr<const CudaExecutable>> GpuRace::load(const KernelCandidate& candidate,
                                                            const GpuKernel& gpu,
                                                            int64_t launches) {
  KernelCode code;
  for (const GpuPhase& phase : gpu.phases) code.phases.push_back(phase.symbol);
  GpuImage image = {
      .image = HONE_TRY(instantiate(as_on_gpu(launch_of(candidate, 1), {&gpu, 1}), {}, {&code, 1})),
      .kernels = {gpu}};
  image::Block& commands = image.image.commands;
  commands.resize(commands.size() + static_cast<size_t>(launches) - 1, commands.back());
  return CudaExecutable::load(image, options_.device, {.cubins = store()});
}

// Its results are those of one launch: a kernel may change what it reads. One that is_out() has had
// no other launch.
Result<GpuRace::Runner> GpuRace::runner(const KernelCandidate& candidate, const GpuKernel& gpu) {
  const Operands operands =
      HONE_TRY(random_operands(*candidate.kernel.body, candidate.schedule, options_.seed));
  Runner made;
  made.code = HONE_TRY(load(candidate, gpu, 1));
  Profile first;
  made.outputs =
      HONE_TRY(made.code->run(operands.inputs, {.cancel = options_.cancel, .profile = &first}));
  for (const CommandTime& command : first)
    if (!command.kernel.empty()) made.seconds += command.seconds;
  if (made.seconds > options_.launch_seconds)
    return over_limit("a launch takes {:.3g} s; the limit is {:.3g} s", made.seconds,
                      options_.launch_seconds);
  if (is_out(made)) return made;
  made.seconds = HONE_TRY(sample(made));
  if (flood_ == nullptr)
    made.launches = times_in(kKernelSampleSeconds, made.seconds, 1, kMostLaunchesOfRun);
  if (made.launches > 1) {
    made.code.reset();  // its memory comes first
    made.code = HONE_TRY(load(candidate, gpu, made.launches));
    HONE_TRY(made.code->run(operands.inputs, {.cancel = options_.cancel}));
    made.seconds = HONE_TRY(sample(made));
  }
  if (!(made.seconds > 0))
    return over_limit("the GPU's clock tells no time of {} launches", made.launches);
  return made;
}

bool GpuRace::is_out(const Runner& first) const {
  return champion_.code != nullptr && options_.drops && first.seconds > kClearlyLong &&
         first.seconds > KernelMeter::kOut * champion_.seconds;
}

// Seconds of a launch. If caches have to be cold, something else fills them first; the GPU goes
// from there to the launch without waiting for the CPU.
Result<double> GpuRace::sample(const Runner& runner) const {
  HONE_TRY(check_cancelled(options_.cancel));
  const auto flood = [&](cuda::Stream stream) {
    const auto half = static_cast<uint64_t>(flood_->bytes() / 2);
    const CudaDevice& device = *options_.device;
    return device.check(device.call().cuMemcpyDtoDAsync_v2(flood_->address(),
                                                           flood_->address() + half, half, stream),
                        "filled its cache");
  };
  const Result<double> all =
      flood_ == nullptr ? runner.code->seconds(1) : runner.code->seconds(1, flood);
  if (!all.ok()) return all;
  return *all / static_cast<double>(runner.launches);
}

Status GpuRace::race_one(const KernelCandidate& candidate, const Result<GpuKernel>& gpu,
                         int64_t rounds, Measured& result, std::vector<double>& beside) {
  HONE_TRY(check_cancelled(options_.cancel));
  const auto fails = [&](const Error& why) -> Status {
    result = {.outcome = Outcome::refused, .detail = why.what()};
    return unless_own(why, options_.device.get());
  };
  if (!gpu.ok()) return fails(gpu.error());
  const Result<Runner> other = runner(candidate, *gpu);
  if (!other.ok()) return fails(other.error());
  if (std::string how = result_difference(other->outputs, champion_.outputs); !how.empty()) {
    result = {.outcome = Outcome::wrong, .detail = std::move(how)};
    return {};
  }
  result.outcome = Outcome::measured;
  if (is_out(*other)) {
    result.seconds = {other->seconds};
    return {};
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (const bool is_other : {b_begins(round), !b_begins(round)}) {
      const Result<double> seconds = sample(is_other ? *other : champion_);
      if (!seconds.ok()) return is_other ? fails(seconds.error()) : Status(seconds.error());
      (is_other ? result.seconds : beside).push_back(*seconds);
    }
    if (options_.drops && round + 1 == KernelMeter::kLeastRounds &&
        std::ranges::min(result.seconds) > KernelMeter::kHopeless * std::ranges::min(beside))
      break;
  }
  result.is_ahead = std::ssize(result.seconds) == rounds;
  return {};
}

Result<std::vector<Measured>> GpuRace::race(std::span<const KernelCandidate> candidates,
                                            int64_t rounds) {
  cubins_.clear();  // of the batch before
  const std::vector<Result<GpuKernel>> gpu = HONE_TRY(compile(candidates));
  rounds = KernelMeter::rounds_of(champion_.seconds, rounds);
  std::vector<Measured> results(candidates.size() + 1);
  std::vector<std::vector<double>> beside(candidates.size());  // samples of the champion
  Measured& champion = results.back();
  for (size_t i = 0; i < candidates.size(); ++i) {
    HONE_TRY(race_one(candidates[i], gpu[i], rounds, results[i], beside[i]));
    champion.seconds.insert(champion.seconds.end(), beside[i].begin(), beside[i].end());
  }
  while (std::ssize(champion.seconds) < rounds) {
    const double seconds = HONE_TRY(sample(champion_));
    champion.seconds.push_back(seconds);
  }
  champion.outcome = Outcome::measured;
  champion.is_ahead = true;
  // Clocks move while a batch races. So a candidate's times are those that it has for the
  // champion's of the whole race, as the samples beside its own say.
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (beside[i].empty()) continue;
    const double then = typical(beside[i]), all = typical(champion.seconds);
    if (!(then > 0) || !(all > 0)) continue;
    for (double& seconds : results[i].seconds) seconds *= all / then;
  }
  return results;
}

// ---- Plans -------------------------------------------------------------------------------------

namespace {

constexpr int64_t kMostSamples = 100;  // of a side in a round

// One side of a duel.
struct Side {
  std::shared_ptr<const CudaExecutable> code;
  std::vector<std::vector<double>> samples = {};  // by round
  std::map<std::string, std::vector<std::vector<double>>> kernels = {};
};

Status run_block(Side& side, int64_t samples, int64_t repeats) {
  std::vector<double>& round = side.samples.emplace_back();
  for (int64_t i = 0; i < samples; ++i) round.push_back(HONE_TRY(side.code->seconds(repeats)));
  return {};
}

// A run whose kernels are timed one by one.
Result<std::map<std::string, double>> run_by_kernel(const Side& side,
                                                    std::span<const Tensor> inputs) {
  Profile profile;
  HONE_TRY(side.code->run(inputs, {.profile = &profile}));
  std::map<std::string, double> kernels;
  for (const CommandTime& command : profile)
    if (!command.kernel.empty()) kernels[command.kernel] += command.seconds;
  return kernels;
}

}  // namespace

Result<PlanDuel> gpu_duel(const std::shared_ptr<const CudaDevice>& device, const GpuImage& first,
                          const GpuImage& second, std::span<const Tensor> inputs,
                          const DuelOptions& options, const CubinStore& cubins) {
  const auto load = [&](const GpuImage& image) {
    return CudaExecutable::load(image, device, {.cubins = cubins});
  };
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  PlanDuel result;
  Side a = {HONE_TRY(load(first))};
  const std::vector<Tensor> expected = HONE_TRY(a.code->run(inputs));
  const Result<std::shared_ptr<const CudaExecutable>> loaded = load(second);
  const Result<std::vector<Tensor>> actual =
      loaded.ok() ? (*loaded)->run(inputs) : Result<std::vector<Tensor>>(loaded.error());
  if (!actual.ok()) {
    HONE_TRY(unless_own(actual.error(), device.get()));
    result.outcome = Outcome::refused;
    result.detail = actual.error().what();
    return result;
  }
  result.detail = duel_difference(*actual, expected);
  result.outcome = Outcome::wrong;
  if (!result.detail.empty()) return result;
  Side b = {*loaded};

  // The GPU's clock tells how long runs take. Other things take time as well: loading both, copies,
  // and waiting for kernels one by one.
  const double placing = elapsed();
  double one = 0;  // a run of each
  for (Side* side : {&a, &b}) one += HONE_TRY(side->code->seconds(1));
  one = std::max(one, elapsed() - placing);
  const double before = elapsed();
  if (options.by_kernel)
    for (Side* side : {&a, &b}) HONE_TRY(run_by_kernel(*side, inputs));
  const double by_kernel = elapsed() - before;
  const double shortest = one + by_kernel;  // a round
  constexpr auto kLeastRounds = static_cast<double>(DuelOptions::kLeastRounds);
  result.run_seconds =
      (placing + kLeastRounds * shortest) / static_cast<double>(DuelOptions::kLeastRuns);
  const double left = options.most_seconds - elapsed();
  if (kLeastRounds * shortest > left) {
    result.outcome = Outcome::timed_out;
    result.detail = fmt::format("there is no time for {} runs of each", DuelOptions::kLeastRuns);
    result.lacks_time = true;
    return result;
  }
  const int64_t repeats = times_in(DuelOptions::kSampleSeconds, one, 1, DuelOptions::kMostRepeats);
  const double sample = one * static_cast<double>(repeats);
  const double wanted = std::min(options.seconds, left);
  const int64_t rounds =
      times_in(wanted, sample + by_kernel, DuelOptions::kLeastRounds, DuelOptions::kMostRounds);
  const int64_t samples =
      times_in(wanted / static_cast<double>(rounds) - by_kernel, sample, 1, kMostSamples);
  for (int64_t round = 0; round < rounds; ++round) {
    if (round >= DuelOptions::kLeastRounds && elapsed() > options.most_seconds) break;
    HONE_TRY(check_cancelled(options.cancel));
    Side* order[] = {&a, &b};
    if (b_begins(round)) std::swap(order[0], order[1]);
    for (Side* side : order) {
      HONE_TRY(run_block(*side, samples, repeats));
      if (!options.by_kernel) continue;
      for (const auto& [kernel, seconds] : HONE_TRY(run_by_kernel(*side, inputs)))
        side->kernels[kernel].push_back({seconds});
    }
  }
  for (const auto& [kernel, times] : a.kernels)
    if (const auto other = b.kernels.find(kernel); other != b.kernels.end())
      result.kernels[kernel] = judged(times, other->second);
  result.times = judged(a.samples, b.samples);
  result.outcome = Outcome::measured;
  return result;
}

}  // namespace hone
