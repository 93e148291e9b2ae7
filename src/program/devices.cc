#include "program/devices.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/checked_math.h"
#include "program/frame.h"
#include "program/tiles/calling.h"
#include "program/uniform.h"
#include "transport/check_steps.h"
#include "transport/message_steps.h"

namespace hone {

namespace program {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 24;  // of all devices

Error of_command(Error error, const Frame& frame, const Command& command) {
  return std::move(error)
      .within(fmt::format("command '{}'", command.name))
      .within(fmt::format("frame '{}'", frame.name));
}

// The message that it begins to send or to receive.
const Message* message_of(const Command& command) {
  if (const Send* send = std::get_if<Send>(&command.kind)) return &send->message;
  if (const Receive* receive = std::get_if<Receive>(&command.kind)) return &receive->message;
  return nullptr;
}

// All messages of one device, from the first command to the last, as late as they may be.
class DeviceSteps {
 public:
  DeviceSteps(const Program& program, int32_t device, int32_t devices, bool is_for_all)
      : program_(program), devices_(devices), is_for_all_(is_for_all) {
    all_.device = device;
  }

  // A text can ask for more than anybody can list, by few commands.
  Status run(int64_t& steps) {
    steps_ = &steps;
    if (const auto all = checked_add(steps, begun(*program_.main)); !all || *all > kMaxSteps)
      return too_many();
    return add(*program_.main);
  }
  DeviceProgram take_steps() { return std::move(all_); }
  const std::string& command_of(size_t step) const { return commands_[command_of_[step]]; }

 private:
  struct Open {
    DeviceProgram program;
    uint32_t command = 0;
    size_t next = 0;
    int64_t input = 0, output = 0, scratch = 0;  // where its rooms begin in those of all
    int32_t tickets = 0;
  };

  static Error too_many() {
    return over_limit("the devices take more than {} steps together", kMaxSteps);
  }

  // The exchanges that a frame begins, with all that it runs; at most INT64_MAX.
  int64_t begun(const Frame& frame) {
    if (const auto known = begun_.find(&frame); known != begun_.end()) return known->second;
    int64_t sum = 0;
    for (const Command& command : frame.commands) {
      int64_t own = begins_exchange(command) ? 1 : 0;
      for (const FrameRef& inner : frames_of(command))
        own = checked_add(own, begun(*inner)).value_or(INT64_MAX);
      own = checked_mul(own, rounds_of(command)).value_or(INT64_MAX);
      sum = checked_add(sum, own).value_or(INT64_MAX);
    }
    return begun_[&frame] = sum;
  }

  Status add(const Frame& frame) {
    for (const Command& command : frame.commands) {
      const Status good = add(frame, command);
      if (!good.ok()) return of_command(Error(good.error()), frame, command);
    }
    return {};
  }

  Status add(const Frame& frame, const Command& command) {
    if (const Start* start = std::get_if<Start>(&command.kind)) return begin(frame, *start);
    if (const Send* send = std::get_if<Send>(&command.kind))
      return begin(send, StepKind::send, send->message, frame.buffers[send->from]);
    if (const Receive* receive = std::get_if<Receive>(&command.kind))
      return begin(receive, StepKind::receive, receive->message, frame.buffers[receive->to]);
    if (const Wait* wait = std::get_if<Wait>(&command.kind)) {
      std::visit([&](const auto& begun) { end(&begun); }, frame.commands[wait->start].kind);
      return {};
    }
    if (!talks(command)) return {};
    for (int64_t round = rounds_of(command); round > 0; --round)
      for (const FrameRef& inner : frames_of(command)) HONE_TRY(add(*inner));
    return {};
  }

  // Rounds are alike, and each ends what it begins. So if all devices run them, one stands for all;
  // and of branches that all devices take alike, both may be there.
  int64_t rounds_of(const Command& command) const {
    const Scan* scan = std::get_if<Scan>(&command.kind);
    return scan == nullptr || is_for_all_ ? 1 : scan->trips.value();
  }

