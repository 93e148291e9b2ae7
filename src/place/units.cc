#include "place/units.h"

#include <algorithm>
#include <map>

#include "place/blocks.h"

namespace hone {

PlaceUnits::PlaceUnits(const PlaceJudge& judge) : priority_(judge.urgent_first()) {
  make_units(judge);
  make_blocks(judge.problem());
}

void PlaceUnits::make_units(const PlaceJudge& judge) {
  const PlaceProblem& problem = judge.problem();
  std::map<int64_t, uint32_t> known;
  of_.resize(problem.nodes.size());
  for (const uint32_t i : judge.order()) {
    const PlaceNode& node = problem.nodes[i];
    auto at = static_cast<uint32_t>(units_.size());
    if (node.together != kAnywhere) at = known.emplace(node.together, at).first->second;
    if (at == units_.size()) units_.emplace_back().seconds.resize(judge.devices().size());
    PlaceUnit& unit = units_[at];
    unit.nodes.push_back(i);
    of_[i] = at;
    for (size_t d = 0; d < unit.seconds.size(); ++d)
      unit.seconds[d] += node.pinned == kAnywhere || node.pinned == static_cast<int64_t>(d)
                             ? node.seconds[judge.devices()[d].target]
                             : kCannotRun;
    unit.held = sum_of_bytes(unit.held, node.held);
    unit.most = sum_of_bytes(unit.most, node.held + node.scratch);
  }
  for (const PlaceTensor& tensor : problem.tensors) {
    PlaceUnit& unit = units_[of_[tensor.maker]];
    unit.most = sum_of_bytes(unit.most, tensor.held);
  }
  for (PlaceUnit& unit : units_)
    for (uint32_t d = 0; d < unit.seconds.size(); ++d)
      if (unit.seconds[d] != kCannotRun && unit.held <= judge.devices()[d].memory)
        unit.devices.push_back(d);
}

void PlaceUnits::make_blocks(const PlaceProblem& problem) {
  const auto blocks = [&](bool mirrors) {
    std::vector<std::vector<uint32_t>> next(units_.size());
    for (const PlaceTensor& tensor : problem.tensors)
      for (const uint32_t user : tensor.users) {
        const bool is_back = problem.nodes[tensor.maker].backward;
        if (is_back != problem.nodes[user].backward) continue;
        const uint32_t from = of_[tensor.maker], to = of_[user];
        if (from != to)
          next[is_back && mirrors ? to : from].push_back(is_back && mirrors ? from : to);
      }
    return ordered_blocks(next);
  };
  OrderedBlocks made = blocks(true);
  if (std::ranges::any_of(problem.nodes, &PlaceNode::backward))
    if (OrderedBlocks same = blocks(false); same.members.size() > made.members.size())
      made = std::move(same);
  blocks_ = std::move(made.members);
  before_ = std::move(made.before);
}

DevicePlacement PlaceUnits::placement(const std::vector<uint32_t>& device_of_unit) const {
  DevicePlacement made;
  made.device.reserve(of_.size());
  for (const uint32_t unit : of_) made.device.push_back(device_of_unit[unit]);
  made.priority = priority_;
  return made;
}

std::vector<uint32_t> PlaceUnits::devices_of(const DevicePlacement& placement) const {
  std::vector<uint32_t> devices;
  for (const PlaceUnit& unit : units_) devices.push_back(placement.device[unit.nodes[0]]);
  return devices;
}

}  // namespace hone
