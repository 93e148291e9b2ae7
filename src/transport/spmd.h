#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "transport/collective.h"
#include "transport/combine_elements.h"

// A collective as a program says it that all devices run: each device finds its group, and its part
// in it, by its own number. And messages, which programs for single devices have.

namespace hone {

// One device among those that run a program; no transport: it is alone.
class Transport;
struct DevicePlace {
  int32_t device = 0;
  Transport* transport = nullptr;

  bool operator==(const DevicePlace&) const = default;
};
int32_t devices_of(const DevicePlace& place);
// Error: the transport has no such device, or another process owns it.
Status check(const DevicePlace& place);

struct SpmdCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Combine combine = Combine::sum;    // of all_reduce and reduce_scatter
  int32_t group_size = 1;            // 1 of a permute: it has one group, of all devices
  std::vector<int32_t> groups = {};  // devices, group after group; empty: consecutive ones
  std::vector<std::pair<int32_t, int32_t>> pairs = {};  // of permute: members of the group
  CollectiveSchedule schedule = {};

  bool operator==(const SpmdCollective&) const = default;
};

// A message between two devices, as the program of one of them says it.
struct Message {
  static constexpr int64_t kMaxTag = (int64_t{1} << 31) - 1;

  int32_t peer = 0;  // the other device
  uint32_t tag = 0;  // at most kMaxTag

  bool operator==(const Message&) const = default;
};
// The tag by which a transport knows it. Collectives have the others.
inline uint32_t tag_of(const Message& message) { return message.tag | uint32_t{1} << 31; }
Status check(const Message& message);
// Error: the device of the place has no such peer.
Status check(const Message& message, const DevicePlace& place);

bool combines(CollectiveKind kind);  // its elements must be numbers of a type; else any bytes

// Error: groups or pairs that no number of devices makes right, or a schedule that does not fit.
Status check(const SpmdCollective& collective);
// The schedules with one piece that it may have.
std::vector<CollectiveSchedule> schedules_of(const SpmdCollective& collective);
// The number of devices must be a multiple of this...
int32_t devices_step(const SpmdCollective& collective);
// ... and is the only one that fits, if it names the devices of all groups.
Status check_devices(const SpmdCollective& collective, int32_t devices);

// The collective of the device's group, and the device's place in it.
struct OwnCollective {
  Collective collective;
  int32_t member = 0;
};
Result<OwnCollective> own_collective(const SpmdCollective& collective, int64_t elements,
                                     int32_t device, int32_t devices);

// The elements of the whole, as they move: numbers where they are combined, else bytes. The
// memory of a member has the given numbers of bytes.
struct MovedElements {
  DType dtype = DType::u8;
  int64_t count = 0;
};
Result<MovedElements> moved_elements(const SpmdCollective& collective, DType dtype,
                                     int64_t input_bytes, int64_t output_bytes);

// "all_reduce max in 2 [0, 2, 1, 3] by ring, 4 pieces", "permute [0, 1, 1, 0] by direct".
std::string to_string(const SpmdCollective& collective);

}  // namespace hone
