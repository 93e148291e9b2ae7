#include "kernel/schedule_space.h"

#include <algorithm>
#include <numeric>

namespace hone {
namespace {

constexpr int kMaxTries = 16;
constexpr double kOtherAlgorithm = 0.03;  // the share of steps that lead there

bool each_from(const ScheduleSite& site, std::span<const Decision* const> left,
               const Schedule& so_far, const ScheduleVisit& visit) {
  if (left.empty()) return visit(so_far);
  return left[0]->each(site, so_far, [&](const Schedule& next) {
    return each_from(site, left.subspan(1), next, visit);
  });
}

bool is_simplest(const ScheduleSite& site, const AlgorithmDef& def, const Schedule& schedule) {
  return std::ranges::all_of(def.decisions(), [&](const Decision* decision) {
    return decision->simpler(site, schedule).empty();
  });
}

}  // namespace

ScheduleSpace::ScheduleSpace(const KernelBody& body, const KernelFacts& facts, const Target& target)
    : site_{body, facts, target} {
  for (Algorithm algorithm : kAlgorithms) {
    const AlgorithmDef& def = def_of(algorithm);
    if (def.takes(site_) && (!site_.is_stage() || def.is_for_stages())) algorithms_.push_back(&def);
  }
}

bool ScheduleSpace::has(const Schedule& schedule) const {
  const AlgorithmDef& def = def_of(schedule.algorithm());
  if (site_.is_stage() && (schedule.threads > 0 || !def.is_for_stages())) return false;
  return def.check(site_, schedule).ok();
}

bool ScheduleSpace::takes(const AlgorithmDef& def) const {
  return std::ranges::find(algorithms_, &def) != algorithms_.end();
}

std::vector<ScheduleSpace::OpenDecision> ScheduleSpace::decisions(Algorithm algorithm) const {
  std::vector<OpenDecision> open;
  const AlgorithmDef& def = def_of(algorithm);
  if (!takes(def)) return open;
  for (const Decision* decision : def.decisions())
    open.push_back({decision->name(), decision->bound(site_)});
  return open;
}

double ScheduleSpace::size() const {
  double members = 0;
  for (Algorithm algorithm : kAlgorithms) members += size(algorithm);
  return members;
}

double ScheduleSpace::size(Algorithm algorithm) const {
  const AlgorithmDef& def = def_of(algorithm);
  if (!takes(def)) return 0;
  double bound = 1, members = 0;
  for (const Decision* decision : def.decisions()) bound *= decision->bound(site_);
  if (bound > kMostCounted) return bound;
  each_of(def, [&](const Schedule&) { return ++members <= kMostCounted; });
  return members;
}

bool ScheduleSpace::each(const ScheduleVisit& visit, const GoesOn& goes_on) const {
  return std::ranges::all_of(
      algorithms_, [&](const AlgorithmDef* def) { return each_of(*def, visit, goes_on); });
}

bool ScheduleSpace::each_of(const AlgorithmDef& def, const ScheduleVisit& visit,
                            const GoesOn& goes_on) const {
  return each_from(site_, def.decisions(), def.simplest(site_), [&](const Schedule& schedule) {
    if (has(schedule)) return visit(schedule);
    return !goes_on || goes_on();
  });
}

Schedules ScheduleSpace::enumerate(size_t limit) const {
  Schedules all;
  if (limit == 0) return all;
  each([&](const Schedule& schedule) {
    all.push_back(schedule);
    return all.size() < limit;
  });
  return all;
}

Schedule ScheduleSpace::simplest() const {
  for (const AlgorithmDef* def : algorithms_)
    if (const Schedule schedule = def->simplest(site_); has(schedule)) return schedule;
  return {};
}

Schedule ScheduleSpace::sample(Rng& rng) const {
  uint64_t weights = 0;
  for (const AlgorithmDef* def : algorithms_) weights += def->weight();
  for (int i = 0; i < kMaxTries && weights > 0; ++i) {
    uint64_t drawn = rng.below(weights);
    auto def = algorithms_.begin();
    for (; drawn >= (*def)->weight(); ++def) drawn -= (*def)->weight();
    Schedule schedule = (*def)->simplest(site_);
    for (const Decision* decision : (*def)->decisions()) decision->draw(site_, schedule, rng);
    if (has(schedule)) return schedule;
  }
  return simplest();
}

void ScheduleSpace::add(Schedules& all, Schedules more, const Schedule& but) const {
  for (Schedule& each : more)
    if (each != but && std::ranges::find(all, each) == all.end() && has(each))
      all.push_back(std::move(each));
}

Schedules ScheduleSpace::neighbours(const Schedule& schedule) const {
  Schedules all;
  const AlgorithmDef& own = def_of(schedule.algorithm());
  if (!own.takes(site_)) return all;
  for (const Decision* decision : own.decisions())
    add(all, decision->near(site_, schedule), schedule);
  if (schedule == own.simplest(site_))
    for (const AlgorithmDef* def : algorithms_) add(all, {def->simplest(site_)}, schedule);
  return all;
}

Schedules ScheduleSpace::neighbours(const Schedule& schedule, size_t decision) const {
  Schedules all;
  const AlgorithmDef& own = def_of(schedule.algorithm());
  const std::vector<const Decision*> decisions = own.decisions();
  if (decision < decisions.size()) {
    if (takes(own)) add(all, decisions[decision]->near(site_, schedule), schedule);
  } else {
    for (const AlgorithmDef* def : algorithms_)
      if (def != &own) add(all, {def->simplest(site_)}, schedule);
  }
  return all;
}

std::optional<Schedule> ScheduleSpace::step(const Schedule& schedule, Rng& rng) const {
  const AlgorithmDef& own = def_of(schedule.algorithm());
  std::vector<const Decision*> decisions;
  if (takes(own)) decisions = own.decisions();
  for (int i = 0; i < kMaxTries && !algorithms_.empty(); ++i) {
    Schedule next = schedule;
    if (decisions.empty() || rng.chance(kOtherAlgorithm)) {
      next = rng.pick(algorithms_)->simplest(site_);
    } else if (const Decision* decision = rng.pick(decisions); rng.chance(0.5)) {
      decision->draw(site_, next, rng);
    } else if (const Schedules near = decision->near(site_, schedule); !near.empty()) {
      next = rng.pick(near);
    }
    if (next != schedule && has(next)) return next;
  }
  return std::nullopt;
}

Schedule ScheduleSpace::cross(const Schedule& a, const Schedule& b, Rng& rng) const {
  for (int i = 0; i < kMaxTries; ++i) {
    Schedule child = a;
    for (const Decision* decision : def_of(a.algorithm()).decisions())
      if (rng.chance(0.5)) decision->copy(b, child, rng);
    if (has(child)) return child;
  }
  return a;
}

Schedules ScheduleSpace::simplify(const Schedule& schedule) const {
  const AlgorithmDef& own = def_of(schedule.algorithm());
  Schedules all;
  for (const AlgorithmDef* def : algorithms_) {
    if (def == &own) break;
    add(all, {def->simplest(site_)}, schedule);
  }
  if (!own.takes(site_)) return all;
  if (const Schedule least = own.simplest(site_); is_simplest(site_, own, least))
    add(all, {least}, schedule);
  for (const Decision* decision : own.decisions())
    add(all, decision->simpler(site_, schedule), schedule);
  return all;
}

Schedule random_schedule(const KernelBody& body, const Target& target, Rng& rng) {
  const KernelFacts facts(body);
  return ScheduleSpace(body, facts, target).sample(rng);
}

}  // namespace hone
