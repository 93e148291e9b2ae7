#include "planner/heuristics.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace hone {

bool is_on(const Heuristics& heuristics, Products products) {
  switch (products) {
    case Products::plain: return true;
    case Products::matrix: return heuristics.matrix;
    case Products::quads: return heuristics.quads;
    case Products::pairs: return heuristics.pairs;
  }
  return true;
}

Status leave_out(Heuristics& heuristics, std::string_view name) {
  const auto row = std::ranges::find(kHeuristics, name, &Heuristic::name);
  if (row == kHeuristics.end()) {
    std::vector<std::string_view> known;
    for (const Heuristic& each : kHeuristics) known.push_back(each.name);
    return usage_error("there is no heuristic '{}'", excerpt(name))
        .with_hint(fmt::format("the heuristics are {}", join(known, ", ")));
  }
  heuristics.*row->flag = false;
  return {};
}

Result<Heuristics> heuristics_without(std::string_view names) {
  Heuristics heuristics;
  for (std::string_view name : split(names, ',')) HONE_TRY(leave_out(heuristics, trim(name)));
  return heuristics;
}

std::string left_out(const Heuristics& heuristics) {
  std::vector<std::string_view> names;
  for (const Heuristic& each : kHeuristics)
    if (!(heuristics.*each.flag)) names.push_back(each.name);
  return join(names, ",");
}

}  // namespace hone
