#include "tune/build_data_set.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/text.h"
#include "formats/gzip.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "log/hash_text.h"
#include "rewrite/prepare.h"
#include "target/fingerprint.h"
#include "target/probe.h"
#include "tune/collect_kernel.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

// One of this many kernels is measured twice, so that the noise is known.
constexpr size_t kRepeatEach = 8;
// A slower kernel takes the time that ten others have their schedules in, so it comes after them.
constexpr double kSlowSeconds = 2e-3;
// A text of the log with this kind says that a kernel has all its schedules.
constexpr std::string_view kCollected = "collected";
// A set with a limit of bytes has a quarter of them, and of the time, for what programs are.
constexpr int64_t kShareOfPrograms = 4;
// A folder that has grown by this factor is packed again, to see how large it is.
constexpr double kGrowth = 1.1;

void each_file(const std::string& folder,
               const std::function<void(const std::filesystem::path&)>& body) {
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->is_regular_file(failed)) body(at->path());
}

int64_t folder_bytes(const std::string& folder) {
  int64_t bytes = 0;
  each_file(folder, [&](const std::filesystem::path& file) {
    std::error_code failed;
    const auto size = std::filesystem::file_size(file, failed);
    if (!failed) bytes += static_cast<int64_t>(size);
  });
  return bytes;
}

class SetBuilder {
 public:
  SetBuilder(DataSet set, const Target& target, const BuildOptions& options)
      : set_(std::move(set)),
        target_(target),
        options_(options),
        known_(&set_.log(), target, options.version) {}

