#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hone {

// How a kernel is carried out.
enum class Algorithm : uint8_t {
  generic,  // of a single op, one point after another: serves every op
  nest,     // of a fused group: loops over the results' elements, everything else computed there
  gemm,     // of a group around one contraction: packed panels, a register tile, an epilogue
  chain,    // of a group in stages, block by block: what they pass on stays in scratch
};
std::string_view name(Algorithm algorithm);

// How an operand gets into scratch before a block of a gemm.
enum class Packing : uint8_t {
  no,      // it is read where it lies
  panels,  // what each register tile needs, in the order in which it does
  window,  // the part that the block needs, each element once, with its padding
};
std::string_view name(Packing packing);

// `count` points of a dim that are taken together.
struct Tile {
  int dim = 0;
  int64_t count = 1;
  bool operator==(const Tile&) const = default;
};

// Dims are numbered as in the kernel's space (space_of): first the dims of the results, then those
// of the anchor's reduction. Where a count does not divide its dim, the last tile is smaller.
struct Schedule {
  Algorithm algorithm = Algorithm::generic;
  // ---- nest and gemm
  std::vector<int> order = {};    // the dims of the results, from outside in
  int threads = 0;                // so many of the outermost loops are divided among threads
  std::vector<Tile> lanes = {};   // at most one: side by side in vector lanes
  std::vector<Tile> unroll = {};  // side by side in registers
  // ---- nest
  // Loops over the first `row` dims, tiles included, stand around those over the others. What
  // depends on no other dim is computed once per row; sums and the like in a row run in the tiles
  // of the other dims.
  int row = 0;
  // ---- gemm
  // Points that stay in a cache: of a result's dim whole tiles (one, if it has no block), of the
  // reduction, along one dim at most, any number (all, if it has no block).
  std::vector<Tile> block = {};
  Packing pack_lhs = Packing::no;
  Packing pack_rhs = Packing::no;
  // ---- chain (stages.h): `order` and `block` have the dims that it takes in blocks.
  // The nodes whose results stages leave in scratch for later ones, counted among those of the body
  // that compute, in ascending order. The last stage computes the results.
  std::vector<int64_t> keep = {};
  std::vector<Schedule> stages = {};  // one per stage: nests and gemms on one thread
  static constexpr size_t kMaxStages = 64;

  bool operator==(const Schedule&) const = default;
};

// The simplest nest of results with so many dims: one point after another, in order.
inline Schedule plain_nest(int rank) {
  Schedule nest = {.algorithm = Algorithm::nest};
  for (int dim = 0; dim < rank; ++dim) nest.order.push_back(dim);
  return nest;
}

}  // namespace hone
