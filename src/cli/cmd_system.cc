#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "target/presets.h"
#include "target/topology.h"
#include "timeline/collective_price.h"

namespace hone::cli {
namespace {

constexpr size_t kMostLinksShown = 6;  // of a route

std::string route_text(const Topology& topology, std::span<const uint32_t> route) {
  std::vector<std::string> names;
  for (uint32_t link : route.first(std::min(route.size(), kMostLinksShown)))
    names.push_back(topology.link_name(link));
  if (route.size() > kMostLinksShown)
    names.push_back(fmt::format("{} more", route.size() - kMostLinksShown));
  return join(names, ", ");
}

std::string rate_text(const Topology& topology, std::span<const uint32_t> route) {
  double least = kMaxBandwidth;
  for (uint32_t link : route) least = std::min(least, topology.links()[link].bytes_per_second);
  return fmt::format("{:.3g} GB/s", least / 1e9);
}

std::string routes_text(const System& system, int64_t from) {
  const Topology topology(system);
  TextTable table("rrrl", {"to", "latency", "bandwidth", "links"});
  for (int64_t to = 0; to < system.device_count(); ++to) {
    if (to == from) continue;
    const std::vector<uint32_t> route = topology.route(from, to);
    table.add_row({std::to_string(to), format_seconds(topology.latency(route)),
                   rate_text(topology, route), route_text(topology, route)});
  }
  return table.to_string();
}

// Elements are f32, as gradients are.
Result<std::string> all_reduce_text(const System& system, int64_t bytes) {
  Collective all = {.kind = CollectiveKind::all_reduce, .devices = {}, .elements = (bytes + 3) / 4};
  for (int32_t i = 0; i < system.device_count(); ++i) all.devices.push_back(i);
  TextTable table("lrr", {"schedule", "time", "bytes by time"});
  for (const CollectivePrice& one :
       HONE_TRY(collective_prices(std::vector{std::move(all)}, 4, system)))
    table.add_row({to_string(one.schedule), format_seconds(one.seconds),
                   one.seconds > 0
                       ? fmt::format("{:.3g} GB/s", static_cast<double>(bytes) / one.seconds / 1e9)
                       : ""});
  return table.to_string();
}

}  // namespace

Status cmd_system_show(const Arguments& arguments, Console& console) {
  const System system = HONE_TRY(load_system(arguments.text("SYSTEM"), arguments.text("target")));
  if (arguments.given("all-reduce")) {
    if (arguments.given("from"))
      return usage_error("--all-reduce is of all devices; it does not go with --from");
    console.write(HONE_TRY(all_reduce_text(system, arguments.integer("all-reduce"))));
    return {};
  }
  if (!arguments.given("from")) {
    console.write(print(system));
    return {};
  }
  const int64_t from = arguments.integer("from");
  if (from >= system.device_count())
    return usage_error("there is no device {}", from)
        .with_hint(fmt::format("devices are 0 to {}", system.device_count() - 1));
  console.write(routes_text(system, from));
  return {};
}

Status cmd_system_presets(const Arguments&, Console& console) {
  TextTable table("ll", {"system", "what it is"});
  for (const SystemPreset& preset : system_presets())
    table.add_row({std::string(preset.form), std::string(preset.doc)});
  console.write(table.to_string());
  return {};
}

}  // namespace hone::cli
