#include "tune/kernel_timer.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr size_t kRacedAtOnce = 16;  // in a race of what has a time already

}  // namespace

KernelTimer::KernelTimer(std::shared_ptr<const KernelFacts> facts, const Schedule& start,
                         const Target& target, MeasuredKernels& known, const MeterOptions& options)
    : body_(std::make_shared<const KernelBody>(facts->body)),
      start_(start),
      target_(target),
      known_(known),
      options_(options),
      conditions_(options.conditions.text()),
      timed_{.facts = std::move(facts), .schedules = {}, .seconds = {}} {}

Result<std::vector<KernelTimer::Answer>> KernelTimer::ask(std::span<const Schedule> schedules,
                                                          size_t most) {
  std::vector<Answer> answers(schedules.size());
  std::vector<KernelCandidate> fresh;
  std::vector<std::pair<size_t, uint64_t>> codes;  // of answers
  size_t count = 0;
  for (size_t i = 0; i < schedules.size() && count < most; ++i) {
    Result<KernelCandidate> candidate = candidate_of(body_, schedules[i], target_);
    if (!candidate.ok()) continue;
    codes.emplace_back(i, candidate->code);
    if (by_code_.contains(candidate->code)) continue;
    answers[i].is_new = true;
    ++count;
    const std::optional<KernelTime> known =
        HONE_TRY(known_.recall(*candidate, conditions_, schedules[i] == start_));
    if (known) {
      note(*candidate, {known->seconds, known->noise});
    } else {
      by_code_[candidate->code] = kNoTime;
      fresh.push_back(*std::move(candidate));
    }
  }
  if (!fresh.empty()) {
    const std::vector<Taken> taken = HONE_TRY(measure(fresh));
    for (size_t i = 0; i < taken.size(); ++i) note(fresh[i], taken[i]);
  }
  for (const auto& [i, code] : codes) answers[i].seconds = by_code_.at(code);
  return answers;
}

Result<std::vector<double>> KernelTimer::seconds(std::span<const Schedule> schedules) {
  std::vector<double> seconds;
  for (const Answer& answer : HONE_TRY(ask(schedules))) seconds.push_back(answer.seconds);
  return seconds;
}

Result<std::vector<double>> KernelTimer::again(std::span<const Schedule> schedules,
                                               int64_t rounds) {
  const std::vector<KernelCandidate> candidates = HONE_TRY(candidates_of(schedules));
  const std::vector<Taken> taken = HONE_TRY(measure(candidates, rounds));
  std::vector<double> seconds(schedules.size(), kNoTime);
  std::ranges::transform(taken, seconds.begin(), &Taken::seconds);
  return seconds;
}

Result<std::vector<KernelCandidate>> KernelTimer::candidates_of(
    std::span<const Schedule> schedules) const {
  std::vector<KernelCandidate> candidates;
  for (const Schedule& schedule : schedules)
    candidates.push_back(HONE_TRY(candidate_of(body_, schedule, target_)));
  return candidates;
}

Status KernelTimer::make_meter() {
  if (!meter_)
    meter_.emplace(HONE_TRY(
        KernelMeter::make(HONE_TRY(candidate_of(body_, start_, target_)), target_, options_)));
  return {};
}

Result<KernelTimer::Race> KernelTimer::race(std::span<const KernelCandidate> candidates,
                                            int64_t rounds) {
  if (!options_.compares_races()) {
    Race alone{.results = HONE_TRY(meter_->race(candidates, rounds))};
    return alone;
  }
  // The first race has none before it that would show its drift. For one kernel in ten it is slower
  // by a quarter and more. So it only says what the start can reach.
  if (!std::isfinite(least_of_start_)) {
    const std::vector<Measured> first = HONE_TRY(meter_->race({}));
    least_of_start_ = typical(first.back().seconds);
  }
  for (int attempt = 0; attempt < kMostRaces; ++attempt) {
    Race race{.results = HONE_TRY(meter_->race(candidates, rounds))};
    const double start = typical(race.results.back().seconds);
    least_of_start_ = std::min(least_of_start_, start);
    race.drift = start / least_of_start_ - 1;
    if (race.drift < options_.most_drift - 1) return race;
  }
  ++refused_;
  return Race();
}

Result<std::vector<KernelTimer::Taken>> KernelTimer::measure(
    std::span<const KernelCandidate> candidates, int64_t rounds) {
  HONE_TRY(make_meter());
  // The start is measured in any case; if it is asked for, it has no second entry.
  const uint64_t champion = meter_->champion().code;
  std::vector<KernelCandidate> others;
  for (const KernelCandidate& each : candidates)
    if (each.code != champion) others.push_back(each);
  // Alone it would be the first at a place in every round: it races itself.
  if (others.empty()) others.push_back(meter_->champion());
  const Race race = HONE_TRY(this->race(others, rounds));
  std::vector<Taken> taken;
  if (race.results.empty()) return taken;
  if (others.size() < candidates.size()) others.push_back(meter_->champion());
  known_.keep(conditions_, others, std::span(race.results).first(others.size()), race.drift);
  const double start = typical(race.results.back().seconds);
  for (const KernelCandidate& each : candidates) {
    const KernelTime time = HONE_TRY(known_.time(each.code, conditions_)).value();
    taken.push_back({time.seconds, time.noise, start});
  }
  return taken;
}

Status KernelTimer::renew(double most_noise) {
  std::vector<size_t> doubtful;
  for (size_t i = 0; i < taken_.size(); ++i)
    if (is_doubtful(taken_[i], most_noise, least_of_start_, options_.most_drift))
      doubtful.push_back(i);
  for (size_t at = 0; at < doubtful.size(); at += kRacedAtOnce) {
    const auto some = std::span(doubtful).subspan(at, std::min(kRacedAtOnce, doubtful.size() - at));
    std::vector<Schedule> schedules;
    for (size_t i : some) schedules.push_back(timed_.schedules[i]);
    const std::vector<KernelCandidate> candidates = HONE_TRY(candidates_of(schedules));
    const std::vector<Taken> taken = HONE_TRY(measure(candidates));
    for (size_t k = 0; k < taken.size(); ++k)
      if (std::isfinite(taken[k].seconds)) {
        by_code_[candidates[k].code] = timed_.seconds[some[k]] = taken[k].seconds;
        taken_[some[k]] = taken[k];
      }
  }
  return {};
}

Status KernelTimer::repeat() {
  const std::span<const Schedule> all = timed_.schedules;
  for (size_t at = 0; at < all.size(); at += kRacedAtOnce) {
    const auto some = all.subspan(at, std::min(kRacedAtOnce, all.size() - at));
    HONE_TRY(measure(HONE_TRY(candidates_of(some))));
  }
  return {};
}

size_t KernelTimer::certain(double most_noise) const {
  if (taken_.empty() || taken_[0].noise > most_noise) return 0;
  return static_cast<size_t>(
      std::ranges::count_if(taken_, [&](const Taken& each) { return each.noise <= most_noise; }));
}

void KernelTimer::note(const KernelCandidate& candidate, const Taken& taken) {
  by_code_[candidate.code] = taken.seconds;
  if (!std::isfinite(taken.seconds) || !(taken.seconds > 0)) return;
  timed_.schedules.push_back(candidate.schedule);
  timed_.seconds.push_back(taken.seconds);
  taken_.push_back(taken);
}

}  // namespace hone
