#include "report/load_text.h"

#include <fmt/format.h>

namespace hone {
namespace {

constexpr double kFewOfCores = 0.5;  // of the load that fills them

}  // namespace

std::string load_warning(double load, int64_t cores) {
  if (load < 0 || load < kFewOfCores * static_cast<double>(cores)) return "";
  return fmt::format("the machine's load is {:.3g} on {} {}", load, cores,
                     cores == 1 ? "core" : "cores");
}

}  // namespace hone
