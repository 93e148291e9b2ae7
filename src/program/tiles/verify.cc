#include <algorithm>

#include "base/text.h"
#include "ir/op_def.h"
#include "program/tiles/bounds.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "program/tiles/tiles.h"
#include "target/gpu.h"

namespace hone {

namespace {

using namespace tile;

class Verifier {
 public:
  explicit Verifier(const TileProgram& program)
      : program_(program),
        bounds_(program),
        defined_(program.scalars.size()),
        in_scope_(program.scalars.size()),
        index_defined_(program.indices.size()),
        index_in_scope_(program.indices.size()),
        is_chosen_(program.indices.size()),
        use_(program.buffers.size(), Use::none) {}

  Status run() {
    HONE_TRY(buffers());
    for (const TileIndex& index : program_.indices)
      if (!provably_le(index.low, index.high))
        return bad_input("index {} has the empty range {} to {}", index.name, index.low.to_string(),
                         index.high.to_string());
    for (const Loop& phase : program_.phases) {
      if (!phase.carried.empty()) return bad_input("a phase carries values that nothing reads");
      block_threads_ = are_numbers(phase.body) ? block_threads(phase, program_) : 0;
      HONE_TRY(check(phase, Place::top));
    }
    return {};
  }

 private:
  // The place of a statement: at the top of the program, right below a blocks loop, between the
  // threads loops of a block, right below a threads loop, or deeper.
  enum class Place : uint8_t { top, blocks, block, threads, inside };

  // Inputs, results, the others.
  static int place(BufferRole role) {
    if (role == BufferRole::input) return 0;
    return is_result(role) ? 1 : 2;
  }

  Status buffers() {
    std::vector<std::string_view> names;
    BufferRole last = BufferRole::input;
    for (const TileBuffer& buffer : program_.buffers) {
      if (!buffer.type) return bad_input("buffer @{} has no type", buffer.name);
      if (std::ranges::find(names, buffer.name) != names.end())
        return bad_input("two buffers are called @{}", buffer.name);
      names.push_back(buffer.name);
      const bool is_on_chip = buffer.role == BufferRole::block || buffer.role == BufferRole::own;
      if (is_on_chip && !buffer.type.is_static())
        return bad_input("@{}, {}, has no fixed size", buffer.name, buffer.type.to_string());
      if (buffer.is_swizzled) HONE_TRY(check_swizzled(buffer));
      if (place(buffer.role) < place(last))
        return bad_input("buffer @{} comes after later ones", buffer.name);
      last = buffer.role;
    }
    return donors();
  }

  static Status check_swizzled(const TileBuffer& buffer) {
    const Type type = buffer.type;
    const int rank = type.rank();
    if (buffer.role == BufferRole::block && rank >= 2 && bits(type.dtype()) >= 8 &&
        type.dim(rank - 1).is(swizzled_row(type.dtype())) &&
        type.dim(rank - 2).divisible_by(kSwizzledRows))
      return {};
    return bad_input(
        "@{}, {}, is swizzled, but not memory of a block in rows of {} bytes, {} "
        "after {}",
        buffer.name, type.to_string(), kSwizzledRowBytes, kSwizzledRows, kSwizzledRows);
  }

  Status donors() {
    output_in_.resize(program_.buffers.size());
    for (BufferId id = 0; id < program_.buffers.size(); ++id) {
      const TileBuffer& buffer = program_.buffers[id];
      if (!buffer.donor) continue;
      if (buffer.role != BufferRole::output)
        return bad_input("@{} lies in other memory, but is not an output", buffer.name);
      if (*buffer.donor >= program_.buffers.size() ||
          program_.buffers[*buffer.donor].role != BufferRole::input)
        return bad_input("output @{} lies in memory that is not an input's", buffer.name);
      const TileBuffer& donor = program_.buffers[*buffer.donor];
      if (donor.type != buffer.type)
        return bad_input("output @{} is {}, but the input that it lies in is {}", buffer.name,
                         buffer.type.to_string(), donor.type.to_string());
      if (output_in_[*buffer.donor]) return bad_input("two outputs lie in input @{}", donor.name);
      output_in_[*buffer.donor] = id;
    }
    return {};
  }

  Status body(const Block& statements, Place place) {
    const size_t stores = stored_.size();
    ++depth_;
    for (const Statement& statement : statements) {
      // So that nested threads loops are one range of trips, to be divided as one.
      if (place == Place::threads && is_threads_loop(statement) && statements.size() > 1)
        return bad_input("a threads loop is not alone in another one");
      HONE_TRY(check_block_level(statement, statements, place));
      HONE_TRY(std::visit([&](const auto& s) { return check(s, place); }, statement.kind));
    }
    --depth_;
    stored_.erase(stored_.begin() + static_cast<int64_t>(stores), stored_.end());
    const auto left = std::ranges::find_if(
        to_be_stored_, [&](const Element& element) { return element.depth > depth_; });
    if (left == to_be_stored_.end()) return {};
    const TileBuffer& output = program_.buffers[left->output];
    return bad_input(
        "@{} is loaded, but its element is not stored to @{} then, which may lie there",
        program_.buffers[*output.donor].name, output.name);
  }
  template <class... Kinds>
  static bool is_any_of(const Statement& statement) {
    return (std::holds_alternative<Kinds>(statement.kind) || ...);
  }
  // Between the threads loops of a block stands what all of its threads do together.
  static Status check_block_level(const Statement& statement, const Block& all, Place place) {
    const bool is_of_block = is_any_of<Barrier, WarpCombine, CopyGroup, CopyWait, WarpProduct,
                                       MbarrierWait, ProxyFence, GroupProduct>(statement);
    const bool is_block_level = place == Place::blocks || place == Place::block;
    if (!is_block_level && is_of_block)
      return bad_input(
          "a barrier, a combination or the like is not between the threads loops of a block");
    if (!is_block_level || is_of_block) return {};
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr ||
        (loop->exec != Exec::threads && loop->exec != Exec::loop && loop->exec != Exec::blocks))
      return bad_input(
          "in a block, outside of its threads loops, is more than loops and what all threads do");
    if (loop->exec == Exec::blocks && (place != Place::blocks || all.size() > 1))
      return bad_input("a blocks loop is not alone in another one");
    return {};
  }

