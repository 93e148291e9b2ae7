#include "front/onnx/deferred.h"

#include <algorithm>
#include <set>

#include "base/checked_math.h"
#include "front/onnx/functions.h"
#include "ir/model_flow.h"

namespace hone::onnx_io {
namespace {

// A value that the rest reads.
struct Live {
  std::string name;  // in the file; "": only there for the symbols in its type
  Type type;         // as far as it was known
  Tensor constant;   // of a constant, which is not an input of the segment
  Elements contents;
  std::optional<Dims> learned;
};

// Sizes to try, to see whether any would do: not 1, which broadcasts. Each goes with another likely
// value of the learned elements.
constexpr int64_t kSamples[] = {4,  7,   32,   4,    7,  2,   3,   1,     5, 6,
                                64, 256, 1024, 4096, 80, 480, 224, 16000, 12};

// A number that the symbol may be, near to the given one.
int64_t value_near(Symbol symbol, int64_t number) {
  const int64_t step = symbol.multiple_of();
  return std::clamp(number / step * step, ceil_div(symbol.min(), step) * step,
                    floor_div(symbol.max(), step) * step);
}

class Rest : public FileRest {
 public:
  struct Made {
    Body body;
    std::vector<Type> types;  // of its results
  };

  // The nodes from `first` on, and those before that compute sizes.
  Rest(Frame& frame, const onnx::GraphProto& graph, int first, std::vector<int> sizes,
       std::string what)
      : source_(frame.source()),
        opsets_(frame.opsets()),
        graph_(graph),
        first_(first),
        size_nodes_(sizes.size()),
        indices_(std::move(sizes)),
        what_(std::move(what)) {
    for (int i = first; i < graph.node_size(); ++i) indices_.push_back(i);
  }

  Result<Body> specialize(std::span<const Type> inputs) const override {
    Made made = HONE_TRY(make(inputs, {}, {}));
    return std::move(made.body);
  }
  std::string describe() const override { return what_; }

  Nodes nodes() const override {
    Nodes nodes = {source_, opsets_, graph_, indices_, {}, wanted_, {}};
    for (const Live& live : live_) {
      if (live.constant)
        nodes.constants.emplace_back(live.name, live.constant);
      else
        nodes.inputs.push_back(live.name);
    }
    return nodes;
  }

  Result<Made> make(std::span<const Type> inputs, std::optional<size_t> guess,
                    ImportUse use) const {
    try {
      return make_or_throw(inputs, guess, std::move(use));
    } catch (Failure& failure) {
      return std::move(failure.error);
    }
  }

  void add_constant(std::string name, Tensor value) {
    Type type = value.type();
    live_.push_back({std::move(name), type, std::move(value), {}, {}});
  }
  // `outer` is its name between segments.
  void add_input(std::string name, std::string outer, Type type, Elements contents = {},
                 std::optional<Dims> learned = {}) {
    live_.push_back({std::move(name), type, Tensor(), std::move(contents), std::move(learned)});
    inputs_.push_back(std::move(outer));
  }
  void add_result(std::string name, std::string outer) {
    wanted_.push_back(std::move(name));
    results_.push_back(std::move(outer));
  }
  // Names that are taken outside.
  void avoid(Flow::Names names) { names_ = std::move(names); }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& results() const { return results_; }

  // The types of the inputs for one guess at the sizes, beside those that are known to do.
  Result<std::vector<Type>> sample_types(const Flow& flow, size_t guess, Bindings bindings) const {
    for (const Live& live : live_) {
      for (Dim dim : live.type.dims()) {
        for (Symbol symbol : dim.symbols()) {
          Ints likely = flow.likely_values(symbol);
          int64_t size =
              likely.empty() ? value_near(symbol, kSamples[guess]) : likely[guess % likely.size()];
          bindings.emplace(symbol.name(), size);
        }
      }
    }
    std::vector<Type> types;
    for (const Live& live : live_)
      if (!live.constant) types.push_back(HONE_TRY(live.type.bind(bindings)));
    return types;
  }

