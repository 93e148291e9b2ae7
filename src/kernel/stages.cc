#include "kernel/stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ir/op_facts.h"
#include "kernel/back_walk.h"
#include "kernel/contraction.h"
#include "kernel/facts.h"

namespace hone {

namespace {

using Index = std::vector<IndexExpr>;  // over the results' dims and others

constexpr size_t kMaxPlaces = 16;  // where one value is needed
constexpr int kWhole = -1;

struct StagePlace {
  Index index;
  bool is_same(const StagePlace& other) const { return index == other.index; }
  void absorb(const StagePlace& /*other*/) {}
};

// Where the kept values of a body are needed for one block of its results.
class KeptPlaces {
 public:
  KeptPlaces(const KernelBody& body, std::span<const ValueId> kept, std::vector<bool> is_blocked)
      : graph_(body.graph),
        results_(graph_.type(graph_.outputs()[0])),
        is_blocked_(std::move(is_blocked)) {
    for (ValueId v : kept) along_[v.index] = std::nullopt;
    for (Dim extent : results_.dims()) new_iter(extent.value());
    for (ValueId output : graph_.outputs())
      needed_.add(output, {identity_index(graph_.type(output).rank())});
    for (auto node = static_cast<uint32_t>(graph_.node_count()); node-- > 0;) visit(NodeId{node});
    for (size_t d = 0; needed_.is_over() && d < is_blocked_.size(); ++d)
      if (is_blocked_[d]) not_in_blocks_.insert(static_cast<int>(d));
  }

  // Per dim of the value: what a block needs of it.
  Result<std::vector<Along>> along(ValueId kept) const {
    const auto& found = along_.at(kept.index);
    if (!found) return bad_input("nothing reads {}, which is kept", graph_.label(kept));
    return *found;
  }
  // Dims of the results whose blocks need other parts of kept values than points side by side.
  const std::set<int>& not_in_blocks() const { return not_in_blocks_; }

  std::optional<Index> enter(NodeId /*node*/, const AccessRelation& relation,
                             const StagePlace& place) {
    next_iter_ = first_iter_;
    Index iters = place.index;
    while (iters.size() < relation.dims.size()) {
      const bool is_point = relation.dims[iters.size()].extent.is(1);
      iters.push_back(is_point ? IndexExpr(0)
                               : new_iter(relation.dims[iters.size()].extent.value()));
    }
    return iters;
  }

  StagePlace read(const BackRead& read, const Index& iters, const StagePlace& /*place*/) {
    const Type operand = graph_.type(graph_.operands(read.node)[read.operand]);
    StagePlace next;
    for (int d = 0; d < operand.rank(); ++d)
      next.index.push_back(read.access.is_data_dependent(d)
                               ? new_iter(operand.dim(d).value())
                               : read.access.index[static_cast<size_t>(d)].substitute(iters));
    return next;
  }

 private:
  void visit(NodeId node) {
    if (graph_.operands(node).empty()) return;
    for (ValueId result : graph_.results(node)) settle(result);
    first_iter_ = next_iter_;
    walk_back(graph_, node, relation_of(graph_, node), needed_, *this);
  }

  // The one place where a value that is kept is needed, seen from a block.
  void settle(ValueId value) {
    const auto found = along_.find(value.index);
    std::vector<StagePlace>& places = needed_.of(value);
    if (found == along_.end() || places.empty()) return;
    const Index first = places[0].index;
    std::vector<Along> all;
    Index index;
    for (size_t d = 0; d < first.size(); ++d) {
      const std::optional<Along> along = along_of(first[d]);
      for (const StagePlace& other : places) {
        if (along && along_of(other.index[d]) == along) continue;
        refuse(other.index[d]);
        refuse(first[d]);
      }
      all.push_back(along.value_or(Along()));
      index.push_back(points_of(all.back(), graph_.type(value).dim(static_cast<int>(d)).value()));
    }
    places = {{std::move(index)}};
    found->second = std::move(all);
  }

  // None: what blocks need does not lie side by side.
  std::optional<Along> along_of(const IndexExpr& expr) const {
    int dim = kWhole;
    for (int d = 0; d < static_cast<int>(is_blocked_.size()); ++d) {
      if (!is_blocked_[static_cast<size_t>(d)] || !expr.mentions(d)) continue;
      if (dim != kWhole) return std::nullopt;
      dim = d;
    }
    if (dim == kWhole) return Along();
    const std::optional<int64_t> stride = expr.coefficient(dim);
    if (!stride || *stride < 1) return std::nullopt;
    const Range reach = (expr - IndexExpr::iter(dim) * *stride).over(ranges_);
    return Along{dim, *stride, reach.low, reach.high - reach.low + 1};
  }

