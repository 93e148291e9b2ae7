#pragma once

#include <string>

#include "tune/calibrate.h"

namespace hone {

// What fitting prices has come to, as a table.
std::string calibration_text(const Calibration& calibration);

}  // namespace hone
