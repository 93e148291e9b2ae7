#include "ir/model_flow.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

constexpr int kMaxModelDepth = 64;
// A loop is first tried with the assumption that its values keep their sizes, then without: twice
// the work for each loop around, so deeper ones are only done without.
constexpr int kMaxHopefulLoops = 4;
// The body of a deferred segment may hold deferred segments, and so on.
constexpr int kMaxReplaced = 4096;

KnownType without_sizes(KnownType type) {
  std::fill(type.dims.begin(), type.dims.end(), -1);
  return type;
}

// The type of both; sizes that differ are unknown.
Result<KnownType> joined_type(const KnownType& a, const KnownType& b, std::string_view what) {
  if (a.is_open || b.is_open) return KnownType::open();
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size())
    return bad_input("{} is {} or {}", what, a.to_string(), b.to_string());
  KnownType both = a;
  for (size_t i = 0; i < both.dims.size(); ++i)
    if (both.dims[i] != b.dims[i]) both.dims[i] = -1;
  return both;
}

// A value that grows along axis 0 by pieces.
Result<KnownType> grown_type(KnownType before, const KnownType& piece, std::string_view what) {
  if (before.is_open) return before;
  if (before.dims.empty()) return bad_input("{} has no axis to grow along", what);
  bool has_rows = before.dims[0] != 0;  // without, it does not say how long they are
  if (piece.is_open) {                  // it has to fit when it is there
    if (!has_rows) before = without_sizes(before);
    before.dims[0] = -1;
    return before;
  }
  if (before.dims.size() == piece.dims.size()) {
    for (size_t axis = 1; has_rows && axis < before.dims.size(); ++axis)
      if (before.dims[axis] >= 0 && piece.dims[axis] >= 0 && before.dims[axis] != piece.dims[axis])
        return bad_input("{} is {}, and grows by {}", what, before.to_string(), piece.to_string());
    before.dims[0] = -1;
  }
  return joined_type(before, piece, what);
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kMost = 400;  // characters
  std::string text = hone::join(names, ", ");
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return names.empty() ? "by nothing" : escape(text);
}

std::vector<Symbol> symbols_of(const std::vector<ModelValue>& values) {
  std::vector<Symbol> symbols;
  for (const ModelValue& value : values)
    for (Dim dim : value.type.dims())
      for (Symbol symbol : dim.symbols()) symbols.push_back(symbol);
  return symbols;
}

Status check_symbols(const Model& model) {
  std::unordered_map<std::string_view, Symbol> known;
  for (const std::vector<ModelValue>* values : {&model.inputs, &model.outputs})
    for (Symbol symbol : symbols_of(*values))
      if (auto [at, is_new] = known.emplace(symbol.name(), symbol); !is_new && at->second != symbol)
        return bad_input("symbol {} has two meanings", symbol.name());
  return {};
}

}  // namespace

KnownType KnownType::of(Type type) {
  KnownType known = {type.dtype(), {}};
  for (Dim dim : type.dims()) known.dims.push_back(dim.is_static() ? dim.value() : -1);
  return known;
}

std::optional<Type> KnownType::exactly() const {
  if (is_open || std::ranges::find(dims, -1) != dims.end()) return std::nullopt;
  Result<Type> type = Type::make(dtype, Dims(dims.begin(), dims.end()));
  return type.ok() ? std::optional<Type>(*type) : std::nullopt;
}

std::string KnownType::to_string() const {
  if (is_open) return "of unknown type";
  std::vector<std::string> texts;
  for (int64_t dim : dims) texts.push_back(dim < 0 ? "?" : fmt::format("{}", dim));
  return fmt::format("{}[{}]", name(dtype), join(texts, ", "));
}

Status match_type(Type wanted, const KnownType& known, Bindings& bindings) {
  if (known.is_open) return {};
  auto mismatch = [&](std::string_view why) {
    return bad_input("is {}, must be {}{}", known.to_string(), wanted.to_string(), why);
  };
  if (wanted.dtype() != known.dtype || wanted.dims().size() != known.dims.size())
    return mismatch("");
  for (size_t i = 0; i < known.dims.size(); ++i) {
    if (known.dims[i] < 0) continue;
    Status match = match_dim(wanted.dims()[i], known.dims[i], bindings);
    if (!match.ok()) return mismatch(fmt::format(" (dim {}: {})", i, match.error().what()));
  }
  return {};
}

