#include "tests/program/product_testing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/functional.h"
#include "ir/op_facts.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "plan/rewritten.h"
#include "rewrite/overlap.h"
#include "rules/rewrites.h"

namespace hone::tested {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f32,  DType::f64,
                            DType::f16, DType::bf16, DType::i32};

enum class Part : uint8_t { batch, left, summed, right };

struct ProductDim {
  Part part;
  int64_t size;
};

class ProductGenerator {
 public:
  ProductGenerator(Rng& rng, int32_t devices) : rng_(rng), devices_(devices) {}

  Graph graph() {
    const bool is_gathered = rng_.chance(0.5);
    draw_dims(is_gathered);
    const Attrs groups = draw_groups();
    const auto side = static_cast<size_t>(rng_.between(0, 1));
    const std::vector<size_t>& cut_from = is_gathered ? operands_[side] : result_;
    const size_t cut = rng_.pick(cut_from);
    const int64_t shard = rng_.between(1, 5);
    dims_[cut].size = shard * members_;

    Builder b("main");
    const DType dtype = rng_.pick(kTypes);
    std::vector<Value> operands;
    for (size_t s = 0; s < 2; ++s) {
      Dims sizes = sizes_of(operands_[s]);
      const bool moves = is_gathered && s == side;
      const int64_t axis = place(operands_[s], cut);
      if (moves) sizes[static_cast<size_t>(axis)] = shard;
      Value x = b.parameter(s == 0 ? "x" : "w", Type::get(dtype, sizes));
      if (rng_.chance(0.3)) x = x + x;
      operands.push_back(moves ? b.op(Opcode::all_gather, {x}, with(groups, {"axis", axis})) : x);
    }
    Value y = b.ops(dot(), operands)[0];
    if (!is_gathered)
      y = b.op(Opcode::reduce_scatter, {y},
               with(with(groups, {"axis", place(result_, cut)}), {"kind", std::string("sum")}));
    y = y.named("y");
    std::vector<Value> outputs = {y};
    if (rng_.chance(0.3)) outputs.push_back(-y);
    return b.finish(outputs).value();
  }

 private:
  void draw_dims(bool is_gathered) {
    const auto add = [&](Part part, int64_t least, int64_t most) {
      for (int64_t n = rng_.between(least, most); n > 0; --n)
        dims_.push_back({part, rng_.between(1, 3)});
    };
    add(Part::batch, 0, 1);
    add(Part::left, is_gathered ? 0 : 1, 2);
    add(Part::summed, 1, 2);
    add(Part::right, 0, 2);
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i].part != Part::right) operands_[0].push_back(i);
      if (dims_[i].part != Part::left) operands_[1].push_back(i);
    }
    for (std::vector<size_t>& operand : operands_) rng_.shuffle(operand);
    // The result has batch dims in the order of the attributes, then each operand's in its own.
    for (size_t i = 0; i < dims_.size(); ++i)
      if (dims_[i].part == Part::batch) result_.push_back(i);
    for (size_t s = 0; s < 2; ++s)
      for (const size_t i : operands_[s])
        if (dims_[i].part == (s == 0 ? Part::left : Part::right)) result_.push_back(i);
  }

  Attrs draw_groups() {
    std::vector<int64_t> sizes;
    for (int64_t size = 2; size <= devices_; ++size)
      if (devices_ % size == 0) sizes.push_back(size);
    members_ = rng_.pick(sizes);
    Attrs attrs = {{"group_size", members_}};
    if (rng_.chance(0.5)) return attrs;
    Ints ids(static_cast<size_t>(devices_));
    std::iota(ids.begin(), ids.end(), 0);
    rng_.shuffle(ids);
    attrs.emplace_back("groups", ids);
    return attrs;
  }
  static Attrs with(Attrs attrs, std::pair<std::string_view, AttrValue> one) {
    attrs.push_back(std::move(one));
    return attrs;
  }

  Op dot() const {
    Ints batch[2], summed[2];
    for (size_t i = 0; i < dims_.size(); ++i)
      for (size_t s = 0; s < 2; ++s) {
        if (dims_[i].part == Part::batch) batch[s].push_back(place(operands_[s], i));
        if (dims_[i].part == Part::summed) summed[s].push_back(place(operands_[s], i));
      }
    return Op::get(Opcode::dot, {{"lhs_batch", batch[0]},
                                 {"rhs_batch", batch[1]},
                                 {"lhs_contract", summed[0]},
                                 {"rhs_contract", summed[1]}});
  }

  Dims sizes_of(const std::vector<size_t>& list) const {
    Dims sizes;
    for (const size_t i : list) sizes.push_back(dims_[i].size);
    return sizes;
  }
  static int64_t place(const std::vector<size_t>& list, size_t dim) {
    return std::ranges::find(list, dim) - list.begin();
  }

  Rng& rng_;
  const int32_t devices_;
  std::vector<ProductDim> dims_;
  std::vector<size_t> operands_[2], result_;  // dims, in order
  int64_t members_ = 2;
};

