#include "runtime/runnable.h"

#include <algorithm>

namespace hone {

void RunTrace::add(uint32_t command, const Span& span) {
  if (entries.size() < most)
    entries.push_back({program, command, span});
  else
    ++lost;
}

std::vector<Type> types_of(std::span<const Tensor> tensors) {
  std::vector<Type> types;
  types.reserve(tensors.size());
  for (const Tensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

RunOptions timed(RunOptions options, std::vector<UnitTimes>& times, uint32_t unit,
                 std::vector<Type> inputs) {
  auto known = std::ranges::find_if(
      times, [&](const UnitTimes& one) { return one.unit == unit && one.inputs == inputs; });
  if (known == times.end())
    known = times.insert(known, {.unit = unit, .inputs = std::move(inputs)});
  ++known->runs;
  options.profile = &known->times;
  if (options.trace != nullptr)
    options.trace->program = static_cast<uint32_t>(known - times.begin());
  return options;
}

}  // namespace hone
