#include "program/build/algorithms.h"

#include <algorithm>
#include <numeric>

#include "base/planted.h"
#include "kernel/facts.h"
#include "kernel/quads.h"
#include "kernel/split.h"
#include "program/build/point_builder.h"
#include "program/build/split.h"
#include "program/build/tile_parts.h"

namespace hone {

namespace {

// The loops from outside in: blocks of the results' dims, in the schedule's order; the packing of
// panels that depend on no further block; blocks of the reduction, if there are any; tiles of the
// results' dims, in the opposite order, so that the tiles of the outermost block come from the
// nearest cache again and again; the points of a tile.
//
// The part of an operand that a block needs may be copied. A panel has it tile by tile, each point
// of the reduction in turn: [tiles, depth, points]. A window is that part of the operand with zeros
// for padding, so a conv reads each of its numbers at many places, without guards.
class GemmBuilder {
 public:
  GemmBuilder(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
              TileBuilder& tiles)
      : body_(body),
        graph_(body.graph),
        schedule_(schedule),
        space_(space_of(body)),
        contraction_(KernelFacts(body).contraction.value()),
        tiles_(tiles),
        points_(body, tiles, place),
        scratch_(place, tiles),
        dims_(space_.dims.size()) {
    for (size_t d = 0; d < place.first.size(); ++d) dims_[d].origin = place.first[d];
    wide_ = sum_type(graph_.type(graph_.result(space_.anchor)).dtype());
    const GemmFields& own = schedule.get<GemmFields>();
    operands_[0].packing = own.pack_lhs;
    operands_[1].packing = own.pack_rhs;
    if (own.products == Products::split)
      split_ = split_shape(contraction_, space_, schedule).value();
    if (own.products == Products::quads) set_up_quads();
    for (size_t side = 0; side < 2; ++side) set_up(side);
    order_reduction();
    make_sums();
    tile_order_ = tile_order(schedule.order, schedule.lanes);
    points_.pin(space_.anchor);
    points_.split_by([this](NodeId) { return splits(); });
    points_.take_factors_from(
        [this](size_t side, const Indices& iters) { return packed(side, iters); });
  }

  void kernel() { phases(0); }
  void stage() { blocks(0); }

 private:
  using Scalar = tile::Scalar;
  using Indices = PointBuilder::Indices;
  using Guards = PointBuilder::Guards;

  // Where the loops are in a dim.
  struct Place {
    IndexExpr origin = 0;  // the first point that is computed
    TilePart block = {};   // its `unroll` is the block's extent
    IndexExpr block_trip = 0;
    TilePart tile = {};
    IndexExpr trip = 0, u = 0, lane = 0;

    IndexExpr first() const { return origin + block.point(block_trip, 0, 0); }
    IndexExpr within_tile() const { return u * tile.lanes + lane; }
  };
  struct Operand {
    Packing packing = Packing::no;
    tile::BufferId buffer = 0;  // what it is packed into
    bool is_packed = false;     // by the loops that are open
    // The dim whose points are copied side by side: of the space for panels, of the operand for
    // windows.
    std::optional<int> lanes = {};
    std::optional<int> last = {};      // of a window, other than that one: the innermost dim
    std::vector<int64_t> window = {};  // points per dim of the operand
    std::vector<size_t> order = {};    // the operand's dims in the window, from outside in
  };

  // ---- Setting up ------------------------------------------------------------------------------

  void set_up_quads() {
    quads_ = quad_shape(body_, contraction_, space_, schedule_).value();
    for (size_t side = 0; side < 2; ++side)
      words_[side] = word_source(body_, contraction_, space_, quads_->inner, side);
  }

  void set_up(size_t side) {
    Operand& operand = operands_[side];
    if (operand.packing == Packing::panels) set_up_panels(side);
    if (operand.packing == Packing::window) set_up_window(side);
  }

  void set_up_panels(size_t side) {
    const BlockShape shape = block_shape(schedule_, space_, contraction_.sides[side]);
    if (quads_) {
      scratch(side, DType::u32, {shape.tiles, quads_->words, shape.points});
    } else if (!split_) {
      scratch(side, wide_, {shape.tiles, block_depth(schedule_, space_), shape.points});
    } else if (side == split_->row_side) {
      scratch(side, DType::u32,
              {shape.tiles, SplitShape::kParts, split_->steps, split_->rows, SplitShape::kWords});
    } else {
      scratch(
          side, DType::u32,
          {shape.tiles, SplitShape::kParts, split_->steps * SplitShape::kWords, split_->columns});
    }
    std::optional<int> last;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (contraction_.sides[side][static_cast<size_t>(dim)] && tile_of(schedule_.unroll, dim) > 1)
        last = dim;
    for (const Tile& lanes : schedule_.lanes)
      if (contraction_.sides[side][static_cast<size_t>(lanes.dim)]) last = lanes.dim;
    if (quads_ && words_[side]) return;
    if (last && lie_side_by_side(operand_value(side), contraction_.reads[side], *last))
      operands_[side].lanes = last;
  }

