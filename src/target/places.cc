#include "target/places.h"

namespace hone {

Places::Places(const System& system) {
  const int64_t devices = system.device_count();
  places_[kAllDevices] = {1, devices, 1};
  for (const Level& level : system.levels)
    places_[level.name] = {devices / level.devices, level.devices, 1};
  int64_t stride = 1;
  for (auto axis = system.axes.rbegin(); axis != system.axes.rend(); ++axis) {
    places_[axis->name] = {devices / axis->size, axis->size, stride};
    stride *= axis->size;
  }
  for (const Links& links : system.links)
    if (const auto found = places_.find(links.over); found != places_.end()) {
      found->second.has_star |= links.shape == Shape::star;
      found->second.has_bus |= links.shape == Shape::bus;
    }
  const Place* inner = nullptr;
  const auto nest = [&](std::string_view name) {
    Place& place = places_.find(name)->second;
    place.inner = inner;
    if (place.has_switch()) inner = &place;
  };
  for (const Level& level : system.levels) nest(level.name);
  nest(kAllDevices);
  int64_t switches = 0;
  for (auto& [name, place] : places_) {
    place.first_switch = switches;
    if (place.has_switch()) switches += place.groups;
  }
}

const Place* Places::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

int64_t joints(const Links& links, int64_t members) {
  switch (links.shape) {
    case Shape::ring:
      if (members < 2) return 0;
      return members == 2 && links.duplex != Duplex::one_way ? 1 : members;
    case Shape::line: return members - 1;
    case Shape::pairs: return members * (members - 1) / 2;
    case Shape::star: return members;
    case Shape::bus:
    case Shape::cable: return 1;
  }
  return 0;
}

int64_t link_count(const System& system, const Places& places) {
  int64_t count = 0;  // at most kMaxSystemRows * kMaxDevices^2
  for (const Links& links : system.links) {
    const int64_t ways = links.duplex == Duplex::full ? 2 : 1;
    const Place* const place = places.find(links.over);
    if (links.shape == Shape::cable)
      count += ways;
    else if (place != nullptr)
      count += place->groups * joints(links, place->members()) * ways;
  }
  return count;
}

}  // namespace hone
