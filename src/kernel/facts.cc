#include "kernel/facts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/op_facts.h"
#include "kernel/back_walk.h"
#include "kernel/update.h"

namespace hone {
namespace {

using Loops = KernelFacts::Loops;

constexpr int64_t kFirst = 16;  // points: lanes of the widest vector of 4-byte numbers

double size(Dim dim) { return static_cast<double>(std::max<int64_t>(dim.range().high, 0)); }

// The points of a loop of the results from `low` to before `high`: between cuts.
struct Piece {
  size_t loop;
  int64_t low, high;
};

// Where a value is needed for one point of the results.
struct Place {
  std::vector<IndexExpr> index;    // over loops
  Loops guards = 0;                // that decide whether it is needed
  Loops uncut = 0;                 // of these, those of guards that no cut decides
  std::vector<Piece> pieces = {};  // where the other guards hold, each loop once
  Loops data = 0;                  // of what was read to find the index
  int side = -1;                   // the operand of the anchor that it serves
  bool is_partial = false;         // needed at some points only
  bool is_looked_up = false;       // found by data

  bool is_same(const Place& other) const {
    return index == other.index && guards == other.guards && data == other.data;
  }
  void absorb(const Place& other) {
    is_partial = is_partial || other.is_partial;
    is_looked_up = is_looked_up || other.is_looked_up;
  }
  // Joins guards one behind the other.
  void meet(const Piece& piece) {
    const auto known = std::ranges::find(pieces, piece.loop, &Piece::loop);
    if (known == pieces.end()) return pieces.push_back(piece);
    known->low = std::max(known->low, piece.low);
    known->high = std::max(std::min(known->high, piece.high), known->low);
  }
  Loops cut() const {
    Loops loops = 0;
    for (const Piece& piece : pieces) loops |= 1U << piece.loop;
    return loops;
  }
};

class FactWalk {
 public:
  explicit FactWalk(KernelFacts& facts)
      : facts_(facts), graph_(facts.body.graph), anchor_(facts.space.anchor) {}

  void run() {
    const KernelSpace& space = facts_.space;
    for (size_t d = 0; d < space.dims.size() && d < KernelFacts::kMaxLoops; ++d)
      facts_.loops.push_back(
          {size(space.dims[d].extent), d < static_cast<size_t>(space.parallel), 0});
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId output = graph_.outputs()[i];
      const bool in_place = facts_.body.in_place;
      const ValueId points = in_place ? updates_of(graph_, graph_.producer(output)) : output;
      const Place place{identity_index(graph_.type(points).rank())};
      add_array(output, facts_.body.outputs[i], in_place ? updated(output, place) : place, true);
      needed_.add(points, place);
    }
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) visit(NodeId{i});
    tidy_cuts();
    // Reductions that came later opened loops that the arrays before them do not depend on.
    for (KernelFacts::Array& array : facts_.arrays) {
      array.stride.resize(facts_.loops.size(), 0);
      array.first.resize(facts_.loops.size());
    }
  }

  // The only place where the anchor's result is needed.
  Result<Place> place_of_anchor() const {
    const ValueId result = graph_.result(anchor_);
    if (of_anchor_.empty()) return unsupported("the results do not need the contraction");
    const Place& place = of_anchor_[0];
    if (place.is_looked_up)
      return unsupported("data decides which elements of {} are read", graph_.label(result));
    if (place.is_partial) return unsupported("only some points need {}", graph_.label(result));
    if (of_anchor_.size() > 1)
      return unsupported("{} is needed at two places for one point", graph_.label(result));
    return place;
  }

