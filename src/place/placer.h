#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/rng.h"
#include "place/bounds.h"
#include "place/units.h"

// Ways to place the nodes of a problem, behind one interface: rows of placers.def. All have the
// same judge and the same clock, and keep to the memory of devices.

namespace hone {

class PlacePolicy;

// Programs of others, and a folder for their files; empty: there is none.
struct PlaceSolver {
  std::filesystem::path program;  // CBC: linear and integer programs
  std::filesystem::path metis;    // gpmetis: parts of graphs
  std::filesystem::path scratch;
};

struct PlaceOptions {
  PlaceGoal goal = PlaceGoal::step;
  std::string by = {};  // a row of placers.def; empty: the quick ones, then annealing
  double seconds = 10;  // from the start; none: no search, only what is quick
  int64_t trials = 0;   // placements that searches judge; 0: no limit
  uint64_t seed = 0;
  std::optional<DevicePlacement> start = {};  // a placement that is known
  const PlacePolicy* policy = nullptr;        // null: the one that comes with hone
  PlaceSolver solver = {};
  const CancelToken* cancel = nullptr;
  // Called when a better one is found: its value and the bound.
  std::function<void(double, double)> better = {};
};

// The outcome of one placer.
struct PlacerOutcome {
  std::string_view name;
  double value = kCannotRun;  // seconds; kCannotRun: nothing that fits
  double seconds = 0;         // that it took
  int64_t trials = 0;
  std::string note;  // "not exact: more than 60000 ideals"; may be empty
};

struct PlaceResult {
  DevicePlacement placement;
  double value = 0;  // of the goal, by the judge
  PlaceBounds bounds;
  std::string_view by;                 // the placer that found it
  std::vector<PlacerOutcome> placers;  // in the order in which they ran

  // How far it may be above the least, relative to it.
  double gap(PlaceGoal goal) const {
    return value > 0 ? std::max(0.0, 1 - bounds.of(goal) / value) : 0;
  }
};

// The best placement of a problem that has passed check(). With `trials` and time enough the same
// seed gives the same one. Over the limit: none was found that fits the memory; it says of the
// last one how much is too much.
Result<PlaceResult> place(const PlaceJudge& judge, const PlaceOptions& options);

// ---- For placers -------------------------------------------------------------------------------

// A run of placers: the best so far, and whether they may go on.
class PlaceRun {
 public:
  PlaceRun(const PlaceJudge& judge, const PlaceOptions& options);

  const PlaceJudge& judge() const { return *judge_; }
  const PlaceProblem& problem() const { return judge_->problem(); }
  const PlaceUnits& units() const { return units_; }
  const PlaceOptions& options() const { return *options_; }
  PlaceGoal goal() const { return options_->goal; }
  Rng& rng() { return rng_; }

  // True if there is time and nobody cancelled, and the best may still get better.
  bool may_go_on() const;
  // True if a quick placer is to give up. Time does not count where trials do: the same number of
  // them gives the same placement.
  bool is_late() const;
  double seconds_here() const { return elapsed() - now_began_; }  // of the placer at hand
  // The share of the time that has passed, or of the trials.
  double progress() const;

  // The time of a message from device to device that has its way to itself.
  struct Way {
    double per_byte = 0, latency = 0;  // seconds
  };
  const Way& way(uint32_t from, uint32_t to) {
    if (ways_.empty()) find_ways();
    return ways_[size_t{from} * problem().devices() + to];
  }

  // Judges it, and keeps it if it is the best so far; gives its value.
  double offer(const DevicePlacement& placement);
  double offer(const std::vector<uint32_t>& device_of_unit) {
    return offer(units_.placement(device_of_unit));
  }
  // Judges it only. Counts as a trial, as offers do.
  double judged(const DevicePlacement& placement);
  void note(std::string text) { now_.note = std::move(text); }
  void count_trials(int64_t count) { now_.trials += count, trials_ += count; }

  bool has_best() const { return best_ != kCannotRun; }
  const DevicePlacement& best() const { return placement_; }
  double best_value() const { return best_; }

  // Builds a placement with ever smaller shares of what comes and goes counted as held, until one
  // fits. build(share) gives none if something has no room.
  void build(const std::function<std::optional<DevicePlacement>(double share)>& build);

 private:
  friend Result<PlaceResult> place(const PlaceJudge& judge, const PlaceOptions& options);
  double elapsed() const;
  void find_ways();
  void begin(std::string_view name);
  void end();
  Error no_room() const;

  const PlaceJudge* judge_;
  const PlaceOptions* options_;
  PlaceUnits units_;
  PlaceBounds bounds_;
  double least_;  // no value is below
  Rng rng_;
  double began_;
  int64_t trials_ = 0;
  DevicePlacement placement_;
  double best_ = kCannotRun;
  std::string_view by_;
  PlacerOutcome now_;
  double now_began_ = 0;
  std::vector<PlacerOutcome> outcomes_;
  std::optional<DevicePlacement> last_unfit_;
  bool was_late_ = false;  // a placer gave up
  std::vector<Way> ways_;
};

struct PlacerRow {
  std::string_view name;
  std::string_view doc;
  bool is_search = false;  // it takes all the time that it gets
  void (*place)(PlaceRun& run) = nullptr;
};
std::span<const PlacerRow> placers();
// An unknown name is refused with the list of what there is.
Result<const PlacerRow*> find_placer(std::string_view name);

}  // namespace hone
