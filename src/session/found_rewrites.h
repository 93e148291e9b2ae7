#pragma once

#include <memory>

#include "search/optimize.h"
#include "session/native.h"

namespace hone {

struct FoundRewritesOptions {
  double seconds = 30;           // of a search
  double margin = kPriceMargin;  // 0 for who measures
  int32_t assumed_decades = 0;   // of inputs (known_ranges.h)
  Heuristics heuristics = {};
  std::shared_ptr<const Cost> cost = nullptr;  // null: analytic
  CompileCache* cache = nullptr;               // of what was found before; null: none
  Face face = {};                              // told of what is taken
};

// For NativeOptions::find_rewrites: a search for a cheaper graph by the rules of hone, made once
// and kept in the cache. It finds none for open sizes. A cancelled search is not kept.
decltype(NativeOptions::find_rewrites) rewrites_by_search(FoundRewritesOptions options);

}  // namespace hone