  Status begin(const Frame& frame, const Start& start) {
    const Type from = frame.buffers[start.from].type, to = frame.buffers[start.to].type;
    const MovedElements moved = HONE_TRY(moved_elements(
        start.collective, from.dtype(), bytes_of(from).value(), bytes_of(to).value()));
    const OwnCollective own =
        HONE_TRY(own_collective(start.collective, moved.count, all_.device, devices_));
    std::vector<DeviceProgram> programs =
        HONE_TRY(step_programs(own.collective, start.collective.schedule, started_++));
    return begin(&start, std::move(programs[static_cast<size_t>(own.member)]),
                 fmt::format("{} %{}", name(start.collective.kind), frame.buffers[start.to].name));
  }

  Status begin(const void* key, StepKind kind, const Message& message, const Buffer& buffer) {
    const int64_t bytes = bytes_of(buffer.type).value();
    return begin(key, message_steps(kind, message, all_.device, bytes),
                 fmt::format("{} %{}", kind == StepKind::send ? "send" : "receive", buffer.name));
  }

  Status begin(const void* key, DeviceProgram program, std::string name) {
    Open& open = open_[key];
    open = {std::move(program),
            static_cast<uint32_t>(commands_.size()),
            0,
            all_.input,
            all_.output,
            all_.scratch,
            all_.tickets};
    commands_.push_back(std::move(name));
    *steps_ += 1 + std::ssize(open.program.steps);  // one without steps counts, too
    if (*steps_ > kMaxSteps) return too_many();
    all_.input += open.program.input;
    all_.output += open.program.output;
    all_.scratch += open.program.scratch;
    all_.tickets += open.program.tickets;
    for (; open.next < open.program.steps.size() &&
           open.program.steps[open.next].kind != StepKind::wait;
         ++open.next)
      add(open);
    return {};
  }

  void end(const void* key) {
    Open& open = open_.at(key);
    for (; open.next < open.program.steps.size(); ++open.next) add(open);
    open_.erase(key);
  }

  // The step that comes next.
  void add(const Open& open) {
    DeviceStep step = open.program.steps[open.next];
    step.ticket += open.tickets;
    for (StepPart* part : {&step.to, &step.from, &step.other}) {
      const int64_t begins[] = {open.input, open.output, open.scratch};
      part->begin += begins[static_cast<size_t>(part->room)];
    }
    all_.steps.push_back(step);
    command_of_.push_back(open.command);
  }

  const Program& program_;
  const int32_t devices_;
  const bool is_for_all_;  // all devices run this program
  int64_t* steps_ = nullptr;
  uint32_t started_ = 0;
  std::map<const Frame*, int64_t> begun_;
  std::map<const void*, Open> open_;  // by what began it
  DeviceProgram all_;
  std::vector<std::string> commands_;  // that begin something: "send %x"
  std::vector<uint32_t> command_of_;   // by step
};

Status check_devices(const Command& command, int32_t devices) {
  if (const auto* start = std::get_if<Start>(&command.kind))
    return hone::check_devices(start->collective, devices);
  const Message* message = message_of(command);
  if (message == nullptr || message->peer < devices) return {};
  return bad_input("there is no device {}: the run has {}", message->peer, devices)
      .with_hint("run the programs on as many devices as they are for");
}

// Refuses what a program for single devices may not have. Nobody proves that devices with programs
// of their own take the same branches.
Status check_alone(const Program& program, int32_t device, int32_t devices) {
  for (const FrameRef& frame : all_frames(program.main))
    for (const Command& command : frame->commands) {
      const Message* message = message_of(command);
      if (message != nullptr && (message->peer == device || message->peer >= devices))
        return of_command(bad_input("device {} exchanges a message with device {} of {}", device,
                                    message->peer, devices),
                          *frame, command);
      const bool is_conditional = std::holds_alternative<Branch>(command.kind) ||
                                  std::holds_alternative<Loop>(command.kind);
      if (is_conditional && talks(command))
        return of_command(
            unsupported("it exchanges data, and devices with programs of their own may not agree "
                        "on whether it runs")
                .with_hint("exchange data outside of if and while; a scan may do it"),
            *frame, command);
    }
  return {};
}

}  // namespace
}  // namespace program