  // All points that a block has of the dim, by those of the results.
  IndexExpr points_of(const Along& along, int64_t extent) {
    if (along.is_whole()) return new_iter(extent);
    const int64_t apart = std::max(along.window, along.stride);  // up to the next point's
    const IndexExpr origin = along.origin(IndexExpr::iter(along.dim));
    return apart == 1 ? origin : origin + new_iter(apart);
  }

  IndexExpr new_iter(int64_t extent) {
    const auto at = static_cast<size_t>(next_iter_);
    if (at >= ranges_.size()) ranges_.resize(at + 1);
    ranges_[at] = {0, extent - 1};
    return IndexExpr::iter(next_iter_++);
  }

  void refuse(const IndexExpr& expr) {
    for (int d = 0; d < static_cast<int>(is_blocked_.size()); ++d)
      if (is_blocked_[static_cast<size_t>(d)] && expr.mentions(d)) not_in_blocks_.insert(d);
  }

  const Graph& graph_;
  const Type results_;
  const std::vector<bool> is_blocked_;  // dims of the results
  NeededPlaces<StagePlace> needed_{kMaxPlaces};
  std::map<uint32_t, std::optional<std::vector<Along>>> along_;
  std::set<int> not_in_blocks_;
  std::vector<Range> ranges_;  // by iter
  int next_iter_ = 0;          // no dim of the results
  int first_iter_ = 0;         // of what the node at hand reduces over
};

// The values that it takes to make the results, back to parameters and what earlier stages have
// kept.
std::vector<bool> needed_for(const Graph& graph, std::span<const ValueId> results,
                             std::span<const ValueId> before) {
  std::vector<bool> is_needed(graph.value_count());
  for (ValueId v : results) is_needed[v.index] = true;
  for (auto n = static_cast<uint32_t>(graph.node_count()); n-- > 0;) {
    for (ValueId result : graph.results(NodeId{n})) {
      if (!is_needed[result.index] || std::ranges::find(before, result) != before.end()) continue;
      for (ValueId operand : graph.operands(NodeId{n}))
        if (!operand.is_none()) is_needed[operand.index] = true;
    }
  }
  return is_needed;
}

// The image of the conv that the value is made of, by elementwise ops after it.
std::optional<ValueId> image_of(const Graph& graph, ValueId value) {
  std::vector<bool> is_needed(graph.value_count());
  is_needed[value.index] = true;
  for (uint32_t n = graph.producer(value).index + 1; n-- > 0;) {
    const NodeId node{n};
    if (!is_needed[graph.results(node)[0].index]) continue;
    if (is_convolution(graph.opcode(node))) return graph.operands(node)[0];
    if (!is_elementwise(graph.opcode(node))) continue;
    for (ValueId operand : graph.operands(node)) is_needed[operand.index] = true;
  }
  return std::nullopt;
}

// The layout for another value of the same rank. Dims that do not consist of whole blocks, or of
// which there is only a part, are not in blocks.
Layout fitted(const Layout& layout, Type type, std::span<const Along> along) {
  Layout fitted;
  for (Layout::Part part : layout.parts) {
    const bool is_whole = along[static_cast<size_t>(part.dim)].is_whole();
    if (part.block > 1 && !(is_whole && type.dim(part.dim).divisible_by(part.block))) {
      if (!part.is_inner) continue;
      part = {.dim = part.dim};
    }
    fitted.parts.push_back(part);
  }
  return fitted;
}

// True if windows of the value, or of what elementwise ops make of it, are reduced.
bool has_pool(const Graph& graph, ValueId value) {
  std::vector<bool> is_made(graph.value_count());
  is_made[value.index] = true;
  for (NodeId node : graph.nodes()) {
    const Opcode opcode = graph.opcode(node);
    for (ValueId operand : graph.operands(node)) {
      if (operand.is_none() || !is_made[operand.index]) continue;
      if (combines_windows(opcode)) return true;
      if (is_elementwise(opcode)) is_made[graph.result(node).index] = true;
    }
  }
  return false;
}

// The layouts of kept values in scratch. The result of a conv lies like its image, or for a pool
// like the results, so that lanes find neighbours side by side in both. Everything else is
// row-major.
class HeldLayouts {
 public:
  HeldLayouts(const KernelBody& body, std::span<const ValueId> kept) : body_(body), kept_(kept) {}