  Result<BuiltSet> run(std::span<const NamedProgram> programs) {
    if (options_.collector != nullptr) {
      HONE_TRY(collect_programs(programs));
    } else {
      for (size_t i = 0; i < programs.size() && !is_over() && has_room_for_programs(); ++i)
        HONE_TRY(add(programs[i]));
      if (options_.from != nullptr) HONE_TRY(take_from(*options_.from));
      HONE_TRY(collect_kernels());
    }
    if (known_.unwritten()) return Error(*known_.unwritten());
    result_.programs = static_cast<int64_t>(set_.programs().size());
    result_.kernels = count_kernels();
    result_.reused = known_.reused();
    result_.was_cancelled = options_.cancel != nullptr && options_.cancel->cancelled();
    result_.seconds = elapsed();
    return result_;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  bool is_over() {
    return elapsed() >= options_.seconds || bytes() >= options_.most_bytes ||
           (options_.cancel != nullptr && options_.cancel->cancelled());
  }
  // Kernels without times teach nothing, so programs leave room for these.
  bool has_room_for_programs() {
    return options_.most_bytes == INT64_MAX ||
           (bytes() - first_bytes_ <= (options_.most_bytes - first_bytes_) / kShareOfPrograms &&
            elapsed() <= options_.seconds / static_cast<double>(kShareOfPrograms));
  }
  // The packed size of the folder; 0 where nobody asks. Packing takes time. So it is done again
  // when the files have grown, and their size says the rest.
  int64_t bytes() {
    if (options_.most_bytes == INT64_MAX) return 0;
    auto size = static_cast<double>(folder_bytes(set_.folder()));
    if (size > kGrowth * size_when_packed_) {
      (void)set_.log().empty_journal().ok();  // its pages would count twice
      size = size_when_packed_ = static_cast<double>(folder_bytes(set_.folder()));
      packed_share_ = static_cast<double>(packed_bytes(set_.folder())) / size;
    }
    return static_cast<int64_t>(packed_share_ * size);
  }
  void leave_out(std::string_view what, const Error& why) {
    result_.left_out.push_back(fmt::format("{}: {}", what, why.what()));
    options_.progress->note(fmt::format("{} is left out: {}", what, why.what()));
  }

  Status collect_kernels() {
    const std::vector<const ProgramKernel*> kernels = HONE_TRY(wanted());
    result_.wanted = static_cast<int64_t>(kernels.size());
    options_.progress->start(result_.wanted, "kernels");
    for (size_t i = 0; i < kernels.size() && !is_over(); ++i) {
      HONE_TRY(options_.task == DataTask::tile ? collect(*kernels[i], i) : time(*kernels[i]));
      options_.progress->advance();
    }
    options_.progress->finish();
    return {};
  }

  // Plans the program, and keeps what its kernels are.
  Status add(const NamedProgram& program) {
    const bool has_groups =
        options_.task != DataTask::fusion || has(program.name, KernelOrigin::groups);
    if (set_.has_program(program.name) && has_groups) return {};
    const Status status = add_kernels(program);
    if (!status.ok()) leave_out(program.name, status.error());
    return {};
  }

  bool has(std::string_view program, KernelOrigin origin) const {
    return std::ranges::any_of(set_.kernels(), [&](const ProgramKernel& kernel) {
      return kernel.program == program && kernel.origin == origin;
    });
  }

  Status add_kernels(const NamedProgram& program) {
    const Graph graph = HONE_TRY(prepared(program));
    const std::vector<DefaultKernel> kernels =
        HONE_TRY(default_kernels(graph, target_, *options_.cost, options_.threads));
    if (kernels.empty())
      return bad_input("it has no kernel of {:.0f} us or more",
                       1e6 * least_kernel_seconds(target_));
    HONE_TRY(keep(program.name, KernelOrigin::plan, kernels));
    if (options_.task != DataTask::fusion) return {};
    return keep(program.name, KernelOrigin::groups,
                HONE_TRY(kernels_of_other_groups(graph, target_, *options_.cost, options_.threads,
                                                 options_.plans,
                                                 static_cast<uint64_t>(options_.seed))));
  }

  Status keep(const std::string& program, KernelOrigin origin,
              std::span<const DefaultKernel> kernels) {
    HONE_TRY(hone::add_kernels(set_, program, origin, kernels));
    options_.progress->note(
        fmt::format("{}: {} kernels ({})", program, kernels.size(), name(origin)));
    return {};
  }

  Result<Graph> prepared(const NamedProgram& program) {
    Graph graph = HONE_TRY(prepare(HONE_TRY(program.load())));
    if (!graph.is_static())
      return bad_input("it has open sizes").with_hint("'hone convert --dim NAME=N' chooses them");
    return graph;
  }

  // ---- Programs --------------------------------------------------------------------------------

  Status collect_programs(std::span<const NamedProgram> programs) {
    result_.what = options_.collector->what();
    result_.wanted = static_cast<int64_t>(programs.size());
    options_.progress->start(result_.wanted, "programs");
    for (size_t i = 0; i < programs.size() && !is_over(); ++i) {
      // Each has its share of the time that is left.
      const double share =
          (options_.seconds - elapsed()) / static_cast<double>(programs.size() - i);
      const Status status = collect(programs[i], share);
      if (!status.ok() && status.error().code() == ErrorCode::interrupted) break;
      if (!status.ok()) leave_out(programs[i].name, status.error());
      options_.progress->advance();
    }
    options_.progress->finish();
    return {};
  }

  Status collect(const NamedProgram& program, double seconds) {
    if (HONE_TRY(options_.collector->is_done(set_, program.name, options_))) {
      ++result_.collected;
      return {};
    }
    Graph graph = HONE_TRY(prepared(program));
    // The kernels of the default plan are those of another task, too.
    if (!set_.has_program(program.name))
      HONE_TRY(keep(program.name, KernelOrigin::plan,
                    HONE_TRY(default_kernels(graph, target_, *options_.cost, options_.threads))));
    const double began = elapsed();
    const CollectedPlans found = HONE_TRY(options_.collector->collect(
        set_, program.name, std::move(graph), target_, known_, options_,
        [&](double share) { return elapsed() - began > share * seconds; }));
    result_.plans += static_cast<int64_t>(found.plans);
    result_.whole += static_cast<int64_t>(found.whole);
    result_.errors.insert(result_.errors.end(), found.errors.begin(), found.errors.end());
    if (found.is_done) ++result_.collected;
    options_.progress->note(fmt::format("{}: {} {}, {} kernels, {} runs{}", program.name,
                                        found.plans, result_.what, found.kernels, found.whole,
                                        found.is_done ? "" : "; not all yet"));
    return {};
  }

  // ---- Kernels ---------------------------------------------------------------------------------

  // The planner's schedule alone.
  Status time(const ProgramKernel& row) {
    const Result<KernelTime> time =
        time_planned(HONE_TRY(kernel_of(row)), target_, known_, meter_options(options_));
    if (!time.ok()) return unless_interrupted(time.error());
    ++result_.collected;
    return {};
  }

  Status take_from(const Log& from) {
    std::set<uint64_t> subjects;
    for (const ProgramKernel& kernel : set_.kernels()) subjects.insert(kernel.kernel);
    LogMerge merge(set_.log());
    HONE_TRY(from.visit(
        set_.query(),
        [&](const Record& record) -> Status {
          return subjects.contains(record.subject) ? merge.take(record) : Status();
        }));
    result_.taken = HONE_TRY(merge.finish()).added.records;
    return {};
  }

  // Each kernel once: that of the first program that has it. Kernels without a time come first:
  // another kernel tells more than more schedules of a known one.
  Result<std::vector<const ProgramKernel*>> wanted() const {
    std::set<uint64_t> seen;
    std::map<std::string, size_t> places;
    std::vector<std::vector<const ProgramKernel*>> programs;
    for (const ProgramKernel& kernel : set_.kernels()) {
      const bool is_wanted =
          kernel.origin == KernelOrigin::plan || options_.task == DataTask::fusion;
      if (!is_wanted || !seen.insert(kernel.kernel).second) continue;
      const auto [at, is_new] = places.try_emplace(kernel.program, programs.size());
      if (is_new) programs.emplace_back();
      programs[at->second].push_back(&kernel);
    }
    for (auto& kernels : programs)
      std::ranges::sort(kernels, {}, [](const ProgramKernel* kernel) {
        return std::tuple(kernel->price > kSlowSeconds, -kernel->price, kernel->kernel);
      });
    const auto chosen = in_turns(std::move(programs), options_.kernels);
    std::vector<const ProgramKernel*> ordered, begun;
    for (const ProgramKernel* kernel : chosen) {
      const auto one = HONE_TRY(set_.log().find({.subject = kernel->kernel, .limit = 1}));
      (one.empty() ? ordered : begun).push_back(kernel);
    }
    ordered.insert(ordered.end(), begun.begin(), begun.end());
    return ordered;
  }

  int64_t count_kernels() const {
    std::set<uint64_t> hashes;
    for (const ProgramKernel& kernel : set_.kernels()) hashes.insert(kernel.kernel);
    return static_cast<int64_t>(hashes.size());
  }

  static std::string name_of(const ProgramKernel& kernel) {
    return fmt::format("kernel {}", hash_text(kernel.kernel));
  }

  // The request for a kernel, as the key of the text that says it.
  uint64_t key_of(const ProgramKernel& kernel) const {
    return Hasher(kernel.kernel)
        .add(options_.schedules)
        .add(options_.seed)
        .add(options_.kernel_seconds)
        .add(set_.info().conditions)
        .value();
  }

  // Whoever interrupts a build keeps what it has.
  static Status unless_interrupted(const Error& error) {
    return error.code() == ErrorCode::interrupted ? Status() : Status(error);
  }

  Status collect(const ProgramKernel& row, size_t number) {
    if (HONE_TRY(set_.log().text(kCollected, key_of(row)))) {
      ++result_.collected;
      return {};
    }
    const DefaultKernel kernel = HONE_TRY(kernel_of(row));
    KernelTimer timer(kernel.facts, kernel.planned, target_, known_, meter_options(options_));
    const Status status = collect(kernel, row, timer, number % kRepeatEach == 0);
    result_.compiles += timer.compiles();
    result_.refused += timer.refused();
    if (status.ok()) return {};
    if (Status ends = unless_own(status.error(), options_.device.get()); !ends.ok())
      return unless_interrupted(ends.error());
    leave_out(name_of(row), status.error());
    ++result_.failed;
    // A driver may take later what it refuses now: another process may have the memory.
    if (options_.device != nullptr) return {};
    // A later build need not try again.
    return set_.log().know(kCollected, key_of(row), detail_of(status.error().what()));
  }

  Status collect(const DefaultKernel& kernel, const ProgramKernel& row, KernelTimer& timer,
                 bool repeats) {
    const double seconds = std::min(options_.seconds - elapsed(), options_.kernel_seconds);
    const bool is_whole = HONE_TRY(collect_schedules(kernel, target_,
                                                     {.schedules = options_.schedules,
                                                      .seed = static_cast<uint64_t>(options_.seed),
                                                      .seconds = seconds,
                                                      .cancel = options_.cancel},
                                                     timer));
    if (!is_whole && is_over()) return {};
    HONE_TRY(timer.renew(options_.most_noise));
    if (repeats) HONE_TRY(timer.repeat());
    if (known_.unwritten()) return Error(*known_.unwritten());
    const size_t times = timer.timed().schedules.size();
    const size_t certain = timer.certain(options_.most_noise);
    if (certain < kLeastSchedules && (certain < times || timer.refused() > 0)) {
      leave_out(name_of(row), bad_input("its times are too noisy: {} of {} count; a later build "
                                        "measures it again",
                                        certain, times));
      return {};
    }
    HONE_TRY(set_.log().know(kCollected, key_of(row), fmt::format("{} schedules", times)));
    ++result_.collected;
    return {};
  }

  Result<DefaultKernel> kernel_of(const ProgramKernel& row) {
    const std::string where = fmt::format("{}, kernel {}", set_.folder(), hash_text(row.kernel));
    const std::optional<std::string> text = HONE_TRY(set_.log().text("kernel", row.kernel));
    if (!text) return bad_input("the log does not have its text").within(where);
    KernelBody body = HONE_TRY(parse_kernel(*text, where));
    if (kernel_hash(body) != row.kernel)
      return bad_input("its text belongs to {}", hash_text(kernel_hash(body))).within(where);
    DefaultKernel kernel{
        std::make_shared<const KernelFacts>(std::move(body), row.kernel), {}, row.price};
    TextParser planned(row.planned, {.file = where});
    kernel.planned = HONE_TRY(parse_schedule(planned));
    if (Status fits = check_schedule(kernel.facts->body, *kernel.facts, kernel.planned, target_);
        !fits.ok())
      return std::move(fits).error().within(where);
    return kernel;
  }

  DataSet set_;
  const Target& target_;
  const BuildOptions& options_;
  const Clock::time_point began_ = Clock::now();
  double size_when_packed_ = 0, packed_share_ = 1;
  const int64_t first_bytes_ = bytes();  // of the set that this goes on with
  MeasuredKernels known_;
  BuiltSet result_;
};

}  // namespace

