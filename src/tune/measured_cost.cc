#include "tune/measured_cost.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "kernel/schedule_text.h"
#include "measure/samples.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

struct Times {
  std::vector<Schedule> schedules;
  std::vector<double> seconds;
};
using Kernels = std::unordered_map<uint64_t, Times>;  // by hash

class MeasuredKernel : public PricedKernel {
 public:
  MeasuredKernel(std::shared_ptr<const Kernels> all, const Times& times,
                 std::unique_ptr<PricedKernel> otherwise)
      : all_(std::move(all)), times_(times), otherwise_(std::move(otherwise)) {
    std::vector<double> ratios(times.schedules.size());
    otherwise_->price(times.schedules, std::numeric_limits<double>::infinity(), ratios);
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = times.seconds[i] / ratios[i];
    const auto middle = ratios.begin() + std::ssize(ratios) / 2;
    std::ranges::nth_element(ratios, middle);
    ratio_ = *middle;
  }

  void price(std::span<const Schedule> schedules, double limit,
             std::span<double> seconds) override {
    otherwise_->price(schedules, limit / ratio_, seconds);
    for (size_t i = 0; i < schedules.size(); ++i) {
      const double* known = find(schedules[i]);
      seconds[i] = known != nullptr ? *known : ratio_ * seconds[i];
    }
  }
  std::vector<PriceTerm> terms(const Schedule& schedule) override {
    return find(schedule) != nullptr ? std::vector<PriceTerm>() : otherwise_->terms(schedule);
  }
  std::string_view source(const Schedule& schedule) override {
    return find(schedule) != nullptr ? "measured" : otherwise_->source(schedule);
  }

 private:
  const double* find(const Schedule& schedule) const {
    const auto at = std::ranges::find(times_.schedules, schedule);
    if (at == times_.schedules.end()) return nullptr;
    return &times_.seconds[static_cast<size_t>(at - times_.schedules.begin())];
  }

  const std::shared_ptr<const Kernels> all_;
  const Times& times_;  // one of them
  const std::unique_ptr<PricedKernel> otherwise_;
  double ratio_ = 1;
};

class MeasuredCost : public Cost {
 public:
  MeasuredCost(Kernels kernels, int64_t threads, std::shared_ptr<const Cost> otherwise)
      : kernels_(std::make_shared<const Kernels>(std::move(kernels))),
        threads_(threads),
        otherwise_(std::move(otherwise)) {}

  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    const auto known = kernels_->find(facts->hash);
    auto priced = otherwise_->kernel(std::move(facts), threads);
    if (known == kernels_->end() || threads != threads_) return priced;
    return std::make_unique<MeasuredKernel>(kernels_, known->second, std::move(priced));
  }
  double copy(double bytes) const override { return otherwise_->copy(bytes); }
  double command() const override { return otherwise_->command(); }

 private:
  const std::shared_ptr<const Kernels> kernels_;
  const int64_t threads_;
  const std::shared_ptr<const Cost> otherwise_;
};

}  // namespace

Result<Schedule> schedule_of(const std::string& choice) {
  TextParser text(choice, {.file = "schedule"});
  Schedule schedule = HONE_TRY(parse_schedule(text));
  if (text.peek().kind != TokenKind::end) return text.expected("the end of the schedule");
  return schedule;
}

Result<std::shared_ptr<const Cost>> measured_cost(const Log& log, const Target& target,
                                                  int64_t threads,
                                                  std::shared_ptr<const Cost> otherwise) {
  Kernels kernels;
  const std::string wanted = fmt::format(" threads={} ", threads);
  const Query query = {
      .kind = "kernel", .target = fingerprint(target), .outcome = Outcome::measured};
  HONE_TRY(log.visit(
      query,
      [&](const Record& record) -> Status {
        if ((" " + record.conditions + " ").find(wanted) == std::string::npos) return {};
        const Result<Schedule> schedule = schedule_of(record.choice);
        if (!schedule.ok()) return {};  // of another version of hone
        Times& times = kernels[record.subject];
        const auto at = std::ranges::find(times.schedules, *schedule);
        if (at != times.schedules.end()) {
          times.seconds[static_cast<size_t>(at - times.schedules.begin())] =
              typical(record.seconds);
          return {};
        }
        times.schedules.push_back(*schedule);
        times.seconds.push_back(typical(record.seconds));
        return {};
      }));
  return std::shared_ptr<const Cost>(
      std::make_shared<const MeasuredCost>(std::move(kernels), threads, std::move(otherwise)));
}

}  // namespace hone
