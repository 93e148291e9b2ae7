#pragma once

#include <string>
#include <string_view>

#include "measure/duel.h"
#include "quantize/choose.h"

namespace hone {

struct QuantizeReport {
  std::string_view model;
  const quantize::QuantizeResult& result;
  Duel times;                 // of the model and what came of it: b
  double error = 0;           // that was allowed
  bool is_by_seconds = true;  // costs of the front; else by bytes
};

// One file for a browser, without scripts: the errors and times of the whole, the front of all
// choices that were tried, and a row for each layer.
std::string quantize_page(const QuantizeReport& report);

}  // namespace hone
