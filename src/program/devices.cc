#include "program/devices.h"

#include <algorithm>
#include <map>

#include "program/frame.h"
#include "program/tiles/calling.h"
#include "transport/check_steps.h"

namespace hone {

namespace program {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 24;  // of all devices

Error of_command(Error error, const Frame& frame, const Command& command) {
  return std::move(error)
      .within(fmt::format("command '{}'", command.name))
      .within(fmt::format("frame '{}'", frame.name));
}

// All messages of one device, from the first command to the last, as late as they may be.
class DeviceSteps {
 public:
  DeviceSteps(const Program& program, int32_t device, int32_t devices)
      : program_(program), devices_(devices) {
    all_.device = device;
  }

  Result<DeviceProgram> run(int64_t& steps) {
    steps_ = &steps;
    HONE_TRY(add(*program_.main));
    return std::move(all_);
  }

 private:
  struct Open {
    DeviceProgram program;
    size_t next = 0;
    int64_t input = 0, output = 0, scratch = 0;  // where its rooms begin in those of all
    int32_t tickets = 0;
  };

  // Rounds of a scan are alike, and each ends what it begins: one stands for all.
  Status add(const Frame& frame) {
    for (const Command& command : frame.commands) {
      Status good;
      if (const Start* start = std::get_if<Start>(&command.kind))
        good = begin(frame, *start);
      else if (const Wait* wait = std::get_if<Wait>(&command.kind))
        good = end(std::get<Start>(frame.commands[wait->start].kind));
      else if (talks(command))
        for (const FrameRef& inner : frames_of(command)) HONE_TRY(add(*inner));
      if (!good.ok()) return of_command(std::move(good).error(), frame, command);
    }
    return {};
  }

  Status begin(const Frame& frame, const Start& start) {
    const Type from = frame.buffers[start.from].type, to = frame.buffers[start.to].type;
    const MovedElements moved = HONE_TRY(moved_elements(
        start.collective, from.dtype(), bytes_of(from).value(), bytes_of(to).value()));
    const OwnCollective own =
        HONE_TRY(own_collective(start.collective, moved.count, all_.device, devices_));
    std::vector<DeviceProgram> programs =
        HONE_TRY(step_programs(own.collective, start.collective.schedule, started_++));
    Open& open = open_[&start];
    open = {std::move(programs[static_cast<size_t>(own.member)]),
            0,
            all_.input,
            all_.output,
            all_.scratch,
            all_.tickets};
    *steps_ += std::ssize(open.program.steps);
    if (*steps_ > kMaxSteps)
      return over_limit("the devices take more than {} steps together", kMaxSteps);
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

  Status end(const Start& start) {
    Open& open = open_.at(&start);
    for (; open.next < open.program.steps.size(); ++open.next) add(open);
    open_.erase(&start);
    return {};
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
  }

  const Program& program_;
  const int32_t devices_;
  int64_t* steps_ = nullptr;
  uint32_t started_ = 0;
  std::map<const Start*, Open> open_;
  DeviceProgram all_;
};

}  // namespace
}  // namespace program

bool exchanges_data(const Program& program) {
  return std::ranges::any_of(program.main->commands, program::talks);
}

Status check_devices(const Program& program, int32_t devices) {
  for (const program::FrameRef& frame : program::all_frames(program.main))
    for (const program::Command& command : frame->commands)
      if (const auto* start = std::get_if<program::Start>(&command.kind))
        if (Status good = check_devices(start->collective, devices); !good.ok())
          return program::of_command(std::move(good).error(), *frame, command)
              .within(fmt::format("program '{}'", program.name));
  return {};
}

Status check_no_deadlock(const Program& program, int32_t devices) {
  HONE_TRY(check_devices(program, devices));
  std::vector<DeviceProgram> all;
  int64_t steps = 0;
  for (int32_t device = 0; device < devices; ++device)
    all.push_back(HONE_TRY(program::DeviceSteps(program, device, devices).run(steps)));
  Status good = check_steps(all);
  if (good.ok()) return good;
  return std::move(good).error().within(fmt::format("program '{}'", program.name));
}

}  // namespace hone
