#include "cost/system_timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "cost/program_price.h"
#include "cost/task_seconds.h"
#include "ir/loop_state.h"
#include "ir/op_facts.h"
#include "plan/collectives.h"
#include "plan/edit.h"
#include "plan/planned.h"
#include "plan/planned_kernels.h"
#include "program/device_memory.h"
#include "program/lower/lower.h"
#include "program/tasks.h"
#include "timeline/collective_rates.h"
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

// The groups that exchange something at once, which do the same.
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
  explicit BestSchedules(const System& system) : system_(system), rates_(system) {}

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
    Result<CollectivePrice> best = rates_.best(exchange.groups, exchange.element_bytes);
    if (!best.ok() && best.error().code() != ErrorCode::limit)
      return Error(best.error()).about(graph.describe(n));
    Asked one = {exchange.groups, exchange.element_bytes, std::nullopt};
    if (best.ok()) one.best = best->schedule;
    asked_.push_back(std::move(one));
    return asked_.back().best;
  }

  const System& system_;
  CollectiveRates rates_;
  std::vector<Asked> asked_;
};

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
  Devices(const System& system, std::span<const TargetPlan> plans, bool merge)
      : system_(system),
        plans_(plans),
        merge_(merge),
        devices_(static_cast<size_t>(system.device_count())),
        jobs_(devices_),
        rates_(shared_rates(system)) {}

  Result<SystemTimeline> timed() {
    for (size_t i = 0; i < plans_.size(); ++i)
      targets_.push_back(HONE_TRY(tasks_for(plans_[i], system_.targets[i])));
    const Graph& graph = *plans_.front().graph;
    const Plan& plan = *plans_.front().plan;
    for (const NodeId n : graph.nodes())
      if (!graph.regions(n).empty())
        within_[step_name(graph, n)] = HONE_TRY(seconds_within(graph, n, plan, 1));
    for (size_t i = 0; i < plans_.size(); ++i) add_tasks(i);
    const auto first_step = static_cast<uint32_t>(jobs_.program().jobs.size());
    for (const NodeId n : graph.nodes())
      if (const auto kind = kind_of(graph, n); kind && exchanges_data(graph.op(n)))
        HONE_TRY(add(HONE_TRY(scheduled(graph, n, *kind, plan))));
    ClassJobs classes = HONE_TRY(class_jobs(jobs_.program(), system_, merge_, kMostTimedJobs));
    Timeline timeline = HONE_TRY(Timeline::open(classes.jobs));
    std::vector<int64_t> memory = HONE_TRY(memory_of(classes.classes));
    return SystemTimeline{Topology(system_),   std::move(jobs_), std::move(classes),
                          std::move(timeline), first_step,       std::move(exchanges_),
                          std::move(memory)};
  }

 private:
  // Each device of a target runs its tasks on one queue, which takes the ready one that stands
  // first. An exchange is a join, which its steps let wait.
  void add_tasks(size_t target) {
    std::vector<bool> set(devices_);
    for (size_t d = 0; d < devices_; ++d)
      set[d] = system_.device(static_cast<int64_t>(d)).target == target;
    const uint32_t doers = jobs_.set(std::move(set));
    const TargetTasks& tasks = targets_[target];
    std::vector<uint32_t>& made = tasks_.emplace_back();
    for (size_t i = 0; i < tasks.list.tasks.size(); ++i) {
      const Task& task = tasks.list.tasks[i];
      std::vector<uint32_t> after;
      for (const uint32_t before : task.after) after.push_back(made[before]);
      jobs_.name(task.name);
      const auto within = within_.find(task.name);
      const bool runs_lists = task.rounds || !task.lists.empty();
      const double more = within == within_.end() || !runs_lists ? 0 : within->second;
      made.push_back(tasks.seconds[i]
                         ? jobs_.compute(doers, {*tasks.seconds[i] + more}, std::move(after))
                         : jobs_.join(doers, std::move(after)));
    }
  }

  // With the schedule that the plan says, and its time alone.
  Result<Exchange> scheduled(const Graph& graph, NodeId n, CollectiveKind kind, const Plan& plan) {
    Exchange made = HONE_TRY(exchange_of(graph, n, kind, system_));
    const auto said = plan.collective.find(made.timed.name);
    if (said == plan.collective.end())
      return bad_input("the plan has no schedule of {}", graph.describe(n));
    made.timed.schedule = {said->second, HONE_TRY(alone(made, grouped(made.groups), said->second))};
    return made;
  }

  // The seconds of all exchanges in the regions of a node that runs so often.
  Result<double> seconds_within(const Graph& graph, NodeId n, const Plan& plan, int64_t times) {
    static const Plan kNone;
    const int64_t trips = is_loop(graph.opcode(n)) ? loop_trips(graph, n).value() : 1;
    double sum = 0, most = 0;
    for (const RegionRef& region : regions_of(graph)) {
      if (region.node != n) continue;
      const auto said = plan.region.find(region.key);
      const Plan& inner = said == plan.region.end() ? kNone : said->second;
      double seconds = 0;
      for (const NodeId m : region.graph->nodes()) {
        if (!region.graph->regions(m).empty())
          seconds += HONE_TRY(seconds_within(*region.graph, m, inner, times * trips));
        const auto kind = kind_of(*region.graph, m);
        if (!kind || !exchanges_data(region.graph->op(m))) continue;
        TimedExchange one = HONE_TRY(scheduled(*region.graph, m, *kind, inner)).timed;
        seconds += one.schedule.seconds;
        one.times = times * trips;
        exchanges_.push_back(std::move(one));
      }
      sum += seconds;
      most = std::max(most, seconds);
    }
    return static_cast<double>(trips) * (is_branch(graph.opcode(n)) ? most : sum);
  }

  // The seconds of an exchange if nothing else happens. Gradients of layers are alike.
  Result<double> alone(const Exchange& exchange, const GroupedCollective& groups,
                       const CollectiveSchedule& schedule) {
    const auto is_same = [&](const Alone& one) {
      return one.schedule == schedule && one.element_bytes == exchange.element_bytes &&
             one.collective.kind == groups.collective.kind &&
             one.collective.elements == groups.collective.elements &&
             one.collective.pairs == groups.collective.pairs && one.groups == groups.groups;
    };
    for (const Alone& one : alone_)
      if (is_same(one)) return one.seconds;
    const double seconds =
        HONE_TRY(seconds_alone(system_, groups, schedule, exchange.element_bytes, kMostTimedJobs));
    alone_.push_back({schedule, exchange.element_bytes, groups.collective, groups.groups, seconds});
    return seconds;
  }

  Status add(const Exchange& exchange) {
    std::vector<uint32_t> joins, begin;
    for (size_t target = 0; target < targets_.size(); ++target) {
      const TargetTasks& tasks = targets_[target];
      const auto task = tasks.exchanges.find(exchange.timed.name);
      if (task == tasks.exchanges.end())
        return bad_input("the plan of another target has no '{}'", exchange.timed.name);
      joins.push_back(tasks_[target][task->second]);
      for (const uint32_t before : tasks.list.tasks[task->second].after)
        begin.push_back(tasks_[target][before]);
    }
    jobs_.name(fmt::format("{} {}", name(exchange.timed.kind), exchange.timed.name));
    const std::vector<uint32_t> ends =
        HONE_TRY(add_steps(jobs_, grouped(exchange.groups), exchange.timed.schedule.schedule,
                           exchange.element_bytes, rates_, begin));
    for (const uint32_t join : joins)
      jobs_.job(join).after.insert(jobs_.job(join).after.end(), ends.begin(), ends.end());
    exchanges_.push_back(exchange.timed);
    return {};
  }

  // The bytes that each class of devices needs, by the program of its target.
  Result<std::vector<int64_t>> memory_of(const Classes& classes) const {
    std::vector<int64_t> of_targets;
    for (const TargetPlan& plan : plans_) {
      if (plan.program == nullptr) return std::vector<int64_t>();
      of_targets.push_back(
          HONE_TRY(device_memory(*plan.program, static_cast<int32_t>(devices_))).total());
    }
    std::vector<int64_t> memory(classes.devices);
    for (size_t d = 0; d < devices_; ++d)
      memory[classes.of_device[d]] = of_targets[system_.device(static_cast<int64_t>(d)).target];
    return memory;
  }

  struct Alone {
    CollectiveSchedule schedule;
    int64_t element_bytes = 1;
    Collective collective;
    std::vector<std::vector<int32_t>> groups;
    double seconds = 0;
  };

  const System& system_;
  const std::span<const TargetPlan> plans_;
  const bool merge_;
  const size_t devices_;
  std::vector<TargetTasks> targets_;
  SharedJobs jobs_;
  std::vector<std::vector<uint32_t>> tasks_;  // by target: the job with which each one ends
  const SharedRates rates_;
  std::map<std::string, double> within_;  // seconds of exchanges in regions, by the node's name
  std::vector<TimedExchange> exchanges_;
  std::vector<Alone> alone_;
};

}  // namespace

