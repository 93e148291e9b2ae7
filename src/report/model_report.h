#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/summary.h"
#include "measure/timing.h"
#include "report/plan_picture.h"
#include "report/profile.h"
#include "report/sharding_picture.h"
#include "report/timeline_picture.h"
#include "session/native.h"
#include "session/source.h"
#include "session/stages.h"

// The content of `hone report` on a model, and the page that shows it.

namespace hone {

// A side of the comparison of times.
struct ReportedSide {
  std::string name;
  Timing timing;
  // Its time for one of the model's, from runs in turns; none: it is the model itself.
  std::optional<double> ratio = {};
  std::optional<Interval> interval = {};
};

// One graph of the model as it was planned. Missing fields could not be made or are not known.
struct ReportedGraph {
  std::string name;
  std::string sizes;  // of its symbols
  std::optional<SegmentProfile> profile = {};
  std::optional<GraphPicture> graph = {};
  std::optional<MemoryPicture> memory = {};
  std::optional<TuningPicture> tuning = {};
};

struct ReportFailure {
  std::string what;  // was to be done
  Error error;
};

struct ModelReport {
  std::string model;                  // as its user named it
  std::string version;                // of hone
  std::string time;                   // when it was made, for people
  std::vector<std::string> commands;  // that make this report, and ones that tell more
  Target target;
  int64_t threads = 1;
  // The machine's load before the measurements and after them; negative: not known.
  double load = -1, load_after = -1;

  std::optional<GraphSummary> summary = {};  // of all graphs together
  size_t graph_count = 0;
  std::vector<StageTime> stages = {};    // of compiling
  double first = 0;                      // seconds to compile and to run once; 0: did not
  std::vector<ReportedSide> sides = {};  // the model first
  int64_t peak_bytes = 0;                // of the process while it ran
  std::vector<ReportedGraph> graphs = {};
  size_t left_out_graphs = 0;
  std::optional<TimelinePicture> devices = {};   // of a system; then nothing is measured
  std::optional<ShardingPicture> sharding = {};  // of a mesh of these devices
  std::string placement = {};  // tables of a plan that places kernels on these devices; or empty

  std::vector<ReportFailure> failures = {};  // the first one decides the exit code
  std::vector<std::string> notes = {};       // what is not a fault: no rival, no log
};

// A model that is to be reported on. All of it outlives the calls.
struct ReportSubject {
  const Source& source;
  const RunInputs& inputs;
  const NativeOptions& options;
  const NativeOptions* plain = nullptr;  // of the planner's own plan, if that may be another one
  // True if the plans of `options` have turned out to be others than the planner's.
  std::function<bool()> has_other_plan = {};
  const Log* log = nullptr;
  double seconds = 2;  // for each of the measurements
  bool runs_rival = true;
  Face face = {};
};

// Summarizes all graphs of a model whose sizes were chosen.
Status summarize_into(ModelReport& report, const Model& model);
// Runs the model, measures it against its rivals, and fills the report. Failures go to
// `failures`, and the rest is shown. An error: the user has cancelled it.
Status measure_into(ModelReport& report, const ReportSubject& subject);
// For a model that did not run: the plans of its graphs, as far as they can be made.
Status plan_into(ModelReport& report, const Model& model, const NativeOptions& options,
                 const LayerNames& layers, const Log* log, const Face& face);

// Now, as ModelReport::time.
std::string time_text();

// The whole report as JSON, and as one HTML file that needs nothing else.
std::string report_json(const ModelReport& report);
std::string report_page(const ModelReport& report);

}  // namespace hone