  // The dim whose points are neighbours in memory is the last one.
  void set_up_window(size_t side) {
    Operand& operand = operands_[side];
    operand.window = window_of(contraction_, space_, schedule_, side).value();
    const int rank = graph_.type(operand_value(side)).rank();
    for (int dim = rank; dim-- > 0 && !operand.lanes;)
      if (lie_side_by_side(operand_value(side), identity_index(rank), dim)) operand.lanes = dim;
    if (quads_) set_up_words(side);
    std::vector<Dim> extents;
    const std::optional<int> last = operand.last ? operand.last : operand.lanes;
    for (int dim = 0; dim < rank; ++dim)
      if (dim != last) operand.order.push_back(static_cast<size_t>(dim));
    if (last) operand.order.push_back(static_cast<size_t>(*last));
    for (size_t dim : operand.order) extents.push_back(operand.window[dim]);
    const DType dtype = quads_ ? graph_.type(operand_value(side)).dtype() : wide_;
    if (!extents.empty()) extents.back() = apart(extents.back().value(), dtype);
    scratch(side, dtype, extents);
  }

  // A window of bytes has words side by side, and whole ones.
  void set_up_words(size_t side) {
    const int dim = *operand_dim(side);
    if (operands_[side].lanes != dim) operands_[side].lanes = std::nullopt;
    operands_[side].last = dim;
    operands_[side].window[static_cast<size_t>(dim)] +=
        quads_->inner_words * QuadShape::kBytes - cache_block(schedule_, space_, quads_->inner);
  }

  // The dim of an operand that words are taken along.
  std::optional<int> operand_dim(size_t side) const {
    const Indices& reads = contraction_.reads[side];
    const auto along =
        std::ranges::find_if(reads, [&](const IndexExpr& e) { return e.mentions(quads_->inner); });
    return static_cast<int>(along - reads.begin());
  }

  // Rows that lie a power of two apart would compete for the same places of a cache.
  static int64_t apart(int64_t extent, DType dtype) {
    const int64_t line = 64 * 8 / bits(dtype);
    return extent % (4 * line) == 0 ? extent + line : extent;
  }

  void scratch(size_t side, DType dtype, const std::vector<Dim>& dims) {
    operands_[side].buffer = scratch_.buffer(side == 0 ? "lhs" : "rhs", Type::get(dtype, dims));
  }

  // As an operand lies in memory, so that it is read from one end to the other: the second one, or
  // the window of the first, if panels make the second lie as it should.
  void order_reduction() {
    for (int d = space_.parallel; d < dim_count(); ++d) reduction_.push_back(d);
    const Indices index = memory_index();
    auto first_place = [&](int dim) {
      return std::ranges::find_if(index, [&](const IndexExpr& e) { return e.mentions(dim); }) -
             index.begin();
    };
    std::ranges::sort(reduction_, {}, [&](int dim) { return std::pair(first_place(dim), dim); });
    if (!split_ && !quads_) return;
    const int inner = split_ ? split_->inner : quads_->inner;
    std::erase(reduction_, inner);
    reduction_.push_back(inner);
  }

  // By the space's dims, from outside in.
  Indices memory_index() const {
    const Operand& lhs = operands_[0];
    if (lhs.packing == Packing::window && operands_[1].packing == Packing::panels) {
      Indices index;
      for (size_t dim : lhs.order) index.push_back(contraction_.reads[0][dim]);
      return index;
    }
    const auto input = std::ranges::find(graph_.inputs(), operand_value(1));
    if (input == graph_.inputs().end()) return {};
    return stored_index(body_.inputs[static_cast<size_t>(input - graph_.inputs().begin())],
                        contraction_.reads[1]);
  }

  ValueId operand_value(size_t side) const { return graph_.operands(space_.anchor)[side]; }

