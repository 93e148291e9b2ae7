#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "place/placer.h"

// Programs of others that placers ask: CBC for linear and integer programs, gpmetis for graphs.

namespace hone {

inline constexpr double kMostSolverSeconds = 3600;

// The text between blanks.
std::vector<std::string_view> words_of(std::string_view line);

// The answer of CBC to a program in the form that CPLEX made usual: the state, then a line for each
// variable that is not 0. An error says why there is nothing.
Result<std::string> solved_by_cbc(const PlaceRun& run, const std::string& text);

struct SolvedValue {
  std::string_view name;
  double value = 0;
};
std::vector<SolvedValue> solved_values(std::string_view solution);

// The favourite child of each node by m-SCT's linear program, which ties such pairs together;
// UINT32_MAX: the node has none. The error says why the program gave no answer.
Result<std::vector<uint32_t>> favourites_by_program(PlaceRun& run);

}  // namespace hone
