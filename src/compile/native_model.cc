#include "compile/native_model.h"

#include <algorithm>

#include "base/text.h"
#include "ir/model_flow.h"

namespace hone {

namespace {

std::vector<image::Port> native_ports(std::span<const ModelValue> values) {
  std::vector<image::Port> ports;
  for (const ModelValue& value : values) ports.push_back({value.name, value.type});
  return ports;
}

}  // namespace

NativeModel::NativeModel(Model model, Target target, CompileOptions options)
    : inputs_(native_ports(model.inputs)),
      outputs_(native_ports(model.outputs)),
      code_(std::make_unique<NativeCode>(std::move(target), std::move(options))),
      is_single_(single_graph(model) != nullptr),
      all_(part(segment_units(model))) {
  code_->look_for_loops(model);
}

Result<std::shared_ptr<NativeModel>> NativeModel::make(Model model, Target target,
                                                       CompileOptions options,
                                                       std::span<const PlacedPlan* const> plans) {
  if (single_graph(model) == nullptr) {
    HONE_TRY(verify(model));
    options.quick_start = QuickStart::never;
  }
  const std::vector<const Graph*> graphs = graphs_of(model);
  std::shared_ptr<NativeModel> native(
      new NativeModel(std::move(model), std::move(target), std::move(options)));
  for (size_t i = 0; i < plans.size(); ++i)
    if (plans[i] != nullptr) native->code_->set_plan(graphs[i], *plans[i]);
  return native;
}

std::shared_ptr<const NativeModel::Part> NativeModel::part(SegmentUnits segments) const {
  const auto units = static_cast<uint32_t>(segments.units.size());
  units_ += units;
  return std::make_shared<const Part>(Part{std::move(segments), units_ - units});
}

Result<std::shared_ptr<const NativeModel::Part>> NativeModel::body_of(
    const DeferredSegment& segment, std::vector<Type> types) const {
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find_if(kept_, [&](const Kept& one) {
    return one.source == segment.source && one.types == types && one.inputs == segment.inputs &&
           one.results == segment.results;
  });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
  } else {
    const Body body = HONE_TRY(make_body(segment, types));
    kept_.push_front({segment.source, segment.inputs, segment.results, std::move(types),
                      part(segment_units(body, segment.inputs))});
    if (kept_.size() > kMaxKept) kept_.pop_back();
  }
  return kept_.front().body;
}

// The function lives no longer than the arguments.
RunUnit NativeModel::runs(const Part& part, const RunOptions& options,
                          std::vector<UnitTimes>* times) const {
  return [&, times](uint32_t unit, std::span<const Tensor> tensors,
                    const SegmentLimits& left) -> Result<std::vector<Tensor>> {
    const auto& one = part.segments.units[unit];
    if (const auto* graph = std::get_if<GraphRef>(&one)) {
      const auto code = HONE_TRY(code_->executable(*graph, tensors));
      return run_unit(*code, part.first + unit, tensors, left, options, times);
    }
    const std::shared_ptr<const Part> body =
        HONE_TRY(body_of(std::get<DeferredSegment>(one), types_of(tensors)));
    return run_segments(body->segments.tree, tensors, runs(*body, options, times),
                        left.beside(tensors));
  };
}

Result<std::vector<Tensor>> NativeModel::run(std::span<const Tensor> inputs,
                                             const RunOptions& options,
                                             std::vector<UnitTimes>* times) const {
  if (is_single_) {
    const GraphRef& graph = std::get<GraphRef>(all_->segments.units[0]);
    return HONE_TRY(code_->executable(graph, inputs))->run(inputs, options, times);
  }
  return run_segments(all_->segments.tree, inputs_, outputs_, inputs, runs(*all_, options, times),
                      {.cancel = options.cancel, .max_bytes = code_->memory_limit()});
}

// Null if it belongs to a body that is not kept.
const GraphRef* NativeModel::graph_of(uint32_t unit) const {
  const auto in = [unit](const Part& part) -> const GraphRef* {
    if (unit < part.first || unit - part.first >= part.segments.units.size()) return nullptr;
    return std::get_if<GraphRef>(&part.segments.units[unit - part.first]);
  };
  if (const GraphRef* graph = in(*all_)) return graph;
  for (const Kept& one : kept_)
    if (const GraphRef* graph = in(*one.body)) return graph;
  return nullptr;
}

std::optional<NativeCode::Made> NativeModel::made(const UnitTimes& times) const {
  const std::scoped_lock lock(mutex_);
  const GraphRef* graph = graph_of(times.unit);
  return graph == nullptr ? std::nullopt : code_->made(*graph, times.inputs);
}

}  // namespace hone
