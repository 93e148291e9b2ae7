#include "report/model_report.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "session/cpu_kernels.h"
#include "session/duels.h"
#include "target/probe.h"

namespace hone {
namespace {

constexpr size_t kMostGraphs = 12;  // with pictures, the slowest
constexpr size_t kMostProfiles = 100;
constexpr size_t kMostNotedKernels = 10;  // on the CPU beside a GPU
constexpr double kPeakSeconds = 0.1;

bool is_cancelled(const Error& error) { return error.code() == ErrorCode::interrupted; }

std::string one_line(const Error& error) {
  return error.hint().empty() ? error.what() : fmt::format("{}; {}", error.what(), error.hint());
}

std::string bound_sizes_text(const Bindings& sizes) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : sizes)
    texts.push_back(fmt::format("{} = {}", name, size.to_string()));
  return join(texts, ", ");
}

// Fills a report, step by step; a step that fails is noted, unless the user has ended it.
class Reporter {
 public:
  explicit Reporter(ModelReport& report) : report_(report) {}

  // True if the step is done.
  template <class Step>
  Result<bool> attempt(std::string_view what, const Step& step) {
    Status done = step();
    if (done.ok()) return true;
    if (is_cancelled(done.error())) return std::move(done).error();
    report_.failures.push_back({std::string(what), std::move(done).error()});
    return false;
  }

 private:
  ModelReport& report_;
};

// Draws a graph and its plan, each part on its own.
Status draw(ReportedGraph& drawn, Compilation& code, const Bindings& sizes, const Target& target,
            const LayerNames& layers, const Log* log, ModelReport& report) {
  Reporter reporter(report);
  Graph graph;
  if (!HONE_TRY(reporter.attempt(
          "prepare the graph",
          [&]() -> Status {
            graph = *HONE_TRY(code.graph());
            if (!sizes.empty()) graph = HONE_TRY(specialize(graph, sizes));
            return {};
          })))
    return {};
  const Plan none;
  const Plan* plan = &none;
  const bool is_planned = HONE_TRY(reporter.attempt(
      "plan the graph",
      [&]() -> Status {
        plan = HONE_TRY(code.plan());
        return {};
      }));
  HONE_TRY(reporter.attempt(
      "draw the graph",
      [&]() -> Status {
        // A plan for all sizes names the graph with its sizes open.
        drawn.graph = HONE_TRY(picture_of(*HONE_TRY(code.graph()), *plan, layers));
        return {};
      }));
  if (is_planned && target.gpu)
    HONE_TRY(reporter.attempt(
        "compile the kernels",
        [&]() -> Status {
          const std::string share = gpu_share_text(HONE_TRY(gpu_share(code)), kMostNotedKernels);
          report.notes.push_back(fmt::format("{}: {}", drawn.name, trim(share)));
          return {};
        }));
  // With open sizes, the places of values are found when the sizes are known.
  if (!is_planned || !HONE_TRY(code.graph())->is_static()) return {};
  HONE_TRY(reporter.attempt(
      "draw the memory",
      [&]() -> Status {
        drawn.memory = HONE_TRY(memory_picture(graph, *plan));
        return {};
      }));
  if (log == nullptr) return {};
  HONE_TRY(reporter.attempt(
      "read the log",
      [&]() -> Status {
        TuningPicture tuning = HONE_TRY(tuning_picture(graph, *plan, target, code.cost(), *log));
        if (!tuning.kernels.empty() || tuning.best) drawn.tuning = std::move(tuning);
        return {};
      }));
  return {};
}

ReportedSide side_of(std::string name, const Duel& duel) {
  return {std::move(name), duel.b, duel.ratio, duel.interval};
}

class Measurement {
 public:
  Measurement(ModelReport& report, const ReportSubject& subject)
      : report_(report), subject_(subject), reporter_(report) {}

