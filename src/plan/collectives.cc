#include "plan/collectives.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/op_def.h"
#include "transport/transport.h"

namespace hone {
namespace {

// device_index has no operand, and exchanges nothing.
bool is_collective(Op op) {
  return class_of(op.opcode()) == OpClass::collective && !op.def().operands.empty();
}

// Both have one name.
CollectiveKind kind_of(Op op) {
  const std::optional<CollectiveKind> kind = collective_kind_from_name(op.name());
  HONE_CHECK(kind, "{} is not a collective", op.name());
  return *kind;
}

// Numbers that are no device of any transport stay so.
int32_t device_number(int64_t id) {
  return static_cast<int32_t>(std::min<int64_t>(id, Transport::kMaxDevices));
}

// Calls fn for each collective, until it returns an error. Collectives that exchange nothing may
// still be for a number of devices.
Status each_collective(const Graph& graph, const std::function<Status(const SpmdCollective&)>& fn) {
  for (NodeId n : graph.nodes()) {
    if (is_collective(graph.op(n)))
      if (Status good = fn(spmd_of(graph.op(n))); !good.ok())
        return std::move(good).error().within(graph.describe(n));
    for (const GraphRef& region : graph.regions(n))
      if (Status good = each_collective(*region, fn); !good.ok())
        return std::move(good).error().within(graph.describe(n));
  }
  return {};
}

}  // namespace

bool exchanges_data(Op op) {
  if (!is_collective(op)) return false;
  const auto is_other = [](int64_t device) { return device != 0; };
  if (kind_of(op) == CollectiveKind::permute)
    return op.integer("group_size") > 1 || std::ranges::any_of(op.ints("pairs"), is_other);
  return op.integer("group_size") != 1 || std::ranges::any_of(op.ints("groups"), is_other);
}

namespace {

// True if `wanted` holds for a collective or a device_index of the graph or of its regions.
template <class Wanted>
bool has_collective(const Graph& graph, const Wanted& wanted) {
  for (NodeId n : graph.nodes()) {
    if (class_of(graph.opcode(n)) == OpClass::collective && wanted(graph.op(n))) return true;
    for (const GraphRef& region : graph.regions(n))
      if (has_collective(*region, wanted)) return true;
  }
  return false;
}

}  // namespace

bool exchanges_data(const Graph& graph) {
  return has_collective(graph, [](Op op) { return exchanges_data(op); });
}

bool knows_devices(const Graph& graph) {
  return has_collective(graph, [](Op op) {
    if (!is_collective(op)) return true;
    return exchanges_data(op) ||
           (kind_of(op) == CollectiveKind::permute && !op.ints("pairs").empty());
  });
}

SpmdCollective spmd_of(Op op) {
  SpmdCollective spmd = {.kind = kind_of(op)};
  if (spmd.kind == CollectiveKind::permute) {
    const Ints& ids = op.ints("pairs");
    for (size_t i = 0; i + 1 < ids.size(); i += 2)
      spmd.pairs.emplace_back(device_number(ids[i]), device_number(ids[i + 1]));
  }
  if (const int64_t size = op.integer("group_size"); size > 0) {
    spmd.group_size =
        static_cast<int32_t>(std::min<int64_t>(size, int64_t{Transport::kMaxDevices} + 1));
    for (const int64_t device : op.ints("groups")) spmd.groups.push_back(device_number(device));
  }
  if (combines(spmd.kind)) spmd.combine = combine_from_name(op.word("kind")).value();
  spmd.schedule = default_schedule(op, 0);
  return spmd;
}

CollectiveSchedule default_schedule(Op op, int64_t bytes) {
  constexpr int64_t kFewBytes = 32 << 10;
  constexpr int64_t kPiece = 1 << 20;
  const CollectiveKind kind = kind_of(op);
  if (!fits(CollectiveAlgorithm::ring, kind)) return {.algorithm = CollectiveAlgorithm::direct};
  const bool is_small = bytes <= kFewBytes;
  if (is_small && fits(CollectiveAlgorithm::doubling, kind))
    return {.algorithm = CollectiveAlgorithm::doubling};
  if (is_small) return {.algorithm = CollectiveAlgorithm::direct};
  const int64_t shard = bytes / std::max<int64_t>(op.integer("group_size"), 1);
  return {.algorithm = CollectiveAlgorithm::ring,
          .pieces = static_cast<int32_t>(std::clamp<int64_t>(shard / kPiece, 1, 8))};
}

CollectiveSchedule random_schedule(Op op, Rng& rng) {
  const std::vector<CollectiveSchedule> all = schedules_of(spmd_of(op));
  CollectiveSchedule schedule = rng.pick(all);
  if (rng.chance(0.5)) schedule.pieces = static_cast<int32_t>(rng.between(1, 5));
  return schedule;
}

Status check_schedule(Op op, const CollectiveSchedule& schedule) {
  if (!is_collective(op)) return bad_input("{} is not a collective", op.name());
  if (!exchanges_data(op)) return bad_input("it is for one device, and has no messages");
  SpmdCollective spmd = spmd_of(op);
  spmd.schedule = schedule;
  return check(spmd);
}

Result<int32_t> least_devices(const Graph& graph) {
  int64_t step = 1, named = 1;
  HONE_TRY(each_collective(
      graph,
      [&](const SpmdCollective& spmd) -> Status {
        HONE_TRY(check(spmd));
        if (spmd.kind == CollectiveKind::permute && spmd.group_size == 1)
          named = std::max<int64_t>(named, devices_step(spmd));
        else
          step = std::lcm(step, int64_t{devices_step(spmd)});
        if (step > Transport::kMaxDevices)
          return over_limit("groups of so many sizes need {} devices; there are at most {}", step,
                            Transport::kMaxDevices);
        return {};
      }));
  const auto devices = static_cast<int32_t>((named + step - 1) / step * step);
  HONE_TRY(check_devices(graph, devices));
  return devices;
}

Status check_devices(const Graph& graph, int32_t devices) {
  return each_collective(graph, [&](const SpmdCollective& spmd) -> Status {
    HONE_TRY(check(spmd));
    return check_devices(spmd, devices);
  });
}

Result<CollectiveSchedule> parse_collective_schedule(TextParser& text) {
  const Token first = text.peek();
  if (first.kind != TokenKind::word) return text.expected("a schedule, like ring");
  std::string all(text.take().text);
  if (text.eat("of"))
    all += fmt::format(" of {}",
                       HONE_TRY(text.integer("a number of neighbours", 1, Transport::kMaxDevices)));
  if (text.eat(",")) {
    const int64_t pieces =
        HONE_TRY(text.integer("a number of pieces", 1, CollectiveSchedule::kMaxPieces));
    HONE_TRY(text.expect("pieces"));
    all += fmt::format(", {} pieces", pieces);
  }
  Result<CollectiveSchedule> schedule = parse_collective_schedule(all);
  if (!schedule.ok()) return text.at(first, std::move(schedule).error());
  return schedule;
}

}  // namespace hone
