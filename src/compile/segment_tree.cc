#include "compile/segment_tree.h"

#include <unordered_map>

#include "base/text.h"

namespace hone {

namespace {

class TreeBuilder {
 public:
  Result<SegmentTree> build(const Model& model) {
    for (const ModelValue& input : model.inputs) value(input.name);
    tree_.steps = HONE_TRY(steps(model.segments));
    for (const ModelValue& output : model.outputs) tree_.outputs.push_back(value(output.name));
    return std::move(tree_);
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

  Result<std::vector<segments::Step>> steps(const std::vector<Segment>& list) {
    std::vector<segments::Step> steps;
    for (const Segment& segment : list) {
      segments::Step step;
      HONE_TRY(std::visit([&](const auto& kind) { return add(kind, step); }, segment.kind));
      steps.push_back(std::move(step));
    }
    return steps;
  }
  Result<segments::Body> body(const Body& body) {
    segments::Body made;
    made.steps = HONE_TRY(steps(body.segments));
    made.results = values(body.results);
    return made;
  }

  Status add(const GraphSegment& segment, segments::Step& step) {
    segments::Unit unit;
    unit.unit = static_cast<uint32_t>(tree_.units.size());
    unit.inputs = values(segment.inputs);
    unit.outputs = values(segment.outputs);
    tree_.units.push_back(segment.graph->name());
    for (const Crop& crop : segment.crops)
      unit.crops.push_back({crop.output, crop.axis, crop.count});
    step.kind = std::move(unit);
    return {};
  }
  Status add(const IfSegment& segment, segments::Step& step) {
    segments::If branch;
    branch.condition = value(segment.condition);
    branch.on_true = HONE_TRY(body(segment.on_true));
    branch.on_false = HONE_TRY(body(segment.on_false));
    branch.results = values(segment.results);
    step.kind = std::move(branch);
    return {};
  }
  Status add(const LoopSegment& segment, segments::Step& step) {
    segments::Loop loop;
    loop.trip_count = value_or_none(segment.trip_count);
    loop.condition = value_or_none(segment.condition);
    loop.counter = value_or_none(segment.counter);
    loop.next_condition = value_or_none(segment.next_condition);
    for (const LoopSegment::Carried& carried : segment.carried)
      loop.carried.push_back({value(carried.name), value(carried.initial)});
    loop.grown = values(segment.grown);
    loop.body = HONE_TRY(body(segment.body));
    loop.results = values(segment.results);
    step.kind = std::move(loop);
    return {};
  }
  Status add(const DeferredSegment& segment, segments::Step&) {
    return unsupported("{} has to be compiled when the sizes of its inputs are seen",
                       segment.source->describe());
  }

  SegmentTree tree_;
  std::unordered_map<std::string, uint32_t> values_;
};

}  // namespace

Result<SegmentTree> segment_tree(const Model& model) { return TreeBuilder().build(model); }

}  // namespace hone
