#include "report/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "program/tasks.h"
#include "report/page_text.h"

namespace hone {
namespace {

constexpr size_t kMostText = 120;  // bytes of a name
constexpr size_t kMostTracedLayers = 6;

// With its quotes.
std::string json_text(std::string_view text) {
  return nlohmann::json(page_text(text, kMostText)).dump();
}

// The fields that all events with the label share.
std::string label_json(const Trace::Label& label) {
  std::vector<std::string> facts;
  for (const auto& [name, fact] : label.facts)
    facts.push_back(fmt::format("{}:{}", json_text(name), json_text(fact)));
  return fmt::format(R"("name":{},"cat":{},"args":{{{}}})", json_text(label.name),
                     json_text(label.category), join(facts, ","));
}

}  // namespace

uint32_t Trace::label_index(const Label& label) {
  return labels_.try_emplace(label, static_cast<uint32_t>(labels_.size())).first->second;
}

void Trace::add(uint32_t label, const Span& span) {
  if (events_.size() < most_)
    events_.push_back({label, span});
  else
    ++lost_;
}

void Trace::add(const Label& label, const Span& span) {
  std::lock_guard lock(mutex_);
  add(label_index(label), span);
}

void Trace::add(const RunTrace& runs, uint32_t program, const Profile& commands,
                const CommandFacts& facts) {
  std::lock_guard lock(mutex_);
  std::vector<uint32_t> labels;
  for (const CommandTime& command : commands) {
    const bool is_copy = command.kernel.empty();
    Label label = {is_copy ? "copy" : "launch",
                   is_copy ? "copy" : command.kernel,
                   {{"command", command.command}}};
    if (const auto found = facts.find(command.command); found != facts.end())
      label.facts.insert(found->second.begin(), found->second.end());
    labels.push_back(label_index(label));
  }
  for (const RunTrace::Entry& entry : runs.entries)
    if (entry.program == program) add(labels[entry.command], entry.span);
}

int32_t Trace::add_track(std::string_view name) {
  std::lock_guard lock(mutex_);
  tracks_.emplace_back(name);
  return kFirstTrack + static_cast<int32_t>(tracks_.size()) - 1;
}

void Trace::add_lost(int64_t events) {
  std::lock_guard lock(mutex_);
  lost_ += events;
}

int64_t Trace::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

std::string Trace::json(std::string_view process) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> labels(labels_.size());
  for (const auto& [label, index] : labels_) labels[index] = label_json(label);
  int64_t start = INT64_MAX;
  std::set<int32_t> threads;
  for (const Event& event : events_) {
    start = std::min(start, event.span.begin);
    threads.insert(event.span.thread);
  }
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"left_out\":{}}},\"traceEvents\":[\n"
      R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})",
      lost_, json_text(process));
  int64_t number = 0;
  for (int32_t thread : threads) {
    const bool is_track = thread >= kFirstTrack;
    const std::string name = is_track ? tracks_[static_cast<size_t>(thread - kFirstTrack)]
                                      : fmt::format("thread {}", ++number);
    text += fmt::format(
        ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}"
        "}",
        thread, json_text(name));
  }
  for (const Event& event : events_) {
    const Span& span = event.span;
    text += fmt::format(",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},{}}}",
                        span.thread, 1e-3 * static_cast<double>(span.begin - start),
                        1e-3 * static_cast<double>(span.end - span.begin), labels[event.label]);
  }
  return text + "\n]}\n";
}

Result<CommandFacts> command_facts(const Graph& graph, const Plan& plan, const Target& target,
                                   const LayerNames& names, const Bindings& sizes) {
  CommandFacts facts;
  for (const auto& [command, kernel] : HONE_TRY(planned_kernels(graph, plan))) {
    std::vector<std::string> of = layers_of(kernel, names);
    if (of.empty()) continue;
    if (of.size() > kMostTracedLayers) {
      const size_t more = of.size() - kMostTracedLayers;
      of.resize(kMostTracedLayers);
      of.push_back(fmt::format("{} more", more));
    }
    facts[command]["layers"] = join(of, ", ");
  }
  const auto editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  const Tasks tasks = tasks_of(*editor);
  for (const auto& [command, task] : launches_by_name(tasks))
    if (const Dim moved = task->moved.bind(sizes); moved.is_static() && !moved.is(0))
      facts[std::string(command)]["moves"] = format_bytes(moved.value());
  return facts;
}

Status add_runs(Trace& trace, const RunTrace& runs, std::span<const UnitTimes> times,
                const NativeModel& model, const LayerNames& names) {
  for (size_t i = 0; i < times.size(); ++i)
    if (const std::optional<NativeCode::Made> made = model.made(times[i]))
      trace.add(runs, static_cast<uint32_t>(i), times[i].times,
                HONE_TRY(command_facts(*HONE_TRY(made->from->graph()),
                                       *HONE_TRY(made->from->plan()), made->from->target(), names,
                                       made->sizes)));
  trace.add_lost(runs.lost);
  return {};
}

void add_runs(Trace& trace, const RunTrace& runs, std::span<const UnitTimes> times) {
  for (size_t i = 0; i < times.size(); ++i)
    trace.add(runs, static_cast<uint32_t>(i), times[i].times);
  trace.add_lost(runs.lost);
}

}  // namespace hone
