#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/text_lexer.h"
#include "ir/sharding.h"
#include "ir/text.h"
#include "ir/text_constant.h"
#include "ir/text_printer.h"

namespace hone {
namespace {

// A signature with more parameters has one on each line.
constexpr size_t kParametersPerLine = 6;

void append_number(std::string& out, uint32_t number) {
  char digits[16];
  auto [end, code] = std::to_chars(digits, digits + sizeof(digits), number);
  out.append(digits, end);
}

// The name of a constant in the table of weights: plain, and no path that leaves a folder.
std::string weight_name(std::string_view wanted) {
  constexpr size_t kMaxLength = 1000;
  std::string name;
  for (char c : wanted.substr(0, kMaxLength)) {
    char kept = is_plain_name(std::string({'_', c})) ? c : '_';
    bool follows_mark = name.empty() || name.back() == '/' || name.back() == '.';
    name += follows_mark && (kept == '/' || kept == '.') ? '_' : kept;
  }
  if (name.empty() || !is_plain_name(name)) name.insert(0, 1, '_');
  if (name.back() == '/' || name.back() == '.') name.back() = '_';
  return name;
}

// The parameters that stand before all other nodes: those that the signature can list.
size_t leading_parameters(const Graph& graph) {
  size_t count = 0;
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) != Opcode::parameter) break;
    ++count;
  }
  return count;
}

// The names of the graph and its regions, in order of appearance.
void collect_symbols(const Graph& graph, std::vector<Symbol>& found) {
  for (Symbol symbol : graph.symbols())
    if (std::find(found.begin(), found.end(), symbol) == found.end()) found.push_back(symbol);
  for (NodeId n : graph.nodes())
    for (const GraphRef& region : graph.regions(n)) collect_symbols(*region, found);
}

}  // namespace

void append_label(std::string& out, char sigil, std::string_view name) {
  out += sigil;
  if (is_plain_name(name)) {
    out += name;
  } else {
    out += quoted(name);
  }
}

const std::string& TextPrinter::type_text(Type type) {
  auto [entry, is_new] = types_.try_emplace(type);
  if (is_new) entry->second = type.to_string();
  return entry->second;
}

void TextPrinter::symbols(const std::vector<Symbol>& symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    Symbol s = symbols[i];
    out_ += fmt::format("{}{} in {}..{}", i == 0 ? " where " : ", ", s.name(), s.min(), s.max());
    if (s.multiple_of() != 1) out_ += fmt::format(" step {}", s.multiple_of());
  }
}

void TextPrinter::value(const Graph& graph, ValueId v) {
  if (v.is_none()) {
    out_ += '_';
  } else if (std::string_view name = graph.name(v); !name.empty()) {
    append_label(out_, '%', name);
  } else {
    out_ += '%';
    append_number(out_, v.index);
  }
}

void TextPrinter::values(const Graph& graph, std::span<const ValueId> list) {
  for (size_t i = 0; i < list.size(); ++i) {
    out_ += i == 0 ? " " : ", ";
    value(graph, list[i]);
  }
}

void TextPrinter::donation(const Graph& graph, size_t input) {
  if (graph.donations().empty()) return;
  auto [entry, is_new] = donations_.try_emplace(&graph);
  std::multimap<size_t, uint32_t>& outputs = entry->second;
  if (is_new)
    for (const Donation& d : graph.donations()) outputs.emplace(d.input, d.output);
  auto [begin, end] = outputs.equal_range(input);
  for (auto it = begin; it != end; ++it) out_ += fmt::format(" donate {}", it->second);
}

// " mesh @m = [x = 2], @n = [y = 4]", or nothing
void TextPrinter::meshes(const Graph& graph) {
  const std::vector<MeshRef> all = meshes_of(graph);
  for (size_t i = 0; i < all.size(); ++i) {
    out_ += i == 0 ? " mesh " : ", ";
    append_label(out_, '@', all[i]->name);
    out_ += " = " + axes_text(*all[i]);
  }
}

void TextPrinter::sharding(const Sharding& sharding) {
  out_ += " on ";
  append_label(out_, '@', sharding.mesh->name);
  out_ += " " + dims_text(sharding);
}

void TextPrinter::shardings(const Graph& graph, ValueId v) {
  if (graph.shardings() == nullptr) return;
  for (const Sharding* one : graph.shardings()->of(v)) sharding(*one);
}

void TextPrinter::parameter(const Graph& graph, size_t input) {
  ValueId v = graph.inputs()[input];
  value(graph, v);
  out_ += ": ";
  type(graph.type(v));
  shardings(graph, v);
  donation(graph, input);
}

// "(%x: f32[3], %y: i64[] donate 0)"
void TextPrinter::signature(const Graph& graph, size_t parameters, int indent) {
  bool one_each = parameters > kParametersPerLine;
  out_ += '(';
  for (size_t i = 0; i < parameters; ++i) {
    if (i > 0) out_ += one_each ? "," : ", ";
    if (one_each) line(indent + 4);
    parameter(graph, i);
  }
  out_ += ')';
}

void TextPrinter::result_types(const Graph& graph) {
  std::span<const ValueId> outputs = graph.outputs();
  if (outputs.size() != 1) out_ += '(';
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) out_ += ", ";
    type(graph.type(outputs[i]));
  }
  if (outputs.size() != 1) out_ += ')';
}

