#include "cli/op_text.h"

#include "base/text.h"
#include "base/text_table.h"
#include "cli/help.h"

#include <algorithm>

namespace hone::cli {
namespace {

std::string_view kind_text(AttrKind kind) {
  switch (kind) {
    case AttrKind::flag: return "true or false";
    case AttrKind::integer: return "integer";
    case AttrKind::real: return "number";
    case AttrKind::word: return "word";
    case AttrKind::dtype: return "element type";
    case AttrKind::ints: return "integers";
    case AttrKind::reals: return "numbers";
    case AttrKind::dims: return "dims";
  }
  return "";
}

std::string values_text(const AttrSpec& spec) {
  return spec.words.empty() ? std::string(kind_text(spec.kind))
                            : join(split(spec.words, '|'), ", ");
}

std::string default_text(const AttrSpec& spec) {
  return spec.default_text.empty() ? "required" : std::string(spec.default_text);
}

std::string traits_text(const OpDef& def) {
  std::vector<std::string_view> facts;
  if (def.traits.commutative) facts.emplace_back("commutative");
  if (def.traits.identity != Identity::none) facts.emplace_back("associative");
  if (def.traits.moves_data) facts.emplace_back("moves data");
  if (def.traits.is_stepwise) facts.emplace_back("stepwise");
  if (def.traits.has_effect) facts.emplace_back("has an effect");
  return join(facts, ", ");
}

std::string without_period(std::string_view text) {
  return std::string(text.substr(0, text.size() - (text.ends_with('.') ? 1 : 0)));
}

// With a period at the end.
std::string sentence(std::string_view text) {
  return fmt::format("{}{}", text, text.ends_with('.') ? "" : ".");
}

// What | would end is a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string op_section(const OpDef& def) {
  std::string text = fmt::format("### {}\n\n`{}`", name(def.opcode), op_signature(def));
  if (def.results != "result") text += fmt::format(" gives `{}`", def.results);
  if (!def.regions.empty()) text += fmt::format(", with the regions `{}`", def.regions);
  text += fmt::format("\n\n{}", sentence(def.summary));
  if (!def.semantics.empty()) text += fmt::format(" {}", def.semantics);
  text += fmt::format("\n\nElement types: {}.", dtypes_text(def.dtypes));
  const std::string traits = traits_text(def);
  text += fmt::format(" Class: {}.", name(class_of(def.opcode)));
  if (!traits.empty()) text += fmt::format(" Traits: {}.", traits);
  text += "\n\n";
  if (def.attrs.empty()) return text;
  text += "| attribute | values | default | |\n|---|---|---|---|\n";
  for (const AttrSpec& spec : def.attrs) {
    const std::string fallback =
        spec.default_text.empty() ? "required" : fmt::format("`{}`", spec.default_text);
    text += fmt::format("| `{}` | {} | {} | {} |\n", spec.name, cell(values_text(spec)),
                        cell(fallback), cell(spec.doc));
  }
  return text + "\n";
}

}  // namespace

std::vector<std::string_view> op_families() {
  std::vector<std::string_view> families;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const std::string_view one = family(static_cast<Opcode>(i));
    if (std::find(families.begin(), families.end(), one) == families.end()) families.push_back(one);
  }
  return families;
}

std::vector<Opcode> ops_of_family(std::string_view wanted) {
  std::vector<Opcode> opcodes;
  for (int i = 0; i < kOpcodeCount; ++i)
    if (family(static_cast<Opcode>(i)) == wanted) opcodes.push_back(static_cast<Opcode>(i));
  return opcodes;
}

std::string op_signature(const OpDef& def) {
  return fmt::format("{}({})", name(def.opcode), def.operands);
}

std::string dtypes_text(DTypeSet dtypes) {
  static constexpr std::pair<DTypeSet, std::string_view> kNamed[] = {
      {kAny, "all"},
      {kComputable, "all but storage-only ones"},
      {kNumber, "numbers"},
      {kReal, "reals"},
      {kInteger, "integers"}};
  for (const auto& [set, text] : kNamed)
    if (set == dtypes) return std::string(text);
  std::vector<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i)
    if (dtypes.contains(static_cast<DType>(i))) names.push_back(name(static_cast<DType>(i)));
  return join(names, ", ");
}

std::string op_summary(const OpDef& def) { return without_period(def.summary); }

std::string op_text(const OpDef& def) {
  std::string text = fmt::format("{}", op_signature(def));
  if (def.results != "result") text += fmt::format(" -> {}", def.results);
  text += fmt::format("\n  {}\n", sentence(def.summary));
  if (!def.semantics.empty()) text += "\n" + paragraph(def.semantics);
  TextTable facts("ll");
  if (!def.regions.empty()) facts.add_row({"regions", std::string(def.regions)});
  facts.add_row({"element types", dtypes_text(def.dtypes)});
  const std::string traits = traits_text(def);
  facts.add_row({"class", std::string(name(class_of(def.opcode)))});
  if (!traits.empty()) facts.add_row({"traits", traits});
  text += "\n" + facts.to_string("  ");
  if (def.attrs.empty()) return text;
  TextTable attrs("llll", {"attribute", "values", "default", ""});
  for (const AttrSpec& spec : def.attrs)
    attrs.add_row(
        {std::string(spec.name), values_text(spec), default_text(spec), without_period(spec.doc)});
  return text + "\n" + attrs.to_string("  ");
}

std::string ops_markdown() {
  std::string text = R"(# Ops

<!-- Generated by `hone ops --markdown` from the op table; `./dev docs` writes it anew. -->

A primitive is defined by its reference semantics, stated here. A composite is a name for an
expression of primitives; its semantics is that of its expansion.

- `?` marks an operand that may be absent, `*` a last one that repeats.
- Reals follow IEEE 754: NaN and infinities propagate as the expression says, unless an op says
  otherwise. Integers wrap modulo 2^bits.
- *Numbers* are reals (f64, f32, f16, bf16) and integers (i64 to i8, u64 to u8). The types f8e4m3fn,
  f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1, i4, i2, u4 and u2 are for storage only: they can
  be held, moved and cast.
- Dims and axes count from 0; a composite also takes negative axes, counted from the back.

)";
  for (std::string_view title : op_families()) {
    std::vector<std::string> links;
    for (Opcode opcode : ops_of_family(title))
      links.push_back(fmt::format("[{0}](#{0})", name(opcode)));
    text += fmt::format("- {}: {}\n", title, join(links, ", "));
  }
  for (std::string_view title : op_families()) {
    text += fmt::format("\n## Family: {}\n\n", title);
    for (Opcode opcode : ops_of_family(title)) text += op_section(op_def(opcode));
    text.pop_back();
  }
  return text;
}

}  // namespace hone::cli
