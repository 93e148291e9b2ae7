#include "tune/gpu_race.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "codegen/gpu/gpu_code.h"
#include "compile/gpu_kernels.h"
#include "program/instantiate.h"

namespace hone {

namespace {

constexpr double kKernelSampleSeconds = 2e-4;  // events tell about half a microsecond apart
constexpr int64_t kMostLaunchesOfRun = 100;
constexpr double kRaceOfOneSeconds = 0.15;
constexpr int64_t kRoundsOfSlow = 3;
constexpr double kSlow = 1.3;  // who is slower by this factor after these rounds drops out
constexpr double kPlanSampleSeconds = 1e-3;
constexpr int64_t kMostSamples = 100;  // of a side in a round

double least_of(std::span<const double> samples) { return *std::ranges::min_element(samples); }

}  // namespace

// ---- Kernels -----------------------------------------------------------------------------------

Result<std::shared_ptr<GpuRace>> GpuRace::make(const KernelCandidate& champion,
                                               const Target& target, const MeterOptions& options) {
  HONE_CHECK(target.gpu && options.device != nullptr, "a race on a GPU that is not there");
  std::shared_ptr<GpuRace> made(new GpuRace(target, options));
  if (options.conditions.all_cold)
    made->flood_ = HONE_TRY(CudaMemory::make(options.device, 2 * target.caches.back().bytes));
  const KernelCandidate* const alone = &champion;
  const std::vector<Result<GpuKernel>> gpu = HONE_TRY(made->compile({&alone, 1}));
  made->champion_ = HONE_TRY(made->runner(champion, HONE_TRY(gpu.front())));
  return made;
}

// Side by side: first to PTX, then by the driver's compiler. If that refuses one, loading tells it.
Result<std::vector<Result<GpuKernel>>> GpuRace::compile(
    std::span<const KernelCandidate* const> candidates) {
  const CancelToken* const cancel = options_.cancel;
  std::vector<std::optional<Result<GpuKernel>>> made(candidates.size());
  const auto count = static_cast<int64_t>(candidates.size());
  default_pool().parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
      if (cancel == nullptr || !cancel->cancelled())
        made[i] = compile_for_gpu(candidates[i]->kernel.tiles, target_.gpu->capability, kGpuSymbol);
  });
  if (cancel != nullptr) HONE_TRY(cancel->check());
  compiles_ += count;
  std::vector<Result<GpuKernel>> all;
  std::vector<std::string_view> texts;
  for (std::optional<Result<GpuKernel>>& one : made) all.push_back(*std::move(one));
  for (const Result<GpuKernel>& one : all)
    if (one.ok()) texts.push_back(one->ptx);
  (void)make_cubins(*options_.device, texts, store()).ok();
  return all;
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

// Its results are those of one launch: a kernel may change what it reads.
Result<GpuRace::Runner> GpuRace::runner(const KernelCandidate& candidate, const GpuKernel& gpu) {
  const Operands operands =
      HONE_TRY(random_operands(*candidate.kernel.body, candidate.schedule, options_.seed));
  Runner made;
  made.code = HONE_TRY(load(candidate, gpu, 1));
  made.outputs = HONE_TRY(made.code->run(operands.inputs));
  made.seconds = HONE_TRY(made.code->seconds(1));
  if (flood_ != nullptr) return made;
  made.launches = std::clamp(static_cast<int64_t>(kKernelSampleSeconds / made.seconds), int64_t{1},
                             kMostLaunchesOfRun);
  if (made.launches == 1) return made;
  made.code.reset();  // its memory comes first
  made.code = HONE_TRY(load(candidate, gpu, made.launches));
  HONE_TRY(made.code->run(operands.inputs));
  return made;
}

// Fills the last cache with something else.
Status GpuRace::evict() const {
  if (flood_ == nullptr) return {};
  const CudaDevice& device = *options_.device;
  const auto half = static_cast<uint64_t>(flood_->bytes() / 2);
  HONE_TRY(device.enter());
  HONE_TRY(device.check(device.call().cuMemcpyDtoDAsync_v2(flood_->address(),
                                                           flood_->address() + half, half, nullptr),
                        "filled its cache"));
  return device.check(device.call().cuStreamSynchronize(nullptr), "waited for a copy");
}

Result<double> GpuRace::sample(const Runner& runner) const {
  HONE_TRY(evict());
  return HONE_TRY(runner.code->seconds(1)) / static_cast<double>(runner.launches);
}

