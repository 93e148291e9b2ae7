#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/core.h"
#include "python/cost.h"
#include "python/error.h"
#include "python/graph.h"
#include "python/job.h"
#include "python/language.h"
#include "python/report.h"
#include "python/request.h"
#include "report/tune_text.h"
#include "session/served.h"
#include "session/sizes.h"

// hone._compiler: makes models run. It has LLVM inside, and is loaded when it is first needed.

namespace hone::python {
namespace {

namespace py = pybind11;

std::vector<Port> ports_of(std::span<const ModelValue> values) {
  std::vector<Port> ports;
  for (const ModelValue& value : values) ports.push_back({value.name, value.type});
  return ports;
}

py::list texts_of(std::span<const std::string> texts) {
  py::list all;
  for (const std::string& text : texts) all.append(text_of(text));
  return all;
}

// The result of hone.compile.
struct Compiled {
  std::shared_ptr<ServedModel> model;
  std::shared_ptr<Core> core;
  OnnxLabels labels;

  // The strings that numbers of inputs and outputs stand for.
  py::dict strings() const {
    py::dict all;
    for (const std::string& name : labels.values) all[text_of(name)] = texts_of(labels.strings);
    return all;
  }
  py::dict columns() const {
    py::dict all;
    for (const auto& [name, columns] : labels.columns) {
      py::list keys;
      for (const std::string& key : columns.names)
        keys.append(columns.are_numbers ? py::object(py::int_(py::str(key))) : text_of(key));
      all[text_of(name)] = keys;
    }
    return all;
  }

  void stop() const {
    without_gil([&] { model->stop(); });
  }
  void finish() const {
    take(without_gil([&] { return model->finish(); }));
  }
  std::string plan() const {
    return take(without_gil([&] { return model->plan_text(); }));
  }
  void save(const std::string& path) const {
    take(without_gil([&] { return model->save(path, HONE_VERSION); }));
  }
};

Compiled compile(const py::dict& given, py::handle hears) {
  const auto request = request_of(given);
  std::optional<Result<std::unique_ptr<ServedModel>>> served;
  OnnxLabels labels;
  run_beside(hears, [&](const Face& face) {
    served = [&]() -> Result<std::unique_ptr<ServedModel>> {
      Request wanted = HONE_TRY(request(face));
      labels = std::move(wanted.source.labels);
      return ServedModel::make(std::move(wanted.source), std::move(wanted.options), face,
                               wanted.devices);
    }();
  });
  Compiled compiled = {take(*std::move(served)), nullptr, std::move(labels)};
  const ServedModel& model = *compiled.model;
  compiled.core =
      std::make_shared<Core>(ports_of(model.inputs()), ports_of(model.outputs()), model.runnable(),
                             dynamic_cast<const CudaExecutable*>(model.runnable().get()));
  return compiled;
}

// The options of tuning for its log and its search.
struct TuneWords {
  double seconds = 0;
  uint64_t seed = 0;
  std::optional<std::string> search, only, log;
  Held own_search;
};

TuneWords tune_words(const py::dict& given) {
  TuneWords words;
  words.seconds = given["seconds"].cast<double>();
  words.seed = given["seed"].cast<uint64_t>();
  words.only = given["only"].cast<std::optional<std::string>>();
  words.log = given["tune_log"].cast<std::optional<std::string>>();
  const py::object search = given["search"];
  if (py::isinstance<py::str>(search))
    words.search = search.cast<std::string>();
  else
    words.own_search = hold(search);
  return words;
}

Result<Tuned> tuned(const Request& request, const TuneWords& words, const Face& face) {
  const Graph* graph = single_graph(request.source.model);
  if (graph == nullptr)
    return unsupported("'{}' is a tree of segments; hone.tune takes a single graph",
                       request.source.model.name)
        .with_hint("'hone tune' of the command line takes it");
  const Bindings sizes = HONE_TRY(size_bindings(*graph, all_sizes(request.source.open), face));
  const Graph bound = HONE_TRY(specialize(*graph, sizes));
  TuneOptions options;
  options.seconds = words.seconds;
  options.seed = words.seed;
  if (words.search) options.search = *words.search;
  if (words.own_search) options.own_search = search_of(words.own_search);
  if (words.only) HONE_TRY(try_only(options, *words.only));
  options.threads = request.options.threads.value_or(request.options.target.cores);
  options.cost = request.options.cost;
  options.cache = request.options.cache.get();
  options.version = HONE_VERSION;
  options.cancel = face.cancel;
  options.progress = face.progress;
  options.told = face.notice;
  std::unique_ptr<Log> log;
  if (words.log) log = HONE_TRY(Log::open(*words.log));
  options.log = log.get();
  return tune(bound, request.options.target, options);
}

py::dict tune_model(const py::dict& given, py::handle hears) {
  const auto request = request_of(given);
  const TuneWords words = tune_words(given);
  std::optional<Result<Tuned>> result;
  run_beside(hears, [&](const Face& face) {
    result = [&]() -> Result<Tuned> { return tuned(HONE_TRY(request(face)), words, face); }();
  });
  const Tuned found = take(*std::move(result));
  py::dict said;
  said["plan"] = print(found.plan);
  said["default_plan"] = print(found.before);
  said["gain"] = found.gain();
  said["seconds"] = found.seconds;
  said["trials"] = found.trials;
  said["measured"] = found.measured;
  said["text"] = tune_text(found);
  return said;
}

}  // namespace
}  // namespace hone::python

PYBIND11_MODULE(_compiler, module) {
  using namespace hone::python;
  module.doc() = "The compiler of hone.";
  translate_faults();
  define_core(module);
  pybind11::class_<Compiled>(module, "Compiled", pybind11::module_local())
      .def_property_readonly("name", [](const Compiled& it) { return text_of(it.model->name()); })
      .def_readonly("core", &Compiled::core)
      .def("strings", &Compiled::strings)
      .def("columns", &Compiled::columns)
      .def("plan", &Compiled::plan)
      .def("finish", &Compiled::finish)
      .def("stop", &Compiled::stop)
      .def("save", &Compiled::save);
  module.def("compile", &compile);
  module.def("tune", &tune_model);
  define_graph(module);
  define_cost(module);
  define_report(module);
  define_language(module);
}
