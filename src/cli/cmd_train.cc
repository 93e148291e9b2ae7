#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/machines.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/pipelines.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/sharding.h"
#include "cli/source.h"
#include "cli/writable.h"
#include "front/arrays.h"
#include "learn/declared.h"
#include "session/training_shards.h"
#include "session/training_stages.h"

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// For "digits.train": the folder "digits".
fs::path folder_of(const Arguments& arguments) {
  if (arguments.given("output")) return arguments.text("output");
  const fs::path text = arguments.text("TRAIN");
  return text.has_extension() ? fs::path(text).replace_extension() : text / "trained";
}

// `text` is the declaration's file.
Result<TensorDataset> read_data(const Declaration& declaration, const fs::path& text,
                                const std::string& file) {
  const fs::path path = text.parent_path() / file;
  Batch rows;
  std::vector<std::string> names;
  for (NamedTensor& each : HONE_TRY(read_named_tensors(path))) {
    names.push_back(each.name);
    if (each.name == declaration.input || each.name == declaration.target)
      rows.emplace(each.name, std::move(each.tensor));
  }
  for (const std::string& name : {declaration.input, declaration.target})
    if (!rows.contains(name))
      return bad_input("there is no array '{}'; there are {}", name, join(names, ", "))
          .within(path.native());
  Result<TensorDataset> data = TensorDataset::make(rows);
  if (!data.ok()) return std::move(data).error().within(path.native());
  Status fits = check_samples(declaration, rows, path.native());
  if (!fits.ok()) return std::move(fits).error().within(text.native());
  return data;
}

std::string measured_text(const StepResult& result) {
  std::string line = fmt::format("validation {:.5g}", result.loss);
  for (const auto& [name, value] : result.metrics) line += fmt::format(", {} {:.4g}", name, value);
  return line;
}
std::string told(const EpochResult& epoch) {
  std::string line = fmt::format("epoch {}: loss {:.5g}", epoch.epoch + 1, epoch.loss);
  return epoch.validation ? fmt::format("{}, {}", line, measured_text(*epoch.validation)) : line;
}

// The network for any number of samples, with the weights of the best epoch.
Status write_network(const Declaration& declaration, const TensorDataset& data, Trainer& trainer,
                     const fs::path& folder, Console& console) {
  const fs::path best = folder / "best.safetensors";
  if (fs::exists(best)) HONE_TRY(trainer.load(best));
  const std::string path = (folder / "model.hone").native();
  if (declaration.given) {
    const Graph graph = HONE_TRY(trained_network(*declaration.given, trainer.weights()));
    return write_model(model_of(graph), path, console);
  }
  const int64_t first[] = {0};
  BatchTypes types = types_of(HONE_TRY(data.batch(first, 0)));
  for (auto& [name, type] : types) {
    Dims dims(type.dims().begin(), type.dims().end());
    dims[0] = Symbol::get("N", 1, 1 << 16);
    type = type.with_dims(dims);
  }
  const std::string_view output = declaration.input == "y" ? "output" : "y";
  const Graph graph = HONE_TRY(trainer.frozen(
      [&](Network& net) { return std::vector{declared_output(declaration, net).named(output)}; },
      types));
  return write_model(model_of(graph), path, console);
}

// The model in the place of layers; its path is relative to the text's folder.
Result<std::optional<Lifted>> read_given(const Declaration& declaration, const fs::path& text) {
  if (declaration.model.empty()) return std::optional<Lifted>();
  const auto read = [&]() -> Result<Lifted> {
    const std::string path = (text.parent_path() / declaration.model).native();
    const Source source = HONE_TRY(load_source(path));
    const Graph* graph = single_graph(source.model);
    if (graph == nullptr) return no_single_graph(source.model, "'hone train'");
    return given_network(*graph);
  };
  Result<Lifted> given = read();
  if (given.ok()) return std::optional(std::move(*given));
  return std::move(given).error().within(
      fmt::format("{}, line {}", text.native(), declaration.lines.at("model")));
}

// It schedules what the devices exchange.
Result<std::shared_ptr<const System>> system_for(const std::vector<std::string>& devices,
                                                 const Arguments& arguments, Console& console) {
  const bool is_said = arguments.given("system");
  if (devices.empty() && is_said)
    return usage_error("--system says how devices are linked; training needs --devices");
  if (devices.empty()) return std::shared_ptr<const System>();
  if (!is_said) {
    System own = HONE_TRY(own_system(std::ssize(devices), console));
    return std::make_shared<const System>(std::move(own));
  }
  DeviceOptions options = {.names = devices};
  HONE_TRY(take_system(options, HONE_TRY(load_system(arguments.text("system"), ""))));
  return options.system;
}

// Devices share the samples of each batch.
Status divide_batches(const NativeOptions& native, const Arguments& arguments,
                      TrainingOptions& options, Console& console) {
  HONE_TRY(check_mesh_search(arguments));
  for (const std::string_view option : {"micro-batches", "schedule"})
    if (arguments.given(option))
      return usage_error("--{} is of a pipeline", option).with_hint("add --pipeline 2");
  if (arguments.given("transport"))
    return usage_error("--transport is for values that a mesh divides").with_hint("add --mesh x=2");
  options.devices = HONE_TRY(given_devices(arguments));
  options.system = HONE_TRY(system_for(options.devices, arguments, console));
  const size_t devices = options.devices.size();
  if (devices == 0) return {};
  const int64_t threads = threads_per_device(native, {.names = options.devices});
  options.compile.plan.threads = threads;
  console.note("{}", training_text(devices, threads, native.target.cores));
  return {};
}

