#include "cli/prices.h"

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/user_data.h"
#include "target/fingerprint.h"

namespace hone::cli {
namespace fs = std::filesystem;

namespace {

Result<std::string> kept_file(const Target& target, std::string_view ending) {
  const std::string name = fmt::format("{:016x}.{}", fingerprint(target), ending);
  const char* named = std::getenv("HONE_PRICES");
  if (named != nullptr && *named != '\0') return (fs::path(named) / name).native();
  if (const std::optional<fs::path> data = user_data_folder())
    return (*data / "prices" / name).native();
  return usage_error(
             "there is no place for prices: none of HONE_PRICES, XDG_DATA_HOME, HOME is set")
      .with_hint("name a file with -o, and give it to commands as --prices or --cost");
}

}  // namespace

Result<std::string> fitted_prices_file(const Target& target) { return kept_file(target, "prices"); }

Result<std::optional<FittedFile>> fitted_prices(const Target& target) {
  const std::string file = HONE_TRY(fitted_prices_file(target));
  std::error_code failed;
  if (!fs::exists(file, failed)) return std::optional<FittedFile>();
  const std::string text = HONE_TRY(read_file(file, kMaxPricesText));
  Result<Prices> prices = parse_prices(text, target.name, file);
  if (!prices.ok())
    return std::move(prices).error().with_hint("'hone calibrate' writes the file again");
  return std::optional(FittedFile{file, *prices});
}

Status check_keeps_prices(const Target& target) {
  const fs::path file = HONE_TRY(fitted_prices_file(target));
  std::error_code failed;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), failed);
  if (failed)
    return bad_input("prices cannot be kept: cannot create '{}': {}", file.parent_path().native(),
                     failed.message())
        .with_hint("HONE_PRICES names another folder, -o a file");
  return {};
}

Status keep_fitted_prices(const Target& target, const Prices& prices) {
  HONE_TRY(check_keeps_prices(target));
  return write_file_atomic(HONE_TRY(fitted_prices_file(target)), print(prices, target.name));
}

Status drop_fitted_prices(const Target& target) {
  const std::string file = HONE_TRY(fitted_prices_file(target));
  std::error_code failed;
  fs::remove(file, failed);
  if (failed) return bad_input("cannot remove '{}': {}", file, failed.message());
  return {};
}

Result<std::string> kernel_model_file(const Target& target) { return kept_file(target, "model"); }

Result<std::optional<ModelFile>> kept_kernel_model(const Target& target) {
  const std::string file = HONE_TRY(kernel_model_file(target));
  std::error_code failed;
  if (!fs::exists(file, failed)) return std::optional<ModelFile>();
  return std::optional(HONE_TRY(kernel_model_in(file, target)));
}

Result<ModelFile> kernel_model_in(const std::string& file, const Target& target) {
  auto model = std::make_shared<const KernelModel>(HONE_TRY(read_kernel_model(file)));
  Status fits = check_is_for(*model, target);
  if (!fits.ok()) return std::move(fits).error().within(file);
  return ModelFile{file, std::move(model)};
}

}  // namespace hone::cli
