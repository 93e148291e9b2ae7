#include "report/summary_text.h"

#include "base/text.h"
#include "base/text_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

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

nlohmann::ordered_json symbols_json(const std::vector<Symbol>& symbols) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Symbol& symbol : symbols)
    list.push_back({{"name", symbol.name()},
                    {"min", symbol.min()},
                    {"max", symbol.max()},
                    {"multiple_of", symbol.multiple_of()}});
  return list;
}

nlohmann::ordered_json summary_object(const GraphSummary& summary) {
  nlohmann::ordered_json object;
  object["name"] = summary.name;
  object["inputs"] = types_json(summary.inputs);
  object["outputs"] = types_json(summary.outputs);
  object["symbols"] = symbols_json(summary.symbols);
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
  return object;
}

std::string dumped(const nlohmann::ordered_json& object) {
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::vector<NamedType> named_types(std::span<const ModelValue> values) {
  std::vector<NamedType> rows;
  for (const ModelValue& value : values) rows.push_back({value.name, value.type});
  return rows;
}

void add_types(TextTable& table, std::string title, const std::vector<NamedType>& rows) {
  for (const NamedType& row : rows)
    table.add_row({std::exchange(title, ""), excerpt(row.name), row.type.to_string()});
  if (rows.empty()) table.add_row({title, "none", ""});
}

std::string names_text(const std::vector<std::string>& names) { return escape(join(names, ", ")); }

// A row per segment; the segments inside of it follow, indented.
Status add_segments(TextTable& outline, std::span<const Segment> segments,
                    const std::string& indent) {
  for (const Segment& segment : segments) {
    if (const auto* run = std::get_if<GraphSegment>(&segment.kind)) {
      const GraphSummary summary = HONE_TRY(summarize(*run->graph));
      outline.add_row(
          {fmt::format("{}run {}", indent, escape(summary.name)), std::to_string(summary.nodes),
           format_count(static_cast<double>(summary.parameters)), names_text(run->outputs)});
    } else if (const auto* choice = std::get_if<IfSegment>(&segment.kind)) {
      outline.add_row({fmt::format("{}if {}", indent, escape(choice->condition)), "", "",
                       names_text(choice->results)});
      HONE_TRY(add_segments(outline, choice->on_true.segments, indent + "  "));
      outline.add_row({indent + "else", "", "", ""});
      HONE_TRY(add_segments(outline, choice->on_false.segments, indent + "  "));
    } else if (const auto* deferred = std::get_if<DeferredSegment>(&segment.kind)) {
      outline.add_row({fmt::format("{}deferred {}", indent, escape(deferred->source->describe())),
                       "", "", names_text(deferred->results)});
    } else {
      const auto& loop = std::get<LoopSegment>(segment.kind);
      outline.add_row({indent + "loop", "", "", names_text(loop.results)});
      HONE_TRY(add_segments(outline, loop.body.segments, indent + "  "));
    }
  }
  return {};
}

Result<nlohmann::ordered_json> segments_json(std::span<const Segment> segments) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Segment& segment : segments) {
    nlohmann::ordered_json object;
    if (const auto* run = std::get_if<GraphSegment>(&segment.kind)) {
      object["kind"] = "run";
      object["inputs"] = run->inputs;
      object["results"] = run->outputs;
      object["graph"] = summary_object(HONE_TRY(summarize(*run->graph)));
    } else if (const auto* choice = std::get_if<IfSegment>(&segment.kind)) {
      object["kind"] = "if";
      object["condition"] = choice->condition;
      object["results"] = choice->results;
      object["on_true"] = HONE_TRY(segments_json(choice->on_true.segments));
      object["on_false"] = HONE_TRY(segments_json(choice->on_false.segments));
    } else if (const auto* deferred = std::get_if<DeferredSegment>(&segment.kind)) {
      object["kind"] = "deferred";
      object["what"] = deferred->source->describe();
      object["inputs"] = deferred->inputs;
      object["results"] = deferred->results;
    } else {
      const auto& loop = std::get<LoopSegment>(segment.kind);
      object["kind"] = "loop";
      object["trip_count"] = loop.trip_count;
      object["condition"] = loop.condition;
      object["results"] = loop.results;
      object["body"] = HONE_TRY(segments_json(loop.body.segments));
    }
    list.push_back(std::move(object));
  }
  return list;
}

// Symbols of the inputs.
std::vector<Symbol> symbols_of(const Model& model) {
  std::vector<Symbol> symbols;
  for (const ModelValue& input : model.inputs)
    for (Dim dim : input.type.dims())
      for (Symbol symbol : dim.symbols())
        if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
  return symbols;
}

// Their ranges, and those that branches need, where these are smaller.
std::string symbols_text(const Model& model) {
  TextTable table("ll");
  const std::vector<Symbol> symbols = symbols_of(model);
  for (const Symbol& symbol : symbols) table.add_row({"symbol", symbol_text(symbol)});
  for (const Graph* graph : graphs_of(model))
    for (const Symbol& symbol : graph->symbols())
      if (std::ranges::find(symbols, symbol.name(), &Symbol::name) != symbols.end() &&
          std::ranges::find(symbols, symbol) == symbols.end())
        table.add_row(
            {"", fmt::format("{} where {} runs", symbol_text(symbol), escape(graph->name()))});
  return symbols.empty() ? "" : table.to_string() + "\n";
}

}  // namespace

std::string summary_text(const GraphSummary& summary) {
  TextTable table("lll");
  add_types(table, "inputs", summary.inputs);
  add_types(table, "outputs", summary.outputs);
  add_types(table, "largest tensors", summary.largest);
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

std::string summary_json(const GraphSummary& summary) { return dumped(summary_object(summary)); }

Result<std::string> model_text(const Model& model) {
  TextTable ends("lll");
  add_types(ends, "inputs", named_types(model.inputs));
  add_types(ends, "outputs", named_types(model.outputs));
  TextTable outline("lrrl", {"segment", "nodes", "parameters", "results"});
  HONE_TRY(add_segments(outline, model.segments, ""));
  return fmt::format("model {}\n\n{}\n{}{}", escape(model.name), ends.to_string(),
                     symbols_text(model), outline.to_string());
}

Result<std::string> model_json(const Model& model) {
  nlohmann::ordered_json object;
  object["name"] = model.name;
  object["inputs"] = types_json(named_types(model.inputs));
  object["outputs"] = types_json(named_types(model.outputs));
  object["symbols"] = symbols_json(symbols_of(model));
  object["segments"] = HONE_TRY(segments_json(model.segments));
  return dumped(object);
}

}  // namespace hone