void TextPrinter::graph(const Graph& graph, int indent) {
  size_t parameters = leading_parameters(graph);
  out_ += "graph ";
  append_label(out_, '@', graph.name());
  signature(graph, parameters, indent);
  out_ += " -> ";
  result_types(graph);
  std::vector<Symbol> found;
  collect_symbols(graph, found);
  symbols(found);
  meshes(graph);
  body(graph, parameters, indent);
}

void TextPrinter::body(const Graph& graph, size_t parameters, int indent) {
  out_ += " {";
  for (NodeId n : graph.nodes()) {
    if (n.index < parameters) continue;
    line(indent + 2);
    node(graph, n, indent + 2);
  }
  line(indent + 2);
  out_ += "return";
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    out_ += i == 0 ? " " : ", ";
    value(graph, graph.outputs()[i]);
    const Shardings* all = graph.shardings();
    const Sharding* stated = all == nullptr ? nullptr : all->of_output(static_cast<uint32_t>(i));
    if (stated != nullptr) sharding(*stated);
  }
  line(indent);
  out_ += '}';
}

void TextPrinter::node(const Graph& graph, NodeId n, int indent) {
  Op op = graph.op(n);
  ValueRange results = graph.results(n);
  for (size_t i = 0; i < results.size(); ++i) {
    if (i > 0) out_ += ", ";
    value(graph, results[i]);
  }
  if (results.size() > 0) out_ += " = ";
  out_ += op.name();
  if (op.opcode() == Opcode::constant) {
    std::string_view name = graph.name(results[0]);
    constant(graph.constant(n), name.empty() ? fmt::format("c{}", n.index) : std::string(name));
  } else if (op.opcode() == Opcode::parameter) {
    std::span<const ValueId> inputs = graph.inputs();  // in the order of their nodes
    auto input = std::lower_bound(inputs.begin(), inputs.end(), results[0]) - inputs.begin();
    donation(graph, static_cast<size_t>(input));
  } else {
    values(graph, graph.operands(n));
    auto [attrs, is_new] = attrs_.try_emplace(op);
    if (is_new && !op.attrs().empty()) attrs->second = op.attrs_to_string();
    if (!attrs->second.empty()) (out_ += ' ') += attrs->second;
    regions(graph, n, indent);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    out_ += i == 0 ? " : " : ", ";
    type(graph.type(results[i]));
    shardings(graph, results[i]);
  }
}

void TextPrinter::regions(const Graph& graph, NodeId n, int indent) {
  std::span<const GraphRef> regions = graph.regions(n);
  if (regions.empty()) return;
  std::vector<std::string_view> names = region_names(graph.op(n).def());
  for (size_t i = 0; i < regions.size(); ++i) {
    const Graph& region = *regions[i];
    out_ += ' ';
    out_ += names[i];
    out_ += ' ';
    if (region.name() != names[i]) append_label(out_, '@', region.name());
    size_t parameters = leading_parameters(region);
    signature(region, parameters, indent);
    body(region, parameters, indent);
  }
}

// True if to write one number for all elements. A large unread tensor is not read for this. The
// number of bytes is limited because parsing allocates them.
bool TextPrinter::as_splat(const Tensor& tensor) {
  if (tensor.elements() == 0) return false;
  bool is_large = tensor.elements() > options_.inline_elements;
  if (is_large) {
    if (!tensor.is_materialized()) return false;
    if (tensor.byte_size() > kSplatBytesPerText - splat_bytes_) return false;
  }
  if (!is_splat(tensor) || has_odd_nan(tensor, 1)) return false;
  splat_bytes_ += tensor.byte_size();
  return true;
}

void TextPrinter::constant(const Tensor& tensor, std::string_view wanted) {
  if (as_splat(tensor)) {
    out_ += ' ';
    append_element(out_, tensor, 0);
    return;
  }
  int64_t count = tensor.elements();
  if (count == 0 || (count <= options_.inline_elements && !has_odd_nan(tensor, count))) {
    out_ += " [";
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      append_element(out_, tensor, i);
    }
    out_ += ']';
  } else if (options_.elide) {
    out_ += " ...";
  } else if (options_.weights != nullptr) {
    out_ += ' ';
    append_label(out_, '@', options_.weights->add(weight_name(wanted), tensor));
  } else {
    out_ += " hex \"";
    append_hex(out_, tensor);
    out_ += '"';
  }
}

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  out.reserve(64 * graph.node_count());
  TextPrinter printer(out, options);
  printer.graph(graph, 0);
  out += '\n';
  return out;
}

std::string_view WeightTable::add(std::string_view wanted, Tensor tensor) {
  std::string name(wanted);
  if (by_name_.contains(name)) {
    int64_t& suffix = suffixes_[name];
    do {
      name = fmt::format("{}.{}", wanted, ++suffix);
    } while (by_name_.contains(name));
  }
  entries_.push_back({std::move(name), std::move(tensor)});
  by_name_.emplace(entries_.back().name, entries_.size() - 1);
  return entries_.back().name;
}

const Tensor* WeightTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second].tensor;
}

}  // namespace hone