  // The block of what the next stage keeps, which goes along these dims of the results.
  const Layout& add(std::span<const Along> along) {
    const Graph& graph = body_.graph;
    const ValueId value = kept_[layouts_.size()];
    const Type type = graph.type(value);
    const Layout* layout = nullptr;
    if (const std::optional<ValueId> image = image_of(graph, value)) {
      const bool is_pooled = has_pool(graph, value);
      layout = is_pooled ? &body_.outputs[0] : known(*image);
      const ValueId other = is_pooled ? graph.outputs()[0] : *image;
      if (graph.type(other).rank() != type.rank()) layout = nullptr;
    }
    layouts_.push_back(layout ? fitted(*layout, type, along) : Layout::row_major(type.rank()));
    return layouts_.back();
  }
  const std::vector<Layout>& all() const { return layouts_; }

 private:
  // The window of a parameter, or of a value that an earlier stage keeps.
  const Layout* known(ValueId value) const {
    for (size_t i = 0; i < body_.inputs.size(); ++i)
      if (body_.graph.inputs()[i] == value) return &body_.inputs[i];
    for (size_t k = 0; k < layouts_.size(); ++k)
      if (kept_[k] == value) return &layouts_[k];
    return nullptr;
  }

  const KernelBody& body_;
  const std::span<const ValueId> kept_;
  std::vector<Layout> layouts_;
};

// The part of the body that makes what the stage keeps, or the results. `held` says how scratch
// holds what is kept, as far as earlier stages keep it.
Stage stage_of(const KernelBody& body, std::span<const ValueId> kept, size_t number,
               std::span<const Layout> held) {
  const Graph& graph = body.graph;
  const bool is_last = number == kept.size();
  const std::span<const ValueId> results = is_last ? graph.outputs() : kept.subspan(number, 1);
  const std::span<const ValueId> before = kept.first(number);
  const std::vector<bool> is_needed = needed_for(graph, results, before);
  Stage stage;
  std::map<uint32_t, ValueId> copies;
  const auto add_parameter = [&](ValueId v, Layout layout, size_t source) {
    if (!is_needed[v.index]) return;
    copies[v.index] = stage.body.graph.add_parameter(graph.type(v), graph.name(v));
    stage.body.inputs.push_back(std::move(layout));
    stage.sources.push_back(source);
  };
  const size_t parameters = graph.inputs().size();
  for (size_t i = 0; i < parameters; ++i) add_parameter(graph.inputs()[i], body.inputs[i], i);
  for (size_t k = 0; k < before.size(); ++k) add_parameter(before[k], held[k], parameters + k);
  for (NodeId node : graph.nodes()) {
    const ValueId result = graph.result(node);
    if (copies.contains(result.index) || !is_needed[result.index]) continue;
    if (is_constant(graph.opcode(node))) {
      copies[result.index] = stage.body.graph.add_constant(graph.constant(node));
      continue;
    }
    std::vector<ValueId> operands;
    for (ValueId operand : graph.operands(node))
      operands.push_back(operand.is_none() ? operand : copies.at(operand.index));
    const NodeId copy = stage.body.graph.append(graph.op(node), operands).value();
    copies[result.index] = stage.body.graph.result(copy);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : results) outputs.push_back(copies.at(v.index));
  stage.body.graph.set_outputs(std::move(outputs));
  if (is_last) stage.body.outputs = body.outputs;
  return stage;
}

Status check_static(const Graph& graph) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Type type = graph.type(ValueId{v});
    if (!type.is_static())
      return unsupported("a chain needs sizes that are numbers, not {}", type.to_string());
    if (type.elements().is(0)) return unsupported("a chain cannot have blocks without elements");
  }
  return {};
}

Result<std::vector<bool>> blocked_dims(const KernelBody& body, const Schedule& schedule) {
  const int rank = body.graph.type(body.graph.outputs()[0]).rank();
  std::vector<bool> is_blocked(static_cast<size_t>(rank));
  for (int dim : schedule.order) {
    if (dim < 0 || dim >= rank)
      return bad_input("blocks go along dim {}, but there are {} dims", dim, rank);
    if (is_blocked[static_cast<size_t>(dim)]) return bad_input("the order has dim {} twice", dim);
    is_blocked[static_cast<size_t>(dim)] = true;
  }
  const std::vector<Tile>& blocks = schedule.get<ChainFields>().block;
  for (const Tile& block : blocks) {
    if (block.dim < 0 || block.dim >= rank || !is_blocked[static_cast<size_t>(block.dim)])
      return bad_input("a block goes along dim {}, which the order lacks", block.dim);
    if (std::ranges::count(blocks, block.dim, &Tile::dim) > 1)
      return bad_input("dim {} has two blocks", block.dim);
    if (block.count < 1) return bad_input("a block of {} points", block.count);
  }
  if (blocks.size() != schedule.order.size())
    return bad_input("the order has {} dims, but there are blocks of {}", schedule.order.size(),
                     blocks.size());
  return is_blocked;
}

}  // namespace

