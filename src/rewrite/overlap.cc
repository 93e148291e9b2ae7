#include "rewrite/overlap.h"

#include <algorithm>
#include <charconv>

#include "base/planted.h"
#include "base/text.h"
#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"

namespace hone {
namespace {

constexpr std::string_view kRing = "overlap_ring_";
constexpr std::string_view kBoth = "overlap_both_";

// ---- The dims of a product ----------------------------------------------------------------------

// A dim of one operand: where it is in the other one, and in the result. A batch dim is in all, a
// contracted one not in the result, and one that is free not in the other operand.
struct DimOf {
  std::optional<int> other;
  std::optional<int> result;
};

std::optional<int> place_in(const Ints& list, int64_t axis) {
  const auto at = std::ranges::find(list, axis);
  if (at == list.end()) return std::nullopt;
  return static_cast<int>(at - list.begin());
}

class ProductDims {
 public:
  ProductDims(Op dot, int lhs_rank, int rhs_rank)
      : batch_{dot.ints("lhs_batch"), dot.ints("rhs_batch")},
        contract_{dot.ints("lhs_contract"), dot.ints("rhs_contract")},
        rank_{lhs_rank, rhs_rank} {}

  // `side` is 0 for lhs, 1 for rhs.
  DimOf of(int side, int axis) const {
    const int other = 1 - side;
    if (const std::optional<int> at = place_in(batch_[side], axis))
      return {static_cast<int>(batch_[other][static_cast<size_t>(*at)]), at};
    if (const std::optional<int> at = place_in(contract_[side], axis))
      return {static_cast<int>(contract_[other][static_cast<size_t>(*at)]), std::nullopt};
    int result = static_cast<int>(batch_[0].size()) + (side == 1 ? free_count(0) : 0);
    for (int before = 0; before < axis; ++before) result += is_free(side, before) ? 1 : 0;
    return {std::nullopt, result};
  }

  // The dim of an operand that is this one of the result.
  std::optional<int> operand_dim(int side, int result) const {
    for (int axis = 0; axis < rank_[side]; ++axis)
      if (of(side, axis).result == result) return axis;
    return std::nullopt;
  }

 private:
  bool is_free(int side, int axis) const {
    return !place_in(batch_[side], axis) && !place_in(contract_[side], axis);
  }
  int free_count(int side) const {
    int count = 0;
    for (int axis = 0; axis < rank_[side]; ++axis) count += is_free(side, axis) ? 1 : 0;
    return count;
  }

