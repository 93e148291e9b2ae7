#pragma once

#include "kernel/algorithms/algorithm.h"

// Kinds of decisions, by the type of their field.

namespace hone {

// A field of a schedule: null in schedules that do not have it.
template <class T>
using FieldOf = T* (*)(Schedule&);

template <class Fields, auto member>
constexpr auto own_field() {
  return [](Schedule& s) {
    auto* own = s.if_is<Fields>();
    return own == nullptr ? nullptr : &(own->*member);
  };
}
template <auto member>
constexpr auto shared_field() {
  return [](Schedule& s) { return &(s.*member); };
}

template <class T>
class FieldDecision : public Decision {
 public:
  constexpr FieldDecision(std::string_view name, FieldOf<T> field) : name_(name), field_(field) {}
  std::string_view name() const override { return name_; }
  void copy(const Schedule& from, Schedule& to, Rng&) const override {
    T* target = field_(to);
    if (const T* value = get(from); value != nullptr && target != nullptr) *target = *value;
  }

 protected:
  const T* get(const Schedule& schedule) const { return field_(const_cast<Schedule&>(schedule)); }
  T& get(Schedule& schedule) const { return *field_(schedule); }
  Schedule with(const Schedule& schedule, T value) const {
    Schedule changed = schedule;
    get(changed) = std::move(value);
    return changed;
  }

 private:
  std::string_view name_;
  FieldOf<T> field_;
};

// 0 to a most.
class CountDecision : public FieldDecision<int> {
 public:
  using Most = int (*)(const ScheduleSite&, const Schedule& so_far);
  constexpr CountDecision(std::string_view name, FieldOf<int> field, double chance, Most most)
      : FieldDecision(name, field), chance_(chance), most_(most) {}
  double bound(const ScheduleSite& site) const override;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override;
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override;
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override;
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override;

 private:
  double chance_;  // of other than 0, when it is drawn
  Most most_;
};

// One of a few numbers; the first is the simplest. The body may allow fewer.
class NumberDecision : public FieldDecision<int> {
 public:
  using Numbers = std::vector<int> (*)(const ScheduleSite&);  // at least one
  constexpr NumberDecision(std::string_view name, FieldOf<int> field, Numbers numbers)
      : FieldDecision(name, field), numbers_(numbers) {}
  double bound(const ScheduleSite& site) const override;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override;
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override;
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override;
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override;

 private:
  Numbers numbers_;
};

class PackingDecision : public FieldDecision<Packing> {
 public:
  using FieldDecision::FieldDecision;
  double bound(const ScheduleSite& site) const override;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override;
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override;
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override;
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override;
};

// Permutations of the results' dims. `last` of them, if it is there, stays the innermost.
class OrderDecision : public FieldDecision<std::vector<int>> {
 public:
  using Last = int (*)(const ScheduleSite&);
  explicit constexpr OrderDecision(Last last = nullptr)
      : FieldDecision("order", shared_field<&Schedule::order>()), last_(last) {}
  // In ascending order, but for the last.
  std::vector<int> simplest(const ScheduleSite& site) const;
  double bound(const ScheduleSite& site) const override;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override;
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override;
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override;
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override;

 private:
  int moving(const ScheduleSite& site) const;  // the number of dims that are permuted
  Last last_;
};

// The counts that a tile may have, in ascending order: first, first + step, ... or doubled each
// time.
struct Counts {
  int64_t first = 1;
  int64_t step = 1;
  int64_t size = 0;
  bool doubles = false;

  int64_t at(int64_t i) const { return doubles ? first << i : first + i * step; }
  // The position of the largest that is at most n; -1: none.
  int64_t find(int64_t n) const;
};

// Tiles of different dims, in the order of dims.
class TileDecision : public FieldDecision<std::vector<Tile>> {
 public:
  struct Domain {
    Counts (*counts)(const ScheduleSite&, const Schedule& so_far, int dim);
    // True if tiles may stand beside each other; fewer or smaller ones may then, too.
    bool (*fit)(const ScheduleSite&, const std::vector<Tile>&);
    void (*draw)(const ScheduleSite&, const Schedule& so_far, std::vector<Tile>&, Rng&);
  };
  constexpr TileDecision(std::string_view name, FieldOf<std::vector<Tile>> field, Domain domain)
      : FieldDecision(name, field), domain_(domain) {}
  double bound(const ScheduleSite& site) const override;
  bool each(const ScheduleSite& site, const Schedule& so_far,
            const ScheduleVisit& visit) const override;
  void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const override;
  Schedules near(const ScheduleSite& site, const Schedule& schedule) const override;
  Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const override;

 private:
  bool each_from(const ScheduleSite& site, Schedule& so_far, int dim,
                 const ScheduleVisit& visit) const;
  Domain domain_;
};

}  // namespace hone
