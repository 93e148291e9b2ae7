#include "prove/family.h"

#include "base/text.h"

namespace hone {
namespace {

constexpr Family kFamilies[] = {
#define HONE_FAMILY(name, doc, max_ops, inputs, ops) {name, doc, max_ops, inputs, ops},
#include "prove/families.def"
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<Family> family_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Family& family : families()) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = fmt::format("the families are {}", fmt::join(names, ", "));
  return usage_error("there is no family '{}'", excerpt(name)).with_hint(std::move(hint));
}

Result<TermOps> term_ops(const Family& family) {
  const Graph head = HONE_TRY(parse_graph(
      fmt::format("graph @family{} {{ return }}", family.inputs), {.file = family.name}));
  TermOps terms = {.inputs = head.input_types(), .constants = {}, .ops = {}};
  for (std::string_view piece : split(family.ops, ';')) {
    const std::string_view text = trim(piece);
    if (const Result<double> number = parse_double(text); number.ok())
      terms.constants.push_back(*number);
    else
      terms.ops.push_back(HONE_TRY(parse_op(text, head.symbols())).canonical());
  }
  return terms;
}

}  // namespace hone
