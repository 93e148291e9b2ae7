#include "kernel/kernel_text.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "ir/op_facts.h"
#include "ir/text_parser.h"
#include "kernel/update.h"

namespace hone {

namespace {

// ---- Checking -----------------------------------------------------------------------------------

Status check_layouts(const Graph& graph, std::string_view what, const std::vector<Layout>& layouts,
                     std::span<const ValueId> values) {
  if (layouts.size() != values.size())
    return bad_input("the kernel has {} {} and {} layouts of them", values.size(), what,
                     layouts.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (Status fits = check(layouts[i], graph.type(values[i])); !fits.ok())
      return std::move(fits).error().within(graph.label(values[i]));
  return {};
}

Status check_in_place(const KernelBody& body, std::span<const NodeId> nodes) {
  if (!body.in_place) return {};
  const Graph& graph = body.graph;
  if (nodes.size() != 1 || !is_update(graph.opcode(nodes[0])))
    return bad_input("only a kernel of one update works in place");
  const ValueId changed = graph.operands(nodes[0])[0];
  if (!is_parameter(graph.opcode(graph.producer(changed))))
    return bad_input("a kernel in place changes {}, which is not a parameter",
                     graph.label(changed));
  const size_t input =
      static_cast<size_t>(std::ranges::find(graph.inputs(), changed) - graph.inputs().begin());
  if (body.inputs[input] != body.outputs[0])
    return bad_input("a kernel in place changes {}, whose layout is not that of the result",
                     graph.label(changed));
  return {};
}

Status check_donations(const KernelBody& body, std::span<const NodeId> nodes) {
  const Graph& graph = body.graph;
  for (const Donation& donation : graph.donations()) {
    const ValueId donor = graph.inputs()[donation.input];
    if (!body.inputs[donation.input].is_row_major() ||
        !body.outputs[donation.output].is_row_major())
      return bad_input("{} is donated to an output, and both are not row-major",
                       graph.label(donor));
    if (body.in_place) continue;
    if (Status fits = check_elementwise(graph, nodes, donor); !fits.ok())
      return std::move(fits).error().within(graph.label(donor));
  }
  return {};
}

Status check_window(const KernelBody& body) {
  if (body.window.empty()) return {};
  const Type result = body.graph.type(body.graph.outputs()[0]);
  if (static_cast<int>(body.window.size()) != result.rank())
    return bad_input("the window has {} dims, and the results have {}", body.window.size(),
                     result.rank());
  for (int d = 0; d < result.rank(); ++d) {
    const int64_t points = body.window[static_cast<size_t>(d)];
    if (points < 1 || points > result.dim(d).range().high)
      return bad_input("the window has {} points along dim {} of {}", points, d,
                       result.to_string());
  }
  return {};
}

}  // namespace

Status check(const KernelBody& body) {
  const Graph& graph = body.graph;
  HONE_TRY(verify(graph));
  const std::vector<NodeId> nodes = computing_nodes(graph);
  for (NodeId node : nodes)
    if (is_composite(graph.opcode(node)))
      return unsupported("{} is a composite", name(graph.opcode(node)))
          .within(graph.describe(node));
  for (ValueId output : graph.outputs())
    if (!std::ranges::binary_search(nodes, graph.producer(output)))
      return bad_input("the output {} is not computed", graph.label(output));
  HONE_TRY(check_group(graph, nodes));
  HONE_TRY(check_layouts(graph, "parameters", body.inputs, graph.inputs()));
  HONE_TRY(check_layouts(graph, "outputs", body.outputs, graph.outputs()));
  HONE_TRY(check_in_place(body, nodes));
  HONE_TRY(check_donations(body, nodes));
  return check_window(body);
}

// ---- Printing -----------------------------------------------------------------------------------

namespace {

std::string text_of(const std::vector<Layout>& layouts) {
  std::vector<std::string> texts;
  for (const Layout& layout : layouts) texts.push_back(print(layout));
  return fmt::format("[{}]", join(texts, ", "));
}

}  // namespace

std::string print(const KernelBody& body) {
  std::string text = "kernel {\n";
  text += fmt::format("  inputs = {}\n", text_of(body.inputs));
  text += fmt::format("  outputs = {}\n", text_of(body.outputs));
  if (body.in_place) text += "  in_place = true\n";
  if (!body.window.empty()) text += fmt::format("  window = [{}]\n", join(body.window, ", "));
  return text + "}\n" + print(body.graph);
}

// ---- Parsing ------------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxPorts = 2 * kMaxGroupNodes + 2;  // parameters, or outputs

class KernelParser {
 public:
  KernelParser(std::string_view text, const ParseOptions& options) : text_(text, options) {}

