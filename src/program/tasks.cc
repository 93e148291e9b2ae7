#include "program/tasks.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/loop_state.h"
#include "plan/collectives.h"
#include "program/frame.h"
#include "program/tiles/calling.h"

namespace hone {

namespace {

// A copy reads and writes.
void add_copies(Task& task) {
  for (Dim bytes : task.copies) task.moved += 2 * bytes;
}

}  // namespace

// ---- Of a plan ----------------------------------------------------------------------------------

namespace {

Dim task_bytes(const FrameEditor& frame, ValueId v) { return bytes_of(frame.view().type(v)); }

// Copies of what a round leaves to where the next one reads it, but for what changes in place.
std::vector<Dim> copies_of_round(const FrameEditor& body, const std::vector<bool>& unchanged) {
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
  std::vector<Dim> copies;
  size_t output = 0;
  for (size_t i = 0; i < unchanged.size(); ++i) {
    if (unchanged[i]) continue;
    const auto in_place = output_in.find(graph.inputs()[i]);
    const bool stays = in_place != output_in.end() && in_place->second == output;
    ++output;
    if (!stays) copies.push_back(task_bytes(body, graph.inputs()[i]));
  }
  return copies;
}

// A loop stands in a frame of its own, which begins with copies of its first state.
void make_loop_task(const FrameEditor& frame, NodeId n, std::span<const RegionTasks> regions,
                    Task& task) {
  const GraphView graph = frame.view();
  std::vector<bool> unchanged = unchanged_state(graph.graph(), n);
  const bool is_scan = graph.opcode(n) == Opcode::scan;
  const std::span<const ValueId> operands = graph.operands(n);
  const size_t carried =
      is_scan ? static_cast<size_t>(graph.op(n).integer("carried")) : operands.size();
  unchanged.resize(carried);
  for (size_t i = 0; i < carried; ++i) {
    const ValueId result = graph.result(n, i);
    const bool is_read = !frame.users().of(result).empty() || frame.users().is_output(result);
    if (!unchanged[i] || is_read) task.copies.push_back(task_bytes(frame, result));
  }
  task.commands = 2 + static_cast<int64_t>(task.copies.size());
  Rounds& rounds = task.rounds.emplace();
  rounds.lists = {regions.back().list};
  rounds.copies = copies_of_round(*regions.back().frame, unchanged);
  rounds.trips = loop_trips(graph.graph(), n);
  if (!is_scan) {
    rounds.lists.push_back(regions[0].list);
    task.lists = {regions[0].list};
  }
}

}  // namespace

Task task_of(const FrameEditor& frame, uint32_t s, std::span<const RegionTasks> regions) {
  const Step& step = frame.planned().steps[s];
  const GraphView graph = frame.view();
  const NodeId n = step.nodes[0];
  Task task{.name = step.name.empty() ? step_name(graph, n) : step.name};
  if (step.is_kernel) {
    task.resource = Resource::cores;
    task.kernels = {frame.kernel(s).hash};
  } else if (exchanges_data(graph.op(n))) {
    task.resource = Resource::links;
    task.moved = task_bytes(frame, graph.operands(n)[0]) + task_bytes(frame, graph.result(n));
  } else if (graph.regions(n).empty() && graph.operands(n).empty()) {
    return task;  // the number of the device
  } else if (graph.regions(n).empty()) {
    // A collective of one device. The kernel of a permute of device 0 with itself counts as a copy.
    task.resource = Resource::memory;
    task.copies = {task_bytes(frame, graph.result(n))};
  } else if (regions.empty()) {
    return task;
  } else if (graph.opcode(n) == Opcode::while_ || graph.opcode(n) == Opcode::scan) {
    make_loop_task(frame, n, regions, task);
  } else {
    for (const RegionTasks& region : regions) task.lists.push_back(region.list);
    task.is_branch = graph.opcode(n) == Opcode::if_;
  }
  return task;
}

std::vector<PortTask> input_tasks(const FrameEditor& frame) {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  std::map<uint32_t, PortTask> by_step;
  for (const Donation& donation : graph.donations()) {
    const ValueId input = graph.inputs()[donation.input];
    for (NodeId n : frame.users().of(input)) {
      const uint32_t s = planned.step_of[n.index];
      if (s == kNoStep || !planned.steps[s].in_place || planned.steps[s].reads[0] != input)
        continue;
      // Whoever runs the frame decides whether there is a copy; most who donate do so to have none.
      const std::string name(graph.name(planned.steps[s].writes[0]));
      by_step.emplace(s, PortTask{{.name = name}, input});
    }
  }
  std::vector<PortTask> tasks;
  for (auto& [step, port] : by_step) tasks.push_back(std::move(port));
  return tasks;
}

std::vector<PortTask> output_tasks(const FrameEditor& frame, const std::vector<bool>& left_out) {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  std::vector<PortTask> tasks;
  std::unordered_set<uint32_t> written;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (i < left_out.size() && left_out[i]) continue;
    const ValueId v = graph.outputs()[i], base = planned.base[v.index];
    const bool is_written = planned.home[base.index] == Home::output;
    if (is_written && written.insert(base.index).second) continue;
    tasks.push_back({{.name = fmt::format("{}.output", graph.name(v)),
                      .resource = Resource::memory,
                      .copies = {task_bytes(frame, v)}},
                     v});
  }
  return tasks;
}

