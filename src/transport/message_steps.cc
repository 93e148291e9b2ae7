#include "transport/message_steps.h"

namespace hone {

DeviceProgram message_steps(StepKind kind, const Message& message, int32_t device, int64_t bytes) {
  const bool sends = kind == StepKind::send;
  DeviceStep step = {.kind = kind, .peer = message.peer, .tag = tag_of(message)};
  if (sends)
    step.from = {StepRoom::input, 0, bytes};
  else
    step.to = {StepRoom::output, 0, bytes};
  return {.device = device,
          .tickets = 1,
          .input = sends ? bytes : 0,
          .output = sends ? 0 : bytes,
          .steps = {step, {.kind = StepKind::wait}}};
}

}  // namespace hone
