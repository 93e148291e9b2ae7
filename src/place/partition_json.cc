#include "place/partition_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "log/json_fields.h"
#include "place/plain_system.h"

namespace hone {
namespace {

using PartitionJson = nlohmann::ordered_json;

constexpr double kMillisecond = 1e-3;
constexpr int64_t kMostId = int64_t{1} << 53;  // JSON has real numbers
constexpr double kUnknownRate = 1e9;  // bytes a second, where no edge has a size and a cost

// The fields of an object. `place` is for error texts: "node 3 of 'nodes'".
class PartitionFields {
 public:
  PartitionFields(const PartitionJson& object, std::string place)
      : object_(object), place_(std::move(place)) {}

  Status check_object() const {
    return object_.is_object() ? Status() : wrong("it is no object in braces");
  }
  bool has(const char* name) const { return object_.contains(name); }

  Result<double> real(const char* name, double most) const {
    const PartitionJson* value = HONE_TRY(find(name));
    if (!value->is_number()) return wrong(fmt::format("'{}' is no number", name));
    const auto real = value->get<double>();
    if (real >= 0 && real <= most) return real;
    return wrong(fmt::format("'{}' is {}; it must be 0 to {}", name, real, most));
  }
  Result<int64_t> integer(const char* name, int64_t most) const {
    const double value = HONE_TRY(real(name, static_cast<double>(most)));
    if (value == std::floor(value)) return static_cast<int64_t>(value);
    return wrong(fmt::format("'{}' is {}, no whole number", name, value));
  }
  // true, false, 0 or 1
  Result<bool> flag(const char* name) const {
    const PartitionJson* value = HONE_TRY(find(name));
    if (value->is_boolean()) return value->get<bool>();
    if (value->is_number() && (*value == 0 || *value == 1)) return *value == 1;
    return wrong(fmt::format("'{}' is neither true nor false", name));
  }
  Result<const PartitionJson*> array(const char* name) const {
    const PartitionJson* value = HONE_TRY(find(name));
    if (!value->is_array()) return wrong(fmt::format("'{}' is no array", name));
    return value;
  }
  Result<std::string> text(const char* name) const {
    const PartitionJson* value = HONE_TRY(find(name));
    if (!value->is_string()) return wrong(fmt::format("'{}' is no text", name));
    return value->get<std::string>();
  }
  Error wrong(std::string_view what) const { return bad_input("{}", what).at(place_); }

 private:
  Result<const PartitionJson*> find(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) return wrong(fmt::format("there is no '{}'", name));
    return &*found;
  }

  const PartitionJson& object_;
  std::string place_;
};

std::string item_place(std::string_view file, std::string_view list, size_t number) {
  return fmt::format("{}, item {} of '{}'", file, number, list);
}

class PartitionReader {
 public:
  PartitionReader(const PartitionJson& json, std::string_view file)
      : fields_(json, std::string(file)), file_(file) {}

  Result<PlaceProblem> read() {
    HONE_TRY(fields_.check_object());
    problem_.name = file_.substr(file_.rfind('/') + 1);
    HONE_TRY(read_system_numbers());
    const PartitionJson& nodes = *HONE_TRY(fields_.array("nodes"));
    if (nodes.size() > kMaxPlaceNodes)
      return over_limit("{} nodes are more than {}", nodes.size(), kMaxPlaceNodes).at(file_);
    for (size_t i = 0; i < nodes.size(); ++i) HONE_TRY(read_node(nodes[i], i));
    const PartitionJson& edges = *HONE_TRY(fields_.array("edges"));
    if (edges.size() > kMaxPlaceUses)
      return over_limit("{} edges are more than {}", edges.size(), kMaxPlaceUses).at(file_);
    for (size_t i = 0; i < edges.size(); ++i) HONE_TRY(read_edge(edges[i], i));
    make_tensors();
    make_system();
    const Status status = check(problem_);
    if (!status.ok()) return Error(status.error()).within(file_);
    return std::move(problem_);
  }

