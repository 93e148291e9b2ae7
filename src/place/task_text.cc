#include "place/task_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "place/plain_system.h"

namespace hone {
namespace {

constexpr double kTaskRate = 1e13;  // work and bytes a second

double operations(const Target& target) {
  return target.peak(DType::f32) * static_cast<double>(target.cores);
}

class TaskReader {
 public:
  TaskReader(std::string_view text, std::string_view file, const System& system)
      : lines_(split_lines(text)), file_(file) {
    problem_.name = file.substr(file.rfind('/') + 1);
    problem_.system = system;
  }

  Result<PlaceProblem> read() {
    const int64_t all = HONE_TRY(number_line());
    const std::vector<int64_t> inputs = HONE_TRY(list());
    const int64_t tasks = all - static_cast<int64_t>(inputs.size());
    if (tasks < 1)
      return wrong(
          1, fmt::format("of {} nodes {} are inputs, which leaves no task", all, inputs.size()));
    const std::vector<int64_t> from = HONE_TRY(list()), to = HONE_TRY(list());
    if (from.size() != to.size())
      return wrong(at_,
                   fmt::format("{} edges have a target and {} a source", to.size(), from.size()));
    for (int64_t i = 0; i < tasks; ++i) HONE_TRY(task(i));
    for (; at_ < lines_.size(); ++at_)
      if (!trim(lines_[at_]).empty())
        return wrong(at_ + 1, fmt::format("there is more behind the {} tasks", tasks));
    HONE_TRY(make_tensors(from, to));
    const Status status = check(problem_);
    if (!status.ok()) return Error(status.error()).within(file_);
    return std::move(problem_);
  }

 private:
  Error wrong(size_t line, std::string_view what) const {
    return bad_input("{}", what).at(fmt::format("{}:{}", file_, line));
  }

  Result<std::string_view> line(std::string_view what) {
    if (at_ == lines_.size()) return wrong(at_, fmt::format("the text ends before {}", what));
    return lines_[at_++];
  }

  Result<int64_t> number(std::string_view text) const {
    const Result<int64_t> value = parse_int(text);
    if (value.ok() && *value >= 0 && *value <= static_cast<int64_t>(kMaxPlaceNodes)) return *value;
    return wrong(at_, fmt::format("'{}' is no number of 0 to {}", excerpt(text), kMaxPlaceNodes));
  }
  Result<int64_t> number_line() { return number(trim(HONE_TRY(line("the number of nodes")))); }

  // "0, 1, 2,"
  Result<std::vector<int64_t>> list() {
    const std::string_view text = HONE_TRY(line("the lists of inputs and edges"));
    std::vector<int64_t> numbers;
    for (const std::string_view piece : split(text, ','))
      if (!trim(piece).empty()) numbers.push_back(HONE_TRY(number(trim(piece))));
    if (numbers.size() > kMaxPlaceUses)
      return wrong(at_, fmt::format("{} numbers are more than {}", numbers.size(), kMaxPlaceUses));
    return numbers;
  }

  Result<double> amount(std::string_view text, double most) const {
    const Result<double> value = parse_double(trim(text));
    if (value.ok() && *value >= 0 && *value <= most) return *value;
    return wrong(at_, fmt::format("'{}' is no number of 0 to {}", excerpt(text), most));
  }

  // "work,communication", perhaps with ",kind"
  Status task(int64_t id) {
    const std::string_view text = HONE_TRY(line(fmt::format("task {}", id)));
    const std::vector<std::string_view> parts = split(text, ',');
    if (parts.size() < 2 || parts.size() > 3)
      return wrong(at_, fmt::format("task {} has {} parts; it is 'work,communication' or "
                                    "'work,communication,kind'",
                                    id, parts.size()));
    PlaceNode node;
    node.id = id;
    if (parts.size() == 3) node.name = trim(parts[2]);
    const double work = HONE_TRY(amount(parts[0], 1e30));
    for (const Target& target : problem_.system.targets)
      node.seconds.push_back(work / operations(target));
    problem_.nodes.push_back(std::move(node));
    bytes_.push_back(HONE_TRY(amount(parts[1], kMaxPlaceBytes)));
    return {};
  }

