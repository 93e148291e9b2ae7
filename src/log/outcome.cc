#include <algorithm>

#include "log/log.h"

// The names of outcomes, in texts and logs.

namespace hone {
namespace {

constexpr std::string_view kOutcomes[] = {
#define HONE_OUTCOME(name, doc) #name,
    HONE_OUTCOMES(HONE_OUTCOME)
#undef HONE_OUTCOME
};

}  // namespace

std::string_view name(Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

std::optional<Outcome> outcome_from_name(std::string_view name) {
  const auto* at = std::ranges::find(kOutcomes, name);
  if (at == std::end(kOutcomes)) return std::nullopt;
  return static_cast<Outcome>(at - kOutcomes);
}

}  // namespace hone
