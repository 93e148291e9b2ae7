#include "place/joint.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "place/sort_by.h"

namespace hone {
namespace {

// As in the walks of placers (walks.cc).
constexpr double kJointHot = 0.03, kJointCold = 2e-5;  // of the value

double joint_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A problem with fusions made, and its judge.
struct JudgedFusions {
  FusedProblem fused;
  PlaceJudge judge;

  JudgedFusions(const PlaceProblem& problem, std::span<const uint8_t> wanted)
      : fused(fused_problem(problem, wanted)), judge(fused.problem) {}

  // Decisions of the given problem's nodes, as those of the fused ones: what the last node has.
  DevicePlacement of(const DevicePlacement& whole) const {
    DevicePlacement part;
    for (const uint32_t node : fused.last_of) {
      part.device.push_back(whole.device[node]);
      if (!whole.priority.empty()) part.priority.push_back(whole.priority[node]);
    }
    return part;
  }
};

// ---- A walk ------------------------------------------------------------------------------------

class JointWalk {
 public:
  JointWalk(const PlaceProblem& problem, const JointPlacement& start, const JointMoves& moves,
            const JointOptions& options)
      : problem_(problem),
        devices_(place_devices(problem)),
        moves_(moves),
        options_(options),
        rng_(options.seed),
        began_(joint_clock()),
        now_(start),
        best_(start) {
    tell_apart(now_.placement.priority, problem.nodes.size());
    best_ = now_;
    judged_ = std::make_shared<JudgedFusions>(problem, now_.fused);
    neighbours_.resize(problem.nodes.size());
    for (const PlaceTensor& tensor : problem.tensors)
      for (const uint32_t user : tensor.users) {
        neighbours_[tensor.maker].push_back(user);
        neighbours_[user].push_back(tensor.maker);
      }
    for (uint32_t i = 0; i < problem.nodes.size(); ++i)
      if (problem.nodes[i].together != kAnywhere) company_[problem.nodes[i].together].push_back(i);
    for (uint32_t k = 0; k < problem.fusions.size(); ++k) {
      fusions_of_[problem.fusions[k].maker].push_back(k);
      fusions_of_[problem.fusions[k].user].push_back(k);
    }
  }

  JointPlacement walk() {
    while (may_go_on()) {
      // Twice from hot to cold: the second time from the best.
      const double done = 2 * progress();
      if (done >= 1 && !is_second_) {
        is_second_ = true;
        now_ = best_;
        judged_ = std::make_shared<JudgedFusions>(problem_, now_.fused);
      }
      const double at = std::clamp(done - (is_second_ ? 1 : 0), 0.0, 1.0);
      step(kJointHot * std::pow(kJointCold / kJointHot, at));
    }
    return best_;
  }

 private:
  bool may_go_on() const {
    if (options_.cancel != nullptr && options_.cancel->cancelled()) return false;
    if (!moves_.devices && !moves_.order && (!moves_.fusions || problem_.fusions.empty()))
      return false;
    if (options_.trials > 0 && trials_ >= options_.trials) return false;
    return joint_clock() - began_ < options_.seconds;
  }
  double progress() const {
    if (options_.trials > 0)
      return static_cast<double>(trials_) / static_cast<double>(options_.trials);
    return (joint_clock() - began_) / options_.seconds;
  }

  void step(double heat) {
    ++trials_;
    JointPlacement next = now_;
    std::shared_ptr<const JudgedFusions> judged = judged_;
    const bool may_fuse = moves_.fusions && !problem_.fusions.empty();
    const double draw = rng_.uniform();
    if (may_fuse && (draw < kFusionShare || (!moves_.devices && !moves_.order))) {
      if (!flip_fusion(next)) return;
      judged = std::make_shared<JudgedFusions>(problem_, next.fused);
      next.fused = judged->fused.is_made;
    } else if (moves_.order && (draw < kFusionShare + kOrderShare || !moves_.devices)) {
      swap_priorities(next.placement.priority);
    } else if (!moves_.devices || !move_node(next, may_fuse)) {
      return;
    } else if (next.fused != now_.fused) {
      judged = std::make_shared<JudgedFusions>(problem_, next.fused);
    }
    next.value = judged->judge.value(judged->of(next.placement), options_.goal);
    const double rise = next.value - now_.value;
    if (!(rise <= 0 || rng_.uniform() < std::exp(-rise / (heat * best_.value)))) return;
    now_ = std::move(next);
    judged_ = std::move(judged);
    if (now_.value < best_.value * (1 - 1e-12)) best_ = now_;
  }

  // One of each pair of nodes comes first, as it did among equal ones. So nodes that leave a fusion
  // may change places, too.
  static void tell_apart(std::vector<int32_t>& priority, size_t nodes) {
    priority.resize(nodes);
    std::vector<uint32_t> ranked(nodes);
    std::iota(ranked.begin(), ranked.end(), 0U);
    sort_by(ranked, [&](uint32_t i) { return -int64_t{priority[i]}; });
    for (size_t k = 0; k < nodes; ++k) priority[ranked[k]] = -static_cast<int32_t>(k);
  }

