#include "program/lower/lower.h"

#include <algorithm>

#include "ir/loop_state.h"
#include "ir/op_def.h"
#include "kernel/kernel_name.h"
#include "kernel/packed.h"
#include "kernel/prepared.h"
#include "kernel/schedule_text.h"
#include "plan/collectives.h"
#include "plan/view.h"
#include "program/build/kernel.h"
#include "program/frame.h"
#include "program/lower/lowering.h"
#include "program/uniform.h"

namespace hone {

namespace program {

std::string Names::fresh(std::string_view wanted) {
  std::string name(wanted);
  for (int suffix = 2; !taken_.insert(name).second; ++suffix)
    name = fmt::format("{}_{}", wanted, suffix);
  return name;
}

// ---- Kernels ------------------------------------------------------------------------------------

Result<KernelId> Lowering::kernel(const KernelBody& body, const Schedule& schedule) {
  const auto next = static_cast<KernelId>(kernels_.size());
  const auto [of_body, is_new_body] = by_body_.try_emplace(kernel_hash(body), next);
  if (!is_new_body) return of_body->second;
  TileProgram tiles = HONE_TRY(build_kernel(body, schedule, kernel_name(body.graph)));
  const uint64_t hash = tiles_hash(tiles);
  const auto [of_tiles, is_new] = by_tiles_.try_emplace({hash, print(schedule)}, next);
  of_body->second = of_tiles->second;
  if (!is_new) return of_tiles->second;
  tiles.name = kernel_names_.fresh(tiles.name);
  kernels_.push_back({hash, std::move(tiles), schedule, std::make_shared<const KernelBody>(body)});
  return next;
}

Result<KernelId> Lowering::kernel(Graph graph) {
  KernelBody body;
  for (Type type : graph.input_types()) body.inputs.push_back(Layout::row_major(type.rank()));
  for (Type type : graph.output_types()) body.outputs.push_back(Layout::row_major(type.rank()));
  body.graph = std::move(graph);
  const auto planned = plan_.schedule.find(kernel_hash(body));  // the same stands in the graph
  return kernel(body, planned == plan_.schedule.end() ? Schedule() : planned->second);
}

// ---- Frames -------------------------------------------------------------------------------------

BufferId FrameBuilder::add(std::string_view name, Type type, Role role) {
  frame_.buffers.push_back({.name = names_.fresh(name), .type = type, .role = role});
  return static_cast<BufferId>(frame_.buffers.size() - 1);
}

BufferId FrameBuilder::add_constant(std::string_view name, Tensor value) {
  const BufferId id = add(name, value.type(), Role::constant);
  frame_.buffers[id].value = std::move(value);
  return id;
}

BufferId FrameBuilder::add_view(std::string_view name, Type type, BufferId of, Dim offset) {
  const BufferId id = add(name, type, Role::view);
  const Buffer& base = frame_.buffers[of];
  frame_.buffers[id].view =
      base.role == Role::view ? View{base.view.of, base.view.offset + offset} : View{of, offset};
  return id;
}

FrameRef FrameBuilder::finish() && {
  frame_.commands = with_waits(frame_);
  const std::vector<std::vector<CommandId>> after = dependencies(frame_, whole_.kernels());
  for (size_t c = 0; c < after.size(); ++c) frame_.commands[c].after = after[c];
  return std::make_shared<const Frame>(std::move(frame_));
}

namespace {

class GraphLowering {
 public:
  GraphLowering(Lowering& whole, const Plan& plan, PlannedGraph planned, std::string_view name)
      : whole_(whole),
        plan_(plan),
        planned_(std::move(planned)),
        graph_(*planned_.graph),
        users_(graph_),
        regions_(regions_of(graph_)),
        frame_(whole, whole.frame_name(name)),
        buffers_(graph_.value_count()) {}

  Result<FrameRef> run(const std::vector<bool>& left_out) {
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      if (graph_.name(ValueId{i}).empty())
        return bad_input("{} has no name", graph_.label(ValueId{i}))
            .with_hint("prepare() names all values");
    add_ports(left_out);
    prepare_inputs();
    for (uint32_t i = 0; i < graph_.value_count(); ++i) add_buffer(ValueId{i});
    for (uint32_t s : planned_.order) HONE_TRY(add_step(s));
    for (const auto& [value, output] : copies_) frame_.copy(buffer(value), output);
    return std::move(frame_).finish();
  }

