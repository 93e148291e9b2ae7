#include <algorithm>
#include <optional>
#include <utility>

#include "ir/application.h"
#include "ir/op_facts.h"
#include "shard/batch_walk.h"
#include "shard/local_op.h"

// Composites and regions of a part of a batch: each is walked through as a graph of its own.

namespace hone {

// ---- Composites ---------------------------------------------------------------------------------

std::vector<ValueId> BatchWalk::inlined(const Graph& body, std::span<const ValueId> arguments) {
  std::vector<ValueId> map(body.value_count());
  for (size_t i = 0; i < arguments.size(); ++i) map[body.inputs()[i].index] = arguments[i];
  for (NodeId n : body.nodes()) {
    if (is_parameter(body.opcode(n))) continue;
    if (is_constant(body.opcode(n))) {
      map[body.result(n).index] = part_.add_constant(body.constant(n));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId v : body.operands(n)) operands.push_back(v.is_none() ? v : map[v.index]);
    const std::span<const GraphRef> regions = body.regions(n);
    const Result<NodeId> copy =
        part_.append(body.op(n), operands, {regions.begin(), regions.end()});
    HONE_CHECK(copy.ok(), "a part of an expansion fails: {}", copy.error().to_string());
    for (size_t i = 0; i < body.results(n).size(); ++i)
      map[body.result(n, i).index] = part_.result(*copy, i);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : body.outputs()) outputs.push_back(map[v.index]);
  return outputs;
}

Status BatchWalk::composite(NodeId n) {
  const Graph spelled = HONE_TRY(expansion(whole_.op(n), whole_.operand_types(n)));
  std::vector<int> present;
  std::vector<ValueId> arguments;
  for (ValueId v : whole_.operands(n))
    if (!v.is_none()) present.push_back(dims_[v.index]);
  Result<WalkedRows> walked = walk_rows(spelled, present, {}, share_);
  if (!walked.ok())
    return mixes_rows(whole_.op(n).name(), fmt::format("inside of it, {}", walked.error().what()))
        .at(whole_.describe(n));
  if (walked->depends_on_first) depends_on_first_ = true;
  if (walked->has_sums) has_sums_ = true;
  std::vector<int> dims;
  std::vector<ValueId> operands;
  size_t next = 0;
  for (ValueId v : whole_.operands(n)) {
    dims.push_back(v.is_none() ? kWhole : present[next++]);
    operands.push_back(HONE_TRY(at(v, dims.back())));
    if (!v.is_none()) arguments.push_back(operands.back());
  }

  std::vector<Type> types, wanted;
  for (ValueId v : operands) types.push_back(v.is_none() ? Type() : part_.type(v));
  for (ValueId v : walked->graph.outputs()) wanted.push_back(walked->graph.type(v));
  std::vector<Type> sized = whole_.operand_types(n);
  const std::vector<Type> results = whole_.result_types(n);
  sized.insert(sized.end(), results.begin(), results.end());
  std::vector<int> sized_dims = dims;
  sized_dims.insert(sized_dims.end(), walked->outputs.begin(), walked->outputs.end());
  const std::optional<Op> op = local_op(
      {whole_.op(n), types}, size_entries(whole_.op(n), sized, sized_dims, share_), wanted);
  std::vector<ValueId> made;
  if (op && structural_hash(HONE_TRY(expansion(*op, types))) == structural_hash(walked->graph)) {
    const NodeId one = HONE_TRY(part_.append(*op, operands));
    for (ValueId v : part_.results(one)) made.push_back(v);
  } else {
    made = inlined(walked->graph, arguments);
  }
  for (size_t i = 0; i < made.size(); ++i) define(n, i, made[i], walked->outputs[i]);
  return {};
}

// ---- Control flow -------------------------------------------------------------------------------

namespace {

// How the operands and results of a node correspond to those of its regions.
struct Flow {
  size_t first = 0;    // operands from here on are parameters of each region
  size_t carried = 0;  // the first ones, which come back as results
  size_t scanned = 0;  // others, which lose dim 0 on the way in; later results get one
  bool is_loop = false;
};

Flow flow_of(Op op, size_t operands) {
  Flow flow;
  if (is_branch(op.opcode())) flow.first = 1;
  flow.is_loop = is_loop(op.opcode());
  if (is_while(op.opcode())) flow.carried = operands;
  if (is_scan(op.opcode())) {
    flow.carried = static_cast<size_t>(op.integer("carried"));
    flow.scanned = operands - flow.carried;
  }
  return flow;
}

// The regions of a node, as far as all of them agree on parameters and results.
class Regions {
 public:
  Regions(const Graph& graph, NodeId n, const Flow& flow, std::vector<int> parameters,
          const BatchShare& share)
      : graph_(graph), n_(n), flow_(flow), share_(share), parameters_(std::move(parameters)) {
    results_.assign(graph.results(n).size(), kWhole);
  }

