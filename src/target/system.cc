#include "target/system.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/checked_math.h"
#include "base/text.h"
#include "base/text_lexer.h"
#include "target/check_system.h"
#include "target/places.h"
#include "target/topology.h"

namespace hone {

std::string_view name(Shape shape) {
  switch (shape) {
    case Shape::ring: return "ring";
    case Shape::line: return "line";
    case Shape::pairs: return "pairs";
    case Shape::star: return "star";
    case Shape::bus: return "bus";
    case Shape::cable: return "cable";
  }
  return "";
}

std::string_view name(Duplex duplex) {
  switch (duplex) {
    case Duplex::full: return "full duplex";
    case Duplex::half: return "half duplex";
    case Duplex::one_way: return "one way";
  }
  return "";
}

int64_t System::device_count() const {
  int64_t count = 0;
  for (const DeviceRun& run : devices) count += run.count;
  return count;
}

const DeviceRun& System::device(int64_t number) const {
  for (const DeviceRun& run : devices) {
    if (number < run.count) return run;
    number -= run.count;
  }
  HONE_CHECK(false, "device {} behind the last one", number);
}

namespace {

class SystemChecker {
 public:
  SystemChecker(const System& system, const PlaceFault& place) : system_(system), place_(place) {}

  Status check() {
    HONE_TRY(at(SystemPart::whole, 0, check_whole()));
    for (index_ = 0; index_ < system_.targets.size(); ++index_)
      HONE_TRY(at(SystemPart::target, index_, check_target()));
    int64_t devices = 0;
    for (index_ = 0; index_ < system_.devices.size(); ++index_)
      HONE_TRY(at(SystemPart::devices, index_, check_devices(devices)));
    for (index_ = 0; index_ < system_.levels.size(); ++index_)
      HONE_TRY(at(SystemPart::level, index_, check_level(devices)));
    int64_t product = 1;
    for (index_ = 0; index_ < system_.axes.size(); ++index_)
      HONE_TRY(at(SystemPart::axis, index_, check_axis(product)));
    if (!system_.axes.empty() && product != devices)
      return place_(SystemPart::axis, system_.axes.size() - 1, mesh_error(devices, product));
    for (index_ = 0; index_ < system_.links.size(); ++index_)
      HONE_TRY(at(SystemPart::links, index_, check_links(devices)));
    return at(SystemPart::whole, 0, check_topology(devices));
  }

 private:
  Status at(SystemPart part, size_t index, Status status) const {
    if (status.ok()) return {};
    return place_(part, index, std::move(status).error());
  }

  Status check_whole() const {
    if (system_.name.empty()) return bad_input("the system has no name");
    if (system_.name.size() > kMaxTargetName)
      return bad_input("the name of the system has {} bytes, more than {}", system_.name.size(),
                       kMaxTargetName);
    if (system_.devices.empty()) return bad_input("the system has no devices");
    for (const auto& [what, rows] : {std::pair("targets", system_.targets.size()),
                                     {"runs of devices", system_.devices.size()},
                                     {"kinds of links", system_.links.size()}})
      if (rows > kMaxSystemRows)
        return over_limit("the system has {} {}, more than {}", rows, what, kMaxSystemRows);
    if (system_.levels.size() + system_.axes.size() > kMaxPlaces)
      return over_limit("the system has {} levels and {} axes, more than {} together",
                        system_.levels.size(), system_.axes.size(), kMaxPlaces);
    return {};
  }

  Status check_target() {
    const Target& target = system_.targets[index_];
    HONE_TRY(hone::check(target));
    if (!targets_.insert(target.name).second)
      return bad_input("two targets have the name {}", hone::quoted(target.name));
    return {};
  }

  Status check_devices(int64_t& devices) const {
    const DeviceRun& run = system_.devices[index_];
    if (run.target >= system_.targets.size())
      return bad_input("devices have target {} of {}", run.target, system_.targets.size());
    HONE_TRY(in_range("the number of devices", run.count, 1, kMaxDevices));
    HONE_TRY(in_range("the memory of a device in bytes", run.memory_bytes, 1, kMaxTargetBytes));
    devices += run.count;
    if (devices > kMaxDevices)
      return over_limit("the system has more than {} devices", kMaxDevices);
    return {};
  }

  Status check_level(int64_t devices) {
    const Level& level = system_.levels[index_];
    HONE_TRY(check_place_name(level.name));
    const int64_t before = index_ == 0 ? 1 : system_.levels[index_ - 1].devices;
    HONE_TRY(in_range(fmt::format("the number of devices of a {}", level.name), level.devices, 1,
                      devices));
    if (level.devices < before || level.devices % before != 0)
      return bad_input("a {} of {} devices does not consist of groups of {}", level.name,
                       level.devices, before)
          .with_hint("the smaller groups come first");
    if (devices % level.devices != 0)
      return bad_input("{} devices are no whole number of groups of {}, as {} says", devices,
                       level.devices, level.name);
    return {};
  }