  void swap_priorities(std::vector<int32_t>& priority) {
    const auto count = static_cast<uint64_t>(priority.size());
    std::swap(priority[rng_.below(count)], priority[rng_.below(count)]);
  }

  // A fusion that joins nodes of two devices moves those of one of them, if it may.
  bool flip_fusion(JointPlacement& next) {
    const auto k = static_cast<uint32_t>(rng_.below(problem_.fusions.size()));
    const PlaceFusion& fusion = problem_.fusions[k];
    if (next.fused[k] != 0) {
      next.fused[k] = 0;
      return true;
    }
    const bool follows_user = rng_.chance(0.5);
    const uint32_t mover = follows_user ? fusion.maker : fusion.user,
                   stays = follows_user ? fusion.user : fusion.maker;
    const uint32_t to = next.placement.device[stays];
    if (next.placement.device[mover] != to) {
      if (!moves_.devices || !move_with(next, mover, to)) return false;
    }
    next.fused[k] = 1;
    return next.placement.device[mover] == next.placement.device[stays];
  }

  // With its fusions, or out of them: each of both steps alone makes it worse.
  bool move_node(JointPlacement& next, bool may_leave) {
    const auto node = static_cast<uint32_t>(rng_.below(problem_.nodes.size()));
    auto to = static_cast<uint32_t>(rng_.below(devices_.size()));
    if (!neighbours_[node].empty() && rng_.chance(0.7))
      to = next.placement.device[rng_.pick(neighbours_[node])];
    if (may_leave && rng_.chance(0.5))
      if (const auto own = fusions_of_.find(node); own != fusions_of_.end())
        for (const uint32_t k : own->second) next.fused[k] = 0;
    return to != next.placement.device[node] && move_with(next, node, to);
  }

  // Moves the node, its company and what is fused with any of them.
  bool move_with(JointPlacement& next, uint32_t node, uint32_t to) {
    std::vector<uint32_t> moved = {node};
    const auto add = [&](uint32_t other) {
      if (std::ranges::find(moved, other) == moved.end()) moved.push_back(other);
    };
    for (size_t i = 0; i < moved.size(); ++i) {
      const PlaceNode& one = problem_.nodes[moved[i]];
      if (one.pinned != kAnywhere && one.pinned != static_cast<int64_t>(to)) return false;
      if (one.seconds[devices_[to].target] == kCannotRun) return false;
      if (one.together != kAnywhere)
        for (const uint32_t other : company_.at(one.together)) add(other);
      if (const auto own = fusions_of_.find(moved[i]); own != fusions_of_.end())
        for (const uint32_t k : own->second)
          if (next.fused[k] != 0) {
            add(problem_.fusions[k].maker);
            add(problem_.fusions[k].user);
          }
    }
    for (const uint32_t one : moved) next.placement.device[one] = to;
    return true;
  }

  static constexpr double kFusionShare = 0.25, kOrderShare = 0.25;  // of the steps

