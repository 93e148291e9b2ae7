#include "kernel/algorithms/loops.h"

namespace hone {
namespace {

// True if a reduction goes over segments: in a row it would take them side by side.
bool reduces_over_segments(const ScheduleSite& site) {
  return site.facts.divided >> site.parallel() != 0;
}

int most_rows(const ScheduleSite& site, const Schedule&) {
  return reduces_over_segments(site) ? 0 : site.parallel();
}

const CountDecision kRow("row", own_field<NestFields, &NestFields::row>(), 0.4, most_rows);

class Nest : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    const int row = schedule.get<NestFields>().row;
    HONE_TRY(check_loops(site, schedule));
    HONE_TRY(check_code(site, unrolled_statements(site, schedule)));
    HONE_TRY(check_work(site.facts.work));
    if (row < 0 || row > site.parallel())
      return bad_input("a row has {} of {} dims", row, site.parallel());
    if (row > 0 && reduces_over_segments(site))
      return unsupported("a row cannot reduce over segments of different lengths");
    if (row > 0 && row < schedule.threads)
      return bad_input("threads divide {} loops, but a row is inside of {}", schedule.threads, row);
    return {};
  }
  bool takes(const ScheduleSite& site) const override {
    return all_have_points(site) && check_work(site.facts.work).ok();
  }
  std::vector<const Decision*> decisions() const override {
    return {&kAnyOrder, &kThreads, &kLanes, &kUnroll, &kRow};
  }
  Schedule simplest(const ScheduleSite& site) const override { return plain_nest(site.parallel()); }
  uint64_t weight() const override { return 4; }
  bool is_for_stages() const override { return true; }
};

}  // namespace

const AlgorithmDef& algorithm_nest() {
  static const Nest def;
  return def;
}

}  // namespace hone
