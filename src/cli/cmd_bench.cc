#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/bench_baseline.h"
#include "cli/bench_subject.h"
#include "cli/commands.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/devices.h"
#include "cli/inputs.h"
#include "cli/load.h"
#include "cli/native.h"
#include "cli/placed_model.h"
#include "cli/processes.h"
#include "cli/source.h"
#include "cli/tracer.h"
#include "report/bench_text.h"
#include "report/profile.h"
#include "session/denormals.h"
#include "session/duels.h"
#include "session/gpu.h"

#include <cstdlib>
#include <optional>

namespace hone::cli {
namespace {

constexpr size_t kRows = 20;  // of a profile's tables
constexpr int64_t kTracedRuns = 10;
constexpr std::string_view kBest = "best";  // all rivals

// The options of the command line.
struct Request {
  MeasureOptions measure;
  bool is_profiled = false;
  bool donates = false;
  std::string rival;           // a file of plans, or the word for engines; empty: none
  std::vector<Rival> engines;  // that are meant; empty: none
  RivalHosts hosts;
  std::string json;  // a file; "-": the standard output
};

// The rivals of other engines that a word of --vs means.
std::vector<Rival> engines_of(std::string_view word) {
  std::vector<Rival> all;
  for (const RivalRow& row : rival_rows())
    if (word == row.word || word == kBest) all.push_back(row.rival);
  return all;
}

RivalHosts hosts_of(const Arguments& arguments) {
  std::string python = arguments.text("python");
  if (python.empty())
    if (const char* const named = std::getenv("HONE_PYTHON")) python = named;
  if (python.empty()) return {};
  return {.python = std::move(python), .asks_node = false};
}

Result<Request> request_of(const Arguments& arguments) {
  Request request;
  request.measure = {.seconds = arguments.real("seconds"), .warmup = arguments.integer("warmup")};
  if (arguments.given("runs")) request.measure.runs = arguments.integer("runs");
  if (arguments.given("runs") && arguments.given("seconds"))
    return usage_error("--runs and --seconds both say how long to measure");
  request.is_profiled = arguments.given("profile");
  request.donates = arguments.given("donate");
  request.rival = arguments.text("vs");
  request.engines = engines_of(request.rival);
  request.hosts = hosts_of(arguments);
  request.json = arguments.text("json");
  if (!request.rival.empty() && request.donates)
    return usage_error("--donate changes the inputs; --vs needs equal ones for both sides");
  if (!request.engines.empty() && request.measure.runs > 0)
    return usage_error("--vs {} measures blocks of runs; --seconds says for how long",
                       request.rival);
  if (arguments.given("python") && request.engines.empty())
    return usage_error("--python is for the engines of --vs, onnxruntime and others");
  return request;
}

BenchReport report_of(const Arguments& arguments, const Source& source, const RunInputs& inputs,
                      const NativeOptions& options) {
  BenchReport report;
  report.model = arguments.text("MODEL");
  const bool is_planned = options.plans.size() == 1 && options.plans[0].plan.threads;
  report.threads = options.threads ? *options.threads
                   : is_planned    ? *options.plans[0].plan.threads
                                   : options.target.cores;
  report.target = options.target.name.empty() ? default_name(options.target) : options.target.name;
  report.isa = name(options.target.isa);
  const Graph signature = signature_of(source.model);
  for (size_t i = 0; i < inputs.tensors.size(); ++i)
    report.inputs.emplace_back(signature.name(signature.inputs()[i]),
                               inputs.tensors[i].type().to_string());
  report.sizes = inputs.bindings;
  report.load = machine_load();
  report.cores = options.target.cores;
  report.weights = weight_roof(source.model, options.target, report.threads);
  return report;
}

// ---- Against a rival ----------------------------------------------------------------------------

BenchReport::Rival rival_of(std::string name, const Duel& duel) {
  return {std::move(name), duel.b, duel.ratio, duel.interval};
}

DuelRuns runs_of(BenchSubject& subject) {
  return {.run = [&subject] { return subject.run(); },
          .leave = [&subject] { subject.unload(); },
          .place = [&subject] { return subject.load_elsewhere(); }};
}

Status measure_rival(BenchSubject& subject, BenchSubject& rival, const Request& request,
                     BenchReport& report, Console& console) {
  const Duel duel =
      HONE_TRY(duel_of_runs(request.measure, console.cancel(), runs_of(subject), runs_of(rival)));
  report.timing = duel.a;
  report.rival = rival_of(request.rival, duel);
  return {};
}

Status measure_engines(BenchSubject& subject, const BenchModel& of, const Request& request,
                       BenchReport& report, Console& console) {
  RivalDuels all = HONE_TRY(duel_with_rivals(
      {report.model, of.source.model, of.inputs.bindings, of.inputs.tensors, report.threads,
       [&] { return subject.outputs(); }},
      request.engines, request.hosts, request.measure, console.cancel(), runs_of(subject)));
  report.timing = all.duels[0].times.a;
  report.no_rivals = std::move(all.missing);
  for (RivalDuel& duel : all.duels) {
    BenchReport::Rival rival = rival_of(std::move(duel.name), duel.times);
    rival.difference = duel.difference;
    if (!report.rival)
      report.rival = std::move(rival);
    else
      report.slower_rivals.push_back(std::move(rival));
  }
  return {};
}

struct Sides {
  std::unique_ptr<BenchSubject> subject;
  std::unique_ptr<BenchSubject> rival;  // null: there is none in this process
};

Status measure_sides(Sides& sides, const BenchModel& model, const Request& request,
                     BenchReport& report, Console& console) {
  report.warmup = request.measure.warmup;
  PeakMemory::start();
  if (sides.rival != nullptr)
    HONE_TRY(measure_rival(*sides.subject, *sides.rival, request, report, console));
  else if (!request.engines.empty())
    HONE_TRY(measure_engines(*sides.subject, model, request, report, console));
  else
    report.timing =
        HONE_TRY(measure(request.measure, console.cancel(), [&] { return sides.subject->run(); }));
  report.peak_bytes = PeakMemory::bytes();
  return {};
}

Result<std::vector<SegmentProfile>> profile_again(BenchSubject& subject, const Request& request,
                                                  Console& console) {
  subject.start_profile();
  MeasureOptions again = request.measure;
  again.warmup = 0;
  const Timing timing = HONE_TRY(measure(again, console.cancel(), [&] { return subject.run(); }));
  return subject.profile(static_cast<int64_t>(timing.seconds.size()));
}

// So that figures are those of runs that nobody watches.
Status trace_again(BenchSubject& subject, Tracer& tracer, Console& console) {
  if (!tracer.is_wanted()) return {};
  subject.start_trace(tracer.runs());
  for (int64_t run = 1; run <= kTracedRuns; ++run) {
    HONE_TRY(console.cancel().check());
    HONE_TRY(tracer.timed(fmt::format("run {}", run), [&] { return subject.run(); }));
  }
  HONE_TRY(subject.add_runs(tracer.trace(), tracer.runs()));
  return tracer.write(console);
}

// ---- The command --------------------------------------------------------------------------------

Status tell(const BenchReport& report, const std::vector<SegmentProfile>& profile,
            const Request& request, Console& console) {
  const std::string warning = bench_warning(report);
  if (!warning.empty())
    console.note("{} {}", console.styled_talk(Style::red, "the figures mean little:"), warning);
  const auto json = [&] {
    return bench_json(report, request.is_profiled ? profile_json(profile) : "");
  };
  if (request.json == "-") {
    console.write(json());
    return {};
  }
  console.write(bench_text(report));
  if (request.is_profiled) console.write("\n" + profile_text(profile, kRows));
  return request.json.empty() ? Status() : write_file_atomic(request.json, json());
}

// The other file runs on the same inputs, whose names and types it has.
Result<CompiledModel> compiled_rival(const CompiledModel& model, const Request& request,
                                     const Arguments& arguments, Console& console) {
  if (!is_compiled_file(request.rival))
    return usage_error("--vs {}: a compiled model is measured beside another one, FILE.honec",
                       excerpt(request.rival))
        .with_hint(
            "to measure ONNX Runtime or a plan, name the model that the file was made of: hone "
            "bench MODEL");
  CompiledModel rival = HONE_TRY(given_compiled(request.rival, arguments, console));
  const auto types = [](const CompiledModel& one) {
    std::vector<Type> all;
    for (const Tensor& input : one.inputs.tensors) all.push_back(input.type());
    return all;
  };
  if (types(rival) != types(model))
    return bad_input("{} takes other inputs than {}", excerpt(request.rival),
                     excerpt(arguments.text("MODEL")));
  rival.inputs.tensors = model.inputs.tensors;
  return rival;
}

Status bench_compiled(const Request& request, const Arguments& arguments, Console& console) {
  Tracer tracer(arguments);
  BenchReport report;
  report.model = arguments.text("MODEL");
  report.load = machine_load();
  const CompiledRuns how = {.donates = request.donates,
                            .flushes_denormals = arguments.given("flush-denormals"),
                            .cancel = &console.cancel()};
  std::optional<CompiledModel> model, rival;
  std::unique_ptr<BenchSubject> subject, other;
  report.first = HONE_TRY(measure_once([&]() -> Status {
    model = HONE_TRY(
        tracer.timed("load", [&] { return given_compiled(report.model, arguments, console); }));
    subject = HONE_TRY(compiled_subject(*model, how));
    return subject->run();
  }));
  if (!request.rival.empty()) {
    rival = HONE_TRY(compiled_rival(*model, request, arguments, console));
    other = HONE_TRY(compiled_subject(*rival, how));
  }
  const HonecFile::Program& program = model->chosen();
  report.threads = model->runnable->threads();
  const CudaDevice* const gpu = model->loading.device.get();
  const Target target = HONE_TRY(gpu != nullptr ? gpu_target(*gpu) : host_target());
  report.target = gpu != nullptr ? target.cpu : default_name(target);
  report.cores = target.cores;
  report.isa = gpu != nullptr ? needs_text(program) : std::string(name(program.needs.isa));
  for (size_t i = 0; i < model->inputs.tensors.size(); ++i)
    report.inputs.emplace_back(model->file.inputs()[i].name,
                               model->inputs.tensors[i].type().to_string());
  if (request.json != "-") console.write(bench_title(report));
  report.warmup = request.measure.warmup;
  PeakMemory::start();
  if (other != nullptr)
    HONE_TRY(measure_rival(*subject, *other, request, report, console));
  else
    report.timing =
        HONE_TRY(measure(request.measure, console.cancel(), [&] { return subject->run(); }));
  report.peak_bytes = PeakMemory::bytes();
  console.note("loaded and run once in {}", format_seconds(report.first));
  std::vector<SegmentProfile> profile;
  if (request.is_profiled) profile = HONE_TRY(profile_again(*subject, request, console));
  HONE_TRY(trace_again(*subject, tracer, console));
  return tell(report, profile, request, console);
}

Status bench_divided(const Request& request, const DeviceOptions& devices,
                     const Processes& processes, const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_verify(arguments));
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  const Source source =
      HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
  const RunInputs inputs = HONE_TRY(inputs_on(devices, source, arguments, Engine::native, console));
  HONE_TRY(check_all_chosen(inputs));
  BenchReport report = report_of(arguments, source, inputs, options);
  report.weights.reset();  // each device reads its part from a memory of its own
  std::vector<Tensor> parts;
  std::optional<DividedSubject> subject;
  report.first = HONE_TRY(measure_once([&]() -> Status {
    const DividedModel divided = HONE_TRY(
        divided_model(source.model, inputs, options, devices, processes, arguments, console));
    report.threads = divided.devices->threads();
    parts = divided.parts;
    subject.emplace(divided.devices, divided.model != nullptr, parts, &console.cancel());
    return subject->run();
  }));
  if (request.json != "-") console.write(bench_title(report));
  report.warmup = request.measure.warmup;
  subject->start_times();
  PeakMemory::start();
  report.timing =
      HONE_TRY(measure(request.measure, console.cancel(), [&] { return subject->run(); }));
  report.peak_bytes = PeakMemory::bytes();
  report.devices = subject->mean_times();
  console.note("compiled and run once in {}", format_seconds(report.first));
  return tell(report, {}, request, console);
}

// The runs of a model whose stages lie on devices of their own.
Status bench_pipeline(const Request& request, const PipelinePlan& plan, const Processes& processes,
                      const Arguments& arguments, Console& console) {
  for (const std::string_view other : {"vs", "profile", "donate"})
    if (arguments.given(other)) return usage_error("--{} does not go with --pipeline", other);
  HONE_TRY(refuse_verify(arguments));
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  const Source source =
      HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = true}));
  const RunInputs inputs =
      HONE_TRY(inputs_on(std::nullopt, source, arguments, Engine::native, console));
  HONE_TRY(check_all_chosen(inputs));
  BenchReport report = report_of(arguments, source, inputs, options);
  report.weights.reset();  // each device reads its part from a memory of its own
  std::shared_ptr<const PlacedCode> code;
  const auto run = [&]() -> Status {
    HONE_TRY(code->run(inputs.tensors, {.cancel = &console.cancel()}));
    return {};
  };
  std::string how;
  report.first = HONE_TRY(measure_once([&]() -> Status {
    const PlacedModel placed = HONE_TRY(pipelined_model(plan, source, inputs, arguments, console));
    code = HONE_TRY(placed.code(processes, inputs.memory_left.native, arguments, console));
    how = placed.how;
    return run();
  }));
  report.threads = code->threads();
  if (request.json != "-") console.write(bench_title(report));
  report.warmup = request.measure.warmup;
  PeakMemory::start();
  report.timing = HONE_TRY(measure(request.measure, console.cancel(), run));
  report.peak_bytes = PeakMemory::bytes();
  console.note("{}, compiled and run once in {}", how, format_seconds(report.first));
  return tell(report, {}, request, console);
}

