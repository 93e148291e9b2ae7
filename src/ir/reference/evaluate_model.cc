#include "ir/reference/evaluate_model.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <unordered_map>

#include "ir/model_flow.h"

namespace hone {
namespace {

// A value between segments. `precise` is what is known of real numbers beyond their element type,
// as f64; null unless the options ask for it.
struct Slot {
  Tensor value;
  Tensor precise;
};

Type with_dim(Type type, int axis, int64_t size) {
  Dims dims(type.dims().begin(), type.dims().end());
  dims[static_cast<size_t>(axis)] = size;
  return type.with_dims(dims);
}

// The first `count` along an axis.
Tensor cut(const Tensor& tensor, int axis, int64_t count) {
  Type type = with_dim(tensor.type(), axis, count);
  Ints dims = tensor.type().static_dims();
  int64_t outer = 1, inner = 1;  // elements per step of the axis
  for (int i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  int64_t from = dims[static_cast<size_t>(axis)] * inner, to = count * inner;
  if (bits(type.dtype()) < 8) {
    std::vector<int64_t> images(static_cast<size_t>(outer * to));
    for (int64_t i = 0; i < outer; ++i)
      tensor.read_integers(i * from, std::span(images).subspan(static_cast<size_t>(i * to),
                                                               static_cast<size_t>(to)));
    return Tensor::from_integers(type, images);
  }
  int64_t width = bits(type.dtype()) / 8;
  std::vector<std::byte> bytes(static_cast<size_t>(outer * to * width));
  for (int64_t i = 0; to > 0 && i < outer; ++i)
    std::memcpy(bytes.data() + i * to * width, tensor.bytes().data() + i * from * width,
                static_cast<size_t>(to * width));
  return Tensor::copy_of(type, bytes);
}

// One after the other along axis 0; types are equal otherwise.
Tensor joined(std::span<const Tensor> parts) {
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.type().dim(0).value();
  Type type = with_dim(parts[0].type(), 0, rows);
  if (bits(type.dtype()) < 8) {
    std::vector<int64_t> images(static_cast<size_t>(type.static_elements()));
    std::span<int64_t> rest = images;
    for (const Tensor& part : parts) {
      part.read_integers(0, rest.first(static_cast<size_t>(part.elements())));
      rest = rest.subspan(static_cast<size_t>(part.elements()));
    }
    return Tensor::from_integers(type, images);
  }
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(type.static_bytes()));
  for (const Tensor& part : parts)
    bytes.insert(bytes.end(), part.bytes().begin(), part.bytes().end());
  return Tensor::copy_of(type, bytes);
}

Tensor converted(const Tensor& tensor, DType dtype) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return Tensor::from_reals(tensor.type().with_dtype(dtype), numbers);
}

class ModelRun {
 public:
  explicit ModelRun(const EvalOptions& options) : options_(options) {}

  Result<std::vector<Tensor>> run(const Model& model, std::span<const Tensor> inputs);

 private:
  Status segments(const std::vector<Segment>& list);
  Status segment(const GraphSegment& segment);
  Status segment(const IfSegment& segment);
  Status segment(const LoopSegment& segment);
  Status crop(const GraphSegment& segment, std::vector<Slot>& outputs);
  Result<bool> loop_goes_on(const LoopSegment& loop, int64_t done, bool condition);
  Status iteration(const LoopSegment& loop, int64_t done, std::vector<Slot>& carried,
                   std::vector<std::vector<Slot>>& grown, bool& condition);
  Result<std::vector<Slot>> evaluate_graph(const GraphRef& graph, std::vector<Tensor> arguments);
  Result<GraphRef> specialized(const GraphRef& graph, std::span<const Tensor> arguments);

  // The verifier has seen to it that these exist.
  const Slot& read(const std::string& name) const { return values_.at(name); }
  bool flag(const std::string& name) const { return read(name).value.integer_at(0) != 0; }
  void define(const std::string& name, Slot slot) {
    values_.insert_or_assign(name, std::move(slot));
    order_.push_back(name);
  }
  void forget_since(size_t count) {
    for (size_t i = count; i < order_.size(); ++i) values_.erase(order_[i]);
    order_.resize(count);
  }

  struct Specialized {
    const Graph* source;
    std::vector<Type> types;
    GraphRef graph;
  };
  static constexpr size_t kMaxSpecialized = 32;

