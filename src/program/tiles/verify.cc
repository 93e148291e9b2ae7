#include <algorithm>

#include "base/text.h"
#include "ir/op_def.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "program/tiles/verifier.h"
#include "program/tiles/waiting.h"

namespace hone::tile {

Verifier::Verifier(const TileProgram& program)
    : program_(program),
      bounds_(program),
      defined_(program.scalars.size()),
      in_scope_(program.scalars.size()),
      index_defined_(program.indices.size()),
      index_in_scope_(program.indices.size()),
      is_chosen_(program.indices.size()),
      use_(program.buffers.size(), Use::none) {}

Status Verifier::run() {
  HONE_TRY(buffers());
  for (const TileIndex& index : program_.indices)
    if (!provably_le(index.low, index.high))
      return bad_input("index {} has the empty range {} to {}", index.name, index.low.to_string(),
                       index.high.to_string());
  for (const Loop& phase : program_.phases) {
    if (!phase.carried.empty()) return bad_input("a phase carries values that nothing reads");
    phase_ = &phase;
    has_waited_ = !has_wait(phase);
    block_threads_ = are_numbers(phase.body) ? block_threads(phase, program_) : 0;
    HONE_TRY(check(phase, Place::top));
  }
  return {};
}

// Inputs, results, the others.
int Verifier::place(BufferRole role) {
  if (role == BufferRole::input) return 0;
  return is_result(role) ? 1 : 2;
}

Status Verifier::buffers() {
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
    if (buffer.is_constant && buffer.role != BufferRole::input)
      return bad_input("@{} is constant, but not an input", buffer.name);
    if (place(buffer.role) < place(last))
      return bad_input("buffer @{} comes after later ones", buffer.name);
    last = buffer.role;
  }
  return donors();
}

Status Verifier::check_swizzled(const TileBuffer& buffer) {
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

Status Verifier::donors() {
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

Status Verifier::body(const Block& statements, Place place) {
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
  return bad_input("@{} is loaded, but its element is not stored to @{} then, which may lie there",
                   program_.buffers[*output.donor].name, output.name);
}

// Definitions of the body are not seen behind it.
void Verifier::leave(const Block& statements) {
  for (const Statement& statement : statements)
    std::visit([&](const auto& s) { leave_scope(s); }, statement.kind);
}

bool Verifier::is_threads_loop(const Statement& statement) {
  const Loop* loop = std::get_if<Loop>(&statement.kind);
  return loop != nullptr && loop->exec == Exec::threads;
}

Status Verifier::check(const Number& s, Place /*place*/) {
  HONE_TRY(define(s.result));
  if (is_real(type(s.result)) != std::holds_alternative<double>(s.value))
    return bad_input("a number of {} is given as another kind", name(type(s.result)));
  return {};
}

Status Verifier::check(const Position& s, Place /*place*/) {
  HONE_TRY(known(s.value));
  HONE_TRY(define(s.result));
  if (!is_integer(type(s.result)))
    return bad_input("a position cannot be {}", name(type(s.result)));
  return {};
}

Status Verifier::check(const Compute& s, Place /*place*/) {
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

Status Verifier::check(const Fma& s, Place /*place*/) {
  for (Scalar operand : {s.a, s.b, s.c}) HONE_TRY(use(operand));
  HONE_TRY(define(s.result));
  for (Scalar operand : {s.a, s.b, s.c})
    if (type(operand) != type(s.result) || !kReal.contains(type(operand)))
      return bad_input("fma takes three operands of one real type");
  return {};
}

Status Verifier::check(const Quad& s, Place /*place*/) {
  return sum_of_words("quad", s, DType::i32);
}

Status Verifier::check(const Pair& s, Place /*place*/) {
  return sum_of_words("pair", s, DType::f32);
}

Status Verifier::check(const Choose& s, Place /*place*/) {
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

Status Verifier::check(const Load& s, Place /*place*/) {
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
Status Verifier::check_word(const Load& s) {
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
Status Verifier::from_donor(const Load& s) {
  if (!output_in_[s.buffer]) return {};
  const Element element = {*output_in_[s.buffer], s.index, depth_};
  if (std::ranges::any_of(stored_, [&](const Element& e) { return e.is(element); }))
    return bad_input("@{} is loaded when @{}, which may lie there, has changed",
                     program_.buffers[s.buffer].name, program_.buffers[element.output].name);
  to_be_stored_.push_back(element);
  return {};
}

Status Verifier::check(const Store& s, Place /*place*/) {
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

// Sizes agree, and whole blocks lie inside.
Status Verifier::check(const Product& s, Place /*place*/) {
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

Status Verifier::define(Scalar s) {
  if (s >= defined_.size()) return bad_input("scalar {} is outside of the table", s);
  if (defined_[s]) return bad_input("scalar {} is defined twice", s);
  defined_[s] = in_scope_[s] = true;
  return {};
}

Status Verifier::use(Scalar s) const {
  if (s >= defined_.size()) return bad_input("scalar {} is outside of the table", s);
  if (!in_scope_[s]) return bad_input("scalar {} is not defined where it is used", s);
  return {};
}

Status Verifier::define_index(Index i) {
  const auto at = static_cast<size_t>(i);
  if (at >= index_defined_.size()) return bad_input("index {} is outside of the table", i);
  if (index_defined_[at]) return bad_input("index {} is defined twice", program_.indices[at].name);
  const std::string& name = program_.indices[at].name;
  if (!is_symbol_name(name)) return bad_input("'{}' cannot name an index", name);
  for (size_t other = 0; other < index_in_scope_.size(); ++other)
    if (index_in_scope_[other] && program_.indices[other].name == name)
      return bad_input("two indices are called {}", name);
  index_defined_[at] = index_in_scope_[at] = true;
  return {};
}

Status Verifier::known(const IndexExpr& expr) const {
  for (size_t i = 0; i < program_.indices.size(); ++i)
    if (!index_in_scope_[i] && expr.mentions(static_cast<int>(i)))
      return bad_input("index {} is not defined where it is used", program_.indices[i].name);
  return {};
}

Status Verifier::same_type(BufferId buffer, Scalar s) const {
  const DType element = program_.buffers[buffer].type.dtype();
  if (element == type(s)) return {};
  return bad_input("@{} holds {}, not {}", program_.buffers[buffer].name, name(element),
                   name(type(s)));
}

Status Verifier::access(BufferId id, const std::vector<IndexExpr>& index,
                        const std::vector<Guard>& guards, Use use) {
  if (id >= program_.buffers.size()) return bad_input("there is no buffer {}", id);
  const TileBuffer& buffer = program_.buffers[id];
  if (use_[id] != Use::none && use_[id] != use)
    return bad_input("@{} has mbarriers, but numbers as well", buffer.name);
  use_[id] = use;
  if (!has_waited_ && is_of_others(buffer))
    return bad_input("@{} is used before the wait for kernels", buffer.name);
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

}  // namespace hone::tile

namespace hone {

Status verify(const TileProgram& program) {
  Status status = tile::Verifier(program).run();
  if (status.ok()) return status;
  return std::move(status).error().within(fmt::format("tiles '{}'", program.name));
}

}  // namespace hone