int64_t block_points(const KernelBody& body, const Schedule& schedule, int dim) {
  const int64_t extent = body.graph.type(body.graph.outputs()[0]).dim(dim).value();
  const std::vector<Tile>& blocks = schedule.get<ChainFields>().block;
  const auto block = std::ranges::find(blocks, dim, &Tile::dim);
  return block == blocks.end() ? extent : std::min(block->count, extent);
}

Result<std::vector<ValueId>> kept_values(const Graph& graph, std::span<const int64_t> keep) {
  if (keep.size() >= Schedule::kMaxStages)
    return over_limit("a chain of {} stages, more than {}", keep.size() + 1, Schedule::kMaxStages);
  const std::vector<NodeId> nodes = computing_nodes(graph);
  std::vector<ValueId> kept;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i] < 0 || keep[i] >= std::ssize(nodes))
      return bad_input("keeps node {}, but there are {}", keep[i], nodes.size());
    if (i > 0 && keep[i] <= keep[i - 1]) return bad_input("the kept nodes are not in order");
    const NodeId node = nodes[static_cast<size_t>(keep[i])];
    if (graph.results(node).size() != 1)
      return unsupported("{} has several results, which cannot be kept", graph.describe(node));
    if (bits(graph.type(graph.result(node)).dtype()) < 8)
      return unsupported("{} is kept, but its elements are smaller than a byte",
                         graph.label(graph.result(node)));
    kept.push_back(graph.result(node));
  }
  return kept;
}

ValueId moved_from(const Graph& graph, ValueId value) {
  while (only_moves(graph.opcode(graph.producer(value))))
    value = graph.operands(graph.producer(value))[0];
  return value;
}

