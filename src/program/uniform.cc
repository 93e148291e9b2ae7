#include "program/uniform.h"

#include <algorithm>
#include <map>
#include <string>

#include "program/frame.h"

namespace hone {

namespace program {
namespace {

// For how many devices a value is the same on each of them: 0: for any number. A value that differs
// is the same on each of one device.
struct Same {
  int32_t devices = 0;
  std::string why = {};  // it differs

  bool operator==(const Same& other) const { return devices == other.devices; }
};

// The result for a value that is made of both.
Same both(const Same& a, const Same& b) {
  if (a.devices == 0 || b.devices == 1) return b;
  if (b.devices == 0 || a.devices == b.devices || a.devices == 1) return a;
  return {1, fmt::format("groups of {} and of {} devices", a.devices, b.devices)};
}

// The result for what a collective gives its members.
Same gathered(const SpmdCollective& spmd, const Same& from) {
  const bool is_for_all =
      spmd.kind == CollectiveKind::all_reduce || spmd.kind == CollectiveKind::all_gather;
  if (!is_for_all) return {1, fmt::format("'{}'", to_string(spmd))};
  const bool is_of_all = spmd.groups.empty() || std::ssize(spmd.groups) == spmd.group_size;
  // Groups of 2 and then of 4 are for runs on a multiple of 4: only 4 devices are sure to agree.
  const bool is_wider =
      from.devices > 1 && spmd.group_size > from.devices && spmd.group_size % from.devices == 0;
  if (from.devices != 1 && !(is_of_all && is_wider)) return from;
  if (is_of_all) return {spmd.group_size, fmt::format("'{}'", to_string(spmd))};
  return {1, fmt::format("'{}', of several groups", to_string(spmd))};
}

// Frames that several commands run are looked at once for all of them. The values of all frames
// begin as the same on all devices, and each pass takes back what does not hold.
class Agreement {
 public:
  explicit Agreement(const Program& program) : program_(program) {
    for (const FrameRef& frame : all_frames(program.main)) {
      Ports& ports = ports_[frame.get()];
      ports.inputs.resize(buffers_of(*frame, Role::input).size());
      ports.outputs.resize(buffers_of(*frame, Role::output).size());
    }
    for (size_t i = 0; i < ports_[program.main.get()].inputs.size(); ++i) {
      const Buffer& input = program.main->buffers[i];
      ports_[program.main.get()].inputs[i] = {1, fmt::format("input %{}", input.name)};
    }
  }

  Result<int32_t> run() {
    const std::vector<FrameRef> frames = all_frames(program_.main);
    do {
      is_changed_ = false;
      for (size_t i = frames.size(); i-- > 0;) HONE_TRY(look_at(*frames[i], false));
    } while (is_changed_);
    Same all;
    for (const FrameRef& frame : frames) {
      const Result<Same> one = look_at(*frame, true);
      if (!one.ok()) return Error(one.error()).within(fmt::format("frame '{}'", frame->name));
      all = both(all, *one);
    }
    if (all.devices == 1 && !all.why.empty())
      return unsupported("devices may not agree on which branch is taken: {}", all.why);
    return all.devices;
  }

 private:
  struct Ports {
    std::vector<Same> inputs;
    std::vector<Same> outputs;
  };

  void meet(Same& known, const Same& more) {
    const Same made = both(known, more);
    if (made == known) return;
    known = made;
    is_changed_ = true;
  }

  // Where data is exchanged under a condition, the condition's; the result is what all of them have
  // in common.
  Result<Same> look_at(const Frame& frame, bool judges) {
    frame_ = &frame;
    values_.assign(frame.buffers.size(), {});
    size_t input = 0;
    for (BufferId b : buffers_of(frame, Role::input)) values_[b] = ports_[&frame].inputs[input++];
    Same all;
    for (const Command& command : frame.commands) {
      std::visit([&](const auto& kind) { look(kind); }, command.kind);
      const Same condition = condition_;
      if (!judges || !is_conditional(command) || !talks(command)) continue;
      if (condition.devices == 1)
        return unsupported(
                   "it exchanges data, and devices may not agree on whether it runs: the condition "
                   "depends on {}",
                   condition.why)
            .within(fmt::format("command '{}' ({})", command.name,
                                std::holds_alternative<Branch>(command.kind) ? "if" : "while"))
            .with_hint(
                "take the condition from an all_reduce over all devices, or exchange data outside "
                "of it");
      all = both(all, condition);
    }
    size_t output = 0;
    for (BufferId b : buffers_of(frame, Role::output))
      meet(ports_[&frame].outputs[output++], value(b));
    return all;
  }

