#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/headline.h"
#include "report/model_report.h"
#include "report/page_text.h"

// The data of the page. Long lists are arrays of arrays, in the order of the comments.

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSteps = 10'000;  // of a profile, the slowest
constexpr size_t kMostLayers = 20;     // of a step
constexpr size_t kMostPorts = 1'000;
constexpr size_t kLongText = 4'000;

Json json_of(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({interval->low, interval->high});
}

Json json_of(const ReportFailure& failure) {
  const Error& error = failure.error;
  return {{"what", page_text(failure.what)},
          {"kind", error_code_name(error.code())},
          {"code", static_cast<int>(error.code())},
          {"error", page_text(error.what(), kLongText)},
          {"where", page_text(error.where(), kLongText)},
          {"hint", page_text(error.hint(), kLongText)}};
}

Json json_of(const std::vector<NamedType>& ports) {
  Json json = Json::array();
  for (const NamedType& port : std::span(ports).first(std::min(ports.size(), kMostPorts)))
    json.push_back({page_text(port.name), page_text(port.type.to_string())});
  return json;
}

Json json_of(const GraphSummary& summary) {
  Json json = {{"name", page_text(summary.name)},
               {"inputs", json_of(summary.inputs)},
               {"outputs", json_of(summary.outputs)},
               {"nodes", summary.nodes},
               {"constants", summary.constants},
               {"parameters", summary.parameters},
               {"constant_bytes", summary.constant_bytes},
               {"operations", summary.flops},
               {"multiply_adds", summary.macs},
               {"ops", Json::object()},
               {"composites", Json::object()}};
  for (const auto& [op, count] : summary.op_counts) json["ops"][std::string(op)] = count;
  for (const auto& [op, count] : summary.composite_counts)
    json["composites"][std::string(op)] = count;
  return json;
}

Json json_of(const ReportedSide& side) {
  const Timing& timing = side.timing;
  return {{"name", page_text(side.name)},
          {"runs", timing.seconds.size()},
          {"min", timing.min()},
          {"median", timing.median()},
          {"p10", timing.quantile(0.1)},
          {"p90", timing.quantile(0.9)},
          {"p99", timing.quantile(0.99)},
          {"noise", noise_of(timing)},
          {"ratio", side.ratio ? Json(*side.ratio) : Json(nullptr)},
          {"interval", json_of(side.interval)}};
}

Json json_of(const Target& target) {
  Json caches = Json::array();
  for (const CacheLevel& cache : target.caches)
    caches.push_back({cache.bytes, cache.cores, cache.bytes_per_second});
  std::vector<std::string> extensions;
  Json peaks = Json::object();
  for (int i = 0; i < kDTypeCount; ++i)
    if (target.peaks[static_cast<size_t>(i)] > 0)
      peaks[std::string(name(static_cast<DType>(i)))] = target.peaks[static_cast<size_t>(i)];
  return {{"name", page_text(target.name.empty() ? default_name(target) : target.name)},
          {"cpu", page_text(target.cpu)},
          {"isa", name(target.isa)},
          {"cores", target.cores},
          {"caches", std::move(caches)},  // bytes, cores that share it, bytes per second
          {"memory_bytes", target.memory_bytes},
          {"memory_one_core", target.memory_one_core},
          {"memory_all_cores", target.memory_all_cores},
          {"peaks", std::move(peaks)},  // of a core
          {"fork_join", target.fork_join},
          {"measured", target.measured}};
}

Json texts(std::span<const std::string> all, size_t most) {
  Json json = Json::array();
  for (const std::string& one : all.first(std::min(all.size(), most)))
    json.push_back(page_text(one));
  return json;
}

Json json_of(const SegmentProfile& profile) {
  Json steps = Json::array();
  for (const StepTime& step :
       std::span(profile.steps).first(std::min(profile.steps.size(), kMostSteps)))
    steps.push_back({{"label", page_text(step.label())},
                     {"layers", texts(step.layers, kMostLayers)},
                     {"step", page_text(step.command)},
                     {"kernel", page_text(step.kernel)},
                     {"writes", step.writes},
                     {"algorithm", step.algorithm},
                     {"launches", step.launches},
                     {"seconds", step.seconds},
                     {"priced", step.priced},
                     {"computes", step.computes},
                     {"after", page_text(step.after)},
                     {"operations", step.operations},
                     {"peak", step.peak},
                     {"bytes", step.bytes}});
  return {{"seconds", profile.seconds},
          {"runs", profile.runs},
          {"steps", std::move(steps)},
          {"left_out", profile.steps.size() - std::min(profile.steps.size(), kMostSteps)}};
}

Json json_of(const GraphPicture& picture) {
  Json steps = Json::array(), schedules = Json::array();
  for (const GraphPicture::KernelSchedule& one : picture.schedules)
    schedules.push_back({one.hash, one.algorithm, page_text(one.text, kLongText)});
  for (const GraphPicture::Step& step : picture.steps) {
    Json nodes = Json::array();
    for (const GraphPicture::Node& node : step.nodes)
      nodes.push_back({page_text(node.name, 120), node.op, node.type, node.layout});
    steps.push_back({page_text(step.name, 120), step.kernel, texts(step.layers, kMostLayers),
                     step.schedule, step.needs, std::move(nodes)});
  }
  return {{"steps", std::move(steps)},          // name, kernel, layers, schedule, needs, nodes
          {"schedules", std::move(schedules)},  // hash, algorithm, text
          {"views", picture.views},
          {"left_out_steps", picture.left_out_steps},
          {"left_out_nodes", picture.left_out_nodes}};
}

