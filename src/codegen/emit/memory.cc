#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "codegen/emit/emitter.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"

namespace hone::code {

using namespace tile;

namespace {

mlir::Type pointer_type(mlir::OpBuilder& builder) {
  return mlir::LLVM::LLVMPointerType::get(builder.getContext());
}

// The position of an element in its buffer.
IndexExpr linear(const std::vector<IndexExpr>& index, Type type) {
  IndexExpr offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis)
    offset = offset * type.dim(static_cast<int>(axis)) + index[axis];
  return offset;
}

}  // namespace

bool Emitter::is_packed(BufferId buffer) const { return bits(dtype(buffer)) < 8; }

void Emitter::place_scratch() {
  const ScratchLayout layout = scratch_layout(program_);
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].role == BufferRole::scratch)
      around_.buffers[i] =
          b_.create<mlir::LLVM::GEPOp>(around_.scratch.getType(), code_.i(8), around_.scratch,
                                       ValueRange{dim(layout.offsets[i])});
}

// ---- Places -------------------------------------------------------------------------------------

Emitter::Place Emitter::place(BufferId buffer, const std::vector<IndexExpr>& index,
                              const std::vector<Guard>& guards, const Trips& trips) {
  const IndexExpr offset = bounds_.simplified(linear(index, program_.buffers[buffer].type), guards);
  Place place{buffer, here(offset, trips), std::nullopt};
  if (const Lockstep::Open* lanes = open_.lanes()) {
    place.stride = place.offset.coefficient(lanes->index);
    // Another index may depend on the lane.
    if (depends_on_lanes(here(offset, trips, 0))) place.stride = std::nullopt;
  }
  for (const Guard& guard : guards) add_guard(guard, trips, place);
  return place;
}

void Emitter::add_guard(const Guard& guard, const Trips& trips, Place& place) {
  const DimRange range = bounds_.of(guard.value);
  const bool needs_lower = !provably_le(guard.lower, range.low);
  const bool needs_upper = !provably_lt(range.high, guard.upper);
  if (!needs_lower && !needs_upper) return;
  const IndexExpr value = here(bounds_.simplified(guard.value), trips);
  if (!depends_on_lanes(value)) {
    const Value number = index(value, trips);
    auto add = [&](Ints relation, Dim limit) {
      const Value holds = code_.compare(relation, number, dim(limit));
      place.condition = place.condition ? code_.and_(place.condition, holds) : holds;
    };
    if (needs_lower) add(Ints::sge, guard.lower);
    if (needs_upper) add(Ints::slt, guard.upper);
    return;
  }
  const bool is_lane =
      value.coefficient(open_.lanes()->index) == 1 && !depends_on_lanes(here(value, trips, 0));
  const Value start = is_lane ? index(here(value, trips, 0), trips) : Value();
  const Value number = is_lane ? code_.iota(code_.i(32), lanes()) : index(value, trips);
  auto add = [&](Ints relation, Dim limit) {
    place.lane_guards.push_back(
        {relation, number, is_lane ? lanes_before(limit, start) : as_vector(dim(limit))});
  };
  if (needs_upper) add(HONE_PLANT(mask_bound, Ints::slt, Ints::sle), guard.upper);
  if (needs_lower) add(Ints::sge, guard.lower);
}

// How many lanes lie before `limit` if the first is at `start`, in 32-bit numbers: as wide as the
// masked elements.
Value Emitter::lanes_before(Dim limit, Value start) {
  Value count = code_.sub(dim(limit), start);
  const Value zero = code_.integer(0, count), most = code_.integer(lanes(), count);
  count = code_.select(code_.compare(Ints::slt, count, zero), zero, count);
  count = code_.select(code_.compare(Ints::sgt, count, most), most, count);
  return as_vector(code_.resized(count, code_.i(32), true));
}

// The numbers are cut, not the finished mask: of masks cut from a wider one that are known to be
// false, LLVM 19 makes loads without a mask for AVX2.
Value Emitter::mask(const Place& place, int64_t first, int64_t count) {
  Value all = {};
  for (const LaneGuard& guard : place.lane_guards) {
    const Value holds = code_.compare(guard.relation, code_.slice(guard.number, first, count),
                                      code_.slice(guard.limit, first, count));
    all = all ? code_.and_(all, holds) : holds;
  }
  return all ? all : code_.splat(code_.integer(code_.i(1), 1), count);
}

