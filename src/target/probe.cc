#include "target/probe.h"

#include "base/team.h"
#include "base/text.h"
#include "target/probe_kernels.h"
#include "target/spin_team.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <system_error>

namespace hone {
namespace {

// The length of a sample. It is long against the clock and against starting a vector unit. It is
// short against the slices in which the operating system shares a core out, so that most samples
// are undisturbed.
constexpr double kSampleSeconds = 1e-3;
constexpr double kTeamSampleSeconds = 1e-4;  // all threads must have their cores at the same time
constexpr int kRounds = 5;
constexpr int64_t kChunk = 1 << 20;  // bytes of memory read at a time

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One figure of the target while it is measured.
struct Rate {
  double* result = nullptr;
  double amount = 0;    // operations or bytes of a repetition; 0: the result is its seconds
  int64_t threads = 1;  // of the SpinTeam
  double sample_seconds = kSampleSeconds;
  std::function<void(SpinTeam&, int64_t repetitions)> run = {};
  // The part of `run` that is not measured: the result is how much longer `run` takes.
  std::function<void(int64_t repetitions)> besides = {};
  int64_t repetitions = 1;           // of a sample
  std::vector<double> samples = {};  // seconds of a repetition

  double time(SpinTeam& team) const {
    const double start = now();
    run(team, repetitions);
    return now() - start;
  }
  double sample(SpinTeam& team) const {
    double seconds = time(team);
    if (besides) {
      const double start = now();
      besides(repetitions);
      seconds -= now() - start;
    }
    return seconds / static_cast<double>(repetitions);
  }
};

// The least of three is not one in which another process had the core. Done anew before the samples
// of each round, for which it also warms caches and clocks up.
void find_repetitions(Rate& rate, SpinTeam& team) {
  for (; rate.repetitions < int64_t{1} << 40; rate.repetitions *= 2) {
    double least = rate.time(team);
    for (int i = 0; i < 2; ++i) least = std::min(least, rate.time(team));
    if (least >= rate.sample_seconds) return;
  }
}

Status take_samples(Rate& rate, double seconds, const CancelToken* cancel) {
  try {
    SpinTeam team(rate.threads);
    find_repetitions(rate, team);
    const double end = now() + seconds;
    do {
      if (cancel != nullptr) HONE_TRY(cancel->check());
      rate.samples.push_back(rate.sample(team));
    } while (now() < end);
  } catch (const std::system_error& error) {
    return over_limit("cannot start {} threads: {}", rate.threads, error.what());
  }
  return {};
}

// The rate that one sample of ten reaches. Other work on the machine only slows samples down, often
// into a second cluster (a core's two threads share its units), and a median can fall between the
// clusters. Such work slows either side of a difference, so of differences the median is taken.
// Figures have four digits: the others are noise, and people read them.
double figure(Rate& rate) {
  const size_t share = rate.besides ? 2 : 10;
  const auto chosen = rate.samples.begin() + static_cast<ptrdiff_t>(rate.samples.size() / share);
  std::nth_element(rate.samples.begin(), chosen, rate.samples.end());
  const double value = rate.amount > 0 ? rate.amount / *chosen : std::max(*chosen, 0.0);
  return parse_double(fmt::format("{:.3e}", value)).value();
}

// ---- What is measured --------------------------------------------------------------------------

// Memory that is really there, in large pages where the system has them: else the search for page
// addresses would be measured too.
class PagedMemory {
 public:
  PagedMemory() = default;
  PagedMemory(const PagedMemory&) = delete;
  ~PagedMemory() {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  }

  Status allocate(int64_t bytes) {
    const size_t size = static_cast<size_t>(bytes);
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      return over_limit("no memory for the {} that are read", format_bytes(bytes));
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
    madvise(data_, size, MADV_HUGEPAGE);
    std::memset(data_, 1, size);  // pages never written share one page of zeros
    return {};
  }

