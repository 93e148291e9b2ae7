#include "place/problem.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "base/text.h"
#include "target/text_fields.h"
#include "target/topology.h"

namespace hone {
namespace {

// ---- Numbers -----------------------------------------------------------------------------------

Status check_node(const PlaceProblem& problem, const PlaceNode& node) {
  const auto wrong = [&](Error error) { return std::move(error).at(name_of(node)); };
  if (node.seconds.size() != problem.system.targets.size())
    return wrong(bad_input("it has {} times for {} targets", node.seconds.size(),
                           problem.system.targets.size()));
  for (const double seconds : node.seconds)
    if (!(seconds >= 0 && (seconds <= kMaxPlaceSeconds || seconds == kCannotRun)))
      return wrong(bad_input("its time is {} s; it must be 0 to {}", seconds, kMaxPlaceSeconds));
  for (const int64_t bytes : {node.held, node.scratch})
    if (bytes < 0 || bytes > kMaxPlaceHeld)
      return wrong(bad_input("it holds {} bytes; it must be 0 to {}", bytes, kMaxPlaceHeld));
  if (node.together < kAnywhere)
    return wrong(bad_input("its company has the number {}, which is negative", node.together));
  if (node.pinned < kAnywhere || node.pinned >= problem.system.device_count())
    return wrong(
        bad_input("it is pinned to device {}, which there is not", node.pinned)
            .with_hint(fmt::format("devices are 0 to {}", problem.system.device_count() - 1)));
  return {};
}

Status check_tensor(const PlaceProblem& problem, size_t number, size_t& uses) {
  const PlaceTensor& tensor = problem.tensors[number];
  if (tensor.maker >= problem.nodes.size())
    return bad_input("tensor {} is made by node {} of {}", number, tensor.maker,
                     problem.nodes.size());
  const auto wrong = [&](Error error) {
    return std::move(error).at(
        fmt::format("the tensor of {}", name_of(problem.nodes[tensor.maker])));
  };
  if (!(tensor.bytes >= 0 && tensor.bytes <= kMaxPlaceBytes))
    return wrong(
        bad_input("it has {} bytes to move; it must be 0 to {}", tensor.bytes, kMaxPlaceBytes));
  if (tensor.held < 0 || tensor.held > kMaxPlaceHeld)
    return wrong(bad_input("it holds {} bytes; it must be 0 to {}", tensor.held, kMaxPlaceHeld));
  if (tensor.users.empty()) return wrong(bad_input("nobody uses it"));
  if ((uses += tensor.users.size()) > kMaxPlaceUses)
    return wrong(over_limit("tensors have more than {} users", kMaxPlaceUses));
  for (size_t i = 0; i < tensor.users.size(); ++i) {
    if (tensor.users[i] >= problem.nodes.size())
      return wrong(bad_input("it goes to node {} of {}", tensor.users[i], problem.nodes.size()));
    if (i > 0 && tensor.users[i] <= tensor.users[i - 1])
      return wrong(bad_input("its users are not in order, or one is there twice"));
  }
  return {};
}

Status check_fusions(const PlaceProblem& problem) {
  if (problem.fusions.empty()) return {};
  std::vector<uint32_t> only_user(problem.nodes.size(), UINT32_MAX);
  std::vector<bool> has_others(problem.nodes.size()), is_fused(problem.nodes.size());
  for (const PlaceTensor& tensor : problem.tensors)
    for (const uint32_t user : tensor.users) {
      uint32_t& only = only_user[tensor.maker];
      has_others[tensor.maker] = has_others[tensor.maker] || (only != UINT32_MAX && only != user);
      only = user;
    }
  for (size_t k = 0; k < problem.fusions.size(); ++k) {
    const PlaceFusion& fusion = problem.fusions[k];
    const auto wrong = [&](std::string why) {
      return bad_input("{}", why).at(fmt::format("fusion {}", k));
    };
    for (const uint32_t node : {fusion.maker, fusion.user})
      if (node >= problem.nodes.size()) return wrong(fmt::format("there is no node {}", node));
    const PlaceNode &maker = problem.nodes[fusion.maker], &user = problem.nodes[fusion.user];
    if (has_others[fusion.maker] || only_user[fusion.maker] != fusion.user)
      return wrong(
          fmt::format("{} is not the only one that uses {}", name_of(user), name_of(maker)));
    if (is_fused[fusion.maker])
      return wrong(fmt::format("{} has a fusion already", name_of(maker)));
    is_fused[fusion.maker] = true;
    if (fusion.saves.size() != problem.system.targets.size())
      return wrong(fmt::format("{} times are given for {} targets", fusion.saves.size(),
                               problem.system.targets.size()));
    for (size_t t = 0; t < fusion.saves.size(); ++t) {
      const double saves = fusion.saves[t], takes = maker.seconds[t];
      if (!(saves >= 0 && saves <= std::min(takes, kMaxPlaceSeconds)))
        return wrong(fmt::format("it saves {} s; {} takes {}", saves, name_of(maker), takes));
    }
  }
  return {};
}

Status check_numbers(const PlaceProblem& problem) {
  if (problem.system.device_count() < 1) return bad_input("there are no devices");
  if (problem.system.device_count() > kMaxPlaceDevices)
    return over_limit("{} devices are more than {}", problem.system.device_count(),
                      kMaxPlaceDevices);
  if (problem.nodes.empty()) return bad_input("there are no nodes to place");
  if (problem.nodes.size() > kMaxPlaceNodes)
    return over_limit("{} nodes are more than {}", problem.nodes.size(), kMaxPlaceNodes);
  if (!problem.ports.empty() && problem.ports.size() != problem.system.targets.size())
    return bad_input("{} ports are given for {} targets", problem.ports.size(),
                     problem.system.targets.size());
  for (const double port : problem.ports)
    if (!(port >= 0 && port <= 1))
      return bad_input("a port takes {} s for a byte; it must be 0 to 1", port);
  std::unordered_map<int64_t, size_t> ids;
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    if (!ids.emplace(problem.nodes[i].id, i).second)
      return bad_input("two nodes have the id {}", problem.nodes[i].id)
          .at(name_of(problem.nodes[i]));
    HONE_TRY(check_node(problem, problem.nodes[i]));
  }
  if (problem.nodes.size() * problem.devices() > kMaxPlacePairs)
    return over_limit("{} nodes times {} devices are more than {}", problem.nodes.size(),
                      problem.devices(), kMaxPlacePairs);
  if (problem.tensors.size() * problem.devices() > kMaxPlacePairs)
    return over_limit("{} tensors times {} devices are more than {}", problem.tensors.size(),
                      problem.devices(), kMaxPlacePairs);
  size_t uses = 0;
  for (size_t i = 0; i < problem.tensors.size(); ++i) HONE_TRY(check_tensor(problem, i, uses));
  return check_fusions(problem);
}

// ---- Order -------------------------------------------------------------------------------------

// Names nodes that wait for each other: from one that is left back over those that it waits for.
Error circle(const PlaceProblem& problem, const std::vector<uint32_t>& order) {
  std::vector<bool> is_ordered(problem.nodes.size());
  for (const uint32_t node : order) is_ordered[node] = true;
  std::vector<uint32_t> before(problem.nodes.size(), UINT32_MAX);
  for (const PlaceTensor& tensor : problem.tensors)
    if (!is_ordered[tensor.maker])
      for (const uint32_t user : tensor.users) before[user] = tensor.maker;
  uint32_t at = 0;
  while (is_ordered[at]) ++at;
  std::vector<bool> seen(problem.nodes.size());
  for (; !seen[at]; at = before[at]) seen[at] = true;
  std::vector<std::string> names = {name_of(problem.nodes[at])};
  constexpr size_t kShown = 6;
  for (uint32_t i = before[at]; i != at && names.size() < kShown; i = before[i])
    names.push_back(name_of(problem.nodes[i]));
  return bad_input("nodes wait for each other in a circle: {}", join(names, ", which waits for "))
      .with_hint("remove one of these edges");
}

// ---- Places ------------------------------------------------------------------------------------

// Nodes that must be on one device: of a company, or a single one.
struct Company {
  std::vector<uint32_t> nodes;
  int64_t bytes = 0;  // that it needs at least
};

std::vector<Company> companies(const PlaceProblem& problem) {
  std::vector<Company> all;
  std::map<int64_t, size_t> known;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    const PlaceNode& node = problem.nodes[i];
    size_t at = all.size();
    if (node.together != kAnywhere) at = known.emplace(node.together, all.size()).first->second;
    if (at == all.size()) all.emplace_back();
    all[at].nodes.push_back(i);
    all[at].bytes = sum_of_bytes(all[at].bytes, node.held);
  }
  for (Company& company : all) {
    int64_t scratch = 0;
    for (const uint32_t i : company.nodes) scratch = std::max(scratch, problem.nodes[i].scratch);
    company.bytes += scratch;
  }
  return all;
}