Value Emitter::where(Value condition, Value otherwise, const std::function<Value()>& make) {
  const auto one = [&] { return std::vector<Value>{make()}; };
  return where(condition, std::vector<Value>{otherwise}, one)[0];
}

std::vector<Value> Emitter::where(Value condition, const std::vector<Value>& otherwise,
                                  const std::function<std::vector<Value>()>& make) {
  if (!condition) return make();
  auto branch = b_.create<mlir::scf::IfOp>(mlir::ValueRange(otherwise).getTypes(), condition, true);
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  b_.create<mlir::scf::YieldOp>(make());
  b_.setInsertionPointToStart(branch.elseBlock());
  b_.create<mlir::scf::YieldOp>(otherwise);
  return {branch.result_begin(), branch.result_end()};
}

void Emitter::where(Value condition, const std::function<void()>& make) {
  if (!condition) return make();
  auto branch = b_.create<mlir::scf::IfOp>(condition, false);
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  make();
}

// ---- Single elements ----------------------------------------------------------------------------

// A swizzled place is that of swizzle.h: a row has eight pieces, each of a power of 2 elements.
Value Emitter::pointer(BufferId buffer, Value offset) {
  const Value base = around_.buffers[buffer];
  if (program_.buffers[buffer].is_swizzled) {
    const int64_t row = (kSwizzledRows - 1) * swizzled_piece(dtype(buffer));
    offset = code_.xor_(offset, code_.and_(code_.shr(offset, 3), code_.integer(row, offset)));
  }
  return b_.create<mlir::LLVM::GEPOp>(base.getType(), numbers_.memory_type(dtype(buffer)), base,
                                      ValueRange{offset});
}

// Where an element that shares a byte lies.
Emitter::PlaceInByte Emitter::place_in_byte(BufferId buffer, Value offset) {
  const int width = bits(dtype(buffer));
  const int in_byte = 8 / width;
  const Value which = code_.and_(offset, code_.integer(in_byte - 1, offset));
  const mlir::Type type = numbers_.memory_type(dtype(buffer));
  return {
      pointer(buffer, code_.shr(offset, std::countr_zero(static_cast<unsigned>(in_byte)))),
      code_.resized(code_.shl(which, std::countr_zero(static_cast<unsigned>(width))), type, false)};
}

Value Emitter::load_element(BufferId buffer, Value offset) {
  const mlir::Type type = numbers_.memory_type(dtype(buffer));
  const unsigned alignment = type.getIntOrFloatBitWidth() / 8;
  if (!is_packed(buffer)) {
    const Value stored = b_.create<mlir::LLVM::LoadOp>(type, pointer(buffer, offset), alignment);
    return numbers_.from_memory(dtype(buffer), stored);
  }
  const PlaceInByte place = place_in_byte(buffer, offset);
  const Value byte = b_.create<mlir::LLVM::LoadOp>(type, place.byte, 1);
  return numbers_.from_memory(dtype(buffer), code_.shr(byte, place.shift));
}

unsigned Emitter::alignment(const Place& place) {
  // In memory of a block, a word that begins at a multiple of its elements is loaded at once.
  if (place.is_word && program_.buffers[place.buffer].role == BufferRole::block) {
    const IndexExpr ahead = bounds_.simplified(mod(place.offset, 32 / bits(dtype(place.buffer))));
    if (const std::optional<Dim> none = ahead.as_constant(); none && none->is(0)) return 4;
  }
  return numbers_.memory_type(dtype(place.buffer)).getIntOrFloatBitWidth() / 8;
}

Value Emitter::load_number(const Place& place, Value offset) {
  if (!place.is_word) return load_element(place.buffer, offset);
  return b_.create<mlir::LLVM::LoadOp>(code_.i(32), pointer(place.buffer, offset),
                                       alignment(place));
}