namespace {

// Each behind those that it needs.
std::vector<uint32_t> order_of(const PlannedGraph& planned) {
  if (planned.order.size() == planned.steps.size()) return planned.order;
  std::vector<uint32_t> order, open;
  std::vector<bool> is_open(planned.steps.size()), is_done(planned.steps.size());
  for (uint32_t first = 0; first < planned.steps.size(); ++first) {
    for (open = {first}; !open.empty();) {
      const uint32_t s = open.back();
      if (!is_open[s]) {
        is_open[s] = true;
        for (uint32_t needed : planned.needs(s))
          if (!is_open[needed]) open.push_back(needed);
        continue;
      }
      open.pop_back();
      if (!is_done[s]) order.push_back(s);
      is_done[s] = true;
    }
  }
  return order;
}

class PlanTasks {
 public:
  size_t add(const FrameEditor& frame, std::string name, const std::vector<bool>& left_out) {
    std::map<NodeId, std::vector<RegionTasks>> regions;
    const Graph& graph = frame.view().graph();
    for (const RegionRef& region : regions_of(graph)) {
      const auto inner = frame.regions().find(region.key);
      if (inner == frame.regions().end()) continue;
      const bool is_body = region.index + 1 == graph.regions(region.node).size();
      const size_t list = add(*inner->second, region.key,
                              is_body ? unchanged_state(graph, region.node) : std::vector<bool>());
      regions[region.node].push_back({inner->second.get(), list});
    }
    tasks_.lists.push_back({std::move(name), list_of(frame, regions, left_out)});
    return tasks_.lists.size() - 1;
  }
  Tasks take() && { return std::move(tasks_); }

 private:
  static std::vector<Task> list_of(const FrameEditor& frame,
                                   const std::map<NodeId, std::vector<RegionTasks>>& regions,
                                   const std::vector<bool>& left_out) {
    const PlannedGraph& planned = frame.planned();
    std::vector<Task> tasks;
    std::map<ValueId, uint32_t> input_task;
    for (PortTask& port : input_tasks(frame)) {
      input_task.emplace(port.value, static_cast<uint32_t>(tasks.size()));
      tasks.push_back(std::move(port.task));
    }
    const std::vector<uint32_t> order = order_of(planned);
    std::vector<uint32_t> task_at(planned.steps.size());
    for (uint32_t s : order) {
      task_at[s] = static_cast<uint32_t>(tasks.size());
      const auto own = regions.find(planned.steps[s].nodes[0]);
      Task& task = tasks.emplace_back(
          task_of(frame, s,
                  own == regions.end() ? std::span<const RegionTasks>() : std::span(own->second)));
      if (planned.steps[s].is_kernel)
        for (const std::vector<ValueId>* operands :
             {&planned.steps[s].reads, &planned.steps[s].writes})
          for (ValueId v : *operands) task.moved += task_bytes(frame, v);
      add_copies(task);
    }
    const auto has_elements = [&](ValueId v) {
      const Type type = planned.view().type(v);
      return !type.is_static() || type.static_elements() > 0;
    };
    const auto wait = [&](Task& task, const std::vector<uint32_t>& steps) {
      for (uint32_t s : steps) task.after.push_back(task_at[s]);
      std::ranges::sort(task.after);
      task.after.erase(std::ranges::unique(task.after).begin(), task.after.end());
    };
    for (uint32_t s : order) {
      const Step& step = planned.steps[s];
      Task& task = tasks[task_at[s]];
      if (step.in_place)
        if (const auto first = input_task.find(step.reads[0]); first != input_task.end())
          task.after.push_back(first->second);
      // Nothing waits for a value without elements.
      std::vector<ValueId> read;
      std::ranges::copy_if(step.reads, std::back_inserter(read), has_elements);
      wait(task, planned.writers_of(read));
      wait(task, step.after);
    }
    for (PortTask& port : output_tasks(frame, left_out)) {
      if (has_elements(port.value)) wait(port.task, planned.writers_of({&port.value, 1}));
      add_copies(port.task);
      tasks.push_back(std::move(port.task));
    }
    return tasks;
  }