  // Definitions of the body are not seen behind it.
  void leave(const Block& statements) {
    for (const Statement& statement : statements)
      std::visit([&](const auto& s) { leave_scope(s); }, statement.kind);
  }
  template <class S>
  void leave_scope(const S& s) {
    if constexpr (requires { s.result; }) in_scope_[s.result] = false;
  }
  void leave_scope(const Choose& s) { index_in_scope_[static_cast<size_t>(s.index)] = false; }
  void leave_scope(const Loop& s) {
    for (const Carry& carry : s.carried) in_scope_[carry.result] = false;
  }

  static bool is_threads_loop(const Statement& statement) {
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    return loop != nullptr && loop->exec == Exec::threads;
  }

  // ---- Statements ------------------------------------------------------------------------------

  Status check(const Number& s, Place /*place*/) {
    HONE_TRY(define(s.result));
    if (is_real(type(s.result)) != std::holds_alternative<double>(s.value))
      return bad_input("a number of {} is given as another kind", name(type(s.result)));
    return {};
  }

  Status check(const Position& s, Place /*place*/) {
    HONE_TRY(known(s.value));
    HONE_TRY(define(s.result));
    if (!is_integer(type(s.result)))
      return bad_input("a position cannot be {}", name(type(s.result)));
    return {};
  }

  Status check(const Compute& s, Place /*place*/) {
    std::vector<Type> types;
    for (Scalar operand : s.operands) {
      HONE_TRY(use(operand));
      types.push_back(Type::scalar(type(operand)));
    }
    if (!is_elementwise(s.op.opcode()))
      return bad_input("{} does not compute one number from others", s.op.name());
    const std::vector<Type> results = HONE_TRY(infer({s.op, types}));
    HONE_TRY(define(s.result));
    if (results[0] != Type::scalar(type(s.result)))
      return bad_input("{} gives {}, not {}", s.op.name(), results[0].to_string(),
                       name(type(s.result)));
    return {};
  }

  Status check(const Fma& s, Place /*place*/) {
    for (Scalar operand : {s.a, s.b, s.c}) HONE_TRY(use(operand));
    HONE_TRY(define(s.result));
    for (Scalar operand : {s.a, s.b, s.c})
      if (type(operand) != type(s.result) || !kReal.contains(type(operand)))
        return bad_input("fma takes three operands of one real type");
    return {};
  }

  Status check(const Quad& s, Place /*place*/) { return sum_of_words("quad", s, DType::i32); }
  Status check(const Pair& s, Place /*place*/) { return sum_of_words("pair", s, DType::f32); }
  template <class Sum>
  Status sum_of_words(std::string_view what, const Sum& s, DType sum) {
    for (Scalar operand : {s.a, s.b, s.c}) HONE_TRY(use(operand));
    HONE_TRY(define(s.result));
    const auto is = [&](Scalar scalar, DType dtype) { return type(scalar) == dtype; };
    if (is(s.a, DType::u32) && is(s.b, DType::u32) && is(s.c, sum) && is(s.result, sum)) return {};
    return bad_input("{} takes two words of u32 and adds to {}", what, name(sum));
  }

  Status check(const Choose& s, Place /*place*/) {
    HONE_TRY(define_index(s.index));
    HONE_TRY(use(s.value));
    if (!is_integer(type(s.value)))
      return bad_input("an index is made of an integer, not of {}", name(type(s.value)));
    is_chosen_[static_cast<size_t>(s.index)] = true;
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    if (unreachable_ == 0 && !provably_lt(index.low, index.high))
      return bad_input("index {} may have no value", index.name);
    return {};
  }

  Status check(const Load& s, Place /*place*/) {
    HONE_TRY(access(s.buffer, s.index, s.guards));
    if (s.otherwise.has_value() == s.guards.empty())
      return bad_input("a load has guards and `else`, or neither");
    if (s.otherwise) {
      HONE_TRY(use(*s.otherwise));
      if (type(*s.otherwise) != type(s.result))
        return bad_input("a load of {} gives {} otherwise", name(type(s.result)),
                         name(type(*s.otherwise)));
    }
    HONE_TRY(define(s.result));
    if (s.is_word) return check_word(s);
    HONE_TRY(from_donor(s));
    return same_type(s.buffer, s.result);
  }

