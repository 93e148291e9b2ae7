#include "shard/micro_batches.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "ir/op_def.h"
#include "ir/op_facts.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

Result<BatchPart> named_part(const Graph& graph, const BatchInputs& batch,
                             const BatchShare& share) {
  static const Result<std::vector<Pass>> passes = parse_passes("names");
  HONE_CHECK(passes.ok(), "{}", passes.error().to_string());
  if (share.devices == 1) {
    BatchPart whole = {.graph = HONE_TRY(run_passes(graph, *passes)), .inputs = batch.dims};
    std::ranges::fill(whole.inputs, kWhole);
    whole.outputs.assign(graph.outputs().size(), kWhole);
    return whole;
  }
  BatchPart part = HONE_TRY(batch_part(graph, batch.dims, share));
  part.graph = HONE_TRY(run_passes(part.graph, *passes));
  return part;
}

Result<std::vector<BatchShare>> shares_of(const BatchInputs& batch, int64_t count) {
  if (count < 1) return usage_error("a batch has no {} parts", count);
  if (count > batch.rows)
    return usage_error("a batch of {} rows has no {} parts", batch.rows, count);
  return batch_shares(batch.rows, count);
}

bool is_collective(const Graph& graph, NodeId n) {
  return class_of(graph.opcode(n)) == OpClass::collective;
}

bool has_sums_inside(const Graph& graph, NodeId n) {
  for (const GraphRef& region : graph.regions(n))
    for (const NodeId inner : region->nodes())
      if (is_collective(*region, inner) || has_sums_inside(*region, inner)) return true;
  return false;
}

// All collectives of a part are the sums that batch_part() has put there.
Status check_alone(const Graph& graph) {
  for (const NodeId n : graph.nodes())
    if (is_collective(graph, n) || has_sums_inside(graph, n))
      return unsupported("{} exchanges data itself, so its batch has no parts", graph.describe(n));
  return {};
}

class Merger {
 public:
  Merger(const Graph& whole, std::vector<BatchPart> parts, std::vector<BatchShare> shares)
      : whole_(whole), parts_(std::move(parts)), shares_(std::move(shares)) {
    made_.graph.set_name(whole.name());
    for (const BatchPart& part : parts_) maps_.emplace_back(part.graph.value_count());
    is_late_.assign(parts_[0].graph.value_count(), false);
  }

  Result<MicroBatches> run() {
    HONE_TRY(check_alike());
    const Graph& first = parts_[0].graph;
    for (size_t i = 0; i < first.inputs().size(); ++i) {
      const ValueId v = whole_.inputs()[i];
      inputs_.push_back(made_.graph.add_parameter(whole_.type(v), first.name(first.inputs()[i])));
      taken_.insert(std::string(first.name(first.inputs()[i])));
      note(first.producer(first.inputs()[i]), MicroBatches::kShared);
    }
    for (const NodeId n : first.nodes()) HONE_TRY(node(n));
    std::vector<ValueId> outputs;
    for (size_t i = 0; i < first.outputs().size(); ++i) outputs.push_back(output(i));
    made_.graph.set_outputs(std::move(outputs));
    for (const Donation& one : whole_.donations()) made_.graph.add_donation(one.input, one.output);
    HONE_TRY(verify(made_.graph));
    return std::move(made_);
  }

 private:
  int32_t count() const { return static_cast<int32_t>(parts_.size()); }

  Status check_alike() const {
    const Graph& first = parts_[0].graph;
    for (const BatchPart& part : parts_) {
      const Graph& other = part.graph;
      bool same = other.node_count() == first.node_count() && part.inputs == parts_[0].inputs &&
                  part.outputs == parts_[0].outputs;
      for (const NodeId n : first.nodes())
        same = same && other.opcode(n) == first.opcode(n) &&
               std::ranges::equal(other.operands(n), first.operands(n));
      if (!same)
        return unsupported("the parts of the batch of '{}' are computed in different ways",
                           excerpt(whole_.name()))
            .with_hint("choose a number of micro-batches that divides the batch");
    }
    return {};
  }

