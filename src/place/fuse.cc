#include "place/fuse.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hone {
namespace {

// Groups of nodes that are one. The root of a group is its last node: all others go into it.
class Fuser {
 public:
  explicit Fuser(const PlaceProblem& problem)
      : devices_(place_devices(problem)), next_(problem.nodes.size()) {
    std::iota(next_.begin(), next_.end(), 0U);
    for (const PlaceNode& node : problem.nodes) sums_.push_back(node);
  }

  uint32_t root(uint32_t node) {
    uint32_t last = node;
    while (next_[last] != last) last = next_[last];
    while (next_[node] != last) node = std::exchange(next_[node], last);
    return last;
  }

  bool join(const PlaceFusion& fusion) {
    const uint32_t from = root(fusion.maker), into = root(fusion.user);
    PlaceNode both = sums_[into];
    const PlaceNode& maker = sums_[from];
    const auto agree = [](int64_t a, int64_t b) {
      return a == kAnywhere || b == kAnywhere || a == b;
    };
    if (!agree(maker.together, both.together) || !agree(maker.pinned, both.pinned)) return false;
    if (both.together == kAnywhere) both.together = maker.together;
    if (both.pinned == kAnywhere) both.pinned = maker.pinned;
    for (size_t k = 0; k < both.seconds.size(); ++k)
      both.seconds[k] = both.seconds[k] == kCannotRun || maker.seconds[k] == kCannotRun
                            ? kCannotRun
                            : std::max(0.0, both.seconds[k] + maker.seconds[k] - fusion.saves[k]);
    both.held = sum_of_bytes(both.held, maker.held);
    both.scratch = sum_of_bytes(both.scratch, maker.scratch);
    both.backward = both.backward || maker.backward;
    if (!has_device(both)) return false;
    sums_[into] = std::move(both);
    next_[from] = into;
    return true;
  }

  const PlaceNode& sum(uint32_t root) const { return sums_[root]; }

 private:
  bool has_device(const PlaceNode& node) const {
    for (size_t d = 0; d < devices_.size(); ++d)
      if (node.seconds[devices_[d].target] != kCannotRun &&
          node.held + node.scratch <= devices_[d].memory &&
          (node.pinned == kAnywhere || node.pinned == static_cast<int64_t>(d)))
        return true;
    return false;
  }

  const std::vector<PlaceDevice> devices_;
  std::vector<uint32_t> next_;   // by node: the one that it goes into, or itself
  std::vector<PlaceNode> sums_;  // by root: the node that the group is
};

}  // namespace

FusedProblem fused_problem(const PlaceProblem& problem, std::span<const uint8_t> wanted) {
  HONE_CHECK(wanted.size() == problem.fusions.size(), "{} choices for {} fusions", wanted.size(),
             problem.fusions.size());
  FusedProblem made;
  Fuser fuser(problem);
  for (size_t k = 0; k < wanted.size(); ++k)
    made.is_made.push_back(wanted[k] != 0 && fuser.join(problem.fusions[k]) ? 1 : 0);
  made.problem.system = problem.system;
  made.problem.ports = problem.ports;
  made.node_of.resize(problem.nodes.size());
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    if (fuser.root(i) != i) continue;
    made.node_of[i] = static_cast<uint32_t>(made.last_of.size());
    made.last_of.push_back(i);
    made.problem.nodes.push_back(fuser.sum(i));
    made.problem.nodes.back().name.clear();
  }
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) made.node_of[i] = made.node_of[fuser.root(i)];
  for (const PlaceTensor& tensor : problem.tensors) {
    PlaceTensor moved = {made.node_of[tensor.maker], {}, tensor.bytes, tensor.held};
    for (const uint32_t user : tensor.users)
      if (made.node_of[user] != moved.maker) moved.users.push_back(made.node_of[user]);
    std::ranges::sort(moved.users);
    moved.users.erase(std::ranges::unique(moved.users).begin(), moved.users.end());
    if (!moved.users.empty()) made.problem.tensors.push_back(std::move(moved));
  }
  return made;
}

PlaceProblem fastest_problem(PlaceProblem problem) {
  for (const PlaceFusion& fusion : problem.fusions)
    for (size_t k = 0; k < fusion.saves.size(); ++k)
      if (double& seconds = problem.nodes[fusion.maker].seconds[k]; seconds != kCannotRun)
        seconds = std::max(0.0, seconds - fusion.saves[k]);
  problem.fusions.clear();
  return problem;
}

DevicePlacement FusedProblem::unfused(const DevicePlacement& placement) const {
  DevicePlacement whole;
  for (const uint32_t node : node_of) {
    whole.device.push_back(placement.device[node]);
    if (!placement.priority.empty()) whole.priority.push_back(placement.priority[node]);
  }
  return whole;
}

}  // namespace hone
