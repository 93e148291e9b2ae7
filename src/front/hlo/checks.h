#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

// Programs that contain their own answers: functions with check.expect_eq and its relatives.

namespace hone {

namespace hlo {

// How a result is compared with its answer.
enum class CheckRule : uint8_t {
  equal,   // exactly; NaN equals NaN, -0 equals 0
  close,   // at most `most` units in the last place apart; NaN equals NaN
  almost,  // at most `most` apart; NaN equals NaN
};

struct Check {
  CheckRule rule = CheckRule::equal;
  double most = 0;
  std::string place;
};

}  // namespace hlo

// One function of a file, as a graph. Its constants are inputs, so that nothing is folded. The
// outputs are the result and the answer of each check, one after the other. All devices run it,
// with the same inputs.
struct CheckedProgram {
  Graph graph;
  std::vector<Tensor> inputs;
  std::vector<hlo::Check> checks;
  int32_t devices = 1;
};

// The functions of a file with checks that nothing calls, by name; a number in front tells modules
// apart: "2:main". Empty: the file has no checks, or is
// something else.
std::vector<std::string> checked_programs(const std::filesystem::path& path);
// Why the authors of a file do not run it themselves: "inaccurate", from a line
// "// RUN-DISABLED(inaccurate): ...". Empty: they do.
std::string reason_not_to_run(const std::filesystem::path& path);
// With `constants` it has no inputs: its constants stay constants.
Result<CheckedProgram> load_checked_program(const std::filesystem::path& path,
                                            std::string_view name, bool constants = false);

// Empty: they agree by the rule of the check. Else how they differ. With `exact`, the result
// without rounding between steps, numbers that are no farther from it than the answer agree too.
std::string disagreement(const hlo::Check& check, const Tensor& got, const Tensor& want,
                         const Tensor* exact = nullptr);

}  // namespace hone