int64_t packed_bytes(const std::string& folder) {
  int64_t bytes = 0;
  each_file(folder, [&](const std::filesystem::path& file) {
    const Result<std::string> text = read_file(file, INT64_MAX);
    if (text.ok()) bytes += static_cast<int64_t>(gzip(*text).size());
  });
  return bytes;
}

MeterOptions meter_options(const BuildOptions& options) {
  MeterOptions meter;
  meter.conditions.threads = options.threads;
  meter.conditions.all_cold = options.is_cold;
  meter.seed = static_cast<uint64_t>(options.seed);
  meter.most_drift = options.most_drift;
  meter.cancel = options.cancel;
  meter.device = options.device;
  return meter;
}

Result<BuiltSet> build_data_set(const std::string& folder, std::span<const NamedProgram> programs,
                                const Target& target, const BuildOptions& options) {
  if (options.threads < 1 || options.threads > target.cores)
    return usage_error("{} threads are outside of 1..{}, the target's cores", options.threads,
                       target.cores);
  if (options.schedules < static_cast<int64_t>(kLeastSchedules))
    return usage_error("{} schedules of a kernel say nothing about their order; {} do",
                       options.schedules, kLeastSchedules);
  DataSet set =
      HONE_TRY(DataSet::make(folder, {.target = target,
                                      .threads = options.threads,
                                      .conditions = meter_options(options).conditions.text(),
                                      .version = options.version,
                                      .seed = options.seed,
                                      .schedules = options.schedules}));
  if (options.probe_seconds > 0 && !set.info().probe) {
    options.progress->note("measuring the rates of this machine");
    HONE_TRY(set.know_probe(HONE_TRY(probe_target(
        {.seconds = options.probe_seconds, .isa = target.isa, .cancel = options.cancel}))));
  }
  return SetBuilder(std::move(set), target, options).run(programs);
}

}  // namespace hone