std::string text_of(const PlaceProblem& problem, const Company& company) {
  std::string text = name_of(problem.nodes[company.nodes[0]]);
  if (company.nodes.size() > 1)
    text += fmt::format(" with {} others of company {}", company.nodes.size() - 1,
                        problem.nodes[company.nodes[0]].together);
  return text;
}

// A device that can run all of it and has the memory.
Status check_company(const PlaceProblem& problem, const std::vector<PlaceDevice>& devices,
                     const Company& company) {
  const PlaceNode* pin = nullptr;
  for (const uint32_t i : company.nodes) {
    const PlaceNode& node = problem.nodes[i];
    if (node.pinned == kAnywhere) continue;
    if (pin != nullptr && pin->pinned != node.pinned)
      return bad_input("{} is pinned to device {} and {} to device {}, but both are of company {}",
                       name_of(*pin), pin->pinned, name_of(node), node.pinned, node.together)
          .with_hint("remove one of the pins, or take one of them out of the company");
    pin = &node;
  }
  bool can_run = false;
  int64_t most = 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (pin != nullptr && pin->pinned != static_cast<int64_t>(d)) continue;
    const bool runs_here = std::ranges::all_of(company.nodes, [&](uint32_t i) {
      return problem.nodes[i].seconds[devices[d].target] != kCannotRun;
    });
    if (!runs_here) continue;
    can_run = true;
    most = std::max(most, devices[d].memory);
  }
  const std::string pinned =
      pin == nullptr ? "" : fmt::format(" (it is pinned to device {})", pin->pinned);
  if (!can_run)
    return bad_input("no device can run {}{}", text_of(problem, company), pinned)
        .with_hint("give it a time for a target of which there is a device");
  if (company.bytes > most)
    return over_limit("{} needs {}, {} more than the {} of the largest device for it{}",
                      text_of(problem, company), bytes_text(company.bytes),
                      bytes_text(company.bytes - most), bytes_text(most), pinned)
        .with_hint("take devices with more memory, or divide the node");
  return {};
}

