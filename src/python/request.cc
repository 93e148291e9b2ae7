#include "python/request.h"

#include <pybind11/stl.h>

#include <optional>

#include "base/text.h"
#include "cache/compile_cache.h"
#include "learn/memory_budget.h"
#include "log/log.h"
#include "python/cost.h"
#include "python/gpu_array.h"
#include "python/graph.h"
#include "session/donations.h"
#include "session/gpu.h"
#include "session/inputs.h"
#include "session/known_plans.h"
#include "session/known_prices.h"

namespace hone::python {

namespace py = pybind11;

namespace {

template <class T>
std::optional<T> find(const py::dict& given, const char* name) {
  if (!given.contains(name)) return std::nullopt;
  return given[name].cast<std::optional<T>>();
}

struct Words {
  std::string source;
  bool is_bytes = false;
  GraphRef graph;                        // null: the source is a path or bytes
  Held cost;                             // null: none
  std::optional<std::string> cost_word;  // "default", "analytic", "learned", or a model's file
  std::optional<std::string> prices;     // the folder that keeps them
  bool takes_shipped = true;
  Given open;
  std::optional<int64_t> threads;
  std::optional<std::string> plan, isa, cache, log, devices;
  std::vector<std::string> batch;
  std::optional<std::string> mesh;
  std::optional<std::vector<std::string>> shard;  // words of shard_request()
  std::optional<std::string> memory;              // of a device of the mesh
  std::optional<double> budget;                   // seconds
  std::map<std::string, std::string> donate;      // outputs by input
  std::optional<bool> quick_start;
};

// A cache or log that cannot be used costs time, nothing else: the face is told.
void take_kept(const Words& words, NativeOptions& options, const Face& face) {
  if (words.cache) {
    Result<std::unique_ptr<CompileCache>> cache = CompileCache::open(*words.cache);
    if (cache.ok())
      options.cache = *std::move(cache);
    else
      face.note(fmt::format("compiled code is not kept: {}", cache.error().what()));
  }
  if (!words.log || options.device || words.plan || words.cost || words.cost_word) return;
  Result<std::unique_ptr<Log>> log = Log::open(*words.log, Log::Mode::read);
  if (log.ok())
    options.best_plan = known_plans(*std::move(log), [](std::string_view) {}, "log=None");
  else
    face.note(fmt::format("plans of the log are not used: {}", log.error().what()));
}

// As the command line chooses it.
Result<std::shared_ptr<const Cost>> known_cost(const Words& words, const Target& target,
                                               const Face& face) {
  const KnownPrices known(words.prices, words.takes_shipped);
  const auto note = [&](std::string_view line) { face.note(line); };
  const PriceLabels labels = {.without_fitted = "cost='default'",
                              .without_learned = "cost='analytic'"};
  if (words.cost_word == "default") return std::shared_ptr<const Cost>();
  if (!words.cost_word) return known.cost(target, note, labels);
  std::shared_ptr<const Cost> formula = known.analytic(target, note, labels);
  if (*words.cost_word == "analytic") return formula;
  return known.cost_by(*words.cost_word, target, std::move(formula), note);
}

Result<NativeOptions> native_options(const Words& words, const Face& face) {
  NativeOptions options;
  options.device = HONE_TRY(gpu_of(words.devices, "devices"));
  options.target = HONE_TRY(options.device ? gpu_target(*options.device) : host_target());
  options.prepare.is_for_gpu = options.device != nullptr;
  if (options.device)
    for (const auto& [option, is_given] :
         {std::pair("isa", words.isa.has_value()), std::pair("threads", words.threads.has_value()),
          std::pair("cost", words.cost || words.cost_word),
          std::pair("batch", !words.batch.empty())})
      if (is_given) return usage_error("{} is about CPUs, and devices names a GPU", option);
  if (words.isa) {
    const std::optional<Isa> isa = isa_from_name(*words.isa);
    if (!isa) return usage_error("isa: there is no '{}'", *words.isa);
    options.target = restricted(std::move(options.target), *isa);
  }
  if (words.plan) options.plans = HONE_TRY(parse_plans(*words.plan, "<plan>"));
  if (words.threads) HONE_TRY(set_threads(options, *words.threads, face.labels));
  if (words.cost)
    options.cost = cost_of(words.cost, options.target);
  else if (!options.device)
    options.cost = HONE_TRY(known_cost(words, options.target, face));
  take_kept(words, options, face);
  options.quick_start = !words.quick_start   ? QuickStart::where_sooner
                        : *words.quick_start ? QuickStart::always
                                             : QuickStart::never;
  return options;
}

// How values of the model are divided; none: they are not.
Result<std::optional<ShardRequest>> shards_of(const Words& words, const Model& model) {
  if (!words.mesh && !words.shard) return std::optional<ShardRequest>();
  const bool names_gpus = words.devices && words.devices->find("cuda") != std::string::npos;
  if (!words.batch.empty() || (words.devices && !names_gpus))
    return usage_error("devices and batch divide the batch alone; they do not go with a mesh")
        .with_hint("a mesh has parts of this machine, unless devices names GPUs");
  if (words.plan) return usage_error("a plan is of one device; a mesh has several");
  const Graph* graph = single_graph(model);
  if (graph == nullptr)
    return unsupported("'{}' is a tree of segments; a mesh divides a single graph", model.name);
  ShardRequest made = HONE_TRY(
      shard_request(words.shard.value_or(std::vector<std::string>()), words.mesh, kShardLabels));
  if (HONE_TRY(mesh_of_request(made, *graph)) == nullptr)
    return usage_error("shard needs a mesh").with_hint("mesh=hone.mesh(x=2)");
  return std::optional(std::move(made));
}

// The limits of the search for the division that a request leaves open.
Result<AutoShardOptions> search_of(const Words& words, const ShardRequest* shards,
                                   const Model& model) {
  AutoShardOptions made;
  if (!words.memory && !words.budget) return made;
  if (shards == nullptr)
    return usage_error("memory and budget are for values that a mesh divides")
        .with_hint("mesh=hone.mesh(x=2)");
  if (words.budget) {
    if (!(*words.budget > 0)) return usage_error("budget: {} is no time in seconds", *words.budget);
    if (!is_priced(*shards, *single_graph(model)))
      return usage_error("budget is for shardings that are chosen by price")
          .with_hint("shard='auto'");
    made.seconds = *words.budget;
  }
  if (!words.memory) return made;
  const Result<MemoryBudget> memory = parse_memory_budget(*words.memory);
  if (!memory.ok() || memory->kind != MemoryBudget::Kind::bytes || memory->bytes < 1)
    return usage_error("memory: '{}' is not a number of bytes", excerpt(*words.memory))
        .with_hint("'16GiB', or a number of bytes");
  made.memory = memory->bytes;
  return made;
}

Result<DeviceOptions> device_options(const Words& words, const Model& model, const Face& face) {
  if (!words.devices && !words.batch.empty()) return usage_error("batch needs devices");
  std::optional<ShardRequest> shards = HONE_TRY(shards_of(words, model));
  const AutoShardOptions search = HONE_TRY(search_of(words, shards ? &*shards : nullptr, model));
  if (!words.devices && !shards) return DeviceOptions();
  if (!shards && HONE_TRY(named_gpu_number(*words.devices, "devices"))) return DeviceOptions();
  const int64_t of_mesh =
      shards ? HONE_TRY(mesh_of_request(*shards, *single_graph(model)))->device_count() : 0;
  const std::vector<std::string> names =
      HONE_TRY(words.devices ? parse_devices(*words.devices, "devices")
                             : parse_devices(std::to_string(of_mesh), "mesh"));
  if (shards && std::ssize(names) != of_mesh)
    return usage_error("{} devices are given, and the mesh has {}", names.size(), of_mesh);
  const System system = HONE_TRY(KnownPrices(words.prices, words.takes_shipped)
                                     .system(
                                         std::ssize(names), HONE_TRY(host_target()),
                                         [&](std::string_view line) { face.note(line); }));
  DeviceOptions made = {.names = names,
                        .batch = words.batch,
                        .shards = std::move(shards),
                        .search = search,
                        .system = std::make_shared<const System>(system)};
  HONE_TRY(take_gpus(made, cuda_library()));
  return made;
}

Result<Source> source_of(const Words& words, const SourceOptions& how) {
  if (words.graph != nullptr) return Source{.model = model_of(*words.graph), .open = words.open};
  return words.is_bytes ? parse_source(words.source, "<bytes>", words.open, how)
                        : load_source(words.source, words.open, how);
}

Words words_of(const py::dict& given) {
  Words words;
  const py::object source = given["source"];
  words.is_bytes = py::isinstance<py::bytes>(source);
  if (py::isinstance<PyGraph>(source))
    words.graph = source.cast<const PyGraph&>().graph;
  else
    words.source = source.cast<std::string>();
  if (given.contains("cost") && py::isinstance<py::str>(given["cost"]))
    words.cost_word = given["cost"].cast<std::string>();
  else if (given.contains("cost") && !given["cost"].is_none())
    words.cost = hold(given["cost"]);
  if (auto sizes = find<std::map<std::string, int64_t>>(given, "sizes"))
    words.open.sizes.dims.insert(sizes->begin(), sizes->end());
  if (auto shapes = find<std::map<std::string, Ints>>(given, "shapes"))
    words.open.sizes.shapes.insert(shapes->begin(), shapes->end());
  words.threads = find<int64_t>(given, "threads");
  words.plan = find<std::string>(given, "plan");
  words.isa = find<std::string>(given, "isa");
  words.cache = find<std::string>(given, "cache");
  words.log = find<std::string>(given, "log");
  words.prices = find<std::string>(given, "prices");
  words.devices = find<std::string>(given, "devices");
  words.mesh = find<std::string>(given, "mesh");
  words.shard = find<std::vector<std::string>>(given, "shard");
  words.memory = find<std::string>(given, "memory");
  words.budget = find<double>(given, "budget");
  words.batch = find<std::vector<std::string>>(given, "batch").value_or(std::vector<std::string>());
  words.donate = find<std::map<std::string, std::string>>(given, "donate")
                     .value_or(std::map<std::string, std::string>());
  words.quick_start = find<bool>(given, "quick_start");
  words.takes_shipped = given["takes_shipped"].cast<bool>();
  return words;
}

}  // namespace

std::function<Result<Request>(const Face&)> request_of(const py::dict& given) {
  return [words = words_of(given)](const Face& face) -> Result<Request> {
    NativeOptions options = HONE_TRY(native_options(words, face));
    const SourceOptions how = {.binds_inputs = options.plans.empty(), .notice = face.notice};
    Source source = HONE_TRY(source_of(words, how));
    HONE_TRY(refuse_missing_calls(signature_of(source.model)));
    if (!words.donate.empty()) source.model = HONE_TRY(with_donations(source.model, words.donate));
    DeviceOptions devices = HONE_TRY(device_options(words, source.model, face));
    return Request{std::move(source), std::move(options), std::move(devices)};
  };
}

std::function<Result<NativeOptions>(const Face&)> plain_options_of(const py::dict& given) {
  Words words = words_of(given);
  words.plan.reset();
  words.log.reset();
  return [words = std::move(words)](const Face& face) { return native_options(words, face); };
}

}  // namespace hone::python
