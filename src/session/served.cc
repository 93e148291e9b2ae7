#include "session/served.h"

#include "base/text.h"
#include "compile/honec.h"
#include "cost/gpu_cost.h"
#include "front/front_end.h"
#include "runtime/honec.h"
#include "session/deployed.h"
#include "session/mesh_code.h"
#include "session/sizes.h"

namespace hone {

Result<std::unique_ptr<ServedModel>> ServedModel::make(Source source, NativeOptions options,
                                                       const Face& face,
                                                       const DeviceOptions& devices) {
  HONE_TRY(check_runs_here(options, face.labels));
  const Bindings sizes =
      HONE_TRY(size_bindings(signature_of(source.model), all_sizes(source.open), face));
  Model bound = HONE_TRY(with_sizes(source.model, sizes));
  std::unique_ptr<ServedModel> served(new ServedModel(std::move(bound), std::move(options)));
  const Graph* graph = single_graph(served->model_);
  if (devices.shards)
    HONE_TRY(served->shard(devices, face));
  else if (!devices.names.empty())
    HONE_TRY(served->divide(devices, face));
  else if (graph != nullptr && graph->is_static())
    HONE_TRY(served->compile(*graph, source.model, sizes, face));
  else
    HONE_TRY(served->compile_later(source.model, sizes, face));
  return served;
}

Status ServedModel::compile(const Graph& graph, const Model& given, const Bindings& sizes,
                            const Face& face) {
  CompileOptions options = HONE_TRY(compile_options(graph, given, sizes, options_, face));
  options.memory_limit = HONE_TRY(memory_left(graph, {}, Engine::native, face)).native;
  compilation_ = std::make_unique<Compilation>(graph, options_.target, std::move(options));
  runnable_ = HONE_TRY(compilation_->runnable());
  if (early() != nullptr) early()->begin();
  return {};
}

ServedModel::~ServedModel() { stop(); }

void ServedModel::stop() const {
  if (early() != nullptr) early()->stop();
}

const EarlyCode* ServedModel::early() const {
  return dynamic_cast<const EarlyCode*>(runnable_.get());
}

Status ServedModel::finish(const Face& face) const {
  return early() == nullptr ? Status() : early()->finish(face.progress, face.cancel);
}

Status ServedModel::compile_later(const Model& given, const Bindings& sizes, const Face& face) {
  const std::vector<const Graph*> graphs = graphs_of(model_);
  plans_ = HONE_TRY(plans_of(graphs, given, sizes, options_, face.labels));
  CompileOptions options = compile_options(options_, nullptr);
  options.memory_limit = memory_limit(face);
  runnable_ = HONE_TRY(NativeModel::make(model_, options_.target, std::move(options), plans_));
  return {};
}

Status ServedModel::divide(const DeviceOptions& devices, const Face& face) {
  const auto model =
      HONE_TRY(batch_model(model_, options_, devices, memory_limit(face), {.labels = face.labels}));
  runnable_ = model;
  devices_ = devices;
  const Graph& graph = *single_graph(model_);
  if (!graph.is_static()) return {};
  const auto made = HONE_TRY(model->devices_for(graph.input_types()));
  face.note(division_text(*model, *made, options_.target.cores));
  return {};
}

// Devices divide the values of the graph, as the request says.
Status ServedModel::shard(const DeviceOptions& devices, const Face& face) {
  const Graph* graph = single_graph(model_);
  if (graph == nullptr || !graph->is_static()) return is_open("a mesh");
  devices_ = devices;
  System system = *devices.system;
  if (devices_.gpus.empty()) system.targets.assign(1, options_.target);
  ShardCosts prices = {.costs = {}, .options = devices_.search};
  for (const Target& target : system.targets)
    prices.costs.push_back(target.gpu || options_.cost == nullptr ? analytic_cost(target)
                                                                  : options_.cost);
  devices_.system = std::make_shared<const System>(std::move(system));
  prices.options.cancel = face.cancel;
  const int64_t memory = memory_limit(face);
  const LoadParts load = [&](const DividedCode& code) {
    return ManyDevices::load(code.division, code.inputs, code.outputs, code.images,
                             load_options(code, devices_.gpus,
                                          {.names = devices_.names,
                                           .threads = threads_per_device(options_, devices_),
                                           .memory_limit = memory}));
  };
  const MeshCode made =
      HONE_TRY(mesh_code(*graph, *devices_.shards, prices, options_, devices_, memory, face, load));
  runnable_ = made.whole;
  face.note(mesh_code_text(made, options_.target.cores));
  return {};
}

Error ServedModel::is_open(std::string_view what) const {
  if (dynamic_cast<const BatchModel*>(runnable_.get()) != nullptr)
    return unsupported("{} is of one device; several have '{}'", what, excerpt(model_.name));
  if (single_graph(model_) == nullptr)
    return unsupported("'{}' is a tree of segments; {} is of a single graph", excerpt(model_.name),
                       what);
  return unsupported("{} is for sizes that are numbers; those of '{}' are open", what,
                     excerpt(model_.name));
}

Result<std::string> ServedModel::plan_text() {
  if (compilation_ == nullptr) return is_open("a plan");
  const std::scoped_lock lock(mutex_);
  return print(*HONE_TRY(compilation_->plan()));
}

Status ServedModel::save(const std::filesystem::path& path, std::string_view version) {
  if (front_end_named(path) != nullptr) {
    HONE_TRY(save_source(model_, path));
    return {};
  }
  if (!is_honec_path(path))
    return usage_error("{} does not say what to write", excerpt(path.string()))
        .with_hint("a name that ends in .honec is a compiled model, .onnx and .hone are the model");
  if (!devices_.gpus.empty())
    return unsupported("a file is for one GPU, or for CPUs; the model is on {}",
                       join(devices_.names, ", "))
        .with_hint("a model that is compiled for one device can be written");
  if (devices_.shards)
    return unsupported("a model on a mesh is written by 'hone compile MODEL --mesh ... -o {}'",
                       excerpt(path.string()));
  if (!devices_.names.empty()) return save_divided(path, version);
  if (compilation_ == nullptr) return save_open(path, version);
  const std::scoped_lock lock(mutex_);
  Image image = early() != nullptr ? HONE_TRY(early()->image()) : *HONE_TRY(compilation_->image());
  for (size_t i = 0; i < image.inputs.size(); ++i) image.inputs[i].name = model_.inputs[i].name;
  for (size_t i = 0; i < image.outputs.size(); ++i) image.outputs[i].name = model_.outputs[i].name;
  const std::optional<Gpu>& gpu = options_.target.gpu;
  const HonecProgram program = {.image = &image,
                                .plan = print(*HONE_TRY(compilation_->plan())),
                                .prices = compilation_->cost().version(),
                                .capability = gpu ? gpu->capability : 0,
                                .gpu = compilation_->gpu_kernels()};
  return write_honec(path, {&program, 1}, version);
}

Status ServedModel::save_open(const std::filesystem::path& path, std::string_view version) {
  const std::scoped_lock lock(mutex_);
  const HonecModel model = HONE_TRY(deployed_model(model_, model_, {}));
  const std::vector<const Graph*> graphs = graphs_of(model_);
  std::vector<DeployedGraph> made;
  for (size_t i = 0; i < graphs.size(); ++i)
    made.push_back( HONE_TRY(deployed_graph(*graphs[i], static_cast<uint32_t>(i), options_.target,
                                            compile_options(options_, plans_[i]), {})));
  std::vector<HonecProgram> programs;
  for (const DeployedGraph& one : made) programs.push_back(one.program());
  return write_honec(path, model, programs, version);
}

Status ServedModel::save_divided(const std::filesystem::path& path, std::string_view version) {
  const Graph& graph = *single_graph(model_);
  if (!graph.is_static())
    return unsupported(
        "a file for several devices is for sizes that are numbers; those of '{}' "
        "are open",
        excerpt(model_.name));
  CompileOptions options = compile_options(options_, nullptr);
  options.plan.threads = threads_per_device(options_, devices_);
  const DeployedDevices made =
      HONE_TRY(deployed_devices(graph, graph, devices_, options_.target, options));
  HonecModel model = HONE_TRY(deployed_model(model_, model_, {}));
  model.division = made.division;
  std::vector<HonecProgram> programs;
  for (const DeployedGraph& one : made.graphs) programs.push_back(one.program());
  return write_honec(path, model, programs, version);
}

}  // namespace hone
