#include "cost/plan_cost.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "cost/task_price.h"
#include "ir/loop_state.h"
#include "ir/op_facts.h"
#include "kernel/schedule_text.h"

namespace hone {

// ---- Sums ---------------------------------------------------------------------------------------

void SumTree::resize(size_t count) {
  const size_t leaves = std::bit_ceil(std::max<size_t>(count, 1));
  if (leaves == leaves_) return;
  std::vector<double> values(leaves);
  for (size_t i = 0; i < std::min(leaves, leaves_); ++i) values[i] = nodes_[leaves_ + i];
  leaves_ = leaves;
  nodes_.assign(2 * leaves, 0);
  std::ranges::copy(values, nodes_.begin() + static_cast<ptrdiff_t>(leaves));
  for (size_t i = leaves; i-- > 1;) nodes_[i] = nodes_[2 * i] + nodes_[2 * i + 1];
}

void SumTree::set(size_t at, double value) {
  size_t i = leaves_ + at;
  nodes_[i] = value;
  while ((i /= 2) > 0) nodes_[i] = nodes_[2 * i] + nodes_[2 * i + 1];
}

// ---- Frames -------------------------------------------------------------------------------------

struct PlanCost::Frame {
  const FrameEditor& editor;
  Frame* outer;                // none: this is the graph
  NodeId node;                 // of the outer graph
  std::vector<bool> left_out;  // outputs that a loop does not ask for
  std::vector<std::unique_ptr<Frame>> inner;
  std::map<NodeId, std::vector<RegionTasks>> regions;
  SumTree steps;
  std::vector<uint32_t> dirty;  // steps
  bool is_new = true;           // no step has been priced
  bool is_changed = true;       // the total is not up to date
  double total = 0;
};

PlanCost::PlanCost(PlanEditor& plan, const Cost& cost, KernelStore& store, ChooseSchedule choose)
    : plan_(plan),
      cost_(cost),
      version_(cost.version()),
      store_(store),
      choose_(std::move(choose)),
      main_(frame_of(plan.main(), nullptr, {}, {})) {
  plan.watch([this](const FrameEditor& frame, uint32_t step) { changed(frame, step); });
}

PlanCost::~PlanCost() { plan_.watch({}); }

std::unique_ptr<PlanCost::Frame> PlanCost::frame_of(const FrameEditor& editor, Frame* outer,
                                                    NodeId node, std::vector<bool> left_out) {
  std::unique_ptr<Frame> frame(new Frame{editor, outer, node, std::move(left_out), {}, {}, {}, {}});
  frames_[&editor] = frame.get();
  const Graph& graph = editor.view().graph();
  if (editor.regions().empty()) return frame;
  for (const RegionRef& region : regions_of(graph)) {
    const bool is_body = region.index + 1 == graph.regions(region.node).size();
    std::vector<bool> unchanged;
    if (is_body) unchanged = unchanged_state(graph, region.node);
    const FrameEditor& inner = *editor.regions().at(region.key);
    frame->inner.push_back(frame_of(inner, frame.get(), region.node, std::move(unchanged)));
    frame->regions[region.node].push_back({&inner, lists_.size()});
    lists_.push_back(frame->inner.back().get());
  }
  return frame;
}

void PlanCost::changed(const FrameEditor& editor, uint32_t step) {
  Frame& frame = *frames_.at(&editor);
  if (step != kNoStep) frame.dirty.push_back(step);
  for (Frame* at = &frame; at != nullptr; at = at->outer) at->is_changed = true;
}

int64_t PlanCost::threads() const { return plan_.threads().value_or(plan_.target().cores); }

Result<double> PlanCost::seconds() {
  if (const int64_t now = threads(); now != priced_threads_) {
    for (const auto& [editor, frame] : frames_) frame->is_new = frame->is_changed = true;
    priced_threads_ = now;
  }
  return total(*main_);
}

Result<double> PlanCost::total(Frame& frame) {
  if (!frame.is_changed) return frame.total;
  const size_t count = frame.editor.planned().steps.size();
  frame.steps.resize(count);
  const auto price = [&](uint32_t step) -> Status {
    const double seconds = step < count ? HONE_TRY(step_seconds(frame, step)) : 0;
    if (step < frame.steps.size()) frame.steps.set(step, seconds);
    return {};
  };
  if (frame.is_new) {
    for (uint32_t s = 0; s < frame.steps.size(); ++s) HONE_TRY(price(s));
  } else {
    for (uint32_t s : frame.dirty) HONE_TRY(price(s));
    for (const auto& [node, regions] : frame.regions)
      HONE_TRY(price(frame.editor.planned().step_of[node.index]));
  }
  frame.dirty.clear();
  frame.is_new = frame.is_changed = false;
  frame.total = frame.steps.sum() + HONE_TRY(port_seconds(frame));
  return frame.total;
}

// ---- Tasks --------------------------------------------------------------------------------------

// Prices the parts of a task of a step. A task of kNoStep launches nothing.
class PlanCost::Parts {
 public:
  Parts(PlanCost& whole, const FrameEditor& frame, uint32_t step)
      : whole_(whole), frame_(frame), step_(step) {}