  Status settle() {
    for (bool changed = true; changed;) {
      changed = false;
      walked_.clear();
      const size_t count = graph_.regions(n_).size();
      for (size_t i = 0; i < count; ++i) {
        const bool is_condition = flow_.is_loop && count > 1 && i == 0;
        const std::vector<int> before = parameters_;
        Result<WalkedRows> one = walk_rows(
            *graph_.regions(n_)[i], parameters_,
            is_condition ? std::span<const int>() : std::span<const int>(results_), share_);
        if (!one.ok()) return std::move(one).error().within(graph_.describe(n_));
        changed = changed || parameters_ != before;
        if (!is_condition) changed = HONE_TRY(take_results(one->outputs)) || changed;
        walked_.push_back(std::move(*one));
      }
    }
    return {};
  }

  // A state that each step only adds to stays in parts: it is added up once, after the loop. After
  // settle().
  Status keep_sums() {
    const bool have_sums = std::ranges::any_of(walked_, &WalkedRows::has_sums);
    std::vector<bool> may(flow_.is_loop && have_sums ? flow_.carried : 0);
    for (size_t i = 0; i < may.size(); ++i) may[i] = may_stay_in_parts(i);
    // Fewer of them each time.
    for (int round = 0; round < kMostRounds && std::ranges::find(may, true) != may.end(); ++round)
      if (HONE_TRY(walk_in_parts(may))) return {};
    return {};
  }

  const std::vector<int>& parameters() const { return parameters_; }
  const std::vector<int>& results() const { return results_; }
  std::vector<WalkedRows>& walked() { return walked_; }

 private:
  static constexpr int kMostRounds = 3;  // loops may stand in loops

  // Numbers of 16 bits are added up in a type that is not the state's. To a state that stays as it
  // is nothing is added.
  bool may_stay_in_parts(size_t i) const {
    const DType dtype = graph_.type(graph_.result(n_, i)).dtype();
    const Graph& body = *graph_.regions(n_).back();
    return body.outputs()[i] != body.inputs()[i] && results_[i] == kWhole &&
           parameters_[i] == kWhole && sum_type(dtype) == dtype;
  }

  // With these states in parts. True: it is so from now on. False: some of them may not.
  Result<bool> walk_in_parts(std::vector<bool>& may) {
    std::vector<int> parameters = parameters_, results = results_;
    for (size_t i = 0; i < may.size(); ++i)
      if (may[i]) parameters[i] = results[i] = kPartialSum;
    std::vector<WalkedRows> walked;
    std::vector<bool> kept = may;
    const size_t count = graph_.regions(n_).size();
    for (size_t region = 0; region < count; ++region) {
      const bool is_condition = count > 1 && region == 0;
      std::vector<int> own = parameters;
      Result<WalkedRows> one =
          walk_rows(*graph_.regions(n_)[region], own,
                    is_condition ? std::span<const int>() : std::span<const int>(results), share_);
      if (!one.ok() || own != parameters) return may.clear(), false;  // others would change
      walked.push_back(std::move(*one));
      for (size_t i = 0; i < may.size(); ++i) kept[i] = kept[i] && walked.back().kept[i];
    }
    const bool is_good = kept == may;
    may = std::move(kept);
    if (!is_good) return false;
    parameters_ = std::move(parameters);
    results_ = std::move(results);
    walked_ = std::move(walked);
    return true;
  }

  Result<bool> take_results(std::span<const int> outputs) {
    bool changed = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != kWhole && results_[i] == kWhole) {
        results_[i] = outputs[i];
        changed = true;
      }
      if (outputs[i] != kWhole && outputs[i] != results_[i])
        return mixes_rows(graph_.op(n_).name(),
                          fmt::format("its result {} has the rows along dim {} or {}", i,
                                      results_[i], outputs[i]))
            .at(graph_.describe(n_));
      if (i < flow_.carried) changed = HONE_TRY(join(results_[i], parameters_[i], i)) || changed;
    }
    return changed;
  }

