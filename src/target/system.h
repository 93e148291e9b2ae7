#pragma once

#include "base/error.h"
#include "target/target.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A System is several devices and the links between them, as plain data. Links are said kind by
// kind: "a ring over each row". `Topology` (topology.h) has them one by one, and the routes.
// docs/formats/system-text.md describes its text.

namespace hone {

// Devices of one sort; those of a System are numbered from 0 on, run after run.
struct DeviceRun {
  int64_t count = 1;
  size_t target = 0;         // by position in System::targets
  int64_t memory_bytes = 0;  // of each of them

  bool operator==(const DeviceRun&) const = default;
};

// Groups of neighbours: devices 0 to devices-1, and so on. Levels lie in each other.
struct Level {
  std::string name;     // socket, host, pod
  int64_t devices = 1;  // of a group

  bool operator==(const Level&) const = default;
};

// The devices as a mesh: the product of its axes. The last axis counts fastest, as the last dim of
// a tensor does.
struct Axis {
  std::string name;
  int64_t size = 1;

  bool operator==(const Axis&) const = default;
};

// Which members of a group the links join. The members are the devices of a row of an axis, or what
// a group of a level consists of (see Links).
enum class Shape : uint8_t {
  ring,   // each with the next, and the last with the first
  line,   // each with the next
  pairs,  // each with each
  star,   // each with the switch of the group, by a link of its own
  bus,    // all by one link, which all messages through the switch of the group cross
  cable,  // one device with another one; of no group
};
inline constexpr Shape kShapes[] = {Shape::ring, Shape::line, Shape::pairs,
                                    Shape::star, Shape::bus,  Shape::cable};
std::string_view name(Shape shape);

// The ways of a link between two ends.
enum class Duplex : uint8_t {
  full,     // each way has the bandwidth
  half,     // both ways share it
  one_way,  // from a member to the next
};
inline constexpr Duplex kDuplexes[] = {Duplex::full, Duplex::half, Duplex::one_way};
std::string_view name(Duplex duplex);

// Links of one kind. Over a level, the members of a group are the switches of the next smaller
// level that a star or a bus lies over, or else devices.
struct Links {
  std::string name;
  Shape shape = Shape::cable;
  std::string over;              // an axis, a level, or kAllDevices; empty for a cable
  int64_t from = 0;              // ends of a cable
  int64_t to = 0;                //
  Duplex duplex = Duplex::full;  // half for a bus
  double bytes_per_second = 0;
  double latency = 0;  // seconds from the last byte in to the last byte out
  bool shared = true;  // messages at the same time share the bandwidth; else each has all of it

  bool operator==(const Links&) const = default;
};
inline constexpr std::string_view kAllDevices = "all";  // the level that needs no row

struct System {
  std::string name;
  std::vector<Target> targets;  // by names that differ
  std::vector<DeviceRun> devices;
  std::vector<Level> levels;  // the smaller groups come first
  std::vector<Axis> axes;     // none: there is no mesh
  std::vector<Links> links;

  int64_t device_count() const;
  const DeviceRun& device(int64_t number) const;
  bool operator==(const System&) const = default;
};

// True if the numbers make sense, all names exist, and each device reaches each other one. Every
// System that others see has passed this check.
Status check(const System& system);

std::string print(const System& system);
// Inverse of print; checks the system. `file` is for error texts, "file:line:column".
Result<System> parse_system(std::string_view text, std::string_view file);

// Bounds of check(), which the parser applies where the number stands.
inline constexpr int64_t kMaxSystemText = 1 << 20;  // bytes
inline constexpr int64_t kMaxDevices = 65536;
inline constexpr int64_t kMaxLinks = 1 << 20;   // one by one
inline constexpr size_t kMaxSystemRows = 4096;  // of targets, of devices, and of links
inline constexpr size_t kMaxPlaces = 32;        // levels and axes
inline constexpr double kMinBandwidth = 1;      // bytes per second
inline constexpr double kMaxBandwidth = 1e18;
inline constexpr double kMaxLatency = 10;  // seconds

}  // namespace hone