 private:
  Status read_system_numbers() {
    memory_ = HONE_TRY(fields_.real("maxSizePerFPGA", static_cast<double>(kMaxPlaceHeld)));
    accelerators_ = HONE_TRY(fields_.integer("maxFPGAs", kMaxPlaceDevices));
    hosts_ = fields_.has("maxCPUs") ? HONE_TRY(fields_.integer("maxCPUs", kMaxPlaceDevices)) : 0;
    if (accelerators_ + hosts_ < 1 || accelerators_ + hosts_ > kMaxPlaceDevices)
      return bad_input("there are {} accelerators and {} host cores; together it must be 1 to {}",
                       accelerators_, hosts_, kMaxPlaceDevices)
          .at(file_);
    return {};
  }

  Status read_node(const PartitionJson& json, size_t number) {
    const PartitionFields node(json, item_place(file_, "nodes", number));
    HONE_TRY(node.check_object());
    PlaceNode made;
    made.id = HONE_TRY(node.integer("id", kMostId));
    if (!numbers_.emplace(made.id, static_cast<uint32_t>(number)).second)
      return node.wrong(fmt::format("another node has the id {}, too", made.id));
    if (node.has("name")) made.name = HONE_TRY(node.text("name"));
    constexpr double most = kMaxPlaceSeconds / kMillisecond;
    const bool runs = !node.has("supportedOnFpga") || HONE_TRY(node.flag("supportedOnFpga"));
    const double here = HONE_TRY(node.real("fpgaLatency", most)) * kMillisecond;
    made.seconds.push_back(runs ? here : kCannotRun);
    if (hosts_ > 0) made.seconds.push_back(HONE_TRY(node.real("cpuLatency", most)) * kMillisecond);
    made.held = std::llround(HONE_TRY(node.real("size", static_cast<double>(kMaxPlaceHeld))));
    if (node.has("isBackwardNode")) made.backward = HONE_TRY(node.flag("isBackwardNode"));
    if (node.has("colorClass")) made.together = HONE_TRY(node.integer("colorClass", kMostId));
    problem_.nodes.push_back(std::move(made));
    return {};
  }

  Status read_edge(const PartitionJson& json, size_t number) {
    const PartitionFields edge(json, item_place(file_, "edges", number));
    HONE_TRY(edge.check_object());
    uint32_t ends[2] = {};
    for (const size_t i : {0, 1}) {
      const char* const name = i == 0 ? "sourceId" : "destId";
      const int64_t id = HONE_TRY(edge.integer(name, kMostId));
      const auto found = numbers_.find(id);
      if (found == numbers_.end())
        return edge.wrong(fmt::format("'{}' is {}, but no node has this id", name, id));
      ends[i] = found->second;
    }
    const double cost = HONE_TRY(edge.real("cost", kMaxPlaceSeconds / kMillisecond));
    const double size = edge.has("size") ? HONE_TRY(edge.real("size", kMaxPlaceBytes)) : 0;
    if (size > 0 && cost > 0 && !rate_) rate_ = size / (cost * kMillisecond);
    Output& output = outputs_[ends[0]];
    if (!output.users.empty() && std::abs(output.cost - cost) > 1e-6 * std::max(1.0, cost))
      return edge.wrong(fmt::format("its cost is {}, and {} at another edge from node {}", cost,
                                    output.cost, problem_.nodes[ends[0]].id));
    if (output.users.empty()) output.cost = cost;
    output.users.push_back(ends[1]);
    return {};
  }

  void make_tensors() {
    rate_ = std::clamp(rate_.value_or(kUnknownRate), 1.0, kMaxBandwidth);
    for (auto& [maker, output] : outputs_) {
      std::ranges::sort(output.users);
      const auto [first, last] = std::ranges::unique(output.users);
      output.users.erase(first, last);
      problem_.tensors.push_back(
          {maker, std::move(output.users), output.cost * kMillisecond * *rate_, 0});
    }
  }

  void make_system() {
    System& system = problem_.system;
    system.name = "file";
    const int64_t memory = std::max(int64_t{1}, static_cast<int64_t>(memory_));
    system.targets = {plain_target(kAccelerator, memory)};
    if (accelerators_ > 0) system.devices = {{accelerators_, 0, memory}};
    problem_.ports = {1 / *rate_};
    if (hosts_ == 0) {
      if (accelerators_ > 1) system.links = {star_links("port", *rate_)};
      return;
    }
    system.targets.push_back(plain_target(kHost, kMaxTargetBytes));
    system.devices.push_back({hosts_, 1, kMaxTargetBytes});
    problem_.ports.push_back(0);
    for (int64_t d = 0; d < accelerators_ + hosts_; ++d)
      if (d != accelerators_)
        system.links.push_back(cable_links(fmt::format("port{}", d), accelerators_, d,
                                           d < accelerators_ ? *rate_ : kMaxBandwidth));
  }

