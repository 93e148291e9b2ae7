#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hone {

// How often plans decided what: a row for each value of each decision, large numbers in ranges.
// Values that a decision is known to have stand there from the start, those of plans for this many
// cores.
class DecisionCounts {
 public:
  explicit DecisionCounts(int64_t cores);

  void add(const Plan& plan);  // a complete one
  void add(std::string_view decision, std::string_view value, int64_t times = 1);

  struct Row {
    std::string decision;  // "schedule.lanes"
    std::string value;     // "16"
    int64_t times = 0;
  };
  const std::vector<Row>& rows() const { return rows_; }  // in the order of decisions.def
  std::string to_string() const;                          // a table

 private:
  Row& row(std::string_view decision, std::string_view value);

  std::vector<Row> rows_;
};

}  // namespace hone
