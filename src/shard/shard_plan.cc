#include "shard/shard_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/axis_text.h"
#include "base/text.h"
#include "ir/op_facts.h"
#include "ir/text_printer.h"
#include "shard/mesh_parts.h"
#include "shard/plan_text.h"
#include "shard/propagate.h"

namespace hone {

namespace {

// "x=2", or "\"odd name\"=2".
Result<MeshAxis> parse_axis(std::string_view text) {
  const Token first = Lexer(text).peek();
  const bool is_quoted = first.kind == TokenKind::string;
  const size_t equals = text.find('=', is_quoted ? first.offset + first.text.size() : 0);
  const std::string_view name = trim(text.substr(0, equals));
  const Result<int64_t> size = parse_int(
      equals == std::string_view::npos ? std::string_view() : trim(text.substr(equals + 1)));
  if (!size.ok())
    return bad_input("the axis '{}' has no size", excerpt(text)).with_hint("write x=2,y=4");
  if (is_quoted && name == first.text)
    return MeshAxis{HONE_TRY(unescape(name.substr(1, name.size() - 2))), *size};
  if (is_plain_axis(name)) return MeshAxis{std::string(name), *size};
  return bad_input("'{}' is no name of an axis", excerpt(name))
      .with_hint("letters, digits and _, as in x=2,y=4; other names stand in quotes");
}

}  // namespace

Result<MeshRef> parse_mesh(std::string_view text) {
  Mesh mesh = {"mesh", {}};
  for (const std::string_view axis : split_outside_brackets(text)) {
    if (mesh.axes.size() == kMostMeshAxes)
      return over_limit("a mesh has more than {} axes", kMostMeshAxes);
    mesh.axes.push_back(HONE_TRY(parse_axis(trim(axis))));
  }
  HONE_TRY(check(mesh));
  return std::make_shared<const Mesh>(std::move(mesh));
}

std::string mesh_text(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes)
    axes.push_back(fmt::format("{}={}", axis_text(axis.name), axis.size));
  return join(axes, ",");
}

ShardPlan shard_plan_of(const Graph& graph, MeshRef mesh) {
  ShardPlan plan = {.mesh = std::move(mesh)};
  const Shardings* all = graph.shardings();
  if (all == nullptr) return plan;
  ValueId last;
  for (const auto& [value, sharding] : all->values) {
    if (value == last) continue;  // the program asks for it later, in its own text
    last = value;
    plan.lines.push_back({.name = std::string(graph.name(value)), .dims = dims_text(sharding)});
  }
  for (const auto& [output, sharding] : all->outputs)
    plan.lines.push_back({.output = output, .dims = dims_text(sharding)});
  return plan;
}

std::string print(const ShardPlan& plan) {
  std::string text = fmt::format("mesh {}\n", mesh_text(*plan.mesh));
  for (const ShardPlan::Line& line : plan.lines) {
    if (line.name.empty()) {
      text += fmt::format("output {}", line.output);
    } else {
      text += "shard ";
      append_label(text, '%', line.name);
    }
    text += fmt::format(" = {}\n", trim(line.dims));
  }
  return text;
}

std::string print_shard_plan(const Graph& graph, const Mesh& mesh) {
  return print(shard_plan_of(graph, std::make_shared<const Mesh>(mesh)));
}

namespace {

Result<uint32_t> output_of(const Token& token) {
  const Result<int64_t> number = parse_int(token.text);
  if (!number.ok() || *number < 0 || *number >= int64_t{UINT32_MAX})
    return bad_input("'{}' is no number of an output", excerpt(token.text));
  return static_cast<uint32_t>(*number);
}

}  // namespace

Result<bool> read_shard_line(ShardPlan& plan, std::string_view line, int64_t number) {
  Lexer lexer(line);
  const Token word = lexer.take();
  if (word.is("mesh")) {
    if (plan.mesh != nullptr) return bad_input("the plan has two meshes");
    const size_t begin = word.offset + word.text.size();
    size_t end = begin;  // behind it are comments
    for (Token token = lexer.take(); token.kind != TokenKind::end; token = lexer.take())
      end = token.offset + token.text.size();
    plan.mesh = HONE_TRY(parse_mesh(trim(line.substr(begin, end - begin))));
    return true;
  }
  if (!word.is("shard") && !word.is("output")) return false;
  if (plan.mesh == nullptr) return bad_input("the first line is not that of the mesh");
  ShardPlan::Line made = {.line = number};
  const Token subject = lexer.take();
  if (word.is("shard"))
    made.name = HONE_TRY(name_of_value(subject, "value"));
  else
    made.output = HONE_TRY(output_of(subject));
  if (!lexer.peek().is("=")) return bad_input("behind what is divided stands no '='");
  made.dims = line.substr(lexer.peek().offset + 1);
  plan.lines.push_back(std::move(made));
  return true;
}