  // The state before and after a step of a loop.
  Result<bool> join(int& result, int& parameter, size_t i) {
    if (result == parameter) return false;
    if (result != kWhole && parameter != kWhole)
      return mixes_rows(
                 graph_.op(n_).name(),
                 fmt::format("state {} has the rows along dim {} before a step, and {} after it", i,
                             parameter, result))
          .at(graph_.describe(n_));
    (result == kWhole ? result : parameter) = std::max(result, parameter);
    return true;
  }

  const Graph& graph_;
  const NodeId n_;
  const Flow& flow_;
  const BatchShare& share_;
  std::vector<int> parameters_;
  std::vector<int> results_;
  std::vector<WalkedRows> walked_;
};

// Devices that add up sums in what a truth decides must take the same way, or they would wait for
// each other. Each computes the truth by code of its own, which may round in another way. So it
// holds if it does on one of them.
Result<ValueId> agreed(Graph& graph, ValueId truth, int64_t devices) {
  const auto apply = [&](Op op, ValueId operand) -> Result<ValueId> {
    const ValueId operands[] = {operand};
    return graph.result(HONE_TRY(graph.append(op, operands)));
  };
  const ValueId number = HONE_TRY(apply(Op::get(Opcode::cast, {{"dtype", DType::i32}}), truth));
  const Op most =
      Op::get(Opcode::all_reduce, {{"kind", std::string("max")}, {"group_size", devices}});
  return apply(Op::get(Opcode::cast, {{"dtype", DType::boolean}}), HONE_TRY(apply(most, number)));
}

Status agree_on_output(Graph& test, int64_t devices) {
  const ValueId truth = HONE_TRY(agreed(test, test.outputs()[0], devices));
  test.set_outputs({truth});
  return {};
}

}  // namespace

Status BatchWalk::control(NodeId n) {
  const Flow flow = flow_of(whole_.op(n), whole_.operands(n).size());
  std::vector<int> dims = operand_dims(n);
  std::vector<int> parameters(dims.begin() + static_cast<ptrdiff_t>(flow.first), dims.end());
  for (size_t i = flow.carried; i < flow.carried + flow.scanned; ++i) {
    if (parameters[i] == 0)
      return mixes_rows(
                 whole_.op(n).name(),
                 fmt::format("it takes one step after the other along dim 0 of operand {}", i))
          .at(whole_.describe(n));
    if (parameters[i] != kWhole) --parameters[i];
  }
  Regions regions(whole_, n, flow, std::move(parameters), share_);
  HONE_TRY(regions.settle());
  const bool have_sums = std::ranges::any_of(regions.walked(), &WalkedRows::has_sums);
  HONE_TRY(regions.keep_sums());

  for (size_t i = 0; i < regions.parameters().size(); ++i) {
    const int dim = regions.parameters()[i];
    const bool is_scanned = flow.scanned > 0 && i >= flow.carried;
    dims[flow.first + i] = dim != kWhole && is_scanned ? dim + 1 : dim;
  }
  std::vector<int> results = regions.results();
  if (is_scan(whole_.opcode(n)))
    for (size_t i = flow.carried; i < results.size(); ++i)
      if (results[i] != kWhole) ++results[i];
  std::vector<GraphRef> bodies;
  if (have_sums && is_while(whole_.opcode(n)))
    HONE_TRY(agree_on_output(regions.walked()[0].graph, share_.devices));
  for (WalkedRows& one : regions.walked()) {
    if (one.depends_on_first) depends_on_first_ = true;
    bodies.push_back(std::make_shared<Graph>(std::move(one.graph)));
  }
  std::vector<ValueId> local = HONE_TRY(operands_at(n, dims));
  if (have_sums && is_branch(whole_.opcode(n))) {
    local[0] = HONE_TRY(agreed(part_, local[0], share_.devices));
  }
  has_sums_ = has_sums_ || have_sums;
  const NodeId made = HONE_TRY(append(n, local, dims, results, std::move(bodies)));
  for (size_t i = 0; i < results.size(); ++i) define(n, i, part_.result(made, i), results[i]);
  return finish_sums(n);
}

}  // namespace hone
