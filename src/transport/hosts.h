#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/tcp.h"

// A file of hosts: where workers listen, and how many devices each of them is.

namespace hone {

inline constexpr int64_t kMaxHostsText = 1 << 20;  // bytes

struct Host {
  HostPort address;
  int32_t devices = 1;
  bool operator==(const Host&) const = default;
};

// "10.0.0.2:5000 4", one a line; '#' begins a comment. There is at least one, none twice, and all
// together have at most Transport::kMaxDevices. Errors say "file:line".
Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file);

// The text that parse_hosts() reads back.
std::string print(const std::vector<Host>& hosts);

// The secret in the text of a file: all but white space at its end. Error: it is too short.
Result<std::string> parse_secret(std::string_view text, std::string_view file);
inline constexpr int64_t kMaxSecretText = 4096;  // bytes

}  // namespace hone