 private:
  Result<Made> make_or_throw(std::span<const Type> inputs, std::optional<size_t> guess,
                             ImportUse use) const {
    Frame frame(source_, opsets_, std::move(use));
    Flow flow(names_, Flow::Kind::body, "rest");
    flow.guess = guess;
    Bindings bindings;
    size_t next = 0;
    for (const Live& live : live_)
      if (!live.constant) HONE_TRY(match_type(live.type, KnownType::of(inputs[next++]), bindings));
    next = 0;
    for (const Live& live : live_) {
      if (live.constant) {
        frame.define(live.name, flow.constant(live.name, live.constant));
        continue;
      }
      Slot* slot = known_slot(flow, live, inputs_[next], inputs[next], bindings);
      ++next;
      if (!live.name.empty()) frame.define(live.name, slot);
    }
    for (size_t i = 0; i < size_nodes_; ++i) import_node(frame, flow, graph_.node(indices_[i]));
    import_nodes(frame, flow, graph_, first_, /*is_rest=*/true);
    std::vector<Slot*> slots;
    Made made;
    for (const std::string& name : wanted_) {
      slots.push_back(frame.find(name));
      made.types.push_back(slots.back()->type);
    }
    made.body = HONE_TRY(flow.finish_as(slots, results_));
    return made;
  }

  // A value whose elements were learned is a constant now.
  static Slot* known_slot(Flow& flow, const Live& live, const std::string& outer, Type type,
                          const Bindings& bindings) {
    if (live.learned) {
      Dims learned = *live.learned;
      for (Dim& dim : learned) dim = dim.bind(bindings);
      if (std::optional<Tensor> tensor = Flow::learned_tensor(type, learned))
        return flow.constant(live.name, *tensor);
    }
    Elements contents = live.contents;
    for (Element& element : contents)
      if (element) element = element->bind(bindings);
    return flow.external(outer, type, std::move(contents));
  }

  std::shared_ptr<const Source> source_;
  Frame::Opsets opsets_;
  Flow::Names names_;
  const onnx::GraphProto& graph_;
  int first_;
  size_t size_nodes_;  // the number of indices before `first_`
  std::vector<int> indices_;
  std::string what_;
  std::vector<Live> live_;
  std::vector<std::string> inputs_, wanted_, results_;
};

void collect_names(const onnx::NodeProto& node, std::set<std::string>& names);

void collect_names(const onnx::GraphProto& graph, int first, std::set<std::string>& names) {
  for (int i = first; i < graph.node_size(); ++i) collect_names(graph.node(i), names);
  for (const onnx::ValueInfoProto& info : graph.output()) names.insert(info.name());
}

void collect_names(const onnx::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.has_g()) collect_names(attribute.g(), 0, names);
}

// ---- What computes sizes -----------------------------------------------------------------------

constexpr int64_t kMostSizeElements = 64;

// Small, and all of it there.
bool is_small(Frame& frame, const onnx::NodeProto& node) {
  return std::ranges::all_of(node.output(), [&](const std::string& name) {
    const Slot* slot = name.empty() ? nullptr : frame.find_or_null(name);
    if (slot == nullptr) return name.empty();
    return slot->is_tensor() && slot->type.is_static() &&
           slot->type.static_elements() <= kMostSizeElements;
  });
}

bool is_constant(Frame& frame, const std::string& name) {
  Slot* slot = frame.find_or_null(name);
  return slot != nullptr && slot->is_tensor() &&
         (slot->flow == nullptr || slot->flow->constant_of(*slot));
}

// Nodes before `first` that compute small values from sizes alone, and whose results nodes from
// there on read: they are numbers once the sizes are.
std::vector<int> size_nodes(Frame& frame, const onnx::GraphProto& graph, int first) {
  std::set<std::string> of_sizes;
  std::vector<int> found;
  for (int i = 0; i < first; ++i) {
    const onnx::NodeProto& node = graph.node(i);
    const bool is_plain = canonical_domain(node.domain()).empty() &&
                          std::ranges::none_of(node.attribute(), &onnx::AttributeProto::has_g);
    if (!is_plain || node.input().empty() || !is_small(frame, node)) continue;
    const bool measures = node.op_type() == "Shape" || node.op_type() == "Size";
    bool reads_sizes = false, reads_others = false;
    for (const std::string& name : node.input()) {
      reads_sizes |= of_sizes.contains(name);
      reads_others |= !name.empty() && !of_sizes.contains(name) && !is_constant(frame, name);
    }
    if (!measures && (!reads_sizes || reads_others)) continue;
    of_sizes.insert(node.output().begin(), node.output().end());
    found.push_back(i);
  }
  std::set<std::string> read;
  collect_names(graph, first, read);
  std::vector<int> needed;
  for (size_t at = found.size(); at-- > 0;) {
    const onnx::NodeProto& node = graph.node(found[at]);
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return read.contains(name); }))
      continue;
    read.insert(node.input().begin(), node.input().end());
    needed.push_back(found[at]);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

