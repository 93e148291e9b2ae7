#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kernel/algorithms/block_ordered.h"
#include "program/tiles/tile_builder.h"

namespace hone {

// Sorts rows in phases of blocks and threads. Elements come by their keys, equal ones by their
// position, so that no two are equal.
//
// A block sorts a piece in its memory by a network of Batcher's kind in which the lower place
// always gets the element that comes first. Places behind the end of a row take no part. Then
// pieces of twice the length are made of each two: an element finds by a search how many of the
// other piece come before it. Elements behind the first `kept` of a piece are dropped.
class BlockSorter {
 public:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;
  using Guards = std::vector<Guard>;

  struct Rows {
    std::vector<Dim> dims;  // one row for each of these points
    std::vector<DType> keys;
    bool descends = false;
    // The keys of an element, in their types. They are arbitrary where a guard does not hold.
    std::function<std::vector<Scalar>(const Indices& row, const IndexExpr& at, const Guards&)> read;
    // An element has come to its place; `position` is where it was, a u32.
    std::function<void(const Indices& row, const IndexExpr& place, const std::vector<Scalar>& keys,
                       Scalar position, const Guards&)>
        write;
  };

  // Shape and rows stay with the caller.
  BlockSorter(TileBuilder& tiles, const SortShape& shape, const Rows& rows);

  void sort();  // adds the phases

 private:
  struct Element {
    std::vector<Scalar> keys;
    Scalar position = 0;
  };
  // A buffer for each key, and one for positions.
  using Buffers = std::vector<tile::BufferId>;

  Buffers buffers(std::string_view prefix, std::vector<Dim> dims, BufferRole role);
  Element load(const Buffers& from, const Indices& index, const Guards& guards = {});
  void store(const Buffers& to, const Indices& index, const Element& element,
             const Guards& guards = {});
  Scalar comes_before(const Element& a, const Element& b);
  Element chosen(Scalar condition, const Element& yes, const Element& no);

  void each_row(Exec exec, const std::function<void(const Indices& row)>& body);
  void sort_piece(const Indices& row, const IndexExpr& piece);
  void each_of_piece(const std::function<void(const IndexExpr& place)>& body);
  void compare_pairs(const IndexExpr& piece, const IndexExpr& stage, const IndexExpr& step);
  void compare(const IndexExpr& piece, Scalar first, Scalar second);
  // Sorted runs in memory: all have `width` elements but the last, which has the rest.
  struct Runs {
    int64_t length, width;
  };
  Runs merged(const Runs& runs) const;
  void merge(const Indices& row, const IndexExpr& at, const Runs& runs, int64_t pass);
  Scalar count_before(const Indices& half_and_row, const Element& mine, Scalar begin, Scalar end,
                      const Runs& runs);

  Guards inside(const IndexExpr& place) const;  // of the row, if pieces go beyond its end
  Indices in_row(const Indices& half_and_row, const IndexExpr& at) const;
  Scalar number(int64_t value) { return tiles_.integer(DType::u32, value); }
  Scalar compute(Opcode opcode, Scalar a, Scalar b) { return tiles_.compute(opcode, {a, b}); }
  Scalar select(Scalar condition, Scalar a, Scalar b) {
    return tiles_.compute(Opcode::select, {condition, a, b});
  }

  TileBuilder& tiles_;
  const SortShape& shape_;
  const Rows& rows_;
  Buffers piece_;
  Buffers pieces_;  // in turn one half is read and the other written
};

}  // namespace hone
