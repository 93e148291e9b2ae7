#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/plan.h"

// Plans of which a part was edited, or that were made for a graph that was edited.

namespace hone {

// An entry that was taken out: "layout %h", and why.
struct DroppedEntry {
  std::string entry;
  std::string reason;
};

// Takes out of the plan the entry that the check refuses, until it refuses none. Errors of check(),
// check_complete() and complete() name it. One that names none, or one of the plan's header, is
// returned.
Result<std::vector<DroppedEntry>> drop_unfit(Plan& plan,
                                             const std::function<Status(const Plan&)>& check);

}  // namespace hone
