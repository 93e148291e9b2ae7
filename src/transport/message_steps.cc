#include "transport/message_steps.h"

#include "base/planted.h"

namespace hone {

DeviceProgram message_steps(StepKind kind, const Message& message, int32_t device, int64_t bytes) {
  const bool sends = kind == StepKind::send;
  const uint32_t tag = HONE_PLANT(message_pair, tag_of(message), tag_of({message.peer, 0}));
  DeviceStep step = {.kind = kind, .peer = message.peer, .tag = tag};
  if (sends)
    step.from = {StepRoom::input, 0, bytes};
  else
    step.to = {StepRoom::output, 0, bytes};
  DeviceProgram program = {.device = device,
                           .tickets = 1,
                           .input = sends ? bytes : 0,
                           .output = sends ? 0 : bytes,
                           .steps = {step}};
  if (HONE_PLANT(message_wait, true, sends)) program.steps.push_back({.kind = StepKind::wait});
  return program;
}

}  // namespace hone
