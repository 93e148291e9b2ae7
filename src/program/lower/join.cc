#include "program/lower/join.h"

#include <algorithm>
#include <map>
#include <set>

#include "kernel/schedule_text.h"
#include "program/frame.h"
#include "program/lower/lowering.h"

namespace hone {

namespace program {
namespace {

// The kernels and frames of all pieces of a device, in one program. Equal kernels are one.
class JoinedParts {
 public:
  FrameRef add(const Program& piece) {
    std::vector<KernelId> kernel_of;
    for (const Kernel& kernel : piece.kernels) kernel_of.push_back(add(kernel));
    std::map<const Frame*, FrameRef> made;
    for (const FrameRef& frame : all_frames(piece.main)) {
      Frame copy = *frame;
      copy.name = frame_names_.fresh(frame == piece.main ? piece.name : frame->name);
      for (Command& command : copy.commands) {
        if (Launch* c = std::get_if<Launch>(&command.kind)) c->kernel = kernel_of[c->kernel];
        if (Call* c = std::get_if<Call>(&command.kind)) c->frame = made.at(c->frame.get());
        if (Scan* c = std::get_if<Scan>(&command.kind)) c->body = made.at(c->body.get());
        if (Branch* c = std::get_if<Branch>(&command.kind)) {
          c->on_true = made.at(c->on_true.get());
          c->on_false = made.at(c->on_false.get());
        }
        if (Loop* c = std::get_if<Loop>(&command.kind)) {
          c->test = made.at(c->test.get());
          c->body = made.at(c->body.get());
        }
      }
      made[frame.get()] = std::make_shared<const Frame>(std::move(copy));
    }
    return made.at(piece.main.get());
  }

  std::string frame_name(std::string_view wanted) { return frame_names_.fresh(wanted); }
  const std::vector<Kernel>& kernels() const { return kernels_; }

 private:
  KernelId add(const Kernel& kernel) {
    const std::string schedule = kernel.schedule ? print(*kernel.schedule) : std::string();
    const auto [known, is_new] =
        by_tiles_.try_emplace({kernel.hash, schedule}, static_cast<KernelId>(kernels_.size()));
    if (!is_new) return known->second;
    kernels_.push_back(kernel);
    kernels_.back().tiles.name = kernel_names_.fresh(kernel.tiles.name);
    return known->second;
  }

  std::vector<Kernel> kernels_;
  Names kernel_names_, frame_names_;
  std::map<std::pair<uint64_t, std::string>, KernelId> by_tiles_;
};

class DeviceProgramBuilder {
 public:
  DeviceProgramBuilder(const Graph& graph, const GraphCut& cut, int32_t device)
      : graph_(graph), cut_(cut), device_(device) {}

  Program build(const std::vector<Program>& pieces) {
    frame_.name = parts_.frame_name("main");
    add_buffers();
    for (uint32_t tag = 0; tag < cut_.messages.size(); ++tag)
      if (const CutMessage& message = cut_.messages[tag]; message.to == device_)
        command(message.value, Receive{{message.from, tag}, buffer_.at(message.value.index)});
    int64_t threads = 1;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (cut_.pieces[i].device != device_) continue;
      threads = std::max(threads, pieces[i].threads);
      add_piece(cut_.pieces[i], pieces[i]);
    }
    for (const auto& [value, output] : copies_)
      command(value, Copy{buffer_.at(value.index), output});
    frame_.commands = with_waits(frame_);
    const std::vector<std::vector<CommandId>> after = dependencies(frame_, parts_.kernels());
    for (size_t c = 0; c < after.size(); ++c) frame_.commands[c].after = after[c];
    return {fmt::format("{}.{}", graph_.name(), device_), threads, parts_.kernels(),
            std::make_shared<const Frame>(std::move(frame_))};
  }

 private:
  BufferId add(std::string_view name, Type type, Role role) {
    frame_.buffers.push_back({.name = names_.fresh(name), .type = type, .role = role});
    return static_cast<BufferId>(frame_.buffers.size() - 1);
  }
  std::string name(ValueId v) const {
    const std::string_view name = graph_.name(v);
    return name.empty() ? fmt::format("v{}", v.index) : std::string(name);
  }
  template <class Kind>
  void command(ValueId v, Kind kind) {
    frame_.commands.push_back({name(v), std::move(kind), {}});
  }

  bool is_input(ValueId v) const {
    return std::ranges::find(graph_.inputs(), v) != graph_.inputs().end();
  }

  // Inputs that its pieces read or that it gives out, then outputs, then what comes from others or
  // goes from piece to piece.
  void add_buffers() {
    std::set<uint32_t> read, made;
    for (const CutPiece& piece : cut_.pieces) {
      if (piece.device != device_) continue;
      for (ValueId v : piece.inputs) read.insert(v.index);
      for (ValueId v : piece.outputs) made.insert(v.index);
    }
    const std::span<const ValueId> outputs = graph_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (cut_.output_device[i] == device_ && is_input(outputs[i])) read.insert(outputs[i].index);
    for (ValueId v : graph_.inputs())
      if (read.contains(v.index)) buffer_[v.index] = add(name(v), graph_.type(v), Role::input);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (cut_.output_device[i] != device_) continue;
      const ValueId v = outputs[i];
      const bool is_there = buffer_.contains(v.index);  // an input, or an output before
      const BufferId b =
          add(is_there ? name(v) + ".output" : name(v), graph_.type(v), Role::output);
      if (is_there)
        copies_.emplace_back(v, b);
      else
        buffer_[v.index] = b;
    }
    for (const std::set<uint32_t>& values : {read, made})
      for (const uint32_t v : values)
        if (!buffer_.contains(v))
          buffer_[v] = add(name(ValueId{v}), graph_.type(ValueId{v}), Role::temporary);
  }

  void add_piece(const CutPiece& piece, const Program& program) {
    Call call = {parts_.add(program), {}, {}};
    for (ValueId v : piece.inputs) call.inputs.push_back(buffer_.at(v.index));
    for (ValueId v : piece.outputs) call.outputs.push_back(buffer_.at(v.index));
    frame_.commands.push_back({program.name, std::move(call), {}});
    for (uint32_t tag = 0; tag < cut_.messages.size(); ++tag) {
      const CutMessage& message = cut_.messages[tag];
      if (message.from == device_ &&
          std::ranges::find(piece.outputs, message.value) != piece.outputs.end())
        command(message.value, Send{{message.to, tag}, buffer_.at(message.value.index)});
    }
  }

  const Graph& graph_;
  const GraphCut& cut_;
  const int32_t device_;
  JoinedParts parts_;
  Names names_;
  Frame frame_;
  std::map<uint32_t, BufferId> buffer_;  // by value
  std::vector<std::pair<ValueId, BufferId>> copies_;
};

}  // namespace
}  // namespace program

Result<DevicePrograms> join_pieces(const Graph& graph, const GraphCut& cut,
                                   const std::vector<Program>& pieces) {
  HONE_CHECK(pieces.size() == cut.pieces.size(), "{} programs for {} pieces", pieces.size(),
             cut.pieces.size());
  DevicePrograms all;
  for (int32_t device = 0; device < cut.devices; ++device) {
    all.programs.push_back(program::DeviceProgramBuilder(graph, cut, device).build(pieces));
    all.of_device.push_back(static_cast<uint32_t>(device));
  }
  HONE_TRY(verify(all));
  return all;
}

}  // namespace hone
