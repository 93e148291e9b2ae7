#include "lab/data/layout_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "report/data_set_text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LayoutCounts& counts) {
  Json json = {{"program", counts.program},
               {"sort", counts.sort},
               {"nodes", counts.nodes},
               {"configurable", counts.configurable},
               {"assignments", counts.assignments},
               {"measured", counts.known},
               {"whole", counts.whole},
               {"priced_by", counts.priced_by},
               {"done", counts.is_done}};
  if (counts.error) json["error"] = *counts.error;
  if (counts.ratio) json["composed_to_whole"] = *counts.ratio;
  return json;
}

}  // namespace

std::string layout_counts_text(std::span<const LayoutCounts> layouts) {
  if (layouts.empty()) return "";
  TextTable table("llrrrrrrl", {"layouts of", "", "nodes", "configurable", "assignments",
                                "measured %", "whole runs", "composed/whole", ""});
  size_t assignments = 0, whole = 0;
  double error = 0;
  for (const LayoutCounts& each : layouts) {
    assignments += each.assignments;
    whole += each.whole;
    error += each.error.value_or(0) * static_cast<double>(each.whole);
    table.add_row({each.program, each.sort, std::to_string(each.nodes),
                   std::to_string(each.configurable), std::to_string(each.assignments),
                   fmt::format("{:.1f}", 100 * each.known), std::to_string(each.whole),
                   each.ratio ? fmt::format("{:.2f}", *each.ratio) : "",
                   each.is_done ? "" : "not all yet"});
  }
  std::string text = "\n" + table.to_string() + "\n";
  text += fmt::format("{} assignments of layouts, {} runs of whole programs", assignments, whole);
  if (whole > 0)
    text += fmt::format("; composed times are off by {:.1f} %",
                        100 * error / static_cast<double>(whole));
  return text + "\n";
}

std::string data_set_json(const KernelData& data, std::span<const LayoutCounts> layouts) {
  Json json = Json::parse(kernel_data_json(data));
  Json& files = json["layouts"] = Json::array();
  for (const LayoutCounts& each : layouts) files.push_back(json_of(each));
  return json.dump(2) + "\n";
}

std::string split_text(std::span<const LayoutCounts> layouts, const ProgramSplit& split) {
  TextTable table("lrrr", {"part", "programs", "graphs", "assignments"});
  for (Part each : kParts) {
    size_t graphs = 0, assignments = 0;
    for (const LayoutCounts& counts : layouts) {
      if (!std::ranges::binary_search(split.of(each), counts.program)) continue;
      ++graphs;
      assignments += counts.assignments;
    }
    table.add_row({std::string(name(each)), std::to_string(split.of(each).size()),
                   std::to_string(graphs), std::to_string(assignments)});
  }
  return table.to_string();
}

}  // namespace hone
