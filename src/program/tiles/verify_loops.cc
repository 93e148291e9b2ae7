#include <algorithm>

#include "ir/op_def.h"
#include "program/tiles/verifier.h"
#include "target/gpu.h"

// Loops: who takes their trips, and what these carry on.

namespace hone::tile {

Status Verifier::check(const Loop& s, Place place) {
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
bool Verifier::keeps_whole_warps(const Loop& s, Place place) const {
  const TileIndex& index = program_.indices[static_cast<size_t>(s.index)];
  const bool is_block_level = place == Place::blocks || place == Place::block;
  if (is_block_level)
    return s.exec == Exec::threads && index.high.is_static() && index.high.divisible_by(kWarpLanes);
  return has_whole_warps_ && !index.span;
}

bool Verifier::keeps_one_thread(const Loop& s, Place place) const {
  if (place != Place::blocks && place != Place::block) return is_one_thread_;
  return s.exec == Exec::threads && program_.indices[static_cast<size_t>(s.index)].high.is(1);
}

// True if the trips of a block's threads loops are numbers, not open sizes.
bool Verifier::are_numbers(const Block& statements) const {
  return std::ranges::all_of(statements, [&](const Statement& statement) {
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr) return true;
    if (loop->exec != Exec::threads) return are_numbers(loop->body);
    return program_.indices[static_cast<size_t>(loop->index)].high.is_static();
  });
}

Verifier::Place Verifier::inside_of(const Loop& s, Place place) {
  if (s.exec == Exec::blocks) return Place::blocks;
  const bool is_block_level = place == Place::blocks || place == Place::block;
  if (s.exec == Exec::threads) return is_block_level ? Place::inside : Place::threads;
  return is_block_level ? Place::block : Place::inside;
}

// Loops whose trips are divided among threads or blocks.
Status Verifier::check_divided(const Loop& s, Place place) const {
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

Status Verifier::check_span(const Loop& s, const TileIndex& index) {
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

Status Verifier::check_carry(const Loop& loop, const Carry& carry, std::string_view index) {
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
bool Verifier::accumulates(const Block& body, Scalar next, Scalar inside, Opcode combine) {
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
int64_t Verifier::uses(const Block& body, Scalar scalar) {
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

}  // namespace hone::tile
