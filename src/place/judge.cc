#include "place/judge.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "place/sort_by.h"
#include "target/text_fields.h"

namespace hone {

std::string_view name(PlaceGoal goal) { return goal == PlaceGoal::step ? "step" : "load"; }

std::vector<uint32_t> receivers(const PlaceTensor& tensor, const DevicePlacement& placement) {
  std::vector<uint32_t> found;
  for (const uint32_t user : tensor.users)
    if (placement.device[user] != placement.device[tensor.maker])
      found.push_back(placement.device[user]);
  std::ranges::sort(found);
  const auto [first, last] = std::ranges::unique(found);
  found.erase(first, last);
  return found;
}

PlaceJudge::PlaceJudge(const PlaceProblem& problem)
    : problem_(&problem),
      devices_(place_devices(problem)),
      order_(place_order(problem)),
      empty_(problem.system),
      inputs_(problem.nodes.size()),
      outputs_(problem.nodes.size()) {
  for (uint32_t t = 0; t < problem.tensors.size(); ++t) {
    outputs_[problem.tensors[t].maker].push_back(t);
    for (const uint32_t user : problem.tensors[t].users) inputs_[user].push_back(t);
    has_memory_over_time_ |= problem.tensors[t].held > 0;
  }
  for (const PlaceNode& node : problem.nodes) has_memory_over_time_ |= node.scratch > 0;
}

// ---- Time --------------------------------------------------------------------------------------

Result<PlaceTimeline> PlaceJudge::timeline(const DevicePlacement& placement) const {
  SystemJobs jobs = empty_;
  for (uint32_t i = 0; i < problem_->nodes.size(); ++i) {
    const PlaceNode& node = problem_->nodes[i];
    const uint32_t device = placement.device[i];
    jobs.name(node.name.empty() ? fmt::format("{}", node.id) : node.name);
    jobs.compute(device, node.seconds[devices_[device].target], {},
                 placement.priority.empty() ? 0 : placement.priority[i]);
  }
  for (const PlaceTensor& tensor : problem_->tensors) {
    const uint32_t from = placement.device[tensor.maker];
    jobs.name(fmt::format("from {}", problem_->nodes[tensor.maker].id));
    for (const uint32_t user : tensor.users)
      if (placement.device[user] == from) jobs.wait(user, tensor.maker);
    for (const uint32_t to : receivers(tensor, placement)) {
      const uint32_t message = jobs.send(from, to, tensor.bytes, {tensor.maker});
      for (const uint32_t user : tensor.users)
        if (placement.device[user] == to) jobs.wait(user, message);
    }
  }
  Timeline timeline = HONE_TRY(Timeline::open(jobs.jobs()));
  std::vector<HeldBuffer> held = buffers(placement);
  std::vector<HeldMemory> memory = HONE_TRY(held_memory(timeline, held, problem_->devices()));
  return PlaceTimeline{std::move(jobs), std::move(timeline), std::move(held), std::move(memory)};
}

// ---- Memory ------------------------------------------------------------------------------------

// Their jobs are those of timeline().
std::vector<HeldBuffer> PlaceJudge::buffers(const DevicePlacement& placement) const {
  std::vector<HeldBuffer> all;
  for (uint32_t i = 0; i < problem_->nodes.size(); ++i) {
    const PlaceNode& node = problem_->nodes[i];
    const uint32_t device = placement.device[i];
    if (node.held > 0) all.push_back({device, node.held});
    if (node.scratch > 0) all.push_back({device, node.scratch, i, {i}});
  }
  auto message = static_cast<uint32_t>(problem_->nodes.size());
  for (const PlaceTensor& tensor : problem_->tensors) {
    const uint32_t from = placement.device[tensor.maker];
    HeldBuffer own = {from, tensor.held, tensor.maker, {}};
    for (const uint32_t user : tensor.users)
      if (placement.device[user] == from) own.users.push_back(user);
    for (const uint32_t to : receivers(tensor, placement)) {
      HeldBuffer copy = {to, tensor.held, message, {}};
      for (const uint32_t user : tensor.users)
        if (placement.device[user] == to) copy.users.push_back(user);
      own.users.push_back(message++);
      if (tensor.held > 0) all.push_back(std::move(copy));
    }
    if (tensor.held > 0) all.push_back(std::move(own));
  }
  return all;
}

Status PlaceJudge::check_memory(const DevicePlacement& placement,
                                const PlaceTimeline& timeline) const {
  for (uint32_t d = 0; d < devices_.size(); ++d) {
    const int64_t peak = timeline.memory[d].peak, memory = devices_[d].memory;
    if (peak <= memory) continue;
    std::vector<uint32_t> nodes;
    for (uint32_t i = 0; i < problem_->nodes.size(); ++i)
      if (placement.device[i] == d) nodes.push_back(i);
    const auto bytes = [&](uint32_t i) {
      int64_t sum = problem_->nodes[i].held + problem_->nodes[i].scratch;
      for (const uint32_t t : outputs_[i]) sum += problem_->tensors[t].held;
      return sum;
    };
    sort_by(nodes, [&](uint32_t i) { return -bytes(i); });
    std::vector<std::string> names;
    for (size_t k = 0; k < std::min<size_t>(nodes.size(), 3); ++k)
      names.push_back(
          fmt::format("{} ({})", name_of(problem_->nodes[nodes[k]]), bytes_text(bytes(nodes[k]))));
    return over_limit("device {} needs {} at {}, {} more than its {}", d, bytes_text(peak),
                      format_seconds(seconds_of(timeline.memory[d].at)), bytes_text(peak - memory),
                      bytes_text(memory))
        .with_hint(fmt::format("most is of {}", join(names, ", ")));
  }
  return {};
}

// ---- Values ------------------------------------------------------------------------------------

std::vector<double> PlaceJudge::loads(const DevicePlacement& placement) const {
  std::vector<double> loads(devices_.size());
  for (uint32_t i = 0; i < problem_->nodes.size(); ++i) {
    const uint32_t device = placement.device[i];
    loads[device] += problem_->nodes[i].seconds[devices_[device].target];
  }
  for (const PlaceTensor& tensor : problem_->tensors) {
    const std::vector<uint32_t> to = receivers(tensor, placement);
    const uint32_t from = placement.device[tensor.maker];
    if (!to.empty()) loads[from] += tensor.bytes * devices_[from].port;
    for (const uint32_t device : to) loads[device] += tensor.bytes * devices_[device].port;
  }
  return loads;
}

double PlaceJudge::value(const DevicePlacement& placement, PlaceGoal goal) const {
  if (goal == PlaceGoal::load && !has_memory_over_time_) {
    std::vector<double> held(devices_.size());
    for (uint32_t i = 0; i < problem_->nodes.size(); ++i)
      held[placement.device[i]] += static_cast<double>(problem_->nodes[i].held);
    for (size_t d = 0; d < devices_.size(); ++d)
      if (held[d] > static_cast<double>(devices_[d].memory)) return kCannotRun;
    return std::ranges::max(loads(placement));
  }
  const Result<PlaceTimeline> found = timeline(placement);
  if (!found.ok() || !check_memory(placement, *found).ok()) return kCannotRun;
  return goal == PlaceGoal::step ? found->seconds() : std::ranges::max(loads(placement));
}

std::vector<double> PlaceJudge::urgency() const {
  double port = 0;
  for (const PlaceDevice& device : devices_)
    port += device.port / static_cast<double>(devices_.size());
  std::vector<double> urgency(problem_->nodes.size());
  for (size_t k = order_.size(); k-- > 0;) {
    const uint32_t i = order_[k];
    double sum = 0, count = 0, rest = 0;
    for (const PlaceDevice& device : devices_) {
      const double seconds = problem_->nodes[i].seconds[device.target];
      if (seconds == kCannotRun) continue;
      sum += seconds;
      ++count;
    }
    for (const uint32_t t : outputs_[i]) {
      const double moved = devices_.size() > 1 ? problem_->tensors[t].bytes * port : 0;
      for (const uint32_t user : problem_->tensors[t].users)
        rest = std::max(rest, moved + urgency[user]);
    }
    urgency[i] = rest + (count > 0 ? sum / count : 0);
  }
  return urgency;
}

std::vector<int32_t> PlaceJudge::urgent_first() const {
  const std::vector<double> urgent = urgency();
  // Equal ones in the order of the nodes.
  std::vector<uint32_t> ranked = order_;
  sort_by(ranked, [&](uint32_t i) { return -urgent[i]; });
  std::vector<int32_t> priority(ranked.size());
  for (size_t k = 0; k < ranked.size(); ++k) priority[ranked[k]] = -static_cast<int32_t>(k);
  return priority;
}

}  // namespace hone