Status ModelFlow::run(Model& model) {
  HONE_TRY(check_symbols(model));
  has_open_ = first_deferred(model) != nullptr;
  for (const ModelValue& input : model.inputs)
    HONE_TRY(define(input.name, KnownType::of(input.type)));
  HONE_TRY(segments(model.segments));
  for (const ModelValue& output : model.outputs) {
    Bindings bindings;
    Status match = match_type(output.type, HONE_TRY(read(output.name)), bindings);
    if (!match.ok())
      return std::move(match).error().within(fmt::format("output '%{}'", output.name));
  }
  return {};
}

Status ModelFlow::run(const DeferredSegment& segment, std::span<const Type> inputs, Body& body) {
  if (body.results != segment.results)
    return bad_input("its results are named {}, must be {}", names_text(body.results),
                     names_text(segment.results));
  has_open_ = true;  // the body may hold deferred segments
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (known_.contains(segment.inputs[i])) continue;  // read twice
    HONE_TRY(define(segment.inputs[i], KnownType::of(inputs[i])));
  }
  HONE_TRY(segments(body.segments));
  HONE_TRY(read_all(body.results));
  return {};
}

Status ModelFlow::segments(std::vector<Segment>& list) {
  if (++depth_ > kMaxModelDepth)
    return over_limit("segments are nested more than {} deep", kMaxModelDepth);
  for (size_t i = 0; i < list.size();) {
    if (const auto* deferred = std::get_if<DeferredSegment>(&list[i].kind)) {
      if (std::optional<Body> body = HONE_TRY(replacement(*deferred))) {
        auto at = list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        list.insert(at, std::make_move_iterator(body->segments.begin()),
                    std::make_move_iterator(body->segments.end()));
        continue;
      }
    }
    HONE_TRY(std::visit([this](auto& kind) { return segment(kind); }, list[i].kind));
    ++i;
  }
  --depth_;
  return {};
}

Status ModelFlow::segment(GraphSegment& segment) {
  if (segment.graph == nullptr) return bad_input("a segment has no graph");
  const Graph& graph = *segment.graph;
  std::string where = fmt::format("segment '{}'", graph.name());
  if (segment.inputs.size() != graph.inputs().size())
    return bad_input("the graph takes {} inputs, {} are given", graph.inputs().size(),
                     segment.inputs.size())
        .within(where);
  if (segment.outputs.size() != graph.outputs().size())
    return bad_input("the graph has {} outputs, {} are named", graph.outputs().size(),
                     segment.outputs.size())
        .within(where);
  Bindings bindings;
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    KnownType known = HONE_TRY(read(segment.inputs[i]));
    Status match = match_type(graph.type(graph.inputs()[i]), known, bindings);
    if (match.ok()) continue;
    if (!specializes_)
      return std::move(match).error().within(
          fmt::format("{}, input '%{}'", where, segment.inputs[i]));
    bindings.clear();
    break;
  }
  std::vector<KnownType> outputs;
  for (Type type : graph.output_types()) {
    Result<Type> bound = type.bind(bindings);
    if (!bound.ok()) return std::move(bound).error().within(where);
    outputs.push_back(KnownType::of(*bound));
  }
  if (Status good = crops(segment, outputs); !good.ok())
    return std::move(good).error().within(where);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!segment.outputs[i].empty()) HONE_TRY(define(segment.outputs[i], std::move(outputs[i])));
  if (!specializes_ || bindings.empty()) return {};
  Result<Graph> special = hone::specialize(graph, bindings);
  if (special.ok()) {
    segment.graph = std::make_shared<const Graph>(std::move(*special));
  } else if (depth_ == 1) {  // it is sure to be reached
    return std::move(special).error().within(where);
  }
  return {};
}

Status ModelFlow::segment(DeferredSegment& segment) {
  if (segment.source == nullptr) return bad_input("a deferred segment has no source");
  auto check = [&]() -> Status {
    HONE_TRY(read_all(segment.inputs));
    for (const std::string& name : segment.results) HONE_TRY(define(name, KnownType::open()));
    return {};
  };
  Status good = check();
  if (good.ok()) return {};
  return std::move(good).error().within(
      fmt::format("deferred segment '{}'", segment.source->describe()));
}

Result<std::optional<Body>> ModelFlow::replacement(const DeferredSegment& segment) {
  if (!specializes_ || segment.source == nullptr) return std::optional<Body>();
  std::vector<Type> types;
  for (const std::string& name : segment.inputs) {
    Result<KnownType> known = read(name);
    std::optional<Type> type = known.ok() ? known->exactly() : std::nullopt;
    if (!type) return std::optional<Body>();
    types.push_back(*type);
  }
  if (++replaced_ > kMaxReplaced)
    return over_limit("more than {} deferred segments got types", kMaxReplaced);
  Result<Body> body = make_body(segment, types);
  if (body.ok()) return std::optional<Body>(std::move(*body));
  if (depth_ == 1) return std::move(body).error();  // it is sure to be reached
  return std::optional<Body>();
}