  Tasks tasks_;
};

}  // namespace

Tasks tasks_of(const PlanEditor& plan) {
  PlanTasks tasks;
  tasks.add(plan.main(), std::string(plan.main().view().graph().name()), {});
  return std::move(tasks).take();
}

// ---- Of a program -------------------------------------------------------------------------------

namespace program {
namespace {

class ProgramTasks {
 public:
  explicit ProgramTasks(const Program& program) {
    for (const Kernel& kernel : program.kernels)
      kernels_.emplace_back(task_kernel(kernel), moved_by(kernel));
    for (const FrameRef& frame : all_frames(program.main)) {
      if (frame != program.main && is_of_loop(*frame)) continue;
      list_of_.emplace(frame.get(), tasks_.lists.size());
      TaskList& list = tasks_.lists.emplace_back(TaskList{frame->name, {}});
      for (const Command& command : frame->commands) {
        Task& task = list.tasks.emplace_back(Task{.name = command.name, .after = command.after});
        std::visit([&](const auto& kind) { add(*frame, kind, task); }, command.kind);
        add_copies(task);
      }
    }
  }
  Tasks take() && { return std::move(tasks_); }

 private:
  // A loop stands in a frame of its own: it and what prepares it are a task of who runs the frame.
  static bool is_of_loop(const Frame& frame) {
    return std::ranges::any_of(frame.commands, [](const Command& command) {
      return std::holds_alternative<Loop>(command.kind) ||
             std::holds_alternative<Scan>(command.kind);
    });
  }

  static Dim moved_by(const Kernel& kernel) {
    Dim bytes = 0;
    if (kernel.body != nullptr) {
      const Graph& graph = kernel.body->graph;
      for (ValueId v : graph.inputs()) bytes += bytes_of(graph.type(v));
      for (ValueId v : graph.outputs()) bytes += bytes_of(graph.type(v));
      return bytes;
    }
    for (const TileBuffer& buffer : kernel.tiles.buffers)
      if (buffer.role == BufferRole::input || is_result(buffer.role))
        bytes += bytes_of(buffer.type);
    return bytes;
  }

  size_t list(const FrameRef& frame) const { return list_of_.at(frame.get()); }
  static Dim bytes(const Frame& frame, BufferId buffer) {
    return bytes_of(frame.buffers[buffer].type);
  }