// Devices of a mesh divide the values of each graph. The folder gets the plan of a step.
Status divide_values(const NativeOptions& native, const Processes& processes,
                     const Arguments& arguments, TrainingOptions& options, Console& console) {
  const DeviceOptions devices = *HONE_TRY(device_options(arguments, processes, console));
  const auto shards = std::make_shared<TrainingShards>(*devices.shards);
  const int64_t memory = memory_limit(limited_face(arguments, console));
  const fs::path plan = options.folder / "step.shard";
  options.divide = [=, &native, &processes, &arguments,
                    &console](const Graph& graph) -> Result<std::shared_ptr<const Runnable>> {
    const ShardRequest request = HONE_TRY(shards->request_for(graph));
    const bool is_first = shards->plan().empty();
    const MeshCode made = HONE_TRY(
        mesh_code_on(processes, graph, request, native, devices, memory, arguments, console));
    shards->take(graph, made.model);
    if (is_first) {
      HONE_TRY(make_folders(plan.parent_path()));
      HONE_TRY(write_text(plan.native(), shards->plan(), console));
      console.note("{}", mesh_code_text(made, native.target.cores));
    }
    return std::shared_ptr<const Runnable>(made.whole);
  };
  return {};
}

// Stages of a pipeline compute each graph. The folder gets the plan of a step.
Status divide_nodes(const Declaration& declaration, const Processes& processes,
                    const Arguments& arguments, TrainingOptions& options, Console& console) {
  HONE_TRY(check_options_of_placed(arguments, "mesh", "--pipeline"));
  if (arguments.given("devices"))
    return usage_error("--devices shares the batch; the devices of --pipeline are of --system");
  PipelineRequest request = HONE_TRY(pipeline_request(arguments, console));
  request.options.batch = {declaration.input, declaration.target};
  const auto stages = std::make_shared<TrainingStages>(
      request.system, costs_of(request.system, console), request.options, request.plan);
  const int64_t memory = memory_limit(limited_face(arguments, console));
  const fs::path path = options.folder / "step.pipeline";
  options.divide = [=, &processes, &arguments,
                    &console](const Graph& graph) -> Result<std::shared_ptr<const Runnable>> {
    const bool is_first = !stages->has_begun();
    const PipelinePlan plan = HONE_TRY(stages->plan_for(graph));
    const PlacedModel model = HONE_TRY(pipelined_on(stages->system(), plan, graph, console));
    if (is_first) {
      HONE_TRY(make_folders(path.parent_path()));
      HONE_TRY(write_text(path.native(), print(plan), console));
      console.note("{}", model.how);
    }
    return std::shared_ptr<const Runnable>(
        HONE_TRY(model.code(processes, memory, arguments, console)));
  };
  return {};
}

Status train_on(const Processes& processes, const Arguments& arguments, Console& console) {
  const fs::path path = arguments.text("TRAIN");
  const std::string text = HONE_TRY(read_file(path, kMaxDeclaration));
  Result<Declaration> parsed = parse_declaration(text);
  if (!parsed.ok()) return Error(parsed.error()).within(path.native());
  Declaration& declaration = *parsed;
  declaration.given = HONE_TRY(read_given(declaration, path));
  const fs::path folder = folder_of(arguments);
  HONE_TRY(check_writable_path(folder.native()));

  const NativeOptions native = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(native, Console::labels()));
  const TensorDataset data = HONE_TRY(read_data(declaration, path, declaration.data));
  std::optional<TensorDataset> validation;
  if (!declaration.validation.empty())
    validation = HONE_TRY(read_data(declaration, path, declaration.validation));

  const std::unique_ptr<Progress> progress = console.progress();
  TrainingOptions options = declaration.training;
  options.folder = folder;
  options.compile = compile_options(native, nullptr);
  if (arguments.given("pipeline"))
    HONE_TRY(divide_nodes(declaration, processes, arguments, options, console));
  else if (names_sharding(arguments))
    HONE_TRY(divide_values(native, processes, arguments, options, console));
  else
    HONE_TRY(divide_batches(native, arguments, options, console));
  options.compile.cancel = &console.cancel();
  options.compile.progress = progress.get();
  options.on_epoch = [&](const EpochResult& epoch) { progress->note(told(epoch)); };
  Trainer trainer =
      HONE_TRY(Trainer::make([&](Network& net) { return declared_objective(declaration, net); },
                             data, native.target, options));
  if (declaration.given) HONE_TRY(trainer.begin_with(declaration.given->weights));
  if (arguments.given("anew")) {
    for (const char* file : {"last.safetensors", "best.safetensors"}) fs::remove(folder / file);
  } else if (HONE_TRY(trainer.resume())) {
    console.note("goes on after step {} of {}", trainer.steps(), folder.native());
  }
  if (declaration.given && validation && trainer.steps() == 0)
    console.note("before: {}", measured_text(HONE_TRY(trainer.evaluate(*validation))));
  const Console::Keeping keeping(console);
  const TrainingResult result = HONE_TRY(trainer.train(validation ? &*validation : nullptr));
  console.print("best loss {:.5g} in epoch {}{}\n", result.best_loss, result.best_epoch + 1,
                result.stopped_early ? "; ended early" : "");
  return write_network(declaration, data, trainer, folder, console);
}

}  // namespace

Status cmd_train(const Arguments& arguments, Console& console) {
  return with_processes(arguments, console, [&](const Processes& processes) {
    return train_on(processes, arguments, console);
  });
}

}  // namespace hone::cli
