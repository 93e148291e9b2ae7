#include "tune/tune_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/hash.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "search/schedule_search.h"
#include "target/fingerprint.h"
#include "tune/refit.h"

namespace hone {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
constexpr size_t kFinalists = 3;
constexpr int64_t kFinalRounds = 18;
constexpr double kNearly = 1.01;   // TunedKernel::needed
constexpr double kSurely = 0.985;  // a gain of less may be noise

KernelTime typical_time(Outcome outcome, std::span<const double> seconds, double noise) {
  if (outcome != Outcome::measured) return {kNoTime, 0};
  return {typical(seconds), std::hypot(relative_noise(seconds), noise)};
}

double seconds_of(const Measured& measured) {
  return typical_time(measured.outcome, measured.seconds, 0).seconds;
}

// Prices schedules by measuring the most promising of each batch, by the Cost and what it was wrong
// about before. The others count as refused: they have no time that compares with those that were
// measured.
class MeasuredSchedules : public Pricer {
 public:
  MeasuredSchedules(ScheduleSearch& space, PricedKernel& price,
                    const std::shared_ptr<const KernelFacts>& facts, KernelMeter& meter,
                    MeasuredKernels& known, const Target& target, const TuneKernelOptions& options)
      : space_(space),
        price_(price),
        refit_(facts, target, options.meter.conditions.threads),
        body_(std::make_shared<const KernelBody>(facts->body)),
        meter_(meter),
        known_(known),
        target_(target),
        conditions_(options.meter.conditions.text()),
        measured_share_(options.measured_share),
        stepped_(options.stepped) {}

  Status price(std::span<const Point> points, double /*limit*/,
               std::span<double> seconds) override {
    std::vector<Schedule> schedules;
    for (Point point : points) schedules.push_back(space_.schedule(point));
    price_.price(schedules, kNoTime, seconds);
    const std::vector<double> prices(seconds.begin(), seconds.end());
    refit_.correct(schedules, seconds);
    std::vector<size_t> by_price(points.size());
    std::iota(by_price.begin(), by_price.end(), size_t{0});
    std::ranges::sort(by_price, {}, [&](size_t i) { return std::pair(seconds[i], i); });
    auto most =
        static_cast<size_t>(std::ceil(measured_share_ * static_cast<double>(points.size())));
    if (const std::optional<int64_t> worth = price_.worth_measuring())
      most = static_cast<size_t>(*worth);
    Round round;
    for (size_t i : by_price) {
      if (round.measured < most)
        HONE_TRY(look_up(points[i], i, seconds, round));
      else
        seconds[i] = kNoTime;
    }
    HONE_TRY(measure(seconds, round));
    for (size_t i : round.timed) {
      in_turn_.push_back(seconds[i]);
      if (std::isfinite(prices[i]) && std::isfinite(seconds[i]))
        refit_.keep(schedules[i], prices[i], seconds[i]);
    }
    return {};
  }
  size_t batch() const override { return 48; }
  int64_t compiles() const override { return meter_.compiles(); }

  // The candidates that were measured, the fastest first.
  std::vector<Point> fastest() const {
    std::vector<std::pair<double, Point>> sorted;
    for (const auto& [point, seconds] : times_) sorted.emplace_back(seconds, point);
    std::ranges::sort(sorted);
    std::vector<Point> points;
    for (const auto& [seconds, point] : sorted)
      if (seconds < kNoTime) points.push_back(point);
    return points;
  }
  size_t measured() const { return codes_.size(); }
  // How many until one was as fast as the fastest, or nearly.
  int64_t needed() const {
    if (in_turn_.empty()) return 0;
    const double enough = kNearly * *std::ranges::min_element(in_turn_);
    const auto first =
        std::ranges::find_if(in_turn_, [&](double seconds) { return seconds <= enough; });
    return first - in_turn_.begin() + 1;
  }

 private:
  struct Round {
    size_t measured = 0;
    std::vector<KernelCandidate> fresh = {};
    std::vector<std::pair<size_t, Point>> of = {};  // by candidate that is fresh
    std::vector<size_t> timed = {};                 // those of new code
  };

