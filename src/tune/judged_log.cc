#include "tune/judged_log.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "kernel/kernel_text.h"
#include "learn/kernel_data.h"
#include "learn/ranking.h"
#include "measure/samples.h"
#include "target/fingerprint.h"
#include "tune/kernel_meter.h"

namespace hone {
namespace {

// The last time of each schedule of a kernel.
Result<std::map<std::string, double>> times_of(const Log& log, const LogGroup& group) {
  std::map<std::string, double> times;
  for (const Record& record : HONE_TRY(log.find({.kind = "kernel",
                                                 .subject = group.subject,
                                                 .target = group.target,
                                                 .conditions = group.conditions,
                                                 .outcome = Outcome::measured})))
    if (!record.seconds.empty()) times[record.choice] = typical(record.seconds);
  return times;
}

void judge_kernel(const std::map<std::string, double>& times, const KernelBody& body,
                  const Target& target, const Cost& cost, LogVerdict& sum) {
  std::vector<Schedule> schedules;
  std::vector<double> seconds;
  for (const auto& [choice, time] : times) {
    Result<Schedule> schedule = schedule_of(choice);
    if (!schedule.ok() || !check_schedule(body, *schedule, target).ok()) continue;
    schedules.push_back(*std::move(schedule));
    seconds.push_back(time);
  }
  if (seconds.size() < kLeastOfVerdict) return;
  std::vector<double> prices(seconds.size());
  cost.kernel(std::make_shared<const KernelFacts>(body), 1)
      ->price(schedules, std::numeric_limits<double>::infinity(), prices);
  ++sum.kernels;
  sum.schedules += seconds.size();
  sum.regret += regret(prices, seconds, 1) - 1;
  sum.tau += kendall_tau(prices, seconds);
}

}  // namespace

Result<LogVerdict> judge_by_log(const Log& log, const Target& target, const Cost& cost,
                                size_t most) {
  LogVerdict sum;
  // Whatever inputs are cold.
  const std::string usual = MeterConditions{}.text(),
                    one_thread = usual.substr(0, usual.find(" cold"));
  for (const LogGroup& group :
       HONE_TRY(log.groups({.kind = "kernel", .target = fingerprint(target)}))) {
    if (sum.kernels == most) break;
    if (!group.conditions.starts_with(one_thread + " ")) continue;
    if (group.choices < static_cast<int64_t>(kLeastOfVerdict)) continue;
    const std::optional<std::string> text = HONE_TRY(log.text("kernel", group.subject));
    if (!text) continue;
    const Result<KernelBody> body = parse_kernel(*text, "log");
    if (body.ok()) judge_kernel(HONE_TRY(times_of(log, group)), *body, target, cost, sum);
  }
  const double count = std::max<double>(static_cast<double>(sum.kernels), 1);
  sum.regret /= count;
  sum.tau /= count;
  return sum;
}

}  // namespace hone
