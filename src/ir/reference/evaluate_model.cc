#include "ir/reference/evaluate_model.h"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "base/memory_hint.h"
#include "ir/model_flow.h"
#include "tensor/filled.h"
#include "tensor/held_bytes.h"
#include "tensor/pieces.h"

namespace hone {

// The deferred segments for the types that they have met, the most recently used first.
class DeferredBodies {
 public:
  Result<std::shared_ptr<const Body>> body_of(const DeferredSegment& segment,
                                              std::vector<Type> types) {
    auto known = std::ranges::find_if(kept_, [&](const Kept& kept) {
      return kept.source == segment.source && kept.types == types &&
             kept.inputs == segment.inputs && kept.body->results == segment.results;
    });
    if (known == kept_.end()) {
      auto body = std::make_shared<const Body>(HONE_TRY(make_body(segment, types)));
      ++made_;
      kept_.push_front({segment.source, segment.inputs, std::move(types), std::move(body)});
      if (kept_.size() > ModelRunner::kMaxKept) kept_.pop_back();
    } else {
      kept_.splice(kept_.begin(), kept_, known);
    }
    return kept_.front().body;
  }
  int64_t made() const { return made_; }

 private:
  struct Kept {
    std::shared_ptr<const SegmentSource> source;
    std::vector<std::string> inputs;
    std::vector<Type> types;
    std::shared_ptr<const Body> body;
  };
  std::list<Kept> kept_;
  int64_t made_ = 0;
};

namespace {

// The depth of segments that run; deferred ones may turn out to hold deferred ones.
constexpr int kMaxRunDepth = 128;

// A value between segments. `precise` has real numbers as f64, with more digits than their element
// type; null unless the options ask for it.
struct Slot {
  Tensor value;
  Tensor precise;
};

// The bytes of all slots of a run, those of nested runs, too.
class HeldSlots {
 public:
  void add(const Slot& slot) {
    held_.add(slot.value);
    if (slot.precise) held_.add(slot.precise);
  }
  void drop(const Slot& slot) {
    held_.drop(slot.value);
    if (slot.precise) held_.drop(slot.precise);
  }
  int64_t bytes() const { return held_.bytes(); }

 private:
  HeldBytes held_;
};

class ModelRun {
 public:
  ModelRun(const EvalOptions& options, DeferredBodies& bodies, const GraphWatch& watch,
           HeldSlots& held, int depth = 0)
      : options_(options), bodies_(bodies), watch_(watch), held_(held), depth_(depth) {}
  ModelRun(const ModelRun&) = delete;
  ~ModelRun() { forget_since(0); }

  Result<std::vector<Tensor>> run(const Model& model, std::span<const Tensor> inputs);

 private:
  Status segments(const std::vector<Segment>& list);
  Status segment(const GraphSegment& segment);
  Status segment(const IfSegment& segment);
  Status segment(const LoopSegment& segment);
  Status segment(const DeferredSegment& segment);
  Status crop(const GraphSegment& segment, std::vector<Slot>& outputs);
  Result<bool> loop_goes_on(const LoopSegment& loop, int64_t done, bool condition);
  Status iteration(const LoopSegment& loop, int64_t done, std::vector<Slot>& carried,
                   std::vector<std::vector<Slot>>& grown, bool& condition);
  Result<std::vector<Slot>> evaluate_graph(const GraphRef& graph, std::vector<Tensor> arguments);

  // The verifier has seen to it that these exist.
  const Slot& read(const std::string& name) const { return values_.at(name); }
  // The verifier did not know the results of deferred segments.
  Result<bool> flag(const std::string& name) const;
  void define(const std::string& name, Slot slot) {
    held_.add(slot);
    Slot& place = values_[name];
    if (place.value) held_.drop(place);
    place = std::move(slot);
    order_.push_back(name);
  }
  void forget_since(size_t count) {
    for (size_t i = count; i < order_.size(); ++i) {
      const auto known = values_.find(order_[i]);
      if (known == values_.end()) continue;
      held_.drop(known->second);
      values_.erase(known);
    }
    order_.resize(count);
  }
  // To be asked before allocating.
  Status check_memory(int64_t more) const {
    if (more <= options_.max_bytes - held_.bytes()) return {};
    return over_limit("segments hold {} bytes and need {} more; the limit is {}", held_.bytes(),
                      more, options_.max_bytes)
        .with_hint(std::string(kMemoryHint));
  }

