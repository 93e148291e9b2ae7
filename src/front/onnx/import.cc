#include "front/onnx/import.h"

#include <algorithm>
#include <set>

#include "front/onnx/constraints.h"
#include "front/onnx/deferred.h"
#include "front/onnx/functions.h"
#include "front/onnx/metadata.h"
#include "front/onnx/registry.h"
#include "front/onnx/signature.h"
#include "front/onnx/strings.h"

namespace hone::onnx_io {
namespace {

std::string place_of(const onnx::NodeProto& proto) {
  const bool has_name = !proto.name().empty() || proto.output_size() == 0;
  return fmt::format("node '{}' ({})", has_name ? proto.name() : proto.output(0), proto.op_type());
}

void define_results(Frame& frame, Flow& flow, const onnx::NodeProto& proto,
                    const Node::Outcome& outcome) {
  if (!outcome.cuts.empty() && flow.kind() == Flow::Kind::region) throw NotARegion();
  std::map<uint32_t, Symbol> sizes;  // one for results that are cut by the same count
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (name.empty()) continue;
    size_t at = static_cast<size_t>(i);
    if (at < outcome.slots.size() && outcome.slots[at] != nullptr) {
      frame.define(name, outcome.slots[at]);
      continue;
    }
    Value value = outcome.values[at];
    auto cut = std::find_if(outcome.cuts.begin(), outcome.cuts.end(),
                            [&](const Node::Cut& c) { return c.output == at; });
    if (cut == outcome.cuts.end()) {
      frame.define(name, flow.define(frame.prefix() + name, value));
      continue;
    }
    int64_t most = value.dim(cut->axis).range().high;
    auto size = sizes.find(cut->count.id().index);
    if (size == sizes.end())
      size = sizes.emplace(cut->count.id().index, flow.fresh_symbol(name + "_count", most)).first;
    frame.define(
        name, flow.define_cut(frame.prefix() + name, value, cut->axis, cut->count, size->second));
  }
  if (!outcome.cuts.empty()) flow.cut();
}

// True if the node takes some of the numbers that open sizes may be: it can be mapped again.
bool constrains(Frame& frame, Flow& flow, const onnx::NodeProto& proto, const Failure& failure) {
  constexpr size_t kMost = 256;  // of one pass
  if (!flow.may_narrow || !flow.has_symbols() || failure.is_structural) return false;
  if (flow.constraints().size() == kMost) return false;
  std::optional<Constraint> found =
      constraint_of(frame, flow, proto, failure.demand, failure.error);
  if (!found) return false;
  found->why = std::move(found->why).within(place_of(proto));
  flow.constrain(*std::move(found));
  return true;
}

void import_op(Frame& frame, Flow& flow, const onnx::NodeProto& proto) {
  std::string domain = canonical_domain(proto.domain());
  int version = frame.version(domain);
  Result<const Row*> row = find_row(domain, proto.op_type(), version);
  if (!row.ok()) throw Failure{std::move(row).error()};
  Node node(frame, flow, proto, version);
  for (;;) {
    const DemandListener listener;
    try {
      define_results(frame, flow, proto, node.map((*row)->mapping));
      return;
    } catch (const NeedSizes& need) {
      if (flow.kind() == Flow::Kind::region) throw NotARegion();
      const Dims sizes = flow.cut_for_sizes(need.sizes, node.checked());
      if (need.reason) flow.add_measured(sizes, *need.reason);
      node.resolve(sizes);
    } catch (const NeedNarrowed& need) {
      if (flow.kind() == Flow::Kind::region) throw NotARegion();
      flow.cut_and_narrow(need.sizes, node.checked());
    } catch (const NeedValue& need) {
      if (flow.kind() == Flow::Kind::region) throw NotARegion();
      flow.learn(*need.slot);
    } catch (Constraint& constraint) {
      flow.constrain(std::move(constraint));
    } catch (Failure& failure) {
      failure.demand = listener.last();
      if (!constrains(frame, flow, proto, failure)) throw;
    }
  }
}

}  // namespace

