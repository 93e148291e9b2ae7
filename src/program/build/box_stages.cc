#include "program/build/box_stages.h"

#include "program/tiles/bounds.h"
#include "program/tiles/swizzle.h"

namespace hone {

BoxStages::BoxStages(TileBuilder& tiles, int64_t stages)
    : tiles_(tiles),
      stages_(stages),
      full_(tiles.buffer("full", Type::get(DType::u64, {stages}), BufferRole::block)) {}

void BoxStages::begin() {
  tiles_.loop(Exec::threads, "t", 1, [&](const IndexExpr&) {
    for (int64_t stage = 0; stage < stages_; ++stage) tiles_.init(full_, {stage});
  });
  tiles_.barrier();
}

void BoxStages::start(const IndexExpr& turn, std::span<const Box> boxes,
                      std::span<const IndexExpr> left) {
  for (const IndexExpr& steps : left)
    if (provably_le(TileBounds(tiles_.program()).of(steps).high, 0)) return;
  tiles_.loop(Exec::threads, "t", 1, [&](const IndexExpr&) { start_in_thread(turn, boxes, left); });
}

void BoxStages::start_in_thread(const IndexExpr& turn, std::span<const Box> boxes,
                                std::span<const IndexExpr> left) {
  if (!left.empty()) {
    const auto rest = left.subspan(1);
    if (provably_le(1, TileBounds(tiles_.program()).of(left[0]).low))
      return start_in_thread(turn, boxes, rest);
    // A loop of one trip, or none.
    return tiles_.loop(
        Exec::loop, "once", 1, [&](const IndexExpr&) { start_in_thread(turn, boxes, rest); },
        tile::Span{0, left[0]});
  }
  int64_t rows = 0;
  for (const Box& box : boxes) rows += box.rows;
  tiles_.expect(full_, {stage(turn)}, rows * kSwizzledRowBytes);
  for (const Box& box : boxes)
    tiles_.fetch({.to = box.to,
                  .to_index = {stage(turn), box.to_row},
                  .from = box.from,
                  .from_index = box.first,
                  .axis = box.axis,
                  .rows = box.rows,
                  .barrier = full_,
                  .barrier_index = {stage(turn)}});
}

void BoxStages::await(const IndexExpr& turn) {
  tiles_.await(full_, {stage(turn)}, mod(floordiv(turn, stages_), 2));
}

}  // namespace hone
