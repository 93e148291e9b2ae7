#include "python/report.h"

#include <pybind11/stl.h>

#include <cstdlib>

#include "log/log.h"
#include "python/core.h"
#include "python/error.h"
#include "python/job.h"
#include "python/request.h"
#include "report/model_report.h"
#include "session/inputs.h"

namespace hone::python {
namespace {

namespace py = pybind11;

struct ReportWords {
  std::string name;     // of the model, for people
  std::string command;  // that makes the report again
  double seconds = 2;
  bool runs_rival = false;
  bool has_plan = false;
  std::optional<std::string> log;
};

ModelReport start_report(const ReportWords& words, const NativeOptions& options) {
  ModelReport report;
  report.model = words.name;
  report.version = HONE_VERSION;
  report.time = time_text();
  report.commands = {words.command};
  report.target = options.target;
  report.threads = options.threads.value_or(options.target.cores);
  if (double load = 0; getloadavg(&load, 1) == 1) report.load = load;
  return report;
}

// Failures after the model is read stand in the report.
Result<ModelReport> report_on(Request& request, NativeOptions& plain, const ReportWords& words,
                              const Face& face) {
  ModelReport report = start_report(words, request.options);
  const Source& source = request.source;
  std::unique_ptr<Log> log;
  if (words.log) {
    Result<std::unique_ptr<Log>> found = Log::open(*words.log, Log::Mode::read);
    if (found.ok())
      log = *std::move(found);
    else
      report.notes.push_back(fmt::format("The log is not used: {}", found.error().what()));
  }
  const RunInputs inputs =
      HONE_TRY(resolve_inputs(signature_of(source.model), source.open, 0, Engine::native, face));
  HONE_TRY(summarize_into(report, HONE_TRY(with_sizes(source.model, inputs.bindings))));
  request.options.team = plain.team =
      HONE_TRY(Team::create({.threads = request.options.target.cores}));
  auto is_of_log = std::make_shared<bool>(false);
  if (request.options.best_plan)
    request.options.best_plan = [ask = request.options.best_plan, is_of_log](
                                    const Graph& graph, const Target& target, int64_t threads) {
      std::optional<Plan> plan = ask(graph, target, threads);
      *is_of_log = *is_of_log || plan.has_value();
      return plan;
    };
  HONE_TRY(measure_into(report, {.source = source,
                                 .inputs = inputs,
                                 .options = request.options,
                                 .plain = &plain,
                                 .has_other_plan = [&] { return words.has_plan || *is_of_log; },
                                 .log = log.get(),
                                 .seconds = words.seconds,
                                 .runs_rival = words.runs_rival,
                                 .face = face}));
  if (double load = 0; getloadavg(&load, 1) == 1) report.load_after = load;
  return report;
}

py::dict report(const py::dict& given, py::handle hears) {
  const auto request = request_of(given);
  const auto plain_options = plain_options_of(given);
  const ReportWords words = {.name = given["name"].cast<std::string>(),
                             .command = given["command"].cast<std::string>(),
                             .seconds = given["seconds"].cast<double>(),
                             .runs_rival = given["rival"].cast<bool>(),
                             .has_plan = !given["plan"].is_none(),
                             .log = given["log"].cast<std::optional<std::string>>()};
  std::optional<Result<ModelReport>> made;
  std::string page;
  run_beside(hears, [&](const Face& face) {
    made = [&]() -> Result<ModelReport> {
      Request wanted = HONE_TRY(request(face));
      NativeOptions plain = HONE_TRY(plain_options(face));
      return report_on(wanted, plain, words, face);
    }();
    if (made->ok()) page = report_page(**made);
  });
  const ModelReport found = take(*std::move(made));
  py::dict said;
  said["html"] = page;
  std::vector<std::string> failures;
  for (const ReportFailure& failure : found.failures)
    failures.push_back(fmt::format("cannot {}: {}", failure.what, failure.error.to_string()));
  said["failures"] = failures;
  return said;
}

}  // namespace

void define_report(py::module_& module) { module.def("report", &report); }

}  // namespace hone::python
