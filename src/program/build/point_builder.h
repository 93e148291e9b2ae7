#pragma once

#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "ir/op_def.h"
#include "kernel/kernel_body.h"
#include "kernel/prepared.h"
#include "kernel/words.h"
#include "program/tiles/tile_builder.h"

namespace hone {

// The place of a stage of a chain: inside of open loops, with buffers that it shares with other
// stages.
struct StagePlace {
  struct Port {
    tile::BufferId buffer;
    // The first of the points of the value that it holds, in its layout. Empty: it holds all.
    std::vector<IndexExpr> first = {};
  };
  std::vector<Port> inputs, outputs;
  std::vector<IndexExpr> first;  // of the points of the results that are computed
  // The scratch buffers of the stage when it was built for another block, in the order in which it
  // asks for them. It takes the same ones where they are large enough.
  std::vector<tile::BufferId>* scratch = nullptr;
};

// Gives a kernel or stage its scratch.
class ScratchSource {
 public:
  ScratchSource(const StagePlace& place, TileBuilder& tiles)
      : known_(place.scratch), tiles_(tiles) {}
  tile::BufferId buffer(std::string_view name, Type type);

 private:
  std::vector<tile::BufferId>* known_;
  TileBuilder& tiles_;
  size_t asked_ = 0;
};

// The place of a whole kernel: makes the buffers of the parameters that it reads, "x0", ..., and of
// the outputs, "y0", .... One parameter may be prepared (prepared.h).
StagePlace kernel_place(const KernelBody& body, TileBuilder& tiles,
                        const std::optional<PreparedInput>& prepared = {});

// Writes the statements that compute values of a body at points, into the open loops: the recursion
// that all builders share. A parameter is a load, an elementwise op computes on its operands at the
// same index, data movement asks its operand at another index, a reduction opens loops that carry.
//
// Each number is computed once where its index is known: it stands in the outermost loop that its
// index and its guards allow, and is found there again.
//
// A number of a value has the wide_type of that value. Reals of 16 bits are computed as f32, and
// rounded where they are stored or where the graph casts to them.
class PointBuilder {
 public:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;
  using Guards = std::vector<Guard>;

  // How the reduction dim `dim` (a position in the node's relation) is taken in tiles, or which
  // part of it at all. Loops are nested in the order of splits, those of other dims inside of them.
  // With a `lane` only the points of that one of the lanes are taken.
  struct Split {
    int dim;
    int64_t unroll = 1;
    int64_t lanes = 1;
    std::optional<IndexExpr> lane = {};
    IndexExpr first = 0;
    std::optional<Dim> extent = {};  // none: to the end
  };
  using Splits = std::vector<Split>;

  // No statement goes further outside than the loops that are open now.
  PointBuilder(const KernelBody& body, TileBuilder& tiles, const StagePlace& place);

  // The number of a value at an index. It is arbitrary where a guard does not hold.
  Scalar at(ValueId value, Indices index, Guards guards = {});
  // The same, but `other` where all of `guards` hold and some of `own` does not.
  Scalar at_or(ValueId value, Indices index, const Guards& guards, const Guards& own, Scalar other);
  // From now on a number that depends on the node's result is computed where it is asked for, not
  // further outside.
  void pin(NodeId node);
  // Lets the scalar stand for a pinned value, at all indices.
  void bind(ValueId value, Scalar scalar) {
    std::erase_if(bound_, [&](const auto& known) { return known.first == value; });
    bound_.emplace_back(value, scalar);
  }
  // Asked for each element of a parameter; a scalar that it gives, in the wide type, is used.
  using ElementSource = std::function<std::optional<Scalar>(ValueId parameter, const Indices&)>;
  void take_elements_from(ElementSource source) { elements_ = std::move(source); }
  void store(size_t output, const Indices& index, Scalar value, const Guards& guards = {});
  // Stores all outputs at the index, where all guards hold; in place, the update that is there.
  void store_outputs(const Indices& index, const Guards& guards);

  tile::BufferId output(size_t i) const { return outputs_[i].buffer; }
  Indices stored(size_t output, const Indices& index) const;

  // Called when a reduction opens its loops.
  void split_by(std::function<Splits(NodeId)> splits) { splits_ = std::move(splits); }
  // A conv reads no kernel element that meets padding. Otherwise padding is multiplied as zeros,
  // with the same result for all finite kernels.
  void skip_padding() { skips_padding_ = true; }

  // ---- Contractions, piece by piece. `iters` are at a point of the node's relation. -------------
  // The factor that a product takes from one side, in the type of the sum. It is 0 if some of
  // `gaps` does not hold, and arbitrary if some of `guards` does not hold.
  Scalar factor(NodeId node, size_t side, const Indices& iters, const Guards& guards,
                const Guards& gaps);
  // Where the factor lies in memory, if it is an element of a parameter. It is 0 where some of the
  // guards does not hold. None: it is computed, or nothing proves that it lies inside.
  struct Element {
    tile::BufferId buffer;
    Indices index;
    Guards guards;
  };
  std::optional<Element> element_of_factor(NodeId node, size_t side, const Indices& iters,
                                           const Guards& gaps);
  // The word (kernel/words.h) that lies at `place.index` in the memory of its source, by its
  // shift there. `iters` are at its first element; 0 where some of `gaps` does not hold.
  Scalar word(NodeId node, size_t side, const Indices& iters, const WordSource& place,
              const Guards& gaps);
  // The sum of `so_far` and the products of all points, or of those in the splits.
  Scalar sum_of_products(NodeId node, const Indices& index, const Guards& guards, Scalar so_far);
  // Called for each factor; a scalar that it gives is used in its place.
  using FactorSource = std::function<std::optional<Scalar>(size_t side, const Indices& iters)>;
  void take_factors_from(FactorSource source) { factors_ = std::move(source); }

