#pragma once

#include <optional>
#include <span>
#include <vector>

#include "front/hlo/importer.h"

// Loops that count. JAX writes a scan as a while that counts its trips, takes a row of each stack
// by dynamic_slice and puts rows in place by dynamic_update_slice.

namespace hone::hlo {

// The results of a while with these regions, as hone's scan. None: its counter does not run from 0
// to a known number in steps of 1.
std::optional<std::vector<Value>> as_scan(Node& n, std::span<const Value> initial,
                                          const Graph& condition, const Graph& body);

}  // namespace hone::hlo
