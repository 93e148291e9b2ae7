#pragma once

#include <string>
#include <vector>

#include "base/error.h"

// The findings of `hone doctor`: what this machine has, what hone would use of it, and what is
// missing.

namespace hone::cli {

class Arguments;
class Console;

struct Finding {
  std::string name;  // "caches"
  std::string text;  // "32 KiB, 1 MiB"
  enum class State : uint8_t { good, note, missing } state = State::good;
  std::string way_out = {};  // of what is not good
};
struct FindingGroup {
  std::string name;  // "machine"
  std::vector<Finding> findings;
};
using Diagnosis = std::vector<FindingGroup>;

// Looks at the processor, at folders of the user, and for programs, which it asks for their
// version. Unsupported if hone has no code for this processor. It changes nothing.
Result<Diagnosis> diagnose(const Arguments& arguments, Console& console);

std::string diagnosis_text(const Diagnosis& diagnosis, const Console& console);
std::string diagnosis_json(const Diagnosis& diagnosis);

}  // namespace hone::cli
