#include "transport/spmd.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "transport/transport.h"

namespace hone {

int32_t devices_of(const DevicePlace& place) {
  return place.transport == nullptr ? 1 : place.transport->devices();
}

Status check(const DevicePlace& place) {
  const int32_t devices = devices_of(place);
  if (place.device < 0 || place.device >= devices)
    return bad_input("a run on device {}, but there are {} devices", place.device, devices);
  if (place.transport != nullptr && !place.transport->owns(place.device))
    return bad_input("a run on device {}, which belongs to another process", place.device);
  return {};
}

Status check(const Message& message) {
  if (message.peer < 0 || message.peer >= Transport::kMaxDevices)
    return bad_input("there is no device {}; they are 0 to {}", message.peer,
                     Transport::kMaxDevices - 1);
  if (message.tag <= Message::kMaxTag) return {};
  return bad_input("tag {}; they are 0 to {}", message.tag, Message::kMaxTag);
}

Status check(const Message& message, const DevicePlace& place) {
  if (message.peer == place.device)
    return bad_input("device {} exchanges a message with itself", place.device);
  if (message.peer < devices_of(place)) return {};
  return bad_input("there is no device {}: the run has {}", message.peer, devices_of(place))
      .with_hint("run the programs on as many devices as they are for");
}

bool combines(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
}

namespace {

// A permute of all devices has none.
bool has_groups(const SpmdCollective& spmd) {
  return spmd.kind != CollectiveKind::permute || spmd.group_size > 1;
}

// One group, of devices that stand for any. Their number is all that a schedule asks for.
Collective sample_of(const SpmdCollective& spmd) {
  Collective collective = {.kind = spmd.kind, .devices = {}, .elements = 0};
  for (int32_t i = 0; i < spmd.group_size; ++i) collective.devices.push_back(i);
  return collective;
}

Status check_device(int32_t device) {
  if (device >= 0 && device < Transport::kMaxDevices) return {};
  return bad_input("there is no device {}; they are 0 to {}", device, Transport::kMaxDevices - 1);
}

Status check_groups(const SpmdCollective& spmd) {
  if (spmd.group_size < 1 || spmd.group_size > Transport::kMaxDevices)
    return bad_input("a group of {} devices; it has 1 to {}", spmd.group_size,
                     Transport::kMaxDevices);
  if (static_cast<int64_t>(spmd.groups.size()) % spmd.group_size != 0)
    return bad_input("{} devices do not divide into groups of {}", spmd.groups.size(),
                     spmd.group_size);
  std::set<int32_t> seen;
  for (const int32_t device : spmd.groups) {
    HONE_TRY(check_device(device));
    if (!seen.insert(device).second) return bad_input("device {} is in two groups", device);
  }
  return {};
}

Status check_pairs(const SpmdCollective& spmd) {
  std::set<int32_t> from, to;
  for (const auto& [source, target] : spmd.pairs) {
    HONE_TRY(check_device(source));
    HONE_TRY(check_device(target));
    if (!from.insert(source).second) return bad_input("device {} sends twice", source);
    if (!to.insert(target).second) return bad_input("device {} receives twice", target);
    const int32_t most = std::max(source, target);
    if (has_groups(spmd) && most >= spmd.group_size)
      return bad_input("there is no member {} in a group of {}", most, spmd.group_size);
  }
  return {};
}

}  // namespace

Status check(const SpmdCollective& spmd) {
  if (spmd.kind == CollectiveKind::broadcast)
    return unsupported("a program of all devices has no broadcast")
        .with_hint("an all_gather, or a permute");
  if (has_groups(spmd)) HONE_TRY(check_groups(spmd));
  if (spmd.kind == CollectiveKind::permute) HONE_TRY(check_pairs(spmd));
  return check(sample_of(spmd), spmd.schedule);
}

std::vector<CollectiveSchedule> schedules_of(const SpmdCollective& spmd) {
  return schedules_of(sample_of(spmd));
}

int32_t devices_step(const SpmdCollective& spmd) {
  if (has_groups(spmd))
    return spmd.groups.empty() ? spmd.group_size : static_cast<int32_t>(spmd.groups.size());
  int32_t most = 0;
  for (const auto& [source, target] : spmd.pairs) most = std::max({most, source, target});
  return most + 1;
}

Status check_devices(const SpmdCollective& spmd, int32_t devices) {
  const int32_t step = devices_step(spmd);
  const auto refuse = [&](std::string_view wanted) {
    return bad_input("'{}' is for {}{} devices, but the run has {}", to_string(spmd), wanted, step,
                     devices)
        .with_hint("run the model on as many devices as it exchanges data with");
  };
  if (!has_groups(spmd)) {
    if (step > devices) return refuse("at least ");
    return {};
  }
  if (spmd.groups.empty()) {
    if (devices % step != 0) return refuse("a multiple of ");
    return {};
  }
  if (step != devices) return refuse("");
  for (const int32_t device : spmd.groups)
    if (device >= devices)
      return bad_input("'{}' names device {}, but the run has {} devices", to_string(spmd), device,
                       devices);
  return {};
}

Result<OwnCollective> own_collective(const SpmdCollective& spmd, int64_t elements, int32_t device,
                                     int32_t devices) {
  HONE_TRY(check_devices(spmd, devices));
  OwnCollective own = {{.kind = spmd.kind, .devices = {}, .elements = elements}};
  std::vector<int32_t>& members = own.collective.devices;
  own.collective.pairs = spmd.pairs;
  if (!has_groups(spmd)) {
    for (int32_t each = 0; each < devices; ++each) members.push_back(each);
    own.member = device;
    return own;
  }
  const std::vector<int32_t>& groups = spmd.groups;
  const auto place = groups.empty()
                         ? device
                         : static_cast<int32_t>(std::ranges::find(groups, device) - groups.begin());
  own.member = place % spmd.group_size;
  for (int32_t i = 0; i < spmd.group_size; ++i) {
    const int32_t at = place - own.member + i;
    members.push_back(groups.empty() ? at : groups[static_cast<size_t>(at)]);
  }
  return own;
}

Result<MovedElements> moved_elements(const SpmdCollective& spmd, DType dtype, int64_t input_bytes,
                                     int64_t output_bytes) {
  const CollectiveKind kind = spmd.kind;
  int64_t in_parts = input_bytes, in_whole = output_bytes;
  if (kind == CollectiveKind::reduce_scatter) std::swap(in_parts, in_whole);
  const bool has_parts =
      kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  const bool is_cut = has_parts || kind == CollectiveKind::all_to_all;
  const int64_t parts = is_cut ? spmd.group_size : 1;
  if (in_whole < 0 || in_parts < 0 || in_whole % parts != 0 ||
      (has_parts ? in_whole / parts : in_whole) != in_parts)
    return bad_input("'{}' makes {} bytes of {}", to_string(spmd), output_bytes, input_bytes);
  if (!combines(kind)) return MovedElements{DType::u8, in_whole};
  if (!can_combine(spmd.combine, dtype))
    return unsupported("a {} of {}", name(spmd.combine), name(dtype));
  const int64_t element = bits(dtype) / 8;
  if (in_parts % element != 0)
    return bad_input("{} bytes are no whole number of {}", in_parts, name(dtype));
  return MovedElements{dtype, in_whole / element};
}

std::string to_string(const SpmdCollective& spmd) {
  std::string text(name(spmd.kind));
  if (combines(spmd.kind)) text += fmt::format(" {}", name(spmd.combine));
  if (spmd.kind == CollectiveKind::permute) {
    std::vector<int32_t> ids;
    for (const auto& [source, target] : spmd.pairs) ids.insert(ids.end(), {source, target});
    text += fmt::format(" [{}]", join(ids, ", "));
  }
  if (has_groups(spmd)) {
    text += fmt::format(" in {}", spmd.group_size);
    if (!spmd.groups.empty()) text += fmt::format(" [{}]", join(spmd.groups, ", "));
  }
  return text + " by " + to_string(spmd.schedule);
}

}  // namespace hone