  // Whether the points along an iter of the index are neighbours in the memory that the value is
  // made of.
  bool lie_side_by_side(ValueId value, Indices index, int iter) const {
    for (;;) {
      const NodeId node = graph_.producer(value);
      const auto input = std::ranges::find(graph_.inputs(), value);
      if (input != graph_.inputs().end()) {
        const auto at = static_cast<size_t>(input - graph_.inputs().begin());
        const Indices stored = stored_index(body_.inputs[at], index);
        return !stored.empty() && stored.back().mentions(iter) &&
               stored.back().coefficient(iter).value_or(1) == 1;
      }
      if (graph_.operands(node).empty()) return true;
      index = composed(relation_of(graph_, node).operands[0].at(0).index, index);
      value = graph_.operands(node)[0];
    }
  }

  static Indices composed(const Indices& access, const Indices& iters) {
    Indices index;
    for (const IndexExpr& expr : access) index.push_back(expr.substitute(iters));
    return index;
  }

  void make_sums() {
    if (!blocks_reduction_ && !split_) return;
    const BlockShape shape = block_shape(schedule_, space_, all_results());
    sums_ = scratch_.buffer("sums", Type::get(wide_, {shape.tiles, shape.points}));
  }

  // ---- Blocks ----------------------------------------------------------------------------------

  int dim_count() const { return static_cast<int>(space_.dims.size()); }
  Place& place(int dim) { return dims_[static_cast<size_t>(dim)]; }
  const Place& place(int dim) const { return dims_[static_cast<size_t>(dim)]; }
  std::string_view name(int dim) const { return space_.dims[static_cast<size_t>(dim)].name; }
  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }
  std::vector<bool> all_results() const {
    return std::vector<bool>(static_cast<size_t>(space_.parallel), true);
  }

  std::vector<TilePart> blocks_of(int dim) const {
    return tile_parts(extent(dim), cache_block(schedule_, space_, dim), 1);
  }

  // A phase for each choice of parts of the dims that threads divide: a threads loop has nothing
  // beside it.
  void phases(size_t at) {
    if (at < static_cast<size_t>(schedule_.threads)) {
      const int dim = schedule_.order[at];
      for (const TilePart& block : blocks_of(dim)) {
        place(dim).block = block;
        phases(at + 1);
      }
      return;
    }
    if (schedule_.threads > 0) return blocks(0);
    tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { blocks(0); });
  }

  void blocks(size_t at) {
    const std::array<bool, 2> before = {operands_[0].is_packed, operands_[1].is_packed};
    if (at >= static_cast<size_t>(schedule_.threads) && !blocks_reduction_)
      for (size_t side = 0; side < 2; ++side)
        if (HONE_PLANT(panel_early, !depends_beyond(side, at), true)) pack(side);
    if (at == schedule_.order.size()) {
      in_block();
    } else {
      const int dim = schedule_.order[at];
      auto inside = [&](const IndexExpr& trip) {
        place(dim).block_trip = trip;
        blocks(at + 1);
      };
      if (at < static_cast<size_t>(schedule_.threads)) {
        tiles_.loop(Exec::threads, name(dim), place(dim).block.trips, inside);
      } else {
        for (const TilePart& block : blocks_of(dim)) {
          place(dim).block = block;
          open_loop(tiles_, Exec::loop, name(dim), block.trips, inside);
        }
      }
    }
    for (size_t side = 0; side < 2; ++side) operands_[side].is_packed = before[side];
  }

  // Whether the operand depends on the block of a dim whose loop is not open yet.
  bool depends_beyond(size_t side, size_t at) const {
    for (size_t i = at; i < schedule_.order.size(); ++i)
      if (contraction_.sides[side][static_cast<size_t>(schedule_.order[i])]) return true;
    return false;
  }

  void in_block() {
    if (split_) return split_block();
    if (!sums_) {
      for (int dim : reduction_) place(dim).block = {.trips = 1, .unroll = extent(dim).value()};
      if (quads_) return add_products(true);
      return all_points([&] { points_.store_outputs(point(), guards()); });
    }
    reduction_blocks(0, false);
  }

  // `is_last`: no further block adds to the sums.
  void reduction_blocks(size_t at, bool is_last) {
    if (at == reduction_.size()) return reduction_block(is_last);
    const int dim = reduction_[at];
    const std::vector<TilePart> parts = with_last_trip(blocks_of(dim));
    for (size_t i = 0; i < parts.size(); ++i) {
      place(dim).block = parts[i];
      open_loop(tiles_, Exec::loop, name(dim), parts[i].trips, [&](const IndexExpr& trip) {
        place(dim).block_trip = trip;
        reduction_blocks(at + 1, is_last || (parts.size() > 1 && i + 1 == parts.size()));
      });
    }
  }

