#include "front/onnx/metadata.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "front/onnx/node.h"

namespace hone::onnx_io {
namespace {

constexpr std::string_view kSymbols = "hone.symbols";
constexpr std::string_view kDonations = "hone.donations";
constexpr size_t kMostEntries = 4096;

[[noreturn]] void refuse(std::string_view key, std::string_view entry, std::string_view why) {
  throw Failure{bad_input("metadata {}: '{}' {}", key, escape(entry), why)};
}

int64_t number(std::string_view key, std::string_view entry, std::string_view text) {
  const Result<int64_t> value = parse_int(text);
  if (!value.ok() || *value < 0) refuse(key, entry, "has a field that is not a number from 0 on");
  return *value;
}

// The entries of a list, cut into as many words as each must have.
std::vector<std::vector<std::string_view>> entries(std::string_view key, std::string_view text,
                                                   size_t words) {
  std::vector<std::vector<std::string_view>> list;
  for (std::string_view entry : split(text, ';')) {
    list.push_back(split_words(entry));
    if (list.back().size() != words)
      refuse(key, entry, fmt::format("has {} fields, want {}", list.back().size(), words));
    if (list.size() > kMostEntries)
      throw Failure{over_limit("metadata {} has more than {} entries", key, kMostEntries)};
  }
  return list;
}

std::vector<Symbol> parse_symbols(std::string_view text) {
  std::vector<Symbol> symbols;
  std::set<std::string_view> names;
  for (const auto& words : entries(kSymbols, text, 4)) {
    const std::string_view name = words[0];
    if (!is_symbol_name(name)) refuse(kSymbols, name, "cannot name a symbol");
    if (!names.insert(name).second) refuse(kSymbols, name, "is listed twice");
    const int64_t least = number(kSymbols, name, words[1]);
    const int64_t most = number(kSymbols, name, words[2]);
    const int64_t step = number(kSymbols, name, words[3]);
    if (most > kDimLimit || step < 1 || most / step * step < least)
      refuse(kSymbols, name,
             fmt::format("has no value: {} to {}, a multiple of {}", least, most, step));
    symbols.push_back(Symbol::get(name, least, most, step));
  }
  return symbols;
}

std::vector<Donation> parse_donations(std::string_view text) {
  std::vector<Donation> donations;
  for (const auto& words : entries(kDonations, text, 2)) {
    const int64_t input = number(kDonations, words[0], words[0]);
    const int64_t output = number(kDonations, words[1], words[1]);
    if (std::max(input, output) > UINT32_MAX) refuse(kDonations, text, "counts too far");
    donations.push_back({static_cast<uint32_t>(input), static_cast<uint32_t>(output)});
  }
  return donations;
}

}  // namespace

Metadata read_metadata(const onnx::ModelProto& proto) {
  Metadata metadata;
  for (const onnx::StringStringEntryProto& entry : proto.metadata_props()) {
    if (entry.key() == kSymbols) metadata.symbols = parse_symbols(entry.value());
    if (entry.key() == kDonations) metadata.donations = parse_donations(entry.value());
  }
  return metadata;
}

void write_metadata(const Model& model, onnx::ModelProto& proto) {
  std::vector<std::string> symbols, donations;
  std::set<std::string> seen;
  for (const ModelValue& input : model.inputs)
    for (Dim dim : input.type.dims())
      for (Symbol symbol : dim.symbols())
        if (seen.insert(symbol.name()).second)
          symbols.push_back(fmt::format("{} {} {} {}", symbol.name(), symbol.min(), symbol.max(),
                                        symbol.multiple_of()));
  if (const Graph* graph = single_graph(model))
    for (const Donation& donation : graph->donations())
      donations.push_back(fmt::format("{} {}", donation.input, donation.output));
  auto add = [&](std::string_view key, const std::vector<std::string>& list) {
    if (list.empty()) return;
    onnx::StringStringEntryProto& entry = *proto.add_metadata_props();
    entry.set_key(std::string(key));
    entry.set_value(join(list, "; "));
  };
  add(kSymbols, symbols);
  add(kDonations, donations);
}

void apply_donations(Model& model, const std::vector<Donation>& donations) {
  if (donations.empty()) return;
  std::set<uint32_t> inputs, outputs;
  for (Donation d : donations) {
    const std::string entry = fmt::format("{} {}", d.input, d.output);
    if (d.input >= model.inputs.size() || d.output >= model.outputs.size())
      refuse(kDonations, entry,
             fmt::format("names no input or output: there are {} and {}", model.inputs.size(),
                         model.outputs.size()));
    if (!inputs.insert(d.input).second || !outputs.insert(d.output).second)
      refuse(kDonations, entry, "gives or takes a buffer twice");
    const Type given = model.inputs[d.input].type, taken = model.outputs[d.output].type;
    if (!(given == taken))
      refuse(kDonations, entry,
             fmt::format("gives {} for {}", given.to_string(), taken.to_string()));
  }
  const Graph* graph = single_graph(model);
  if (graph == nullptr) return;
  Graph donating = *graph;
  for (Donation d : donations) donating.add_donation(d.input, d.output);
  std::get<GraphSegment>(model.segments[0].kind).graph =
      std::make_shared<const Graph>(std::move(donating));
}

}  // namespace hone::onnx_io
