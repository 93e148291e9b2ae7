#pragma once

#include <string>
#include <string_view>

#include "tune/plan_duel.h"

// Which of two plans is faster.

namespace hone {

// " (1.13 to 1.21)": how much faster the second is; "" of too few rounds.
std::string gain_interval_text(const Duel& times);
// The text of a duel that was measured: times of both, the gain, and whether it is sure.
std::string duel_text(const PlanDuel& duel, std::string_view first, std::string_view second);
std::string duel_json(const PlanDuel& duel, std::string_view first, std::string_view second);

}  // namespace hone