Status check_places(const PlaceProblem& problem) {
  const std::vector<PlaceDevice> devices = place_devices(problem);
  double held = 0, memory = 0;
  for (const Company& company : companies(problem))
    HONE_TRY(check_company(problem, devices, company));
  for (const PlaceNode& node : problem.nodes) held += static_cast<double>(node.held);
  for (const PlaceDevice& device : devices) memory += static_cast<double>(device.memory);
  if (held > memory)
    return over_limit("all nodes together hold {} bytes, {} more than the {} bytes of all devices",
                      held, held - memory, memory)
        .with_hint("take more devices, or devices with more memory");
  return {};
}

}  // namespace

std::string name_of(const PlaceNode& node) {
  if (node.name.empty()) return fmt::format("node {}", node.id);
  return fmt::format("node {} '{}'", node.id, excerpt(node.name));
}

std::vector<PlaceDevice> place_devices(const PlaceProblem& problem) {
  std::vector<PlaceDevice> devices;
  for (const DeviceRun& run : problem.system.devices)
    for (int64_t i = 0; i < run.count; ++i)
      devices.push_back({static_cast<uint32_t>(run.target), run.memory_bytes, 0});
  if (!problem.ports.empty()) {
    for (PlaceDevice& device : devices) device.port = problem.ports[device.target];
    return devices;
  }
  if (devices.size() < 2) return devices;
  const Topology topology(problem.system);
  for (size_t d = 0; d < devices.size(); ++d) {
    double least = kMaxBandwidth;
    for (const uint32_t link :
         topology.route(static_cast<int64_t>(d), static_cast<int64_t>((d + 1) % devices.size())))
      least = std::min(least, topology.links()[link].bytes_per_second);
    devices[d].port = 1 / least;
  }
  return devices;
}

