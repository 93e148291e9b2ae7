#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/instructions.h"
#include "codegen/emit/lockstep.h"
#include "codegen/emit/machine.h"
#include "codegen/emit/numbers.h"
#include "codegen/emit/variance.h"
#include "program/tiles/bounds.h"
#include "program/tiles/tiles.h"
#include "target/target.h"

namespace hone::code {

// The first one inside of the loop on a matrix unit, if there is one (products.cc).
const tile::Product* first_product(const tile::Loop& loop);
// Unsupported if the program does and the target has none.
Status check_products(const TileProgram& program, const Target& target);

// The boxes that TensorCopy takes from an input: one tensor map is for all of one shape.
struct BoxMap {
  tile::BufferId from;
  int axis;
  int64_t rows;
  bool operator==(const BoxMap&) const = default;
};
std::vector<BoxMap> box_maps(const tile::Loop& phase);  // groups.cc

// Writes the code of one phase into the function in which its builder stands.
//
// Loops of the kinds threads and loop become scf.for. The unroll and lanes loops are gone: a scalar
// that depends on them is a Grid.
class Emitter {
 public:
  struct Surroundings {
    std::vector<Value> buffers;            // pointers, by position in the program; scratch: null
    Value scratch;                         // pointer to this thread's memory
    std::map<std::string, Value> symbols;  // i64
    Value begin, end;                      // of the trips of the threads loops
    Value step = {};                       // from one to the next; null: 1
    Value thread = {};                     // i64, within its block; in phases of blocks loops
    int64_t block_threads = 0;             // in phases of blocks loops
    std::vector<Value> maps = {};          // pointers, of box_maps() of the phase
  };
  Emitter(mlir::ImplicitLocOpBuilder& builder, const TileProgram& program, const Machine& machine,
          Surroundings around);

  void phase(const tile::Loop& phase);

 private:
  // ---- Statements (emitter.cc) -----------------------------------------------------------------
  void emit(const tile::Block& body);
  void emit(const tile::Number& s);
  void emit(const tile::Position& s);
  void emit(const tile::Compute& s);
  void emit(const tile::Fma& s);
  void emit(const tile::Quad& s);  // words.cc
  void emit(const tile::Pair& s);  // words.cc
  void emit(const tile::Choose& s);
  void emit(const tile::Load& s);
  void emit(const tile::Store& s);
  void emit(const tile::Loop& s);
  void emit(const tile::Product& s);         // products.cc
  void emit(const tile::Barrier& s);         // blocks.cc
  void emit(const tile::WarpCombine& s);     // blocks.cc
  void emit(const tile::BlockVote& s);       // blocks.cc
  void emit(const tile::AsyncCopy& s);       // blocks.cc
  void emit(const tile::CopyGroup& s);       // blocks.cc
  void emit(const tile::CopyWait& s);        // blocks.cc
  void emit(const tile::MatrixLoad& s);      // blocks.cc
  void emit(const tile::WarpProduct& s);     // blocks.cc
  void emit(const tile::MbarrierInit& s);    // groups.cc
  void emit(const tile::MbarrierExpect& s);  // groups.cc
  void emit(const tile::MbarrierWait& s);    // groups.cc
  void emit(const tile::TensorCopy& s);      // groups.cc
  void emit(const tile::ProxyFence& s);      // groups.cc
  void emit(const tile::GroupProduct& s);    // groups.cc
  void emit(const tile::KernelWait& s);      // groups.cc
  void end_barriers(const tile::Loop& phase);
  Value chip_address(tile::BufferId buffer, std::vector<IndexExpr> index, const Trips& trips);
  Value matrix_descriptor(Value address, bool is_across);
  Value ptx(mlir::Type result, const std::string& text, const std::string& constraints,
            ValueRange operands);
  void begin_products(const tile::Product& product);
  void end_products();
  void divided(const tile::Loop& phase);
  void threads_of_block(const tile::Loop& s);  // blocks.cc
  Value of_lane_apart(Value number, int64_t distance);
  Value intrinsic(mlir::Type result, llvm::StringRef name, ValueRange operands);
  void sequential(const tile::Loop& s);
  void lockstep(const tile::Loop& s);
  Value combine_lanes(DType dtype, Opcode combine, Value vector);
  // Computes by parts that one instruction takes; null, if a vector has no such parts.
  using OfVectors = Value (Emitter::*)(Value a, Value b, Value c);
  Value by_parts(Value a, Value b, Value c, OfVectors each);
  Value quad(Value a, Value b, Value c);
  Value quad_of_vectors(Value a, Value b, Value c);
  Value pair(Value a, Value b, Value c);
  Value pair_of_vectors(Value a, Value b, Value c);
  // A Grid of what `make` gives for each combination of trips.
  Grid grid(LoopSet loops, const std::function<Value(const Trips&)>& make);
  // The scalar at these trips, as a vector if `loops` has the lanes loop.
  Value at(tile::Scalar scalar, const Trips& trips, LoopSet loops);
  // The first trip of a sequential loop, and the end of them.
  std::pair<Value, Value> trips_of(const TileIndex& counter);
  // The carried values of a sequential loop in one list.
  void flatten(tile::Scalar scalar, LoopSet loops, llvm::SmallVectorImpl<Value>& list);
  Grid unflatten(LoopSet loops, ValueRange list, size_t& next);
  void define(tile::Scalar scalar, Grid grid) { scalars_[scalar] = std::move(grid); }

