#include "cost/shipped_models.h"

#include "target/fingerprint.h"

namespace hone {

namespace {

std::string_view stem_of(const ShippedModel& shipped) {
  return shipped.name.substr(0, shipped.name.rfind('.'));
}

}  // namespace

const ShippedModel* find_shipped_model(std::string_view name) {
  for (const ShippedModel& shipped : shipped_models())
    if (stem_of(shipped) == name) return &shipped;
  return nullptr;
}

std::vector<ShippedModel> shipped_starts_for(const Target& target) {
  std::vector<ShippedModel> starts;
  for (const ShippedModel& shipped : shipped_models()) {
    if (!stem_of(shipped).ends_with(fmt::format("-{}", name(target.isa)))) continue;
    const Result<KernelModel> model = parse_kernel_model(shipped.file, shipped.name);
    if (!model.ok()) continue;
    if (model->core == core_fingerprint(target)) return {shipped};
    starts.push_back(shipped);
  }
  return starts;
}

Result<std::optional<KernelModel>> shipped_model_of(const Target& target) {
  for (const ShippedModel& shipped : shipped_models()) {
    KernelModel model = HONE_TRY(parse_kernel_model(shipped.file, shipped.name));
    if (model.core == core_fingerprint(target)) return std::optional(std::move(model));
  }
  return std::optional<KernelModel>();
}

}  // namespace hone
