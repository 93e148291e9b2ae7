#include "front/onnx/body.h"

#include <algorithm>

#include "front/onnx/checks.h"
#include "front/onnx/deferred.h"
#include "front/onnx/signature.h"

namespace hone::onnx_io {
namespace {

constexpr int kMostElementBits = 56;

std::string body_name(const onnx::GraphProto& graph) {
  return graph.name().empty() ? "body" : graph.name();
}

bool means_something_in(const Flow& flow, Dim dim) {
  const std::vector<Symbol> symbols = dim.symbols();
  return std::ranges::all_of(symbols, [&](Symbol symbol) { return flow.means(symbol); });
}

// True if it fails as a segment, too, and for all sizes.
bool holds_everywhere(const Failure& failure) {
  return failure.is_structural || failure.error.code() == ErrorCode::limit;
}

// If the declared type of an input differs from the given one, it is told and ignored.
void note_other_dims(Node& n, const onnx::ValueInfoProto& info, Type type) {
  if (!has_other_dims(info, type)) return;
  n.frame().source()->note(fmt::format("{}: '{}' is declared as {}, but is {}", n.describe(),
                                       info.name(), declared_text(info), type.to_string()));
}

// Both must be tensors of one element type and rank.
void require_same_form(Node& n, Type a, Type b, std::string_view what) {
  if (a.dtype() != b.dtype() || a.rank() != b.rank())
    n.unsupported("{} is {} or {}: element type and rank must not change", what, a.to_string(),
                  b.to_string());
}

}  // namespace

Result<Region> import_region(Node& n, const onnx::GraphProto& graph,
                             const std::vector<Type>& parameters) {
  if (static_cast<size_t>(graph.input_size()) != parameters.size())
    n.bad("the subgraph has {} inputs, {} are given", graph.input_size(), parameters.size());
  Region region;
  region.flow = std::make_unique<Flow>(&n.flow(), Flow::Kind::region, body_name(graph));
  region.frame = std::make_unique<Frame>(n.frame());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const onnx::ValueInfoProto& info = graph.input(static_cast<int>(i));
    check_element_type(info, parameters[i]);
    note_other_dims(n, info, parameters[i]);
    Slot* slot = region.flow->parameter(info.name(), parameters[i]);
    region.frame->define(info.name(), slot);
    region.parameters.push_back(slot->value);
  }
  try {
    import_graph(*region.frame, *region.flow, graph);
  } catch (NotARegion& what) {
    return std::move(what.why);
  } catch (Failure& failure) {
    if (holds_everywhere(failure)) throw;
    return std::move(failure.error);
  }
  for (const onnx::ValueInfoProto& info : graph.output())
    region.results.push_back(region.flow->value_of(*region.frame->find(info.name())));
  if (n.is_checked()) region.results.push_back(region.flow->found());
  return region;
}

std::vector<Slot*> joined(const std::vector<Slot*>& a, const std::vector<Slot*>& b) {
  std::vector<Slot*> all = a;
  for (Slot* slot : b)
    if (std::find(a.begin(), a.end(), slot) == a.end()) all.push_back(slot);
  return all;
}

Result<GraphRef> finish(Region& region, const std::vector<Slot*>& captures) {
  GraphRef graph = HONE_TRY(region.flow->finish_region(region.results));
  const std::vector<Slot*>& own = region.flow->captures();
  if (own == captures) return graph;
  Builder whole(graph->name());
  std::vector<Value> arguments;
  for (Value parameter : region.parameters)
    arguments.push_back(whole.parameter("", graph->type(parameter.id())));
  arguments.resize(graph->inputs().size());
  for (Slot* slot : captures) {
    auto at = std::find(own.begin(), own.end(), slot);
    // One that only the other branch reads has the same type in any graph.
    Type type = region.flow->seen(slot->type);
    if (at == own.end()) {
      whole.parameter("", type);
      continue;
    }
    size_t index = region.parameters.size() + static_cast<size_t>(at - own.begin());
    arguments[index] = whole.parameter("", graph->type(graph->inputs()[index]));
  }
  return std::make_shared<const Graph>(HONE_TRY(whole.finish(whole.inlined(*graph, arguments))));
}

namespace {

// "" as `found_before`: nothing was found before.
SegmentBody import_into(Flow& flow, Node& n, const onnx::GraphProto& graph,
                        const std::vector<BodyInput>& inputs, size_t first_stacked,
                        const std::string& found_before) {
  if (static_cast<size_t>(graph.input_size()) != inputs.size())
    n.bad("the subgraph has {} inputs, {} are given", graph.input_size(), inputs.size());
  Frame frame(n.frame());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const onnx::ValueInfoProto& info = graph.input(static_cast<int>(i));
    Slot* slot = inputs[i].name.empty()
                     ? flow.constant("", Tensor::from_integers(inputs[i].type, Ints{1}))
                     : flow.external(inputs[i].name, inputs[i].type, inputs[i].contents);
    frame.define(info.name(), slot);
  }
  import_initializers(frame, flow, graph);
  import_nodes(frame, flow, graph);
  SegmentBody made;
  if (!flow.constraints().empty()) return made;
  std::vector<Slot*> results;
  for (const onnx::ValueInfoProto& info : graph.output()) {
    Slot* slot = frame.find(info.name());
    if (results.size() >= first_stacked)
      slot = flow.define(slot->name + "_piece", unsqueeze(flow.value_of(*slot), 0));
    results.push_back(slot);
    made.types.push_back(results.back()->type);
  }
  if (n.is_checked()) {
    Value found = flow.found();
    if (!found_before.empty())
      found = first_found(flow.value_of(*flow.external(found_before, found_type())), found);
    const size_t at = std::min(first_stacked, results.size());
    results.insert(results.begin() + static_cast<long>(at), flow.define("found", found));
    made.checks = flow.checks();
  }
  made.body = n.take(flow.finish(results));
  return made;
}

