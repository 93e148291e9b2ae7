#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/facts.h"
#include "kernel/matrix.h"
#include "kernel/words.h"
#include "program/build/point_builder.h"
#include "program/build/tile_parts.h"

namespace hone {

// The loops from outside in are these. First come blocks of the results' dims, in the schedule's
// order, with the packing of panels that depend on no further block. Then come blocks of the
// reduction, if there are any. Then come tiles of the results' dims in the opposite order, so that
// the tiles of the outermost block come from the nearest cache again and again. The points of a
// tile are innermost.
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
    wide_ = wide_type(graph_.type(graph_.result(space_.anchor)).dtype());
    const GemmFields& own = schedule.get<GemmFields>();
    operands_[0].packing = own.pack_lhs;
    operands_[1].packing = own.pack_rhs;
    if (own.products == Products::matrix) set_up_matrix();
    if (own.products == Products::quads || own.products == Products::pairs) set_up_words();
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

  void set_up_words();
  void set_up(size_t side);
  void set_up_panels(size_t side);
  // The dim whose points are neighbours in memory is the last one.
  void set_up_window(size_t side);
  // A window of words has their numbers side by side, and whole ones.
  void set_up_window_of_words(size_t side);
  // The dim of an operand that words are taken along.
  std::optional<int> operand_dim(size_t side) const;
  // Rows that lie a power of two apart would compete for the same places of a cache.
  static int64_t apart(int64_t extent, DType dtype);
  void scratch(size_t side, DType dtype, const std::vector<Dim>& dims);
  // Orders the reduction as an operand lies in memory, so that it is read from one end to the
  // other. The operand is the second one. If panels make the second lie as it should, it is the
  // window of the first.
  void order_reduction();
  // Indices by the space's dims, from outside in.
  Indices memory_index() const;
  ValueId operand_value(size_t side) const { return graph_.operands(space_.anchor)[side]; }

  // True if the points along an iter of the index are neighbours in the memory that the value is
  // made of.
  bool lie_side_by_side(ValueId value, Indices index, int iter) const;
  static Indices composed(const Indices& access, const Indices& iters);
  void make_sums();

  // ---- Blocks ----------------------------------------------------------------------------------

  int dim_count() const { return static_cast<int>(space_.dims.size()); }
  Place& place(int dim) { return dims_[static_cast<size_t>(dim)]; }
  const Place& place(int dim) const { return dims_[static_cast<size_t>(dim)]; }
  std::string_view name(int dim) const { return space_.dims[static_cast<size_t>(dim)].name; }
  Dim extent(int dim) const { return space_.dims[static_cast<size_t>(dim)].extent; }
  std::vector<bool> all_results() const;
  std::vector<TilePart> blocks_of(int dim) const;
  // A phase for each choice of parts of the dims that threads divide: a threads loop has nothing
  // beside it.
  void phases(size_t at);
  void blocks(size_t at);
  // For each part of a dim, which is then the block at hand.
  void each_block(int dim, const std::function<void()>& body);
  // Only if each open size from `at` on has whole tiles before its rest.
  void pack_for_tiles(size_t side, size_t at);
  // True if the operand depends on the block of a dim whose loop is not open yet.
  bool depends_beyond(size_t side, size_t at) const;
  void in_block();
  // `is_last`: no further block adds to the sums.
  void reduction_blocks(size_t at, bool is_last);
  // Splits off the last trip: the epilogue follows it in registers.
  static std::vector<TilePart> with_last_trip(std::vector<TilePart> parts);
  void reduction_block(bool is_last);
  void add_products(bool is_last);

  // ---- Words -----------------------------------------------------------------------------------

  int64_t inner_words() const;
  Scalar sum_of_words(Scalar so_far, size_t at);
  void move_to(int dim, const IndexExpr& trip);
  Scalar word(size_t side);
  Scalar word_in_memory(size_t side, Guards gaps);
  Scalar packed_word(size_t side);
  Scalar joined(std::span<const Scalar> numbers);  // into a word, the first in its lowest bits
  Scalar bits_of(Scalar number);

