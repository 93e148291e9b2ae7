#include <algorithm>
#include <array>

#include "base/text.h"
#include "ir/sharding.h"
#include "ir/text_parser.h"

// The shardings of a graph in its text (sharding.h says what they mean).

namespace hone {

Result<std::string> TextParser::axis_name() {
  const Token token = peek();
  if (token.kind == TokenKind::word && is_plain_axis(token.text)) return std::string(take().text);
  if (token.kind != TokenKind::string) return expected("the name of an axis");
  take();
  Result<std::string> name = unescape(token.text.substr(1, token.text.size() - 2));
  if (!name.ok()) return at(token, std::move(name).error());
  return name;
}

// "mesh @m = [x = 2, y = 4] devices [..], @n = [..]", or nothing.
Status TextParser::meshes() {
  meshes_.clear();
  if (!eat("mesh")) return {};
  do {
    const Label name = HONE_TRY(label(TokenKind::global, "the name of a mesh, like @m"));
    HONE_TRY(expect("="));
    Mesh mesh = {std::string(name.name), {}};
    HONE_TRY(expect("["));
    while (!eat("]")) {
      if (!mesh.axes.empty()) HONE_TRY(expect(","));
      MeshAxis& axis = mesh.axes.emplace_back();
      axis.name = HONE_TRY(axis_name());
      HONE_TRY(expect("="));
      axis.size = HONE_TRY(integer("the size of an axis"));
      if (mesh.axes.size() > kMostMeshAxes)
        return at(name.token, over_limit("a mesh has more than {} axes", kMostMeshAxes));
    }
    if (eat("devices")) {
      HONE_TRY(expect("["));
      while (!eat("]")) {
        if (!mesh.devices.empty()) HONE_TRY(expect(","));
        mesh.devices.push_back(HONE_TRY(integer("a device")));
      }
    }
    if (Status good = check(mesh); !good.ok()) return at(name.token, std::move(good).error());
    const auto same = [&](const MeshRef& one) { return one->name == mesh.name; };
    if (std::ranges::any_of(meshes_, same))
      return at(name.token, bad_input("the mesh '{}' is declared twice", excerpt(mesh.name)));
    if (meshes_.size() == kMostMeshes)
      return at(name.token, over_limit("there are more than {} meshes", kMostMeshes));
    meshes_.push_back(std::make_shared<const Mesh>(std::move(mesh)));
  } while (eat(","));
  return {};
}

// "x", "x:(2)4"
Result<AxisPart> TextParser::axis_part() {
  AxisPart part = {HONE_TRY(axis_name())};
  if (!eat(":")) return part;
  HONE_TRY(expect("("));
  part.before = HONE_TRY(integer("the size before a part of an axis"));
  HONE_TRY(expect(")"));
  part.size = HONE_TRY(integer("the size of a part of an axis"));
  if (part.size < 1) return at(peek(), bad_input("a part of an axis has the size {}", part.size));
  return part;
}

Result<std::vector<AxisPart>> TextParser::axis_list() {
  std::vector<AxisPart> parts;
  HONE_TRY(expect("["));
  while (!eat("]")) {
    if (!parts.empty()) HONE_TRY(expect(","));
    parts.push_back(HONE_TRY(axis_part()));
  }
  return parts;
}

Result<DimSharding> TextParser::dim_sharding() {
  DimSharding dim;
  if (!eat("-"))
    while (!peek().is(",") && !peek().is("]") && !peek().is("open") && !peek().is("priority"))
      dim.axes.push_back(HONE_TRY(axis_part()));
  dim.is_open = eat("open");
  if (eat("priority")) dim.priority = HONE_TRY(integer("a priority"));
  return dim;
}

// "[x, -] replicated [y] partial sum [z] group 1 passes forward"
Result<Sharding> TextParser::sharding_dims() {
  Sharding made;
  HONE_TRY(expect("["));
  while (!eat("]")) {
    if (!made.dims.empty()) HONE_TRY(expect(","));
    made.dims.push_back(HONE_TRY(dim_sharding()));
  }
  if (eat("replicated")) made.replicated = HONE_TRY(axis_list());
  // One of some words: what it names.
  const auto word_of = [&](const auto& all) {
    return std::ranges::find_if(all, [&](auto one) { return eat(name(one)); });
  };
  if (eat("partial")) {
    constexpr std::array kKinds = {PartialKind::sum, PartialKind::max, PartialKind::min};
    const auto* kind = word_of(kKinds);
    if (kind == kKinds.end()) return expected("sum, max or min");
    made.partial_kind = *kind;
    made.partial = HONE_TRY(axis_list());
  }
  if (eat("group")) made.group = HONE_TRY(integer("the number of a group", 0, INT64_MAX));
  if (!eat("passes")) return made;
  constexpr std::array kPassages = {AxisPassage::forward, AxisPassage::backward, AxisPassage::none};
  const auto* passage = word_of(kPassages);
  if (passage == kPassages.end()) return expected("forward, backward or none");
  made.passage = *passage;
  return made;
}

// "on @m [x, -] on ...", or nothing. The mesh may be declared later.
Result<std::vector<TextParser::ShardingText>> TextParser::shardings() {
  std::vector<ShardingText> all;
  while (eat("on")) {
    ShardingText& made = all.emplace_back();
    made.mesh = HONE_TRY(label(TokenKind::global, "the name of a mesh, like @m"));
    made.sharding = HONE_TRY(sharding_dims());
    if (all.size() > kMostValueShardings)
      return at(made.mesh.token,
                over_limit("a value has more than {} shardings", kMostValueShardings));
  }
  return all;
}

Result<Sharding> TextParser::sharding_on(MeshRef mesh, Type type) {
  Sharding made = HONE_TRY(sharding_dims());
  if (peek().kind != TokenKind::end) return expected("the end");
  made.mesh = std::move(mesh);
  HONE_TRY(check(made, type));
  return made;
}

Result<Sharding> parse_sharding(std::string_view text, MeshRef mesh, Type type) {
  return TextParser(text, {}).sharding_on(std::move(mesh), type);
}

Result<Sharding> TextParser::resolved(const ShardingText& text, Type type) {
  Sharding made = text.sharding;
  const auto found = std::ranges::find_if(
      meshes_, [&](const MeshRef& one) { return one->name == text.mesh.name; });
  if (found == meshes_.end())
    return at(text.mesh.token, bad_input("the mesh '{}' is not declared", excerpt(text.mesh.name))
                                   .with_hint("declare it behind the types of the results: "
                                              "mesh @m = [x = 2]"));
  made.mesh = *found;
  if (Status good = check(made, type); !good.ok())
    return at(text.mesh.token, std::move(good).error());
  return made;
}

Status TextParser::add_shardings(Scope& scope, const std::vector<ShardingText>& texts,
                                 ValueId value) {
  for (const ShardingText& text : texts)
    scope.shardings.add(value, HONE_TRY(resolved(text, scope.graph.type(value))));
  return {};
}

Status TextParser::output_sharding(Scope& scope, ValueId output, uint32_t index) {
  const std::vector<ShardingText> texts = HONE_TRY(shardings());
  if (texts.size() > 1) return at(texts[1].mesh.token, bad_input("an output has two shardings"));
  if (!texts.empty())
    scope.shardings.set_output(index, HONE_TRY(resolved(texts[0], scope.graph.type(output))));
  return {};
}

}  // namespace hone
