#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

// The rule files of TASO: a protocol buffer of substitutions, each two lists of operators. The
// rules are read as they stand there; prove/foreign.h says what they mean.

namespace hone {

struct TasoOp {
  struct Input {
    int64_t op = 0;  // its place in the list, or below 0: an input of the rule
    int64_t result = 0;
  };
  int64_t type = 0;
  std::vector<Input> inputs;
  std::map<int64_t, int64_t> parameters;
};

struct TasoRule {
  // Which result of the source is which one of the target.
  struct Output {
    int64_t source_op = 0, target_op = 0, source_result = 0, target_result = 0;
  };
  std::vector<TasoOp> source, target;
  std::vector<Output> outputs;
};

// Errors say at which byte. Fields that are not known are skipped.
Result<std::vector<TasoRule>> parse_taso_rules(std::span<const std::byte> file,
                                               std::string_view where);

}  // namespace hone
