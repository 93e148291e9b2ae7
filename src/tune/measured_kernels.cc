#include "tune/measured_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

KernelTime typical_time(Outcome outcome, std::span<const double> seconds, double noise) {
  if (outcome != Outcome::measured) return {std::numeric_limits<double>::infinity(), 0};
  return {typical(seconds), std::hypot(relative_noise(seconds), noise)};
}

}  // namespace

MeasuredKernels::MeasuredKernels(Log* log, const Target& target, std::string version)
    : log_(log),
      target_(fingerprint(target)),
      target_text_(print(target)),
      version_(std::move(version)) {}

Result<std::optional<KernelTime>> MeasuredKernels::time(uint64_t code,
                                                        const std::string& conditions) {
  const auto known = known_.find({code, conditions});
  if (known != known_.end()) return std::optional(known->second);
  if (log_ == nullptr) return std::optional<KernelTime>();
  const std::vector<Record> records = HONE_TRY(
      log_->find({.kind = "kernel", .code = code, .target = target_, .conditions = conditions}));
  if (records.empty()) return std::optional<KernelTime>();
  const Record& last = records.back();
  const KernelTime time = typical_time(last.outcome, last.seconds, last.noise);
  known_[{code, conditions}] = time;
  ++reused_;
  return std::optional(time);
}

Result<std::optional<KernelTime>> MeasuredKernels::time_of(uint64_t kernel,
                                                           const Schedule& schedule,
                                                           const std::string& conditions) {
  if (log_ == nullptr) return std::optional<KernelTime>();
  const std::string choice = print(schedule);
  std::optional<KernelTime> time;
  for (const Record& record : HONE_TRY(log_->find(
           {.kind = "kernel", .subject = kernel, .target = target_, .conditions = conditions})))
    if (record.choice == choice) time = typical_time(record.outcome, record.seconds, record.noise);
  if (time) ++reused_;
  return time;
}

Result<std::optional<KernelTime>> MeasuredKernels::recall(const KernelCandidate& candidate,
                                                          const std::string& conditions,
                                                          bool by_schedule) {
  const std::optional<KernelTime> known = HONE_TRY(time(candidate.code, conditions));
  if (known) HONE_TRY(adopt(candidate, conditions, by_schedule));
  return known;
}

Status MeasuredKernels::adopt(const KernelCandidate& candidate, const std::string& conditions,
                              bool by_schedule) {
  if (log_ == nullptr || unwritten_) return {};
  const std::vector<Record> records = HONE_TRY(log_->find(
      {.kind = "kernel", .code = candidate.code, .target = target_, .conditions = conditions}));
  const uint64_t subject = kernel_hash(*candidate.kernel.body);
  const std::string choice = print(candidate.schedule);
  const auto is_own = [&](const Record& record) {
    return record.subject == subject && (!by_schedule || record.choice == choice);
  };
  if (records.empty() || std::ranges::any_of(records, is_own)) return {};
  Record own = records.back();
  own.id = 0;
  own.subject = subject;
  own.choice = choice;
  const KnownText text = {"kernel", subject, print(*candidate.kernel.body)};
  if (Status status = log_->add({&own, 1}, {&text, 1}); !status.ok())
    unwritten_ = std::move(status).error();
  return {};
}

Result<bool> MeasuredKernels::has_kernel(uint64_t hash) const {
  if (log_ == nullptr) return false;
  const Query one = {.kind = "kernel", .subject = hash, .target = target_, .limit = 1};
  return !HONE_TRY(log_->find(one)).empty();
}

void MeasuredKernels::keep(const std::string& conditions,
                           std::span<const KernelCandidate> candidates,
                           std::span<const Measured> results, double noise) {
  std::vector<Record> records;
  std::vector<KnownText> texts = {{"target", target_, target_text_}};
  for (size_t i = 0; i < candidates.size(); ++i) {
    const KernelCandidate& candidate = candidates[i];
    const uint64_t subject = kernel_hash(*candidate.kernel.body);
    known_[{candidate.code, conditions}] =
        typical_time(results[i].outcome, results[i].seconds, noise);
    records.push_back({.kind = "kernel",
                       .subject = subject,
                       .choice = print(candidate.schedule),
                       .code = candidate.code,
                       .target = target_,
                       .conditions = conditions,
                       .outcome = results[i].outcome,
                       .detail = detail_of(results[i].detail),
                       .seconds = results[i].seconds,
                       .version = version_,
                       .noise = noise});
    if (i == 0) texts.push_back({"kernel", subject, print(*candidate.kernel.body)});
  }
  if (log_ == nullptr || records.empty() || unwritten_) return;
  if (Status status = log_->add(records, texts); !status.ok())
    unwritten_ = std::move(status).error();
}

}  // namespace hone