  Result<KernelBody> parse() {
    HONE_TRY(text_.expect("kernel"));
    HONE_TRY(text_.expect("{"));
    while (!text_.eat("}")) HONE_TRY(field());
    for (const Field& field : kFields)
      if (field.is_needed && !seen_.contains(field.name))
        return text_.expected(fmt::format("the {} of the kernel before", field.name));
    const Token word = text_.peek();
    if (!word.is("graph")) return text_.expected("'graph'");
    body_.graph = HONE_TRY(text_.graph());
    if (text_.peek().kind != TokenKind::end) return text_.expected("the end of the text");
    if (Status good = check(body_); !good.ok()) return text_.at(word, std::move(good).error());
    return std::move(body_);
  }

 private:
  struct Field {
    std::string_view name;
    Status (KernelParser::*read)();
    bool is_needed;
  };

  Status field() {
    const Token word = text_.peek();
    const auto* at = std::ranges::find(kFields, word.text, &Field::name);
    if (at == kFields.end()) {
      std::vector<std::string_view> names;
      for (const Field& field : kFields) names.push_back(field.name);
      return text_.at(word, bad_input("a kernel has no '{}'", excerpt(word.text))
                                .with_hint(fmt::format("it has {}", join(names, ", "))));
    }
    if (!seen_.insert(at->name).second)
      return text_.at(word, bad_input("{} is given twice", at->name));
    text_.take();
    HONE_TRY(text_.expect("="));
    return (this->*at->read)();
  }

  Status inputs() { return layouts(body_.inputs); }
  Status outputs() { return layouts(body_.outputs); }
  Status in_place() {
    HONE_TRY(text_.expect("true"));
    body_.in_place = true;
    return {};
  }
  Status window() {
    return list([&]() -> Status {
      if (body_.window.size() == static_cast<size_t>(kMaxRank))
        return text_.expected(fmt::format("at most {} dims", kMaxRank));
      body_.window.push_back(HONE_TRY(text_.integer("a number of points", 1, INT64_MAX)));
      return {};
    });
  }

  Status layouts(std::vector<Layout>& layouts) {
    return list([&]() -> Status {
      const Token open = text_.peek();
      if (!open.is("[")) return text_.expected("a layout like [0, 1]");
      if (layouts.size() == kMaxPorts)
        return text_.at(open, over_limit("more than {} layouts", kMaxPorts));
      Result<Layout> layout = parse_layout(text_.take_brackets());
      if (!layout.ok()) return text_.at(open, std::move(layout).error());
      layouts.push_back(*std::move(layout));
      return {};
    });
  }

  // "[a, b]"; an element is read by the call.
  template <class Read>
  Status list(const Read& read) {
    HONE_TRY(text_.expect("["));
    if (text_.eat("]")) return {};
    do {
      HONE_TRY(read());
    } while (text_.eat(","));
    return text_.expect("]");
  }

  static const std::array<Field, 4> kFields;

  TextParser text_;
  KernelBody body_;
  std::set<std::string_view> seen_;
};

constexpr std::array<KernelParser::Field, 4> KernelParser::kFields = {{
    {"inputs", &KernelParser::inputs, true},
    {"outputs", &KernelParser::outputs, true},
    {"in_place", &KernelParser::in_place, false},
    {"window", &KernelParser::window, false},
}};

}  // namespace

Result<KernelBody> parse_kernel(std::string_view text, std::string_view file) {
  return KernelParser(text, {.file = file}).parse();
}

}  // namespace hone
