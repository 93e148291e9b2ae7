#include "compile/batch_model.h"

#include <algorithm>
#include <map>

#include "shard/batch_inputs.h"
#include "shard/batch_part.h"

namespace hone {

namespace {

std::vector<image::Port> ports(const Graph& graph, std::span<const ValueId> values,
                               std::string_view kind) {
  std::vector<image::Port> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view name = graph.name(values[i]);
    all.push_back(
        {name.empty() ? fmt::format("{}{}", kind, i) : std::string(name), graph.type(values[i])});
  }
  return all;
}

std::vector<DividedPort> divided(std::span<const image::Port> ports, std::span<const Type> types,
                                 std::span<const int> dims) {
  std::vector<DividedPort> all;
  for (size_t i = 0; i < ports.size(); ++i) all.push_back({{ports[i].name, types[i]}, dims[i]});
  return all;
}

}  // namespace

BatchModel::BatchModel(Graph graph, Target target, CompileOptions options, BatchOptions batch)
    : graph_(std::move(graph)),
      target_(std::move(target)),
      options_(std::move(options)),
      batch_(std::move(batch)),
      inputs_(ports(graph_, graph_.inputs(), "input")),
      outputs_(ports(graph_, graph_.outputs(), "output")) {}

Result<Image> BatchModel::compiled(Graph graph) const {
  CompileOptions options = options_;
  options.plan.threads = batch_.threads;
  Compilation compilation(std::move(graph), target_, std::move(options));
  return *HONE_TRY(compilation.image());
}

Result<DeviceShare> BatchModel::loaded(size_t device, int64_t first, int64_t count,
                                       const Image& image) const {
  const auto devices = static_cast<int64_t>(batch_.devices.size());
  return DeviceShare{
      .name = batch_.devices[device],
      .first = first,
      .count = count,
      .code = HONE_TRY(
          Executable::load(image, {.team = HONE_TRY(Team::create({.threads = batch_.threads})),
                                   .memory_limit = options_.memory_limit / devices}))};
}

Result<std::shared_ptr<const ManyDevices>> BatchModel::make(std::span<const Type> types) const {
  const Graph whole = HONE_TRY(specialize(graph_, HONE_TRY(bind_inputs(graph_, types))));
  const BatchInputs batch = HONE_TRY(batch_inputs(graph_, types, batch_.inputs));
  const std::vector<BatchShare> shares =
      batch_shares(batch.rows, static_cast<int64_t>(batch_.devices.size()));
  std::vector<int> inputs(types.size(), kWhole), outputs(outputs_.size(), kWhole);
  std::vector<DeviceShare> devices;
  if (shares.size() == 1) {
    const Image image = HONE_TRY(compiled(whole));
    devices.push_back(HONE_TRY(loaded(0, 0, batch.rows, image)));
  }
  std::map<int64_t, Image> known;  // by rows, where the place does not matter
  for (size_t i = 0; i < shares.size() && shares.size() > 1; ++i) {
    const BatchShare& share = shares[i];
    auto found = known.find(share.count);
    if (found == known.end()) {
      BatchPart part = HONE_TRY(batch_part(whole, batch.dims, share));
      inputs = part.inputs;
      outputs = part.outputs;
      Image image = HONE_TRY(compiled(std::move(part.graph)));
      if (part.depends_on_first) {
        devices.push_back(HONE_TRY(loaded(i, share.first, share.count, image)));
        continue;
      }
      found = known.emplace(share.count, std::move(image)).first;
    }
    devices.push_back(HONE_TRY(loaded(i, share.first, share.count, found->second)));
  }
  return ManyDevices::make(divided(inputs_, types, inputs),
                           divided(outputs_, whole.output_types(), outputs), batch.rows,
                           std::move(devices));
}

Result<std::shared_ptr<const ManyDevices>> BatchModel::devices_for(
    std::span<const Type> types) const {
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find_if(
      made_, [&](const Made& one) { return std::ranges::equal(one.types, types); });
  if (known != made_.end()) {
    made_.splice(made_.begin(), made_, known);
  } else {
    made_.push_front({{types.begin(), types.end()}, HONE_TRY(make(types))});
    if (made_.size() > kMaxKept) made_.pop_back();
  }
  return made_.front().devices;
}

Result<std::vector<Tensor>> BatchModel::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  return HONE_TRY(devices_for(types_of(inputs)))->run(inputs, options, times);
}

}  // namespace hone