  const EvalOptions& options_;
  std::unordered_map<std::string, Slot> values_;
  std::vector<std::string> order_;      // the names of values_, as they came
  std::list<Specialized> specialized_;  // the most recently used first
};

Status check_type(const ModelValue& value, std::string_view kind, Type actual, Bindings& bindings) {
  Status match = match_type(value.type, KnownType::of(actual), bindings);
  if (match.ok()) return {};
  return bad_input("{} '%{}' {}", kind, value.name, match.error().what);
}

Result<std::vector<Tensor>> ModelRun::run(const Model& model, std::span<const Tensor> inputs) {
  if (inputs.size() != model.inputs.size())
    return bad_input("model '{}' takes {} inputs, {} are given", model.name, model.inputs.size(),
                     inputs.size());
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_TRY(check_type(model.inputs[i], "input", inputs[i].type(), bindings));
    define(model.inputs[i].name, {inputs[i], {}});
  }
  HONE_TRY(segments(model.segments));
  std::vector<Tensor> outputs;
  for (const ModelValue& output : model.outputs) {
    const Slot& slot = read(output.name);
    HONE_TRY(check_type(output, "output", slot.value.type(), bindings));
    bool wants_f64 = options_.real_outputs_as_f64 && is_real(slot.value.dtype());
    outputs.push_back(!wants_f64     ? slot.value
                      : slot.precise ? slot.precise
                                     : converted(slot.value, DType::f64));
  }
  return outputs;
}

Status ModelRun::segments(const std::vector<Segment>& list) {
  for (const Segment& s : list)
    HONE_TRY(std::visit([this](const auto& kind) { return segment(kind); }, s.kind));
  return {};
}

Status ModelRun::segment(const GraphSegment& segment) {
  std::vector<Tensor> arguments;
  for (const std::string& name : segment.inputs) arguments.push_back(read(name).value);
  Result<std::vector<Slot>> outputs = evaluate_graph(segment.graph, std::move(arguments));
  if (!outputs.ok())
    return std::move(outputs).error().within(fmt::format("segment '{}'", segment.graph->name()));
  if (Status good = crop(segment, *outputs); !good.ok())
    return std::move(good).error().within(fmt::format("segment '{}'", segment.graph->name()));
  for (size_t i = 0; i < outputs->size(); ++i)
    if (!segment.outputs[i].empty()) define(segment.outputs[i], std::move((*outputs)[i]));
  return {};
}

Status ModelRun::crop(const GraphSegment& segment, std::vector<Slot>& outputs) {
  for (const Crop& crop : segment.crops) {
    Slot& slot = outputs[crop.output];
    int axis = static_cast<int>(crop.axis);
    int64_t count = outputs[crop.count].value.integer_at(0);
    int64_t size = slot.value.type().dim(axis).value();
    if (count < 0 || count > size)
      return bad_input("output '%{}' is cut to {} along axis {}, which has {}",
                       segment.outputs[crop.output], count, axis, size);
    slot.value = cut(slot.value, axis, count);
    if (slot.precise) slot.precise = cut(slot.precise, axis, count);
  }
  return {};
}

Status ModelRun::segment(const IfSegment& segment) {
  const Body& body = flag(segment.condition) ? segment.on_true : segment.on_false;
  size_t outside = order_.size();
  HONE_TRY(segments(body.segments));
  std::vector<Slot> results;
  for (const std::string& name : body.results) results.push_back(read(name));
  forget_since(outside);
  for (size_t i = 0; i < results.size(); ++i) define(segment.results[i], std::move(results[i]));
  return {};
}

Result<bool> ModelRun::loop_goes_on(const LoopSegment& loop, int64_t done, bool condition) {
  if (!condition) return false;
  if (!loop.trip_count.empty()) {
    const Tensor& trips = read(loop.trip_count).value;
    int64_t count = trips.integer_at(0);
    bool is_huge = trips.dtype() == DType::u64 && count < 0;
    if (!is_huge && done >= count) return false;
  }
  if (done >= options_.max_iterations)
    return over_limit("a loop has run {} times", options_.max_iterations);
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  return true;
}