  // Splits off the last trip: the epilogue follows it in registers.
  static std::vector<TilePart> with_last_trip(std::vector<TilePart> parts) {
    TilePart& last = parts.back();
    const int64_t before = last.trips.value() - 1;
    if (before <= 0) return parts;
    TilePart end = last;
    last.trips = before;
    end.trips = 1;
    end.first += before * end.unroll;
    parts.push_back(end);
    return parts;
  }

  void reduction_block(bool is_last) {
    for (size_t side = 0; side < 2; ++side) pack(side);
    if (split_)
      tiles(schedule_.order.size(), [&] { multiply_tile(); });
    else
      add_products(is_last);
    if (blocks_reduction_)
      for (Operand& operand : operands_) operand.is_packed = false;
  }

  void add_products(bool is_last) {
    all_points([&] {
      const Scalar before = sums_ ? sum_before() : points_.zero(wide_);
      const Scalar sum =
          quads_ ? sum_of_quads(before, 0)
                 : points_.sum_of_products(space_.anchor, anchor_index(), guards(), before);
      if (!is_last) return tiles_.store(*sums_, sums_index(), sum);
      const ValueId value = graph_.result(space_.anchor);
      points_.bind(value, tiles_.cast(sum, graph_.type(value).dtype()));
      points_.store_outputs(point(), guards());
    });
  }

  // ---- Quads -----------------------------------------------------------------------------------

  int64_t inner_words() const {
    const int64_t points = place(quads_->inner).block.unroll;
    return (points + QuadShape::kBytes - 1) / QuadShape::kBytes;
  }

  Scalar sum_of_quads(Scalar so_far, size_t at) {
    if (at == reduction_.size()) {
      const Scalar bytes = word(quads_->unsigned_side);
      return tiles_.quad(bytes, word(1 - quads_->unsigned_side), so_far);
    }
    const int dim = reduction_[at];
    const Dim trips = dim == quads_->inner ? inner_words() : place(dim).block.unroll;
    return open_carry(tiles_, Exec::loop, name(dim), trips, so_far, Opcode::add,
                      [&](const IndexExpr& trip, Scalar inside) {
                        move_to(dim, trip);
                        return sum_of_quads(inside, at + 1);
                      });
  }

  void move_to(int dim, const IndexExpr& trip) {
    place(dim).trip = trip;
    if (!quads_ || dim != quads_->inner) return;
    word_ = trip;
    place(dim).trip = trip * QuadShape::kBytes;
  }

  Scalar word(size_t side) {
    const Operand& operand = operands_[side];
    if (!operand.is_packed) return word_in_memory(side);
    if (operand.packing == Packing::window)
      return tiles_.load_word(operand.buffer, window_index(side));
    return tiles_.load(operand.buffer, panel_index(side));
  }

  Scalar word_in_memory(size_t side) {
    Indices at;
    for (int dim = 0; dim < space_.parallel; ++dim) at.push_back(index_of(dim));
    for (int dim = space_.parallel; dim < dim_count(); ++dim)
      at.push_back(dim == quads_->inner ? floordiv(place(dim).first(), QuadShape::kBytes) + word_
                                        : place(dim).first() + place(dim).trip);
    return points_.word(space_.anchor, side, factor_index(), *words_[side],
                        composed(words_[side]->index, at), gaps_of(side));
  }

  Scalar packed_word(size_t side) {
    if (words_[side]) return word_in_memory(side);
    Place& inner = place(quads_->inner);
    std::optional<Scalar> word;
    for (int64_t byte = 0; byte < QuadShape::kBytes; ++byte) {
      inner.trip = word_ * QuadShape::kBytes + IndexExpr(byte);
      Guards gaps;
      const bool is_whole = inner.block.unroll % QuadShape::kBytes == 0;
      if (HONE_PLANT(quad_end, !is_whole, false))
        gaps.push_back({inner.trip, 0, inner.block.unroll});
      Scalar number = tiles_.cast(packed_number(side, std::move(gaps)), DType::u32);
      const auto with = [&](Opcode op, int64_t by) {
        number = tiles_.compute(op, {number, points_.number(DType::u32, by)});
      };
      with(Opcode::and_, 0xff);
      if (byte > 0) with(Opcode::mul, int64_t{1} << 8 * byte);
      word = word ? tiles_.compute(Opcode::or_, {*word, number}) : number;
    }
    return *word;
  }

