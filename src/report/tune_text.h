#pragma once

#include <span>
#include <string>

#include "tune/tuner.h"

// The findings of tuning.

namespace hone {

std::string tune_text(const Tuned& tuned);
// One of the graphs of a model.
struct TunedGraph {
  std::string name;
  Tuned tuned;
};
// An object, or an array of the segments of a model.
std::string tune_json(std::span<const TunedGraph> all);

}  // namespace hone
