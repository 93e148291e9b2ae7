#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "base/progress.h"
#include "kernel/kernel_body.h"
#include "plan/planned.h"
#include "program/program.h"

// The files of lower share these.

namespace hone::program {

// Names that are taken within some scope.
class Names {
 public:
  // The name, or one made from it if it is taken.
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

// The parts that a program has once: its kernels, and the names of its frames.
class Lowering {
 public:
  Lowering(const Plan& plan, const CancelToken* cancel) : plan_(plan), cancel_(cancel) {}

  // The kernel of a group; those of equal tiles by equal schedules are one.
  Result<KernelId> kernel(const KernelBody& body) { return kernel(body, schedule(body)); }
  const Schedule& schedule(const KernelBody& body) const {
    return plan_.schedule.at(kernel_hash(body));
  }
  // The same for a graph of lowering itself, with the schedule of an equal kernel or the generic
  // one.
  Result<KernelId> kernel(Graph graph);

  // `left_out`: which of the first outputs the frame does not have.
  Result<FrameRef> frame(const Graph& graph, const Plan& plan, std::string_view name,
                         const std::vector<bool>& left_out = {});
  Status check_cancelled() const { return cancel_ == nullptr ? Status{} : cancel_->check(); }
  std::string frame_name(std::string_view wanted) { return frame_names_.fresh(wanted); }

  std::span<const Kernel> kernels() const { return kernels_; }
  std::vector<Kernel> take_kernels() && { return std::move(kernels_); }

 private:
  Result<KernelId> kernel(const KernelBody& body, const Schedule& schedule);

  const Plan& plan_;  // of the whole graph
  const CancelToken* cancel_;
  std::vector<Kernel> kernels_;
  Names kernel_names_, frame_names_;
  std::unordered_map<uint64_t, KernelId> by_body_;
  std::map<std::pair<uint64_t, std::string>, KernelId> by_tiles_;  // and the schedule's text
};

// A frame while it grows.
class FrameBuilder {
 public:
  FrameBuilder(Lowering& whole, std::string name) : whole_(whole) { frame_.name = std::move(name); }

  // Inputs come first, then outputs, then the others.
  BufferId add(std::string_view name, Type type, Role role);
  BufferId add_constant(std::string_view name, Tensor value);
  BufferId add_view(std::string_view name, Type type, BufferId of, Dim offset);
  void set_donor(BufferId output, BufferId input) { frame_.buffers[output].donor = input; }
  void set_offset(BufferId buffer, int64_t offset) { frame_.buffers[buffer].offset = offset; }

  template <class Kind>
  void command(std::string_view name, Kind kind) {
    frame_.commands.push_back({std::string(name), std::move(kind), {}});
  }
  void copy(BufferId from, BufferId to) { command(frame_.buffers[to].name, Copy{from, to}); }

  const std::string& name() const { return frame_.name; }
  Type type(BufferId buffer) const { return frame_.buffers[buffer].type; }
  const std::string& name(BufferId buffer) const { return frame_.buffers[buffer].name; }
  FrameRef finish() &&;

 private:
  Lowering& whole_;
  Frame frame_;
  Names names_;
};

// A node that is a command of its own, with its buffers.
struct NodeCommand {
  const Graph& graph;
  NodeId node;
  std::string_view name;  // of the step
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
  std::vector<FrameRef> regions;
  std::vector<bool> unchanged;       // by state of a loop: its body has no output for it
  std::vector<bool> is_read;         // by output: somebody needs it
  CollectiveSchedule schedule = {};  // of a collective that exchanges data

  Op op() const { return graph.op(node); }
};

// Adds control flow. A loop becomes a frame of its own, with the buffers that only the loop needs.
Status add_control(Lowering& whole, FrameBuilder& frame, const NodeCommand& command);
// Adds a collective. A group of one device copies. Parts that do not lie one behind the other are
// brought so by kernels, in a frame of its own.
Status add_collective(Lowering& whole, FrameBuilder& frame, const NodeCommand& command);
// Adds the waits: each one stands before the first command that needs what comes or changes what
// goes, or at the end.
std::vector<Command> with_waits(const Frame& frame);

}  // namespace hone::program
