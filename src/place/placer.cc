#include "place/placer.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace hone {

#define HONE_PLACER(name, is_search, doc) void place_##name(PlaceRun& run);
#include "place/placers.def"
#undef HONE_PLACER

namespace {

constexpr PlacerRow kPlacers[] = {
#define HONE_PLACER(name, is_search, doc) {#name, doc, is_search, &place_##name},
#include "place/placers.def"
#undef HONE_PLACER
};

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::span<const PlacerRow> placers() { return kPlacers; }

Result<const PlacerRow*> find_placer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PlacerRow& row : kPlacers) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return bad_input("'{}' is not a placer", excerpt(name))
      .with_hint(fmt::format("there are {}", join(names, ", ")));
}

// ---- A run -------------------------------------------------------------------------------------

PlaceRun::PlaceRun(const PlaceJudge& judge, const PlaceOptions& options)
    : judge_(&judge),
      options_(&options),
      units_(judge),
      bounds_(place_bounds(judge)),
      least_(bounds_.of(options.goal)),
      rng_(options.seed),
      began_(clock_seconds()) {}

double PlaceRun::elapsed() const { return clock_seconds() - began_; }

bool PlaceRun::may_go_on() const {
  if (options_->cancel != nullptr && options_->cancel->cancelled()) return false;
  if (best_ <= least_) return false;
  if (options_->trials > 0 && trials_ >= options_->trials) return false;
  return elapsed() < options_->seconds;
}

bool PlaceRun::is_late() const {
  if (options_->cancel != nullptr && options_->cancel->cancelled()) return true;
  constexpr double kLeast = 1;  // seconds: a quick placer of usual graphs takes no more
  return options_->trials == 0 && seconds_here() > std::max(kLeast, options_->seconds);
}

double PlaceRun::progress() const {
  double share = options_->seconds > 0 ? elapsed() / options_->seconds : 1;
  if (options_->trials > 0)
    share = static_cast<double>(trials_) / static_cast<double>(options_->trials);
  return std::clamp(share, 0.0, 1.0);
}

void PlaceRun::find_ways() {
  const Topology topology(problem().system);
  for (uint32_t from = 0; from < problem().devices(); ++from)
    for (uint32_t to = 0; to < problem().devices(); ++to) {
      const std::vector<uint32_t> route = topology.route(from, to);
      Way way = {0, topology.latency(route)};
      for (const uint32_t link : route)
        way.per_byte = std::max(way.per_byte, 1 / topology.links()[link].bytes_per_second);
      ways_.push_back(way);
    }
}

double PlaceRun::judged(const DevicePlacement& placement) {
  count_trials(1);
  return judge_->value(placement, goal());
}

double PlaceRun::offer(const DevicePlacement& placement) {
  const double value = judged(placement);
  if (value == kCannotRun) last_unfit_ = placement;
  now_.value = std::min(now_.value, value);
  if (value >= best_) return value;
  best_ = value;
  placement_ = placement;
  by_ = now_.name;
  if (options_->better) options_->better(value, least_);
  return value;
}

void PlaceRun::build(const std::function<std::optional<DevicePlacement>(double share)>& build) {
  for (const double share : {1.0, 0.5, 0.25, 0.1, 0.0}) {
    const std::optional<DevicePlacement> made = build(share);
    if (!made && is_late()) {
      was_late_ = true;
      return note("there was no time");
    }
    if (made && offer(*made) != kCannotRun) return;
  }
}

void PlaceRun::begin(std::string_view name) {
  now_ = {};
  now_.name = name;
  now_began_ = elapsed();
}

void PlaceRun::end() {
  now_.seconds = elapsed() - now_began_;
  outcomes_.push_back(now_);
}

// It says what the last placement lacked that did not fit.
Error PlaceRun::no_room() const {
  if (was_late_ && !last_unfit_)
    return over_limit("there was no time for a placement").with_hint("give more --seconds");
  const Error none =
      over_limit("no placement was found that fits the memory of the devices")
          .with_hint("take more devices, devices with more memory, or more --seconds");
  if (!last_unfit_) return none;
  const Result<PlaceTimeline> timeline = judge_->timeline(*last_unfit_);
  if (!timeline.ok()) return timeline.error();
  const Status fits = judge_->check_memory(*last_unfit_, *timeline);
  if (fits.ok()) return none;
  return Error(fits.error()).about("no placement was found that fits the memory; of the last one");
}

Result<PlaceResult> place(const PlaceJudge& judge, const PlaceOptions& options) {
  const PlacerRow* only = options.by.empty() ? nullptr : HONE_TRY(find_placer(options.by));
  PlaceRun run(judge, options);
  const auto perform = [&](const PlacerRow& row) {
    run.begin(row.name);
    row.place(run);
    run.end();
  };
  if (options.start) {
    HONE_TRY(check(judge.problem(), *options.start));
    run.begin("start");
    run.offer(*options.start);
    run.end();
  }
  // A search begins at the best placement; alone it begins at a plain one.
  if (only == nullptr || (only->is_search && !run.has_best()))
    for (const PlacerRow& row : kPlacers) {
      const bool is_plain = row.name == "one" || row.name == "contiguous";
      if (!row.is_search && (only == nullptr || is_plain || !run.has_best())) perform(row);
    }
  if (only != nullptr)
    perform(*only);
  else if (run.has_best() && run.may_go_on())
    perform(**find_placer("annealing"));
  if (!run.has_best() && options.cancel != nullptr) HONE_TRY(options.cancel->check());
  if (!run.has_best()) return run.no_room();
  PlaceResult result;
  result.placement = run.best();
  result.value = run.best_value();
  result.bounds = run.bounds_;
  result.by = run.by_;
  result.placers = std::move(run.outcomes_);
  return result;
}

}  // namespace hone
