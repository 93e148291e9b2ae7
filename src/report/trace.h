#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"
#include "compile/native_model.h"
#include "report/profile.h"
#include "runtime/executable.h"

// Records what a command did and when, for people to look at: the trace events that Perfetto
// (ui.perfetto.dev) and Chrome read.

namespace hone {

// The facts of each command, by name: "layers": "conv1, bn1".
using CommandFacts = std::map<std::string, std::map<std::string, std::string>>;

class Trace {
 public:
  static constexpr size_t kMost = 100'000;  // events; about 15 MB of JSON

  // The kind of an event. Texts may be names of a model: they are shortened and spelled out
  // (page_text).
  struct Label {
    std::string category;
    std::string name;
    std::map<std::string, std::string> facts = {};

    auto operator<=>(const Label&) const = default;
  };

  explicit Trace(size_t most = kMost) : most_(most) {}

  // May be called by several threads at once. Events without room are counted.
  void add(const Label& label, const Span& span);
  // The launches and copies of the program's runs, by its commands and what is known of them.
  void add(const RunTrace& runs, uint32_t program, const Profile& commands,
           const CommandFacts& facts = {});
  // A row of its own, for what no thread does: a device, a link. Its spans have this as thread.
  int32_t add_track(std::string_view name);
  void add_lost(int64_t events);

  int64_t lost() const;
  // Times begin with the first event.
  std::string json(std::string_view process) const;

 private:
  struct Event {
    uint32_t label;
    Span span;
  };
  static constexpr int32_t kFirstTrack = 1 << 24;  // above all threads of Linux
  uint32_t label_index(const Label& label);
  void add(uint32_t label, const Span& span);

  const size_t most_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<Label, uint32_t> labels_;
  std::vector<Event> events_;
  std::vector<std::string> tracks_;  // names, from kFirstTrack on
  int64_t lost_ = 0;
};

// For each command of the plan: its layers, of which later ones are counted, and the bytes that it
// moves for these sizes.
Result<CommandFacts> command_facts(const Graph& graph, const Plan& plan, const Target& target,
                                   const LayerNames& names, const Bindings& sizes = {});
// Runs of a model that keeps the sources of its code, with their times.
Status add_runs(Trace& trace, const RunTrace& runs, std::span<const UnitTimes> times,
                const NativeModel& model, const LayerNames& names);
// Runs of a compiled model, with their times.
void add_runs(Trace& trace, const RunTrace& runs, std::span<const UnitTimes> times);

}  // namespace hone