  // The last of its elements lies inside, too.
  Status check_word(const Load& s) {
    const TileBuffer& buffer = program_.buffers[s.buffer];
    const DType element = buffer.type.dtype();
    const bool has_words = element == DType::u8 || element == DType::i8 || element == DType::bf16 ||
                           element == DType::f16;
    if (!has_words || buffer.type.rank() == 0)
      return bad_input("@{}, {}, has no words", buffer.name, buffer.type.to_string());
    if (output_in_[s.buffer])
      return bad_input("a word is loaded from @{}, which an output may overwrite", buffer.name);
    if (type(s.result) != DType::u32) return bad_input("a word cannot be {}", name(type(s.result)));
    if (buffer.is_swizzled)
      HONE_TRY(check_begins_piece("a word", buffer, s.index, 32 / bits(element)));
    std::vector<IndexExpr> last = s.index;
    last.back() = last.back() + IndexExpr(32 / bits(element) - 1);
    return access(s.buffer, last, s.guards);
  }

  // A load of a donor: the element is stored to the output after it, and not before. This does not
  // prove that other points leave that element alone; interpret() finds it.
  Status from_donor(const Load& s) {
    if (!output_in_[s.buffer]) return {};
    const Element element = {*output_in_[s.buffer], s.index, depth_};
    if (std::ranges::any_of(stored_, [&](const Element& e) { return e.is(element); }))
      return bad_input("@{} is loaded when @{}, which may lie there, has changed",
                       program_.buffers[s.buffer].name, program_.buffers[element.output].name);
    to_be_stored_.push_back(element);
    return {};
  }

  Status check(const Store& s, Place /*place*/) {
    HONE_TRY(use(s.value));
    HONE_TRY(access(s.buffer, s.index, s.guards));
    if (program_.buffers[s.buffer].role == BufferRole::input)
      return bad_input("@{} is an input, but something is stored to it",
                       program_.buffers[s.buffer].name);
    if (program_.buffers[s.buffer].donor) {
      stored_.push_back({s.buffer, s.index, depth_});
      std::erase_if(to_be_stored_, [&](const Element& e) { return e.is(stored_.back()); });
    }
    return same_type(s.buffer, s.value);
  }

  Status check(const Barrier& /*s*/, Place /*place*/) { return {}; }

  Status check(const WarpCombine& s, Place /*place*/) {
    HONE_TRY(access(s.buffer, s.index, {}));
    const TileBuffer& buffer = program_.buffers[s.buffer];
    if (buffer.role != BufferRole::own)
      return bad_input("@{} is combined, but threads have no elements of their own there",
                       buffer.name);
    if (op_def(s.combine).traits.identity == Identity::none)
      return bad_input("{} does not combine the elements of @{}", name(s.combine), buffer.name);
    const Type element = Type::scalar(buffer.type.dtype());
    const std::vector<Type> both = {element, element};
    const std::vector<Type> results = HONE_TRY(infer({Op::get(s.combine), both}));
    if (results[0] != element)
      return bad_input("{} of @{} gives {}", name(s.combine), buffer.name, results[0].to_string());
    return {};
  }

  Status check(const CopyGroup& /*s*/, Place /*place*/) { return {}; }
  Status check(const CopyWait& s, Place /*place*/) {
    if (s.open >= 0 && s.open <= kMostOpenGroups) return {};
    return bad_input("{} groups of copies are left open, not 0 to {}", s.open, kMostOpenGroups);
  }

  // The last of its elements lies inside, too.
  Status check(const AsyncCopy& s, Place /*place*/) {
    if (!in_block_) return bad_input("a copy is not in a block");
    HONE_TRY(access(s.to, s.to_index, {}));
    HONE_TRY(access(s.from, s.from_index, s.guards));
    const TileBuffer &to = program_.buffers[s.to], &from = program_.buffers[s.from];
    if (to.role != BufferRole::block || from.role != BufferRole::input || output_in_[s.from])
      return bad_input("a copy is from @{} to @{}, not from an input to memory of a block",
                       from.name, to.name);
    if (to.type.dtype() != from.type.dtype())
      return bad_input("a copy is from @{}, {}, to @{}, {}", from.name, from.type.to_string(),
                       to.name, to.type.to_string());
    const int64_t copied = s.count * bits(to.type.dtype());
    if (copied != 32 && copied != 64 && copied != 128)
      return bad_input("a copy takes {} bits, not 4, 8 or 16 bytes", copied);
    if (s.count == 1) return {};
    for (const auto& [buffer, index] : {std::pair(&to, s.to_index), std::pair(&from, s.from_index)})
      HONE_TRY(check_begins_piece("a copy", *buffer, index, s.count));
    return {};
  }

  // Elements in rows of whole pieces, the first of a piece: so all of the piece lies inside.
  Status check_begins_piece(std::string_view what, const TileBuffer& buffer,
                            const std::vector<IndexExpr>& index, int64_t count) const {
    if (!index.empty() && buffer.type.dim(buffer.type.rank() - 1).divisible_by(count) &&
        is_multiple(index.back(), count))
      return {};
    return bad_input("{} of {} elements of @{} may begin between two pieces", what, count,
                     buffer.name);
  }

  bool is_multiple(const IndexExpr& expr, int64_t of) const {
    const std::optional<Dim> rest = bounds_.simplified(mod(expr, of)).as_constant();
    return rest && rest->is(0);
  }