  const EvalOptions& options_;
  DeferredBodies& bodies_;
  const GraphWatch& watch_;
  HeldSlots& held_;
  int depth_;
  std::unordered_map<std::string, Slot> values_;
  std::vector<std::string> order_;  // the names of values_, as they came
};

Status check_type(const ModelValue& value, std::string_view kind, Type actual, Bindings& bindings) {
  Status match = match_type(value.type, KnownType::of(actual), bindings);
  if (match.ok()) return {};
  return bad_input("{} '%{}' {}", kind, value.name, match.error().what());
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
                                     : rounded_to(slot.value, DType::f64));
  }
  return outputs;
}

Result<bool> ModelRun::flag(const std::string& name) const {
  const Tensor& value = read(name).value;
  if (value.type() == Type::scalar(DType::boolean)) return value.integer_at(0) != 0;
  return bad_input("condition '%{}' is {}, must be bool[]", name, value.type().to_string());
}

Status ModelRun::segments(const std::vector<Segment>& list) {
  if (++depth_ > kMaxRunDepth)
    return over_limit("segments are nested more than {} deep", kMaxRunDepth);
  for (const Segment& s : list)
    HONE_TRY(std::visit([this](const auto& kind) { return segment(kind); }, s.kind));
  --depth_;
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
    if (count < 0 || count > size) {
      Error error = bad_input("output '%{}' is cut to {} along axis {}, which has {}",
                              segment.outputs[crop.output], count, axis, size);
      // A size that data gives has as much room as any size may have.
      return count > size ? std::move(error).as(ErrorCode::limit) : error;
    }
    slot.value = cut(slot.value, axis, count);
    if (slot.precise) slot.precise = cut(slot.precise, axis, count);
  }
  return {};
}

Status ModelRun::segment(const IfSegment& segment) {
  const Body& body = HONE_TRY(flag(segment.condition)) ? segment.on_true : segment.on_false;
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
    if (trips.type().rank() != 0 || !is_integer(trips.dtype()))
      return bad_input("trip count '%{}' is {}, not a scalar integer", loop.trip_count,
                       trips.type().to_string());
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
  for (const std::string& name : loop.grown) {
    grown.push_back({read(name)});
    held_.add(grown.back()[0]);
    if (grown.back()[0].value.type().rank() > 0) continue;
    return bad_input("result '%{}' of a loop is {}, which has no axis to grow along",
                     loop.results[carried.size() + grown.size() - 1],
                     grown.back()[0].value.type().to_string());
  }
  bool condition = loop.condition.empty() || HONE_TRY(flag(loop.condition));
  for (int64_t done = 0; HONE_TRY(loop_goes_on(loop, done, condition)); ++done)
    HONE_TRY(iteration(loop, done, carried, grown, condition));
  for (size_t i = 0; i < carried.size(); ++i) define(loop.results[i], std::move(carried[i]));
  for (size_t i = 0; i < grown.size(); ++i) {
    std::vector<Tensor> values, precise;
    for (const Slot& piece : grown[i]) {
      values.push_back(piece.value);
      if (!options_.real_outputs_as_f64 || !is_real(piece.value.dtype())) continue;
      precise.push_back(piece.precise ? piece.precise : rounded_to(piece.value, DType::f64));
    }
    int64_t more = 0;
    for (const std::vector<Tensor>* pieces : {&values, &precise})
      for (const Tensor& piece : *pieces) more += piece.byte_size();
    HONE_TRY(check_memory(more));
    define(loop.results[carried.size() + i],
           {HONE_TRY(joined(values)), precise.empty() ? Tensor() : HONE_TRY(joined(precise))});
    for (const Slot& piece : grown[i]) held_.drop(piece);
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
    // A start without rows does not say how long they are.
    bool is_first = grown[i].size() == 1 && first.dim(0).is(0) && first.rank() == next.rank() &&
                    first.dtype() == next.dtype();
    held_.add(piece);
    HONE_TRY(check_memory(0));
    if (is_first) {
      held_.drop(grown[i][0]);
      grown[i][0] = piece;
      continue;
    }
    if (next.rank() == 0 || with_dim(first, 0, 0) != with_dim(next, 0, 0))
      return bad_input("result '%{}' of a loop is {}, but grows by {} in iteration {}",
                       loop.results[carried.size() + i], first.to_string(), next.to_string(), done);
    grown[i].push_back(piece);
  }
  condition = loop.next_condition.empty() || HONE_TRY(flag(loop.next_condition));
  forget_since(outside);
  return {};
}

