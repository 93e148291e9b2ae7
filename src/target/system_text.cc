#include <algorithm>
#include <map>

#include "base/text.h"
#include "target/check_system.h"
#include "target/system.h"
#include "target/target_text.h"
#include "target/text_fields.h"

namespace hone {
namespace {

class SystemParser {
 public:
  SystemParser(std::string_view text, std::string_view file) : in_(text, file) {}

  Result<System> parse() {
    in_.skip_empty_lines();
    begin_ = in_.offset();
    HONE_TRY(in_.expect("system"));
    system_.name = HONE_TRY(in_.string("the system's name in quotes"));
    HONE_TRY(in_.expect("{"));
    HONE_TRY(in_.end_of_line());
    while (in_.peek() != "}") HONE_TRY(row());
    in_.take();
    in_.skip_empty_lines();
    if (!in_.peek().empty()) return in_.expected("the end of the text");
    HONE_TRY(check_system(
        system_,
        [&](SystemPart part, size_t index, Error error) {
          return in_.at(part == SystemPart::whole ? begin_ : places_[part][index],
                        std::move(error));
        }));
    return std::move(system_);
  }

 private:
  Status row() {
    const size_t offset = in_.offset();
    const std::string_view key = in_.peek();
    if (key.empty()) return in_.expected("'}'");
    const auto* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                           [&](const Row& row) { return row.name == key; });
    if (found == std::end(kRows)) {
      std::vector<std::string_view> names;
      for (const Row& row : kRows) names.push_back(row.name);
      return in_.at(offset, bad_input("there is no row '{}'", excerpt(key))
                                .with_hint(fmt::format("a row begins with {}", join(names, ", "))));
    }
    std::vector<size_t>& places = places_[found->part];
    places.push_back(offset);
    if (places.size() > kMaxSystemRows)
      return in_.at(offset, over_limit("more than {} rows '{}'", kMaxSystemRows, key));
    HONE_TRY((this->*found->read)());
    return in_.end_of_line();
  }

  Status read_target() {
    system_.targets.push_back(HONE_TRY(hone::read_target(in_)));
    return {};
  }

  // devices = 8 of "avx2-2c" with 24 GiB
  Status read_devices() {
    in_.take();
    HONE_TRY(in_.expect("="));
    DeviceRun run;
    run.count = HONE_TRY(in_.integer(1, kMaxDevices));
    HONE_TRY(in_.expect("of"));
    const size_t place = in_.offset();
    const std::string name = HONE_TRY(in_.string("the name of a target in quotes"));
    const auto target = std::find_if(system_.targets.begin(), system_.targets.end(),
                                     [&](const Target& each) { return each.name == name; });
    if (target == system_.targets.end())
      return in_.at(place,
                    bad_input("no target before has the name {}", hone::quoted(excerpt(name))));
    run.target = static_cast<size_t>(target - system_.targets.begin());
    run.memory_bytes = target->memory_bytes;
    if (in_.peek() == "with") {
      in_.take();
      run.memory_bytes = HONE_TRY(in_.bytes(kMaxTargetBytes));
    }
    system_.devices.push_back(run);
    return {};
  }

  // level host = 4 devices
  Status read_level() {
    in_.take();
    Level level;
    level.name = HONE_TRY(in_.plain_name("the name of a level"));
    HONE_TRY(in_.expect("="));
    level.devices = HONE_TRY(in_.integer(1, kMaxDevices));
    if (in_.peek() != "device")
      HONE_TRY(in_.expect("devices"));
    else
      in_.take();
    system_.levels.push_back(level);
    return {};
  }

  // axis model = 4
  Status read_axis() {
    in_.take();
    Axis axis;
    axis.name = HONE_TRY(in_.plain_name("the name of an axis"));
    HONE_TRY(in_.expect("="));
    axis.size = HONE_TRY(in_.integer(1, kMaxDevices));
    system_.axes.push_back(axis);
    return {};
  }