// The values that the nodes of the indices and the outputs read and do not compute.
std::set<std::string> names_wanted(const onnx::GraphProto& graph, const std::vector<int>& before,
                                   int first) {
  std::set<std::string> names;
  collect_names(graph, first, names);
  for (int i : before) collect_names(graph.node(i), names);
  for (int i : before)
    for (const std::string& name : graph.node(i).output()) names.erase(name);
  return names;
}

}  // namespace

bool can_defer(Frame& frame, const onnx::GraphProto& graph, int first) {
  std::set<std::string> names;
  collect_names(graph, first, names);
  for (const std::string& name : names) {
    Slot* slot = name.empty() ? nullptr : frame.find_or_null(name);
    if (slot != nullptr && slot->form != Slot::Form::tensor) return false;
  }
  return true;
}

namespace {

// ---- What the rest reads -----------------------------------------------------------------------

// Finds the values that the rest of the model reads.
void add_live_values(Rest& rest, Frame& frame, Flow& flow, const std::set<std::string>& used) {
  std::set<std::string> bound;  // symbols that an input's type gives
  std::vector<Symbol> wanted;
  for (const std::string& name : used) {
    Slot* found = name.empty() ? nullptr : frame.find_or_null(name);
    if (found == nullptr) continue;
    Slot& slot = *found;
    HONE_CHECK(slot.form == Slot::Form::tensor, "'{}' is no tensor", name);
    if (slot.flow == nullptr) {
      rest.add_constant(name, slot.constant);
      continue;
    }
    if (std::optional<Tensor> constant = slot.flow->constant_of(slot)) {
      rest.add_constant(name, std::move(*constant));
      continue;
    }
    const Type type = flow.seen(slot.type);
    Elements contents = flow.seen(flow.known(slot));
    for (Dim dim : type.dims())
      for (Symbol symbol : dim.symbols())
        if (dim == Dim(symbol))
          bound.insert(symbol.name());
        else
          wanted.push_back(symbol);
    const auto want = [&](Dim dim) {
      std::ranges::copy(dim.symbols(), std::back_inserter(wanted));
    };
    for (const Element& element : contents)
      if (element) want(*element);
    std::optional<Dims> learned;
    if (const Dims* sizes = flow.learned(slot)) learned = *sizes;
    if (learned) std::ranges::for_each(*learned, want);
    rest.add_input(name, slot.flow->export_name(slot), type, std::move(contents),
                   std::move(learned));
  }
  for (Symbol symbol : wanted) {
    if (!bound.insert(symbol.name()).second) continue;
    Slot* binder = flow.binder(symbol.name());
    HONE_CHECK(binder != nullptr, "nothing binds symbol {}", symbol.name());
    rest.add_input("", binder->flow->export_name(*binder), flow.seen(binder->type));
  }
}

// The rest from a node on, and all that it reads.
std::shared_ptr<Rest> rest_of(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first,
                              std::string what) {
  std::vector<int> before = size_nodes(frame, graph, first);
  const std::set<std::string> used = names_wanted(graph, before, first);
  auto rest = std::make_shared<Rest>(frame, graph, first, std::move(before), std::move(what));
  add_live_values(*rest, frame, flow, used);
  return rest;
}

Type open_type(Flow& flow, const std::string& name, DType dtype, int rank) {
  Dims dims;
  int64_t most = int64_t{1} << std::min(31, 56 / std::max(rank, 1));
  for (int axis = 0; axis < rank; ++axis)
    dims.emplace_back(flow.fresh_symbol(fmt::format("{}_{}", name, axis), most));
  return Type::get(dtype, dims);
}

// The type that the file declares, with a symbol for each size, since sizes are unknown. Null if
// the file declares none.
std::optional<Type> declared_type(Flow& flow, const onnx::ValueInfoProto& info) {
  const onnx::TypeProto::Tensor& tensor = info.type().tensor_type();
  Result<DType> dtype = dtype_of(tensor.elem_type());
  if (!dtype.ok() || !tensor.has_shape() || tensor.shape().dim_size() > kMaxRank) return {};
  return open_type(flow, info.name(), *dtype, tensor.shape().dim_size());
}

// The types of the results for the first sizes that do, of those that the rest may well get, and
// for the next ones: two lists, one, or none. All of them have the sizes `known`.
std::vector<std::vector<Type>> sampled_results(const Rest& rest, const Frame& frame,
                                               const Flow& flow, const Bindings& known) {
  ImportUse use = frame.use();
  if (++use.depth > frame.source()->options.limits.nesting) return {};
  std::vector<std::vector<Type>> found;
  constexpr size_t kFew = 4;  // beside sizes that are known to do
  const size_t count = known.empty() ? std::size(kSamples) : kFew;
  size_t first = flow.guess.value_or(0), last = flow.guess.value_or(count - 1);
  for (size_t guess = first; guess <= last && found.size() < 2; ++guess) {
    Result<std::vector<Type>> types = rest.sample_types(flow, guess, known);
    if (!types.ok()) continue;
    Result<Rest::Made> made = rest.make(*types, guess, use);
    if (made.ok()) found.push_back(std::move(made->types));
  }
  return found;
}

bool same_form(Type a, Type b) { return a.dtype() == b.dtype() && a.rank() == b.rank(); }

// The type of a result before its sizes are known. If its rank depends on them, the file has to
// declare it.
Type result_type(Flow& flow, const onnx::ValueInfoProto& info, std::optional<Type> declared,
                 const std::vector<std::vector<Type>>& samples, size_t i) {
  Type type = samples[0][i];
  if (!same_form(type, samples.back()[i])) {
    if (declared) return *declared;
    throw Failure{unsupported("output '{}' is {} or {}: its rank depends on sizes that are open",
                              info.name(), type.to_string(), samples.back()[i].to_string())};
  }
  return open_type(flow, info.name(), type.dtype(), type.rank());
}

}  // namespace