void Emitter::store_element(BufferId buffer, Value offset, Value number) {
  const Value stored = numbers_.to_memory(dtype(buffer), number);
  const unsigned alignment = stored.getType().getIntOrFloatBitWidth() / 8;
  if (!is_packed(buffer)) {
    b_.create<mlir::LLVM::StoreOp>(stored, pointer(buffer, offset), alignment);
    return;
  }
  const PlaceInByte place = place_in_byte(buffer, offset);
  const Value byte = b_.create<mlir::LLVM::LoadOp>(stored.getType(), place.byte, 1);
  const Value mask = code_.integer((1 << bits(dtype(buffer))) - 1, byte);
  const Value others = code_.xor_(code_.shl(mask, place.shift), code_.integer(-1, byte));
  const Value kept = code_.and_(byte, HONE_PLANT(packed_half, others, code_.integer(0, byte)));
  const Value own = code_.shl(code_.and_(stored, mask), place.shift);
  b_.create<mlir::LLVM::StoreOp>(code_.or_(kept, own), place.byte, 1);
}

// ---- Loads --------------------------------------------------------------------------------------

void Emitter::emit(const Load& s) {
  const LoopSet loops = variance_.scalars[s.result];
  if ((loops & open_.lanes_loop()) != 0 && !s.is_word)
    if (std::optional<Grid> transposed = load_transposed(s, loops))
      return define(s.result, *std::move(transposed));
  const LoopSet deciding = variance_.of({}, s.guards) & loops & ~open_.lanes_loop();
  Grid result{loops};
  result.values.resize(open_.points(loops));
  open_.each(deciding, [&](const Trips& decided) {
    // All that one condition decides is behind one branch.
    std::vector<LoadedPoint> points;
    open_.each(loops & ~deciding, [&](const Trips& others) {
      Trips trips = {};
      for (size_t d = 0; d < trips.size(); ++d) trips[d] = decided[d] + others[d];
      Place at_place = place(s.buffer, s.index, s.guards, trips);
      at_place.is_word = s.is_word;
      const Value otherwise = s.otherwise ? at(*s.otherwise, trips, loops) : Value();
      points.push_back({trips, std::move(at_place), otherwise});
    });
    const std::vector<Value> loaded = load_points(points, loops);
    for (size_t i = 0; i < points.size(); ++i)
      result.values[open_.position(loops, points[i].trips)] = loaded[i];
  });
  define(s.result, std::move(result));
}

// Points with one condition.
std::vector<Value> Emitter::load_points(const std::vector<LoadedPoint>& points, LoopSet loops) {
  const bool is_vector = (loops & open_.lanes_loop()) != 0;
  std::vector<Value> otherwise;
  for (const LoadedPoint& point : points) otherwise.push_back(point.otherwise);
  return where(points.front().place.condition, otherwise, [&] {
    std::vector<Value> loaded;
    for (const LoadedPoint& point : points)
      loaded.push_back(is_vector
                           ? load_lanes(point)
                           : load_number(point.place, index(point.place.offset, point.trips)));
    return loaded;
  });
}

Value Emitter::load_lanes(const LoadedPoint& point) {
  const auto& [trips, place, otherwise] = point;
  if (place.stride == 0) return load_once(place, trips, otherwise);
  if (place.is_word) return load_word(place, trips, otherwise);
  if (is_packed(place.buffer))
    return begins_byte(place, trips)
               ? load_from_bytes(place, index(here(place.offset, trips, 0), trips))
               : load_each_lane(place, trips, otherwise);
  if (HONE_PLANT(stride_ignored, place.stride != 1, false))
    return load_scattered(place, trips, otherwise);
  return load_vector(place, index(here(place.offset, trips, 0), trips), otherwise);
}

// For all lanes that a mask lets through. A gather would do, but of pointers that are all the same
// LLVM 19 makes invalid code (it hoists them as one pointer).
Value Emitter::load_once(const Place& place, const Trips& trips, Value otherwise) {
  auto load = [&] {
    return as_vector(load_number(place, index(here(place.offset, trips, 0), trips)));
  };
  if (!place.is_masked()) return load();
  const Value open = mask(place);
  return code_.select(open, where(code_.any(open), otherwise, load), otherwise);
}

// As many lanes as one register has: LLVM 19 would split wider accesses and their masks itself, see
// mask().
int64_t Emitter::masked_lanes(mlir::Type element) const {
  const int64_t bytes = std::max<int64_t>(machine_.vector_bytes, 32);
  const int64_t count = bytes / (element.getIntOrFloatBitWidth() / 8);
  const bool is_split = lanes() > count && std::has_single_bit(static_cast<uint64_t>(lanes()));
  return is_split ? count : lanes();
}