  const Ints batch_[2], contract_[2];
  const int rank_[2];
};

// ---- Products that can be divided ---------------------------------------------------------------

struct Candidate {
  NodeId dot;
  NodeId collective;
  bool is_gathered = false;  // else its sums are scattered
  int side = 0;              // gathered: which operand of the dot
  int axis = 0;              // of what is gathered, or of the result
  int64_t members = 1;
  int64_t shard = 0;  // elements of the dim that a device has
  bool is_contracted = false;
};

bool is_exchange(const Graph& graph, NodeId n, Opcode opcode) {
  return graph.opcode(n) == opcode && graph.op(n).integer("group_size") > 1;
}

Error cannot(const Graph& graph, NodeId n, std::string_view why) {
  return bad_input("{} cannot be divided into steps: {}", graph.describe(n), why);
}

Result<Candidate> gathered(const Graph& graph, const Users& users, NodeId dot) {
  for (int side = 0; side < 2; ++side) {
    const ValueId operand = graph.operands(dot)[static_cast<size_t>(side)];
    const NodeId gather = graph.producer(operand);
    if (!is_exchange(graph, gather, Opcode::all_gather)) continue;
    if (!users.has_one_use(operand)) return cannot(graph, dot, "others read what it gathers, too");
    const auto axis = static_cast<int>(graph.op(gather).integer("axis"));
    const ProductDims dims(graph.op(dot), graph.type(graph.operands(dot)[0]).rank(),
                           graph.type(graph.operands(dot)[1]).rank());
    const Dim shard = graph.type(graph.operands(gather)[0]).dim(axis);
    if (!shard.is_static()) return cannot(graph, dot, "the size of a shard is open");
    return Candidate{dot,           gather,
                     true,          side,
                     axis,          graph.op(gather).integer("group_size"),
                     shard.value(), !dims.of(side, axis).result};
  }
  return cannot(graph, dot, "no operand comes from an all_gather");
}

Result<Candidate> scattered(const Graph& graph, const Users& users, NodeId scatter) {
  const ValueId product = graph.operands(scatter)[0];
  const NodeId dot = graph.producer(product);
  if (graph.op(scatter).word("kind") != "sum" || !is_dot(graph.opcode(dot)))
    return cannot(graph, scatter, "it does not sum up what a dot makes");
  if (!users.has_one_use(product)) return cannot(graph, scatter, "others read the dot, too");
  const auto axis = static_cast<int>(graph.op(scatter).integer("axis"));
  const Dim shard = graph.type(graph.result(scatter)).dim(axis);
  if (!shard.is_static()) return cannot(graph, scatter, "the size of a shard is open");
  return Candidate{dot,          scatter, false, 0, axis, graph.op(scatter).integer("group_size"),
                   shard.value()};
}

Result<Candidate> candidate_at(const Graph& graph, const Users& users, ValueId result) {
  const NodeId n = graph.producer(result);
  if (is_dot(graph.opcode(n))) return gathered(graph, users, n);
  if (is_exchange(graph, n, Opcode::reduce_scatter)) return scattered(graph, users, n);
  return cannot(graph, n, "it is no dot of what is gathered, nor a reduce_scatter of a dot");
}

Status check(const Graph& graph, const Candidate& found, const Overlap& overlap) {
  const NodeId n = found.is_gathered ? found.dot : found.collective;
  if (overlap.pieces > found.shard)
    return cannot(graph, n,
                  fmt::format("a shard of {} makes no {} pieces", found.shard, overlap.pieces));
  if (overlap.pieces < 2 && overlap.is_both)
    return cannot(graph, n, "one piece cannot go both ways");
  if (overlap.pieces < 2 && !found.is_gathered)
    return cannot(graph, n, "a sum of one piece moves only when all is computed; take 2 or more");
  return {};
}

// ---- The steps ----------------------------------------------------------------------------------

// A piece of each shard, and the way that it goes around the ring. In each round a member deals
// with the shard of the member that is `step` behind the last one's.
struct Lane {
  int64_t begin = 0;
  int64_t size = 0;
  int64_t step = 1;
};

std::vector<Lane> lanes_of(int64_t shard, const Overlap& overlap) {
  std::vector<Lane> lanes;
  for (int64_t i = 0; i < overlap.pieces; ++i) {
    const int64_t begin = shard * i / overlap.pieces, end = shard * (i + 1) / overlap.pieces;
    lanes.push_back({begin, end - begin, overlap.is_both && i % 2 == 1 ? -1 : 1});
  }
  return lanes;
}

class Steps {
 public:
  Steps(const Graph& graph, const Candidate& found, const Overlap& overlap)
      : op_(graph.op(found.dot)),
        exchange_(graph.op(found.collective)),
        found_(found),
        is_both_(overlap.is_both),
        lanes_(lanes_of(found.shard, overlap)),
        result_(graph.type(graph.result(found.dot))),
        dims_(op_, graph.type(graph.operands(found.dot)[0]).rank(),
              graph.type(graph.operands(found.dot)[1]).rank()) {
    for (size_t side = 0; side < 2; ++side)
      types_[side] = graph.type(graph.operands(found.dot)[side]);
    if (found.is_gathered) types_[found.side] = graph.type(graph.operands(found.collective)[0]);
  }

  // Takes the operands of the dot, the gathered one as the shard that a device has.
  Result<Graph> body() {
    for (size_t side = 0; side < 2; ++side) operands_.push_back(b_.parameter("", types_[side]));
    member_ = member();
    const Value made = found_.is_gathered ? products() : sums();
    return b_.finish({made});
  }

 private:
  int64_t rounds() const { return found_.members; }

  // ---- An all_gather ----