 private:
  BufferId buffer(ValueId v) const { return *buffers_[v.index]; }
  std::vector<BufferId> buffers(std::span<const ValueId> values) const {
    std::vector<BufferId> list;
    for (ValueId v : values) list.push_back(buffer(v));
    return list;
  }

  // The constants that a kernel reads in a form of its own. A value that is read in no other way
  // has no buffer.
  struct Prepared {
    ValueId value;
    PreparedInput form;
  };

  void prepare_inputs() {
    std::vector<size_t> in_own_form(graph_.value_count());
    for (uint32_t s : planned_.order) {
      const Step& step = planned_.steps[s];
      if (!step.is_kernel) continue;
      const KernelBody body = body_of(planned_, users_, step);
      std::optional<PreparedInput> form = prepared_input(body, whole_.schedule(body));
      if (!form) continue;
      const ValueId value = step.reads[form->parameter];
      ++in_own_form[value.index];
      prepared_.emplace(s, Prepared{value, std::move(*form)});
    }
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      is_left_out_.push_back(in_own_form[v] > 0 && !users_.is_output(ValueId{v}) &&
                             in_own_form[v] == users_.of(ValueId{v}).size());
  }

  // An output that something else gives, or another output, is copied at the end.
  void add_ports(const std::vector<bool>& left_out) {
    for (ValueId v : graph_.inputs())
      buffers_[v.index] = frame_.add(graph_.name(v), graph_.type(v), Role::input);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (i < left_out.size() && left_out[i]) continue;
      const ValueId v = graph_.outputs()[i];
      const ValueId base = planned_.base[v.index];
      const bool is_written = planned_.home[base.index] == Home::output && !buffers_[base.index];
      const std::string name = fmt::format("{}{}", graph_.name(v), is_written ? "" : ".output");
      const BufferId output = frame_.add(name, graph_.type(v), Role::output);
      if (is_written)
        buffers_[base.index] = output;
      else
        copies_.emplace_back(v, output);
    }
    for (const Step& step : planned_.steps)
      if (step.in_place) take_donor(step.reads[0], step.writes[0]);
    for (const Step& step : planned_.steps)
      for (const Donor& donor : step.donors)
        frame_.set_donor(buffer(donor.output), buffer(donor.input));
  }

  // An input that is changed in place is copied to where the output may have its memory anyway.
  void take_donor(ValueId operand, ValueId result) {
    if (planned_.home[operand.index] != Home::input) return;
    frame_.set_donor(buffer(result), buffer(operand));
    frame_.copy(buffer(operand), buffer(result));
  }

  Type memory(ValueId v) const { return stored_type(planned_.layout[v.index], graph_.type(v)); }

  void add_buffer(ValueId v) {
    if (buffers_[v.index]) return;
    const std::string_view name = graph_.name(v);
    switch (planned_.home[v.index]) {
      case Home::none:
      case Home::input:
      case Home::output: return;
      case Home::constant:
        if (is_left_out_[v.index]) return;
        buffers_[v.index] = frame_.add_constant(
            name, packed(graph_.constant(graph_.producer(v)), planned_.layout[v.index]));
        return;
      case Home::temporary: {
        const BufferId id = frame_.add(name, memory(v), Role::temporary);
        if (const auto place = plan_.offset.find(std::string(name)); place != plan_.offset.end())
          frame_.set_offset(id, place->second);
        buffers_[v.index] = id;
        return;
      }
      case Home::view: {
        if (const NodeId concat = planned_.concat[v.index]; concat != NodeId{}) {
          const std::span<const ValueId> parts = graph_.operands(concat);
          const auto at = static_cast<size_t>(std::ranges::find(parts, v) - parts.begin());
          add_buffer(graph_.result(concat));
          buffers_[v.index] = frame_.add_view(name, memory(v), buffer(graph_.result(concat)),
                                              part_offset(graph_, concat, at));
          return;
        }
        const NodeId n = graph_.producer(v);
        if (planned_.step_of[n.index] != kNoStep) {
          buffers_[v.index] = buffer(planned_.base[v.index]);
          return;
        }
        const ValueId x = graph_.operands(n)[0];
        buffers_[v.index] = frame_.add_view(name, memory(v), buffer(x),
                                            view_offset(graph_, n, planned_.layout[x.index]));
        return;
      }
    }
  }