  // ---- Indices (indices.cc) --------------------------------------------------------------------
  friend struct IndexAlgebra;
  friend struct DimAlgebra;
  Value dim(Dim dim);
  // The expression with the trips of unroll loops, and if given the lane, put in.
  IndexExpr here(const IndexExpr& expr, const Trips& trips, std::optional<int64_t> lane = {});
  // An i64, or a vector of them if the expression depends on the lanes loop.
  Value index(const IndexExpr& here, const Trips& trips);
  bool depends_on_lanes(const IndexExpr& expr) const;
  int64_t lanes() const { return open_.lanes()->extent; }
  Value as_vector(Value value);  // splat if it is a number

  // ---- Memory (memory.cc) ----------------------------------------------------------------------
  // The condition that lets a lane through: its number is so related to its limit.
  struct LaneGuard {
    Ints relation;
    Value number, limit;  // vectors of integers
  };
  // Where an access is for some trips.
  struct Place {
    tile::BufferId buffer;
    IndexExpr offset;               // in elements
    std::optional<int64_t> stride;  // from lane to lane; none: irregular, or no lanes
    Value condition = {};           // i1: guards that hold for all lanes or for none; null: none
    std::vector<LaneGuard> lane_guards = {};  // the others
    bool is_word = false;                     // of several elements (tile::Load)
    bool is_masked() const { return !lane_guards.empty(); }
  };
  Place place(tile::BufferId buffer, const std::vector<IndexExpr>& index,
              const std::vector<Guard>& guards, const Trips& trips);
  void add_guard(const Guard& guard, const Trips& trips, Place& place);
  Value lanes_before(Dim limit, Value start);
  // Vectors of i1: all lanes, or `count` of them from `first` on.
  Value mask(const Place& place, int64_t first, int64_t count);
  Value mask(const Place& place) { return mask(place, 0, lanes()); }
  void place_scratch();
  Value pointer(tile::BufferId buffer, Value offset);
  // Lanes that a masked access takes at once.
  int64_t masked_lanes(mlir::Type element) const;
  // A point that is loaded, and what it is where the place's guards do not hold.
  struct LoadedPoint {
    Trips trips = {};
    Place place;
    Value otherwise = {};
  };
  std::vector<Value> load_points(const std::vector<LoadedPoint>& points, LoopSet loops);
  Value load_lanes(const LoadedPoint& point);
  // `first` is the offset of lane 0.
  Value load_once(const Place& place, const Trips& trips, Value otherwise);
  Value load_vector(const Place& place, Value first, Value otherwise);
  // For lanes that lie apart: a pointer each; all of one buffer's elements are whole bytes.
  Value pointers(const Place& place, const Trips& trips);
  Value load_scattered(const Place& place, const Trips& trips, Value otherwise);
  // How far each lane's element is from that of lane 0, if that is known and a few vectors have all
  // of them.
  std::optional<llvm::SmallVector<int64_t>> near_lanes(const Place& place, const Trips& trips);
  Value load_front(tile::BufferId buffer, Value offset, int64_t count);
  Value load_near(const Place& place, const Trips& trips, llvm::ArrayRef<int64_t> distances);
  Value load_word(const Place& place, const Trips& trips, Value otherwise);
  // The element type of the place in memory.
  DType dtype(const Place& place) const { return place.is_word ? DType::u32 : dtype(place.buffer); }
  unsigned alignment(const Place& place);
  void store_scattered(const Place& place, const Trips& trips, Value value);
  Value load_each_lane(const Place& place, const Trips& trips, Value otherwise);
  bool begins_byte(const Place& place, const Trips& trips);
  Value load_from_bytes(const Place& place, Value first);
  // Vectors that are read for lanes that lie apart: more take longer than a gather.
  static constexpr int64_t kNearVectors = 4;
  void store_vector(const Place& place, Value first, Value value);
  void store_each_lane(const Place& place, const Trips& trips, Value value);
  struct PlaceInByte {
    Value byte;   // its address
    Value shift;  // from the byte's lowest bit
  };
  PlaceInByte place_in_byte(tile::BufferId buffer, Value offset);
  Value load_element(tile::BufferId buffer, Value offset);
  Value load_number(const Place& place, Value offset);  // a word, or an element
  void store_element(tile::BufferId buffer, Value offset, Value number);
  // `make` where the condition holds (null: always), `otherwise` elsewhere.
  Value where(Value condition, Value otherwise, const std::function<Value()>& make);
  std::vector<Value> where(Value condition, const std::vector<Value>& otherwise,
                           const std::function<std::vector<Value>()>& make);
  void where(Value condition, const std::function<void()>& make);
  bool is_packed(tile::BufferId buffer) const;  // elements are smaller than a byte
  DType dtype(tile::BufferId buffer) const { return program_.buffers[buffer].type.dtype(); }