  // The node is computed at the place: its loops, with those that it reduces over.
  struct Point {
    std::vector<IndexExpr> iters;
    Loops loops = 0;
  };
  std::optional<Point> enter(NodeId n, const AccessRelation& relation, const Place& place) {
    if (n == anchor_) of_anchor_.push_back(place);
    Point point = {place.index, loops_of(place)};
    const Loops outside = point.loops;
    for (size_t d = point.iters.size(); d < relation.dims.size(); ++d) {
      const int by = relation.dims[d].divided_by;
      const size_t loop = open(n, d - place.index.size(), mean_trips(relation.dims, d));
      point.iters.push_back(IndexExpr::iter(static_cast<int>(loop)));
      if (by >= 0) {
        const IndexExpr& segment = place.index[static_cast<size_t>(by)];
        facts_.divided |= loops_of(segment) | place.data | place.guards;
        // Segments of the mean size lie one after another.
        const auto rows = static_cast<int64_t>(std::ceil(facts_.loops[loop].extent));
        point.iters.back() = point.iters.back() + segment * rows;
      }
      facts_.loops[loop].around |= outside;
      point.loops |= 1U << loop;
    }
    const Loops together = point.loops & ~outside;
    for (Loops left = together; left != 0; left &= left - 1)
      facts_.loops[static_cast<size_t>(std::countr_zero(left))].together |= together;
    facts_.arithmetic.push_back(
        {n, point.loops, relation.dims.size() > place.index.size(), place.cut(), share_of(place)});
    return point;
  }

  Place read(const BackRead& read, const Point& point, const Place& place) const {
    const Access& access = read.access;
    Place next = place;
    next.index.clear();
    if (read.node == anchor_) next.side = static_cast<int>(read.operand);
    next.is_partial = next.is_partial || !access.guards.empty() || read.pieces > 1;
    // A conv multiplies zeros where it meets padding, so its kernel is read everywhere.
    if (!is_convolution(graph_.opcode(read.node)) || read.operand == 0)
      for (const Guard& guard : access.guards) add_guard(read.node, guard, point, next);
    for (size_t d = 0; d < access.index.size(); ++d) {
      const bool is_data = access.is_data_dependent(static_cast<int>(d));
      if (is_data) next.data |= point.loops;
      next.is_looked_up = next.is_looked_up || is_data;
      next.index.push_back(is_data ? IndexExpr(0) : access.index[d].substitute(point.iters));
    }
    return next;
  }

 private:
  void add_guard(NodeId n, const Guard& guard, const Point& point, Place& place) const {
    const IndexExpr value = guard.value.substitute(point.iters);
    place.guards |= loops_of(value);
    const bool may_cut = graph_.is_static() && op_def(graph_.opcode(n)).traits.is_piecewise;
    const std::optional<Piece> piece =
        may_cut ? piece_of({value, guard.lower, guard.upper}) : std::nullopt;
    if (!piece) {
      place.uncut |= loops_of(value);
      return;
    }
    place.meet(*piece);
    KernelFacts::Loop& loop = facts_.loops[piece->loop];
    for (int64_t cut : {piece->low, piece->high})
      if (0 < cut && static_cast<double>(cut) < loop.extent) loop.cuts.push_back(cut);
  }

  // Counts the points of the results.
  double share_of(const Place& place) const {
    double share = 1;
    for (const Piece& piece : place.pieces)
      share *= static_cast<double>(piece.high - piece.low) / facts_.loops[piece.loop].extent;
    return share;
  }

  // Where a guard holds, if one loop of the results decides it, whatever the others are.
  std::optional<Piece> piece_of(const Guard& guard) const {
    std::vector<Range> box;
    for (const KernelFacts::Loop& loop : facts_.loops)
      box.push_back({0, std::max<int64_t>(static_cast<int64_t>(loop.extent) - 1, 0)});
    for (size_t l = 0; l < static_cast<size_t>(facts_.space.parallel); ++l) {
      const int64_t factor = guard.value.coefficient(static_cast<int>(l)).value_or(0);
      if (factor <= 0 || facts_.loops[l].extent < 1) continue;
      const IndexExpr others = guard.value - IndexExpr::iter(static_cast<int>(l)) * factor;
      const Range rest = others.over(box);
      // From which point on the value is at least the bound.
      const auto first_at = [&](int64_t bound) -> std::optional<int64_t> {
        const int64_t first = ceildiv(Dim(bound - rest.low), factor).value();
        const int64_t extent = box[l].high + 1;
        if (first > 0 && (std::min(first, extent) - 1) * factor + rest.high >= bound) return {};
        return std::clamp<int64_t>(first, 0, extent);
      };
      const std::optional<int64_t> low = first_at(guard.lower.value()),
                                   high = first_at(guard.upper.value());
      if (low && high && *low < *high) return Piece{l, *low, *high};
    }
    return std::nullopt;
  }