  Status make_tensors(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    std::map<uint32_t, std::vector<uint32_t>> users;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto tasks = static_cast<int64_t>(problem_.nodes.size());
      if (from[i] >= tasks || to[i] >= tasks)
        return wrong(from[i] >= tasks ? 3 : 4,
                     fmt::format("edge {} joins {} and {}, but tasks are 0 to {}", i, from[i],
                                 to[i], tasks - 1));
      users[static_cast<uint32_t>(from[i])].push_back(static_cast<uint32_t>(to[i]));
    }
    for (auto& [maker, list] : users) {
      std::ranges::sort(list);
      const auto [first, last] = std::ranges::unique(list);
      list.erase(first, last);
      problem_.tensors.push_back({maker, std::move(list), bytes_[maker], 0});
    }
    return {};
  }

  std::vector<std::string_view> lines_;
  std::string file_;
  size_t at_ = 0;  // lines that are read
  PlaceProblem problem_;
  std::vector<double> bytes_;  // by task
};

}  // namespace

Result<System> task_system(int64_t devices) {
  if (devices < 1 || devices > kMaxPlaceDevices)
    return bad_input("{} devices are outside of 1..{}", devices, kMaxPlaceDevices);
  System system;
  system.name = fmt::format("tasks:{}", devices);
  system.targets = {plain_target("device", kMaxTargetBytes, kTaskRate)};
  system.devices = {{devices, 0, kMaxTargetBytes}};
  if (devices > 1) {
    Links links;
    links.name = "link";
    links.shape = Shape::pairs;
    links.over = kAllDevices;
    links.bytes_per_second = kTaskRate;
    links.shared = false;
    system.links = {links};
  }
  HONE_TRY(check(system));
  return system;
}

Result<PlaceProblem> parse_task_text(std::string_view text, std::string_view file,
                                     const System& system) {
  if (text.size() > kMaxTaskText)
    return over_limit("the file has {} bytes, more than {}", text.size(), kMaxTaskText)
        .at(std::string(file));
  return TaskReader(text, file, system).read();
}

Result<std::string> print_task_text(const PlaceProblem& problem) {
  const auto cannot = [](std::string_view what) {
    return unsupported("the format cannot say {}", what)
        .with_hint("write it as hone's own text, which can");
  };
  if (problem.system.targets.size() != 1) return cannot("devices of several sorts");
  if (!problem.fusions.empty()) return cannot("fusions");
  std::vector<double> bytes(problem.nodes.size());
  std::vector<bool> has_tensor(problem.nodes.size());
  std::string from, to;
  for (const PlaceTensor& tensor : problem.tensors) {
    if (tensor.held > 0 || has_tensor[tensor.maker])
      return cannot("what the outputs of a task hold, or several of them");
    has_tensor[tensor.maker] = true;
    bytes[tensor.maker] = tensor.bytes;
    for (const uint32_t user : tensor.users) {
      from += fmt::format("{}, ", tensor.maker);
      to += fmt::format("{}, ", user);
    }
  }
  std::string out = fmt::format("{}\n\n{}\n{}\n", problem.nodes.size(), from, to);
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const PlaceNode& node = problem.nodes[i];
    if (node.held > 0 || node.scratch > 0 || node.pinned != kAnywhere || node.backward ||
        node.together != kAnywhere || node.seconds[0] == kCannotRun)
      return cannot("memory, pins and company of nodes");
    out +=
        fmt::format("{},{}", format_double(node.seconds[0] * operations(problem.system.targets[0])),
                    format_double(bytes[i]));
    if (node.name.find_first_of(",\n\r") != node.name.npos) return cannot("a name with a comma");
    out += node.name.empty() ? "\n" : fmt::format(",{}\n", node.name);
  }
  return out;
}

}  // namespace hone