  Status measure_all() {
    const bool runs =
        HONE_TRY(reporter_.attempt("compile and run the model", [&] { return start(); }));
    if (!runs)
      return plan_into(report_,
                       HONE_TRY(with_sizes(subject_.source.model, subject_.inputs.bindings)),
                       subject_.options, subject_.source.layers, subject_.log, subject_.face);
    HONE_TRY(reporter_.attempt("measure the model", [&] { return measure_sides(); }));
    if (subject_.runs_rival) HONE_TRY(measure_rival());
    HONE_TRY(reporter_.attempt("measure each kernel", [&] { return profile(); }));
    return {};
  }

 private:
  const CancelToken& cancel() const {
    static const CancelToken never;
    return subject_.face.cancel == nullptr ? never : *subject_.face.cancel;
  }
  MeasureOptions options() const { return {.seconds = subject_.seconds}; }

  Status run() { return run(*native_); }
  Status run(const Runnable& model, std::vector<UnitTimes>* times = nullptr) const {
    HONE_TRY(model.run(subject_.inputs.tensors, {.cancel = subject_.face.cancel}, times));
    return {};
  }
  DuelRuns runs_of(const NativeModel& model) {
    return {.run = [this, &model] { return run(model); },
            .leave = [&model] { model.code().unload(); },
            .place = [this, &model] { return model.code().load_elsewhere(rng_); }};
  }

  Status start() {
    const auto compile = [&]() -> Status {
      native_ = HONE_TRY(native_model(subject_.source.model, subject_.inputs, subject_.options,
                                      subject_.face, noting(report_.stages)));
      native_->code().keep_sources();
      return run();
    };
    report_.first = HONE_TRY(measure_once(compile));
    return {};
  }

  // The model; and, if it has another plan than the planner's, that one in turns.
  Status measure_sides() {
    PeakMemory::start();
    if (subject_.plain == nullptr || !subject_.has_other_plan()) {
      report_.sides.push_back({"hone", HONE_TRY(hone::measure(
                                           options(), cancel(), [&] { return run(); }))});
      report_.peak_bytes = PeakMemory::bytes();
      report_.notes.push_back(
          "The plan is the planner's own, so there is no other to compare with.");
      return {};
    }
    const std::shared_ptr<const NativeModel> plain = HONE_TRY(
        native_model(subject_.source.model, subject_.inputs, *subject_.plain, subject_.face));
    plain->code().keep_sources();
    HONE_TRY(run(*plain));
    const Duel duel =
        HONE_TRY(duel_of_runs(options(), cancel(), runs_of(*native_), runs_of(*plain)));
    report_.sides.push_back({"hone", duel.a});
    report_.sides.push_back(side_of("the planner's plan", duel));
    report_.peak_bytes = PeakMemory::bytes();
    return {};
  }

  // The model is not at fault if ONNX Runtime is missing, or does not take it.
  Status measure_rival() {
    const Rival rival = Rival::onnxruntime;
    Result<RivalDuels> all =
        duel_with_rivals({report_.model, subject_.source.model, subject_.inputs.bindings,
                          subject_.inputs.tensors, report_.threads},
                         {&rival, 1}, {}, options(), cancel(), runs_of(*native_));
    if (all.ok())
      report_.sides.push_back(side_of(all->duels[0].name, all->duels[0].times));
    else if (is_cancelled(all.error()))
      return std::move(all).error();
    else
      report_.notes.push_back("Not compared with ONNX Runtime: " + one_line(all.error()));
    return {};
  }