  void note(NodeId origin, int32_t batch, bool is_after_all = false) {
    made_.origins.push_back({origin, batch, is_after_all});
  }

  void name(ValueId v, std::string wanted) {
    std::string unique = wanted;
    for (int i = 2; !taken_.insert(unique).second; ++i) unique = fmt::format("{}_{}", wanted, i);
    made_.graph.set_name(v, unique);
  }

  Result<ValueId> append(Op op, std::span<const ValueId> operands, NodeId origin, int32_t batch,
                         bool is_after_all = false) {
    const NodeId n = HONE_TRY(made_.graph.append(op, operands));
    note(origin, batch, is_after_all);
    const Graph& first = parts_[0].graph;
    std::string base(first.name(first.result(origin)));
    name(made_.graph.result(n),
         batch == MicroBatches::kShared ? std::move(base) : fmt::format("{}.{}", base, batch));
    return made_.graph.result(n);
  }

  // The rows of each micro-batch, cut from an input.
  Status parameter(NodeId n) {
    const Graph& first = parts_[0].graph;
    const ValueId v = first.result(n);
    const auto input =
        static_cast<size_t>(std::ranges::find(first.inputs(), v) - first.inputs().begin());
    const int dim = parts_[0].inputs[input];
    for (int32_t b = 0; b < count(); ++b) {
      ValueId& mapped = maps_[at(b)][v.index];
      mapped = inputs_[input];
      if (dim == kWhole) continue;
      const Type type = whole_.type(whole_.inputs()[input]);
      const BatchShare& share = shares_[at(b)];
      const int64_t each = type.dim(dim).value() / share.rows;
      Dims start(static_cast<size_t>(type.rank()), 0);
      Dims limit(type.dims().begin(), type.dims().end());
      start[at(dim)] = share.first * each;
      limit[at(dim)] = (share.first + share.count) * each;
      const ValueId operand[] = {inputs_[input]};
      mapped = HONE_TRY(
          append(Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}), operand, n, b));
    }
    return {};
  }

  Status sum(NodeId n) {
    const Graph& first = parts_[0].graph;
    const ValueId operand = first.operands(n)[0];
    const Op add = Op::get(combine_of(first.op(n).word("kind")));
    ValueId all = maps_[0][operand.index];
    for (int32_t b = 1; b < count(); ++b)
      all = HONE_TRY(append(add, {{all, maps_[at(b)][operand.index]}}, n, b));
    define(n, all, true);
    return {};
  }

  // The same value for all.
  void define(NodeId n, ValueId made, bool is_late) {
    const ValueId v = parts_[0].graph.result(n);
    for (auto& map : maps_) map[v.index] = made;
    is_late_[v.index] = is_late;
  }

  bool is_shared(NodeId n) const {
    const Graph& first = parts_[0].graph;
    for (const ValueId v : first.operands(n)) {
      if (v.is_none()) continue;
      for (const auto& map : maps_)
        if (map[v.index] != maps_[0][v.index]) return false;
    }
    for (const BatchPart& part : parts_) {
      if (part.graph.op(n) != first.op(n)) return false;
      if (is_constant(first.opcode(n)) && !part.graph.constant(n).same_bytes(first.constant(n)))
        return false;
      if (!std::ranges::equal(part.graph.regions(n), first.regions(n),
                              [](const auto& a, const auto& b) {
                                return structural_hash(*a) == structural_hash(*b);
                              }))
        return false;
    }
    return true;
  }

  bool needs_late(NodeId n) const {
    return std::ranges::any_of(parts_[0].graph.operands(n),
                               [&](ValueId v) { return !v.is_none() && is_late_[v.index]; });
  }

  Status node(NodeId n) {
    const Graph& first = parts_[0].graph;
    if (is_parameter(first.opcode(n))) return parameter(n);
    if (is_collective(first, n)) return sum(n);
    if (has_sums_inside(first, n))
      return unsupported("{} adds up rows inside, which micro-batches cannot", first.describe(n));
    const bool is_late = needs_late(n);
    if (is_shared(n)) return shared(n, is_late);
    if (is_late)
      return unsupported(
                 "{} needs a sum over the whole batch before micro-batches go on, as batch norm "
                 "does",
                 first.describe(n))
          .with_hint("one micro-batch computes it");
    for (int32_t b = 0; b < count(); ++b) HONE_TRY(copy(n, b));
    return {};
  }

  Status shared(NodeId n, bool is_late) {
    HONE_TRY(copied(n, 0, MicroBatches::kShared, is_late));
    for (const ValueId v : parts_[0].graph.results(n)) {
      for (size_t b = 1; b < maps_.size(); ++b) maps_[b][v.index] = maps_[0][v.index];
      is_late_[v.index] = is_late;
    }
    return {};
  }

  Status copy(NodeId n, int32_t b) { return copied(n, b, b, false); }

  Status copied(NodeId n, int32_t from, int32_t batch, bool is_late) {
    const Graph& part = parts_[at(from)].graph;
    std::vector<ValueId> operands;
    for (const ValueId v : part.operands(n))
      operands.push_back(v.is_none() ? v : maps_[at(from)][v.index]);
    const auto suffixed = [&](ValueId v) {
      return batch == MicroBatches::kShared ? std::string(part.name(v))
                                            : fmt::format("{}.{}", part.name(v), batch);
    };
    if (is_constant(part.opcode(n))) {
      const ValueId made = made_.graph.add_constant(part.constant(n));
      name(made, suffixed(part.result(n)));
      maps_[at(from)][part.result(n).index] = made;
    } else {
      const std::span<const GraphRef> regions = part.regions(n);
      const NodeId made =
          HONE_TRY(made_.graph.append(part.op(n), operands, {regions.begin(), regions.end()}));
      for (size_t i = 0; i < part.results(n).size(); ++i) {
        name(made_.graph.result(made, i), suffixed(part.result(n, i)));
        maps_[at(from)][part.result(n, i).index] = made_.graph.result(made, i);
      }
    }
    note(n, batch, is_late);
    return {};
  }

  // The rows of all micro-batches behind each other, or what all of them have.
  ValueId output(size_t i) {
    const Graph& first = parts_[0].graph;
    const ValueId v = first.outputs()[i];
    const int dim = parts_[0].outputs[i];
    if (dim == kWhole || count() == 1) return maps_[0][v.index];
    std::vector<ValueId> rows;
    for (const auto& map : maps_) rows.push_back(map[v.index]);
    const Result<ValueId> all = append(Op::get(Opcode::concat, {{"axis", int64_t{dim}}}), rows,
                                       first.producer(v), MicroBatches::kShared, true);
    HONE_CHECK(all.ok(), "rows do not fit: {}", all.error().to_string());
    return *all;
  }

  static size_t at(int32_t i) { return static_cast<size_t>(i); }

  const Graph& whole_;
  const std::vector<BatchPart> parts_;
  const std::vector<BatchShare> shares_;
  MicroBatches made_;
  std::vector<ValueId> inputs_;
  std::vector<std::vector<ValueId>> maps_;  // by micro-batch: its values
  std::vector<bool> is_late_;               // by value: it needs a sum over all micro-batches
  std::set<std::string> taken_;             // names
};

}  // namespace

Result<MicroBatch> first_micro_batch(const Graph& graph, const BatchInputs& batch, int64_t count) {
  HONE_TRY(check_alone(graph));
  BatchPart part = HONE_TRY(named_part(graph, batch, HONE_TRY(shares_of(batch, count)).front()));
  // The only one is the whole graph, which has all rows.
  if (count == 1) part.inputs = batch.dims;
  return MicroBatch{std::move(part.graph), std::move(part.inputs), std::move(part.outputs)};
}

Result<MicroBatches> micro_batches(const Graph& graph, const BatchInputs& batch, int64_t count) {
  HONE_TRY(check_alone(graph));
  const std::vector<BatchShare> shares = HONE_TRY(shares_of(batch, count));
  std::vector<BatchPart> parts;
  for (const BatchShare& share : shares) parts.push_back(HONE_TRY(named_part(graph, batch, share)));
  return Merger(graph, std::move(parts), shares).run();
}

}  // namespace hone