  Value products() {
    const Value shard = operands_[static_cast<size_t>(found_.side)];
    std::vector<Value> have;
    for (const Lane& lane : lanes_)
      have.push_back(lanes_.size() == 1
                         ? shard
                         : slice(shard, found_.axis, lane.begin, lane.begin + lane.size));
    Value made;
    const size_t at_once = is_both_ ? 2 : 1;  // one each way
    for (int64_t round = 0; round < rounds(); ++round)
      for (size_t first = 0; first < lanes_.size(); first += at_once) {
        const size_t last = std::min(first + at_once, lanes_.size());
        std::vector<Value> now;
        for (size_t i = first; i < last; ++i) {
          now.push_back(have[i]);
          // The shard of the member `step` behind comes next.
          if (round + 1 < rounds()) have[i] = moved(have[i], -lanes_[i].step);
        }
        for (size_t i = first; i < last; ++i)
          made = with_product(made, now[i - first], lanes_[i], round * lanes_[i].step);
      }
    return made.dtype() == result_.dtype() ? made : cast(made, result_.dtype());
  }

  // Adds what a piece of the shard of the member `behind` this one gives.
  Value with_product(Value made, Value piece, const Lane& lane, int64_t behind) {
    const DimOf dim = dims_.of(found_.side, found_.axis);
    const Value begin = offset(behind, lane);
    std::vector<Value> operands = operands_;
    operands[static_cast<size_t>(found_.side)] = piece;
    if (dim.other) {
      Value& other = operands[static_cast<size_t>(1 - found_.side)];
      other = window(other, *dim.other, begin, lane.size);
    }
    const Value block = b_.ops(step_op(), operands)[0];
    if (found_.is_contracted) return made ? made + block : block;
    if (!made) made = b_.full(result_.dtype(), dims_of(result_), 0);
    std::vector<Value> update = {made, block};
    for (int i = 0; i < result_.rank(); ++i) update.push_back(i == *dim.result ? begin : number(0));
    return b_.op(Opcode::dynamic_update, update);
  }

  // Terms of 16 bits are summed up in f32, and rounded once, as in the undivided product.
  Op step_op() const {
    const bool is_half = result_.dtype() == DType::f16 || result_.dtype() == DType::bf16;
    if (!found_.is_contracted || !is_half || op_.word("accumulate") != "same") return op_;
    return Op::get(op_.opcode(), {{"lhs_batch", op_.ints("lhs_batch")},
                                  {"rhs_batch", op_.ints("rhs_batch")},
                                  {"lhs_contract", op_.ints("lhs_contract")},
                                  {"rhs_contract", op_.ints("rhs_contract")},
                                  {"accumulate", std::string("f32")},
                                  {"flush", op_.flag("flush")},
                                  {"parts", op_.integer("parts")}});
  }

  // ---- A reduce_scatter ----

  Value sums() {
    std::vector<Value> sums(lanes_.size());
    for (int64_t round = 0; round < rounds(); ++round)
      for (size_t i = 0; i < lanes_.size(); ++i) {
        // The last round is the own shard's.
        const Value part = partial(lanes_[i], (rounds() - 1 - round) * lanes_[i].step);
        sums[i] = sums[i] ? sums[i] + part : part;
        if (round + 1 < rounds()) sums[i] = moved(sums[i], lanes_[i].step);
      }
    return concat(sums, found_.axis);
  }

  Value partial(const Lane& lane, int64_t behind) {
    const Value begin = offset(behind, lane);
    std::vector<Value> operands = operands_;
    for (int side = 0; side < 2; ++side)
      if (const std::optional<int> axis = dims_.operand_dim(side, found_.axis)) {
        Value& operand = operands[static_cast<size_t>(side)];
        operand = window(operand, *axis, begin, lane.size);
      }
    return b_.ops(op_, operands)[0];
  }

  // ---- Both ----

  static Dims dims_of(Type type) { return {type.dims().begin(), type.dims().end()}; }
  Value number(int64_t value) {
    return b_.constant(Tensor::of<int64_t>(Type::scalar(DType::i64), std::span(&value, 1)));
  }
  int64_t modulo(int64_t member) const {
    return (member % found_.members + found_.members) % found_.members;
  }

  // The place of this device in its group.
  Value member() {
    const Value device = b_.op(Opcode::device_index, std::span<const Value>());
    const Ints& groups = exchange_.ints("groups");
    if (groups.empty()) return binary(Opcode::rem, device, number(found_.members));
    std::vector<int64_t> places(groups.size());
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i] < std::ssize(groups))  // else no number of devices fits
        places[static_cast<size_t>(groups[i])] = static_cast<int64_t>(i) % found_.members;
    const Value table =
        b_.constant(Tensor::of<int64_t>(Type::get(DType::i64, {std::ssize(groups)}), places));
    return reshape(b_.op(Opcode::dynamic_slice, {table, device}, {{"sizes", Dims{1}}}), {});
  }

