#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"

// A model of several segments (ir/model.h) as the runtime executes it. Its graphs are units, which
// have code; values between them are numbered. Values have numbers of their own, so that a body
// sees those around it.

namespace hone {

namespace segments {

inline constexpr uint32_t kNone = UINT32_MAX;

// The first `count` of an output along an axis are kept.
struct Crop {
  uint32_t output = 0;
  uint32_t axis = 0;
  uint32_t count = 0;  // the output, a scalar integer, that has the number
};

struct Step;

struct Body {
  std::vector<Step> steps;
  std::vector<uint32_t> results;
};

struct Unit {
  uint32_t unit = 0;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;  // kNone: not kept
  std::vector<Crop> crops;
};

struct If {
  uint32_t condition = 0;  // bool[]
  Body on_true;            // both have as many results as this
  Body on_false;
  std::vector<uint32_t> results;
};

// ir/model.h, LoopSegment. kNone: there is none.
struct Loop {
  struct Carried {
    uint32_t value = 0;  // in the body
    uint32_t initial = 0;
  };
  uint32_t trip_count = kNone;
  uint32_t condition = kNone;
  uint32_t counter = kNone;
  uint32_t next_condition = kNone;
  std::vector<Carried> carried;
  std::vector<uint32_t> grown;
  Body body;  // its results: those carried, then the pieces of those grown
  std::vector<uint32_t> results;
};

struct Step {
  std::variant<Unit, If, Loop> kind;
};

}  // namespace segments

struct SegmentTree {
  std::vector<std::string> units;   // names
  std::vector<std::string> values;  // names; the model's inputs are the first
  std::vector<segments::Step> steps;
  std::vector<uint32_t> outputs;  // values
};

// How many inputs and outputs a unit has.
struct UnitArity {
  size_t inputs = 0;
  size_t outputs = 0;
};
// Checks that all numbers name something and all counts agree. A run sees whether a value exists
// when it is read, and its type.
Status check(const SegmentTree& tree, size_t inputs, std::vector<UnitArity> units);

}  // namespace hone
