#include "place/state.h"

#include <algorithm>
#include <map>

namespace hone {
namespace {

constexpr double kMeanShare = 0.02;  // of the mean load in the rank

}  // namespace

PlaceState::PlaceState(PlaceRun& run, const DevicePlacement& start)
    : run_(run),
      problem_(run.problem()),
      devices_(run.problem().devices()),
      device_of_unit_(run.units().devices_of(start)),
      priority_(start.priority),
      uses_(run.units().units().size()),
      users_(problem_.tensors.size() * devices_),
      maker_device_(problem_.tensors.size()),
      seconds_(devices_),
      bytes_(devices_),
      held_(devices_) {
  priority_.resize(problem_.nodes.size());
  for (uint32_t t = 0; t < problem_.tensors.size(); ++t) {
    const PlaceTensor& tensor = problem_.tensors[t];
    const uint32_t maker = run.units().of(tensor.maker);
    std::map<uint32_t, uint32_t> users;
    for (const uint32_t user : tensor.users) ++users[run.units().of(user)];
    users.try_emplace(maker, 0);
    maker_device_[t] = device_of_unit_[maker];
    for (const auto& [unit, count] : users) {
      uses_[unit].push_back({t, count, unit == maker});
      users_[size_t{t} * devices_ + device_of_unit_[unit]] += count;
    }
    for (uint32_t d = 0; d < devices_; ++d) bytes_[d] += moved(t, d);
  }
  for (uint32_t u = 0; u < uses_.size(); ++u) {
    const PlaceUnit& unit = run.units().units()[u];
    seconds_[device_of_unit_[u]] += unit.seconds[device_of_unit_[u]];
    held_[device_of_unit_[u]] += static_cast<double>(unit.held);
  }
  find_value();
}

DevicePlacement PlaceState::placement() const {
  DevicePlacement made = run_.units().placement(device_of_unit_);
  made.priority = priority_;
  return made;
}

// Bytes that keep the port of a device busy.
double PlaceState::moved(uint32_t tensor, uint32_t device) const {
  const uint32_t here = users_[size_t{tensor} * devices_ + device];
  const bool crosses =
      maker_device_[tensor] == device ? here < problem_.tensors[tensor].users.size() : here > 0;
  return crosses ? problem_.tensors[tensor].bytes : 0;
}

void PlaceState::move_uses(uint32_t tensor, uint32_t from, uint32_t to, uint32_t users,
                           bool maker) {
  bytes_[from] -= moved(tensor, from);
  bytes_[to] -= moved(tensor, to);
  users_[size_t{tensor} * devices_ + from] -= users;
  users_[size_t{tensor} * devices_ + to] += users;
  if (maker) maker_device_[tensor] = to;
  bytes_[from] += moved(tensor, from);
  bytes_[to] += moved(tensor, to);
}

void PlaceState::move(uint32_t unit, uint32_t device) {
  const uint32_t from = device_of_unit_[unit];
  if (from == device) return;
  const PlaceUnit& one = run_.units().units()[unit];
  seconds_[from] -= one.seconds[from];
  seconds_[device] += one.seconds[device];
  held_[from] -= static_cast<double>(one.held);
  held_[device] += static_cast<double>(one.held);
  for (const Use& use : uses_[unit]) move_uses(use.tensor, from, device, use.users, use.makes);
  device_of_unit_[unit] = device;
}

void PlaceState::apply(std::span<const PlaceMove> moves) {
  before_.clear();
  swapped_.clear();
  value_before_ = value_;
  rank_before_ = rank_;
  for (const PlaceMove& one : moves) {
    before_.push_back({one.unit, device_of_unit_[one.unit]});
    move(one.unit, one.device);
  }
  find_value();
}

void PlaceState::swap_priorities(uint32_t a, uint32_t b) {
  before_.clear();
  swapped_ = {a, b};
  value_before_ = value_;
  rank_before_ = rank_;
  std::swap(priority_[a], priority_[b]);
  find_value();
}

void PlaceState::undo() {
  for (size_t i = before_.size(); i-- > 0;) move(before_[i].unit, before_[i].device);
  if (!swapped_.empty()) std::swap(priority_[swapped_[0]], priority_[swapped_[1]]);
  before_.clear();
  swapped_.clear();
  value_ = value_before_;
  rank_ = rank_before_;
}

void PlaceState::find_value() {
  double most = 0, sum = 0;
  bool has_room = true;
  for (uint32_t d = 0; d < devices_; ++d) {
    const PlaceDevice& device = run_.judge().devices()[d];
    const double load = seconds_[d] + device.port * bytes_[d];
    most = std::max(most, load);
    sum += load;
    has_room &= held_[d] <= static_cast<double>(device.memory);
  }
  run_.count_trials(1);
  if (!has_room) {
    value_ = rank_ = kCannotRun;
    return;
  }
  if (run_.goal() == PlaceGoal::step) {
    value_ = run_.judge().value(placement(), PlaceGoal::step);
    rank_ = value_;
    return;
  }
  value_ = most;
  rank_ = most + kMeanShare * sum / devices_;
}

}  // namespace hone
