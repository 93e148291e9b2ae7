#include "program/device_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/checked_math.h"
#include "base/text.h"
#include "program/arena_layout.h"
#include "program/devices.h"
#include "program/frame.h"
#include "program/tiles/calling.h"
#include "runtime/kernel_abi.h"
#include "transport/run_steps.h"

namespace hone {

int64_t DeviceMemory::total() const {
  int64_t sum = 0;
  for (const int64_t bytes : {weights, ports, arena, messages})
    sum = checked_add(sum, bytes).value_or(INT64_MAX);
  return sum;
}

namespace program {
namespace {

constexpr size_t kShown = 4;

class Counting {
 public:
  Counting(const Program& program, int32_t devices) : program_(program), devices_(devices) {}

  Result<DeviceMemory> run() {
    const ArenaLayout arena(program_);
    for (Dim bytes : arena.bytes(*program_.main)) add(memory_.arena, bytes.value());
    int64_t scratch = 0;
    for (const Kernel& kernel : program_.kernels)
      scratch = std::max(scratch, scratch_layout(kernel.tiles).bytes.value());
    add(memory_.arena, checked_mul(scratch, program_.threads).value_or(INT64_MAX));
    for (const FrameRef& frame : all_frames(program_.main)) add_values(*frame);
    add(memory_.messages, HONE_TRY(early(*program_.main)));
    std::ranges::sort(memory_.largest, [](const auto& a, const auto& b) {
      return std::tie(b.bytes, a.name) < std::tie(a.bytes, b.name);
    });
    if (memory_.largest.size() > kShown) memory_.largest.resize(kShown);
    return std::move(memory_);
  }

 private:
  static void add(int64_t& sum, int64_t bytes) {
    sum = checked_add(sum, bytes).value_or(INT64_MAX);
  }

  void add_values(const Frame& frame) {
    const bool is_main = &frame == program_.main.get();
    for (const Buffer& buffer : frame.buffers) {
      const int64_t bytes = bytes_of(buffer.type).value();
      const bool is_port = buffer.role == Role::input || buffer.role == Role::output;
      if (buffer.role == Role::view || (is_port && !is_main)) continue;
      if (buffer.role == Role::constant) {
        if (!weights_.insert(buffer.value.content_hash()).second) continue;
        add(memory_.weights, bytes);
      } else if (is_port) {
        add(memory_.ports, bytes);
      }
      const std::string_view kind =
          buffer.role == Role::constant ? "weight" : hone::program::name(buffer.role);
      memory_.largest.push_back({fmt::format("{} %{}", kind, buffer.name), bytes});
    }
  }

  // The most bytes that may come before a command takes them: those of all that is under way. The
  // scratch of collectives is added to the memory, for it is kept.
  Result<int64_t> early(const Frame& frame) {
    if (const auto known = early_.find(&frame); known != early_.end()) return known->second;
    int64_t open = 0, most = 0;
    std::map<CommandId, int64_t> by_command;
    for (CommandId c = 0; c < frame.commands.size(); ++c) {
      const Command& command = frame.commands[c];
      int64_t inner = 0;
      if (const Wait* wait = std::get_if<Wait>(&command.kind)) {
        open -= by_command[wait->start];
      } else if (const Receive* receive = std::get_if<Receive>(&command.kind)) {
        by_command[c] = bytes_of(frame.buffers[receive->to].type).value();
      } else if (const Start* start = std::get_if<Start>(&command.kind)) {
        by_command[c] = HONE_TRY(collective(frame, *start));
      } else if (talks(command)) {
        for (const FrameRef& run : frames_of(command)) {
          const int64_t most_of_it = HONE_TRY(early(*run));
          inner = std::max(inner, most_of_it);
        }
      }
      if (const auto begun = by_command.find(c); begun != by_command.end())
        add(open, begun->second);
      most = std::max(most, checked_add(open, inner).value_or(INT64_MAX));
    }
    return early_[&frame] = most;
  }

  // All groups are alike. The member that needs most counts.
  Result<int64_t> collective(const Frame& frame, const Start& start) {
    const Type from = frame.buffers[start.from].type, to = frame.buffers[start.to].type;
    const MovedElements moved = HONE_TRY(moved_elements(
        start.collective, from.dtype(), bytes_of(from).value(), bytes_of(to).value()));
    const OwnCollective own = HONE_TRY(own_collective(start.collective, moved.count, 0, devices_));
    int64_t scratch = 0, most = 0;
    for (const DeviceProgram& member :
         HONE_TRY(step_programs(own.collective, start.collective.schedule))) {
      int64_t received = 0;
      for (const DeviceStep& step : member.steps)
        if (step.kind == StepKind::receive) received += step.to.count;
      most = std::max(most, received);
      scratch = std::max(scratch, member.scratch);
    }
    const int64_t kept = HONE_TRY(hone::bytes_of(scratch, moved.dtype));
    if (counted_.insert(&start).second) add(memory_.messages, kept);
    return hone::bytes_of(most, moved.dtype);
  }

  const Program& program_;
  const int32_t devices_;
  std::map<const Frame*, int64_t> early_;
  std::set<uint64_t> weights_;      // by content
  std::set<const Start*> counted_;  // whose scratch is in the memory
  DeviceMemory memory_;
};

std::string shown(const std::vector<DeviceMemory::Value>& values) {
  std::vector<std::string> all;
  for (const auto& [name, bytes] : values)
    all.push_back(fmt::format("{} ({})", name, format_bytes(bytes)));
  return all.empty() ? "" : "; the largest values: " + join(all, ", ");
}

}  // namespace
}  // namespace program

Result<DeviceMemory> device_memory(const Program& program, int32_t devices) {
  Result<DeviceMemory> memory = program::Counting(program, devices).run();
  if (memory.ok()) return memory;
  return std::move(memory).error().within(fmt::format("program '{}'", program.name));
}

Status check_memory(const DevicePrograms& programs, const System& system) {
  const auto devices = static_cast<int32_t>(system.device_count());
  HONE_TRY(check_devices(programs, devices));
  std::map<const Program*, DeviceMemory> known;
  for (int32_t device = 0; device < devices; ++device) {
    const Program& program = programs.of(device);
    if (!known.contains(&program)) {
      DeviceMemory memory = HONE_TRY(device_memory(program, devices));
      known.emplace(&program, std::move(memory));
    }
    const DeviceMemory& memory = known.at(&program);
    const int64_t has = system.device(device).memory_bytes, needs = memory.total();
    if (needs <= has) continue;
    return over_limit(
               "device {} of '{}' has {}, but its program needs {}: {} are missing. Weights are "
               "{}, "
               "inputs and outputs {}, temporaries {}, messages {}{}",
               device, system.name, format_bytes(has), format_bytes(needs),
               format_bytes(needs - has), format_bytes(memory.weights), format_bytes(memory.ports),
               format_bytes(memory.arena), format_bytes(memory.messages),
               program::shown(memory.largest))
        .within(fmt::format("program '{}'", program.name))
        .with_hint("divide the work among more devices, or take ones with more memory");
  }
  return {};
}

}  // namespace hone