bool is_close(double a, double b, DType dtype, bool is_exact) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (is_exact) return false;
  // Products of numbers up to 27, in sums of 100 or fewer.
  const double most = 27.0 * 27 * 100;
  const double unit = dtype == DType::f64    ? 1e-15
                      : dtype == DType::f32  ? 1e-7
                      : dtype == DType::bf16 ? 4e-3
                                             : 5e-4;
  return std::abs(a - b) <= unit * most;
}

}  // namespace

SpmdCase draw_product(uint64_t seed, int32_t devices, bool is_exact) {
  Rng rng(seed);
  SpmdCase drawn;
  drawn.devices = static_cast<int32_t>(rng.between(2, devices));
  drawn.is_exact = is_exact;
  drawn.graph = ProductGenerator(rng, drawn.devices).graph();
  for (int32_t d = 0; d < drawn.devices; ++d) {
    std::vector<Tensor>& own = drawn.inputs.emplace_back();
    for (Type type : drawn.graph.input_types()) own.push_back(draw_tensor(rng, type, is_exact));
  }
  return drawn;
}

bool keeps_bits(const SpmdCase& product) {
  const Graph& graph = product.graph;
  for (const NodeId n : graph.nodes()) {
    if (graph.opcode(n) != Opcode::dot) continue;
    for (size_t side = 0; side < 2; ++side) {
      const NodeId maker = graph.producer(graph.operands(n)[side]);
      if (graph.opcode(maker) != Opcode::all_gather) continue;
      const Ints& summed = graph.op(n).ints(side == 0 ? "lhs_contract" : "rhs_contract");
      return std::ranges::find(summed, graph.op(maker).integer("axis")) == summed.end();
    }
  }
  return false;
}

Plan random_overlaps(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  Plan plan;
  plan.graph = graph.name();
  const Graph named = rewritable(graph).value();
  for (const ValueId v : overlap_candidates(named)) {
    const Overlap overlap = {rng.chance(0.5), rng.between(1, 4)};
    if (!overlapped(named, v, overlap).ok()) continue;
    plan.rewrite.push_back({name(overlap), {std::string(named.name(v))}});
  }
  return plan;
}

Graph overlapped_by(const Graph& graph, const Plan& plan) {
  return rewritten(graph, parse_plan(print(plan)).value(), std::span<const Rule>()).value();
}

std::string product_fault(uint64_t seed, int32_t devices, bool is_exact) {
  const SpmdCase drawn = draw_product(seed, devices, is_exact);
  const Graph steps = overlapped_by(drawn.graph, random_overlaps(drawn.graph, seed));
  if (const Status good = verify(steps); !good.ok()) return good.error().to_string();
  const EvalOptions options = {.numerics = Numerics::rounded};
  const Result<DeviceTensors> wanted = evaluate_spmd(drawn.graph, drawn.inputs, options);
  const Result<DeviceTensors> made = evaluate_spmd(steps, drawn.inputs, options);
  if (!wanted.ok() || !made.ok()) return (wanted.ok() ? made : wanted).error().to_string();
  if (keeps_bits(drawn)) return same_bits(*wanted, *made);
  for (size_t d = 0; d < made->size(); ++d)
    for (size_t i = 0; i < (*made)[d].size(); ++i) {
      const Tensor &a = (*wanted)[d][i], &b = (*made)[d][i];
      for (int64_t e = 0; e < a.elements(); ++e)
        if (!is_close(a.real_at(e), b.real_at(e), a.type().dtype(), is_exact))
          return fmt::format("device {}, output {}, element {}: {} is not {}\n{}", d, i, e,
                             b.real_at(e), a.real_at(e), print(steps));
    }
  return "";
}

}  // namespace hone::tested
