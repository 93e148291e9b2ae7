#include <algorithm>

#include "ir/op_def.h"
#include "program/tiles/verifier.h"

// Threads of a block, or of a warp, work together.

namespace hone::tile {

// Between the threads loops of a block stands what all of its threads do together.
Status Verifier::check_block_level(const Statement& statement, const Block& all, Place place) {
  const bool is_of_block =
      is_any_of<Barrier, WarpCombine, BlockVote, CopyGroup, CopyWait, WarpProduct, MbarrierWait,
                ProxyFence, GroupProduct, KernelWait>(statement);
  const bool is_block_level = place == Place::blocks || place == Place::block;
  if (std::holds_alternative<KernelWait>(statement.kind)) return {};
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

Status Verifier::check(const Barrier& /*s*/, Place /*place*/) { return {}; }

Status Verifier::check(const KernelWait& /*s*/, Place place) {
  if (place != Place::blocks && place != Place::threads)
    return bad_input("a wait for kernels is not in the innermost blocks or threads loop");
  if (has_waited_) return bad_input("a phase waits twice for the kernels before it");
  has_waited_ = true;
  return {};
}

// Kernels that have not ended may write there, or read what lies there.
bool Verifier::is_of_others(const TileBuffer& buffer) const {
  return (is_passed(buffer.role) || buffer.role == BufferRole::scratch) && !buffer.is_constant;
}

Status Verifier::check(const WarpCombine& s, Place /*place*/) {
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

Status Verifier::check(const BlockVote& s, Place /*place*/) {
  HONE_TRY(access(s.buffer, s.at, {}));
  HONE_TRY(define_index(s.index));
  const TileBuffer& buffer = program_.buffers[s.buffer];
  const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
  if (buffer.role != BufferRole::own || buffer.type.dtype() != DType::u32)
    return bad_input("a block votes by @{}, {}: not a number of u32 that each thread has",
                     buffer.name, buffer.type.to_string());
  if (index.low.is(0) && index.high.is(2)) return {};
  return bad_input("index {} of a vote is not 0 or 1", index.name);
}

Status Verifier::check(const CopyGroup& /*s*/, Place /*place*/) { return {}; }

Status Verifier::check(const CopyWait& s, Place /*place*/) {
  if (s.open >= 0 && s.open <= kMostOpenGroups) return {};
  return bad_input("{} groups of copies are left open, not 0 to {}", s.open, kMostOpenGroups);
}

namespace {

bool stores_to(const Loop& loop, BufferId buffer) {
  return std::ranges::any_of(loop.body, [&](const Statement& statement) {
    if (const auto* inner = std::get_if<Loop>(&statement.kind)) return stores_to(*inner, buffer);
    const auto* store = std::get_if<Store>(&statement.kind);
    return store != nullptr && store->buffer == buffer;
  });
}

}  // namespace

// Nobody changes it while copies are under way: it is an input alone, or a phase before wrote it.
bool Verifier::may_be_copied(BufferId id) const {
  const BufferRole role = program_.buffers[id].role;
  if (role == BufferRole::shared) return !stores_to(*phase_, id);
  return role == BufferRole::input && !output_in_[id];
}

// The last of its elements lies inside, too.
Status Verifier::check(const AsyncCopy& s, Place /*place*/) {
  if (!in_block_) return bad_input("a copy is not in a block");
  HONE_TRY(access(s.to, s.to_index, {}));
  HONE_TRY(access(s.from, s.from_index, s.guards));
  const TileBuffer &to = program_.buffers[s.to], &from = program_.buffers[s.from];
  if (to.role != BufferRole::block || !may_be_copied(s.from))
    return bad_input(
        "a copy is from @{} to @{}, not from what the phase only reads to memory of a block",
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
Status Verifier::check_begins_piece(std::string_view what, const TileBuffer& buffer,
                                    const std::vector<IndexExpr>& index, int64_t count) const {
  if (!index.empty() && buffer.type.dim(buffer.type.rank() - 1).divisible_by(count) &&
      is_multiple(index.back(), count))
    return {};
  return bad_input("{} of {} elements of @{} may begin between two pieces", what, count,
                   buffer.name);
}

bool Verifier::is_multiple(const IndexExpr& expr, int64_t of) const {
  const std::optional<Dim> rest = bounds_.simplified(mod(expr, of)).as_constant();
  return rest && rest->is(0);
}

// All threads of a warp come to it, and each row that one of them names lies inside.
Status Verifier::check(const MatrixLoad& s, Place /*place*/) {
  if (!has_whole_warps_)
    return bad_input("matrices are loaded where a warp may lack some of its threads");
  if (s.count != 1 && s.count != 2 && s.count != 4)
    return bad_input("a warp loads {} matrices, not 1, 2 or 4", s.count);
  HONE_TRY(access(s.from, s.from_index, {}));
  for (const IndexExpr& expr : s.from_index) HONE_TRY(is_known_to_warp(expr));
  const TileBuffer& from = program_.buffers[s.from];
  const DType element = from.type.dtype();
  if (from.role != BufferRole::block ||
      (element != DType::bf16 && element != DType::f16 && element != DType::f32))
    return bad_input(
        "matrices are loaded from @{}, {}, not from bf16, f16 or f32 in memory of a block",
        from.name, from.type.to_string());
  HONE_TRY(check_begins_piece("a row", from, s.from_index, kMatrixRowBytes * 8 / bits(element)));
  return check_matrix_numbers(s);
}

// A thread reads rows that others name: their index is what its own would be with their number.
Status Verifier::is_known_to_warp(const IndexExpr& expr) const {
  for (size_t i = 0; i < is_chosen_.size(); ++i)
    if (is_chosen_[i] && expr.mentions(static_cast<Index>(i)))
      return bad_input("a row of a matrix depends on index {}, which each thread makes of a number",
                       program_.indices[i].name);
  return {};
}

// Numbers of several matrices may be those at several indices.
Status Verifier::check_matrix_numbers(const MatrixLoad& s) {
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

Status Verifier::check(const WarpProduct& s, Place /*place*/) {
  HONE_TRY(check_factors(s.sums, s.sums_index, DType::f32, 4));
  HONE_TRY(check_factors(s.lhs, s.lhs_index, DType::u32, 4));
  HONE_TRY(check_factors(s.rhs, s.rhs_index, DType::u32, 2));
  if (s.numbers == DType::bf16 || s.numbers == DType::f16 || s.numbers == DType::f32) return {};
  return bad_input("a warp multiplies bf16, f16 or f32, not {}", name(s.numbers));
}

Status Verifier::check_factors(BufferId id, std::vector<IndexExpr> index, DType dtype,
                               int64_t numbers) {
  index.push_back(0);
  HONE_TRY(access(id, index, {}));
  const TileBuffer& buffer = program_.buffers[id];
  if (buffer.role == BufferRole::own && buffer.type.dtype() == dtype &&
      buffer.type.dim(buffer.type.rank() - 1).is(numbers))
    return {};
  return bad_input("@{}, {}, does not have {} {} of each thread for a product", buffer.name,
                   buffer.type.to_string(), numbers, name(dtype));
}

}  // namespace hone::tile
