#include "cli/prices.h"

#include <cstdlib>

#include "cli/user_data.h"

namespace hone::cli {

KnownPrices user_prices(double sureness) {
  const char* named = std::getenv("HONE_PRICES");
  if (named != nullptr && *named != '\0') return {named, false, sureness};
  std::optional<std::filesystem::path> folder = user_data_folder();
  if (folder) *folder /= "prices";
  return {std::move(folder), true, sureness};
}

}  // namespace hone::cli
