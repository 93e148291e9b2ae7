#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernel/schedule.h"

namespace hone {

// The heuristics that the planner may use; all by default.
struct Heuristics {
#define HONE_HEURISTIC(name, doc) bool name = true;
#include "planner/heuristics.def"
#undef HONE_HEURISTIC
  bool operator==(const Heuristics&) const = default;
};

struct Heuristic {
  std::string_view name;
  std::string_view doc;
  bool Heuristics::* flag;
};

// The rows of heuristics.def.
inline constexpr std::array kHeuristics = {
#define HONE_HEURISTIC(name, doc) Heuristic{#name, doc, &Heuristics::name},
#include "planner/heuristics.def"
#undef HONE_HEURISTIC
};

// The heuristic of a way to multiply.
bool is_on(const Heuristics& heuristics, Products products);

// An unknown name is refused with the list of what there is.
Status leave_out(Heuristics& heuristics, std::string_view name);
// All but these: "chains,views".
Result<Heuristics> heuristics_without(std::string_view names);
// The names of those that are left out, in the order of the rows: "views,chains".
std::string left_out(const Heuristics& heuristics);

}  // namespace hone