  const std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Twice the caches, so that nothing of a pass is left when the next one begins.
int64_t memory_to_read(const Target& target) {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{2} << 30;
  const int64_t wanted = std::clamp(2 * target.caches.back().bytes, kLeast, kMost);
  const int64_t least = target.cores * kChunk;
  return std::max(std::min(wanted, target.memory_bytes / 4), least) / kChunk * kChunk;
}

// Well inside of the level, and well beyond the one before it.
int64_t bytes_for_level(const Target& target, size_t level, int64_t most) {
  const double bytes = static_cast<double>(target.caches[level].bytes);
  const double before =
      level == 0 ? bytes / 4 : static_cast<double>(target.caches[level - 1].bytes);
  const int64_t chosen = static_cast<int64_t>(std::sqrt(bytes * before));
  return std::max(std::min(chosen, most) / kReadStep, int64_t{1}) * kReadStep;
}

void add_peaks(Target& target, std::vector<Rate>& rates) {
  target.peaks = {};
  for (const PeakKernel& kernel : peak_kernels(target.isa, target.extensions))
    rates.push_back({.result = &target.peak(kernel.dtype),
                     .amount = kernel.operations,
                     .run = [run = kernel.run](SpinTeam&, int64_t n) { run(n); }});
}

void add_caches(Target& target, const PagedMemory& memory, std::vector<Rate>& rates) {
  const ReadKernel read = read_kernel(target.isa);
  for (size_t i = 0; i < target.caches.size(); ++i) {
    const int64_t bytes = bytes_for_level(target, i, memory.bytes());
    rates.push_back({.result = &target.caches[i].bytes_per_second,
                     .amount = static_cast<double>(bytes),
                     .run = [read, bytes, data = memory.data()](SpinTeam&, int64_t n) {
                       for (int64_t j = 0; j < n; ++j) read(data, bytes);
                     }});
  }
}

// Each thread goes round in its part of the memory and goes on where it stopped.
Rate memory_rate(double* result, const Target& target, const PagedMemory& memory, int64_t threads) {
  const ReadKernel read = read_kernel(target.isa);
  const int64_t chunks = memory.bytes() / kChunk / threads;  // of a thread
  std::vector<int64_t> next(static_cast<size_t>(threads), 0);
  const auto run = [=, data = memory.data()](SpinTeam& team, int64_t n) mutable {
    team.run([&](int64_t thread) {
      int64_t at = next[static_cast<size_t>(thread)];
      for (int64_t j = 0; j < n; ++j, at = (at + 1) % chunks)
        read(data + (thread * chunks + at) * kChunk, kChunk);
      next[static_cast<size_t>(thread)] = at;
    });
  };
  return {.result = result,
          .amount = static_cast<double>(threads * kChunk),
          .threads = threads,
          .sample_seconds = threads > 1 ? kTeamSampleSeconds : kSampleSeconds,
          .run = run};
}

// About two microseconds that no cache, and hardly another thread of the core, has a part in.
void work() {
  uint64_t x = 1;
  for (int i = 0; i < 2000; ++i) {
    x = x * 3 + 1;
    asm volatile("" : "+r"(x));
  }
}

// The cost of dividing a job among the threads that run models: how much longer the job takes than
// one of its parts alone. The parts must be long enough for every worker to begin its own before
// the caller is done and takes it over.
Result<Rate> fork_join_rate(Target& target) {
  const int64_t threads = target.cores;
  const std::shared_ptr<Team> team = HONE_TRY(Team::create({.threads = threads}));
  const auto divided = [team, threads](SpinTeam&, int64_t n) {
    const auto part = [](int64_t, int64_t, int64_t) noexcept { work(); };
    for (int64_t j = 0; j < n; ++j) team->run(threads, threads, part);
  };
  const auto alone = [](int64_t n) {
    for (int64_t j = 0; j < n; ++j) work();
  };
  return Rate{.result = &target.fork_join,
              .sample_seconds = kTeamSampleSeconds,
              .run = divided,
              .besides = alone};
}

}  // namespace

Result<Target> with_peaks_of_now(Target target, double seconds, const CancelToken* cancel) {
  std::vector<Rate> rates;
  add_peaks(target, rates);
  const auto steps = static_cast<double>(kRounds * rates.size());
  for (int round = 0; round < kRounds; ++round)
    for (Rate& rate : rates) HONE_TRY(take_samples(rate, seconds / steps, cancel));
  for (Rate& rate : rates) *rate.result = rate.amount / std::ranges::min(rate.samples);
  return target;
}

Result<Target> probe_target(const ProbeOptions& options) {
  if (!(options.seconds >= 0 && options.seconds <= kMaxProbeSeconds))
    return usage_error("{} seconds of measuring; it must be 0 to {}", options.seconds,
                       kMaxProbeSeconds);
  Target target = restricted(HONE_TRY(host_target()), options.isa);
  PagedMemory memory;
  HONE_TRY(memory.allocate(memory_to_read(target)));

  std::vector<Rate> rates;
  add_peaks(target, rates);
  add_caches(target, memory, rates);
  rates.push_back(memory_rate(&target.memory_one_core, target, memory, 1));
  if (target.cores > 1) {
    rates.push_back(memory_rate(&target.memory_all_cores, target, memory, target.cores));
    rates.push_back(HONE_TRY(fork_join_rate(target)));
  }

  const int64_t steps = kRounds * static_cast<int64_t>(rates.size());
  options.progress->start(steps, "measurements");
  for (int round = 0; round < kRounds; ++round)
    for (Rate& rate : rates) {
      HONE_TRY(take_samples(rate, options.seconds / static_cast<double>(steps), options.cancel));
      options.progress->advance();
    }
  options.progress->finish();

  for (Rate& rate : rates) *rate.result = figure(rate);
  // One core is all that some have, and noise may let it win elsewhere.
  if (target.cores == 1 || target.memory_all_cores < target.memory_one_core)
    target.memory_all_cores = target.memory_one_core;
  target.measured = true;
  if (Status good = check(target); !good.ok())
    return std::move(good).error().within("the measured target");
  return target;
}

}  // namespace hone