std::set<std::string> names_read(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  collect_names(graph, 0, names);
  return names;
}

void defer_rest(Frame& frame, Flow& flow, const onnx::GraphProto& graph, int first, Failure why) {
  flow.builder().forgive();
  const onnx::NodeProto& node = graph.node(first);
  const std::string name =
      node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  const std::shared_ptr<Rest> rest =
      rest_of(frame, flow, graph, first, fmt::format("node '{}' ({})", name, node.op_type()));
  std::vector<const onnx::ValueInfoProto*> outputs;
  std::vector<std::optional<Type>> types;
  for (const onnx::ValueInfoProto& info : graph.output()) {
    if (frame.find_or_null(info.name()) != nullptr) continue;
    outputs.push_back(&info);
    types.push_back(declared_type(flow, info));
    rest->add_result(info.name(), flow.fresh_name(info.name()));
  }
  rest->avoid(flow.names());
  // Where values were learned, no guess says much.
  bool is_declared = std::all_of(types.begin(), types.end(), [](const auto& t) { return !!t; });
  if (!is_declared || !flow.has_learned()) {
    try {
      std::vector<std::vector<Type>> samples;
      // Sizes that meet the demand of the first node come first: a guess may miss them.
      const std::optional<Bindings> known = why.demand ? witness(*why.demand) : std::nullopt;
      if (known) samples = sampled_results(*rest, frame, flow, *known);
      if (samples.size() < 2) {
        std::vector<std::vector<Type>> more = sampled_results(*rest, frame, flow, {});
        samples.insert(samples.end(), more.begin(), more.end());
      }
      if (samples.empty()) throw std::move(why);
      for (size_t i = 0; i < types.size(); ++i)
        types[i] = result_type(flow, *outputs[i], types[i], samples, i);
    } catch (Failure& failure) {
      if (!failure.error.hint().empty()) throw;
      throw Failure{
          std::move(failure.error).with_hint("bind sizes that are open: --dim or --shape")};
    }
  }
  flow.append(Segment{DeferredSegment{rest, rest->inputs(), rest->results()}});
  for (size_t i = 0; i < outputs.size(); ++i)
    frame.define(outputs[i]->name(), flow.external(rest->results()[i], *types[i]));
}

std::vector<Type> defer_all(Frame& frame, Flow& flow, const onnx::GraphProto& graph,
                            const std::vector<Type>& types, std::string what) {
  const std::shared_ptr<Rest> rest = rest_of(frame, flow, graph, 0, std::move(what));
  for (const onnx::ValueInfoProto& info : graph.output())
    rest->add_result(info.name(), flow.fresh_name(info.name()));
  rest->avoid(flow.names());
  flow.append(Segment{DeferredSegment{rest, rest->inputs(), rest->results()}});
  std::vector<Type> open;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& name = graph.output(static_cast<int>(i)).name();
    const bool is_open = flow.has_symbols() || !types[i].is_static();
    open.push_back(is_open ? open_type(flow, name, types[i].dtype(), types[i].rank()) : types[i]);
    if (frame.find_or_null(name) == nullptr)
      frame.define(name, flow.external(rest->results()[i], open[i]));
  }
  return open;
}

}  // namespace hone::onnx_io
