#include "learn/kernel_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "kernel/kernel_kind.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "log/hash_text.h"
#include "measure/samples.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

// All records of a schedule, or of the same code.
struct Candidate {
  std::vector<std::string> choices;  // its spellings, the first one first
  std::vector<double> seconds;       // by record
  std::vector<double> noise;
};

struct Subject {
  std::vector<Candidate> candidates;
  std::unordered_map<uint64_t, size_t> by_code;
};

// The mean of their logarithms: a time that is twice another is as far from it as one half of it.
double merged(std::span<const double> seconds) {
  if (seconds.size() == 1) return seconds[0];  // to the last bit
  double sum = 0;
  for (double each : seconds) sum += std::log(each);
  return std::exp(sum / static_cast<double>(seconds.size()));
}

double merged_noise(std::span<const double> noise) {
  double sum = 0;
  for (double each : noise) sum += each * each;
  return std::sqrt(sum) / static_cast<double>(noise.size());
}

// Leaves the runs that count, and tells how many do not.
int64_t drop_slow(Candidate& candidate) {
  const double most = kMostSlowdown * *std::ranges::min_element(candidate.seconds);
  size_t kept = 0;
  for (size_t i = 0; i < candidate.seconds.size(); ++i) {
    if (candidate.seconds[i] > most) continue;
    candidate.seconds[kept] = candidate.seconds[i];
    candidate.noise[kept++] = candidate.noise[i];
  }
  const size_t dropped = candidate.seconds.size() - kept;
  candidate.seconds.resize(kept);
  candidate.noise.resize(kept);
  return static_cast<int64_t>(dropped);
}

class KernelLoader {
 public:
  // `is_absolute`: all kernels, by the planner's schedule alone.
  KernelLoader(const DataSet& set, bool is_absolute) : set_(set), is_absolute_(is_absolute) {
    data_.target = set.info().target;
    data_.probe = set.info().probe;
    data_.threads = set.info().threads;
    data_.conditions = set.info().conditions;
  }

  Result<KernelData> load() {
    for (const ProgramKernel& kernel : set_.kernels())
      if (is_wanted(kernel)) programs_[kernel.kernel].insert(kernel.program);
    HONE_TRY(set_.log().visit(
        {.kind = "kernel"},
        [&](const Record& record) -> Status {
          ++records_;
          if (Status is_own = check_own(record); !is_own.ok())
            return std::move(is_own).error().within(
                fmt::format("{}/log.db, record {}", set_.folder(), record.id));
          return take(record);
        }));
    if (set_.kernels().empty() && records_ > 0)
      return bad_input("it names no program, but the log has {} records of kernels", records_)
          .within(fmt::format("{}/programs.jsonl", set_.folder()))
          .with_hint(
              "'hone dataset build MODEL... -o SET' names programs, and measures nothing "
              "twice");
    std::set<uint64_t> done;
    for (const ProgramKernel& kernel : set_.kernels())
      if (is_wanted(kernel) && done.insert(kernel.kernel).second) HONE_TRY(add(kernel));
    return std::move(data_);
  }

 private:
  bool is_wanted(const ProgramKernel& kernel) const {
    return is_absolute_ || kernel.origin == KernelOrigin::plan;
  }

  // Data that was put there by hand.
  Status check_own(const Record& record) const {
    HONE_TRY(check_target(target_, record.target));
    if (record.conditions != data_.conditions)
      return bad_input("it was measured as '{}', the set says '{}'", excerpt(record.conditions),
                       excerpt(data_.conditions));
    return {};
  }

  Status take(const Record& record) {
    if (!programs_.contains(record.subject)) return {};
    if (record.outcome != Outcome::measured) {
      ++data_.failed;
      return {};
    }
    const double seconds = typical(record.seconds);
    if (!(seconds > 0) || !std::isfinite(seconds))
      return bad_input("record {} has a time of {} s", record.id, seconds).within(set_.folder());
    Subject& subject = subjects_[record.subject];  // also of a kernel whose times are all noisy
    const double noise = std::hypot(relative_noise(record.seconds), record.noise);
    if (noise > kMostNoise) {
      ++data_.noisy;
      return {};
    }
    const auto [at, is_new] = subject.by_code.try_emplace(record.code, subject.candidates.size());
    if (is_new) subject.candidates.emplace_back();
    data_.duplicates += is_new ? 0 : 1;
    Candidate& candidate = subject.candidates[at->second];
    if (std::ranges::find(candidate.choices, record.choice) == candidate.choices.end())
      candidate.choices.push_back(record.choice);
    candidate.seconds.push_back(seconds);
    candidate.noise.push_back(noise);
    return {};
  }