  Status profile() {
    std::vector<UnitTimes> times;
    MeasureOptions again = options();
    again.warmup = 0;
    const Timing timing =
        HONE_TRY(hone::measure(again, cancel(), [&] { return run(*native_, &times); }));
    const auto runs = static_cast<int64_t>(timing.seconds.size());
    // Estimates are lower than what a processor that clocks up reaches. Plans stay those of the
    // target as it is.
    Target now = subject_.options.target;
    if (!now.gpu) now = HONE_TRY(with_peaks_of_now(now, kPeakSeconds, subject_.face.cancel));
    report_.target.peaks = now.peaks;
    struct One {
      NativeCode::Made made;
      SegmentProfile profile;
    };
    std::vector<One> all;
    for (const UnitTimes& one : times) {
      std::optional<NativeCode::Made> made = native_->made(one);
      if (!made) continue;
      Compilation& from = *made->from;
      SegmentProfile profile =
          HONE_TRY(profile_of(one.times, runs, *HONE_TRY(from.graph()), *HONE_TRY(from.plan()), now,
                              from.cost(), subject_.source.layers, made->sizes));
      profile.runs = static_cast<double>(one.runs) / static_cast<double>(runs);
      all.push_back({*std::move(made), std::move(profile)});
    }
    std::ranges::sort(all, std::greater<>(), [](const One& one) { return one.profile.seconds; });
    for (One& one : all) {
      if (report_.graphs.size() == kMostProfiles) {
        ++report_.left_out_graphs;
        continue;
      }
      ReportedGraph& graph = report_.graphs.emplace_back();
      graph.name = one.made.name;
      graph.sizes = bound_sizes_text(one.made.sizes);
      graph.profile = std::move(one.profile);
      if (report_.graphs.size() <= kMostGraphs)
        HONE_TRY(draw(graph, *one.made.from, one.made.sizes, subject_.options.target,
                      subject_.source.layers, subject_.log, report_));
    }
    return {};
  }

  ModelReport& report_;
  const ReportSubject& subject_;
  Reporter reporter_;
  std::shared_ptr<const NativeModel> native_;
  Rng rng_ = Rng(0);  // of places in memory
};

}  // namespace

Status summarize_into(ModelReport& report, const Model& model) {
  Reporter reporter(report);
  HONE_TRY(reporter.attempt(
      "describe the model",
      [&]() -> Status {
        GraphSummary all = HONE_TRY(summarize(signature_of(model)));
        all.name = model.name;
        const bool is_single = single_graph(model) != nullptr;
        for (const Graph* graph : graphs_of(model)) {
          const GraphSummary one = HONE_TRY(summarize(*graph));
          ++report.graph_count;
          if (is_single) {
            all = one;
            continue;
          }
          all.nodes += one.nodes;
          for (const auto& [op, count] : one.op_counts) all.op_counts[op] += count;
          for (const auto& [op, count] : one.composite_counts) all.composite_counts[op] += count;
          all.constants += one.constants;
          all.parameters += one.parameters;
          all.constant_bytes += one.constant_bytes;
          all.flops += one.flops;
          all.macs += one.macs;
        }
        all.outputs.clear();
        for (const ModelValue& output : model.outputs)
          all.outputs.push_back({output.name, output.type});
        report.summary = std::move(all);
        return {};
      }));
  return {};
}

Status measure_into(ModelReport& report, const ReportSubject& subject) {
  return Measurement(report, subject).measure_all();
}

Status plan_into(ModelReport& report, const Model& model, const NativeOptions& options,
                 const LayerNames& layers, const Log* log, const Face& face) {
  Reporter reporter(report);
  const std::vector<const Graph*> graphs = graphs_of(model);
  std::vector<const PlacedPlan*> plans;
  if (!HONE_TRY(reporter.attempt(
          "find the graphs' plans",
          [&]() -> Status {
            plans = HONE_TRY(plans_of(graphs, model, {}, options, face.labels));
            return {};
          })))
    plans.assign(graphs.size(), nullptr);
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (report.graphs.size() == kMostGraphs) {
      report.left_out_graphs += graphs.size() - i;
      break;
    }
    ReportedGraph& drawn = report.graphs.emplace_back();
    drawn.name = graphs[i]->name();
    Compilation code(*graphs[i], options.target, compile_options(options, plans[i], face));
    HONE_TRY(draw(drawn, code, {}, options.target, layers, log, report));
  }
  return {};
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

}  // namespace hone