  using Value = std::variant<int64_t, double>;  // a double for real types
  Scalar number(DType dtype, Value value);
  Scalar zero(DType dtype);
  Scalar identity(Opcode combine, DType dtype);
  Scalar compare(std::string_view direction, Scalar a, Scalar b);
  Scalar position(DType dtype, const IndexExpr& value);

 private:
  // A node at one index of its result.
  struct Point {
    NodeId node;
    Op op;
    std::span<const ValueId> operands;
    const AccessRelation& relation;
    Type type;      // of the result
    Indices iters;  // per dim of the relation; those of reductions are set by their loops
    Guards guards;

    Indices here(const Access& access) const;
    Guards guards_here(const Access& access) const;
  };

  // ---- Values (point_builder.cc) ---------------------------------------------------------------
  Point point(NodeId node, const Indices& index, const Guards& guards);
  Scalar compute(ValueId value, const Indices& index, const Guards& guards);
  // Where all of `guards` hold; if there is another number, it is given where not all of `own` do.
  Scalar load(ValueId parameter, const Indices& index, const Guards& guards, const Guards& own = {},
              std::optional<Scalar> other = {});
  Scalar operand(const Point& point, int i);  // by its only access
  // In the wide type: what the scalar is in `dtype`.
  Scalar rounded(Scalar scalar, DType dtype);
  // The number that `scalar` is as one of `dtype`, if it is known.
  std::optional<Scalar> number_as(DType dtype, Scalar scalar);
  // If the value is another value's element, without guards: goes on to that value and index.
  bool follow(ValueId& value, Indices& index);
  Scalar holds(const Guards& guards);
  const AccessRelation& relation(NodeId node);

  // ---- Ops (point_ops.cc) ----------------------------------------------------------------------
  Scalar elementwise(const Point& point);
  Scalar moved(const Point& point);
  Scalar iota(const Point& point);
  Scalar dynamic_slice(const Point& point);
  Scalar dynamic_update(const Point& point);
  void store_update(const Indices& index, const Guards& guards);
  // How far a dynamic_update shifts its window along a dim.
  IndexExpr window_start(const Point& point, int dim);
  Scalar gather(const Point& point);
  Scalar rng_bits(const Point& point);  // point_random.cc
  // The nearest index in [low, high) to what the operand holds.
  IndexExpr start(const Point& point, int operand, const Access& access, Dim low, Dim high);

  // ---- Reductions (point_fold.cc) --------------------------------------------------------------
  Scalar fold(Point& point);
  Scalar arg_reduce(Point& point);
  Scalar segment_reduce(Point& point);
  Scalar contract(Point& point, Scalar so_far);
  // Over the reduction dims: step(so far, guards of the points that are there) is what comes next.
  // Points where the guards of `padding`, in terms of the relation, do not hold change nothing.
  using FoldStep = std::function<Scalar(Scalar, const Guards&)>;
  Scalar folded(Point& point, Scalar initial, Opcode combine, std::span<const Guard> padding,
                const FoldStep& step);
  // For a loop over one dim of the reduction from `first` on: the trips that meet no padding, where
  // these are the same for all that runs side by side.
  std::optional<tile::Span> trips_inside(const Point& point, std::span<const Guard> padding,
                                         size_t dim, const IndexExpr& first,
                                         const Dim& trips) const;

  // ---- Places ----------------------------------------------------------------------------------
  // The guards that mention the index and do not always hold.
  Guards relevant(const Guards& guards, const Indices& index) const;
  // The guards that `others` do not imply.
  Guards needed(const Guards& guards, const Guards& others) const;
  int home(ValueId value, const Indices& index, const Guards& guards) const;
  struct Place {
    int depth;
    uint32_t loop;
  };
  Place place() const { return {tiles_.depth(), tiles_.loop_at(tiles_.depth())}; }
  bool is_open(Place place) const;

  struct Known {
    ValueId value;
    Indices index;
    Guards guards;
    Scalar scalar;
    Place place;
  };
  struct KnownNumber {
    DType dtype;
    Value value;
    Scalar scalar;
    Place place;
  };
  struct KnownStart {
    Scalar scalar;
    Dim low, high;
    IndexExpr index;
    Place place;
  };
  const Known* find(ValueId value, const Indices& index, const Guards& guards) const;

  Indices stored_input(size_t parameter, const Indices& index) const;

  const KernelBody& body_;
  const Graph& graph_;
  TileBuilder& tiles_;
  std::vector<std::optional<StagePlace::Port>> inputs_;  // none: it is changed in place
  std::vector<StagePlace::Port> outputs_;
  int outermost_ = 0;               // loop
  std::vector<size_t> parameters_;  // per value: its position among the parameters
  std::vector<std::optional<AccessRelation>> relations_;  // per node, once it was needed
  std::vector<std::vector<Known>> known_;                 // per value
  std::vector<bool> is_pinned_;                           // per value
  std::vector<std::pair<ValueId, Scalar>> bound_;
  std::vector<KnownNumber> numbers_;
  std::vector<KnownStart> starts_;
  std::function<Splits(NodeId)> splits_;
  FactorSource factors_;
  ElementSource elements_;
  bool skips_padding_ = false;
};

// The type in which numbers are computed: f32 for 16-bit reals.
DType wide_type(DType dtype);

}  // namespace hone