// The sizes for which an attempt to import a branch takes numbers.
constexpr int kMostAttempts = 16;

}  // namespace

SegmentBody import_body(Node& n, const onnx::GraphProto& graph,
                        const std::vector<BodyInput>& inputs, size_t first_stacked,
                        const std::string& found) {
  Flow flow(&n.flow(), Flow::Kind::body, body_name(graph));
  return import_into(flow, n, graph, inputs, first_stacked, found);
}

Branch import_branch(Node& n, const onnx::GraphProto& graph) {
  Branch branch;
  Bindings narrowed = n.flow().narrowed();
  for (int attempt = 0;; ++attempt) {
    Flow flow(&n.flow(), Flow::Kind::body, body_name(graph));
    flow.narrow(narrowed);
    flow.may_narrow = attempt < kMostAttempts;
    try {
      branch.body = import_into(flow, n, graph, {}, SIZE_MAX, "");
      if (flow.constraints().empty()) return branch;
      for (const Constraint& one : flow.constraints()) {
        narrow_further(narrowed, one.sizes);
        narrow_further(branch.sizes, one.sizes);
      }
    } catch (Failure& failure) {
      if (holds_everywhere(failure)) throw;
      branch.error = std::move(failure.error);
      return branch;
    }
  }
}

SegmentBody untyped_branch(Node& n, const onnx::GraphProto& graph, const std::vector<Type>& types) {
  Flow flow(&n.flow(), Flow::Kind::body, body_name(graph));
  Frame frame(n.frame());
  import_initializers(frame, flow, graph);
  SegmentBody made = {
      {}, defer_all(frame, flow, graph, types, fmt::format("branch '{}'", body_name(graph)))};
  std::vector<Slot*> results;
  for (const onnx::ValueInfoProto& info : graph.output())
    results.push_back(frame.find(info.name()));
  if (n.is_checked()) results.push_back(flow.define("found", nothing_found(flow.builder())));
  made.body = n.take(flow.finish(results));
  return made;
}

Type common_type(Node& n, const std::vector<Type>& types, std::string_view what) {
  Type first = types.front();
  for (Type type : types) require_same_form(n, first, type, what);
  Dims dims(first.dims().begin(), first.dims().end());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    bool is_common = means_something_in(n.flow(), dims[axis]);
    int64_t most = 0;
    for (Type type : types) {
      Dim dim = type.dim(static_cast<int>(axis));
      is_common &= dim == dims[axis];
      most = std::max(most, dim.range().high);
    }
    // Sizes that are not known share the elements that a type may have.
    most = std::min(most, int64_t{1} << std::min(31, kMostElementBits / first.rank()));
    if (!is_common) dims[axis] = n.flow().fresh_symbol("size", most);
  }
  return n.take(Type::make(first.dtype(), dims));
}

Type wider_type(Node& n, Type type, Type next, std::string_view what) {
  require_same_form(n, type, next, what);
  Dims dims(type.dims().begin(), type.dims().end());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    bool is_open = !means_something_in(n.flow(), dims[axis]);
    if (!is_open && next.dim(static_cast<int>(axis)) != dims[axis])
      dims[axis] = n.flow().fresh_symbol("size", kMostGrown);
  }
  return n.take(Type::make(type.dtype(), dims));
}

std::vector<std::string> define_results(Node& n, const std::vector<Type>& types) {
  std::vector<std::string> names;
  for (size_t i = 0; i < types.size(); ++i) {
    bool is_wanted = n.wants(i);
    std::string wish = is_wanted ? n.proto().output(static_cast<int>(i)) : "result";
    names.push_back(n.flow().fresh_name(n.frame().prefix() + wish));
    if (is_wanted) n.out(i, n.flow().external(names.back(), types[i]));
  }
  return names;
}

Value as_flag(Node& n, Value value, std::string_view what) {
  if (value.dtype() != DType::boolean || !value.type().is_static() ||
      value.type().static_elements() != 1)
    n.bad("{} is {}, must be one bool", what, value.type().to_string());
  return value.rank() == 0 ? value : reshape(value, {});
}

std::optional<bool> known_flag(Node& n, Value flag) {
  std::optional<Dims> known = n.flow().contents().of(flag.id());
  if (!known || !known->front().is_static()) return {};
  return known->front().value() != 0;
}

}  // namespace hone::onnx_io