  // ---- Split products --------------------------------------------------------------------------

  void split_block() {
    clear_sums();
    reduction_blocks(0, false);
    all_points([&] {
      points_.bind(graph_.result(space_.anchor), tiles_.load(*sums_, sums_index()));
      points_.store_outputs(point(), guards());
    });
  }

  void clear_sums() {
    const BlockShape shape = block_shape(schedule_, space_, all_results());
    const Scalar zero = points_.zero(wide_);
    constexpr int64_t kLanes = 16;
    open_loop(tiles_, Exec::loop, "t", shape.tiles, [&](const IndexExpr& t) {
      tiles_.loop(Exec::loop, "v", shape.points / kLanes, [&](const IndexExpr& v) {
        tiles_.loop(Exec::lanes, "z", kLanes, [&](const IndexExpr& lane) {
          tiles_.store(*sums_, {t, v * kLanes + lane}, zero);
        });
      });
    });
  }

  // The unit takes the whole tile; what it computes behind the end of a dim is not stored.
  void multiply_tile() {
    const size_t row = split_->row_side;
    tiles_.product({.sums = *sums_,
                    .lhs = operands_[row].buffer,
                    .rhs = operands_[1 - row].buffer,
                    .sums_block = sums_index()[0],
                    .lhs_block = tile_and_point(contraction_.sides[row])[0],
                    .rhs_block = tile_and_point(contraction_.sides[1 - row])[0]});
  }

  // Pairs along the inner dim of the reduction, zeros behind its end. Vectors go along what lies
  // side by side in memory: points of the tile, or pairs.
  void pack_pairs(size_t side) {
    const bool is_row = side == split_->row_side;
    const int dim = is_row ? split_->row : split_->column;
    const bool by_points = operands_[side].lanes == dim;
    const int64_t points = split_->points(side), words = SplitShape::kWords;
    const auto at = [&](const IndexExpr& step, const IndexExpr& word, const IndexExpr& point) {
      const int64_t lanes = place(dim).tile.lanes;
      place(dim).u = lanes == 1 ? point : floordiv(point, lanes);
      place(dim).lane = lanes == 1 ? IndexExpr(0) : mod(point, lanes);
      pack_pair(side, step, word, point);
    };
    tiles_.loop(Exec::loop, "step", split_->inner_steps, [&](const IndexExpr& step) {
      if (by_points) {
        tiles_.loop(Exec::loop, "word", words, [&](const IndexExpr& word) {
          open_loop(tiles_, Exec::loop, "vector", points / 16, [&](const IndexExpr& vector) {
            tiles_.loop(Exec::lanes, "point", 16,
                        [&](const IndexExpr& lane) { at(step, word, vector * 16 + lane); });
          });
        });
      } else {
        tiles_.loop(Exec::loop, "point", points, [&](const IndexExpr& point) {
          tiles_.loop(Exec::lanes, "word", words,
                      [&](const IndexExpr& word) { at(step, word, point); });
        });
      }
    });
  }

  void pack_pair(size_t side, const IndexExpr& step, const IndexExpr& word,
                 const IndexExpr& point) {
    Place& inner = place(split_->inner);
    const int64_t end = inner.block.unroll;
    std::array<Scalar, 2> pair;
    for (int64_t half = 0; half < 2; ++half) {
      inner.trip = step * SplitShape::kStep + word * 2 + IndexExpr(half);
      Guards gaps;
      if (end < split_->inner_steps * SplitShape::kStep) gaps.push_back({inner.trip, 0, end});
      pair[static_cast<size_t>(half)] = packed_number(side, std::move(gaps));
    }
    IndexExpr outer = 0;
    for (int dim : reduction_)
      if (dim != split_->inner)
        outer = outer * cache_block(schedule_, space_, dim) + place(dim).trip;
    const IndexExpr at = outer * split_->inner_steps + step;
    const std::vector<Scalar> parts = split_pair(tiles_, pair[0], pair[1], SplitShape::kParts);
    const IndexExpr tile = tile_and_point(contraction_.sides[side])[0];
    for (size_t p = 0; p < parts.size(); ++p) {
      const IndexExpr part = static_cast<int64_t>(p);
      if (side == split_->row_side)
        tiles_.store(operands_[side].buffer, {tile, part, at, point, word}, parts[p]);
      else
        tiles_.store(operands_[side].buffer, {tile, part, at * SplitShape::kWords + word, point},
                     parts[p]);
    }
  }