bool exchanges_data(const Program& program) {
  return std::ranges::any_of(program.main->commands, program::talks);
}

Status check_devices(const Program& program, int32_t devices) {
  const auto of_program = [&](Error error) {
    return std::move(error).within(fmt::format("program '{}'", program.name));
  };
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands)
      if (Status good = program::check_devices(command, devices); !good.ok())
        return of_program(program::of_command(std::move(good).error(), *frame, command));
  const int32_t agree = HONE_TRY(devices_that_agree(program));
  if (agree == 0 || agree == devices) return {};
  return of_program(
      bad_input("its devices agree on the branches that they take if they are {}, but the run has "
                "{}",
                agree, devices)
          .with_hint("run it on as many devices as its conditions are summed over"));
}

Status check_devices(const DevicePrograms& programs, int32_t devices) {
  if (const std::optional<int32_t> wanted = programs.devices(); wanted && *wanted != devices)
    return bad_input("the programs are for {} devices, but the run has {}", *wanted, devices);
  for (const Program& program : programs.programs) HONE_TRY(check_devices(program, devices));
  return {};
}

namespace program {
namespace {

// The steps of all devices. `known` keeps the commands that they belong to.
Result<std::vector<DeviceProgram>> steps_of(const DevicePrograms& programs, int32_t devices,
                                            std::vector<std::unique_ptr<DeviceSteps>>& known) {
  std::vector<DeviceProgram> all;
  int64_t steps = 0;
  for (int32_t device = 0; device < devices; ++device) {
    const Program& program = programs.of(device);
    known.push_back(
        std::make_unique<DeviceSteps>(program, device, devices, programs.of_device.empty()));
    if (Status good = known.back()->run(steps); !good.ok())
      return std::move(good).error().within(fmt::format("program '{}'", program.name));
    all.push_back(known.back()->take_steps());
  }
  return all;
}

}  // namespace
}  // namespace program

Result<std::vector<DeviceProgram>> steps_of(const DevicePrograms& programs, int32_t devices) {
  HONE_TRY(check_devices(programs, devices));
  std::vector<std::unique_ptr<program::DeviceSteps>> known;
  return program::steps_of(programs, devices, known);
}

Status check_no_deadlock(const DevicePrograms& programs, int32_t devices) {
  HONE_TRY(check_devices(programs, devices));
  std::vector<std::unique_ptr<program::DeviceSteps>> known;
  const std::vector<DeviceProgram> all = HONE_TRY(program::steps_of(programs, devices, known));
  Status good =
      check_steps(all, [&](size_t device, size_t step) { return known[device]->command_of(step); });
  if (good.ok() || !programs.of_device.empty()) return good;
  return std::move(good).error().within(fmt::format("program '{}'", programs.programs[0].name));
}

Status check_no_deadlock(const Program& program, int32_t devices) {
  return check_no_deadlock(DevicePrograms{{program}}, devices);
}

Status verify(const DevicePrograms& programs) {
  for (const Program& program : programs.programs) HONE_TRY(verify(program));
  for (size_t d = 0; d < programs.of_device.size(); ++d)
    if (Status good =
            program::check_alone(programs.of(static_cast<int32_t>(d)), static_cast<int32_t>(d),
                                 static_cast<int32_t>(programs.of_device.size()));
        !good.ok())
      return std::move(good).error().within(
          fmt::format("program '{}'", programs.of(static_cast<int32_t>(d)).name));
  return {};
}

}  // namespace hone
