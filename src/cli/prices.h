#pragma once

#include "session/known_prices.h"

namespace hone::cli {

// The prices in $HONE_PRICES, or in prices/ of the user's data folder beside what hone ships.
KnownPrices user_prices();

}  // namespace hone::cli