  Status add(const ProgramKernel& kernel) {
    const auto at = subjects_.find(kernel.kernel);
    if (at == subjects_.end()) return {};
    std::vector<Candidate>& candidates = at->second.candidates;
    // The planner's schedule, by whichever of its spellings, is the first.
    const auto planned = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
      return std::ranges::find(candidate.choices, kernel.planned) != candidate.choices.end();
    });
    if (planned == candidates.end()) {
      ++data_.left_out;
      return {};
    }
    planned->choices = {kernel.planned};
    std::rotate(candidates.begin(), planned, planned + 1);
    if (is_absolute_) candidates.resize(1);

    KernelBody body = HONE_TRY(body_of(kernel.kernel));
    KernelSample sample;
    sample.timed.facts = std::make_shared<const KernelFacts>(std::move(body), kernel.kernel);
    for (size_t i = 0; i < candidates.size(); ++i)
      if (!add(candidates[i], sample) && i == 0) break;
    if (sample.timed.schedules.size() < (is_absolute_ ? 1 : kLeastSchedules)) {
      ++data_.left_out;
      return {};
    }
    sample.kind = kernel_kind(*sample.timed.facts, sample.timed.schedules[0].algorithm());
    const std::set<std::string>& programs = programs_.at(kernel.kernel);
    sample.programs.assign(programs.begin(), programs.end());
    sample.origin = kernel.origin;
    data_.kernels.push_back(std::move(sample));
    return {};
  }

  // False: the schedule is none that this version of hone takes.
  bool add(Candidate& candidate, KernelSample& sample) {
    const Result<Schedule> schedule = schedule_of(candidate.choices[0]);
    const KernelFacts& facts = *sample.timed.facts;
    if (!schedule.ok() || !check_schedule(facts.body, facts, *schedule, data_.target).ok()) {
      data_.unfit += static_cast<int64_t>(candidate.seconds.size());
      return false;
    }
    sample.timed.schedules.push_back(*schedule);
    data_.slow += drop_slow(candidate);
    sample.timed.seconds.push_back(merged(candidate.seconds));
    sample.noise.push_back(merged_noise(candidate.noise));
    sample.runs.push_back(candidate.seconds);
    return true;
  }

  Result<KernelBody> body_of(uint64_t hash) {
    const std::optional<std::string> text = HONE_TRY(set_.log().text("kernel", hash));
    const std::string where = fmt::format("{}, kernel {}", set_.folder(), hash_text(hash));
    if (!text) return bad_input("the log has records of it, but not its text").within(where);
    KernelBody body = HONE_TRY(parse_kernel(*text, where));
    if (kernel_hash(body) != hash)
      return bad_input("its text is that of {}", hash_text(kernel_hash(body))).within(where);
    return body;
  }

  const DataSet& set_;
  const bool is_absolute_;
  const uint64_t target_ = fingerprint(set_.info().target);
  int64_t records_ = 0;
  KernelData data_;
  std::unordered_map<uint64_t, std::set<std::string>> programs_;
  std::unordered_map<uint64_t, Subject> subjects_;
};

}  // namespace

Result<Schedule> schedule_of(const std::string& choice) {
  TextParser text(choice, {.file = "schedule"});
  Schedule schedule = HONE_TRY(parse_schedule(text));
  if (text.peek().kind != TokenKind::end) return text.expected("the end of the schedule");
  return schedule;
}

Result<KernelData> load_kernel_data(const std::string& folder) {
  return load_kernel_data(HONE_TRY(DataSet::open(folder)));
}

Result<KernelData> load_kernel_data(const DataSet& set) { return KernelLoader(set, false).load(); }

Result<KernelData> load_fusion_data(const std::string& folder) {
  return load_fusion_data(HONE_TRY(DataSet::open(folder)));
}

Result<KernelData> load_fusion_data(const DataSet& set) { return KernelLoader(set, true).load(); }

std::vector<std::string> programs_of(const KernelData& data) {
  std::set<std::string> names;
  for (const KernelSample& kernel : data.kernels)
    names.insert(kernel.programs.begin(), kernel.programs.end());
  return {names.begin(), names.end()};
}

}  // namespace hone