  struct Output {
    double cost = 0;
    std::vector<uint32_t> users;
  };

  PartitionFields fields_;
  std::string file_;
  PlaceProblem problem_;
  std::unordered_map<int64_t, uint32_t> numbers_;  // nodes by their ids
  std::map<uint32_t, Output> outputs_;             // by maker
  double memory_ = 0;
  int64_t accelerators_ = 0, hosts_ = 0;
  std::optional<double> rate_;  // bytes a second
};

Result<PartitionJson> parse_text(std::string_view text, std::string_view file) {
  if (text.size() > kMaxPartitionBytes)
    return over_limit("the file has {} bytes, more than {}", text.size(), kMaxPartitionBytes)
        .at(std::string(file));
  Result<PartitionJson> json = parse_json(text);
  if (!json.ok()) return std::move(json).error().at(std::string(file));
  return json;
}

bool is_host(const PlaceProblem& problem, const PlaceDevice& device) {
  return problem.system.targets[device.target].name == kHost;
}

// Devices by the lists of a split: accelerators, hosts.
std::vector<uint32_t> devices_of(const PlaceProblem& problem, bool hosts) {
  std::vector<uint32_t> found;
  const std::vector<PlaceDevice> devices = place_devices(problem);
  for (uint32_t d = 0; d < devices.size(); ++d)
    if (is_host(problem, devices[d]) == hosts) found.push_back(d);
  return found;
}

// Unsupported if the format cannot say the problem.
Status check_can_write(const PlaceProblem& problem) {
  const auto cannot = [](std::string_view what) {
    return unsupported("the format cannot say {}", what)
        .with_hint("write it as hone's own text, which can");
  };
  if (!problem.fusions.empty()) return cannot("fusions");
  const System& system = problem.system;
  const bool names_fit = !system.targets.empty() && system.targets.size() <= 2 &&
                         system.targets[0].name == kAccelerator &&
                         (system.targets.size() == 1 || system.targets[1].name == kHost);
  if (!names_fit || system.devices.size() > 2) return cannot("devices but accelerators and hosts");
  const std::vector<PlaceDevice> devices = place_devices(problem);
  for (const bool hosts : {false, true}) {
    const std::vector<uint32_t> alike = devices_of(problem, hosts);
    for (const uint32_t d : alike)
      if (devices[d].memory != (hosts ? kMaxTargetBytes : devices[alike[0]].memory))
        return cannot("the memory of a host, or accelerators that differ");
  }
  std::vector<bool> has_tensor(problem.nodes.size());
  for (const PlaceTensor& tensor : problem.tensors) {
    if (tensor.held > 0 || has_tensor[tensor.maker])
      return cannot("what the outputs of a node hold, or several of them");
    has_tensor[tensor.maker] = true;
  }
  for (const PlaceNode& node : problem.nodes) {
    if (node.scratch > 0 || node.pinned != kAnywhere) return cannot("scratch and pins");
    if (node.id > kMostId) return cannot("ids above 2^53");
    if (node.seconds.size() == 2 && node.seconds[1] == kCannotRun)
      return cannot("that a host cannot run a node");
  }
  return {};
}

}  // namespace

Result<PlaceProblem> parse_partition_json(std::string_view text, std::string_view file) {
  const PartitionJson json = HONE_TRY(parse_text(text, file));
  return PartitionReader(json, file).read();
}

