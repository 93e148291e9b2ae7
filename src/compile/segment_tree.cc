#include "compile/segment_tree.h"

#include <unordered_map>

#include "base/text.h"

namespace hone {

namespace {

class TreeBuilder {
 public:
  SegmentUnits build(const Model& model) {
    for (const ModelValue& input : model.inputs) value(input.name);
    tree_.steps = steps(model.segments);
    for (const ModelValue& output : model.outputs) tree_.outputs.push_back(value(output.name));
    return std::move(built_);
  }
  SegmentUnits build(const Body& body, const std::vector<std::string>& inputs) {
    for (const std::string& input : inputs) {
      values_.try_emplace(input, static_cast<uint32_t>(tree_.values.size()));
      tree_.values.push_back(input);  // one that is given twice has two numbers
    }
    tree_.steps = steps(body.segments);
    tree_.outputs = values(body.results);
    return std::move(built_);
  }

 private:
  using Values = std::vector<uint32_t>;

  // A name is given once in a model.
  uint32_t value(const std::string& name) {
    const auto [known, is_new] =
        values_.try_emplace(name, static_cast<uint32_t>(tree_.values.size()));
    if (is_new) tree_.values.push_back(name);
    return known->second;
  }
  uint32_t value_or_none(const std::string& name) {
    return name.empty() ? segments::kNone : value(name);
  }
  Values values(const std::vector<std::string>& names) {
    Values list;
    for (const std::string& name : names) list.push_back(value_or_none(name));
    return list;
  }

  std::vector<segments::Step> steps(const std::vector<Segment>& list) {
    std::vector<segments::Step> steps;
    for (const Segment& segment : list)
      steps.push_back({std::visit(
          [&](const auto& kind) -> decltype(segments::Step::kind) { return step(kind); },
          segment.kind)});
    return steps;
  }
  segments::Body body(const Body& body) { return {steps(body.segments), values(body.results)}; }

  segments::Unit unit(std::string name, decltype(SegmentUnits::units)::value_type what,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
    segments::Unit unit;
    unit.unit = static_cast<uint32_t>(tree_.units.size());
    unit.inputs = values(inputs);
    unit.outputs = values(outputs);
    tree_.units.push_back(std::move(name));
    built_.units.push_back(std::move(what));
    return unit;
  }
  segments::Unit step(const GraphSegment& segment) {
    segments::Unit made =
        unit(segment.graph->name(), segment.graph, segment.inputs, segment.outputs);
    for (const Crop& crop : segment.crops)
      made.crops.push_back({crop.output, crop.axis, crop.count});
    return made;
  }
  segments::If step(const IfSegment& segment) {
    segments::If branch;
    branch.condition = value(segment.condition);
    branch.on_true = body(segment.on_true);
    branch.on_false = body(segment.on_false);
    branch.results = values(segment.results);
    return branch;
  }
  segments::Loop step(const LoopSegment& segment) {
    segments::Loop loop;
    loop.trip_count = value_or_none(segment.trip_count);
    loop.condition = value_or_none(segment.condition);
    loop.counter = value_or_none(segment.counter);
    loop.next_condition = value_or_none(segment.next_condition);
    for (const LoopSegment::Carried& carried : segment.carried)
      loop.carried.push_back({value(carried.name), value(carried.initial)});
    loop.grown = values(segment.grown);
    loop.body = body(segment.body);
    loop.results = values(segment.results);
    return loop;
  }
  segments::Unit step(const DeferredSegment& segment) {
    return unit(segment.source->describe(), segment, segment.inputs, segment.results);
  }

  SegmentUnits built_;
  SegmentTree& tree_ = built_.tree;
  std::unordered_map<std::string, uint32_t> values_;
};

}  // namespace

SegmentUnits segment_units(const Model& model) { return TreeBuilder().build(model); }

SegmentUnits segment_units(const Body& body, const std::vector<std::string>& inputs) {
  return TreeBuilder().build(body, inputs);
}

Result<SegmentTree> segment_tree(const Model& model) {
  if (const DeferredSegment* deferred = first_deferred(model))
    return unsupported("{} has to be compiled when the sizes of its inputs are seen",
                       deferred->source->describe());
  return std::move(segment_units(model).tree);
}

}  // namespace hone