  // Each once, and none of too many parts.
  void tidy_cuts() {
    size_t parts = 1;
    for (KernelFacts::Loop& loop : facts_.loops) {
      std::ranges::sort(loop.cuts);
      loop.cuts.erase(std::ranges::unique(loop.cuts).begin(), loop.cuts.end());
      parts = std::min(parts * (loop.cuts.size() + 1), KernelFacts::kMaxParts + 1);
    }
    if (parts <= KernelFacts::kMaxParts) return;
    for (KernelFacts::Loop& loop : facts_.loops) loop.cuts.clear();
  }

  // Where the element of an update goes. A window lies as well as if it began at 0; a scatter may
  // write anywhere.
  Place updated(ValueId output, Place place) const {
    if (graph_.opcode(graph_.producer(output)) != Opcode::scatter) return place;
    place.data = loops_of(place);
    place.index.assign(static_cast<size_t>(graph_.type(output).rank()), 0);
    return place;
  }

  Loops loops_of(const IndexExpr& expr) const {
    Loops loops = 0;
    for (size_t l = 0; l < facts_.loops.size(); ++l)
      if (expr.mentions(static_cast<int>(l))) loops |= 1U << l;
    return loops;
  }

  Loops loops_of(const Place& place) const {
    Loops loops = place.guards | place.data;
    for (const IndexExpr& expr : place.index) loops |= loops_of(expr);
    return loops;
  }

  // The loop of a reduction's dim: the anchor's are those of the space.
  size_t open(NodeId n, size_t reduction, double extent) {
    const size_t of_space = static_cast<size_t>(facts_.space.parallel) + reduction;
    if (n == anchor_ && of_space < facts_.loops.size()) return of_space;
    if (facts_.loops.size() == KernelFacts::kMaxLoops) return KernelFacts::kMaxLoops - 1;
    facts_.loops.push_back({extent, false, 0, 0});
    return facts_.loops.size() - 1;
  }

  void visit(NodeId n) {
    const Opcode opcode = graph_.opcode(n);
    if (is_constant(opcode)) return;
    if (is_parameter(opcode)) return visit_parameter(graph_.result(n));
    walk_back(graph_, n, relation_of(graph_, n), needed_, *this);
  }

  void visit_parameter(ValueId v) {
    const auto at = std::ranges::find(graph_.inputs(), v) - graph_.inputs().begin();
    for (const Place& place : needed_.of(v))
      add_array(v, facts_.body.inputs[static_cast<size_t>(at)], place, false);
  }

  // ---- Arrays -----------------------------------------------------------------------------------