  // All threads of a warp come to it, and each row that one of them names lies inside.
  Status check(const MatrixLoad& s, Place /*place*/) {
    if (!has_whole_warps_)
      return bad_input("matrices are loaded where a warp may lack some of its threads");
    if (s.count != 1 && s.count != 2 && s.count != 4)
      return bad_input("a warp loads {} matrices, not 1, 2 or 4", s.count);
    HONE_TRY(access(s.from, s.from_index, {}));
    for (const IndexExpr& expr : s.from_index) HONE_TRY(is_known_to_warp(expr));
    const TileBuffer& from = program_.buffers[s.from];
    const DType element = from.type.dtype();
    if (from.role != BufferRole::block || (element != DType::bf16 && element != DType::f16))
      return bad_input(
          "matrices are loaded from @{}, {}, not from bf16 or f16 in memory of a block", from.name,
          from.type.to_string());
    HONE_TRY(check_begins_piece("a row", from, s.from_index, kMatrixRowBytes * 8 / bits(element)));
    return check_matrix_numbers(s);
  }

  // A thread reads rows that others name: their index is what its own would be with their number.
  Status is_known_to_warp(const IndexExpr& expr) const {
    for (size_t i = 0; i < is_chosen_.size(); ++i)
      if (is_chosen_[i] && expr.mentions(static_cast<Index>(i)))
        return bad_input(
            "a row of a matrix depends on index {}, which each thread makes of a number",
            program_.indices[i].name);
    return {};
  }

  // Numbers of several matrices may be those at several indices.
  Status check_matrix_numbers(const MatrixLoad& s) {
    std::vector<IndexExpr> first = s.to_index;
    first.push_back(0);
    HONE_TRY(access(s.to, first, {}));
    const TileBuffer& to = program_.buffers[s.to];
    const int last = to.type.rank() - 1;
    const int64_t numbers = to.type.dim(last).is_static() ? to.type.dim(last).value() : 0;
    const bool fits = to.role == BufferRole::own && to.type.dtype() == DType::u32 && numbers > 0 &&
                      s.count % numbers == 0;
    if (fits && s.count == numbers) return {};
    if (fits && last > 0 && to.type.dim(last - 1).divisible_by(s.count / numbers) &&
        is_multiple(s.to_index.back(), s.count / numbers))
      return {};
    return bad_input("@{}, {}, does not have the words of {} matrices of each thread", to.name,
                     to.type.to_string(), s.count);
  }

  Status check(const WarpProduct& s, Place /*place*/) {
    HONE_TRY(check_factors(s.sums, s.sums_index, DType::f32, 4));
    HONE_TRY(check_factors(s.lhs, s.lhs_index, DType::u32, 4));
    HONE_TRY(check_factors(s.rhs, s.rhs_index, DType::u32, 2));
    if (s.numbers == DType::bf16 || s.numbers == DType::f16 || s.numbers == DType::f32) return {};
    return bad_input("a warp multiplies bf16, f16 or f32, not {}", name(s.numbers));
  }

  Status check_factors(BufferId id, std::vector<IndexExpr> index, DType dtype, int64_t numbers) {
    index.push_back(0);
    HONE_TRY(access(id, index, {}));
    const TileBuffer& buffer = program_.buffers[id];
    if (buffer.role == BufferRole::own && buffer.type.dtype() == dtype &&
        buffer.type.dim(buffer.type.rank() - 1).is(numbers))
      return {};
    return bad_input("@{}, {}, does not have {} {} of each thread for a product", buffer.name,
                     buffer.type.to_string(), numbers, name(dtype));
  }

  // ---- Copies and products on Hopper -----------------------------------------------------------

  Status check_one_thread(std::string_view what) const {
    if (is_one_thread_) return {};
    return bad_input("{} is not of one thread: in a threads loop of one trip, in a block", what);
  }

  Status check_mbarrier(BufferId id, const std::vector<IndexExpr>& index) {
    HONE_TRY(access(id, index, {}, Use::mbarriers));
    const TileBuffer& buffer = program_.buffers[id];
    if (buffer.role == BufferRole::block && buffer.type.dtype() == DType::u64) return {};
    return bad_input("@{}, {}, is not the memory of a block of u64 that mbarriers have",
                     buffer.name, buffer.type.to_string());
  }

  Status check(const MbarrierInit& s, Place /*place*/) {
    HONE_TRY(check_one_thread("an mbarrier's beginning"));
    HONE_TRY(check_mbarrier(s.buffer, s.index));
    if (s.arrivals >= 1 && s.arrivals <= kMostArrivals) return {};
    return bad_input("a phase has {} arrivals, not 1 to {}", s.arrivals, kMostArrivals);
  }

  Status check(const MbarrierExpect& s, Place /*place*/) {
    HONE_TRY(check_one_thread("an arrival"));
    HONE_TRY(check_mbarrier(s.buffer, s.index));
    if (s.bytes >= 0 && s.bytes <= kMostExpectedBytes) return {};
    return bad_input("{} bytes are expected, not 0 to {}", s.bytes, kMostExpectedBytes);
  }

  Status check(const MbarrierWait& s, Place /*place*/) {
    HONE_TRY(check_mbarrier(s.buffer, s.index));
    HONE_TRY(known(s.parity));
    const DimRange parity = bounds_.of(s.parity);
    if (unreachable_ > 0 || (provably_le(0, parity.low) && provably_le(parity.high, 1))) return {};
    return bad_input("the parity of a phase of @{} may not be 0 or 1",
                     program_.buffers[s.buffer].name);
  }