  const PlaceProblem& problem_;
  const std::vector<PlaceDevice> devices_;
  const JointMoves moves_;
  const JointOptions& options_;
  Rng rng_;
  const double began_;
  int64_t trials_ = 0;
  bool is_second_ = false;
  JointPlacement now_, best_;
  std::shared_ptr<const JudgedFusions> judged_;
  std::vector<std::vector<uint32_t>> neighbours_;
  std::map<int64_t, std::vector<uint32_t>> company_;
  std::map<uint32_t, std::vector<uint32_t>> fusions_of_;
};

std::vector<uint8_t> all_or_none(const PlaceProblem& problem, bool all) {
  return std::vector<uint8_t>(problem.fusions.size(), all ? 1 : 0);
}

std::optional<JointPlacement> placed_by(const PlaceProblem& problem,
                                        std::span<const uint8_t> wanted, const JointOptions& given,
                                        std::string_view by) {
  const JudgedFusions judged(problem, wanted);
  const PlaceOptions options = {.goal = given.goal,
                                .by = std::string(by),
                                .seconds = by.empty() ? 0 : 1e9,
                                .trials = by.empty() ? 0 : std::max<int64_t>(given.trials, 1),
                                .seed = given.seed,
                                .policy = given.policy,
                                .cancel = given.cancel};
  const Result<PlaceResult> found = place(judged.judge, options);
  if (!found.ok()) return std::nullopt;
  return JointPlacement{judged.fused.is_made, judged.fused.unfused(found->placement), found->value};
}

}  // namespace

double joint_value(const PlaceProblem& problem, const JointPlacement& decided, PlaceGoal goal) {
  const JudgedFusions judged(problem, decided.fused);
  if (judged.fused.is_made != decided.fused) return kCannotRun;
  for (size_t k = 0; k < problem.fusions.size(); ++k)
    if (decided.fused[k] != 0 && decided.placement.device[problem.fusions[k].maker] !=
                                     decided.placement.device[problem.fusions[k].user])
      return kCannotRun;
  return judged.judge.value(judged.of(decided.placement), goal);
}

std::optional<JointPlacement> default_joint(const PlaceProblem& problem,
                                            std::span<const uint8_t> wanted, PlaceGoal goal) {
  JointOptions options;
  options.goal = goal;
  std::optional<JointPlacement> made = placed_by(problem, wanted, options, "contiguous");
  return made ? std::move(made) : placed_by(problem, wanted, options, "one");
}

std::optional<JointPlacement> quick_joint(const PlaceProblem& problem,
                                          std::span<const uint8_t> wanted,
                                          const JointOptions& options, std::string_view by) {
  return placed_by(problem, wanted, options, by);
}

JointPlacement walk_jointly(const PlaceProblem& problem, const JointPlacement& start,
                            const JointMoves& moves, const JointOptions& options) {
  return JointWalk(problem, start, moves, options).walk();
}

Result<JointPlacement> place_jointly(const PlaceProblem& problem, const JointOptions& options) {
  std::vector<std::vector<uint8_t>> starts = {all_or_none(problem, false)};
  if (!problem.fusions.empty()) starts.push_back(all_or_none(problem, true));
  const PlacePolicy* const policy = options.policy != nullptr ? options.policy : shipped_policy();
  const FusionHead* const head =
      options.head != nullptr || policy == nullptr ? options.head : shipped_fusion_head(*policy);
  if (options.asks_head && head != nullptr && policy != nullptr && !problem.fusions.empty())
    for (std::vector<uint8_t>& proposed : proposed_fusions(problem, *policy, *head, options.seed))
      starts.push_back(std::move(proposed));
  std::optional<JointPlacement> best;
  for (const std::vector<uint8_t>& wanted : starts) {
    if (options.cancel != nullptr && best && options.cancel->cancelled()) break;
    std::optional<JointPlacement> made = quick_joint(problem, wanted, options);
    if (made && (!best || made->value < best->value)) best = std::move(made);
  }
  if (!best) {
    const PlaceJudge judge(problem);
    HONE_TRY(place(judge, {.goal = options.goal, .seconds = 0, .cancel = options.cancel}));
    return over_limit("no placement was found that fits the memory of the devices");
  }
  return walk_jointly(problem, *best, {true, true, true}, options);
}

Result<std::vector<JointRow>> joint_rows(const PlaceProblem& problem, const JointOptions& options) {
  const std::optional<JointPlacement> usual =
      default_joint(problem, all_or_none(problem, true), options.goal);
  if (!usual) return over_limit("contiguous parts do not fit the memory of the devices");
  const std::optional<JointPlacement> apart =
      default_joint(problem, all_or_none(problem, false), options.goal);
  std::vector<JointRow> rows;
  const auto walk = [&](const JointPlacement& start, const JointMoves& moves, int64_t parts) {
    JointOptions part = options;
    part.trials = std::max<int64_t>(options.trials / parts, 1);
    return walk_jointly(problem, start, moves, part);
  };
  const JointPlacement plain = apart ? *apart : *usual;
  rows.push_back({"no fusion, contiguous, most urgent first", plain.value});
  rows.push_back({kDefaultRow, usual->value});
  const std::optional<JointPlacement> learned =
      quick_joint(problem, usual->fused, options, "policy");
  rows.push_back({"default, placed by the policy", learned ? learned->value : kCannotRun});
  const JointPlacement placed = walk(*usual, {.devices = true}, 1);
  rows.push_back({"devices", placed.value});
  rows.push_back(
      {"devices, then order", walk(walk(*usual, {.devices = true}, 2), {.order = true}, 2).value});
  rows.push_back({"devices with order", walk(*usual, {.devices = true, .order = true}, 1).value});
  rows.push_back({"order with fusions", walk(*usual, {.order = true, .fusions = true}, 1).value});
  // The best of two orders of the stages, each with all the trials.
  const JointPlacement fused_first =
      walk(walk(walk(*usual, {.fusions = true}, 3), {.devices = true}, 3), {.order = true}, 3);
  const JointPlacement placed_first =
      walk(walk(walk(*usual, {.devices = true}, 3), {.fusions = true}, 3), {.order = true}, 3);
  rows.push_back({kStagesRow, std::min(fused_first.value, placed_first.value)});
  rows.push_back({"all together, from the default",
                  walk(*usual, {.devices = true, .order = true, .fusions = true}, 1).value});
  JointOptions alone = options;
  alone.asks_head = false;
  rows.push_back({"all together, from quick placers",
                  HONE_TRY(place_jointly(problem, alone)).value});
  rows.push_back(
      {"the same, with fusions that the policy proposes",
       HONE_TRY(place_jointly(problem, options)).value});
  return rows;
}

}  // namespace hone