void import_node(Frame& frame, Flow& flow, const onnx::NodeProto& proto) {
  const OnnxLimits& limits = frame.source()->options.limits;
  try {
    if (++frame.node_count() > limits.nodes)
      throw Failure{
          over_limit("more than {} nodes, functions and subgraphs inlined", limits.nodes)};
    if (Status good = frame.file().strings().check(proto); !good.ok() && !frame.is_function())
      throw Failure{std::move(good).error()};
    if (const onnx::FunctionProto* function = find_function(*frame.source(), proto))
      import_call(frame, flow, proto, *function);
    else
      import_op(frame, flow, proto);
  } catch (Failure& failure) {
    failure.error = std::move(failure.error).within(place_of(proto));
    throw;
  }
}

void import_initializers(Frame& frame, Flow& flow, const onnx::GraphProto& graph) {
  auto define = [&](const std::string& name, Result<Tensor> tensor) {
    if (!tensor.ok())
      throw Failure{std::move(tensor).error().within(fmt::format("initializer '{}'", name))};
    if (name.empty()) throw Failure{bad_input("an initializer has no name")};
    frame.define(name, flow.constant(frame.prefix() + name, std::move(*tensor)));
  };
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.data_type() == onnx::TensorProto::STRING && frame.is_function())
      throw Failure{unsupported("initializer '{}': strings in a local function", tensor.name())};
    define(tensor.name(), frame.file().tensor(tensor));
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    define(tensor.values().name(), frame.file().tensor(tensor));
}

namespace {

// Checks the declared types of inner values. The values of a deferred rest are not there yet, and
// for values that no node reads exporters write dims that mean nothing. Declared dims speak of the
// sizes in the file; sizes that the user sets take their place.
void check_value_info(Frame& frame, const onnx::GraphProto& graph) {
  const ImportOptions& options = frame.source()->options;
  bool has_own_sizes = options.dims.empty() && options.shapes.empty() && !options.override_shapes;
  std::optional<std::set<std::string>> read;  // collected when it matters
  std::string first;
  int others = -1;
  for (const onnx::ValueInfoProto& info : graph.value_info()) {
    if (info.type().tensor_type().elem_type() == onnx::TensorProto::UNDEFINED) continue;
    const Slot* slot = frame.find_or_null(info.name());
    if (slot == nullptr) continue;
    check_element_type(info, slot->type);
    if (!has_own_sizes || !has_other_dims(info, slot->type)) continue;
    if (!read) read = names_read(graph);
    if (!read->contains(info.name())) continue;
    if (++others == 0)
      first = fmt::format("value '{}' is declared as {}, but is {}", info.name(),
                          declared_text(info), slot->type.to_string());
  }
  if (others < 0) return;
  if (others > 0) first += fmt::format("; {} more values are declared otherwise", others);
  frame.source()->note(std::move(first));
}

}  // namespace

void import_graph(Frame& frame, Flow& flow, const onnx::GraphProto& graph) {
  if (frame.depth() > frame.source()->options.limits.nesting)
    throw Failure{over_limit("graphs and functions are nested more than {} deep",
                             frame.source()->options.limits.nesting)};
  import_initializers(frame, flow, graph);
  for (const onnx::NodeProto& node : graph.node()) import_node(frame, flow, node);
  check_value_info(frame, graph);
}

void import_nodes(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first,
                  bool is_rest) {
  size_t learned = flow.names().learned.size();
  for (int i = first; i < graph.node_size(); ++i) {
    try {
      import_node(frame, flow, graph.node(i));
    } catch (Failure& failure) {
      if (!flow.constraints().empty()) return;  // it may do with them
      bool is_stuck = is_rest && i == first && flow.names().learned.size() == learned;
      if (!flow.has_symbols() || frame.is_function() || is_stuck || !can_defer(frame, graph, i))
        throw;
      defer_rest(frame, flow, graph, i, std::move(failure));
      return;
    }
  }
}