Status GpuRace::race_one(const KernelCandidate& candidate, const Result<GpuKernel>& gpu,
                         int64_t rounds, Measured& result, Measured& champion) {
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
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
  for (int64_t round = 0; round < rounds; ++round) {
    champion.seconds.push_back(HONE_TRY(sample(champion_)));
    const Result<double> seconds = sample(*other);
    if (!seconds.ok()) return fails(seconds.error());
    result.seconds.push_back(*seconds);
    const bool drops = options_.drops && round + 1 == kRoundsOfSlow;
    if (drops && least_of(result.seconds) > kSlow * least_of(champion.seconds)) break;
  }
  result.outcome = Outcome::measured;
  result.is_ahead = std::ssize(result.seconds) == rounds;
  return {};
}

Result<std::vector<Measured>> GpuRace::race(std::span<const KernelCandidate> candidates,
                                            int64_t rounds) {
  std::vector<const KernelCandidate*> all;
  for (const KernelCandidate& one : candidates) all.push_back(&one);
  const std::vector<Result<GpuKernel>> gpu = HONE_TRY(compile(all));
  const auto fit = static_cast<int64_t>(kRaceOfOneSeconds / std::max(champion_.seconds, 1e-9));
  rounds = std::clamp(fit, kRoundsOfSlow, std::max(rounds, kRoundsOfSlow));
  std::vector<Measured> results(candidates.size() + 1);
  Measured& champion = results.back();
  for (size_t i = 0; i < candidates.size(); ++i)
    HONE_TRY(race_one(candidates[i], gpu[i], rounds, results[i], champion));
  while (std::ssize(champion.seconds) < rounds) {
    const double seconds = HONE_TRY(sample(champion_));
    champion.seconds.push_back(seconds);
  }
  champion.outcome = Outcome::measured;
  champion.is_ahead = true;
  return results;
}

// ---- Plans -------------------------------------------------------------------------------------

namespace {

// One side of a duel.
struct Side {
  std::shared_ptr<const CudaExecutable> code;
  std::vector<std::vector<double>> samples = {};  // by round
  std::map<std::string, std::vector<std::vector<double>>> kernels = {};
};

Status run_block(Side& side, std::span<const Tensor> inputs, int64_t samples, int64_t repeats,
                 bool by_kernel) {
  std::vector<double>& round = side.samples.emplace_back();
  for (int64_t i = 0; i < samples; ++i) round.push_back(HONE_TRY(side.code->seconds(repeats)));
  if (!by_kernel) return {};
  Profile profile;
  HONE_TRY(side.code->run(inputs, {.profile = &profile}));
  std::map<std::string, double> kernels;
  for (const CommandTime& command : profile)
    if (!command.kernel.empty()) kernels[command.kernel] += command.seconds;
  for (const auto& [kernel, seconds] : kernels) side.kernels[kernel].push_back({seconds});
  return {};
}

}  // namespace

Result<PlanDuel> gpu_duel(const std::shared_ptr<const CudaDevice>& device, const GpuImage& first,
                          const GpuImage& second, std::span<const Tensor> inputs,
                          const DuelOptions& options, const CubinStore& cubins) {
  const auto load = [&](const GpuImage& image) {
    return CudaExecutable::load(image, device, {.cubins = cubins});
  };
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

  const double one = HONE_TRY(a.code->seconds(1)) + HONE_TRY(b.code->seconds(1));
  result.run_seconds = one;
  if (static_cast<double>(DuelOptions::kLeastRuns) * one > options.most_seconds) {
    result.outcome = Outcome::timed_out;
    result.detail = fmt::format("there is no time for {} runs of each", DuelOptions::kLeastRuns);
    result.lacks_time = true;
    return result;
  }
  const int64_t repeats = std::max<int64_t>(1, static_cast<int64_t>(kPlanSampleSeconds / one));
  const double sample = one * static_cast<double>(repeats);
  const double wanted = std::min(options.seconds, options.most_seconds);
  const int64_t rounds = std::clamp(static_cast<int64_t>(wanted / sample),
                                    DuelOptions::kLeastRounds, DuelOptions::kMostRounds);
  const int64_t samples = std::clamp<int64_t>(
      static_cast<int64_t>(wanted / (static_cast<double>(rounds) * sample)), 1, kMostSamples);
  for (int64_t round = 0; round < rounds; ++round) {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    Side* order[] = {&a, &b};
    if (b_begins(round)) std::swap(order[0], order[1]);
    for (Side* side : order)
      HONE_TRY(run_block(*side, inputs, samples, repeats, options.by_kernel));
  }
  for (const auto& [kernel, times] : a.kernels)
    if (const auto other = b.kernels.find(kernel); other != b.kernels.end())
      result.kernels[kernel] = judged(times, other->second);
  result.times = judged(a.samples, b.samples);
  result.outcome = Outcome::measured;
  return result;
}

}  // namespace hone