  Status check_axis(int64_t& product) {
    const Axis& axis = system_.axes[index_];
    HONE_TRY(check_place_name(axis.name));
    HONE_TRY(in_range(fmt::format("the size of axis {}", axis.name), axis.size, 1, kMaxDevices));
    product *= axis.size;  // at most kMaxDevices^2
    if (product > kMaxDevices) return over_limit("the mesh has more than {} devices", kMaxDevices);
    return {};
  }

  Error mesh_error(int64_t devices, int64_t product) const {
    std::vector<std::string> sizes;
    for (const Axis& axis : system_.axes)
      sizes.push_back(fmt::format("{} {}", axis.name, axis.size));
    return bad_input("the axes multiply to {} devices, but there are {}", product, devices)
        .with_hint(fmt::format("the axes are {}", join(sizes, ", ")));
  }

  Status check_place_name(const std::string& name) {
    HONE_TRY(check_plain(name));
    if (name == kAllDevices)
      return bad_input("'{}' is the level of all devices; it needs no row", kAllDevices);
    if (!place_names_.insert(name).second)
      return bad_input("two levels or axes have the name '{}'", name);
    return {};
  }

  static Status check_plain(std::string_view name) {
    if (!is_plain_name(name) || name.size() > kMaxTargetName)
      return bad_input("'{}' is not a plain name", excerpt(name))
          .with_hint("a plain name has letters, digits and _");
    return {};
  }

  Status check_links(int64_t devices) {
    const Links& links = system_.links[index_];
    HONE_TRY(check_plain(links.name));
    if (!links_.insert(links.name).second)
      return bad_input("two kinds of links have the name '{}'", links.name);
    if (!(links.bytes_per_second >= kMinBandwidth && links.bytes_per_second <= kMaxBandwidth))
      return bad_input("the bandwidth of {} is {} B/s; it must be {} to {}", links.name,
                       links.bytes_per_second, kMinBandwidth, kMaxBandwidth);
    if (!(links.latency >= 0 && links.latency <= kMaxLatency))
      return bad_input("the latency of {} is {} s; it must be 0 to {}", links.name, links.latency,
                       kMaxLatency);
    if (links.shape == Shape::bus && links.duplex != Duplex::half)
      return bad_input("{} is a bus, whose ways share the bandwidth", links.name);
    if (links.shape == Shape::star && links.duplex == Duplex::one_way)
      return bad_input("the star {} has no way back", links.name).with_hint("say full duplex");
    return links.shape == Shape::cable ? check_cable(links, devices) : check_over(links);
  }

  static Status check_cable(const Links& links, int64_t devices) {
    for (int64_t end : {links.from, links.to})
      if (end < 0 || end >= devices)
        return bad_input("there is no device {}, which {} leads to", end, links.name)
            .with_hint(fmt::format("devices are 0 to {}", devices - 1));
    if (links.from == links.to)
      return bad_input("{} leads from device {} to itself", links.name, links.from);
    return {};
  }

  Status check_over(const Links& links) const {
    if (links.over == kAllDevices || place_names_.contains(links.over)) return {};
    std::vector<std::string_view> known = {kAllDevices};
    for (std::string_view place : place_names_) known.push_back(place);
    return bad_input("there is no level or axis '{}', which {} lies over", excerpt(links.over),
                     links.name)
        .with_hint(fmt::format("there are {}", join(known, ", ")));
  }

  Status check_topology(int64_t devices) const {
    const int64_t count = link_count(system_, Places(system_));
    if (count > kMaxLinks)
      return over_limit("the system has {} links, more than {}", count, kMaxLinks);
    const int64_t unreached = Topology(system_).unreached();
    if (unreached < 0) return {};
    return bad_input("no way leads from device 0 to device {} and back", unreached)
        .with_hint(system_.links.empty()
                       ? fmt::format("{} devices need links", devices)
                       : "say a star or a bus over all, or cables between the parts");
  }

  static Status in_range(std::string_view what, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return {};
    return bad_input("{} is {}; it must be in {}..{}", what, value, least, most);
  }

  const System& system_;
  const PlaceFault& place_;
  size_t index_ = 0;  // of the part at hand
  std::set<std::string_view> targets_;
  std::set<std::string_view> place_names_;
  std::set<std::string_view> links_;
};

}  // namespace

Status check_system(const System& system, const PlaceFault& place) {
  return SystemChecker(system, place).check();
}

Status check(const System& system) {
  return check_system(system, [](SystemPart, size_t, Error error) { return error; });
}

}  // namespace hone
