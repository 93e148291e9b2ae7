#include "report/plan_picture.h"

#include <algorithm>
#include <tuple>

#include "ir/op_facts.h"
#include "kernel/kernel_name.h"
#include "planner/memory.h"

namespace hone {
namespace {

std::string layout_text(const PlannedGraph& frame, ValueId v) {
  const Layout& layout = frame.layout[v.index];
  return layout.is_row_major() ? "" : print(layout);
}

GraphPicture::Node node_of(const PlannedGraph& frame, NodeId n) {
  const GraphView graph = frame.view();
  const ValueId first = graph.result(n);
  return {std::string(graph.name(first)), std::string(name(graph.op(n).opcode())),
          graph.type(first).to_string(), layout_text(frame, first)};
}

// The order of a plan, or of the steps as they are.
std::vector<uint32_t> order_of(const PlannedGraph& frame) {
  if (frame.order.size() == frame.steps.size()) return frame.order;
  std::vector<uint32_t> order(frame.steps.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  return order;
}

// Kernels of a plan that is complete; else none is known.
std::map<std::string, PlannedKernel> kernels_of(const Graph& graph, const Plan& plan) {
  if (plan.fuse.empty()) return {};
  Result<std::map<std::string, PlannedKernel>> kernels = planned_kernels(graph, plan);
  return kernels.ok() ? *std::move(kernels) : std::map<std::string, PlannedKernel>();
}

int64_t bytes_of(const Graph& graph, std::span<const ValueId> values) {
  int64_t bytes = 0;
  for (ValueId v : values) bytes += graph.type(v).static_bytes();
  return bytes;
}

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (is_constant(graph.opcode(n))) bytes += graph.type(graph.result(n)).static_bytes();
  return bytes;
}

// The most bytes in use at once, in each of equal stretches of `moments`.
std::vector<int64_t> load_of(std::span<const MemoryPicture::Buffer> buffers, int64_t moments,
                             size_t most) {
  std::vector<int64_t> change(static_cast<size_t>(moments) + 1);
  for (const MemoryPicture::Buffer& buffer : buffers) {
    change[static_cast<size_t>(buffer.begin)] += buffer.bytes;
    change[static_cast<size_t>(buffer.end)] -= buffer.bytes;
  }
  const size_t count = std::min(most, static_cast<size_t>(moments));
  std::vector<int64_t> load(count);
  int64_t now = 0;
  for (size_t i = 0; i < static_cast<size_t>(moments); ++i) {
    now += change[i];
    int64_t& part = load[i * count / static_cast<size_t>(moments)];
    part = std::max(part, now);
  }
  return load;
}

}  // namespace

Result<GraphPicture> picture_of(const Graph& graph, const Plan& plan, const LayerNames& layers,
                                const PictureBounds& bounds) {
  const PlannedGraph frame = HONE_TRY(planned(plan, graph));
  const std::map<std::string, PlannedKernel> kernels = kernels_of(graph, plan);
  const std::vector<uint32_t> order = order_of(frame);
  GraphPicture picture;
  std::vector<uint32_t> place(frame.steps.size(), kNoStep);  // in the picture
  std::map<uint64_t, int64_t> schedules;
  size_t nodes = 0;
  for (const uint32_t index : order) {
    const Step& step = frame.steps[index];
    if (picture.steps.size() == bounds.steps) {
      ++picture.left_out_steps;
      continue;
    }
    place[index] = static_cast<uint32_t>(picture.steps.size());
    GraphPicture::Step& drawn = picture.steps.emplace_back();
    drawn.name = step.name;
    if (drawn.name.empty() && !step.nodes.empty())
      drawn.name = step_name(frame.view(), step.nodes[0]);
    for (const uint32_t need : frame.needs(index))
      if (place[need] != kNoStep && drawn.needs.size() < bounds.needs)
        drawn.needs.push_back(place[need]);
    std::ranges::sort(drawn.needs);
    for (NodeId n : step.nodes) {
      if (++nodes > bounds.nodes)
        ++picture.left_out_nodes;
      else
        drawn.nodes.push_back(node_of(frame, n));
    }
    const auto known = kernels.find(step.name);
    if (known == kernels.end()) continue;
    const PlannedKernel& kernel = known->second;
    drawn.kernel = kernel_name(kernel.body.graph);
    drawn.layers = layers_of(kernel, layers);
    const auto [at, is_new] =
        schedules.try_emplace(kernel.hash, static_cast<int64_t>(picture.schedules.size()));
    if (is_new)
      picture.schedules.push_back({fmt::format("0x{:016x}", kernel.hash),
                                   std::string(name(kernel.schedule->algorithm())),
                                   print(*kernel.schedule)});
    drawn.schedule = at->second;
  }
  for (NodeId n : frame.graph->nodes()) picture.views += frame.is_view(n) ? 1 : 0;
  return picture;
}

Result<MemoryPicture> memory_picture(const Graph& graph, const Plan& plan,
                                     const PictureBounds& bounds) {
  const PlannedGraph frame = HONE_TRY(planned(plan, graph));
  MemoryPicture picture;
  picture.moments = static_cast<int64_t>(frame.order.size());
  picture.inputs = bytes_of(graph, graph.inputs());
  picture.outputs = bytes_of(graph, graph.outputs());
  picture.constants = constant_bytes(graph);
  const GraphView view = frame.view();
  for (const Lifetime& life : lifetimes(frame, frame.order))
    picture.buffers.push_back({std::string(view.name(life.value)),
                               view.type(life.value).to_string(), life.first,
                               int64_t{life.last} + 1, frame.offset[life.value.index], life.bytes});
  if (const auto known = HONE_TRY(memory_of(graph, plan))) {
    picture.height = known->height;
    picture.bound = known->bound;
  }
  picture.load = load_of(picture.buffers, picture.moments, bounds.moments);
  const auto by_area = [](const MemoryPicture::Buffer& buffer) {
    const double steps = static_cast<double>(buffer.end - buffer.begin);
    return std::tuple(-steps * static_cast<double>(buffer.bytes), buffer.begin, buffer.offset);
  };
  if (picture.buffers.size() > bounds.buffers) {
    std::ranges::sort(picture.buffers, {}, by_area);
    picture.left_out = picture.buffers.size() - bounds.buffers;
    picture.buffers.resize(bounds.buffers);
  }
  std::ranges::sort(picture.buffers, {}, [](const MemoryPicture::Buffer& buffer) {
    return std::pair(buffer.begin, buffer.offset);
  });
  return picture;
}

}  // namespace hone
