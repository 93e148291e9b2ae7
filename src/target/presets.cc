#include "target/presets.h"

#include <algorithm>
#include <optional>

#include "base/checked_math.h"
#include "base/text.h"
#include "base/text_lexer.h"

namespace hone {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr double kGB = 1e9, kUs = 1e-6;

// A link of the sort reaches this today.
struct LinkRate {
  double bytes_per_second;
  double latency;
};
constexpr LinkRate kChips = {50 * kGB, 0.5 * kUs};        // chips of a package, or on a board
constexpr LinkRate kFastNetwork = {12 * kGB, 2 * kUs};    // 100 Gbit Ethernet, with remote access
constexpr LinkRate kBetweenPods = {1.1 * kGB, 30 * kUs};  // 10 Gbit Ethernet

using Sizes = std::vector<int64_t>;

System begin_system(std::string_view text, int64_t devices, const Target& target) {
  System system;
  system.name = text;
  system.targets = {target};
  system.devices = {{devices, 0, target.memory_bytes}};
  return system;
}

Links links_over(std::string name, Shape shape, std::string_view place, LinkRate rate) {
  Links links;
  links.name = std::move(name);
  links.shape = shape;
  links.over = place;
  links.duplex = shape == Shape::bus ? Duplex::half : Duplex::full;
  links.bytes_per_second = rate.bytes_per_second;
  links.latency = rate.latency;
  return links;
}

// Devices of one machine exchange messages through its memory: a copy reads and writes each byte.
System local_system(std::string_view text, const Sizes& sizes, const Target& target) {
  const Target part = part_of(target, sizes[0]);
  System system = begin_system(text, sizes[0], part);
  system.axes = {{"x", sizes[0]}};
  const auto half = [](double rate) { return std::max(rate / 2, kMinBandwidth); };
  system.links = {
      links_over("copy", Shape::star, kAllDevices, {half(part.memory_one_core), 1 * kUs}),
      links_over("memory", Shape::bus, kAllDevices, {half(target.memory_all_cores), 0})};
  return system;
}

System ring_system(std::string_view text, const Sizes& sizes, const Target& target) {
  System system = begin_system(text, sizes[0], target);
  system.axes = {{"x", sizes[0]}};
  system.links = {links_over("ring", Shape::ring, "x", kFastNetwork)};
  return system;
}

System grid_system(std::string_view text, const Sizes& sizes, const Target& target, Shape shape) {
  int64_t devices = 1;
  for (int64_t size : sizes) devices *= size;
  System system = begin_system(text, devices, target);
  constexpr std::string_view names[] = {"x", "y", "z"};
  for (size_t i = 0; i < sizes.size(); ++i) {
    system.axes.push_back({std::string(names[i]), sizes[i]});
    system.links.push_back(links_over(fmt::format("{}_link", names[i]), shape, names[i], kChips));
  }
  return system;
}

System mesh_system(std::string_view text, const Sizes& sizes, const Target& target) {
  return grid_system(text, sizes, target, Shape::line);
}

System torus_system(std::string_view text, const Sizes& sizes, const Target& target) {
  return grid_system(text, sizes, target, Shape::ring);
}

// HxD: hosts of devices. PxHxD: pods of such hosts.
System tree_system(std::string_view text, const Sizes& sizes, const Target& target) {
  const int64_t per_host = sizes.back(), hosts = sizes[sizes.size() - 2];
  const int64_t pods = sizes.size() == 3 ? sizes[0] : 1;
  System system = begin_system(text, pods * hosts * per_host, target);
  system.levels = {{"host", per_host}};
  system.links = {links_over("port", Shape::star, "host", kChips)};
  if (sizes.size() == 3) {
    system.levels.push_back({"pod", hosts * per_host});
    system.links.push_back(links_over("network", Shape::star, "pod", kFastNetwork));
    system.links.push_back(links_over("uplink", Shape::star, kAllDevices, kBetweenPods));
  } else {
    system.links.push_back(links_over("network", Shape::star, kAllDevices, kFastNetwork));
  }
  system.axes = {{"data", pods * hosts}, {"model", per_host}};
  return system;
}

System package_system(std::string_view text, const Sizes& sizes, const Target& target) {
  System system = begin_system(text, sizes[0], target);
  system.levels = {{"package", sizes[0]}};
  system.axes = {{"x", sizes[0]}};
  system.links = {links_over("die", Shape::pairs, "package", kChips)};
  return system;
}

struct PresetRow {
  SystemPreset preset;
  System (*make)(std::string_view text, const Sizes& sizes, const Target& target);
  size_t least = 1, most = 1;  // sizes
};
constexpr PresetRow kPresetRows[] = {
    {{"local", "local:N", "the target in N parts, which copy through its memory"}, local_system},
    {{"ring", "ring:N", "each device has links to the next and the one before"}, ring_system},
    {{"mesh", "mesh:XxY, mesh:XxYxZ", "lines of devices along each axis"}, mesh_system, 2, 3},
    {{"torus", "torus:XxY, torus:XxYxZ", "rings of devices along each axis"}, torus_system, 2, 3},
    {{"tree", "tree:HxD, tree:PxHxD", "H hosts of D devices behind switches; P pods of hosts"},
     tree_system,
     2,
     3},
    {{"package", "package:N", "chips, each with a link to each other one"}, package_system}};

constexpr auto kPresets = [] {
  std::array<SystemPreset, std::size(kPresetRows)> all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = kPresetRows[i].preset;
  return all;
}();

const PresetRow* find_preset(std::string_view name) {
  const auto* const row =
      std::find_if(std::begin(kPresetRows), std::end(kPresetRows),
                   [&](const PresetRow& each) { return each.preset.name == name; });
  return row == std::end(kPresetRows) ? nullptr : row;
}

Result<Sizes> sizes_of(std::string_view text, const PresetRow& row) {
  Sizes sizes;
  for (std::string_view piece : split(text, 'x')) {
    const Result<int64_t> size = parse_int(piece);
    if (!size.ok() || *size < 1 || *size > kMaxDevices)
      return bad_input("the size '{}' of the system is not in 1..{}", excerpt(piece), kMaxDevices)
          .with_hint(fmt::format("the form is {}", row.preset.form));
    sizes.push_back(*size);
  }
  if (sizes.size() < row.least || sizes.size() > row.most)
    return bad_input("'{}' are {} sizes", excerpt(text), sizes.size())
        .with_hint(fmt::format("the form is {}", row.preset.form));
  const std::optional<int64_t> product = checked_product(sizes);
  if (!product || *product > kMaxDevices)
    return over_limit("the system would have more than {} devices", kMaxDevices);
  return sizes;
}

}  // namespace

