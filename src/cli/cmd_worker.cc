#include "base/checked_text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/hosts.h"
#include "cli/memory_limit.h"
#include "session/memory.h"
#include "worker/serve.h"

namespace hone::cli {
namespace {

// A port alone is one of the loopback.
Result<HostPort> listening_address(const Arguments& arguments) {
  if (!arguments.given("listen"))
    return usage_error("--listen PORT is missing").with_hint("--listen 5000");
  const std::string text = arguments.text("listen");
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const int64_t number = HONE_TRY(parse_int_in("the port of --listen", port, 0, 65535));
  if (colon == std::string::npos) return HostPort{"127.0.0.1", static_cast<uint16_t>(number)};
  // A peer never has port 0, so the port is read apart.
  HostPort address = HONE_TRY(parse_host_port(text.substr(0, colon + 1) + "1"));
  address.port = static_cast<uint16_t>(number);
  return address;
}

}  // namespace

Status cmd_worker(const Arguments& arguments, Console& console) {
  const std::string secret = HONE_TRY(given_secret(arguments));
  HostPort address = HONE_TRY(listening_address(arguments));
  const TcpListener listener = HONE_TRY(TcpListener::open(address));
  address.port = listener.port();
  console.print("listens at {}\n", to_string(address));
  HONE_TRY(console.flush());
  WorkerOptions options = {.version = HONE_VERSION,
                           .memory_limit = memory_limit(limited_face(arguments, console)),
                           .cancel = &console.cancel(),
                           .told = [&](std::string_view line) { console.say(line); }};
  if (arguments.given("threads")) options.threads = arguments.integer("threads");
  return run_worker(listener, secret, options);
}

}  // namespace hone::cli
