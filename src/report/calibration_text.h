#pragma once

#include <string>

#include "tune/calibrate.h"

namespace hone {

// The result of fitting prices, as a table.
std::string calibration_text(const Calibration& calibration);

}  // namespace hone