namespace {

void assume_known(Flow& flow, Slot& slot, const ImportOptions& options) {
  constexpr int64_t kMost = int64_t{1} << 60;  // that a dim may be
  const auto found = options.known.find(slot.name);
  if (found == options.known.end() || found->second.type() != slot.type) return;
  const Tensor& tensor = found->second;
  if (is_real(tensor.dtype()) || tensor.elements() != 1) return;
  const int64_t element = tensor.integer_at(0);
  if (element > kMost || element < -kMost) return;
  slot.contents = {Dim(element)};
  flow.contents().assume(slot.value.id(), slot.contents);
}

std::vector<Slot*> import_inputs(Frame& frame, Flow& flow, const onnx::GraphProto& graph,
                                 std::vector<ModelValue>& inputs,
                                 const std::vector<Symbol>& symbols, const Bindings& narrowed) {
  std::set<std::string> given = initialized_names(graph);
  InputTypes types(flow, frame.source()->options, symbols, narrowed);
  std::vector<Slot*> slots;
  for (const onnx::ValueInfoProto& info : graph.input())
    if (!given.contains(info.name())) types.learn(info);
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (info.name().empty()) throw Failure{bad_input("an input has no name")};
    if (given.contains(info.name())) continue;
    Type type = types.of(info);
    if (const Tensor* fixed = types.constant(info.name())) {
      frame.define(info.name(), flow.constant(info.name(), *fixed));
      continue;
    }
    Slot* slot = flow.parameter(info.name(), type);
    assume_known(flow, *slot, frame.source()->options);
    frame.define(info.name(), slot);
    inputs.push_back({info.name(), type});
  }
  types.check_all_used();
  return slots;
}

// Before IR version 4 each initializer is an input, too.
void check_initialized(Frame& frame, const onnx::GraphProto& graph) {
  std::set<std::string> given = initialized_names(graph);
  for (const onnx::ValueInfoProto& info : graph.input())
    if (given.contains(info.name())) check_declared(info, frame.find(info.name())->type);
}

// The slot under the name that the file gives the output.
Slot* named_output(Frame& frame, Flow& flow, const onnx::ValueInfoProto& info) {
  Slot* slot = frame.find(info.name());
  if (slot->flow == nullptr || slot->name != info.name() || !slot->is_tensor())
    slot = flow.define(info.name(), flow.value_of(*slot));
  flow.name_result(*slot);
  return slot;
}

// With the sizes that meet the constraints of `narrowed`. Null, and more constraints, if nodes have
// some.
std::optional<Model> import_all(std::shared_ptr<const Source> source, const Bindings& narrowed,
                                ImportUse use, std::vector<Constraint>& constraints) {
  const onnx::ModelProto& proto = source->file->model();
  const onnx::GraphProto& graph = proto.graph();
  Frame frame(source, opsets_of(proto.opset_import(), proto.ir_version()), std::move(use));
  Model model;
  model.name = graph.name().empty() ? "main" : graph.name();
  Flow flow(nullptr, Flow::Kind::model, model.name);
  flow.may_narrow = true;
  if (source->options.checks) *source->options.checks = {};  // of a pass before
  const Metadata metadata = read_metadata(proto);
  import_inputs(frame, flow, graph, model.inputs, metadata.symbols, narrowed);
  import_initializers(frame, flow, graph);
  check_initialized(frame, graph);
  import_nodes(frame, flow, graph);
  constraints = flow.constraints();
  if (!constraints.empty()) return {};
  check_value_info(frame, graph);
  std::vector<Slot*> outputs;
  std::set<std::string_view> names;
  for (const onnx::ValueInfoProto& info : graph.output()) {
    if (info.name().empty()) throw Failure{bad_input("an output has no name")};
    if (!names.insert(info.name()).second)
      throw Failure{bad_input("output '{}' is given twice", info.name())};
    outputs.push_back(named_output(frame, flow, info));
    check_strings_declared(info, source->file->strings().holds(info.name()));
    check_element_type(info, outputs.back()->type);
    if (has_other_dims(info, outputs.back()->type))
      frame.source()->note(fmt::format("output '{}' is declared as {}, but is {}", info.name(),
                                       declared_text(info), outputs.back()->type.to_string()));
  }
  if (!flow.checks().empty()) {
    source->options.checks->made = static_cast<int64_t>(flow.checks().size());
    outputs.push_back(flow.define("found", flow.found()));
  }
  Result<Body> body = flow.finish(outputs);
  if (!body.ok()) throw Failure{std::move(body).error()};
  model.segments = std::move(body->segments);
  for (size_t i = 0; i < outputs.size(); ++i)
    model.outputs.push_back({body->results[i], outputs[i]->type});
  // Inputs that became constants are not counted any more.
  if (source->options.constants.empty()) apply_donations(model, metadata.donations);
  return model;
}

