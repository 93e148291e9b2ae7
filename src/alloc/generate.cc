#include "alloc/generate.h"

#include <algorithm>

namespace hone {
namespace {

struct Piece {
  int64_t begin, end, low, high;  // in steps

  bool is_cell() const { return end - begin == 1 && high - low == 1; }
  int64_t area() const { return (end - begin) * (high - low); }
};

// A piece, or where it was cut in two.
struct Cut {
  Piece piece;
  uint32_t parts = 0;  // the first of the two; 0: a piece
  uint32_t place = 0;  // among the pieces
};

// The piece at a point that is drawn from the whole.
uint32_t draw(const std::vector<Cut>& cuts, Rng& rng) {
  uint32_t at = 0;
  while (cuts[at].parts != 0) {
    const uint32_t part = cuts[at].parts;
    const int64_t point = rng.between(0, cuts[at].piece.area() - 1);
    at = point < cuts[part].piece.area() ? part : part + 1;
  }
  return at;
}

uint32_t cut(std::vector<Cut>& cuts, uint32_t at, double in_time, Rng& rng) {
  const Piece piece = cuts[at].piece;
  Piece one = piece, other = piece;
  const bool is_short = piece.end - piece.begin == 1, is_flat = piece.high - piece.low == 1;
  if (is_flat || (!is_short && rng.chance(in_time)))
    one.end = other.begin = rng.between(piece.begin + 1, piece.end - 1);
  else
    one.high = other.low = rng.between(piece.low + 1, piece.high - 1);
  const auto parts = static_cast<uint32_t>(cuts.size());
  cuts[at].parts = parts;
  cuts.push_back({one});
  cuts.push_back({other});
  return parts;
}

}  // namespace

MemoryProblem guillotine(const GuillotineOptions& options, Rng& rng) {
  const int64_t steps = options.steps, buffers = options.buffers;
  HONE_CHECK(steps > 0 && steps <= kMaxGuillotineSteps && options.capacity > 0 &&
                 options.capacity <= kMaxGuillotineCapacity && options.capacity % steps == 0,
             "a capacity of {} in {} steps", options.capacity, steps);
  HONE_CHECK(buffers > 0 && buffers <= std::max<int64_t>(1, steps * steps / 4),
             "{} buffers of {} steps", buffers, steps);
  HONE_CHECK(options.by_area >= 0 && options.by_area <= 1, "by area: {}", options.by_area);
  HONE_CHECK(options.in_time > 0 && options.in_time < 1, "cuts in time: {}", options.in_time);
  std::vector<Cut> cuts;
  cuts.reserve(2 * static_cast<size_t>(buffers));
  cuts.push_back({{0, steps, 0, steps}});
  std::vector<uint32_t> pieces = {0};
  while (std::ssize(pieces) < buffers) {
    // A chance of 1 takes nothing from the generator.
    const bool is_by_area = options.by_area >= 1 || rng.chance(options.by_area);
    const uint32_t at = is_by_area ? draw(cuts, rng) : pieces[rng.below(pieces.size())];
    if (cuts[at].piece.is_cell()) continue;  // of a fine grid, few are
    const uint32_t parts = cut(cuts, at, options.in_time, rng);
    const uint32_t place = cuts[at].place;
    cuts[parts].place = place;
    cuts[parts + 1].place = static_cast<uint32_t>(pieces.size());
    pieces[place] = parts;
    pieces.push_back(parts + 1);
  }

  const int64_t unit = options.capacity / steps;
  MemoryProblem problem;
  for (const auto& [piece, parts, place] : cuts)
    if (parts == 0)
      problem.buffers.push_back({.begin = piece.begin * unit,
                                 .end = piece.end * unit,
                                 .size = (piece.high - piece.low) * unit});
  rng.shuffle(problem.buffers);
  problem.capacity = {options.capacity};
  return problem;
}

}  // namespace hone