  // ---- The matrix unit -------------------------------------------------------------------------

  void set_up_matrix();
  void set_up_matrix_panels(size_t side);
  void matrix_block();
  void clear_sums();
  // The unit takes the whole tile; what it computes behind the end of a dim is not stored.
  void multiply_tile();
  // Words along the inner dim of the reduction, zeros behind its end. Vectors go along what lies
  // side by side in memory: points of the tile, or words.
  void pack_matrix(size_t side);
  std::optional<int> points_side_by_side(size_t side) const;
  bool words_are_next(size_t side, int dim) const;  // along the dim, in memory
  void pack_matrix_points(size_t side, int dim, const std::function<void()>& body);
  void pack_matrix_word(size_t side, const IndexExpr& step, const IndexExpr& word);
  // The word of each part.
  std::vector<Scalar> matrix_word(size_t side, const IndexExpr& step, const IndexExpr& word);
  // The sum of the blocks of the reduction before this one. Only one dim has several.
  Scalar sum_before();

  // ---- Tiles -----------------------------------------------------------------------------------

  std::vector<TilePart> tiles_of(int dim) const;
  // From the last dim of the order to the first; then the points of a tile.
  void tiles(size_t left, const std::function<void()>& body);
  void all_points(const std::function<void()>& body);
  void tile_points(Exec exec, size_t at, const std::function<void()>& body);
  IndexExpr index_of(int dim) const;
  Indices point() const;
  Guards guards() const;
  Guard guard(int dim) const { return {index_of(dim) - place(dim).origin, 0, extent(dim)}; }
  Indices anchor_index() const { return composed(contraction_.index, point()); }

  // ---- Scratch ---------------------------------------------------------------------------------

  // The tile within the block and the point within the tile, counted over some dims. Lanes are
  // neighbours.
  Indices tile_and_point(const std::vector<bool>& dims) const;
  Indices sums_index() const { return tile_and_point(all_results()); }

  Indices panel_index(size_t side) const;
  // Where the point at hand is in the window: how far it is from the block's first one.
  Indices window_index(size_t side) const;
  // The reduction's loops are over the block at hand.
  PointBuilder::Splits splits() const;
  std::optional<Scalar> packed(size_t side, const Indices& iters);
  void set_reduction(const Indices& iters);
  bool is_to_be_packed(size_t side) const;
  // Packs the part of one operand that the current block needs, if the schedule asks for it.
  void pack(size_t side);
  void pack_tiles(size_t side, size_t at);
  // A matrix unit takes whole tiles.
  std::vector<TilePart> packed_tiles_of(int dim) const;
  void pack_depth(size_t side, size_t at);
  void pack_points(size_t side, Exec exec, size_t at);
  void pack_point(size_t side);
  Scalar packed_number(size_t side, Guards gaps);
  // Guards against the points of a tile that are beyond the end of a dim.
  Guards gaps_of(size_t side) const;
  // The point at hand, of the anchor's relation.
  Indices factor_index() const;
  // `point` is in the window, by the operand's dims; `gaps` hold where it is.
  void pack_window(size_t side, size_t at, Indices& point, const Guards& gaps);
  void pack_window_point(size_t side, const Indices& point, const Guards& gaps);

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
  std::optional<MatrixShape> matrix_;
  std::optional<WordShape> words_;  // on a matrix unit: those that lie so in memory
  std::array<std::optional<WordSource>, 2> sources_;  // of words, by operand
  IndexExpr word_ = 0;                                // of the block, along the words' dim
  // A block at hand is a rest: it reads operands where they lie, so that a few points do not wait
  // until all of an operand is packed.
  bool in_rest_ = false;
  const bool blocks_reduction_ = blocks_reduction(schedule_, space_);
};

}  // namespace hone
