#pragma once

#include <string_view>
#include <vector>

#include "front/hlo/importer.h"

// interpreter.probe names a value, and check.expect_serialized_eq compares another one with it. In
// a loop a probe sees a value in each trip, and a check says which trip it means.

namespace hone::hlo {

// The probes of a loop's body. Their values become states of the loop: for each probe the values of
// as many trips as checks ask for. Without checks there is none.
class LoopProbes {
 public:
  LoopProbes(Node& n, const Body& body);

  std::vector<Value> initial() const;
  // The states after a trip, in the graph of the body.
  std::vector<Value> after(Builder& inner, std::span<const Value> states) const;
  // The loop has ended with these states: its probes can be asked for.
  void end(std::span<const Value> states) const;

 private:
  struct One {
    std::string_view id;
    Type type;
    int64_t trips;
  };
  Node& n_;
  std::vector<One> probes_;
};

}  // namespace hone::hlo
