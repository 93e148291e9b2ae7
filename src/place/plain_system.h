#pragma once

#include <string>
#include <string_view>

#include "target/system.h"

// Parts of Systems that files of others speak of: devices of which nothing is known but times.

namespace hone {

// One core; what it computes in a second is `operations` of f32.
Target plain_target(std::string_view name, int64_t memory, double operations = 1e9);

// A link of each device to one switch, without latency.
Links star_links(std::string name, double bytes_per_second);
// A link between two devices, both ways at once, without latency.
Links cable_links(std::string name, int64_t from, int64_t to, double bytes_per_second);

}  // namespace hone