Value Emitter::load_vector(const Place& place, Value first, Value otherwise) {
  const mlir::Type element = numbers_.memory_type(dtype(place));
  const auto type = mlir::VectorType::get({lanes()}, element);
  const unsigned alignment = this->alignment(place);
  const Value from = pointer(place.buffer, first);
  if (!place.is_masked())
    return numbers_.from_memory(dtype(place), b_.create<mlir::LLVM::LoadOp>(type, from, alignment));
  const bool is_same = otherwise.getType() == type;
  const Value nothing = is_same ? otherwise : code_.constant(b_.getIntegerAttr(element, 0), type);
  const int64_t count = masked_lanes(element);
  const auto part_type = mlir::VectorType::get({count}, element);
  llvm::SmallVector<Value> parts;
  for (int64_t lane = 0; lane < lanes(); lane += count) {
    const Value here = b_.create<mlir::LLVM::GEPOp>(
        pointer_type(b_), element, from,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(lane)});
    parts.push_back(b_.create<mlir::LLVM::MaskedLoadOp>(
        part_type, here, mask(place, lane, count), code_.slice(nothing, lane, count), alignment));
  }
  const Value stored = code_.joined(parts);
  const Value number = numbers_.from_memory(dtype(place), stored);
  return is_same ? number : code_.select(mask(place), number, otherwise);
}

// Words that follow each other are a vector.
Value Emitter::load_word(const Place& place, const Trips& trips, Value otherwise) {
  if (place.stride != 32 / bits(dtype(place.buffer)))
    return load_scattered(place, trips, otherwise);
  return load_vector(place, index(here(place.offset, trips, 0), trips), otherwise);
}

Value Emitter::pointers(const Place& place, const Trips& trips) {
  const mlir::Type element = numbers_.memory_type(dtype(place.buffer));
  const mlir::Type type = mlir::LLVM::getFixedVectorType(pointer_type(b_), lanes());
  auto from = [&](Value base, Value offsets) {
    return b_.create<mlir::LLVM::GEPOp>(type, element, base, ValueRange{offsets});
  };
  if (!place.stride)
    return from(around_.buffers[place.buffer], as_vector(index(place.offset, trips)));
  // Gathers take offsets of 32 bits in half the space.
  const bool is_near = *place.stride * lanes() < INT32_MAX && *place.stride * lanes() > INT32_MIN;
  const Value lane = code_.iota(code_.i(is_near ? 32 : 64), lanes());
  const Value offsets = code_.mul(lane, code_.integer(*place.stride, lane));
  return from(pointer(place.buffer, index(here(place.offset, trips, 0), trips)), offsets);
}

std::optional<llvm::SmallVector<int64_t>> Emitter::near_lanes(const Place& place,
                                                              const Trips& trips) {
  llvm::SmallVector<int64_t> distances;
  const IndexExpr first = bounds_.simplified(here(place.offset, trips, 0));
  if (depends_on_lanes(first)) return std::nullopt;  // by data
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const IndexExpr offset = bounds_.simplified(here(place.offset, trips, lane));
    const std::optional<Dim> distance = (offset - first).as_constant();
    if (!distance || !distance->is_static()) return std::nullopt;
    distances.push_back(distance->value());
  }
  const auto [low, high] = std::ranges::minmax_element(distances);
  if (*high - *low >= kNearVectors * lanes()) return std::nullopt;
  return distances;
}

// Every element between the first and the last lies inside of the buffer as they do. Beyond them
// nothing is read.
Value Emitter::load_near(const Place& place, const Trips& trips,
                         llvm::ArrayRef<int64_t> distances) {
  const mlir::Type element = numbers_.memory_type(dtype(place.buffer));
  const int64_t low = *std::ranges::min_element(distances);
  const int64_t count = *std::ranges::max_element(distances) - low + 1;
  const IndexExpr first = bounds_.simplified(here(place.offset, trips, 0)) + IndexExpr(low);
  const Value from = index(first, trips);
  Value result = {};
  for (int64_t begin = 0; begin < count; begin += lanes()) {
    const Value part = load_front(place.buffer, code_.add(from, code_.integer(begin, from)),
                                  std::min(count - begin, lanes()));
    // Lanes that have been found stay, those of this vector are taken from it.
    llvm::SmallVector<int32_t> from_lane;
    for (int64_t lane = 0; lane < lanes(); ++lane) {
      const int64_t at = distances[static_cast<size_t>(lane)] - low - begin;
      const bool is_here = at >= 0 && at < lanes();
      from_lane.push_back(static_cast<int32_t>(!result   ? std::clamp<int64_t>(at, 0, lanes() - 1)
                                               : is_here ? lanes() + at
                                                         : lane));
    }
    result = b_.create<mlir::LLVM::ShuffleVectorOp>(result ? result : part, part, from_lane);
  }
  const auto type = mlir::VectorType::get({lanes()}, element);
  HONE_CHECK(result.getType() == type, "a shuffle changed the type");
  return numbers_.from_memory(dtype(place.buffer), result);
}