  Status check(const TensorCopy& s, Place /*place*/) {
    HONE_TRY(check_one_thread("a copy of a box"));
    HONE_TRY(check_rows("a box", s.to, s.to_index, s.rows));
    HONE_TRY(check_mbarrier(s.barrier, s.barrier_index));
    if (s.from >= program_.buffers.size()) return bad_input("there is no buffer {}", s.from);
    const TileBuffer &to = program_.buffers[s.to], &from = program_.buffers[s.from];
    if (from.role != BufferRole::input || output_in_[s.from])
      return bad_input("a box is copied from @{}, which is not only an input", from.name);
    const DType dtype = from.type.dtype();
    if (to.type.dtype() != dtype ||
        (dtype != DType::bf16 && dtype != DType::f16 && dtype != DType::f32))
      return bad_input("a box is copied from @{}, {}, to @{}, {}: not bf16, f16 or f32 of both",
                       from.name, from.type.to_string(), to.name, to.type.to_string());
    if (s.rows > kMostBoxRows)
      return bad_input("a box has {} rows, more than {}", s.rows, kMostBoxRows);
    return check_box(s, from);
  }

  // The input is one that boxes are copied from. Where the box lies is a number of 32 bits.
  Status check_box(const TensorCopy& s, const TileBuffer& from) const {
    constexpr int64_t kRowMultiple = 128, kMostPlaces = int64_t{1} << 31;
    const int rank = from.type.rank();
    if (rank < 2 || rank > kMostBoxDims || s.axis < 0 || s.axis >= rank - 1 ||
        !from.type.is_static() ||
        from.type.dim(rank - 1).value() * bits(from.type.dtype()) % kRowMultiple != 0)
      return bad_input(
          "a box along dim {} of @{}, {}: not one of up to {} dims of fixed size, "
          "whose rows are multiples of 16 bytes",
          s.axis, from.name, from.type.to_string(), kMostBoxDims);
    if (static_cast<int>(s.from_index.size()) != rank)
      return bad_input("@{} has rank {}, but {} indices", from.name, rank, s.from_index.size());
    for (const IndexExpr& expr : s.from_index) {
      HONE_TRY(known(expr));
      const DimRange range = bounds_.of(expr);
      if (unreachable_ == 0 &&
          (!provably_le(-kMostPlaces, range.low) || !provably_lt(range.high, kMostPlaces)))
        return bad_input("a box of @{} may lie too far outside", from.name);
    }
    return {};
  }

  // These rows of a swizzled buffer, from a multiple of 8 on, lie inside.
  Status check_rows(std::string_view what, BufferId id, std::vector<IndexExpr> index,
                    int64_t rows) {
    index.push_back(0);
    HONE_TRY(access(id, index, {}));
    const TileBuffer& buffer = program_.buffers[id];
    if (!buffer.is_swizzled)
      return bad_input("{} has rows of @{}, which is not swizzled", what, buffer.name);
    IndexExpr& row = index[index.size() - 2];
    if (rows < 1 || rows % kSwizzledRows != 0 || !is_multiple(row, kSwizzledRows))
      return bad_input("{} has {} rows of @{}, or begins at one: not multiples of {}", what, rows,
                       buffer.name, kSwizzledRows);
    row = row + IndexExpr(rows - 1);
    return access(id, index, {});
  }

  Status check(const ProxyFence& /*s*/, Place /*place*/) { return {}; }

  Status check(const GroupProduct& s, Place /*place*/) {
    if (block_threads_ == 0 || block_threads_ % kGroupThreads != 0)
      return bad_input("a block has {} threads, which are no whole warpgroups of {}",
                       block_threads_, kGroupThreads);
    if (s.numbers != DType::bf16 && s.numbers != DType::f16)
      return bad_input("a warpgroup multiplies bf16 or f16, not {}", name(s.numbers));
    if (s.columns < 8 || s.columns > kMostGroupColumns)
      return bad_input("a warpgroup multiplies {} columns, not 8 to {}", s.columns,
                       kMostGroupColumns);
    if (s.rhs_across && s.columns % kGroupRows != 0)
      return bad_input("{} columns lie across, not a multiple of {}", s.columns, kGroupRows);
    HONE_TRY(
        check_rows("a product", s.lhs, s.lhs_index, block_threads_ / kGroupThreads * kGroupRows));
    HONE_TRY(check_rows("a product", s.rhs, s.rhs_index, s.columns));
    for (BufferId id : {s.lhs, s.rhs})
      if (program_.buffers[id].type.dtype() != s.numbers)
        return bad_input("a product of {} has rows of @{}, {}", name(s.numbers),
                         program_.buffers[id].name, program_.buffers[id].type.to_string());
    std::vector<IndexExpr> sums_index = s.sums_index;
    sums_index.push_back(0);
    HONE_TRY(check_factors(s.sums, sums_index, DType::f32, 4));
    const Type sums = program_.buffers[s.sums].type;
    if (sums.dim(sums.rank() - 2).is(s.columns / 8)) return {};
    return bad_input("@{}, {}, does not have the sums of {} columns", program_.buffers[s.sums].name,
                     sums.to_string(), s.columns);
  }

