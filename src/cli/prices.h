#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cost/kernel_model.h"
#include "cost/prices.h"
#include "target/target.h"

// The prices that 'hone calibrate' has fitted and the models that 'hone train cost' has made, in
// the user's folder: a file of each per target.

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

// The model that 'hone train cost' has made of a target's kernels, in the same folder.
Result<std::string> kernel_model_file(const Target& target);
struct ModelFile {
  std::string file;
  std::shared_ptr<const KernelModel> model;
};
// None: there is no such file. Errors: it is damaged, of another target or other features.
Result<std::optional<ModelFile>> kept_kernel_model(const Target& target);
Result<ModelFile> kernel_model_in(const std::string& file, const Target& target);

}  // namespace hone::cli