namespace {

// The mesh of the graph, if it has one: its shardings and those of the plan are of one mesh.
Result<MeshRef> mesh_for_plan(const Graph& graph, const ShardPlan& plan) {
  const MeshRef own = HONE_TRY(mesh_of_graph(graph));
  if (own == nullptr) return plan.mesh;
  if (own->axes == plan.mesh->axes) return own;
  return bad_input("{} is for the mesh {}, and the graph has {}", plan.teller,
                   mesh_text(*plan.mesh), mesh_text(*own))
      .at(plan.file);
}

MeshParts moving_parts(const Sharding& sharding, const std::vector<AxisPart>& axes) {
  return merged(moving_parts(*sharding.mesh, axes));
}

// A dim as both say it: the axes of the one that says more, if the other leaves them open.
std::optional<DimSharding> both(const Sharding& said, const Sharding& planned, size_t d) {
  DimSharding made = said.dims[d];
  const DimSharding& other = planned.dims[d];
  const MeshParts own = moving_parts(said, made.axes), wanted = moving_parts(planned, other.axes);
  if (own != wanted) {
    if (made.is_open && is_prefix(own, wanted))
      made.axes = other.axes;
    else if (!other.is_open || !is_prefix(wanted, own))
      return std::nullopt;
  }
  made.is_open = made.is_open && other.is_open;
  return made;
}

// Devices may make summands of a value that the graph divides along the same axes: who reads it
// gets its part of the sum.
bool adds_up_to(const Sharding& planned, const Sharding& said) {
  if (planned.partial.empty() || !said.partial.empty()) return false;
  MeshParts divided;  // what the sum is divided by
  for (size_t d = 0; d < said.dims.size(); ++d) {
    const MeshParts made = moving_parts(planned, planned.dims[d].axes);
    const MeshParts own = moving_parts(said, said.dims[d].axes);
    if (!is_prefix(made, own)) return false;
    const MeshParts rest = behind(made, own);
    divided.insert(divided.end(), rest.begin(), rest.end());
  }
  return std::ranges::all_of(moving_parts(planned, planned.partial), [&](const MeshPart& summands) {
    return std::ranges::find(divided, summands) != divided.end();
  });
}

// The graph's own statement, with what the plan adds to it.
Result<Sharding> both(const Sharding& said, const Sharding& planned, Type type,
                      std::string_view teller, std::string_view what) {
  if (adds_up_to(planned, said)) return planned;
  Sharding made = said;
  made.mesh = planned.mesh;
  const MeshParts partial = moving_parts(planned, planned.partial);
  bool is_same = moving_parts(said, said.partial) == partial &&
                 (partial.empty() || said.partial_kind == planned.partial_kind);
  for (size_t d = 0; d < made.dims.size() && is_same; ++d) {
    const std::optional<DimSharding> dim = both(said, planned, d);
    is_same = dim.has_value();
    if (dim) made.dims[d] = *dim;
  }
  // An axis that must divide no dim of the value stands twice otherwise.
  if (is_same && check(made, type).ok()) return made;
  return bad_input("{} divides {} as {}, and the graph says {}", teller, what, dims_text(planned),
                   dims_text(said))
      .with_hint(fmt::format("the graph's own word stays: leave {} out", what));
}

// Values by name, and what the plan says of them.
class PlanReader {
 public:
  PlanReader(const Graph& graph, const ShardPlan& plan, MeshRef mesh)
      : graph_(graph), plan_(plan), mesh_(std::move(mesh)) {
    if (graph.shardings() != nullptr) own_ = *graph.shardings();
    for (uint32_t i = 0; i < graph.value_count(); ++i)
      if (!graph.name({i}).empty()) values_.emplace(graph.name({i}), ValueId{i});
  }

  Result<Shardings> read() {
    Shardings made = own_;
    for (const ShardPlan::Line& line : plan_.lines) {
      Status good = line.name.empty() ? output(line, made) : value(line, made);
      if (good.ok()) continue;
      if (line.line == 0) return std::move(good).error().within(line.name + "=" + line.dims);
      return std::move(good).error().at(fmt::format("{}:{}", plan_.file, line.line));
    }
    return made;
  }