// The first pass collects what all nodes demand, and the second one has it. Where a node demands
// more of the sizes that others demanded, there are further passes; files with many are odd.
constexpr int kMostPasses = 64;
constexpr int64_t kMostPassNodes = 4;  // times the limit of one pass

Model import_constrained(const std::shared_ptr<const Source>& source) {
  Bindings narrowed;
  int64_t nodes = 0;
  for (int pass = 1;; ++pass) {
    const ImportUse use;
    std::vector<Constraint> constraints;
    if (std::optional<Model> model = import_all(source, narrowed, use, constraints))
      return *std::move(model);
    nodes += *use.nodes;
    if (pass == kMostPasses || nodes > kMostPassNodes * source->options.limits.nodes)
      throw Failure{std::move(constraints.front().why)};
    for (const Constraint& one : constraints) {
      narrow_further(narrowed, one.sizes);
      source->note(fmt::format("{}, since otherwise {} ({})", ranges_text(one.sizes),
                               one.why.what(), one.why.where()));
    }
  }
}

// Also values of branches and bodies; if several have a name, the outermost.
void add_layers(const onnx::GraphProto& graph,
                std::map<std::string, std::string, std::less<>>& layers) {
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.output().empty()) continue;
    const std::string& layer = node.name().empty() ? node.output(0) : node.name();
    for (const std::string& value : node.output())
      if (!value.empty()) layers.emplace(value, layer);
  }
  for (const onnx::NodeProto& node : graph.node())
    for (const onnx::AttributeProto& attribute : node.attribute())
      if (attribute.has_g()) add_layers(attribute.g(), layers);
}

}  // namespace

Result<Model> import_model(std::shared_ptr<const ModelFile> file, const ImportOptions& options) {
  std::string where = file->where();
  try {
    const onnx::GraphProto& graph = file->model().graph();
    if (options.layers != nullptr) add_layers(graph, *options.layers);
    if (options.labels != nullptr) *options.labels = file->strings().labels(graph);
    const std::shared_ptr<const Source> source = make_source(std::move(file), options);
    Model model = import_constrained(source);
    HONE_TRY(verify(model));
    for (const std::string& note : *source->notes)
      if (options.notice) options.notice(fmt::format("{}: {}", where, note));
    return model;
  } catch (Failure& failure) {
    // Types of open sizes have limits, which numbers keep to.
    if (failure.error.code() == ErrorCode::limit && !failure.error.hint().empty())
      failure.error = std::move(failure.error)
                          .with_hint("give numbers for sizes that are open: --dim or --shape");
    return std::move(failure.error).within(where);
  }
}

}  // namespace hone::onnx_io

namespace hone {

Result<Model> load_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  return onnx_io::import_model(HONE_TRY(onnx_io::ModelFile::open(path, options.limits)), options);
}

Result<Model> parse_onnx(std::span<const std::byte> bytes, std::string_view where,
                         const std::filesystem::path& folder, const ImportOptions& options) {
  return onnx_io::import_model(
      HONE_TRY(onnx_io::ModelFile::parse(bytes, where, folder, nullptr, options.limits)), options);
}

}  // namespace hone
