#include "cost/plan_cost.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/loop_state.h"
#include "ir/op_facts.h"
#include "kernel/schedule_text.h"

namespace hone {

// ---- Frames -------------------------------------------------------------------------------------

struct PlanCost::Frame {
  const FrameEditor& editor;
  Frame* outer;                // none: this is the graph
  NodeId node;                 // of the outer graph
  std::vector<bool> left_out;  // outputs that a loop does not ask for
  std::vector<std::unique_ptr<Frame>> inner;
  std::map<NodeId, std::vector<RegionTasks>> regions;
  std::vector<TaskSeconds> steps;
  TaskSum sum;                  // of these
  std::vector<uint32_t> dirty;  // steps
  bool is_new = true;           // no step has been priced
  bool is_changed = true;       // the total is not up to date
  TaskSeconds total = {};
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
  std::unique_ptr<Frame> frame(
      new Frame{editor, outer, node, std::move(left_out), {}, {}, {}, {}, {}});
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
  return HONE_TRY(total(*main_)).total();
}

Result<TaskSeconds> PlanCost::total(Frame& frame) {
  if (!frame.is_changed) return frame.total;
  const size_t count = frame.editor.planned().steps.size();
  for (; frame.steps.size() > count; frame.steps.pop_back()) frame.sum.remove(frame.steps.back());
  frame.steps.resize(count);
  const auto price = [&](uint32_t step) -> Status {
    if (step >= count) return {};  // it is gone
    const TaskSeconds seconds = HONE_TRY(step_seconds(frame, step));
    frame.sum.remove(frame.steps[step]);
    frame.sum.add(seconds);
    frame.steps[step] = seconds;
    return {};
  };
  if (frame.is_new) {
    for (uint32_t s = 0; s < count; ++s) HONE_TRY(price(s));
  } else {
    for (uint32_t s : frame.dirty) HONE_TRY(price(s));
    for (const auto& [node, regions] : frame.regions)
      HONE_TRY(price(frame.editor.planned().step_of[node.index]));
  }
  frame.dirty.clear();
  TaskSum sum = frame.sum;
  HONE_TRY(add_ports(frame, sum));
  frame.is_new = frame.is_changed = false;
  frame.total = sum.value();
  return frame.total;
}

// ---- Tasks --------------------------------------------------------------------------------------

// Prices the parts of a task of a step. A task of kNoStep launches nothing.
class PlanCost::Parts {
 public:
  Parts(PlanCost& whole, const FrameEditor& frame, uint32_t step)
      : whole_(whole), frame_(frame), step_(step) {}

  TaskSeconds command() const { return {.commands = whole_.cost_.command()}; }
  TaskSeconds copy(double bytes) const { return {.copies = whole_.cost_.copy(bytes)}; }
  Result<TaskSeconds> launch(uint64_t /*kernel*/) const {
    return TaskSeconds{.launches = HONE_TRY(whole_.seconds(frame_, step_))};
  }
  Result<TaskSeconds> list(size_t position) const { return whole_.total(*whole_.lists_[position]); }
  double number(Dim dim) const {
    return static_cast<double>(std::max<int64_t>(dim.range().high, 0));
  }

 private:
  PlanCost& whole_;
  const FrameEditor& frame_;
  const uint32_t step_;
};

Result<TaskSeconds> PlanCost::step_seconds(Frame& frame, uint32_t s) {
  const auto regions = frame.regions.find(frame.editor.planned().steps[s].nodes[0]);
  const Task task = task_of(
      frame.editor, s,
      regions == frame.regions.end() ? std::span<const RegionTasks>() : std::span(regions->second));
  Parts parts(*this, frame.editor, s);
  return task_price(task, parts);
}

Status PlanCost::add_ports(Frame& frame, TaskSum& sum) {
  Parts parts(*this, frame.editor, kNoStep);
  for (const std::vector<PortTask>& tasks :
       {output_tasks(frame.editor, frame.left_out), input_tasks(frame.editor)})
    for (const PortTask& port : tasks) sum.add(HONE_TRY(task_price(port.task, parts)));
  return {};
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

PlanCost::Kernel PlanCost::kernel_if(const FrameEditor& frame, uint32_t s, const Layouts& layouts) {
  const Step& step = frame.planned().steps[s];
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
  return {hasher.finish(step.in_place, {}),
          [&frame, s, inputs = std::move(inputs), outputs = std::move(outputs)] {
            KernelBody body = frame.body(s);
            body.inputs = inputs;
            body.outputs = outputs;
            return body;
          }};
}

Result<double> PlanCost::seconds_if(const FrameEditor& frame, uint32_t s, const Layouts& layouts) {
  if (!frame.planned().steps[s].is_kernel) return 0.0;
  const Kernel kernel = kernel_if(frame, s, layouts);
  return kernel_seconds(kernel.hash, kernel.body);
}

Result<PlanCost::Launch> PlanCost::launch_if(const FrameEditor& frame, uint32_t s,
                                             const Layouts& layouts) {
  const Kernel kernel = kernel_if(frame, s, layouts);
  return Launch{kernel.hash, store_.facts(kernel.hash, kernel.body),
                HONE_TRY(kernel_schedule(kernel.hash, kernel.body))};
}

Result<Schedule> PlanCost::kernel_schedule(uint64_t hash, const KernelStore::Body& body) {
  if (const Schedule* said = plan_.schedule(hash)) return *said;
  HONE_TRY(kernel_seconds(hash, body));
  return known().chosen.at(hash).schedule;
}

Result<Schedule> PlanCost::schedule(const FrameEditor& frame, uint32_t step) {
  return kernel_schedule(frame.kernel(step).hash, [&] { return frame.body(step); });
}

}  // namespace hone