  // link port = star over host, full duplex, 12 GB/s, 2 us
  Status read_links() {
    in_.take();
    Links links;
    links.name = HONE_TRY(in_.plain_name("the name of the links"));
    HONE_TRY(in_.expect("="));
    const size_t place = in_.offset();
    const std::string_view word = in_.take();
    const auto* const shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                           [&](Shape each) { return name(each) == word; });
    if (shape == std::end(kShapes))
      return in_.at(place, unknown_name("shape", word, std::span(kShapes)));
    links.shape = *shape;
    if (links.shape == Shape::cable) {
      links.from = HONE_TRY(in_.integer(0, kMaxDevices - 1));
      HONE_TRY(in_.expect("to"));
      links.to = HONE_TRY(in_.integer(0, kMaxDevices - 1));
    } else {
      HONE_TRY(in_.expect("over"));
      links.over = HONE_TRY(in_.plain_name("the name of a level or an axis"));
    }
    HONE_TRY(in_.expect(","));
    links.duplex = Duplex::half;
    if (links.shape != Shape::bus) HONE_TRY(read_duplex(links.duplex));
    links.bytes_per_second = HONE_TRY(in_.quantity(kBandwidths, kMinBandwidth, kMaxBandwidth));
    HONE_TRY(in_.expect(","));
    links.latency = HONE_TRY(in_.quantity(kSeconds, 0, kMaxLatency));
    if (in_.peek() == ",") {
      in_.take();
      HONE_TRY(in_.expect("unshared"));
      links.shared = false;
    }
    system_.links.push_back(links);
    return {};
  }

  Status read_duplex(Duplex& duplex) {
    const size_t place = in_.offset();
    const std::string words = fmt::format("{} {}", in_.take(), in_.peek());
    const auto* const found = std::find_if(std::begin(kDuplexes), std::end(kDuplexes),
                                           [&](Duplex each) { return name(each) == words; });
    if (found == std::end(kDuplexes))
      return in_.at(place, unknown_name("way of a link", words, std::span(kDuplexes)));
    duplex = *found;
    in_.take();
    return in_.expect(",");
  }

  struct Row {
    std::string_view name;
    SystemPart part;
    Status (SystemParser::*read)();
  };
  static const Row kRows[5];

  FieldReader in_;
  System system_;
  size_t begin_ = 0;
  std::map<SystemPart, std::vector<size_t>> places_;  // of the rows
};

const SystemParser::Row SystemParser::kRows[5] = {
    {"target", SystemPart::target, &SystemParser::read_target},
    {"devices", SystemPart::devices, &SystemParser::read_devices},
    {"level", SystemPart::level, &SystemParser::read_level},
    {"axis", SystemPart::axis, &SystemParser::read_axis},
    {"link", SystemPart::links, &SystemParser::read_links}};

std::string indented(std::string_view text) {
  std::string out;
  for (std::string_view line : split_lines(text)) out += fmt::format("  {}\n", line);
  return out;
}

std::string row_text(const Links& links) {
  std::string out = fmt::format("  link {} = {} ", links.name, name(links.shape));
  out += links.shape == Shape::cable ? fmt::format("{} to {}", links.from, links.to)
                                     : fmt::format("over {}", links.over);
  if (links.shape != Shape::bus) out += fmt::format(", {}", name(links.duplex));
  out += fmt::format(", {}, {}", with_unit(links.bytes_per_second, kBandwidths[0]),
                     with_unit(links.latency, kSeconds[0]));
  return out + (links.shared ? "\n" : ", unshared\n");
}

}  // namespace

std::string print(const System& system) {
  std::string out = fmt::format("system {} {{\n", hone::quoted(system.name));
  for (const Target& target : system.targets) out += indented(print(target));
  for (const DeviceRun& run : system.devices)
    out += fmt::format("  devices = {} of {} with {}\n", run.count,
                       hone::quoted(system.targets[run.target].name), bytes_text(run.memory_bytes));
  for (const Level& level : system.levels)
    out += fmt::format("  level {} = {} {}\n", level.name, level.devices,
                       level.devices == 1 ? "device" : "devices");
  for (const Axis& axis : system.axes) out += fmt::format("  axis {} = {}\n", axis.name, axis.size);
  for (const Links& links : system.links) out += row_text(links);
  return out + "}\n";
}

Result<System> parse_system(std::string_view text, std::string_view file) {
  if (text.size() > kMaxSystemText)
    return over_limit("the text of a system has {} bytes, more than {}", text.size(),
                      kMaxSystemText)
        .within(file);
  return SystemParser(text, file).parse();
}

}  // namespace hone
