#include "transport/hosts.h"

#include <algorithm>

#include "base/checked_text.h"
#include "base/text.h"

namespace hone {
namespace {

Result<Host> parse_host(std::string_view line) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.size() != 2)
    return bad_input("'{}' is not an address and a number of devices", excerpt(line))
        .with_hint("10.0.0.2:5000 4");
  Host host = {.address = HONE_TRY(parse_host_port(words[0]))};
  const Result<int64_t> devices =
      parse_int_in("the number of devices", words[1], 1, Transport::kMaxDevices);
  if (!devices.ok()) return Error(devices.error()).as(ErrorCode::bad_input);
  host.devices = static_cast<int32_t>(*devices);
  return host;
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file) {
  if (text.size() > kMaxHostsText)
    return over_limit("{} bytes of hosts; there are at most {}", text.size(), kMaxHostsText)
        .at(std::string(file));
  std::vector<Host> hosts;
  int64_t devices = 0;
  const std::vector<std::string_view> lines = split_lines(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto placed = [&](Error error) {
      return std::move(error).at(fmt::format("{}:{}", file, i + 1));
    };
    const std::string_view line = trim(lines[i].substr(0, lines[i].find('#')));
    if (line.empty()) continue;
    Result<Host> host = parse_host(line);
    if (!host.ok()) return placed(host.error());
    if (std::ranges::find(hosts, host->address, &Host::address) != hosts.end())
      return placed(bad_input("{} is named twice", to_string(host->address)));
    devices += host->devices;
    if (devices > Transport::kMaxDevices)
      return placed(
          over_limit("{} devices; there are at most {}", devices, Transport::kMaxDevices));
    hosts.push_back(*std::move(host));
  }
  if (hosts.empty())
    return bad_input("there is no host").at(std::string(file)).with_hint("10.0.0.2:5000 4");
  return hosts;
}

std::string print(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += fmt::format("{} {}\n", to_string(host.address), host.devices);
  return text;
}

Result<std::string> parse_secret(std::string_view text, std::string_view file) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  if (text.size() < TcpGroup::kLeastSecret)
    return bad_input("the secret has {} bytes; it needs {} or more", text.size(),
                     TcpGroup::kLeastSecret)
        .at(std::string(file))
        .with_hint("head -c 32 /dev/urandom | base64 > FILE");
  return std::string(text);
}

}  // namespace hone