std::span<const SystemPreset> system_presets() { return kPresets; }

bool is_preset(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != text.npos && is_plain_name(text.substr(0, colon));
}

Result<System> preset_system(std::string_view text, const Target& target) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const PresetRow* const row = find_preset(name);
  if (row == nullptr) {
    std::vector<std::string_view> names;
    for (const SystemPreset& preset : kPresets) names.push_back(preset.name);
    return bad_input("'{}' is not the name of a system", excerpt(name))
        .with_hint(fmt::format("known are {}", join(names, ", ")));
  }
  const Sizes sizes = HONE_TRY(sizes_of(colon == text.npos ? "" : text.substr(colon + 1), *row));
  System system = row->make(text, sizes, target);
  HONE_TRY(check(system));
  return system;
}

Target part_of(const Target& target, int64_t parts) {
  if (parts <= 1) return target;
  Target part = target;
  part.cores = std::max<int64_t>(1, target.cores / parts);
  const double share = static_cast<double>(part.cores) / static_cast<double>(target.cores);
  const auto per_part = [&](double whole) { return std::max(whole * share, kMinTargetRate); };
  part.memory_bytes = std::max<int64_t>(1, target.memory_bytes / parts);
  if (part.memory_bytes > kMiB) part.memory_bytes -= part.memory_bytes % kMiB;
  part.memory_all_cores = per_part(target.memory_all_cores);
  part.memory_one_core = std::min(target.memory_one_core, part.memory_all_cores);
  for (CacheLevel& cache : part.caches) cache.cores = std::min(cache.cores, part.cores);
  if (part.cores == 1) part.fork_join = 0;
  part.measured = false;
  part.name = fmt::format("{}-part", target.name).substr(0, kMaxTargetName);
  if (target.name == default_name(target)) part.name = default_name(part);
  return part;
}

}  // namespace hone
