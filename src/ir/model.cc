#include "ir/model.h"

#include <algorithm>
#include <unordered_set>

namespace hone {
namespace {

// Names for all of the list: those that are given, made up ones for those that are missing or
// taken.
class Namer {
 public:
  std::string pick(std::string_view wanted, std::string_view kind, size_t index) {
    std::string name(wanted);
    if (name.empty() || used_.contains(name)) name = fmt::format("{}{}", kind, index);
    while (!used_.insert(name).second) name += '_';
    return name;
  }

 private:
  std::unordered_set<std::string> used_;
};

// Calls visit with each segment of the given kind, in the order of the text.
template <class Kind, class Visit>
void for_each(const std::vector<Segment>& segments, const Visit& visit) {
  for (const Segment& segment : segments) {
    if (const auto* found = std::get_if<Kind>(&segment.kind)) visit(*found);
    if (const auto* choice = std::get_if<IfSegment>(&segment.kind)) {
      for_each<Kind>(choice->on_true.segments, visit);
      for_each<Kind>(choice->on_false.segments, visit);
    } else if (const auto* loop = std::get_if<LoopSegment>(&segment.kind)) {
      for_each<Kind>(loop->body.segments, visit);
    }
  }
}

}  // namespace

Model model_of(Graph graph) {
  Model model;
  model.name = graph.name();
  GraphSegment segment;
  Namer namer;
  for (ValueId v : graph.inputs()) {
    std::string name = namer.pick(graph.name(v), "input", model.inputs.size());
    segment.inputs.push_back(name);
    model.inputs.push_back({std::move(name), graph.type(v)});
  }
  for (ValueId v : graph.outputs()) {
    std::string name = namer.pick(graph.name(v), "output", model.outputs.size());
    segment.outputs.push_back(name);
    model.outputs.push_back({std::move(name), graph.type(v)});
  }
  segment.graph = std::make_shared<const Graph>(std::move(graph));
  model.segments.push_back({std::move(segment)});
  return model;
}

const Graph* single_graph(const Model& model) {
  if (model.segments.size() != 1) return nullptr;
  const auto* run = std::get_if<GraphSegment>(&model.segments[0].kind);
  if (run == nullptr || !run->crops.empty()) return nullptr;
  auto same = [](const std::vector<ModelValue>& values, const std::vector<std::string>& names) {
    return std::ranges::equal(values, names, {}, &ModelValue::name);
  };
  return same(model.inputs, run->inputs) && same(model.outputs, run->outputs) ? run->graph.get()
                                                                              : nullptr;
}

std::vector<const Graph*> graphs_of(const Model& model) {
  std::vector<const Graph*> graphs;
  for_each<GraphSegment>(model.segments,
                         [&](const GraphSegment& run) { graphs.push_back(run.graph.get()); });
  return graphs;
}

const DeferredSegment* first_deferred(const Model& model) {
  const DeferredSegment* first = nullptr;
  for_each<DeferredSegment>(model.segments, [&](const DeferredSegment& deferred) {
    if (first == nullptr) first = &deferred;
  });
  return first;
}

}  // namespace hone