// Loads `count` elements from an offset on into the first lanes of a vector.
Value Emitter::load_front(BufferId buffer, Value offset, int64_t count) {
  const mlir::Type element = numbers_.memory_type(dtype(buffer));
  const auto type = mlir::VectorType::get({lanes()}, element);
  const unsigned alignment = element.getIntOrFloatBitWidth() / 8;
  const Value from = pointer(buffer, offset);
  if (count == lanes()) return b_.create<mlir::LLVM::LoadOp>(type, from, alignment);
  llvm::SmallVector<Value> parts;
  const int64_t at_once = masked_lanes(element);
  const auto part_type = mlir::VectorType::get({at_once}, element);
  for (int64_t lane = 0; lane < lanes(); lane += at_once) {
    llvm::SmallVector<bool> is_there;
    for (int64_t i = lane; i < lane + at_once; ++i) is_there.push_back(i < count);
    const Value mask = b_.create<mlir::arith::ConstantOp>(mlir::DenseElementsAttr::get(
        mlir::VectorType::get({at_once}, b_.getI1Type()), llvm::ArrayRef<bool>(is_there)));
    const Value here = b_.create<mlir::LLVM::GEPOp>(
        pointer_type(b_), element, from,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(lane)});
    const Value nothing = code_.constant(b_.getZeroAttr(element), part_type);
    parts.push_back(b_.create<mlir::LLVM::MaskedLoadOp>(part_type, here, mask, nothing, alignment));
  }
  return code_.joined(parts);
}

Value Emitter::load_scattered(const Place& place, const Trips& trips, Value otherwise) {
  if (!place.is_masked() && !place.is_word)
    if (const auto distances = near_lanes(place, trips)) return load_near(place, trips, *distances);
  const mlir::Type element = numbers_.memory_type(dtype(place));
  const auto type = mlir::VectorType::get({lanes()}, element);
  const unsigned alignment = this->alignment(place);
  const Value open = mask(place);
  const Value nothing = b_.create<mlir::LLVM::PoisonOp>(type);
  const Value stored = b_.create<mlir::LLVM::masked_gather>(type, pointers(place, trips), open,
                                                            ValueRange{nothing}, alignment);
  const Value number = numbers_.from_memory(dtype(place), stored);
  return place.is_masked() ? code_.select(open, number, otherwise) : number;
}

// True if the lanes are all elements of whole bytes.
bool Emitter::begins_byte(const Place& place, const Trips& trips) {
  const int64_t in_byte = 8 / bits(dtype(place.buffer));
  if (place.stride != 1 || place.is_masked() || lanes() % in_byte != 0) return false;
  const std::optional<Dim> rest =
      bounds_.simplified(mod(here(place.offset, trips, 0), in_byte)).as_constant();
  return rest && rest->is(0);
}

// One vector of the bytes for each place in a byte, shifted down to the lowest bits. Two of them
// are put together in turns: 0 and 2, 1 and 3, then the results.
Value Emitter::load_from_bytes(const Place& place, Value first) {
  const int width = bits(dtype(place.buffer)), in_byte = 8 / width;
  const mlir::Type element = numbers_.memory_type(dtype(place.buffer));
  const Value byte = code_.shr(first, std::countr_zero(static_cast<unsigned>(in_byte)));
  const auto type = mlir::VectorType::get({lanes() / in_byte}, element);
  const Value bytes = b_.create<mlir::LLVM::LoadOp>(type, pointer(place.buffer, byte), 1);
  std::vector<Value> parts;
  for (int i = 0; i < in_byte; ++i)
    parts.push_back(code_.shr(bytes, HONE_PLANT(byte_order, i, in_byte - 1 - i) * width));
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    const size_t half = parts.size() / 2;
    const auto count =
        static_cast<int32_t>(mlir::cast<mlir::VectorType>(parts[0].getType()).getNumElements());
    llvm::SmallVector<int32_t> in_turns;
    for (int32_t i = 0; i < count; ++i) in_turns.append({i, count + i});
    for (size_t i = 0; i < half; ++i)
      parts[i] = b_.create<mlir::LLVM::ShuffleVectorOp>(parts[i], parts[half + i], in_turns);
  }
  return numbers_.from_memory(dtype(place.buffer), parts[0]);
}