  double command() const { return whole_.cost_.command(); }
  double copy(double bytes) const { return whole_.cost_.copy(bytes); }
  Result<double> launch(uint64_t /*kernel*/) const { return whole_.seconds(frame_, step_); }
  Result<double> list(size_t position) const { return whole_.total(*whole_.lists_[position]); }
  double number(Dim dim) const {
    return static_cast<double>(std::max<int64_t>(dim.range().high, 0));
  }

 private:
  PlanCost& whole_;
  const FrameEditor& frame_;
  const uint32_t step_;
};

Result<double> PlanCost::step_seconds(Frame& frame, uint32_t s) {
  const auto regions = frame.regions.find(frame.editor.planned().steps[s].nodes[0]);
  const Task task = task_of(
      frame.editor, s,
      regions == frame.regions.end() ? std::span<const RegionTasks>() : std::span(regions->second));
  Parts parts(*this, frame.editor, s);
  return task_price<double>(task, parts);
}

Result<double> PlanCost::port_seconds(Frame& frame) {
  Parts parts(*this, frame.editor, kNoStep);
  double seconds = 0;
  for (const std::vector<PortTask>& tasks :
       {output_tasks(frame.editor, frame.left_out), input_tasks(frame.editor)})
    for (const PortTask& port : tasks) seconds += HONE_TRY(task_price<double>(port.task, parts));
  return seconds;
}

// ---- Kernels ------------------------------------------------------------------------------------

KernelStore::Known& PlanCost::known() {
  return (version_.empty() ? own_ : store_).known(version_, threads());
}

Result<double> PlanCost::kernel_seconds(uint64_t hash, const KernelStore::Body& body) {
  KernelStore::Known& known = this->known();
  if (const Schedule* said = plan_.schedule(hash)) {
    const auto [at, is_new] = known.said.try_emplace(Hasher(hash).add(print(*said)).value());
    if (is_new) at->second = priced_kernel(hash, body).seconds(*said);
    return at->second;
  }
  if (const auto at = known.chosen.find(hash); at != known.chosen.end()) return at->second.seconds;
  PricedSchedule chosen = HONE_TRY(choose_(store_.facts(hash, body), threads()));
  return known.chosen.emplace(hash, std::move(chosen)).first->second.seconds;
}

// The last kernel for which a schedule was said: a search tries many on one.
PricedKernel& PlanCost::priced_kernel(uint64_t hash, const KernelStore::Body& body) {
  if (const std::pair key(hash, threads()); priced_ == nullptr || priced_key_ != key) {
    priced_ = cost_.kernel(store_.facts(hash, body), threads());
    priced_key_ = key;
  }
  return *priced_;
}

Result<double> PlanCost::seconds(const FrameEditor& frame, uint32_t step) {
  if (!frame.planned().steps[step].is_kernel) return 0.0;
  return kernel_seconds(frame.kernel(step).hash, [&] { return frame.body(step); });
}

Result<double> PlanCost::seconds_if(const FrameEditor& frame, uint32_t s, const Layouts& layouts) {
  const Step& step = frame.planned().steps[s];
  if (!step.is_kernel) return 0.0;
  const auto replace = [&](std::vector<Layout>& list, const std::vector<ValueId>& ports) {
    for (size_t i = 0; i < ports.size(); ++i)
      for (const auto& [value, layout] : layouts)
        if (ports[i] == value) list[i] = layout;
  };
  std::vector<Layout> inputs, outputs;
  for (ValueId v : step.reads) inputs.push_back(frame.planned().layout[v.index]);
  for (ValueId v : step.writes) outputs.push_back(frame.planned().layout[v.index]);
  replace(inputs, step.reads);
  replace(outputs, step.writes);
  KernelHasher hasher(frame.kernel(s).graph);
  for (const std::vector<Layout>* list : {&inputs, &outputs})
    for (const Layout& layout : *list) hasher.add(layout);
  return kernel_seconds(hasher.finish(step.in_place, {}), [&] {
    KernelBody body = frame.body(s);
    body.inputs = inputs;
    body.outputs = outputs;
    return body;
  });
}

Result<Schedule> PlanCost::schedule(const FrameEditor& frame, uint32_t step) {
  const uint64_t hash = frame.kernel(step).hash;
  if (const Schedule* said = plan_.schedule(hash)) return *said;
  HONE_TRY(seconds(frame, step));
  return known().chosen.at(hash).schedule;
}

}  // namespace hone