Result<PlaceProblem> on_system(PlaceProblem problem, System system) {
  std::vector<size_t> old;
  for (const Target& target : system.targets) {
    const auto same = std::ranges::find(problem.system.targets, target.name, &Target::name);
    old.push_back(same == problem.system.targets.end()
                      ? 0
                      : static_cast<size_t>(same - problem.system.targets.begin()));
  }
  for (PlaceNode& node : problem.nodes) {
    std::vector<double> seconds;
    for (const size_t k : old) seconds.push_back(node.seconds[k]);
    node.seconds = std::move(seconds);
  }
  for (PlaceFusion& fusion : problem.fusions) {
    std::vector<double> saves;
    for (const size_t k : old) saves.push_back(fusion.saves[k]);
    fusion.saves = std::move(saves);
  }
  problem.ports.clear();
  problem.system = std::move(system);
  HONE_TRY(check(problem));
  return problem;
}

std::vector<uint32_t> place_order(const PlaceProblem& problem) {
  std::vector<uint32_t> waits(problem.nodes.size());
  std::vector<std::vector<uint32_t>> made(problem.nodes.size());
  for (uint32_t t = 0; t < problem.tensors.size(); ++t) {
    made[problem.tensors[t].maker].push_back(t);
    for (const uint32_t user : problem.tensors[t].users) ++waits[user];
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> open;
  for (uint32_t i = 0; i < waits.size(); ++i)
    if (waits[i] == 0) open.push(i);
  std::vector<uint32_t> order;
  while (!open.empty()) {
    order.push_back(open.top());
    open.pop();
    for (const uint32_t t : made[order.back()])
      for (const uint32_t user : problem.tensors[t].users)
        if (--waits[user] == 0) open.push(user);
  }
  return order;
}

Status check(const PlaceProblem& problem) {
  HONE_TRY(check_numbers(problem));
  const std::vector<uint32_t> order = place_order(problem);
  if (order.size() < problem.nodes.size()) return circle(problem, order);
  return check_places(problem);
}

Status check(const PlaceProblem& problem, const DevicePlacement& placement) {
  if (placement.device.size() != problem.nodes.size())
    return bad_input("{} nodes are placed of {}", placement.device.size(), problem.nodes.size());
  if (!placement.priority.empty() && placement.priority.size() != problem.nodes.size())
    return bad_input("{} priorities are given for {} nodes", placement.priority.size(),
                     problem.nodes.size());
  const std::vector<PlaceDevice> devices = place_devices(problem);
  std::map<int64_t, uint32_t> first;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) {
    const PlaceNode& node = problem.nodes[i];
    const uint32_t device = placement.device[i];
    if (device >= devices.size())
      return bad_input("it is on device {}, which there is not", device)
          .at(name_of(node))
          .with_hint(fmt::format("devices are 0 to {}", devices.size() - 1));
    if (node.seconds[devices[device].target] == kCannotRun)
      return bad_input("device {} cannot run it", device).at(name_of(node));
    if (node.pinned != kAnywhere && node.pinned != device)
      return bad_input("it is on device {}, and pinned to device {}", device, node.pinned)
          .at(name_of(node));
    if (node.together == kAnywhere) continue;
    const uint32_t other = first.emplace(node.together, i).first->second;
    if (placement.device[other] != device)
      return bad_input("it is on device {}, and {} of its company {} on device {}", device,
                       name_of(problem.nodes[other]), node.together, placement.device[other])
          .at(name_of(node));
  }
  return {};
}

}  // namespace hone