 private:
  Status value(const ShardPlan::Line& line, Shardings& made) {
    const auto found = values_.find(std::string_view(line.name));
    if (found == values_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, value] : values_) names.push_back(name);
      return bad_input("the graph has no value '{}'", excerpt(line.name))
          .with_hint(did_you_mean(line.name, names));
    }
    const ValueId v = found->second;
    if (!said_.insert(v.index).second)
      return bad_input("'{}' is divided twice", excerpt(line.name));
    Sharding planned = HONE_TRY(parse_sharding(line.dims, mesh_, graph_.type(v)));
    const std::vector<const Sharding*> own = own_.of(v);
    if (own.empty()) {
      made.add(v, std::move(planned));
      return {};
    }
    // The first one holds where the value is made.
    const auto first =
        std::ranges::lower_bound(made.values, v, {}, &std::pair<ValueId, Sharding>::first);
    first->second = HONE_TRY(both(*own[0], planned, graph_.type(v), plan_.teller, graph_.label(v)));
    return {};
  }

  Status output(const ShardPlan::Line& line, Shardings& made) {
    if (line.output >= graph_.outputs().size())
      return bad_input("there is no output {}: the graph has {}", line.output,
                       graph_.outputs().size());
    if (!said_outputs_.insert(line.output).second)
      return bad_input("output {} is divided twice", line.output);
    const Type type = graph_.type(graph_.outputs()[line.output]);
    Sharding sharding = HONE_TRY(parse_sharding(line.dims, mesh_, type));
    if (!sharding.partial.empty()) return bad_input("an output cannot be partial");
    if (const Sharding* own = own_.of_output(line.output))
      sharding =
          HONE_TRY(both(*own, sharding, type, plan_.teller, fmt::format("output {}", line.output)));
    made.set_output(line.output, std::move(sharding));
    return {};
  }

  const Graph& graph_;
  const ShardPlan& plan_;
  const MeshRef mesh_;
  Shardings own_;  // that the graph says
  std::unordered_map<std::string_view, ValueId> values_;
  std::set<uint32_t> said_, said_outputs_;
};

}  // namespace

Result<ShardPlan> parse_shard_plan(std::string_view text, std::string_view file) {
  if (std::ssize(text) > kMaxShardPlan)
    return over_limit("the plan has more than {}", format_bytes(kMaxShardPlan))
        .at(std::string(file));
  ShardPlan plan = {.file = std::string(file)};
  const auto read = [&](std::string_view line, int64_t number) -> Status {
    const Token word = Lexer(line).peek();
    if (word.kind == TokenKind::end || HONE_TRY(read_shard_line(plan, line, number))) return {};
    return bad_input("'{}' is no decision", excerpt(word.text))
        .with_hint("lines begin with mesh, shard or output");
  };
  HONE_TRY(read_plan_lines(text, plan.file, read));
  if (plan.mesh == nullptr)
    return bad_input("the plan has no mesh").at(plan.file).with_hint("begin with: mesh x=2,y=4");
  return plan;
}

Result<Graph> with_shard_plan(Graph graph, const ShardPlan& plan) {
  MeshRef mesh = HONE_TRY(mesh_for_plan(graph, plan));
  Shardings all = HONE_TRY(PlanReader(graph, plan, std::move(mesh)).read());
  graph.set_shardings(all.empty() ? nullptr : std::make_shared<const Shardings>(std::move(all)));
  return graph;
}

Status check_mesh(const ShardPlan& plan, const Mesh& mesh) {
  if (plan.mesh->axes == mesh.axes && mesh.devices.empty()) return {};
  return bad_input("the plan is for the mesh {}, not for {}", mesh_text(*plan.mesh),
                   mesh_text(mesh))
      .at(plan.file)
      .with_hint(fmt::format("--mesh {} on {} devices fits it", mesh_text(*plan.mesh),
                             plan.mesh->device_count()));
}

bool is_all_stated(const Graph& graph) {
  const Shardings* all = graph.shardings();
  for (const NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) continue;
    for (const ValueId v : graph.results(n))
      if (all == nullptr || all->of(v).empty()) return false;
  }
  for (uint32_t i = 0; i < graph.outputs().size(); ++i)
    if (all == nullptr || all->of_output(i) == nullptr) return false;
  return true;
}

}  // namespace hone