Result<std::vector<Slot>> ModelRun::evaluate_graph(const GraphRef& graph,
                                                   std::vector<Tensor> arguments) {
  std::vector<Slot> slots;
  if (watch_) HONE_TRY(watch_(graph, arguments));
  EvalOptions options = options_;
  EvalStats stats;
  options.stats = &stats;
  options.max_bytes -= held_.bytes();
  Result<std::vector<Tensor>> results = evaluate(*graph, arguments, options);
  if (options_.stats != nullptr) {
    options_.stats->nodes += stats.nodes;
    options_.stats->peak_bytes = std::max(options_.stats->peak_bytes, stats.peak_bytes);
  }
  for (Tensor& tensor : HONE_TRY(std::move(results))) {
    DType dtype = graph->type(graph->outputs()[slots.size()]).dtype();
    if (!options_.real_outputs_as_f64 || !is_real(dtype)) {
      slots.push_back({std::move(tensor), {}});
    } else {
      Tensor rounded = dtype == DType::f64 ? tensor : rounded_to(tensor, dtype);
      slots.push_back({std::move(rounded), std::move(tensor)});
    }
  }
  return slots;
}

// In a run of its own, since the body sees the inputs alone.
Status ModelRun::segment(const DeferredSegment& segment) {
  std::vector<Type> types;
  for (const std::string& name : segment.inputs) types.push_back(read(name).value.type());
  std::shared_ptr<const Body> body = HONE_TRY(bodies_.body_of(segment, std::move(types)));
  ModelRun inside(options_, bodies_, watch_, held_, depth_);
  for (const std::string& name : segment.inputs) inside.define(name, read(name));
  Status status = inside.segments(body->segments);
  if (!status.ok())
    return std::move(status).error().within(
        fmt::format("deferred segment '{}'", segment.source->describe()));
  for (const std::string& name : segment.results) define(name, inside.read(name));
  return {};
}

}  // namespace

ModelRunner::ModelRunner(Model model, GraphWatch watch)
    : model_(std::move(model)),
      watch_(std::move(watch)),
      bodies_(std::make_unique<DeferredBodies>()) {}
ModelRunner::~ModelRunner() = default;

int64_t ModelRunner::specialized() const { return bodies_->made(); }

Result<std::vector<Tensor>> ModelRunner::run(std::span<const Tensor> inputs,
                                             const EvalOptions& options) {
  if (!is_verified_) HONE_TRY(verify(model_));
  is_verified_ = true;
  if (options.stats != nullptr) *options.stats = {};
  HeldSlots held;
  return ModelRun(options, *bodies_, watch_, held).run(model_, inputs);
}

Result<std::vector<Tensor>> evaluate_model(const Model& model, std::span<const Tensor> inputs,
                                           const EvalOptions& options) {
  return ModelRunner(model).run(inputs, options);
}

}  // namespace hone