Status ModelFlow::crops(const GraphSegment& segment, std::vector<KnownType>& outputs) {
  for (const Crop& crop : segment.crops) {
    if (crop.output >= outputs.size() || crop.count >= outputs.size())
      return bad_input("output {} is cut to output {}, but there are {} outputs", crop.output,
                       crop.count, outputs.size());
    const KnownType& count = outputs[crop.count];
    if (!count.dims.empty() || !is_integer(count.dtype))
      return bad_input("output {} is cut to output {}, which is {}, not a scalar integer",
                       crop.output, crop.count, count.to_string());
    Ints& dims = outputs[crop.output].dims;
    if (crop.axis >= dims.size())
      return bad_input("output {} of rank {} is cut along axis {}", crop.output, dims.size(),
                       crop.axis);
    if (segment.outputs[crop.output].empty() || segment.outputs[crop.count].empty())
      return bad_input("output {} is cut to output {}, and not both have names", crop.output,
                       crop.count);
    if (std::count_if(segment.crops.begin(), segment.crops.end(), [&](const Crop& other) {
          return other.output == crop.output && other.axis == crop.axis;
        }) > 1)
      return bad_input("output {} is cut twice along axis {}", crop.output, crop.axis);
    dims[crop.axis] = -1;
  }
  return {};
}

Status ModelFlow::segment(IfSegment& segment) {
  HONE_TRY(read_flag(segment.condition));
  std::vector<KnownType> on_true = HONE_TRY(body(segment.on_true));
  std::vector<KnownType> on_false = HONE_TRY(body(segment.on_false));
  if (on_true.size() != segment.results.size() || on_false.size() != segment.results.size())
    return bad_input("if has {} results, its bodies yield {} and {}", segment.results.size(),
                     on_true.size(), on_false.size());
  for (size_t i = 0; i < on_true.size(); ++i) {
    std::string what = fmt::format("result '%{}' of if", segment.results[i]);
    HONE_TRY(define(segment.results[i], HONE_TRY(joined_type(on_true[i], on_false[i], what))));
  }
  return {};
}

Status ModelFlow::segment(LoopSegment& loop) {
  if (!loop.trip_count.empty()) {
    KnownType trips = HONE_TRY(read(loop.trip_count));
    if (!trips.can_be_count())
      return bad_input("trip count '%{}' is {}, not a scalar integer", loop.trip_count,
                       trips.to_string());
  }
  if (!loop.condition.empty()) HONE_TRY(read_flag(loop.condition));
  if (loop.trip_count.empty() && loop.next_condition.empty())
    return bad_input("the loop has neither a trip count nor a condition from its body");
  size_t count = loop.carried.size() + loop.grown.size();
  if (loop.results.size() != count || loop.body.results.size() != count)
    return bad_input(
        "the loop carries {} values and grows {}, but has {} results, and its body yields {}",
        loop.carried.size(), loop.grown.size(), loop.results.size(), loop.body.results.size());
  std::vector<KnownType> carried, grown = HONE_TRY(read_all(loop.grown));
  for (const LoopSegment::Carried& value : loop.carried) {
    carried.push_back(HONE_TRY(read(value.initial)));
  }
  std::vector<KnownType> results = carried;
  bool is_hopeful = loop_depth_ < kMaxHopefulLoops;
  if (is_hopeful) {
    LoopSegment attempt = loop;
    results = HONE_TRY(loop_body(attempt, carried, grown));
    is_hopeful = std::equal(carried.begin(), carried.end(), results.begin());
    if (is_hopeful) loop = std::move(attempt);
  }
  if (!is_hopeful) {
    for (KnownType& type : carried) type = has_open_ ? KnownType::open() : without_sizes(type);
    results = HONE_TRY(loop_body(loop, carried, grown));
  }
  for (size_t i = 0; i < results.size(); ++i) HONE_TRY(define(loop.results[i], results[i]));
  return {};
}

