#include "cost/plan_cost.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/hash.h"
#include "cost/program_price.h"
#include "ir/loop_state.h"
#include "ir/op_facts.h"
#include "kernel/schedule_text.h"
#include "program/tiles/calling.h"

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
  std::map<NodeId, std::vector<std::unique_ptr<Frame>>> regions;
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
  std::unique_ptr<Frame> frame(new Frame{editor, outer, node, std::move(left_out), {}, {}, {}});
  frames_[&editor] = frame.get();
  const Graph& graph = editor.view().graph();
  if (editor.regions().empty()) return frame;
  for (const RegionRef& region : regions_of(graph)) {
    const bool is_body = region.index + 1 == graph.regions(region.node).size();
    std::vector<bool> unchanged;
    if (is_body) unchanged = unchanged_state(graph, region.node);
    frame->regions[region.node].push_back(
        frame_of(*editor.regions().at(region.key), frame.get(), region.node, std::move(unchanged)));
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
  frame.total = frame.steps.sum() + port_copies(frame);
  return frame.total;
}

double PlanCost::copy(Type type) const {
  const int64_t bytes = bytes_of(type).range().high;
  return cost_.command() + cost_.copy(static_cast<double>(std::max<int64_t>(bytes, 0)));
}

// The copies of outputs that lie elsewhere, and of inputs that are changed in place.
double PlanCost::port_copies(const Frame& frame) const {
  const PlannedGraph& planned = frame.editor.planned();
  const GraphView graph = planned.view();
  double seconds = 0;
  std::unordered_set<uint32_t> written;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (i < frame.left_out.size() && frame.left_out[i]) continue;
    const ValueId v = graph.outputs()[i], base = planned.base[v.index];
    const bool is_written = planned.home[base.index] == Home::output;
    if (!is_written || !written.insert(base.index).second) seconds += copy(graph.type(v));
  }
  for (const Donation& donation : graph.donations()) {
    const ValueId input = graph.inputs()[donation.input];
    for (NodeId n : frame.editor.users().of(input)) {
      const uint32_t s = planned.step_of[n.index];
      if (s == kNoStep || !planned.steps[s].in_place || planned.steps[s].reads[0] != input)
        continue;
      seconds += cost_.command();
      break;
    }
  }
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

Result<double> PlanCost::step_seconds(Frame& frame, uint32_t s) {
  const Step& step = frame.editor.planned().steps[s];
  if (!step.is_kernel) return node_seconds(frame, step);
  return cost_.command() + HONE_TRY(seconds(frame.editor, s));
}

// ---- Commands -----------------------------------------------------------------------------------

// As lower() makes commands of them (program/lower/control.cc, collective.cc).
Result<double> PlanCost::node_seconds(Frame& frame, const Step& step) {
  const NodeId n = step.nodes[0];
  const GraphView graph = frame.editor.view();
  const auto regions = frame.regions.find(n);
  if (regions == frame.regions.end())  // a collective, or somebody else plans its regions
    return graph.regions(n).empty() ? copy(graph.type(graph.result(n))) : cost_.command();
  if (is_loop(graph.opcode(n))) return loop_seconds(frame, step);
  double most = 0;  // of branches, or the only one
  for (const std::unique_ptr<Frame>& region : regions->second)
    most = std::max(most, HONE_TRY(total(*region)));
  return cost_.command() + most;
}

Result<double> PlanCost::loop_seconds(Frame& frame, const Step& step) {
  const NodeId n = step.nodes[0];
  const GraphView graph = frame.editor.view();
  const std::vector<std::unique_ptr<Frame>>& regions = frame.regions.at(n);
  const std::vector<bool> unchanged = unchanged_state(graph.graph(), n);
  const bool has_slices = is_scan(graph.opcode(n));
  const size_t carried =
      has_slices ? static_cast<size_t>(graph.op(n).integer("carried")) : graph.operands(n).size();
  const std::span<const ValueId> operands = graph.operands(n);
  double seconds = 2 * cost_.command();  // of the frame around the loop, and of the loop
  for (size_t i = 0; i < carried; ++i) {
    const ValueId result = graph.result(n, i);
    const UsersView users = frame.editor.users();
    const bool is_read = !users.of(result).empty() || users.is_output(result);
    if (!unchanged[i] || is_read) seconds += copy(graph.type(result));
  }
  Frame& body = *regions.back();
  const double round =
      HONE_TRY(total(body)) + changes(body.editor, unchanged, operands.first(carried));
  if (!has_slices) {
    const double test = HONE_TRY(total(*regions[0]));
    return seconds + test + kAssumedTrips * (round + test);
  }
  const Dim trips = operands.size() > carried ? graph.type(operands[carried]).dim(0)
                                              : graph.op(n).dims("length")[0];
  return seconds + static_cast<double>(std::max<int64_t>(trips.range().high, 0)) * round;
}

// Copies of what a round leaves to where the next one reads it, but for what changes in place.
double PlanCost::changes(const FrameEditor& body, const std::vector<bool>& unchanged,
                         std::span<const ValueId> state) const {
  const PlannedGraph& planned = body.planned();
  const GraphView graph = planned.view();
  std::map<ValueId, size_t> output_of;  // where it lies, by its place among those that are written
  size_t outputs = 0;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (i >= unchanged.size() || !unchanged[i])
      output_of.try_emplace(planned.base[graph.outputs()[i].index], outputs++);
  std::map<ValueId, size_t> output_in;  // by input
  for (const Step& step : planned.steps) {
    if (step.in_place && planned.home[step.reads[0].index] == Home::input)
      output_in[step.reads[0]] = output_of.at(step.writes[0]);
    for (const Donor& donor : step.donors) output_in[donor.input] = output_of.at(donor.output);
  }
  double seconds = 0;
  size_t output = 0;
  for (size_t i = 0; i < state.size(); ++i) {
    if (unchanged[i]) continue;
    const auto in_place = output_in.find(graph.inputs()[i]);
    const bool stays = in_place != output_in.end() && in_place->second == output;
    ++output;
    if (!stays) seconds += copy(graph.type(graph.inputs()[i])) - cost_.command();
  }
  return seconds;
}

}  // namespace hone