  // Where a piece of the shard of a member begins.
  Value offset(int64_t behind, const Lane& lane) {
    const int64_t ahead = modulo(HONE_PLANT(overlap_slice, behind, behind + 1));
    const Value shard =
        ahead == 0 ? member_ : binary(Opcode::rem, member_ + number(ahead), number(found_.members));
    const Value begin = shard * number(found_.shard);
    return lane.begin == 0 ? begin : begin + number(lane.begin);
  }

  Value window(Value of, int axis, Value begin, int64_t size) {
    Dims sizes = of.dims();
    sizes[static_cast<size_t>(axis)] = size;
    std::vector<Value> operands = {of};
    for (int i = 0; i < of.rank(); ++i) operands.push_back(i == axis ? begin : number(0));
    return b_.op(Opcode::dynamic_slice, operands, {{"sizes", sizes}});
  }

  // Each member sends to the one that is `by` behind it.
  Value moved(Value piece, int64_t by) {
    Ints pairs;
    for (int64_t m = 0; m < found_.members; ++m) pairs.insert(pairs.end(), {m, modulo(m + by)});
    return b_.op(
        Opcode::permute, {piece},
        {{"pairs", pairs}, {"group_size", found_.members}, {"groups", exchange_.ints("groups")}});
  }

  const Op op_, exchange_;
  const Candidate found_;
  const bool is_both_;
  const std::vector<Lane> lanes_;
  const Type result_;
  const ProductDims dims_;
  Type types_[2];
  Builder b_;
  std::vector<Value> operands_;
  Value member_;
};

}  // namespace

// ---- Names --------------------------------------------------------------------------------------

std::string name(const Overlap& overlap) {
  return fmt::format("{}{}", overlap.is_both ? kBoth : kRing, overlap.pieces);
}

std::optional<Overlap> overlap_from_name(std::string_view name) {
  Overlap found = {.is_both = name.starts_with(kBoth)};
  if (!found.is_both && !name.starts_with(kRing)) return std::nullopt;
  const std::string_view digits = name.substr(kRing.size());
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), found.pieces);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || found.pieces < 1 || found.pieces > Overlap::kMaxPieces) return std::nullopt;
  if (hone::name(found) != name) return std::nullopt;
  return found;
}

// ---- Choices ------------------------------------------------------------------------------------

std::vector<ValueId> overlap_candidates(const Graph& graph) {
  const Users users(graph);
  std::vector<ValueId> found;
  for (NodeId n : graph.nodes())
    if ((is_dot(graph.opcode(n)) || graph.opcode(n) == Opcode::reduce_scatter) &&
        candidate_at(graph, users, graph.result(n)).ok())
      found.push_back(graph.result(n));
  return found;
}

std::vector<Overlap> overlaps_of(const Graph& graph, ValueId candidate) {
  const Result<Candidate> found = candidate_at(graph, Users(graph), candidate);
  std::vector<Overlap> all;
  if (!found.ok()) return all;
  for (const bool is_both : {false, true})
    for (const int64_t pieces : {1, 2, 4, 8})
      if (const Overlap overlap = {is_both, pieces}; check(graph, *found, overlap).ok())
        all.push_back(overlap);
  return all;
}

Result<Graph> overlapped(const Graph& graph, ValueId result, const Overlap& overlap) {
  const Candidate found = HONE_TRY(candidate_at(graph, Users(graph), result));
  HONE_TRY(check(graph, found, overlap));
  const Graph steps = HONE_TRY(Steps(graph, found, overlap).body());
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    const bool is_first = n == (found.is_gathered ? found.collective : found.dot);
    const bool is_last = n == (found.is_gathered ? found.dot : found.collective);
    if (!is_first && !is_last) HONE_TRY(copy.node(n));
    if (!is_last) continue;
    std::vector<ValueId> arguments;
    for (int side = 0; side < 2; ++side) {
      const bool moves = found.is_gathered && side == found.side;
      arguments.push_back(copy(moves ? graph.operands(found.collective)[0]
                                     : graph.operands(found.dot)[static_cast<size_t>(side)]));
    }
    const std::vector<ValueId> made = HONE_TRY(copy.append(steps, arguments));
    copy.replace(result, made[0]);
  }
  return copy.finish();
}

}  // namespace hone
