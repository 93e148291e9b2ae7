#include "plan/derive.h"

#include <algorithm>

#include "base/planted.h"
#include "ir/op_facts.h"

namespace hone {

void Derivation::find_ports(Step& step) const {
  if (step.is_kernel) {
    GroupPorts ports = ports_of(graph_, users_, step.nodes);
    step.reads = std::move(ports.inputs);
    step.writes = std::move(ports.outputs);
    return;
  }
  for (ValueId v : graph_.operands(step.nodes[0]))
    if (!v.is_none() && std::ranges::find(step.reads, v) == step.reads.end())
      step.reads.push_back(v);
  for (ValueId v : graph_.results(step.nodes[0])) step.writes.push_back(v);
}

Derivation::Place Derivation::place_of(ValueId v) const {
  const NodeId n = graph_.producer(v);
  if (joins_operands(graph_.opcode(n)) && planned_.is_view(n)) return {v, outermost(v)};
  if (planned_.is_view(n)) {
    const ValueId x = graph_.operands(n)[0];
    return {planned_.version[x.index], planned_.base[x.index]};
  }
  if (planned_.concat[v.index] != NodeId{}) return {v, outermost(v)};
  const uint32_t step = planned_.step_of[n.index];
  if (step == kNoStep || !planned_.steps[step].in_place) return {v, v};
  // An input is copied to the output that may lie in its place.
  const ValueId x = graph_.operands(n)[0];
  if (is_parameter(graph_.opcode(graph_.producer(x)))) return {v, v};
  return {v, planned_.base[x.index]};
}

// Among the concats that are views and have it as a part, or have one of these as a part, the last.
ValueId Derivation::outermost(ValueId v) const {
  while (planned_.concat[v.index] != NodeId{}) v = graph_.result(planned_.concat[v.index]);
  return v;
}

Derivation::Memory Derivation::memory_of(ValueId v) const {
  const NodeId n = graph_.producer(v);
  const Opcode opcode = graph_.opcode(n);
  const bool is_view = planned_.is_view(n), is_output = users_.is_output(v);
  if (is_parameter(opcode)) return {Home::input};
  if (planned_.concat[v.index] != NodeId{} || (is_view && !joins_operands(opcode)))
    return {Home::view};
  const Home written = is_output ? Home::output : Home::temporary;
  const auto has_layout = [&] {
    return graph_.type(v).rank() > 0 && !is_number(graph_, v) &&
           std::ranges::none_of(inside(v), [&](ValueId part) { return is_row_major(part); });
  };
  if (is_view) return {written, has_layout()};
  const uint32_t step = planned_.step_of[n.index];
  bool is_read = false;
  for_each_reader(v, [&](uint32_t) { is_read = true; });
  for (NodeId user : users_.of(v)) is_read = is_read || planned_.is_view(user);
  if (step == kNoStep) {
    if (!is_read && !is_output) return {};
    return {Home::constant, has_layout()};
  }
  const Step& writer = planned_.steps[step];
  const bool is_written = !writer.is_kernel || writer.nodes.size() == 1 || is_read || is_output;
  if (!is_written) return {};
  // Memory that becomes an output is the output's from the start.
  if (writer.in_place && planned_.base[v.index] != v) return {Home::view};
  if (becomes_output(v)) return {Home::output};
  return {written, has_layout()};
}

Layout Derivation::layout_of(ValueId v) const {
  if (planned_.said_layout[v.index]) return planned_.layout[v.index];
  const ValueId base = planned_.base[v.index];
  if (base != v && planned_.has_layout(base)) return planned_.layout[base.index];
  return Layout::row_major(graph_.type(v).rank());
}

std::vector<ValueId> Derivation::inside(ValueId v) const {
  std::vector<ValueId> found = {v};
  for (size_t i = 0; i < found.size(); ++i) {
    const NodeId n = graph_.producer(found[i]);
    if (joins_operands(graph_.opcode(n)) && planned_.is_view(n))
      found.insert(found.end(), graph_.operands(n).begin(), graph_.operands(n).end());
    for (NodeId user : users_.of(found[i]))
      if (planned_.is_view(user) && !joins_operands(graph_.opcode(user)))
        found.push_back(graph_.result(user));
  }
  return found;
}

bool Derivation::is_row_major(ValueId v) const {
  if (users_.is_output(v)) return true;
  const uint32_t writer = planned_.step_of[graph_.producer(v).index];
  if (writer != kNoStep && (!planned_.steps[writer].is_kernel || planned_.steps[writer].in_place))
    return true;
  bool is_row_major = false;
  for (NodeId user : users_.of(v))
    is_row_major = is_row_major || (planned_.is_view(user) && !keeps_layout(graph_, user));
  for_each_reader(v, [&](uint32_t reader) {
    const Step& by = planned_.steps[reader];
    is_row_major = is_row_major || !by.is_kernel || (by.in_place && by.reads[0] == v);
  });
  return is_row_major;
}

uint32_t Derivation::changer_of(ValueId v) const {
  for (NodeId user : users_.of(v)) {
    const uint32_t step = planned_.step_of[user.index];
    if (step == kNoStep) continue;
    if (planned_.steps[step].in_place && planned_.steps[step].reads[0] == v) return step;
  }
  // Donors are few, and the kernel need not read what it changes.
  if (!is_parameter(graph_.opcode(graph_.producer(v)))) return kNoStep;
  for (const Donation& donation : graph_.donations()) {
    if (graph_.inputs()[donation.input] != v) continue;
    const NodeId n = graph_.producer(graph_.outputs()[donation.output]);
    const uint32_t step = planned_.step_of[n.index];
    if (step == kNoStep) continue;
    for (const Donor& donor : planned_.steps[step].donors)
      if (donor.input == v) return step;
  }
  return kNoStep;
}

bool Derivation::becomes_output(ValueId v) const {
  for (ValueId at = v;;) {
    const uint32_t step = changer_of(at);
    if (step == kNoStep || !planned_.steps[step].in_place) return false;
    at = planned_.steps[step].writes[0];
    if (planned_.base[at.index] != v) return false;
    if (users_.is_output(at)) return true;
  }
}

std::vector<ValueId> Derivation::changed_by(const Step& step) const {
  std::vector<ValueId> changed;
  if (step.in_place) changed.push_back(step.reads[0]);
  for (const Donor& donor : step.donors) changed.push_back(donor.input);
  return changed;
}

std::vector<uint32_t> Derivation::readers_before(uint32_t step) const {
  std::vector<uint32_t> readers;
  std::vector<ValueId> same = changed_by(planned_.steps[step]);  // and views of it
  for (size_t i = 0; i < same.size(); ++i) {
    for_each_reader(same[i], [&](uint32_t reader) {
      if (HONE_PLANT(update_waits, reader != step, false)) readers.push_back(reader);
    });
    for (NodeId user : users_.of(same[i]))
      if (planned_.is_view(user)) same.push_back(graph_.result(user));
  }
  std::ranges::sort(readers);
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

}  // namespace hone
