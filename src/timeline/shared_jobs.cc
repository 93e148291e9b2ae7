#include "timeline/shared_jobs.h"

namespace hone {

uint32_t SharedJobs::set(std::vector<bool> devices) {
  HONE_CHECK(devices.size() == devices_, "a set of {} devices, not {}", devices.size(), devices_);
  if (std::vector(devices_, true) == devices) return DeviceJob::kAll;
  const auto [at, is_new] =
      sets_.try_emplace(std::move(devices), static_cast<uint32_t>(program_.sets.size()));
  if (is_new) program_.sets.push_back(at->first);
  return at->second;
}

uint32_t SharedJobs::pattern(Pattern pattern) {
  const auto [at, is_new] =
      patterns_.try_emplace(std::move(pattern), static_cast<uint32_t>(program_.patterns.size()));
  if (is_new) program_.patterns.push_back(at->first);
  return at->second;
}

uint32_t SharedJobs::compute(uint32_t doers, std::vector<double> seconds,
                             std::vector<uint32_t> after) {
  return add({.doers = doers, .seconds = std::move(seconds), .after = std::move(after)});
}

uint32_t SharedJobs::send(uint32_t doers, uint32_t pattern, double bytes) {
  return add({.doers = doers, .pattern = pattern, .bytes = bytes});
}

uint32_t SharedJobs::join(uint32_t doers, std::vector<uint32_t> after, std::vector<uint32_t> got) {
  return add(
      {.doers = doers, .queue = Job::kNoQueue, .after = std::move(after), .got = std::move(got)});
}

uint32_t SharedJobs::add(DeviceJob job) {
  program_.jobs.push_back(std::move(job));
  name_of_.push_back(static_cast<uint32_t>(names_.size() - 1));
  return static_cast<uint32_t>(program_.jobs.size() - 1);
}

}  // namespace hone
