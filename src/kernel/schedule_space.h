#pragma once

#include <functional>
#include <optional>

#include "kernel/algorithms/algorithm.h"

namespace hone {

// The schedules of a body on a target: every member passes check_schedule(). For a stage of a chain
// (stages.h) the members are those that stages may have. Domains: see Decision (algorithms/
// algorithm.h) and the files of the algorithms.
//
//   const KernelFacts facts(body);
//   const ScheduleSpace space(body, facts, target);
//   Schedule now = space.sample(rng);
//   for (const Schedule& next : space.neighbours(now)) ...
class ScheduleSpace {
 public:
  // All three have to outlive it.
  ScheduleSpace(const KernelBody& body, const KernelFacts& facts, const Target& target);

  // How many members there are; where there may be more than kMostCounted, a bound.
  static constexpr double kMostCounted = 1 << 17;
  double size() const;
  double size(Algorithm algorithm) const;  // of those by one algorithm
  // The decisions for an algorithm, in order: the field, and the most values that it has.
  struct OpenDecision {
    std::string_view name;
    double bound = 0;  // infinity: nobody counts them
  };
  std::vector<OpenDecision> decisions(
      Algorithm algorithm) const;  // none: it does not take the body
  // Visits each member once, until the visitor has enough; false: it had. Members may be rare:
  // `goes_on` is asked between them whether somebody still wants more.
  using GoesOn = std::function<bool()>;
  bool each(const ScheduleVisit& visit, const GoesOn& goes_on = {}) const;
  Schedules enumerate(size_t limit) const;

  // Any member can come up, simple ones more often than others.
  Schedule sample(Rng& rng) const;
  // Members that differ in one decision; none of a schedule whose algorithm does not take the body.
  // The simplest members of all algorithms are neighbours.
  Schedules neighbours(const Schedule& schedule) const;
  // The neighbours that differ in this decision of its algorithm, a number of decisions(). Behind
  // the last: the simplest members of the other algorithms.
  Schedules neighbours(const Schedule& schedule, size_t decision) const;
  // A member that differs in one decision, a step away or drawn anew; rarely the simplest of
  // another algorithm. None: it has found none.
  std::optional<Schedule> step(const Schedule& schedule, Rng& rng) const;
  // A child that has each decision from one of the two members; `a`, if none is found that fits.
  Schedule cross(const Schedule& a, const Schedule& b, Rng& rng) const;
  // Members that are simpler, the simplest first; none of the simplest member. Whoever takes one
  // after another of these comes to an end. The schedule itself need not be a member.
  Schedules simplify(const Schedule& schedule) const;
  // The simplest schedule of the first algorithm that takes the body.
  Schedule simplest() const;

  bool has(const Schedule& schedule) const;

 private:
  void add(Schedules& all, Schedules more, const Schedule& but) const;
  bool takes(const AlgorithmDef& def) const;
  bool each_of(const AlgorithmDef& def, const ScheduleVisit& visit,
               const GoesOn& goes_on = {}) const;

  const ScheduleSite site_;
  std::vector<const AlgorithmDef*> algorithms_;  // that may take the body
};

// A member of the space of a body.
Schedule random_schedule(const KernelBody& body, const Target& target, Rng& rng);

}  // namespace hone
