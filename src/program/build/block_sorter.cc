#include "program/build/block_sorter.h"

#include <algorithm>
#include <bit>
#include <string>

#include "program/build/key_order.h"
#include "program/build/tile_parts.h"

namespace hone {

namespace {

// The bits that count up to n.
int64_t bits_of(int64_t n) { return std::bit_width(static_cast<uint64_t>(n)); }

}  // namespace

BlockSorter::BlockSorter(TileBuilder& tiles, const SortShape& shape, const Rows& rows)
    : tiles_(tiles), shape_(shape), rows_(rows) {
  piece_ = buffers("piece", {shape.piece()}, BufferRole::block);
  if (shape.pieces() == 1) return;
  std::vector<Dim> all = {2};
  all.insert(all.end(), rows.dims.begin(), rows.dims.end());
  all.emplace_back(shape.run() < shape.piece() ? shape.pieces() * shape.run() : shape.length);
  pieces_ = buffers("sorted", all, BufferRole::shared);
}

void BlockSorter::sort() {
  each_row(Exec::blocks, [&](const Indices& row) {
    tiles_.loop(Exec::blocks, "piece", shape_.pieces(),
                [&](const IndexExpr& piece) { sort_piece(row, piece); });
  });
  const int64_t last = shape_.length - (shape_.pieces() - 1) * shape_.piece();
  Runs runs = {(shape_.pieces() - 1) * shape_.run() + std::min(last, shape_.run()), shape_.run()};
  for (int64_t pass = 0; pass < bits_of(shape_.pieces() - 1); ++pass) {
    each_row(Exec::threads, [&](const Indices& row) {
      tiles_.loop(Exec::threads, "at", runs.length,
                  [&](const IndexExpr& at) { merge(row, at, runs, pass); });
    });
    runs = merged(runs);
  }
}

void BlockSorter::each_row(Exec exec, const std::function<void(const Indices& row)>& body) {
  open_loops(tiles_, exec, "row", rows_.dims, body);
}

// ---- Elements -----------------------------------------------------------------------------------

BlockSorter::Buffers BlockSorter::buffers(std::string_view prefix, std::vector<Dim> dims,
                                          BufferRole role) {
  Buffers all;
  for (DType key : rows_.keys)
    all.push_back(tiles_.buffer(fmt::format("{}_key", prefix), Type::get(key, dims), role));
  all.push_back(
      tiles_.buffer(fmt::format("{}_position", prefix), Type::get(DType::u32, dims), role));
  return all;
}

BlockSorter::Element BlockSorter::load(const Buffers& from, const Indices& index,
                                       const Guards& guards) {
  const auto one = [&](tile::BufferId buffer) {
    if (guards.empty()) return tiles_.load(buffer, index);
    const DType dtype = tiles_.program().buffers[buffer].type.dtype();
    return tiles_.load(buffer, index, guards, tiles_.zero(dtype));
  };
  Element element;
  for (size_t k = 0; k + 1 < from.size(); ++k) element.keys.push_back(one(from[k]));
  element.position = one(from.back());
  return element;
}

void BlockSorter::store(const Buffers& to, const Indices& index, const Element& element,
                        const Guards& guards) {
  for (size_t k = 0; k + 1 < to.size(); ++k) tiles_.store(to[k], index, element.keys[k], guards);
  tiles_.store(to.back(), index, element.position, guards);
}

tile::Scalar BlockSorter::comes_before(const Element& a, const Element& b) {
  return KeyOrder(tiles_, rows_.descends)
      .comes_before(a.keys, b.keys, compared(tiles_, "lt", a.position, b.position));
}

BlockSorter::Element BlockSorter::chosen(Scalar condition, const Element& yes, const Element& no) {
  Element element;
  for (size_t k = 0; k < yes.keys.size(); ++k)
    element.keys.push_back(select(condition, yes.keys[k], no.keys[k]));
  element.position = select(condition, yes.position, no.position);
  return element;
}

BlockSorter::Guards BlockSorter::inside(const IndexExpr& place) const {
  if (shape_.length % shape_.piece() == 0) return {};
  return {{place, 0, shape_.length}};
}

// ---- A piece by a block -------------------------------------------------------------------------

void BlockSorter::each_of_piece(const std::function<void(const IndexExpr& place)>& body) {
  tiles_.loop(Exec::threads, "t", shape_.threads, [&](const IndexExpr& thread) {
    tiles_.loop(Exec::loop, "k", 2 * shape_.pairs,
                [&](const IndexExpr& k) { body(k * shape_.threads + thread); });
  });
}

void BlockSorter::sort_piece(const Indices& row, const IndexExpr& piece) {
  const IndexExpr first = piece * shape_.piece();
  each_of_piece([&](const IndexExpr& place) {
    const IndexExpr at = first + place;
    store(piece_, {place}, {rows_.read(row, at, inside(at)), tiles_.position(DType::u32, at)});
  });
  tiles_.barrier();
  const int64_t stages = bits_of(std::min(shape_.piece(), shape_.length) - 1);
  if (stages > 0)
    tiles_.loop(Exec::loop, "stage", stages, [&](const IndexExpr& stage) {
      tiles_.loop(
          Exec::loop, "step", stages,
          [&](const IndexExpr& step) {
            compare_pairs(piece, stage, step);
            tiles_.barrier();
          },
          tile::Span{0, stage + 1});
    });
  each_of_piece([&](const IndexExpr& place) {
    const IndexExpr at = first + place;
    const Element element = load(piece_, {place});
    Guards guards = inside(at);
    if (shape_.run() < std::min(shape_.piece(), shape_.length))
      guards.push_back({place, 0, shape_.run()});
    if (pieces_.empty()) return rows_.write(row, at, element.keys, element.position, guards);
    Indices whole = {0};
    whole.insert(whole.end(), row.begin(), row.end());
    store(pieces_, in_row(whole, piece * shape_.run() + place), element, guards);
  });
}

// A stage makes sorted runs of 2 << stage elements of each two. Its first step compares places that
// are as far from where both runs meet. Each next step compares those that are `distance` apart,
// half of what it was before.
void BlockSorter::compare_pairs(const IndexExpr& piece, const IndexExpr& stage,
                                const IndexExpr& step) {
  tiles_.loop(Exec::threads, "t", shape_.threads, [&](const IndexExpr& thread) {
    const Scalar one = number(1);
    const Scalar shift = tiles_.position(DType::u32, stage - step);
    const Scalar distance = compute(Opcode::shift_left, one, shift);
    const Scalar is_first_step =
        compared(tiles_, "eq", tiles_.position(DType::u32, step), number(0));
    const Scalar before = compute(Opcode::sub, distance, one);
    tiles_.loop(Exec::loop, "pair", shape_.pairs, [&](const IndexExpr& k) {
      const Scalar pair = tiles_.position(DType::u32, k * shape_.threads + thread);
      const Scalar in_half = compute(Opcode::and_, pair, before);
      const Scalar halves = compute(Opcode::sub, pair, in_half);
      const Scalar low = compute(Opcode::add, compute(Opcode::add, halves, halves), in_half);
      const Scalar beside = compute(Opcode::add, low, distance);
      // From the other end of the second half.
      const Scalar mirrored = compute(Opcode::sub, compute(Opcode::add, beside, before),
                                      compute(Opcode::add, in_half, in_half));
      compare(piece, low, select(is_first_step, mirrored, beside));
    });
  });
}

void BlockSorter::compare(const IndexExpr& piece, Scalar first, Scalar second) {
  const IndexExpr i = tiles_.choose("low", 0, shape_.piece(), first);
  const IndexExpr j = tiles_.choose("high", 0, shape_.piece(), second);
  const Guards guards = inside(piece * shape_.piece() + j);
  const Element low = load(piece_, {i}), high = load(piece_, {j});
  const Scalar swaps = comes_before(high, low);
  store(piece_, {i}, chosen(swaps, high, low), guards);
  store(piece_, {j}, chosen(swaps, low, high), guards);
}

// ---- Two pieces by threads ----------------------------------------------------------------------

BlockSorter::Indices BlockSorter::in_row(const Indices& half_and_row, const IndexExpr& at) const {
  Indices index = half_and_row;
  index.push_back(at);
  return index;
}

// Each two runs become one, of the first elements that are asked for.
BlockSorter::Runs BlockSorter::merged(const Runs& runs) const {
  const int64_t both = 2 * runs.width, width = std::min(both, shape_.kept);
  const int64_t before = (runs.length - 1) / both;  // the last
  return {before * width + std::min(runs.length - before * both, width), width};
}

// The element goes to where those before it in both runs end, if that is asked for.
void BlockSorter::merge(const Indices& row, const IndexExpr& at, const Runs& runs, int64_t pass) {
  Indices from = {pass % 2}, to = {(pass + 1) % 2};
  from.insert(from.end(), row.begin(), row.end());
  to.insert(to.end(), row.begin(), row.end());
  const Element mine = load(pieces_, in_row(from, at));
  const int64_t width = runs.width;
  const auto position = [&](const IndexExpr& value) { return tiles_.position(DType::u32, value); };
  const IndexExpr in_both = mod(at, 2 * width);
  const Scalar length = number(runs.length), begin = position(at - in_both);
  const Scalar is_first = compared(tiles_, "lt", position(in_both), number(width));
  const auto least = [&](Scalar a, Scalar b) { return compute(Opcode::min, a, b); };
  const Scalar middle = least(compute(Opcode::add, begin, number(width)), length);
  const Scalar other = select(is_first, middle, begin);
  const Scalar other_end = least(compute(Opcode::add, other, number(width)), length);
  const Scalar count = count_before(from, mine, other, other_end, runs);
  const Scalar in_run = compute(Opcode::add, position(mod(at, width)), count);
  const Runs next = merged(runs);
  Guards guards;
  if (next.width < std::min(2 * width, runs.length))
    guards.push_back({tiles_.choose("in_run", 0, 2 * width, in_run), 0, next.width});
  const Scalar first = position(floordiv(at, 2 * width) * next.width);
  const IndexExpr place =
      tiles_.choose("place", 0, next.length, compute(Opcode::add, first, in_run));
  if (2 * width < runs.length) return store(pieces_, in_row(to, place), mine, guards);
  rows_.write(row, place, mine.keys, mine.position, guards);
}

// How many elements of a sorted run come before an element of another one.
tile::Scalar BlockSorter::count_before(const Indices& half_and_row, const Element& mine,
                                       Scalar begin, Scalar end, const Runs& runs) {
  const std::vector<Scalar> found = tiles_.carry(
      "search", bits_of(runs.width), {begin, end},
      [&](const IndexExpr& /*step*/, const std::vector<Scalar>& so_far) {
        const Scalar low = so_far[0], high = so_far[1];
        const Scalar is_open = compared(tiles_, "lt", low, high);
        const Scalar half =
            compute(Opcode::shift_right, compute(Opcode::add, low, high), number(1));
        const IndexExpr at = tiles_.choose("probe", 0, runs.length, half);
        const Scalar is_before = comes_before(load(pieces_, in_row(half_and_row, at)), mine);
        const Scalar goes_up = compute(Opcode::and_, is_open, is_before);
        const Scalar goes_down =
            compute(Opcode::and_, is_open, tiles_.compute(Opcode::not_, {is_before}));
        return std::vector<Scalar>{select(goes_up, compute(Opcode::add, half, number(1)), low),
                                   select(goes_down, half, high)};
      });
  return compute(Opcode::sub, found[0], begin);
}

}  // namespace hone