  // Of the blocks of the reduction before this one. Only one dim has several.
  Scalar sum_before() {
    for (int dim : reduction_) {
      const Place& at = place(dim);
      if (at.block.unroll == extent(dim).value()) continue;
      if (at.block.first > 0) break;
      if (at.block.trips.is(1)) return points_.zero(wide_);
      return tiles_.load(*sums_, sums_index(), {{at.block_trip, 1, at.block.trips}},
                         points_.zero(wide_));
    }
    return tiles_.load(*sums_, sums_index());
  }

  // ---- Tiles -----------------------------------------------------------------------------------

  std::vector<TilePart> tiles_of(int dim) const {
    return tile_parts(place(dim).block.unroll, tile_of(schedule_.unroll, dim),
                      tile_of(schedule_.lanes, dim));
  }

  // From the last dim of the order to the first; then the points of a tile.
  void tiles(size_t left, const std::function<void()>& body) {
    if (left == 0) return body();
    const int dim = schedule_.order[left - 1];
    for (const TilePart& part : tiles_of(dim)) {
      place(dim).tile = part;
      open_loop(tiles_, Exec::loop, name(dim), part.trips, [&](const IndexExpr& trip) {
        place(dim).trip = trip;
        tiles(left - 1, body);
      });
    }
  }

  void all_points(const std::function<void()>& body) {
    tiles(schedule_.order.size(), [&] { tile_points(Exec::unroll, 0, body); });
  }

  void tile_points(Exec exec, size_t at, const std::function<void()>& body) {
    if (at == schedule_.order.size()) {
      if (exec == Exec::lanes) return body();
      return tile_points(Exec::lanes, 0, body);
    }
    const int dim = tile_order_[at];
    Place& here = place(dim);
    const bool is_lanes = exec == Exec::lanes;
    open_loop(tiles_, exec, name(dim), is_lanes ? here.tile.lanes : here.tile.unroll,
              [&](const IndexExpr& i) {
                (is_lanes ? here.lane : here.u) = i;
                tile_points(exec, at + 1, body);
              });
  }

  IndexExpr index_of(int dim) const {
    const Place& at = place(dim);
    return at.first() + at.tile.point(at.trip, at.u, at.lane);
  }
  Indices point() const {
    Indices index;
    for (int dim = 0; dim < space_.parallel; ++dim) index.push_back(index_of(dim));
    return index;
  }
  Guards guards() const {
    Guards guards;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (place(dim).tile.has_gaps) guards.push_back(guard(dim));
    return guards;
  }
  Guard guard(int dim) const { return {index_of(dim) - place(dim).origin, 0, extent(dim)}; }
  Indices anchor_index() const { return composed(contraction_.index, point()); }

  // ---- Scratch ---------------------------------------------------------------------------------

  // The tile within the block and the point within the tile, counted over some dims. Lanes are
  // neighbours.
  Indices tile_and_point(const std::vector<bool>& dims) const {
    IndexExpr tile = 0, point = 0;
    auto count = [&](int dim) {
      const Place& at = place(dim);
      const int64_t points = register_tile(schedule_, dim);
      tile = tile * (cache_block(schedule_, space_, dim) / points) + at.trip +
             IndexExpr(at.tile.first / points);
      point = point * points + at.within_tile();
    };
    const int lanes = schedule_.lanes.empty() ? -1 : schedule_.lanes[0].dim;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (dims[static_cast<size_t>(dim)] && dim != lanes) count(dim);
    if (lanes >= 0 && dims[static_cast<size_t>(lanes)]) count(lanes);
    return {tile, point};
  }

  Indices sums_index() const { return tile_and_point(all_results()); }

  Indices panel_index(size_t side) const {
    const Indices at = tile_and_point(contraction_.sides[side]);
    IndexExpr depth = 0;
    for (int dim : reduction_)
      depth = quads_ && dim == quads_->inner
                  ? depth * quads_->inner_words + word_
                  : depth * cache_block(schedule_, space_, dim) + place(dim).trip;
    return {at[0], depth, at[1]};
  }

  // Where the point at hand is in the window: how far it is from the block's first one.
  Indices window_index(size_t side) const {
    const Indices none(dims_.size(), 0);
    Indices from_first;
    for (int dim = 0; dim < dim_count(); ++dim) {
      const Place& at = place(dim);
      from_first.push_back(dim < space_.parallel ? at.tile.point(at.trip, at.u, at.lane) : at.trip);
    }
    Indices index;
    for (size_t dim : operands_[side].order) {
      const IndexExpr& expr = contraction_.reads[side][dim];
      index.push_back(expr.substitute(from_first) - expr.substitute(none));
    }
    return index;
  }