Result<std::vector<KnownType>> ModelFlow::loop_body(LoopSegment& loop,
                                                    const std::vector<KnownType>& carried,
                                                    const std::vector<KnownType>& grown) {
  size_t outside = order_.size();
  ++loop_depth_;
  if (!loop.counter.empty()) HONE_TRY(define(loop.counter, {DType::i64, {}}));
  for (size_t i = 0; i < carried.size(); ++i) HONE_TRY(define(loop.carried[i].name, carried[i]));
  HONE_TRY(segments(loop.body.segments));
  if (!loop.next_condition.empty()) HONE_TRY(read_flag(loop.next_condition));
  std::vector<KnownType> results = HONE_TRY(read_all(loop.body.results));
  --loop_depth_;
  forget_since(outside);
  for (size_t i = 0; i < results.size(); ++i) {
    std::string what = fmt::format("result '%{}' of loop", loop.results[i]);
    bool grows = i >= carried.size();
    KnownType before = grows ? grown[i - carried.size()] : carried[i];
    results[i] = HONE_TRY(grows ? grown_type(before, results[i], what)
                                : joined_type(before, results[i], what));
  }
  return results;
}

Result<std::vector<KnownType>> ModelFlow::body(Body& body) {
  size_t outside = order_.size();
  HONE_TRY(segments(body.segments));
  std::vector<KnownType> results = HONE_TRY(read_all(body.results));
  forget_since(outside);
  return results;
}

Status ModelFlow::define(std::string_view name, KnownType type) {
  if (name.empty()) return bad_input("a value has no name");
  if (!known_.emplace(name, std::move(type)).second)
    return bad_input("the name '%{}' is given twice", name);
  order_.emplace_back(name);
  return {};
}

Result<KnownType> ModelFlow::read(std::string_view name) const {
  auto found = known_.find(std::string(name));
  if (found == known_.end()) {
    return bad_input("value '%{}' is not defined where it is read", name)
        .with_hint(name.size() <= 64 && order_.size() <= 10000 ? did_you_mean(name, order_) : "");
  }
  return found->second;
}

Result<std::vector<KnownType>> ModelFlow::read_all(std::span<const std::string> names) const {
  std::vector<KnownType> types;
  for (const std::string& name : names) types.push_back(HONE_TRY(read(name)));
  return types;
}

Status ModelFlow::read_flag(std::string_view name) const {
  KnownType type = HONE_TRY(read(name));
  if (!type.can_be_scalar(DType::boolean))
    return bad_input("condition '%{}' is {}, must be bool[]", name, type.to_string());
  return {};
}

void ModelFlow::forget_since(size_t count) {
  for (size_t i = count; i < order_.size(); ++i) known_.erase(order_[i]);
  order_.resize(count);
}

// ---- Whole models ------------------------------------------------------------------------------

Status verify(const Model& model) {
  Model copy = model;
  Status flow = ModelFlow(false).run(copy);
  if (!flow.ok()) return std::move(flow).error().within(fmt::format("model '{}'", model.name));
  for (const Graph* graph : graphs_of(model)) {
    if (Status good = verify(*graph); !good.ok())
      return std::move(good).error().within(fmt::format("model '{}'", model.name));
  }
  return {};
}

Result<Body> make_body(const DeferredSegment& segment, std::span<const Type> inputs) {
  auto make = [&]() -> Result<Body> {
    Body body = HONE_TRY(segment.source->specialize(inputs));
    Model inside;
    inside.segments = body.segments;
    HONE_TRY(ModelFlow(false).run(segment, inputs, body));
    for (const Graph* graph : graphs_of(inside)) HONE_TRY(verify(*graph));
    return Body{std::move(inside.segments), std::move(body.results)};
  };
  Result<Body> body = make();
  if (body.ok()) return body;
  return std::move(body).error().within(
      fmt::format("deferred segment '{}'", segment.source->describe()));
}

Result<Model> specialize(const Model& model, const Bindings& bindings) {
  Model result = model;
  for (const std::vector<ModelValue>* values : {&model.inputs, &model.outputs})
    for (Symbol symbol : symbols_of(*values))
      if (auto bound = bindings.find(symbol.name()); bound != bindings.end())
        HONE_TRY(check_binding(symbol, bound->second));
  for (std::vector<ModelValue>* values : {&result.inputs, &result.outputs})
    for (ModelValue& value : *values) {
      Result<Type> bound = value.type.bind(bindings);
      if (!bound.ok()) return std::move(bound).error().within(fmt::format("'%{}'", value.name));
      value.type = *bound;
    }
  Status flow = ModelFlow(true).run(result);
  if (!flow.ok()) return std::move(flow).error().within(fmt::format("model '{}'", model.name));
  return result;
}

}  // namespace hone