  // Sizes agree, and whole blocks lie inside.
  Status check(const Product& s, Place /*place*/) {
    if (lockstep_ > 0) return bad_input("a product is inside of an unroll or lanes loop");
    const std::pair<BufferId, const IndexExpr*> operands[] = {
        {s.sums, &s.sums_block}, {s.lhs, &s.lhs_block}, {s.rhs, &s.rhs_block}};
    constexpr int kRanks[] = {2, 5, 4};
    bool are_quads = false;
    for (size_t i = 0; i < 3; ++i) {
      const auto& [id, block] = operands[i];
      if (id >= program_.buffers.size()) return bad_input("there is no buffer {}", id);
      const TileBuffer& buffer = program_.buffers[id];
      const DType dtype = buffer.type.dtype();
      const bool fits = i == 0 ? dtype == DType::f32 || dtype == DType::i32
                               : dtype == DType::u32 || (are_quads && dtype == DType::i32);
      if (buffer.role != BufferRole::scratch || !fits || buffer.type.rank() != kRanks[i] ||
          !buffer.type.is_static())
        return bad_input("@{}, {}, is not the scratch of rank {} that a product needs", buffer.name,
                         buffer.type.to_string(), kRanks[i]);
      if (i == 0) are_quads = dtype == DType::i32;
      std::vector<IndexExpr> index(static_cast<size_t>(kRanks[i]), 0);
      index[0] = *block;
      HONE_TRY(access(id, index, {}));
    }
    const auto size = [&](BufferId id, int dim) {
      return program_.buffers[id].type.dim(dim).value();
    };
    const int64_t rows = size(s.lhs, 3), columns = size(s.rhs, 3);
    const bool is_tile = rows >= 1 && rows <= 32 && (columns == 16 || columns == 32);
    if (!is_tile || size(s.lhs, 4) != 16)
      return bad_input("a product cannot have {} rows of {} words and {} columns", rows,
                       size(s.lhs, 4), columns);
    const std::pair kind(rows, are_quads);
    if (product_kind_.value_or(kind) != kind)
      return bad_input("a loop has products of several kinds, or of {} and {} rows",
                       product_kind_->first, rows);
    product_kind_ = kind;
    const int64_t parts = size(s.lhs, 1), words = size(s.rhs, 2);
    if (parts != size(s.rhs, 1) || parts < 1 || parts > (are_quads ? 1 : 3) || words % 16 != 0 ||
        words / 16 != size(s.lhs, 2) || size(s.sums, 1) != rows * columns)
      return bad_input("the blocks of a product do not fit together");
    return {};
  }

  Status check(const Loop& s, Place place) {
    HONE_TRY(define_index(s.index));
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    const bool is_tile = s.exec == Exec::unroll || s.exec == Exec::lanes;
    HONE_TRY(check_divided(s, place));
    if (!index.low.is(0)) return bad_input("loop {} does not count from 0", index.name);
    if (is_tile && !index.high.is_static())
      return bad_input("{} loop {} has no fixed extent", name(s.exec), index.name);
    if (index.span) HONE_TRY(check_span(s, index));
    for (const Carry& carry : s.carried) {
      HONE_TRY(use(carry.initial));
      HONE_TRY(define(carry.inside));
    }
    unreachable_ += index.high.is(0) ? 1 : 0;
    lockstep_ += is_tile ? 1 : 0;
    const bool was_in_block = std::exchange(in_block_, in_block_ || s.exec == Exec::blocks);
    const bool had_whole_warps = std::exchange(has_whole_warps_, keeps_whole_warps(s, place));
    const bool was_one_thread = std::exchange(is_one_thread_, keeps_one_thread(s, place));
    HONE_TRY(body(s.body, inside_of(s, place)));
    in_block_ = was_in_block;
    has_whole_warps_ = had_whole_warps;
    is_one_thread_ = was_one_thread;
    lockstep_ -= is_tile ? 1 : 0;
    unreachable_ -= index.high.is(0) ? 1 : 0;
    for (const Carry& carry : s.carried) HONE_TRY(check_carry(s, carry, index.name));
    leave(s.body);
    index_in_scope_[static_cast<size_t>(s.index)] = false;
    for (const Carry& carry : s.carried) in_scope_[carry.inside] = false;
    for (const Carry& carry : s.carried) HONE_TRY(define(carry.result));
    return {};
  }

  // True if the threads of a warp take the trips of the loop together.
  bool keeps_whole_warps(const Loop& s, Place place) const {
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    const bool is_block_level = place == Place::blocks || place == Place::block;
    if (is_block_level)
      return s.exec == Exec::threads && index.high.is_static() &&
             index.high.divisible_by(kWarpLanes);
    return has_whole_warps_ && !index.span;
  }
  bool keeps_one_thread(const Loop& s, Place place) const {
    if (place != Place::blocks && place != Place::block) return is_one_thread_;
    return s.exec == Exec::threads && program_.indices[static_cast<size_t>(s.index)].high.is(1);
  }

  // True if the trips of a block's threads loops are numbers, not open sizes.
  bool are_numbers(const Block& statements) const {
    return std::ranges::all_of(statements, [&](const Statement& statement) {
      const Loop* loop = std::get_if<Loop>(&statement.kind);
      if (loop == nullptr) return true;
      if (loop->exec != Exec::threads) return are_numbers(loop->body);
      return program_.indices[static_cast<size_t>(loop->index)].high.is_static();
    });
  }