std::string SystemTimeline::devices_name(uint32_t of_class) const {
  constexpr int kMostRanges = 3;
  const std::vector<uint32_t>& classes_of = classes.classes.of_device;
  std::string name;
  int ranges = 0;
  for (size_t d = 0; d < classes_of.size(); ++d) {
    if (classes_of[d] != of_class) continue;
    if (ranges++ == kMostRanges) return name + ", ...";
    const size_t begin = d;
    while (d + 1 < classes_of.size() && classes_of[d + 1] == of_class) ++d;
    name += name.empty() ? "" : ", ";
    name += begin == d ? std::to_string(d) : fmt::format("{}-{}", begin, d);
  }
  return name;
}

std::string SystemTimeline::link_name(uint32_t of_class) const {
  const std::vector<uint32_t>& classes_of = classes.classes.of_link;
  const auto first = std::ranges::find(classes_of, of_class);
  const auto count = std::ranges::count(classes_of, of_class);
  std::string name = topology.link_name(static_cast<uint32_t>(first - classes_of.begin()));
  return count == 1 ? name : fmt::format("{} and {} alike", name, count - 1);
}

bool has_exchanges(const Graph& graph) {
  for (const NodeId n : graph.nodes()) {
    if (kind_of(graph, n)) return true;
    for (const GraphRef& region : graph.regions(n))
      if (has_exchanges(*region)) return true;
  }
  return false;
}

Result<SystemTimeline> system_timeline(const System& system, std::span<const TargetPlan> plans,
                                       bool merge) {
  HONE_CHECK(plans.size() == system.targets.size(), "{} plans, {} targets", plans.size(),
             system.targets.size());
  return Devices(system, plans, merge).timed();
}

Status add_best_schedules(const Graph& graph, const System& system, Plan& plan) {
  return BestSchedules(system).add(graph, plan);
}

}  // namespace hone
