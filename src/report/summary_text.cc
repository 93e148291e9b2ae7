#include "report/summary_text.h"

#include "base/text.h"
#include "base/text_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace hone {
namespace {

std::string bindings_text(const Bindings& bindings) {
  std::vector<std::string> parts;
  for (const auto& [name, dim] : bindings)
    parts.push_back(fmt::format("{} = {}", name, dim.to_string()));
  return join(parts, ", ");
}

// "312 conv, 17 add": most frequent first.
std::string counts_text(const std::map<std::string_view, int64_t>& counts) {
  std::vector<std::pair<std::string_view, int64_t>> rows(counts.begin(), counts.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> parts;
  for (const auto& [name, count] : rows) parts.push_back(fmt::format("{} {}", count, name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string symbol_text(const Symbol& symbol) {
  std::string text = fmt::format("{} in {}..{}", symbol.name(), symbol.min(), symbol.max());
  if (symbol.multiple_of() != 1) text += fmt::format(", a multiple of {}", symbol.multiple_of());
  return text;
}

std::string donation_text(const GraphSummary& summary, Donation donation) {
  return fmt::format("{} may be stored in {}", escape(summary.outputs[donation.output].name),
                     escape(summary.inputs[donation.input].name));
}

nlohmann::ordered_json types_json(const std::vector<NamedType>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NamedType& row : rows) {
    nlohmann::ordered_json dims = nlohmann::ordered_json::array();
    for (Dim dim : row.type.dims()) {
      if (dim.is_static())
        dims.push_back(dim.value());
      else
        dims.push_back(dim.to_string());
    }
    list.push_back({{"name", row.name}, {"dtype", name(row.type.dtype())}, {"dims", dims}});
  }
  return list;
}

}  // namespace

std::string summary_text(const GraphSummary& summary) {
  TextTable table("lll");
  const auto types = [&](std::string title, const std::vector<NamedType>& rows) {
    for (const NamedType& row : rows)
      table.add_row({std::exchange(title, ""), escape(row.name), row.type.to_string()});
    if (rows.empty()) table.add_row({title, "none", ""});
  };
  types("inputs", summary.inputs);
  types("outputs", summary.outputs);
  types("largest tensors", summary.largest);
  std::string text = fmt::format("graph {}\n\n{}\n", escape(summary.name), table.to_string());

  TextTable facts("ll");
  for (const Symbol& symbol : summary.symbols) facts.add_row({"symbol", symbol_text(symbol)});
  for (Donation donation : summary.donations)
    facts.add_row({"donation", donation_text(summary, donation)});
  facts.add_row({"nodes", std::to_string(summary.nodes)});
  facts.add_row({"ops", counts_text(summary.op_counts)});
  facts.add_row({"composites", counts_text(summary.composite_counts)});
  facts.add_row(
      {"parameters",
       fmt::format("{} in {} constants, {}", format_count(static_cast<double>(summary.parameters)),
                   summary.constants, format_bytes(summary.constant_bytes))});
  const std::string at =
      summary.work_at.empty() ? "" : fmt::format(" at {}", bindings_text(summary.work_at));
  facts.add_row({"work", fmt::format("{} operations; {} multiply-adds in dots and convolutions{}",
                                     format_count(summary.flops), format_count(summary.macs), at)});
  facts.add_row({"traffic", fmt::format("{} read and written by all nodes{}",
                                        format_bytes(static_cast<int64_t>(summary.bytes)), at)});
  facts.add_row({"memory", fmt::format("{} of results alive at once{}",
                                       format_bytes(summary.peak_bytes), at)});
  return text + facts.to_string();
}

std::string summary_json(const GraphSummary& summary) {
  nlohmann::ordered_json object;
  object["name"] = summary.name;
  object["inputs"] = types_json(summary.inputs);
  object["outputs"] = types_json(summary.outputs);
  object["symbols"] = nlohmann::ordered_json::array();
  for (const Symbol& symbol : summary.symbols) {
    object["symbols"].push_back({{"name", symbol.name()},
                                 {"min", symbol.min()},
                                 {"max", symbol.max()},
                                 {"multiple_of", symbol.multiple_of()}});
  }
  object["donations"] = nlohmann::ordered_json::array();
  for (Donation donation : summary.donations)
    object["donations"].push_back({{"input", summary.inputs[donation.input].name},
                                   {"output", summary.outputs[donation.output].name}});
  object["nodes"] = summary.nodes;
  object["ops"] = summary.op_counts;
  object["composites"] = summary.composite_counts;
  object["constants"] = summary.constants;
  object["parameters"] = summary.parameters;
  object["constant_bytes"] = summary.constant_bytes;
  object["work_at"] = nlohmann::ordered_json::object();
  for (const auto& [name, dim] : summary.work_at) object["work_at"][name] = dim.value();
  object["flops"] = summary.flops;
  object["macs"] = summary.macs;
  object["bytes"] = summary.bytes;
  object["peak_bytes"] = summary.peak_bytes;
  object["largest"] = types_json(summary.largest);
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hone
