#include "cost/system_timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "cost/program_price.h"
#include "cost/task_seconds.h"
#include "ir/op_def.h"
#include "plan/collectives.h"
#include "plan/edit.h"
#include "plan/planned_kernels.h"
#include "program/lower/lower.h"
#include "program/tasks.h"
#include "timeline/step_jobs.h"
#include "timeline/task_jobs.h"

namespace hone {
namespace {

// ---- Collectives of a graph --------------------------------------------------------------------

// None of an op that no messages are sent for.
std::optional<CollectiveKind> kind_of(const Graph& graph, NodeId n) {
  if (class_of(graph.opcode(n)) != OpClass::collective) return std::nullopt;
  for (int i = 0; i < kCollectiveKinds; ++i)
    if (const auto kind = static_cast<CollectiveKind>(i); name(kind) == name(graph.opcode(n)))
      return kind;
  return std::nullopt;
}

Status check_ids(const Graph& graph, NodeId n, const Ints& ids, int64_t devices) {
  for (const int64_t id : ids)
    if (id >= devices)
      return bad_input("{} names device {}, and the system has {}", graph.describe(n), id, devices);
  return {};
}

// The groups that exchange something at once.
Result<std::vector<Collective>> groups_of(const Graph& graph, NodeId n, CollectiveKind kind,
                                          int64_t elements, int64_t devices) {
  std::vector<int32_t> all(static_cast<size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  const int64_t size = graph.op(n).integer("group_size");
  std::vector<std::pair<int32_t, int32_t>> members;
  if (kind == CollectiveKind::permute) {
    const Ints& pairs = graph.op(n).ints("pairs");
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
      members.emplace_back(static_cast<int32_t>(pairs[i]), static_cast<int32_t>(pairs[i + 1]));
  }
  if (size == 0) {
    const Ints& pairs = graph.op(n).ints("pairs");
    HONE_TRY(check_ids(graph, n, pairs, devices));
    Collective one = {.kind = kind, .devices = std::move(all), .elements = elements};
    one.pairs = std::move(members);
    return std::vector{std::move(one)};
  }
  const Ints& named = graph.op(n).ints("groups");
  HONE_TRY(check_ids(graph, n, named, devices));
  if (!named.empty() && std::ssize(named) != devices)
    return bad_input("{} has groups of {} devices, and the system has {}", graph.describe(n),
                     named.size(), devices);
  if (devices % size != 0)
    return bad_input("{} has groups of {}, which do not divide the {} devices of the system",
                     graph.describe(n), size, devices);
  if (!named.empty()) std::ranges::copy(named, all.begin());
  std::vector<Collective> groups;
  for (auto at = all.begin(); at != all.end(); at += size)
    groups.push_back(
        {.kind = kind, .devices = {at, at + size}, .elements = elements, .pairs = members});
  return groups;
}

struct Exchange {
  TimedExchange timed;
  std::vector<Collective> groups;
  int64_t element_bytes = 1;
};

Result<Exchange> exchange_of(const Graph& graph, NodeId n, CollectiveKind kind,
                             const System& system) {
  const Type operand = graph.type(graph.operands(n)[0]), result = graph.type(graph.result(n));
  int64_t elements = std::max(operand.static_elements(), result.static_elements());
  Exchange made;
  made.element_bytes = std::max(1, bits(operand.dtype()) / 8);
  if (bits(operand.dtype()) < 8) elements = (elements * bits(operand.dtype()) + 7) / 8;
  made.groups = HONE_TRY(groups_of(graph, n, kind, elements, system.device_count()));
  made.timed = {.name = std::string(graph.name(graph.result(n))),
                .kind = kind,
                .groups = made.groups.size(),
                .members = made.groups.front().devices.size(),
                .bytes = elements * made.element_bytes,
                .schedule = {}};
  return made;
}

// Equal exchanges are priced once: gradients of layers are alike.
class BestSchedules {
 public:
  explicit BestSchedules(const System& system) : system_(system) {}

  Status add(const Graph& graph, Plan& plan) {
    for (const NodeId n : graph.nodes()) {
      const auto kind = kind_of(graph, n);
      if (!kind || !exchanges_data(graph.op(n)) || !has_size(graph, n)) continue;
      if (plan.collective.contains(step_name(graph, n))) continue;
      const Exchange exchange = HONE_TRY(exchange_of(graph, n, *kind, system_));
      const std::optional<CollectiveSchedule> best = HONE_TRY(best_of(graph, n, exchange));
      if (best) plan.collective[step_name(graph, n)] = *best;
    }
    for (const RegionRef& region : regions_of(graph)) {
      const auto said = plan.region.find(region.key);
      Plan inner = said == plan.region.end() ? Plan() : said->second;
      HONE_TRY(add(*region.graph, inner));
      if (inner != Plan()) plan.region[region.key] = std::move(inner);
    }
    return {};
  }

 private:
  struct Asked {
    std::vector<Collective> groups;
    int64_t element_bytes = 1;
    std::optional<CollectiveSchedule> best;
  };

  static bool is_same(const Collective& a, const Collective& b) {
    return a.kind == b.kind && a.devices == b.devices && a.elements == b.elements &&
           a.pairs == b.pairs;
  }

  static bool has_size(const Graph& graph, NodeId n) {
    return graph.type(graph.operands(n)[0]).is_static() && graph.type(graph.result(n)).is_static();
  }

  Result<std::optional<CollectiveSchedule>> best_of(const Graph& graph, NodeId n,
                                                    const Exchange& exchange) {
    for (const Asked& one : asked_)
      if (one.element_bytes == exchange.element_bytes &&
          std::ranges::equal(one.groups, exchange.groups, is_same))
        return one.best;
    Result<CollectivePrice> best = best_schedule(exchange.groups, exchange.element_bytes, system_);
    if (!best.ok() && best.error().code() != ErrorCode::limit)
      return Error(best.error()).about(graph.describe(n));
    Asked one = {exchange.groups, exchange.element_bytes, std::nullopt};
    if (best.ok()) one.best = best->schedule;
    asked_.push_back(std::move(one));
    return asked_.back().best;
  }

  const System& system_;
  std::vector<Asked> asked_;
};

bool has_exchanges_in_regions(const Graph& graph) {
  for (const NodeId n : graph.nodes())
    for (const GraphRef& region : graph.regions(n))
      if (has_exchanges(*region)) return true;
  return false;
}

// ---- Jobs of all devices -----------------------------------------------------------------------

// The tasks of the devices of one target.
struct TargetTasks {
  TaskList list;
  std::vector<std::optional<double>> seconds;
  std::map<std::string, size_t> exchanges;  // tasks, by the names of their results
};

// planned_kernels() leaves out names that several regions use; the program has all kernels.
Status add_hidden_launches(const TargetPlan& plan, const Target& target, const Tasks& tasks,
                           std::unordered_map<uint64_t, double>& launches) {
  const auto is_known = [&](const Task& task) {
    return std::ranges::all_of(task.kernels,
                               [&](uint64_t kernel) { return launches.contains(kernel); });
  };
  const bool are_all_known = std::ranges::all_of(
      tasks.lists, [&](const TaskList& list) { return std::ranges::all_of(list.tasks, is_known); });
  if (are_all_known) return {};
  const Program program = HONE_TRY(lower(*plan.graph, *plan.plan, target));
  const ProgramPrice priced = HONE_TRY(price(program, *plan.cost));
  for (size_t k = 0; k < program.kernels.size(); ++k)
    launches.emplace(task_kernel(program.kernels[k]), priced.kernel[k]);
  return {};
}

Result<TargetTasks> tasks_for(const TargetPlan& plan, const Target& target) {
  const Graph& graph = *plan.graph;
  if (has_exchanges_in_regions(graph))
    return unsupported("a collective stands in a region of @{}", graph.name())
        .with_hint("explain the graph without the loop or the branch around it");
  if (!graph.is_static()) return bad_input("sizes are open, and what kernels cost depends on them");
  std::unordered_map<uint64_t, double> launches;
  for (const auto& [step, kernel] : HONE_TRY(planned_kernels(graph, *plan.plan)))
    if (!launches.contains(kernel.hash))
      launches[kernel.hash] =
          plan.cost->launch(kernel.body, *kernel.schedule, plan.plan->threads.value_or(1));
  const auto editor = HONE_TRY(PlanEditor::open(graph, *plan.plan, target));
  Tasks tasks = plan.program != nullptr ? tasks_of(*plan.program) : tasks_of(*editor);
  HONE_TRY(add_hidden_launches(plan, target, tasks, launches));
  const std::vector<TaskSeconds> seconds = HONE_TRY(task_seconds(tasks, launches, *plan.cost));
  TargetTasks made = {.list = std::move(tasks.lists.back()), .seconds = {}, .exchanges = {}};
  std::set<std::string_view> names;  // of steps: those of commands are the names of values
  for (const NodeId n : graph.nodes())
    if (kind_of(graph, n)) names.insert(graph.name(graph.result(n)));
  for (size_t i = 0; i < made.list.tasks.size(); ++i) {
    const Task& task = made.list.tasks[i];
    const bool exchanges = task.resource == Resource::links && names.contains(task.name) &&
                           made.exchanges.emplace(task.name, i).second;
    made.seconds.push_back(exchanges ? std::nullopt : std::optional(seconds[i].total()));
  }
  return made;
}

class Devices {
 public:
  Devices(const System& system, std::span<const TargetPlan> plans)
      : system_(system), plans_(plans), jobs_(system) {}

  Result<SystemTimeline> timed() {
    for (size_t i = 0; i < plans_.size(); ++i)
      targets_.push_back(HONE_TRY(tasks_for(plans_[i], system_.targets[i])));
    HONE_TRY(add_devices());
    const auto first_step = static_cast<uint32_t>(jobs_.jobs().jobs.size());
    std::vector<TimedExchange> exchanges;
    const Graph& graph = *plans_.front().graph;
    for (const NodeId n : graph.nodes())
      if (const auto kind = kind_of(graph, n); kind && exchanges_data(graph.op(n))) {
        Exchange exchange = HONE_TRY(exchange_of(graph, n, *kind, system_));
        const auto said = plans_.front().plan->collective.find(exchange.timed.name);
        if (said == plans_.front().plan->collective.end())
          return bad_input("the plan has no schedule of {}", graph.describe(n));
        exchange.timed.schedule = {
            said->second, HONE_TRY(collective_seconds(exchange.groups, said->second,
                                                      exchange.element_bytes, system_))};
        HONE_TRY(add(exchange));
        exchanges.push_back(exchange.timed);
      }
    Timeline timeline = HONE_TRY(Timeline::open(jobs_.jobs()));
    std::vector<HeldMemory> memory = HONE_TRY(held(timeline));
    return SystemTimeline{std::move(jobs_), std::move(timeline), first_step, std::move(exchanges),
                          std::move(memory)};
  }

 private:
  size_t target_of(int64_t device) const { return system_.device(device).target; }

  Status add_devices() {
    size_t count = 0;
    for (int64_t d = 0; d < system_.device_count(); ++d) {
      const TargetTasks& tasks = targets_[target_of(d)];
      rates_.push_back(step_rates(system_.targets[target_of(d)]));
      count += tasks.list.tasks.size();
      if (count > kMostTimedJobs)
        return over_limit("{} devices with {} tasks each are more than {} jobs",
                          system_.device_count(), tasks.list.tasks.size(), kMostTimedJobs);
      devices_.push_back(add_tasks(jobs_, d, tasks.list, tasks.seconds));
    }
    return {};
  }

  Status add(const Exchange& exchange) {
    std::vector<DeviceProgram> programs;
    for (const Collective& group : exchange.groups)
      for (DeviceProgram& one : HONE_TRY(step_programs(group, exchange.timed.schedule.schedule)))
        programs.push_back(std::move(one));
    std::vector<uint32_t> joins;
    std::vector<std::vector<uint32_t>> begins;
    for (const DeviceProgram& program : programs) {
      const TargetTasks& tasks = targets_[target_of(program.device)];
      const auto task = tasks.exchanges.find(exchange.timed.name);
      if (task == tasks.exchanges.end())
        return bad_input("the plan of another target has no '{}'", exchange.timed.name);
      const std::vector<uint32_t>& jobs = devices_[static_cast<size_t>(program.device)].tasks;
      joins.push_back(jobs[task->second]);
      std::vector<uint32_t>& begin = begins.emplace_back();
      for (const uint32_t before : tasks.list.tasks[task->second].after)
        begin.push_back(jobs[before]);
    }
    jobs_.name(fmt::format("{} {}", name(exchange.timed.kind), exchange.timed.name));
    const std::vector<uint32_t> ends = HONE_TRY(add_steps(
        jobs_, programs, {.element_bytes = exchange.element_bytes, .rates = rates_}, begins));
    for (size_t i = 0; i < ends.size(); ++i) jobs_.wait(joins[i], ends[i]);
    return {};
  }

  Result<std::vector<HeldMemory>> held(const Timeline& timeline) const {
    std::vector<HeldBuffer> buffers;
    for (uint32_t d = 0; d < devices_.size(); ++d) {
      const Program* program = plans_[target_of(d)].program;
      if (program == nullptr) return std::vector<HeldMemory>();
      for (HeldBuffer& buffer : HONE_TRY(held_buffers(*program, d, devices_[d].tasks)))
        buffers.push_back(std::move(buffer));
    }
    return held_memory(timeline, buffers, static_cast<uint32_t>(devices_.size()));
  }

  const System& system_;
  const std::span<const TargetPlan> plans_;
  std::vector<TargetTasks> targets_;
  SystemJobs jobs_;
  std::vector<TaskJobs> devices_;
  std::vector<StepRates> rates_;
};

}  // namespace

bool has_exchanges(const Graph& graph) {
  for (const NodeId n : graph.nodes())
    if (kind_of(graph, n)) return true;
  return has_exchanges_in_regions(graph);
}

Result<SystemTimeline> system_timeline(const System& system, std::span<const TargetPlan> plans) {
  HONE_CHECK(plans.size() == system.targets.size(), "{} plans, {} targets", plans.size(),
             system.targets.size());
  return Devices(system, plans).timed();
}

Status add_best_schedules(const Graph& graph, const System& system, Plan& plan) {
  return BestSchedules(system).add(graph, plan);
}

}  // namespace hone