  Status add_step(uint32_t s) {
    const Step& step = planned_.steps[s];
    HONE_TRY(whole_.check_cancelled());
    if (!step.is_kernel) return add_node(step);
    const KernelBody body = body_of(planned_, users_, step);
    Result<KernelId> kernel = whole_.kernel(body);
    if (!kernel.ok()) return std::move(kernel).error().within("kernel @" + step.name);
    std::vector<BufferId> read;
    for (size_t i = step.in_place ? 1 : 0; i < step.reads.size(); ++i) {
      const auto prepared = prepared_.find(s);
      const bool is_own = prepared != prepared_.end() && prepared->second.form.parameter == i;
      read.push_back(is_own ? HONE_TRY(prepared_buffer(prepared->second)) : buffer(step.reads[i]));
    }
    frame_.command(step.name, Launch{*kernel, std::move(read), buffers(step.writes)});
    return {};
  }

  // Kernels that want a constant in the same form share it.
  Result<BufferId> prepared_buffer(const Prepared& prepared) {
    const ValueId v = prepared.value;
    if (planned_.home[v.index] != Home::constant)
      return unsupported("{} is not a constant, but the kernel would read it in a form of its own",
                         graph_.label(v))
          .with_hint("prepare() withdraws what permits such kernels");
    Tensor value = prepared.form.value(graph_.constant(graph_.producer(v)));
    const auto [known, is_new] = own_forms_.try_emplace(value.content_hash());
    if (is_new)
      known->second = frame_.add_constant(fmt::format("{}.transformed", graph_.name(v)), value);
    return known->second;
  }

  Status add_node(const Step& step) {
    const NodeId n = step.nodes[0];
    NodeCommand command = {graph_, n, step.name, buffers(graph_.operands(n)), {}, {}, {}, {}, {}};
    command.unchanged = unchanged_state(graph_, n);
    for (ValueId v : graph_.results(n)) {
      command.outputs.push_back(buffer(v));
      command.is_read.push_back(!users_.of(v).empty() || users_.is_output(v));
    }
    auto [region, end] = std::ranges::equal_range(regions_, n, {}, &RegionRef::node);
    for (; region != end; ++region) {
      const bool is_body = region->index + 1 == graph_.regions(n).size();
      command.regions.push_back(
          HONE_TRY(whole_.frame(*region->graph, plan_.region.at(region->key),
                                fmt::format("{}.{}", frame_.name(), region->key),
                                is_body ? command.unchanged : std::vector<bool>())));
    }
    if (const auto schedule = planned_.collective.find(n.index);
        schedule != planned_.collective.end())
      command.schedule = schedule->second;
    if (command.regions.empty()) return add_collective(whole_, frame_, command);
    return add_control(whole_, frame_, command);
  }

  Lowering& whole_;
  const Plan& plan_;
  const PlannedGraph planned_;
  const Graph& graph_;
  const Users users_;
  const std::vector<RegionRef> regions_;  // in the order of their nodes
  FrameBuilder frame_;
  std::vector<std::optional<BufferId>> buffers_;  // by value
  std::vector<std::pair<ValueId, BufferId>> copies_;
  std::map<uint32_t, Prepared> prepared_;   // by step
  std::vector<bool> is_left_out_;           // by value: kernels read it in their own forms alone
  std::map<uint64_t, BufferId> own_forms_;  // by content
};

}  // namespace

Result<FrameRef> Lowering::frame(const Graph& graph, const Plan& plan, std::string_view name,
                                 const std::vector<bool>& left_out) {
  return GraphLowering(*this, plan, HONE_TRY(planned(plan, graph)), name).run(left_out);
}

}  // namespace program

Result<Program> lower(const Graph& graph, const Plan& plan, const Target& target,
                      const CancelToken* cancel) {
  HONE_TRY(check_complete(plan, graph, target));
  program::Lowering lowering(plan, cancel);
  Program program;
  program.name = graph.name();
  program.threads = *plan.threads;
  program.main = HONE_TRY(lowering.frame(graph, plan, "main"));
  program.kernels = std::move(lowering).take_kernels();
  HONE_TRY(devices_that_agree(program));
  const Status proof = verify(program);
  if (proof.ok()) return program;
  if (proof.error().code() == ErrorCode::limit) return proof.error();
  HONE_CHECK(!graph.is_static(), "{}", proof.error().to_string());
  return unsupported("it is not proved for all sizes: {}", proof.error().what())
      .within(proof.error().where())
      .with_hint("give the symbols that need not vary a value");
}

}  // namespace hone
