#include "tune/measured_cost.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include "learn/kernel_data.h"
#include "measure/samples.h"
#include "target/fingerprint.h"

namespace hone {
namespace {

struct Times {
  std::vector<Schedule> schedules;
  std::vector<double> seconds;

  void keep(const Schedule& schedule, double time) {
    const auto at = std::ranges::find(schedules, schedule);
    if (at != schedules.end()) {
      seconds[static_cast<size_t>(at - schedules.begin())] = time;
      return;
    }
    schedules.push_back(schedule);
    seconds.push_back(time);
  }
};
using Kernels = std::map<std::pair<int64_t, uint64_t>, Times>;  // by threads and hash

// The number in the conditions of a record; 0 if they have none.
int64_t threads_in(const std::string& conditions) {
  constexpr std::string_view kWord = " threads=";
  const std::string words = " " + conditions;
  const size_t at = words.find(kWord);
  int64_t threads = 0;
  if (at != std::string::npos)
    std::from_chars(words.data() + at + kWord.size(), words.data() + words.size(), threads);
  return threads;
}

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
  std::optional<int64_t> worth_measuring() const override { return otherwise_->worth_measuring(); }
  // Times of the log are sure.
  bool is_surely_cheaper(const Schedule& other, const Schedule& usual) override {
    const double* const a = find(other);
    const double* const b = find(usual);
    return a != nullptr && b != nullptr ? *a < *b : otherwise_->is_surely_cheaper(other, usual);
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
  MeasuredCost(std::shared_ptr<const Kernels> kernels, std::shared_ptr<const Cost> otherwise)
      : kernels_(std::move(kernels)), otherwise_(std::move(otherwise)) {
    if (const Cost* baseline = otherwise_->baseline())
      baseline_ = std::make_unique<MeasuredCost>(kernels_,
                                                 std::shared_ptr<const Cost>(otherwise_, baseline));
  }

  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    const auto known = kernels_->find({threads, facts->hash});
    auto priced = otherwise_->kernel(std::move(facts), threads);
    if (known == kernels_->end()) return priced;
    return std::make_unique<MeasuredKernel>(kernels_, known->second, std::move(priced));
  }
  double copy(double bytes) const override { return otherwise_->copy(bytes); }
  double command() const override { return otherwise_->command(); }
  const Cost* baseline() const override { return baseline_.get(); }
  const LearnedCost* learned() const override { return otherwise_->learned(); }

 private:
  const std::shared_ptr<const Kernels> kernels_;
  const std::shared_ptr<const Cost> otherwise_;
  std::unique_ptr<const MeasuredCost> baseline_;  // the same times, else the other's baseline
};

}  // namespace

Result<std::shared_ptr<const Cost>> measured_cost(const Log& log, const Target& target,
                                                  std::shared_ptr<const Cost> otherwise) {
  struct Known {
    std::map<std::string, Times> by_conditions;
    std::string last;  // conditions
  };
  std::map<std::pair<int64_t, uint64_t>, Known> known;
  const Query query = {
      .kind = "kernel", .target = fingerprint(target), .outcome = Outcome::measured};
  HONE_TRY(log.visit(
      query,
      [&](const Record& record) -> Status {
        const Result<Schedule> schedule = schedule_of(record.choice);
        if (!schedule.ok()) return {};  // of another version of hone
        Known& of_kernel = known[{threads_in(record.conditions), record.subject}];
        of_kernel.last = record.conditions;
        of_kernel.by_conditions[record.conditions].keep(*schedule, typical(record.seconds));
        return {};
      }));
  Kernels kernels;
  for (auto& [kernel, its] : known) kernels[kernel] = std::move(its.by_conditions[its.last]);
  return std::shared_ptr<const Cost>(std::make_shared<const MeasuredCost>(
      std::make_shared<const Kernels>(std::move(kernels)), std::move(otherwise)));
}

}  // namespace hone