  static bool is_conditional(const Command& command) {
    return std::holds_alternative<Branch>(command.kind) ||
           std::holds_alternative<Loop>(command.kind);
  }

  Same& value(BufferId b) { return values_[place_of(*frame_, b)]; }
  Same all_of(const std::vector<BufferId>& buffers) {
    Same all;
    for (BufferId b : buffers) all = both(all, value(b));
    return all;
  }
  void write(BufferId b, const Same& made) {
    const bool is_part = frame_->buffers[b].role == Role::view;
    value(b) = is_part ? both(value(b), made) : made;
  }

  // ---- Commands
  // ----------------------------------------------------------------------------------

  void look(const Launch& c) {
    Same made = all_of(c.inputs);
    size_t result = 0;
    for (const TileBuffer& buffer : program_.kernels[c.kernel].tiles.buffers)
      if (is_result(buffer.role)) {
        if (buffer.role == BufferRole::update) made = both(made, value(c.outputs[result]));
        ++result;
      }
    for (BufferId b : c.outputs) write(b, made);
  }
  void look(const Copy& c) { write(c.to, Same(value(c.from))); }
  void look(const Start& c) { write(c.to, gathered(c.collective, value(c.from))); }
  void look(const Send& /*c*/) {}
  void look(const Receive& c) { write(c.to, {1, "a message"}); }
  void look(const Wait& /*c*/) {}
  void look(const DeviceIndex& c) { write(c.to, {1, "device_index"}); }

  void give(const Frame& inner, size_t first, const std::vector<BufferId>& buffers) {
    std::vector<Same>& inputs = ports_[&inner].inputs;
    for (size_t i = 0; i < buffers.size(); ++i) meet(inputs[first + i], value(buffers[i]));
  }
  void take(const std::vector<BufferId>& buffers, const Frame& inner, size_t first) {
    const std::vector<Same>& outputs = ports_[&inner].outputs;
    for (size_t i = 0; i < buffers.size(); ++i) write(buffers[i], outputs[first + i]);
  }

  void look(const Call& c) {
    give(*c.frame, 0, c.inputs);
    take(c.outputs, *c.frame, 0);
  }

  void look(const Branch& c) {
    condition_ = value(c.condition);
    for (const FrameRef& frame : {c.on_true, c.on_false}) give(*frame, 0, c.inputs);
    for (size_t i = 0; i < c.outputs.size(); ++i)
      write(c.outputs[i], both(condition_, both(ports_[c.on_true.get()].outputs[i],
                                                ports_[c.on_false.get()].outputs[i])));
  }

  void look(const Loop& c) {
    condition_ = ports_[c.test.get()].outputs[0];
    add_rounds(changes_of(c), *c.body);
    give(*c.test, 0, c.state);
    give(*c.body, 0, c.state);
    for (BufferId b : c.state) value(b) = both(value(b), condition_);
    for (const Change& change : changes_of(c)) value(change.next) = value(change.state);
    write(c.condition, condition_);
  }

  void look(const Scan& c) {
    const std::vector<Change> changes = changes_of(c);
    add_rounds(changes, *c.body);
    give(*c.body, 0, c.state);
    give(*c.body, c.state.size(), c.xs);
    for (const Change& change : changes) value(change.next) = value(change.state);
    take(c.ys, *c.body, changes.size());
  }

  // A state is what it was before, or what a round makes of it.
  void add_rounds(const std::vector<Change>& changes, const Frame& body) {
    const std::vector<Same>& outputs = ports_[&body].outputs;
    for (size_t i = 0; i < changes.size(); ++i)
      value(changes[i].state) = both(value(changes[i].state), outputs[i]);
  }

  const Program& program_;
  std::map<const Frame*, Ports> ports_;
  const Frame* frame_ = nullptr;  // at hand
  std::vector<Same> values_;      // of it, by place
  Same condition_;                // of the command at hand, if it has one
  bool is_changed_ = false;
};

bool exchanges_under_condition(const Program& program) {
  for (const FrameRef& frame : all_frames(program.main))
    for (const Command& command : frame->commands)
      if ((std::holds_alternative<Branch>(command.kind) ||
           std::holds_alternative<Loop>(command.kind)) &&
          talks(command))
        return true;
  return false;
}

}  // namespace
}  // namespace program

Result<int32_t> devices_that_agree(const Program& program) {
  if (!program::exchanges_under_condition(program)) return 0;
  return program::Agreement(program).run();
}

}  // namespace hone