  static Place inside_of(const Loop& s, Place place) {
    if (s.exec == Exec::blocks) return Place::blocks;
    const bool is_block_level = place == Place::blocks || place == Place::block;
    if (s.exec == Exec::threads) return is_block_level ? Place::inside : Place::threads;
    return is_block_level ? Place::block : Place::inside;
  }

  // Loops whose trips are divided among threads or blocks.
  Status check_divided(const Loop& s, Place place) const {
    const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
    if (s.exec == Exec::threads && place == Place::inside)
      return bad_input("threads loop {} is not outermost", index.name);
    if (s.exec == Exec::blocks && place != Place::top && place != Place::blocks)
      return bad_input("blocks loop {} is not outermost", index.name);
    const bool is_block_level = place == Place::blocks || place == Place::block;
    if (is_block_level && s.exec == Exec::threads &&
        (!index.high.is_static() || index.high.value() > kMostBlockThreads))
      return bad_input("threads loop {} of a block has {} trips, not a number up to {}", index.name,
                       index.high.to_string(), kMostBlockThreads);
    if (is_block_level && !s.carried.empty())
      return bad_input("loop {} carries a value from one threads loop to another", index.name);
    return {};
  }

  Status check_span(const Loop& s, const TileIndex& index) {
    if (s.exec != Exec::loop)
      return bad_input("{} loop {} takes a part of its trips", name(s.exec), index.name);
    // The loop's own index is defined only in its body.
    index_in_scope_[static_cast<size_t>(s.index)] = false;
    HONE_TRY(known(index.span->first));
    HONE_TRY(known(index.span->end));
    index_in_scope_[static_cast<size_t>(s.index)] = true;
    // Proofs take the index to lie between them, so the machine's numbers must hold them.
    for (const IndexExpr* bound : {&index.span->first, &index.span->end}) {
      const DimRange range = bounds_.of(*bound);
      if (range.low.range().low <= -kDimLimit || range.high.range().high >= kDimLimit)
        return bad_input("the bounds of loop {} are too large to compare", index.name);
    }
    return {};
  }

  Status check_carry(const Loop& loop, const Carry& carry, std::string_view index) {
    if (loop.exec == Exec::threads || loop.exec == Exec::blocks)
      return bad_input("{} loop {} carries a value", name(loop.exec), index);
    HONE_TRY(use(carry.next));
    for (Scalar s : {carry.inside, carry.next, carry.result})
      if (type(s) != type(carry.initial))
        return bad_input("loop {} carries {} on as {}", index, name(type(carry.initial)),
                         name(type(s)));
    if (carry.combine) {
      if (op_def(*carry.combine).traits.identity == Identity::none)
        return bad_input("loop {}: {} does not combine trips", index, name(*carry.combine));
      if (!accumulates(loop.body, carry.next, carry.inside, *carry.combine))
        return bad_input("loop {} does not combine what it carries by {} alone", index,
                         name(*carry.combine));
    } else if (loop.exec != Exec::loop) {
      return bad_input("{} loop {} carries a value in order", name(loop.exec), index);
    }
    return {};
  }

  // True if `next` is combine(... combine(inside, x) ..., y), with the gathered number always
  // first, and no other statement reads the gathered number on the way: it depends on the order of
  // the trips.
  static bool accumulates(const Block& body, Scalar next, Scalar inside, Opcode combine) {
    if (uses(body, next) != 0) return false;
    const bool sums = combine == Opcode::add;
    for (auto statement = body.rbegin(); statement != body.rend() && next != inside; ++statement) {
      std::optional<Scalar> before;
      if (const Compute* s = std::get_if<Compute>(&statement->kind); s && s->result == next) {
        if (s->op.opcode() != combine) return false;
        before = s->operands[0];
      } else if (const Fma* f = std::get_if<Fma>(&statement->kind); f && f->result == next) {
        if (!sums) return false;
        before = f->c;
      } else if (const Quad* q = std::get_if<Quad>(&statement->kind); q && q->result == next) {
        if (!sums) return false;
        before = q->c;
      } else if (const Pair* p = std::get_if<Pair>(&statement->kind); p && p->result == next) {
        if (!sums) return false;
        before = p->c;
      } else if (const Loop* loop = std::get_if<Loop>(&statement->kind)) {
        for (const Carry& inner : loop->carried) {
          if (inner.result != next) continue;
          if (inner.combine != combine) return false;
          before = inner.initial;
        }
      }
      if (!before) continue;
      next = *before;
      if (uses(body, next) != 1) return false;
    }
    return next == inside;
  }

  // How often statements of the block read the scalar; its own yield is not one of them.
  static int64_t uses(const Block& body, Scalar scalar) {
    int64_t count = 0;
    for (const Statement& statement : body) {
      auto read = [&](Scalar s) { count += s == scalar ? 1 : 0; };
      if (const Compute* s = std::get_if<Compute>(&statement.kind)) {
        for (Scalar operand : s->operands) read(operand);
      } else if (const Fma* f = std::get_if<Fma>(&statement.kind)) {
        for (Scalar operand : {f->a, f->b, f->c}) read(operand);
      } else if (const Quad* q = std::get_if<Quad>(&statement.kind)) {
        for (Scalar operand : {q->a, q->b, q->c}) read(operand);
      } else if (const Pair* p = std::get_if<Pair>(&statement.kind)) {
        for (Scalar operand : {p->a, p->b, p->c}) read(operand);
      } else if (const Choose* c = std::get_if<Choose>(&statement.kind)) {
        read(c->value);
      } else if (const Load* l = std::get_if<Load>(&statement.kind)) {
        if (l->otherwise) read(*l->otherwise);
      } else if (const Store* w = std::get_if<Store>(&statement.kind)) {
        read(w->value);
      } else if (const Loop* loop = std::get_if<Loop>(&statement.kind)) {
        count += uses(loop->body, scalar);
        for (const Carry& carry : loop->carried) {
          read(carry.initial);
          read(carry.next);
        }
      }
    }
    return count;
  }