  void add(const Frame& /*frame*/, const Launch& launch, Task& task) const {
    task.kernels.push_back(kernels_[launch.kernel].first);
    task.moved += kernels_[launch.kernel].second;
    if (task.commands == 1) task.resource = Resource::cores;
  }
  void add(const Frame& frame, const Copy& copy, Task& task) const {
    // Whoever runs the frame decides whether there is one; most who donate do so to have none.
    if (frame.buffers[copy.to].donor == copy.from) return;
    task.copies.push_back(bytes(frame, copy.to));
    if (task.commands == 1) task.resource = Resource::memory;
  }
  void add(const Frame& frame, const Start& start, Task& task) const {
    task.resource = Resource::links;
    task.moved += bytes(frame, start.from) + bytes(frame, start.to);
  }
  void add(const Frame& /*frame*/, const Wait& /*wait*/, Task& task) const {
    task.resource = Resource::links;
  }
  void add(const Frame& /*frame*/, const DeviceIndex& /*index*/, Task& /*task*/) const {}
  void add(const Frame& frame, const Send& send, Task& task) const {
    task.resource = Resource::links;
    task.moved += bytes(frame, send.from);
  }
  void add(const Frame& frame, const Receive& receive, Task& task) const {
    task.resource = Resource::links;
    task.moved += bytes(frame, receive.to);
  }
  void add(const Frame& /*frame*/, const Call& call, Task& task) const {
    if (!is_of_loop(*call.frame)) {
      task.lists.push_back(list(call.frame));
      return;
    }
    task.commands += static_cast<int64_t>(call.frame->commands.size());
    for (const Command& command : call.frame->commands)
      std::visit([&](const auto& kind) { add(*call.frame, kind, task); }, command.kind);
  }
  void add(const Frame& /*frame*/, const Branch& branch, Task& task) const {
    task.lists = {list(branch.on_true), list(branch.on_false)};
    task.is_branch = true;
  }
  void add(const Frame& frame, const Loop& loop, Task& task) const {
    task.lists = {list(loop.test)};
    task.rounds = Rounds{kAssumedTrips, {list(loop.body), list(loop.test)}, {}};
    add_changes(frame, changes_of(loop), task);
  }
  void add(const Frame& frame, const Scan& scan, Task& task) const {
    task.rounds = Rounds{scan.trips, {list(scan.body)}, {}};
    add_changes(frame, changes_of(scan), task);
  }
  static void add_changes(const Frame& frame, const std::vector<Change>& changes, Task& task) {
    for (const auto& [state, next] : changes)
      if (state != next) task.rounds->copies.push_back(bytes(frame, state));
  }

  std::vector<std::pair<uint64_t, Dim>> kernels_;  // and what a launch moves
  std::unordered_map<const Frame*, size_t> list_of_;
  Tasks tasks_;
};

}  // namespace
}  // namespace program

Tasks tasks_of(const Program& program) { return program::ProgramTasks(program).take(); }

uint64_t task_kernel(const program::Kernel& kernel) {
  return kernel.body == nullptr ? kernel.hash : kernel_hash(*kernel.body);
}

// ---- Of all tasks -------------------------------------------------------------------------------

namespace {

void add_in_order(const Tasks& tasks, size_t list, std::vector<bool>& seen,
                  std::vector<const Task*>& all) {
  if (seen[list]) return;
  seen[list] = true;
  for (const Task& task : tasks.lists[list].tasks) {
    all.push_back(&task);
    for (size_t inner : task.lists) add_in_order(tasks, inner, seen, all);
    if (!task.rounds) continue;
    for (size_t inner : task.rounds->lists) add_in_order(tasks, inner, seen, all);
  }
}

}  // namespace

std::vector<const Task*> in_order(const Tasks& tasks) {
  std::vector<const Task*> all;
  std::vector<bool> seen(tasks.lists.size());
  if (!seen.empty()) add_in_order(tasks, seen.size() - 1, seen, all);
  return all;
}

std::map<std::string_view, const Task*> launches_by_name(const Tasks& tasks) {
  std::map<std::string_view, const Task*> named;
  for (const TaskList& list : tasks.lists)
    for (const Task& task : list.tasks) {
      if (task.kernels.empty()) continue;
      if (const auto [at, is_new] = named.try_emplace(task.name, &task); !is_new)
        at->second = nullptr;
    }
  std::erase_if(named, [](const auto& entry) { return entry.second == nullptr; });
  return named;
}

std::unordered_map<uint64_t, double> launches_of(const Tasks& tasks) {
  std::unordered_map<uint64_t, double> launches;
  std::vector<double> runs(tasks.lists.size());
  if (!runs.empty()) runs.back() = 1;
  // Lists come before those that run them.
  for (size_t i = runs.size(); i-- > 0;)
    for (const Task& task : tasks.lists[i].tasks) {
      for (uint64_t kernel : task.kernels) launches[kernel] += runs[i];
      for (size_t inner : task.lists) runs[inner] += runs[i];
      if (!task.rounds) continue;
      const auto trips = static_cast<double>(std::max<int64_t>(task.rounds->trips.range().high, 0));
      for (size_t inner : task.rounds->lists) runs[inner] += trips * runs[i];
    }
  return launches;
}

}  // namespace hone
