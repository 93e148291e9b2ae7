#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cost/prices.h"
#include "target/target.h"

// The prices that 'hone calibrate' has fitted, in the user's folder: a file per target.

namespace hone::cli {

// In $HONE_PRICES, or prices/ of the user's data folder.
Result<std::string> fitted_prices_file(const Target& target);

struct FittedFile {
  std::string file;
  Prices prices;
};
// None: there is no such file. Errors: it is damaged, or of another target.
Result<std::optional<FittedFile>> fitted_prices(const Target& target);
// Makes the folder that they are kept in: what is wrong is found before the work.
Status check_keeps_prices(const Target& target);
Status keep_fitted_prices(const Target& target, const Prices& prices);
// The defaults count from now on.
Status drop_fitted_prices(const Target& target);

}  // namespace hone::cli