  Status look_up(Point point, size_t i, std::span<double> seconds, Round& round) {
    Result<KernelCandidate> candidate = candidate_of(body_, space_.schedule(point), target_);
    seconds[i] = kNoTime;
    if (!candidate.ok()) return {};
    const auto [code, is_new] = codes_.try_emplace(candidate->code, point);
    if (!is_new) {  // another spelling of the same loops
      seconds[i] = times_.contains(code->second) ? times_[code->second] : kNoTime;
      return {};
    }
    ++round.measured;
    round.timed.push_back(i);
    if (const std::optional<double> known =
            HONE_TRY(known_.seconds(candidate->code, conditions_))) {
      seconds[i] = times_[point] = *known;
      return {};
    }
    round.fresh.push_back(*std::move(candidate));
    round.of.emplace_back(i, point);
    return {};
  }

  Status measure(std::span<double> seconds, Round& round) {
    if (round.fresh.empty()) return {};
    const std::vector<Measured> results = HONE_TRY(meter_.race(round.fresh));
    known_.keep(conditions_, round.fresh, std::span(results).first(round.fresh.size()));
    for (size_t k = 0; k < round.fresh.size(); ++k)
      seconds[round.of[k].first] = times_[round.of[k].second] = seconds_of(results[k]);
    if (stepped_) stepped_(static_cast<int64_t>(codes_.size()));
    return {};
  }

  ScheduleSearch& space_;
  PricedKernel& price_;
  Refit refit_;
  const std::shared_ptr<const KernelBody> body_;
  KernelMeter& meter_;
  MeasuredKernels& known_;
  const Target& target_;
  const std::string conditions_;
  const double measured_share_;
  const std::function<void(int64_t)> stepped_;
  std::unordered_map<uint64_t, Point> codes_;
  std::map<Point, double> times_;
  std::vector<double> in_turn_;  // those of different code
};

}  // namespace

// ---- What is known ------------------------------------------------------------------------------

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

Result<std::optional<double>> MeasuredKernels::seconds(uint64_t code,
                                                       const std::string& conditions) {
  const std::optional<KernelTime> known = HONE_TRY(time(code, conditions));
  return known ? std::optional(known->seconds) : std::optional<double>();
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

// ---- Tuning -------------------------------------------------------------------------------------

Result<TunedKernel> tune_kernel(const std::shared_ptr<const KernelFacts>& facts,
                                const Schedule& start, const Target& target, const Cost& cost,
                                MeasuredKernels& known, const TuneKernelOptions& options) {
  const auto body = std::make_shared<const KernelBody>(facts->body);
  const Search& search =
      options.own_search != nullptr ? *options.own_search : *HONE_TRY(find_search(options.by));
  KernelCandidate champion = HONE_TRY(candidate_of(body, start, target));
  KernelMeter meter = HONE_TRY(KernelMeter::make(champion, target, options.meter));
  ScheduleSearch space(facts, target, start);
  const std::unique_ptr<PricedKernel> price = cost.kernel(facts, options.meter.conditions.threads);
  MeasuredSchedules measuring(space, *price, facts, meter, known, target, options);
  const SearchResult found = HONE_TRY(search.run(space, measuring, options.search));

  TunedKernel tuned{.schedule = start,
                    .trials = found.trials,
                    .measured = static_cast<int64_t>(measuring.measured()),
                    .needed = measuring.needed()};
  std::vector<KernelCandidate> finalists;
  for (Point point : measuring.fastest()) {
    if (finalists.size() == kFinalists) break;
    if (point != space.start())
      finalists.push_back(HONE_TRY(candidate_of(body, space.schedule(point), target)));
  }
  const std::vector<Measured> results = HONE_TRY(meter.race(finalists, kFinalRounds));
  tuned.seconds = tuned.before = seconds_of(results.back());
  std::vector<KernelCandidate> racers = finalists;
  racers.push_back(std::move(champion));
  known.keep(options.meter.conditions.text(), racers, results);
  std::multimap<double, Schedule> faster;
  for (size_t i = 0; i < finalists.size(); ++i)
    if (const double seconds = seconds_of(results[i]); seconds < tuned.before)
      faster.emplace(seconds, finalists[i].schedule);
  for (const auto& [seconds, schedule] : faster) tuned.faster.push_back(schedule);
  if (!faster.empty() && faster.begin()->first <= kSurely * tuned.before) {
    tuned.seconds = faster.begin()->first;
    tuned.schedule = tuned.faster.front();
  }
  tuned.compiles = meter.compiles();
  return tuned;
}

}  // namespace hone