Result<std::vector<Stage>> stages_of(const KernelBody& body, const Schedule& schedule) {
  const Graph& graph = body.graph;
  HONE_TRY(check_static(graph));
  const std::vector<ValueId> kept = HONE_TRY(kept_values(graph, schedule.get<ChainFields>().keep));
  const KeptPlaces places(body, kept, HONE_TRY(blocked_dims(body, schedule)));
  if (!places.not_in_blocks().empty())
    return unsupported("the kept values are not needed in blocks along dim {}",
                       *places.not_in_blocks().begin());
  std::vector<Stage> stages;
  HeldLayouts held(body, kept);
  for (size_t k = 0; k <= kept.size(); ++k) {
    Stage stage = stage_of(body, kept, k, held.all());
    const Type type = graph.type(k < kept.size() ? kept[k] : graph.outputs()[0]);
    if (k < kept.size()) {
      stage.along = HONE_TRY(places.along(kept[k]));
      stage.body.outputs = {held.add(stage.along)};
    } else {
      for (int d = 0; d < type.rank(); ++d)
        stage.along.push_back({.dim = std::ranges::count(schedule.order, d) == 0 ? kWhole : d});
    }
    for (int d = 0; d < type.rank(); ++d) {
      const Along& along = stage.along[static_cast<size_t>(d)];
      const int64_t extent = type.dim(d).value();
      stage.body.window.push_back(
          along.is_whole() ? extent : along.points(block_points(body, schedule, along.dim)));
      if (stage.body.window.back() > extent)
        return unsupported("a block needs {} points of dim {} of {}, which has only {}",
                           stage.body.window.back(), d, graph.label(kept[k]), extent);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

// ---- The simplest chain -------------------------------------------------------------------------

namespace {

// How many points a block needs at least, so that what is kept, of which it needs points of a dim,
// is computed little more than once: half again. None: it is always more.
std::optional<int64_t> least_block(const Along& along, int64_t results, int64_t extent) {
  const double most = 1.5 * static_cast<double>(extent) / static_cast<double>(results);
  const auto fits = [&](int64_t block) {
    return along.points(block) <= extent &&
           static_cast<double>(along.points(block)) <= most * static_cast<double>(block);
  };
  if (fits(1)) return 1;
  const double more = most - static_cast<double>(along.stride);  // with each point of the block
  if (along.window <= along.stride || more <= 0) return std::nullopt;
  const double block = std::ceil(static_cast<double>(along.window - along.stride) / more);
  if (block >= static_cast<double>(results) || !fits(static_cast<int64_t>(block)))
    return std::nullopt;
  return static_cast<int64_t>(block);
}

// Follows the value through ops that compute or move each element alone, as long as
// nothing else reads it.
ValueId end_of_epilogue(const Graph& graph, const Users& users, ValueId value) {
  while (!users.is_output(value) && users.of(value).size() == 1) {
    const NodeId user = users.of(value)[0];
    const Opcode opcode = graph.opcode(user);
    const bool follows =
        permutes_dims(opcode) || regroups_dims(opcode) || is_elementwise(graph.opcode(user));
    if (!follows) break;
    value = graph.result(user);
  }
  return value;
}

std::set<uint32_t> values_to_keep(const Graph& graph) {
  const Users users(graph);
  std::vector<bool> has_sum(graph.node_count());  // is one, or depends on one
  std::set<uint32_t> keep;
  for (NodeId node : graph.nodes()) {
    const Opcode opcode = graph.opcode(node);
    for (ValueId operand : graph.operands(node)) {
      if (operand.is_none()) continue;
      if (is_contraction(opcode))
        if (const ValueId v = moved_from(graph, operand); has_sum[graph.producer(v).index])
          keep.insert(v.index);
      if (has_sum[graph.producer(operand).index]) has_sum[node.index] = true;
    }
    if (is_contraction(opcode) || combines_by_kind(opcode)) has_sum[node.index] = true;
    if (!is_contraction(opcode)) continue;
    const ValueId last = end_of_epilogue(graph, users, graph.result(node));
    if (!users.is_output(last)) keep.insert(last.index);
  }
  return keep;
}

// The smallest blocks of all dims that may be taken in blocks.
Result<std::map<int, int64_t>> smallest_blocks(const KernelBody& body,
                                               std::span<const ValueId> kept) {
  const Graph& graph = body.graph;
  const Type type = graph.type(graph.outputs()[0]);
  std::vector<bool> is_blocked;
  for (Dim dim : type.dims()) is_blocked.push_back(!dim.is(1));
  for (;;) {
    const KeptPlaces places(body, kept, is_blocked);
    std::set<int> others = places.not_in_blocks();
    std::map<int, int64_t> blocks;
    std::optional<int> overlapping;  // more of them would multiply what is computed again
    for (int d = 0; d < type.rank(); ++d) {
      if (!is_blocked[static_cast<size_t>(d)]) continue;
      for (ValueId v : kept) {
        const std::vector<Along> all = HONE_TRY(places.along(v));
        const auto along = std::ranges::find(all, d, &Along::dim);
        const auto extent = [&] {
          return graph.type(v).dim(static_cast<int>(along - all.begin()));
        };
        const std::optional<int64_t> block =
            along == all.end() ? std::nullopt
                               : least_block(*along, type.dim(d).value(), extent().value());
        const bool overlaps = block && along->window > along->stride;
        if (overlaps) overlapping = overlapping.value_or(d);
        if (!block || (overlaps && overlapping != d)) others.insert(d);
        blocks[d] = std::max(blocks[d], block.value_or(1));
      }
    }
    if (others.empty()) return blocks;
    for (int d : others) is_blocked[static_cast<size_t>(d)] = false;
  }
}

}  // namespace

namespace {

// Nobody has checked it.
Result<Schedule> simplest_unchecked(const KernelBody& body) {
  const Graph& graph = body.graph;
  HONE_TRY(check_static(graph));
  const std::set<uint32_t> keep = values_to_keep(graph);
  if (keep.empty()) return unsupported("there is nothing to keep");
  Schedule chain = {.own = ChainFields()};
  ChainFields& own = chain.get<ChainFields>();
  const std::vector<NodeId> nodes = computing_nodes(graph);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (keep.contains(graph.result(nodes[i]).index)) own.keep.push_back(static_cast<int64_t>(i));
  const std::vector<ValueId> kept = HONE_TRY(kept_values(graph, own.keep));
  const Type type = graph.type(graph.outputs()[0]);
  for (const auto& [dim, points] : HONE_TRY(smallest_blocks(body, kept))) {
    chain.order.push_back(dim);
    own.block.push_back({dim, points});
  }
  for (ValueId v : kept) own.stages.push_back(plain_nest(graph.type(v).rank()));
  own.stages.push_back(plain_nest(type.rank()));
  return chain;
}

}  // namespace

Result<Schedule> simplest_chain(const KernelBody& body) {
  Schedule chain = HONE_TRY(simplest_unchecked(body));
  HONE_TRY(check_schedule(body, chain, Target{}));
  return chain;
}

Result<Schedule> simplest_chain(const KernelFacts& facts) {
  Schedule chain = HONE_TRY(simplest_unchecked(facts.body));
  HONE_TRY(check_schedule(facts.body, facts, chain, Target{}));
  return chain;
}

}  // namespace hone