  // ---- Definitions and uses --------------------------------------------------------------------

  DType type(Scalar s) const { return program_.scalars[s]; }

  Status define(Scalar s) {
    if (s >= defined_.size()) return bad_input("scalar {} is outside of the table", s);
    if (defined_[s]) return bad_input("scalar {} is defined twice", s);
    defined_[s] = in_scope_[s] = true;
    return {};
  }
  Status use(Scalar s) const {
    if (s >= defined_.size()) return bad_input("scalar {} is outside of the table", s);
    if (!in_scope_[s]) return bad_input("scalar {} is not defined where it is used", s);
    return {};
  }
  Status define_index(Index i) {
    const auto at = static_cast<size_t>(i);
    if (at >= index_defined_.size()) return bad_input("index {} is outside of the table", i);
    if (index_defined_[at])
      return bad_input("index {} is defined twice", program_.indices[at].name);
    const std::string& name = program_.indices[at].name;
    if (!is_symbol_name(name)) return bad_input("'{}' cannot name an index", name);
    for (size_t other = 0; other < index_in_scope_.size(); ++other)
      if (index_in_scope_[other] && program_.indices[other].name == name)
        return bad_input("two indices are called {}", name);
    index_defined_[at] = index_in_scope_[at] = true;
    return {};
  }
  Status known(const IndexExpr& expr) const {
    for (size_t i = 0; i < program_.indices.size(); ++i)
      if (!index_in_scope_[i] && expr.mentions(static_cast<int>(i)))
        return bad_input("index {} is not defined where it is used", program_.indices[i].name);
    return {};
  }

  Status same_type(BufferId buffer, Scalar s) const {
    const DType element = program_.buffers[buffer].type.dtype();
    if (element == type(s)) return {};
    return bad_input("@{} holds {}, not {}", program_.buffers[buffer].name, name(element),
                     name(type(s)));
  }

  enum class Use : uint8_t { none, numbers, mbarriers };
  Status access(BufferId id, const std::vector<IndexExpr>& index, const std::vector<Guard>& guards,
                Use use = Use::numbers) {
    if (id >= program_.buffers.size()) return bad_input("there is no buffer {}", id);
    const TileBuffer& buffer = program_.buffers[id];
    if (use_[id] != Use::none && use_[id] != use)
      return bad_input("@{} has mbarriers, but numbers as well", buffer.name);
    use_[id] = use;
    if (static_cast<int>(index.size()) != buffer.type.rank())
      return bad_input("@{} has rank {}, but {} indices", buffer.name, buffer.type.rank(),
                       index.size());
    const bool is_on_chip = buffer.role == BufferRole::block || buffer.role == BufferRole::own;
    if (is_on_chip && !in_block_) return bad_input("@{} is used outside of a block", buffer.name);
    for (const IndexExpr& expr : index) HONE_TRY(known(expr));
    for (const Guard& guard : guards) HONE_TRY(known(guard.value));
    if (unreachable_ > 0) return {};
    if (std::optional<int> axis = bounds_.outside(index, guards, buffer.type))
      return bad_input("index {} of @{} may lie outside of 0..{}", *axis, buffer.name,
                       (buffer.type.dim(*axis) - 1).to_string());
    return {};
  }

  struct Element {
    BufferId output;
    std::vector<IndexExpr> index;
    int depth;  // of the body
    bool is(const Element& other) const { return output == other.output && index == other.index; }
  };

  const TileProgram& program_;
  const TileBounds bounds_;
  std::vector<std::optional<BufferId>> output_in_;  // by input: the output that may lie in it
  std::vector<Element> to_be_stored_, stored_;      // in the bodies at hand
  int depth_ = 0;
  std::optional<std::pair<int64_t, bool>> product_kind_;  // rows, whether of quads: of all of them
  std::vector<bool> defined_, in_scope_;
  std::vector<bool> index_defined_, index_in_scope_, is_chosen_;
  std::vector<Use> use_;          // of buffers
  bool in_block_ = false;         // in a blocks loop
  int64_t block_threads_ = 0;     // of the phase, if it has blocks loops of numbers of threads
  bool is_one_thread_ = false;    // in a threads loop of a block that has one trip
  bool has_whole_warps_ = false;  // in a threads loop of a block, where no thread leaves its warp
  int lockstep_ = 0;              // unroll and lanes loops around the statement at hand
  int unreachable_ = 0;           // loops without trips around the statement at hand
};

}  // namespace

Status verify(const TileProgram& program) {
  Status status = Verifier(program).run();
  if (status.ok()) return status;
  return std::move(status).error().within(fmt::format("tiles '{}'", program.name));
}

}  // namespace hone
