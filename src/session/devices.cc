#include "session/devices.h"

#include <algorithm>

#include "base/text.h"
#include "session/source.h"

namespace hone {

namespace {

constexpr int64_t kMostDevices = 256;
constexpr std::string_view kPart = "cpu";

std::vector<std::string> parts_of_this_machine(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", kPart, i));
  return names;
}

}  // namespace

Result<std::vector<std::string>> parse_devices(std::string_view text, std::string_view label) {
  int64_t count = 0;
  if (const Result<int64_t> number = parse_int(text); number.ok()) {
    count = *number;
  } else {
    for (std::string_view name : split(text, ',')) {
      if (trim(name) != kPart)
        return usage_error("{}: there is no device '{}'", label, excerpt(trim(name)))
            .with_hint(fmt::format("'{}' is a part of this machine; a number means as many of them",
                                   kPart));
      ++count;
    }
  }
  if (count < 1 || count > kMostDevices)
    return usage_error("{}: {} is outside of 1..{}", label, count, kMostDevices);
  return parts_of_this_machine(count);
}

int64_t threads_per_device(const NativeOptions& options, size_t devices) {
  return options.threads.value_or(
      std::max<int64_t>(1, options.target.cores / static_cast<int64_t>(devices)));
}

Result<std::shared_ptr<const BatchModel>> batch_model(const Model& model,
                                                      const NativeOptions& options,
                                                      const DeviceOptions& devices,
                                                      int64_t memory_limit, const Face& face) {
  HONE_TRY(check_runs_here(options.target, face.labels));
  const Graph* graph = single_graph(model);
  if (graph == nullptr)
    return unsupported("'{}' is a tree of segments; the batch of a single graph can be divided",
                       excerpt(model.name))
        .with_hint("run it on one device");
  if (!options.plans.empty() || options.plan_seed)
    return usage_error("a plan is of one device; there are {}", devices.names.size());
  CompileOptions compile = compile_options(options, nullptr, face);
  compile.memory_limit = memory_limit;
  return std::make_shared<const BatchModel>(
      *graph, options.target, std::move(compile),
      BatchOptions{.devices = devices.names,
                   .inputs = devices.batch,
                   .threads = threads_per_device(options, devices.names.size())});
}

std::string division_text(const BatchModel& model, const ManyDevices& made, int64_t cores) {
  const auto devices = static_cast<int64_t>(model.devices());
  const int64_t threads = model.threads();
  std::vector<std::string> rows;
  for (const DeviceShare& device : made.devices()) rows.push_back(std::to_string(device.count));
  rows.resize(model.devices(), "0");
  constexpr size_t kMostShown = 8;
  if (rows.size() > kMostShown) {
    rows.resize(kMostShown);
    rows.emplace_back("...");
  }
  const int64_t at_once = static_cast<int64_t>(made.devices().size()) * threads;
  return fmt::format("{} {} of {} {}, with {} rows of the batch{}", devices,
                     devices == 1 ? "device" : "devices", threads,
                     threads == 1 ? "thread" : "threads", join(rows, ", "),
                     at_once > cores ? fmt::format("; they take turns on {} cores", cores) : "");
}

}  // namespace hone