// Says what flushing changed, or that it may make the model faster.
Status note_denormals(const BenchModel& of, Console& console) {
  if (of.options.prepare.flushes_denormals) {
    const std::vector<Tensor> flushed =
        HONE_TRY(run_native(of.source.model, of.inputs, of.options, console.face()));
    console.note("{}", HONE_TRY(flush_error(flushed, of.source.model, of.inputs, of.options,
                                            output_names(of.source.model), console.face())));
    return {};
  }
  const std::string note = denormals_note(count_denormals(of.source.model), "--flush-denormals");
  if (!note.empty()) console.note("{}", note);
  return {};
}

Status bench_on(const Processes& processes, const Request& request, const Arguments& arguments,
                Console& console) {
  if (const std::optional<PipelinePlan> pipeline = HONE_TRY(given_pipeline(arguments)))
    return names_compiled(arguments)
               ? bench_compiled(request, arguments, console)
               : bench_pipeline(request, *pipeline, processes, arguments, console);
  if (const std::optional<DeviceOptions> devices =
          HONE_TRY(device_options(arguments, processes, console)))
    return bench_divided(request, *devices, processes, arguments, console);
  if (names_compiled(arguments)) return bench_compiled(request, arguments, console);
  HONE_TRY(refuse_verify(arguments));
  Tracer tracer(arguments);
  NativeOptions options =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::timed));
  tracer.watch(options);
  HONE_TRY(check_runs_here(options, Console::labels()));
  std::optional<NativeOptions> rival_options;
  if (!request.rival.empty() && request.engines.empty()) {
    rival_options = HONE_TRY(native_options(arguments, console));
    rival_options->plan_seed.reset();
    HONE_TRY(take_plans(*rival_options, request.rival, "vs", arguments, console));
  }
  const Source source = HONE_TRY(tracer.timed(
      "read",
      [&] {
        return given_source(arguments.text("MODEL"), arguments, console,
                            {.runs_inputs = !rival_options});
      }));
  if (request.donates && options.prepare.flushes_denormals)
    return usage_error("--donate does not go with --flush-denormals, which runs the inputs twice");
  if (request.donates && single_graph(source.model) == nullptr)
    return no_single_graph(source.model, "--donate");
  const RunInputs inputs = HONE_TRY(
      given_inputs(signature_of(source.model), source.open, arguments, Engine::native, console));
  HONE_TRY(check_all_chosen(inputs));

  BenchReport report = report_of(arguments, source, inputs, options);
  // Both sides run on the same threads.
  if (rival_options)
    options.team = rival_options->team = HONE_TRY(Team::create({.threads = options.target.cores}));
  const BenchModel model = {source,
                            inputs,
                            options,
                            console.face(),
                            request.is_profiled || tracer.is_wanted(),
                            !request.rival.empty()};
  Sides sides;
  sides.subject = HONE_TRY(request.donates ? donating_subject(model) : plain_subject(model));
  report.first = HONE_TRY(measure_once([&] { return sides.subject->run(); }));
  if (rival_options) {
    sides.rival =
        HONE_TRY(plain_subject({source, inputs, *rival_options, console.face(), false, true}));
    HONE_TRY(sides.rival->run());
  }
  if (request.json != "-") console.write(bench_title(report));
  HONE_TRY(measure_sides(sides, model, request, report, console));
  console.note("compiled and run once in {}", format_seconds(report.first));
  HONE_TRY(note_denormals(model, console));
  std::vector<SegmentProfile> profile;
  if (request.is_profiled) profile = HONE_TRY(profile_again(*sides.subject, request, console));
  HONE_TRY(trace_again(*sides.subject, tracer, console));
  return tell(report, profile, request, console);
}

}  // namespace

Status cmd_bench(const Arguments& arguments, Console& console) {
  if (arguments.given("baseline")) return check_baseline(arguments, console);
  if (!arguments.given("MODEL"))
    return usage_error("bench needs a MODEL").with_hint("hone bench zoo:mlp");
  if (arguments.given("record")) return record_sessions(arguments, console);
  for (const std::string_view option : {"sessions", "fail-below"})
    if (arguments.given(option))
      return usage_error("--{} is for --{}", option, option == "sessions" ? "record" : "baseline");
  const Request request = HONE_TRY(request_of(arguments));
  HONE_TRY(Tracer::check(arguments));
  return with_processes(arguments, console, [&](const Processes& processes) {
    return bench_on(processes, request, arguments, console);
  });
}

}  // namespace hone::cli
