#pragma once

#include <string>
#include <string_view>

#include "tests/target/target_testing.h"

namespace hone {

// Every row, in the form that print() gives it: two hosts of two big devices and a rack of four.
inline std::string sample_system() {
  std::string targets(kSampleTarget);
  std::string indented;
  for (size_t at = 0; at < targets.size();) {
    const size_t end = targets.find('\n', at) + 1;
    indented += "  " + targets.substr(at, end - at);
    at = end;
  }
  return "system \"two racks\" {\n" + indented +
         R"(  devices = 4 of "big one" with 24 GiB
  devices = 4 of "big one" with 1 GiB
  level host = 2 devices
  level rack = 4 devices
  axis data = 2
  axis model = 4
  link port = star over host, full duplex, 12 GB/s, 2 us
  link bus = bus over rack, 10 GB/s, 0.5 us
  link wire = pairs over rack, half duplex, 1.25 GB/s, 30 us, unshared
  link row = ring over data, one way, 0.125 GB/s, 0 us
  link uplink = line over all, full duplex, 1 GB/s, 1000 us
  link cord = cable 0 to 7, one way, 3 GB/s, 10 us
}
)";
}

}  // namespace hone