Status ModelRun::segment(const LoopSegment& loop) {
  std::vector<Slot> carried;
  for (const LoopSegment::Carried& value : loop.carried) carried.push_back(read(value.initial));
  std::vector<std::vector<Slot>> grown;
  for (const std::string& name : loop.grown) grown.push_back({read(name)});
  bool condition = loop.condition.empty() || flag(loop.condition);
  for (int64_t done = 0; HONE_TRY(loop_goes_on(loop, done, condition)); ++done)
    HONE_TRY(iteration(loop, done, carried, grown, condition));
  for (size_t i = 0; i < carried.size(); ++i) define(loop.results[i], std::move(carried[i]));
  for (size_t i = 0; i < grown.size(); ++i) {
    std::vector<Tensor> values, precise;
    for (const Slot& piece : grown[i]) {
      values.push_back(piece.value);
      if (!options_.real_outputs_as_f64 || !is_real(piece.value.dtype())) continue;
      precise.push_back(piece.precise ? piece.precise : converted(piece.value, DType::f64));
    }
    define(loop.results[carried.size() + i],
           {joined(values), precise.empty() ? Tensor() : joined(precise)});
  }
  return {};
}

Status ModelRun::iteration(const LoopSegment& loop, int64_t done, std::vector<Slot>& carried,
                           std::vector<std::vector<Slot>>& grown, bool& condition) {
  size_t outside = order_.size();
  if (!loop.counter.empty())
    define(loop.counter, {Tensor::from_integers(Type::scalar(DType::i64), {&done, 1}), {}});
  for (size_t i = 0; i < carried.size(); ++i) define(loop.carried[i].name, std::move(carried[i]));
  HONE_TRY(segments(loop.body.segments));
  for (size_t i = 0; i < carried.size(); ++i) carried[i] = read(loop.body.results[i]);
  for (size_t i = 0; i < grown.size(); ++i) {
    const Slot& piece = read(loop.body.results[carried.size() + i]);
    Type first = grown[i][0].value.type(), next = piece.value.type();
    if (with_dim(first, 0, 0) != with_dim(next, 0, 0))
      return bad_input("result '%{}' of a loop is {}, and grows by {} in iteration {}",
                       loop.results[carried.size() + i], first.to_string(), next.to_string(), done);
    grown[i].push_back(piece);
  }
  condition = loop.next_condition.empty() || flag(loop.next_condition);
  forget_since(outside);
  return {};
}

Result<std::vector<Slot>> ModelRun::evaluate_graph(const GraphRef& graph,
                                                   std::vector<Tensor> arguments) {
  GraphRef here = HONE_TRY(specialized(graph, arguments));
  EvalOptions options = options_;
  EvalStats stats;
  options.stats = &stats;
  Result<std::vector<Tensor>> results = evaluate(*here, arguments, options);
  if (options_.stats != nullptr) {
    options_.stats->nodes += stats.nodes;
    options_.stats->peak_bytes = std::max(options_.stats->peak_bytes, stats.peak_bytes);
  }
  std::vector<Slot> slots;
  for (Tensor& tensor : HONE_TRY(std::move(results))) {
    DType dtype = here->type(here->outputs()[slots.size()]).dtype();
    if (!options_.real_outputs_as_f64 || !is_real(dtype)) {
      slots.push_back({std::move(tensor), {}});
    } else {
      Tensor rounded = dtype == DType::f64 ? tensor : converted(tensor, dtype);
      slots.push_back({std::move(rounded), std::move(tensor)});
    }
  }
  return slots;
}

Result<GraphRef> ModelRun::specialized(const GraphRef& graph, std::span<const Tensor> arguments) {
  if (graph->is_static()) return graph;
  std::vector<Type> types;
  for (const Tensor& argument : arguments) types.push_back(argument.type());
  auto known = std::find_if(specialized_.begin(), specialized_.end(), [&](const Specialized& s) {
    return s.source == graph.get() && s.types == types;
  });
  if (known != specialized_.end()) {
    specialized_.splice(specialized_.begin(), specialized_, known);
    return known->graph;
  }
  Bindings bindings = HONE_TRY(bind_inputs(*graph, types));
  GraphRef made = std::make_shared<const Graph>(HONE_TRY(specialize(*graph, bindings)));
  specialized_.push_front({graph.get(), std::move(types), made});
  if (specialized_.size() > kMaxSpecialized) specialized_.pop_back();
  return made;
}

}  // namespace

Result<std::vector<Tensor>> evaluate_model(const Model& model, std::span<const Tensor> inputs,
                                           const EvalOptions& options) {
  HONE_TRY(verify(model));
  if (options.stats != nullptr) *options.stats = {};
  return ModelRun(options).run(model, inputs);
}

}  // namespace hone