Result<std::string> print_partition_json(const PlaceProblem& problem) {
  HONE_TRY(check_can_write(problem));
  const std::vector<PlaceDevice> devices = place_devices(problem);
  const std::vector<uint32_t> accelerators = devices_of(problem, false);
  PartitionJson json;
  json["maxSizePerFPGA"] =
      accelerators.empty() ? 0.0 : static_cast<double>(devices[accelerators[0]].memory);
  json["maxFPGAs"] = accelerators.size();
  json["maxCPUs"] = devices_of(problem, true).size();
  json["nodes"] = PartitionJson::array();
  json["edges"] = PartitionJson::array();
  for (const PlaceNode& node : problem.nodes) {
    PartitionJson one;
    one["id"] = node.id;
    if (!node.name.empty()) one["name"] = node.name;
    const bool runs = node.seconds[0] != kCannotRun;
    one["supportedOnFpga"] = runs;
    one["fpgaLatency"] = runs ? node.seconds[0] / kMillisecond : 0;
    one["cpuLatency"] = node.seconds.size() > 1 ? node.seconds[1] / kMillisecond : 0;
    one["size"] = node.held;
    one["isBackwardNode"] = node.backward;
    if (node.together != kAnywhere) one["colorClass"] = node.together;
    json["nodes"].push_back(std::move(one));
  }
  const double port = accelerators.empty() ? 0 : devices[accelerators[0]].port;
  for (const PlaceTensor& tensor : problem.tensors)
    for (const uint32_t user : tensor.users)
      json["edges"].push_back({{"sourceId", problem.nodes[tensor.maker].id},
                               {"destId", problem.nodes[user].id},
                               {"cost", tensor.bytes * port / kMillisecond},
                               {"size", tensor.bytes}});
  return json.dump(1, ' ', true, PartitionJson::error_handler_t::replace) + "\n";
}

std::string print_split(const PlaceProblem& problem, const DevicePlacement& placement,
                        std::span<const uint32_t> order, std::span<const double> loads) {
  std::vector<std::vector<int64_t>> nodes(loads.size());
  for (const uint32_t i : order) nodes[placement.device[i]].push_back(problem.nodes[i].id);
  const auto list = [&](bool hosts) {
    std::vector<std::string> items;
    for (const uint32_t d : devices_of(problem, hosts))
      items.push_back(fmt::format("  {{\"load\": {}, \"nodes\": [{}]}}",
                                  format_double(loads[d] / kMillisecond), join(nodes[d], ", ")));
    return join(items, ",\n");
  };
  return fmt::format("{{\n\"maxLoad\": {},\n\"fpgas\": [\n{}\n],\n\"cpus\": [\n{}\n]\n}}\n",
                     format_double(std::ranges::max(loads) / kMillisecond), list(false),
                     list(true));
}

Result<DevicePlacement> parse_split(std::string_view text, std::string_view file,
                                    const PlaceProblem& problem) {
  const PartitionJson json = HONE_TRY(parse_text(text, file));
  const PartitionFields whole(json, std::string(file));
  HONE_TRY(whole.check_object());
  std::unordered_map<int64_t, uint32_t> numbers;
  for (uint32_t i = 0; i < problem.nodes.size(); ++i) numbers.emplace(problem.nodes[i].id, i);
  DevicePlacement placement;
  placement.device.assign(problem.nodes.size(), UINT32_MAX);
  placement.priority.assign(problem.nodes.size(), 0);
  for (const bool hosts : {false, true}) {
    const char* const list = hosts ? "cpus" : "fpgas";
    const std::vector<uint32_t> devices = devices_of(problem, hosts);
    if (!whole.has(list)) continue;
    const PartitionJson& items = *HONE_TRY(whole.array(list));
    for (size_t k = 0; k < items.size(); ++k) {
      const PartitionFields item(items[k], item_place(file, list, k));
      HONE_TRY(item.check_object());
      const PartitionJson& nodes = *HONE_TRY(item.array("nodes"));
      if (!nodes.empty() && k >= devices.size())
        return item.wrong(fmt::format("there are {} such devices", devices.size()));
      for (size_t i = 0; i < nodes.size(); ++i) {
        const auto found =
            nodes[i].is_number_integer() ? numbers.find(nodes[i].get<int64_t>()) : numbers.end();
        if (found == numbers.end())
          return item.wrong(fmt::format("'{}' is the id of no node", excerpt(nodes[i].dump())));
        uint32_t& device = placement.device[found->second];
        if (device != UINT32_MAX)
          return item.wrong(
              fmt::format("{} is placed twice", name_of(problem.nodes[found->second])));
        device = devices[k];
        placement.priority[found->second] = -static_cast<int32_t>(i);
      }
    }
  }
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    if (placement.device[i] == UINT32_MAX)
      return bad_input("no device has {}", name_of(problem.nodes[i])).at(std::string(file));
  return placement;
}

}  // namespace hone