Json json_of(const MemoryPicture& memory) {
  Json buffers = Json::array();  // name, type, begin, end, offset, bytes
  for (const MemoryPicture::Buffer& one : memory.buffers)
    buffers.push_back(
        {page_text(one.name, 120), one.type, one.begin, one.end, one.offset, one.bytes});
  return {{"buffers", std::move(buffers)}, {"left_out", memory.left_out},
          {"moments", memory.moments},     {"height", memory.height},
          {"bound", memory.bound},         {"load", memory.load},
          {"inputs", memory.inputs},       {"outputs", memory.outputs},
          {"constants", memory.constants}};
}

Json json_of(const TuningPicture& tuning) {
  Json kernels = Json::array();
  for (const TriedKernel& kernel : tuning.kernels) {
    Json points = Json::array();  // priced, measured, is it the one chosen
    for (const TriedKernel::Point& point : kernel.points)
      points.push_back({point.priced, point.measured, point.is_chosen ? 1 : 0});
    kernels.push_back(
        {{"name", kernel.name}, {"launches", kernel.launches}, {"points", std::move(points)}});
  }
  Json json = {{"kernels", std::move(kernels)},
               {"left_out", tuning.left_out},
               {"progress", tuning.progress}};
  if (tuning.best)
    json["best"] = {{"gain", tuning.best->gain},
                    {"interval", {tuning.best->low, tuning.best->high}}};
  return json;
}

Json json_of(const ReportedGraph& graph) {
  Json json = {{"name", page_text(graph.name)}, {"sizes", page_text(graph.sizes)}};
  json["profile"] = graph.profile ? json_of(*graph.profile) : Json(nullptr);
  json["graph"] = graph.graph ? json_of(*graph.graph) : Json(nullptr);
  json["memory"] = graph.memory ? json_of(*graph.memory) : Json(nullptr);
  json["tuning"] = graph.tuning ? json_of(*graph.tuning) : Json(nullptr);
  return json;
}

Json json_of(const TimelinePicture& picture) {
  Json tracks = Json::array();
  for (const TimelinePicture::Track& track : picture.tracks) {
    Json spans = Json::array();
    for (const TimelinePicture::Span& span : track.spans)
      spans.push_back({page_text(span.name, 120), span.begin, span.end});
    tracks.push_back({page_text(track.name, 120), track.is_link, std::move(spans)});
  }
  return {{"system", page_text(picture.system, 120)},
          {"seconds", picture.seconds},
          {"tracks", std::move(tracks)},  // name, is it a link, jobs: name, begin, end
          {"left_out_tracks", picture.left_out_tracks},
          {"left_out_spans", picture.left_out_spans}};
}

Json json_of(const ShardingPicture& picture) {
  Json values = Json::array(), exchanges = Json::array(), whole = Json::array();
  for (const ShardingPicture::Value& one : picture.values)
    values.push_back({page_text(one.name, 120), page_text(one.type, 120),
                      page_text(one.divided, 120), one.bytes, one.part});
  for (const ShardMessage& one : picture.exchanges)
    exchanges.push_back(
        {exchange_text(one), page_text(one.value, 120), page_text(one.node, 200), one.bytes});
  for (const WholeNode& one : picture.whole)
    whole.push_back({page_text(one.node, 200), page_text(one.reason, kLongText)});
  return {{"mesh", page_text(picture.mesh, 120)},
          {"devices", picture.devices},
          {"seconds", picture.seconds},
          {"memory", picture.memory},
          {"received", picture.received},
          {"values", std::move(values)},        // name, type, divided, bytes, of a device
          {"exchanges", std::move(exchanges)},  // kind, value, needed by, bytes
          {"whole", std::move(whole)},          // node, reason
          {"left_out_values", picture.left_out_values},
          {"left_out_exchanges", picture.left_out_exchanges},
          {"left_out_whole", picture.left_out_whole}};
}

// In the order of the stages, each with the time of all graphs together.
Json json_of(const std::vector<StageTime>& stages) {
  Json json = Json::array();
  for (const CompileStage stage : kStages) {
    double seconds = 0;
    size_t count = 0;
    for (const StageTime& one : stages)
      if (one.stage == stage) seconds += one.seconds, ++count;
    if (count > 0) json.push_back({name(stage), seconds, count});
  }
  return json;
}

template <class T>
Json all_of(const std::vector<T>& all) {
  Json json = Json::array();
  for (const T& one : all) json.push_back(json_of(one));
  return json;
}

}  // namespace

std::string report_json(const ModelReport& report) {
  Json notes = Json::array(), commands = Json::array();
  for (const std::string& note : report.notes) notes.push_back(page_text(note, kLongText));
  for (const std::string& line : report.commands) commands.push_back(page_text(line, kLongText));
  const Json json = {{"model", page_text(report.model)},
                     {"version", report.version},
                     {"time", report.time},
                     {"commands", std::move(commands)},
                     {"machine", json_of(report.target)},
                     {"threads", report.threads},
                     {"load", report.load},
                     {"load_after", report.load_after},
                     {"headline", headline(report)},
                     {"summary", report.summary ? json_of(*report.summary) : Json(nullptr)},
                     {"graph_count", report.graph_count},
                     {"stages", json_of(report.stages)},  // name, seconds, graphs
                     {"first", report.first},
                     {"sides", all_of(report.sides)},
                     {"peak_bytes", report.peak_bytes},
                     {"graphs", all_of(report.graphs)},
                     {"left_out_graphs", report.left_out_graphs},
                     {"devices", report.devices ? json_of(*report.devices) : Json(nullptr)},
                     {"placement", report.placement},
                     {"sharding", report.sharding ? json_of(*report.sharding) : Json(nullptr)},
                     {"failures", all_of(report.failures)},
                     {"notes", std::move(notes)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hone