  // ---- Lanes apart, neighbours in registers (transposed.cc) ------------------------------------
  // Trips of the unroll loops whose elements are neighbours, as many as a block has rows at most.
  // Lanes are `stride` elements apart.
  struct Run {
    IndexExpr first = 0;  // the offset of the grid's first element, in lane 0
    int64_t stride = 0;
    int64_t distance = 0;            // of the run's first element from that
    std::vector<size_t> trips = {};  // by place in the grid
  };
  // None: lanes are neighbours, or too few trips are, or where they lie is not known.
  std::optional<std::vector<Run>> runs_apart(tile::BufferId buffer,
                                             const std::vector<IndexExpr>& index,
                                             const std::vector<Guard>& guards, LoopSet loops);
  int64_t block_of_lanes() const;
  llvm::SmallVector<Value> transposed(llvm::SmallVector<Value> rows);
  IndexExpr place_of_lane(const Run& run, int64_t lane) const;
  Value load_run(tile::BufferId buffer, Value offset, int64_t count, int64_t block);
  Value front(int64_t count, int64_t block);  // a mask
  // Nothing, or false: elements have to be reached one by one.
  std::optional<Grid> load_transposed(const tile::Load& s, LoopSet loops);
  bool store_transposed(const tile::Store& s, LoopSet loops);

  const TileProgram& program_;
  const Machine machine_;
  TileBounds bounds_;
  Variance variance_;
  mlir::ImplicitLocOpBuilder& b_;
  Instructions code_;
  Numbers numbers_;
  Surroundings around_;
  std::vector<BoxMap> maps_;  // of the phase
  Lockstep open_;
  std::vector<Grid> scalars_;
  std::vector<Grid> indices_;          // of those that are no lockstep loop's
  std::vector<IndexExpr> themselves_;  // iter(0), iter(1), ...
};

}  // namespace hone::code