  void add_array(ValueId value, const Layout& layout, const Place& place, bool is_store) {
    const Type type = graph_.type(value), stored = stored_type(layout, type);
    const size_t loops = facts_.loops.size();
    KernelFacts::Array array = {.value = value,
                                .is_store = is_store,
                                .side = place.side,
                                .loops = loops_of(place),
                                .guards = place.guards,
                                .uncut = place.uncut,
                                .cut = place.cut(),
                                .share = share_of(place),
                                .data = place.data,
                                .element = static_cast<double>(bits(type.dtype())) / 8,
                                .stride = std::vector<double>(loops)};
    array.bytes = array.element;
    for (Dim dim : type.dims()) array.bytes *= size(dim);
    double elements = 1;
    for (int d = stored.rank(); d-- > 0;) {
      const Layout::Part& part = layout.parts[static_cast<size_t>(d)];
      for (size_t l = 0; l < loops; ++l)
        array.stride[l] += elements * step(part, place.index[static_cast<size_t>(part.dim)], l);
      elements *= size(stored.dim(d));
    }
    if (!layout.parts.empty() && layout.parts.back().is_inner) {
      array.run = static_cast<double>(layout.parts.back().block);
      array.jump = jump_of(layout, stored);
    }
    if (array.side >= 0) add_steps(place, array);
    array.first.resize(loops);
    for (size_t l = 0; l < loops; ++l)
      if (std::isnan(array.stride[l]) && place.data == 0)
        array.first[l] = first_places(l, layout, stored, place);
    facts_.arrays.push_back(std::move(array));
  }

  // How far the blocks of the dim lie apart whose elements lie side by side.
  static double jump_of(const Layout& layout, Type stored) {
    double elements = 1;
    for (int d = stored.rank(); d-- > 0;) {
      const Layout::Part& part = layout.parts[static_cast<size_t>(d)];
      if (!part.is_inner && part.dim == layout.parts.back().dim) break;
      elements *= size(stored.dim(d));
    }
    return elements;
  }

  // How far an index goes along a part of the layout with each trip of a loop. Within blocks,
  // blocks count as if they went on.
  static double step(const Layout::Part& part, const IndexExpr& index, size_t loop) {
    const std::optional<int64_t> factor = index.coefficient(static_cast<int>(loop));
    if (!factor) return std::numeric_limits<double>::quiet_NaN();
    const bool is_by_block = *factor % part.block == 0;
    if (part.is_inner) return is_by_block ? 0 : static_cast<double>(*factor);
    return is_by_block ? static_cast<double>(*factor / part.block) : 0;
  }

  void add_steps(const Place& place, KernelFacts::Array& array) const {
    for (const IndexExpr& expr : place.index) {
      array.steps.emplace_back();
      for (size_t l = 0; l < facts_.loops.size(); ++l)
        if (const double step = mean_step(expr, l); step != 0)
          array.steps.back().emplace_back(static_cast<int>(l), step);
    }
  }

  // How far the index goes on with each trip of the loop.
  double mean_step(const IndexExpr& expr, size_t loop) const {
    const int iter = static_cast<int>(loop);
    if (const std::optional<int64_t> step = expr.coefficient(iter))
      return static_cast<double>(*step);
    const double last = facts_.loops[loop].extent - 1;
    std::vector<IndexExpr> point(facts_.loops.size(), 0);
    const std::optional<Dim> first = expr.substitute(point).as_constant();
    point[loop] = static_cast<int64_t>(last);
    const std::optional<Dim> end = expr.substitute(point).as_constant();
    if (last < 1 || !first || !end || !first->is_static() || !end->is_static()) return 0;
    return static_cast<double>(end->value() - first->value()) / last;
  }

  // Where the first points of a loop lie, at the beginning of the others; fewer, where that is not
  // a number.
  std::vector<double> first_places(size_t loop, const Layout& layout, Type stored,
                                   const Place& place) const {
    std::vector<double> places;
    const double count = std::min<double>(kFirst, facts_.loops[loop].extent);
    std::vector<IndexExpr> point(facts_.loops.size(), 0);
    const std::vector<IndexExpr> index = stored_index(layout, place.index);
    for (int64_t at = 0; static_cast<double>(at) < count; ++at) {
      point[loop] = at;
      double offset = 0;
      for (int d = 0; d < stored.rank(); ++d) {
        const std::optional<Dim> along =
            index[static_cast<size_t>(d)].substitute(point).as_constant();
        if (!along || !along->is_static()) return places;
        offset = offset * size(stored.dim(d)) + static_cast<double>(along->value());
      }
      places.push_back(offset);
    }
    return places;
  }

