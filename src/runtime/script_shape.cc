#include "base/checked_math.h"
#include "runtime/script.h"

// Facts about scripts: blocks, which resolve() has made jumps of, and the devices that commands are
// for.

namespace hone {

namespace {

using Instruction = Script::Instruction;
using InstructionKind = Instruction::Kind;

// Behind the `next` of the loop that begins at `enter`.
size_t end_of_loop(const Script& script, size_t enter) {
  const uint32_t loop = script.instructions[enter].first;
  size_t at = enter + 1;
  while (script.instructions[at].kind != InstructionKind::next ||
         script.instructions[at].first != loop)
    ++at;
  return at + 1;
}

class Steps {
 public:
  explicit Steps(const Script& script) : script_(script) {}

  int64_t of(size_t begin, size_t end) const {
    int64_t sum = 0;
    for (size_t at = begin; at < end;) {
      const Instruction& now = script_.instructions[at];
      size_t next = at + 1;
      int64_t here = 0;
      switch (now.kind) {
        case InstructionKind::launch: here = now.last - now.first; break;
        case InstructionKind::copy: here = 1; break;
        case InstructionKind::enter: {
          next = end_of_loop(script_, at);
          const Instruction& last = script_.instructions[next - 1];
          const int64_t trips = (last.count - now.count) / last.step + 1;
          here = checked_mul(trips, of(at + 1, next - 1)).value_or(INT64_MAX);
          break;
        }
        case InstructionKind::jump_if_zero: {
          const ScriptCondition condition = condition_at(script_, at);
          next = condition.end;
          for (const auto& range : {condition.test, condition.then, condition.otherwise})
            here = checked_add(here, of(range.begin, range.end)).value_or(INT64_MAX);
          break;
        }
        default: break;
      }
      sum = checked_add(sum, here).value_or(INT64_MAX);
      at = next;
    }
    return sum;
  }

 private:
  const Script& script_;
};

}  // namespace

ScriptCondition condition_at(const Script& script, size_t instruction) {
  const size_t target = script.instructions[instruction].target;
  const Instruction& last = script.instructions[target - 1];
  HONE_CHECK(last.kind == InstructionKind::jump, "no block ends before instruction {}", target);
  ScriptCondition made;
  made.then = {instruction + 1, target - 1};
  made.is_loop = last.target <= instruction;
  if (made.is_loop)
    made.test = {last.target, instruction};
  else
    made.otherwise = {target, last.target};
  made.end = made.is_loop ? target : last.target;
  return made;
}

int64_t unrolled_steps(const Script& script) {
  return Steps(script).of(0, script.instructions.size());
}

Status check_place(const Script& script, const DevicePlace& place) {
  HONE_TRY(check(place));
  for (const Script::Collective& one : script.collectives) {
    Status good =
        one.message ? check(*one.message, place) : check_devices(one.collective, devices_of(place));
    if (!good.ok()) return std::move(good).error().within(fmt::format("command '{}'", one.result));
  }
  return {};
}

}  // namespace hone
