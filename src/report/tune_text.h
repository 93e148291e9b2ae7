#pragma once

#include <string>

#include "tune/tuner.h"

// What tuning has found.

namespace hone {

std::string tune_text(const Tuned& tuned);
std::string tune_json(const Tuned& tuned);

}  // namespace hone
