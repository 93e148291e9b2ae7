#pragma once

#include "session/known_prices.h"

namespace hone::cli {

// The prices in $HONE_PRICES, or in prices/ of the user's data folder beside what hone ships.
// `sureness` is that of learned ones.
KnownPrices user_prices(double sureness = kUsualSureness);

}  // namespace hone::cli
