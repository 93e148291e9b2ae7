#include "transport/steps.h"

#include <fmt/format.h>

namespace hone {
namespace {

std::string part_text(const StepPart& part) {
  constexpr const char* kRooms[] = {"input", "output", "scratch"};
  return fmt::format("{}[{}:{}]", kRooms[static_cast<int>(part.room)], part.begin, part.end());
}

}  // namespace

std::string to_string(const DeviceStep& step) {
  switch (step.kind) {
    case StepKind::send:
      return fmt::format("send #{} {} to device {} by tag {}", step.ticket, part_text(step.from),
                         step.peer, step.tag);
    case StepKind::receive:
      return fmt::format("receive #{} {} from device {} by tag {}", step.ticket, part_text(step.to),
                         step.peer, step.tag);
    case StepKind::wait: return fmt::format("wait #{}", step.ticket);
    case StepKind::copy: return fmt::format("{} = {}", part_text(step.to), part_text(step.from));
    case StepKind::add:
      return fmt::format("{} = {} + {}", part_text(step.to), part_text(step.from),
                         part_text(step.other));
    case StepKind::zero: return fmt::format("{} = 0", part_text(step.to));
  }
  return "";
}

std::string to_string(const DeviceProgram& program) {
  std::string text = fmt::format("device {}: input {}, output {}, scratch {}\n", program.device,
                                 program.input, program.output, program.scratch);
  for (const DeviceStep& step : program.steps) text += fmt::format("  {}\n", to_string(step));
  return text;
}

}  // namespace hone