  KernelFacts& facts_;
  const Graph& graph_;
  const NodeId anchor_;
  NeededPlaces<Place> needed_;
  std::vector<Place> of_anchor_;
};

Status check_contraction(const Graph& graph, const KernelSpace& space) {
  if (!space.has_anchor()) return unsupported("gemm is for bodies with one contraction");
  if (class_of(graph.opcode(space.anchor)) != OpClass::contraction)
    return unsupported("gemm is for dot and conv, not for {}", graph.describe(space.anchor));
  for (size_t d = 0; d < space.dims.size(); ++d) {
    const Dim& extent = space.dims[d].extent;
    if (!extent.is_static() && d >= static_cast<size_t>(space.parallel))
      return unsupported("gemm needs a reduction of a known size, not of {}", extent.to_string());
    if (extent.is(0)) return unsupported("gemm has no blocks of dims without elements");
  }
  return {};
}

Result<Contraction> contraction_at(const Graph& graph, const KernelSpace& space,
                                   std::vector<IndexExpr> index) {
  Contraction contraction;
  const std::vector<Type> operands = graph.operand_types(space.anchor);
  const AccessRelation relation = relation_of(graph, space.anchor);
  std::vector<IndexExpr> iters = index;
  for (int d = space.parallel; d < static_cast<int>(space.dims.size()); ++d)
    iters.push_back(IndexExpr::iter(d));
  contraction.index = std::move(index);
  for (size_t side = 0; side < 2; ++side) {
    const Access& access = relation.operands[side].at(0);
    std::vector<IndexExpr>& reads = contraction.reads[side];
    for (const IndexExpr& expr : access.index) reads.push_back(expr.substitute(iters));
    for (const Guard& guard : access.guards) {
      const auto dim = std::ranges::find(access.index, guard.value);
      if (dim == access.index.end() || guard.lower != 0 ||
          guard.upper != operands[side].dim(static_cast<int>(dim - access.index.begin())))
        contraction.has_holes[side] = true;
    }
    for (int d = 0; d < space.parallel; ++d)
      contraction.sides[side].push_back(
          std::ranges::any_of(reads, [&](const IndexExpr& expr) { return expr.mentions(d); }));
  }
  for (size_t d = 0; d < static_cast<size_t>(space.parallel); ++d)
    if (!contraction.sides[0][d] && !contraction.sides[1][d] && !space.dims[d].extent.is(1))
      return unsupported("points along dim {} share one sum", d);
  return contraction;
}

}  // namespace

KernelFacts::KernelFacts(KernelBody made_of) : KernelFacts(std::move(made_of), 0) {
  hash = kernel_hash(body);
}

KernelFacts::KernelFacts(KernelBody made_of, uint64_t known_hash)
    : body(std::move(made_of)),
      hash(known_hash),
      nodes(computing_nodes(body.graph)),
      space(space_of(body)),
      contraction(Contraction()) {
  if (std::ranges::all_of(nodes, [&](NodeId n) { return has_points(body.graph.opcode(n)); }))
    work = work_of(body);
  if (work.statements > kMaxStatements) {
    contraction = check_work(work).error();
    return;
  }
  FactWalk walk(*this);
  walk.run();
  if (divided != 0) {
    contraction = unsupported("a gemm cannot go over segments");
    return;
  }
  if (Status good = check_contraction(body.graph, space); !good.ok()) {
    contraction = good.error();
    return;
  }
  Result<Place> place = walk.place_of_anchor();
  if (place.ok())
    contraction = contraction_at(body.graph, space, std::move(place->index));
  else
    contraction = place.error();
}

double KernelFacts::contiguity(int dim) const {
  double bytes = 0;
  for (const Array& array : arrays)
    if (array.stride[static_cast<size_t>(dim)] == 1) bytes += array.bytes;
  return bytes;
}

}  // namespace hone