  // The reduction's loops are over the block at hand.
  PointBuilder::Splits splits() const {
    PointBuilder::Splits splits;
    for (int dim : reduction_)
      splits.push_back({.dim = static_cast<int>(contraction_.index.size()) + dim - space_.parallel,
                        .first = place(dim).first(),
                        .extent = place(dim).block.unroll});
    return splits;
  }

  std::optional<Scalar> packed(size_t side, const Indices& iters) {
    const Operand& operand = operands_[side];
    if (!operand.is_packed) return std::nullopt;
    set_reduction(iters);
    return tiles_.load(operand.buffer,
                       operand.packing == Packing::window ? window_index(side) : panel_index(side));
  }

  void set_reduction(const Indices& iters) {
    for (int dim : reduction_)
      place(dim).trip =
          iters[contraction_.index.size() + static_cast<size_t>(dim - space_.parallel)] -
          place(dim).first();
  }

  // Packs the part of one operand that the current block needs, if the schedule asks for it.
  void pack(size_t side) {
    Operand& operand = operands_[side];
    if (operand.packing == Packing::no || operand.is_packed) return;
    if (!blocks_reduction_)
      for (int dim : reduction_) place(dim).block = {.trips = 1, .unroll = extent(dim).value()};
    for (Place& at : dims_) at.tile = {}, at.trip = at.u = at.lane = 0;
    if (operand.packing == Packing::panels) {
      pack_tiles(side, 0);
    } else {
      Indices point(operand.order.size(), 0);
      pack_window(side, 0, point, {});
    }
    operand.is_packed = true;
  }

  void pack_tiles(size_t side, size_t at) {
    if (at == schedule_.order.size()) return pack_depth(side, 0);
    const int dim = schedule_.order[at];
    if (!contraction_.sides[side][static_cast<size_t>(dim)]) return pack_tiles(side, at + 1);
    for (const TilePart& part : packed_tiles_of(dim)) {
      place(dim).tile = part;
      open_loop(tiles_, Exec::loop, name(dim), part.trips, [&](const IndexExpr& trip) {
        place(dim).trip = trip;
        pack_tiles(side, at + 1);
      });
    }
  }

  // A matrix unit takes whole tiles.
  std::vector<TilePart> packed_tiles_of(int dim) const {
    std::vector<TilePart> parts = tiles_of(dim);
    TilePart& last = parts.back();
    if (!split_ || last.unroll * last.lanes == register_tile(schedule_, dim)) return parts;
    last.unroll = tile_of(schedule_.unroll, dim);
    last.has_gaps = true;
    return parts;
  }

  void pack_depth(size_t side, size_t at) {
    if (split_ && at + 1 == reduction_.size()) return pack_pairs(side);
    if (at == reduction_.size()) return pack_points(side, Exec::unroll, 0);
    const int dim = reduction_[at];
    const Dim trips = quads_ && dim == quads_->inner ? inner_words() : place(dim).block.unroll;
    open_loop(tiles_, Exec::loop, name(dim), trips, [&](const IndexExpr& k) {
      move_to(dim, k);
      pack_depth(side, at + 1);
    });
  }

  void pack_points(size_t side, Exec exec, size_t at) {
    if (at == schedule_.order.size()) {
      if (exec == Exec::unroll) return pack_points(side, Exec::lanes, 0);
      return pack_point(side);
    }
    const int dim = schedule_.order[at];
    if (!contraction_.sides[side][static_cast<size_t>(dim)]) return pack_points(side, exec, at + 1);
    Place& here = place(dim);
    const bool is_lanes = exec == Exec::lanes;
    // Elements that lie apart go one by one: it takes longer to gather them in a vector.
    const bool has_lanes = tile_of(schedule_.lanes, dim) > 1;
    const Exec how =
        dim == operands_[side].lanes && is_lanes == has_lanes ? Exec::lanes : Exec::unroll;
    open_loop(tiles_, how, name(dim), is_lanes ? here.tile.lanes : here.tile.unroll,
              [&](const IndexExpr& i) {
                (is_lanes ? here.lane : here.u) = i;
                pack_points(side, exec, at + 1);
              });
  }