// For elements that are smaller than a byte.
Value Emitter::load_each_lane(const Place& place, const Trips& trips, Value otherwise) {
  // Offsets that are regular are numbers plus constants; others are taken from a vector.
  const Value offsets = place.stride ? Value() : index(place.offset, trips);
  Value result = otherwise;
  if (!result) {
    const mlir::Type element = numbers_.register_type(dtype(place.buffer));
    const auto type = mlir::VectorType::get({lanes()}, element);
    result = b_.create<mlir::LLVM::PoisonOp>(type);
  }
  const Value open = mask(place);
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const Value offset =
        place.stride ? index(here(place.offset, trips, lane), trips) : code_.lane(offsets, lane);
    auto load = [&] { return load_element(place.buffer, offset); };
    const Value number = place.is_masked()
                             ? where(code_.lane(open, lane), code_.lane(otherwise, lane), load)
                             : load();
    result = code_.with_lane(result, number, lane);
  }
  return result;
}

// ---- Stores -------------------------------------------------------------------------------------

void Emitter::emit(const Store& s) {
  const LoopSet loops = variance_.of(s.index, s.guards) | variance_.scalars[s.value];
  const bool is_vector = (loops & open_.lanes_loop()) != 0;
  if (is_vector && store_transposed(s, loops)) return;
  open_.each(loops, [&](const Trips& trips) {
    const Place at_place = place(s.buffer, s.index, s.guards, trips);
    const Value value = at(s.value, trips, loops);
    where(at_place.condition, [&] {
      if (!is_vector)
        store_element(s.buffer, index(at_place.offset, trips), value);
      else if (is_packed(s.buffer) || at_place.stride == 0)
        store_each_lane(at_place, trips, value);
      else if (at_place.stride == 1)
        store_vector(at_place, index(here(at_place.offset, trips, 0), trips), value);
      else
        store_scattered(at_place, trips, value);
    });
  });
}

void Emitter::store_vector(const Place& place, Value first, Value value) {
  const Value stored = numbers_.to_memory(dtype(place.buffer), value);
  const unsigned alignment = Instructions::element(stored).getIntOrFloatBitWidth() / 8;
  const Value to = pointer(place.buffer, first);
  if (!place.is_masked()) {
    b_.create<mlir::LLVM::StoreOp>(stored, to, alignment);
    return;
  }
  const mlir::Type element = Instructions::element(stored);
  const int64_t count = masked_lanes(element);
  for (int64_t lane = 0; lane < lanes(); lane += count) {
    const Value here = b_.create<mlir::LLVM::GEPOp>(
        pointer_type(b_), element, to,
        llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(lane)});
    b_.create<mlir::LLVM::MaskedStoreOp>(code_.slice(stored, lane, count), here,
                                         mask(place, lane, count), alignment);
  }
}

void Emitter::store_scattered(const Place& place, const Trips& trips, Value value) {
  const Value stored = numbers_.to_memory(dtype(place.buffer), value);
  const unsigned alignment = Instructions::element(stored).getIntOrFloatBitWidth() / 8;
  const Value open = mask(place);
  b_.create<mlir::LLVM::masked_scatter>(stored, pointers(place, trips), open, alignment);
}

void Emitter::store_each_lane(const Place& place, const Trips& trips, Value value) {
  const Value offsets = place.stride ? Value() : as_vector(index(place.offset, trips));
  const Value open = mask(place);
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const Value offset =
        place.stride ? index(here(place.offset, trips, lane), trips) : code_.lane(offsets, lane);
    where(place.is_masked() ? code_.lane(open, lane) : Value(),
          [&] { store_element(place.buffer, offset, code_.lane(value, lane)); });
  }
}

}  // namespace hone::code
