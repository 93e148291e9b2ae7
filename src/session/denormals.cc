#include "session/denormals.h"

#include "base/text.h"
#include "oracle/compare.h"

namespace hone {

std::string denormals_note(const DenormalCount& count, std::string_view option) {
  if (count.denormals == 0) return "";
  return fmt::format(
      "{} of {} weights are denormal numbers, which slow many processors down; {} takes them for 0",
      count.denormals, count.reals, option);
}

Result<std::string> flush_error(std::span<const Tensor> flushed, const Model& model,
                                const RunInputs& inputs, const NativeOptions& options,
                                std::span<const std::string> names, const Face& face) {
  NativeOptions exactly;
  exactly.target = options.target;
  exactly.threads = options.threads;
  exactly.prepare.without = options.prepare.without;
  exactly.heuristics = options.heuristics;
  exactly.cost = options.cost;
  return flush_error(flushed, HONE_TRY(run_native(model, inputs, exactly, face)), names);
}

Result<std::string> flush_error(std::span<const Tensor> flushed, std::span<const Tensor> exact,
                                std::span<const std::string> names) {
  std::optional<Comparison> worst;
  std::string where;
  for (size_t i = 0; i < names.size(); ++i) {
    Comparison comparison = HONE_TRY(compare(flushed[i], exact[i], {}));
    if (worst && comparison.max_difference <= worst->max_difference) continue;
    worst = std::move(comparison);
    where = names[i];
  }
  if (!worst || worst->max_difference == 0)
    return std::string("denormals are taken for 0, which changes no output");
  return fmt::format(
      "denormals are taken for 0, which changes outputs by up to {:.3g} (in '{}': {:.9g}, exactly "
      "{:.9g})",
      worst->max_difference, where, worst->worst->actual, worst->worst->expected);
}

}  // namespace hone