  void pack_point(size_t side) {
    tiles_.store(operands_[side].buffer, panel_index(side),
                 quads_ ? packed_word(side) : packed_number(side, {}));
  }

  Scalar packed_number(size_t side, Guards gaps) {
    for (Guard& gap : gaps_of(side)) gaps.push_back(std::move(gap));
    return points_.factor(space_.anchor, side, factor_index(), {}, gaps);
  }

  // Of the points of a tile that are beyond the end of a dim.
  Guards gaps_of(size_t side) const {
    Guards gaps;
    for (int dim = 0; dim < space_.parallel; ++dim)
      if (contraction_.sides[side][static_cast<size_t>(dim)] && place(dim).tile.has_gaps)
        gaps.push_back(guard(dim));
    return gaps;
  }

  // The point at hand, of the anchor's relation.
  Indices factor_index() const {
    Indices iters = anchor_index();
    iters.resize(iters.size() + reduction_.size(), 0);
    for (int dim : reduction_)
      iters[contraction_.index.size() + static_cast<size_t>(dim - space_.parallel)] =
          HONE_PLANT(panel_block, place(dim).first(), IndexExpr(0)) + place(dim).trip;
    return iters;
  }

  // `point` is in the window, by the operand's dims; `gaps` hold where it is.
  void pack_window(size_t side, size_t at, Indices& point, const Guards& gaps) {
    const Operand& operand = operands_[side];
    if (at == operand.order.size()) return pack_window_point(side, point, gaps);
    const size_t dim = operand.order[at];
    const int64_t extent = operand.window[dim];
    const bool has_lanes = operand.lanes == static_cast<int>(dim) && !schedule_.lanes.empty();
    for (const TilePart& part : tile_parts(extent, 1, has_lanes ? schedule_.lanes[0].count : 1)) {
      open_loop(tiles_, Exec::loop, "w", part.trips, [&](const IndexExpr& trip) {
        open_loop(tiles_, Exec::lanes, "w", part.lanes, [&](const IndexExpr& lane) {
          point[dim] = part.point(trip, 0, lane);
          Guards more = gaps;
          if (part.has_gaps) more.push_back({point[dim], 0, extent});
          pack_window(side, at + 1, point, more);
        });
      });
    }
  }

  void pack_window_point(size_t side, const Indices& point, const Guards& gaps) {
    const Operand& operand = operands_[side];
    const Type type = graph_.type(operand_value(side));
    Indices first;
    for (int dim = 0; dim < dim_count(); ++dim) first.push_back(place(dim).first());
    Indices index, in_window;
    Guards inside;
    for (size_t dim = 0; dim < point.size(); ++dim) {
      index.push_back(contraction_.reads[side][dim].substitute(first) + point[dim]);
      inside.push_back({index.back(), 0, type.dim(static_cast<int>(dim))});
    }
    for (size_t dim : operand.order) in_window.push_back(point[dim]);
    const Scalar number =
        points_.at_or(operand_value(side), index, gaps, inside, points_.zero(type.dtype()));
    tiles_.store(operand.buffer, in_window, quads_ ? number : tiles_.cast(number, wide_), gaps);
  }

  const KernelBody& body_;
  const Graph& graph_;
  const Schedule& schedule_;
  const KernelSpace space_;
  const Contraction contraction_;
  TileBuilder& tiles_;
  PointBuilder points_;
  ScratchSource scratch_;
  std::vector<Place> dims_;      // of the space; `trip` of a reduction dim counts within the block
  std::vector<int> reduction_;   // dims, from outside in
  std::vector<int> tile_order_;  // of the results' dims: the loops over the points of a tile
  DType wide_ = DType::f32;      // of sums and factors
  std::array<Operand, 2> operands_;
  std::optional<tile::BufferId> sums_;  // of the blocks of the reduction so far
  std::optional<SplitShape> split_;
  std::optional<QuadShape> quads_;
  std::array<std::optional<WordSource>, 2> words_;  // of quads, by operand
  IndexExpr word_ = 0;                              // of the block, along the quads' dim
  const bool blocks_reduction_ = blocks_reduction(schedule_, space_);
};

}  // namespace

Result<TileProgram> build_gemm(const KernelBody& body, const Schedule& schedule,
                               std::string_view name) {
  TileBuilder tiles(name);
  GemmBuilder(body, schedule, kernel_place(body, tiles), tiles).kernel();
  return std::move(tiles).finish();
}

void build_gemm(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles) {
  GemmBuilder(body, schedule, place, tiles).stage();
}

}  // namespace hone
