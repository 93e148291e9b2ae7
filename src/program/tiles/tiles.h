#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/access.h"
#include "ir/op.h"

// A TileProgram is a kernel as plain data: algorithms build it, a back end emits it, a price reads
// it, and an interpreter runs it.
//
// A program is a list of phases, each a nest of loops over scalar statements. A statement says what
// is computed at one point; the loops around it say how points share the machine:
//   threads  trips are divided among the threads; only as the outermost loops of a phase
//   loop     one trip after another
//   unroll   trips side by side, each in registers of its own
//   lanes    trips side by side, in the lanes of vectors
//   blocks   trips are divided among blocks of threads; only as the outermost loops of a phase
//
// So a register tile of a matrix product is an unroll and a lanes loop around the reduction:
//
//   unroll i in 14 { lanes j in 32 {
//     %sum = for k in 784 carry (%acc = %zero) by add {
//       %a = load @p[k, i]
//       %b = load @w[k, j]
//       %next = fma %a, %b, %acc
//       yield %next
//     }
//     store @y[i, j] = %sum
//   } }
//
// Trips of unroll and lanes loops run in lockstep. A scalar that does not depend on their index is
// computed once for all of them (%b above: once for all i). A phase ends with a barrier.
//
// A phase of blocks loops is for a GPU. Inside of them stand threads loops, whose trips are the
// threads of the block, and barriers, combinations, and loops around these. So all threads of a
// block come to each barrier. Here a block of 64 threads sums a row:
//
//   blocks i in 100 {
//     threads t in 64 {
//       %sum = for k in 16 carry (%acc = %zero) by add { ... load @x[i, 64*k + t] ... }
//       store @own[0] = %sum
//     }
//     combine @own[0] by add
//     threads t in 64 { %sum = load @own[0]  store @part[floordiv(t, 32)] = %sum if ... }
//     barrier
//     threads t in 1 { ... load @part[0], load @part[1], store @y[i] ... }
//   }
//
// Between two barriers no thread touches an element that another one writes there.
//
// Every access is proved to lie inside of its buffer (verify), so a program that verifies is safe
// for any data.

namespace hone {

enum class Exec : uint8_t { threads, loop, unroll, lanes, blocks };
std::string_view name(Exec exec);

enum class BufferRole : uint8_t {
  input,    // never written
  output,   // written, and may be read back
  update,   // an output that keeps its old elements where nothing is stored
  shared,   // one for all threads: from phase to phase
  scratch,  // one per thread; its contents are unknown at the start of each phase
  block,    // one per block; its contents are unknown at the start of each trip of blocks loops
  own,      // one per thread of a block, as long as the block has it: registers
};

// True if callers see what the kernel stores there.
constexpr bool is_result(BufferRole role) {
  return role == BufferRole::output || role == BufferRole::update;
}

// True if callers give its memory to the kernel.
constexpr bool is_passed(BufferRole role) {
  return is_result(role) || role == BufferRole::input || role == BufferRole::shared;
}

// Buffers are row-major; a layout becomes dims: channels in blocks of 16 are two dims.
struct TileBuffer {
  std::string name;
  Type type;
  BufferRole role;
  // For an output: its donor, the input of this type whose memory it may lie in, if the caller
  // likes. A point loads of the donor only the element that it stores to the output, before it
  // stores it.
  std::optional<uint32_t> donor = {};
  // Only of BufferRole::block: pieces of its rows change places in memory (swizzle.h), so that
  // those of eight rows lie in other banks. Indices are of places as they would be without that.
  bool is_swizzled = false;
  // Only of BufferRole::input: no kernel ever writes what lies there (tile::KernelWait).
  bool is_constant = false;
  bool operator==(const TileBuffer&) const = default;
};

namespace tile {

// The part of a loop's trips that is taken: from `first` up to, and without, `end`. Trips lie
// within the loop's extent.
struct Span {
  IndexExpr first, end;
  bool operator==(const Span&) const = default;
};

}  // namespace tile

// An index, for which IndexExpr::iter stands: the counter of a loop, or a number that was read.
struct TileIndex {
  std::string name;
  Dim low = 0;                          // low <= index < high
  Dim high = 0;                         // not below low
  std::optional<tile::Span> span = {};  // only of Exec::loop; none: all trips
  bool operator==(const TileIndex&) const = default;
};

namespace tile {

using Scalar = uint32_t;  // position in TileProgram::scalars; each is set once
using Index = int;        // position in TileProgram::indices; each is set once
using BufferId = uint32_t;

struct Statement;
using Block = std::vector<Statement>;

struct Number {
  Scalar result;
  std::variant<int64_t, double> value;  // a double for real types
};

// An index as a number of an integer type.
struct Position {
  Scalar result;
  IndexExpr value;
};

// An elementwise op of the op table, including casts, with the meaning that it has in graphs.
struct Compute {
  Scalar result;
  Op op;
  std::vector<Scalar> operands;
};

// a*b + c of one real type, the product rounded or not.
struct Fma {
  Scalar result, a, b, c;
};

// c and four products: of the bytes of `a`, unsigned, and those of `b`, signed. These are u32, the
// sum is i32 and wraps.
struct Quad {
  Scalar result, a, b, c;
};

// c and two products: of the bf16 of `a` and `b` in the low and the high half. These are u32, the
// sum is f32. Denormal factors and sums may count as 0, and the order of additions is open.
struct Pair {
  Scalar result, a, b, c;
};

// Makes an index of an integer. An integer outside of the index's bounds becomes the nearest
// inside. The bounds are not empty.
struct Choose {
  Index index;
  Scalar value;
};

// A load whose guards do not all hold gives `otherwise`. A load of a word reads a buffer of 8-bit
// integers, of bf16 or of f16. It takes the element and those after it along the last dim, four or
// two in all. The result is a u32 with the first element in its lowest bits.
struct Load {
  Scalar result;
  BufferId buffer;
  std::vector<IndexExpr> index;
  std::vector<Guard> guards = {};
  std::optional<Scalar> otherwise = {};
  bool is_word = false;
};

// Stores if all guards hold. Points that run side by side (threads, unroll, lanes) store to
// different elements.
struct Store {
  BufferId buffer;
  std::vector<IndexExpr> index;
  Scalar value;
  std::vector<Guard> guards = {};
};

// A value that goes from trip to trip. With `combine` (an associative binary op) trips may be taken
// in parts and in any order: `next` is combine(inside, something), or an Fma, Quad or Pair onto
// `inside`.
struct Carry {
  Scalar initial;  // before the first trip
  Scalar inside;   // at the start of a trip
  Scalar next;     // at its end
  Scalar result;   // after the last trip
  std::optional<Opcode> combine = {};
};

// Adds products of matrices of words to sums, on a matrix unit. For each row i and column j, over
// all parts p + q < P and all steps d and words w:
//   sums[s, i * columns + j] += products of the numbers of l and r, the first by the first, ...
//     where l = lhs[a, p, d, i, w], r = rhs[b, q, 16 * d + w, j]
// Sums of f32 are of pairs of bf16, words u32 with the first number in its low half. In which order
// they are taken is the machine's choice, and numbers below the normal ones count as 0. Sums of i32
// are of quads of bytes, P = 1, and wrap; bytes of an i32 are signed, of a u32 unsigned.
// `is_first`: onto 0, whatever the sums hold. All buffers are scratch; columns are
// 16 or 32, words 16 a step, P at most 3, rows 1 to 32. Products of a program have as many rows and
// sums of one type. No unroll or lanes loop is around.
struct Product {
  BufferId sums, lhs, rhs;
  IndexExpr sums_block = 0, lhs_block = 0, rhs_block = 0;
  bool is_first = false;
};

// All threads of a block come here, and the accesses before and after it are kept apart.
struct Barrier {};

// A kernel of Hopper may begin before the one ahead of it has ended. Behind this statement all of
// that has ended, and is seen. It stands in the innermost blocks or threads loop of a phase.
// Before it the phase reads constants alone, and writes to memory of the block or of the thread.
// Whoever launches a program without it waits first.
struct KernelWait {};

// The element of each thread becomes the combination of those of all 32 threads of its warp. First
// it is combined with that of the thread 16 away, then with that of the one 8 away, and so on. The
// buffer is BufferRole::own, the index the same for all threads, and a block has whole warps.
struct WarpCombine {
  BufferId buffer;
  std::vector<IndexExpr> index;
  Opcode combine;
};

// All threads of a block come here, as to a barrier. The index, in [0, 2), becomes 1 if the element
// of some thread is not 0. The buffer is BufferRole::own and of u32. So a loop around products and
// barriers, whose span is about the index, has the same trips for all threads of the block.
struct BlockVote {
  Index index;
  BufferId buffer;
  std::vector<IndexExpr> at;
};

// Starts to copy `count` neighbours, along the last dims, from an input to memory of the block: 4,
// 8 or 16 bytes that begin at a multiple of as many. They are zeros if some guard does not hold.
// The thread has them once it has waited for the group of the copy, other threads behind a barrier
// that comes after that.
struct AsyncCopy {
  BufferId to;
  std::vector<IndexExpr> to_index;
  BufferId from;
  std::vector<IndexExpr> from_index;
  int64_t count = 1;
  std::vector<Guard> guards = {};
};

// The copies that each thread has started since its last group are a group.
struct CopyGroup {};

// Each thread waits until at most `open` of its groups are under way.
struct CopyWait {
  int64_t open = 0;
};
inline constexpr int64_t kMostOpenGroups = 7;

// The threads of each warp load 1, 2 or 4 matrices together, from memory of the block to numbers of
// their own. A matrix has 8 rows of 16 bytes, four words of u32 each: of bf16, f16 or f32. In the
// threads loop around the statement, thread 8 * m + r of a warp says where row r of matrix m
// begins: at a multiple of 16 bytes. Other threads' places do not count. Thread t gets word t mod 4
// of row t / 4 of each matrix m, as number m along the last dim; `to_index` has the dims before.
struct MatrixLoad {
  BufferId to;
  std::vector<IndexExpr> to_index;
  BufferId from;
  std::vector<IndexExpr> from_index;
  int64_t count = 1;
};
inline constexpr int64_t kMatrixRows = 8, kMatrixRowBytes = 16;
// The elements along the last dim.
inline int64_t numbers_of(const TileBuffer& buffer) {
  return buffer.type.dim(buffer.type.rank() - 1).value();
}

// The threads of each warp add the product of a matrix of 16 rows and one of 8 columns to sums of
// f32. A factor is a word of u32: two bf16, two f16, or one f32 without its last 13 bits. A row or
// column has 8 words. Thread t of the warp has
//   of the sums    [2 * h + e]: row t / 4 + 8 * h, column 2 * (t mod 4) + e
//   of the rows    [h + 2 * q]: row t / 4 + 8 * h, word t mod 4 + 4 * q
//   of the columns [q]:         column t / 4, word t mod 4 + 4 * q
// with e, h and q of 0 and 1. Products are added word by word; on a GPU the order is open. The
// buffers are BufferRole::own, and have these numbers along their last dims; an index has the dims
// before.
struct WarpProduct {
  BufferId sums, lhs, rhs;
  std::vector<IndexExpr> sums_index, lhs_index, rhs_index;
  DType numbers = DType::bf16;
};
inline constexpr uint32_t kFactorBits = 0xffffe000;  // of an f32
inline constexpr int64_t kProductRows = 16, kProductColumns = 8, kProductWords = 8;
// Where a sum and the words of factors are: the thread of the warp, and its number there.
struct LanePlace {
  int64_t lane, number;
};
constexpr LanePlace place_of_sum(int64_t row, int64_t column) {
  return {row % 8 * 4 + column / 2, row / 8 * 2 + column % 2};
}
constexpr LanePlace place_of_row(int64_t row, int64_t word) {
  return {row % 8 * 4 + word % 4, row / 8 + word / 4 * 2};
}
constexpr LanePlace place_of_column(int64_t column, int64_t word) {
  return {column * 4 + word % 4, word / 4};
}

// ---- Copies and products on Hopper --------------------------------------------------------------
// Units of their own carry these out. Their reads and writes of memory take another way than those
// of threads (the asynchronous proxy). So a ProxyFence stands between stores of threads and them.

// A counter of phases, in a buffer of BufferRole::block and u64 that has nothing else. A phase ends
// when all of its arrivals and all bytes that it expects have come; the next one begins. The first
// thread of a threads loop of one trip makes it, behind which all threads of the block come to a
// barrier before it is used. It is made once a block.
struct MbarrierInit {
  BufferId buffer;
  std::vector<IndexExpr> index;
  int64_t arrivals = 1;  // of a phase
};
inline constexpr int64_t kMostArrivals = (int64_t{1} << 20) - 1;

// One arrival, of a thread. This phase has to get the bytes, too.
struct MbarrierExpect {
  BufferId buffer;
  std::vector<IndexExpr> index;
  int64_t bytes = 0;
};
inline constexpr int64_t kMostExpectedBytes = (int64_t{1} << 20) - 1;

// All threads of a block wait until the last phase that began with this parity, 0 or 1, has ended.
// Phase n has the parity n mod 2. So a wait for 1 does not wait before the first phase has ended.
// They have what was copied for that phase.
struct MbarrierWait {
  BufferId buffer;
  std::vector<IndexExpr> index;
  IndexExpr parity = 0;
};

// Starts to copy a box from an input to a swizzled buffer: `rows` rows of 128 bytes. In the input
// they are neighbours along `axis`, their elements along the last dim; other dims have one point.
// `to_index` has the dims before the last one, and is that of the first row, a multiple of 8. The
// box may begin or end outside of the input: what lies there are zeros, and nothing is read. When
// all of it has come, the barrier has its bytes less to wait for, zeros too. A thread of a threads
// loop of one trip starts it. Rows of the input are multiples of 16 bytes, of numbers of 16 or 32
// bits.
struct TensorCopy {
  BufferId to;
  std::vector<IndexExpr> to_index;
  BufferId from;
  std::vector<IndexExpr> from_index;
  int axis = 0;
  int64_t rows = 8;  // a multiple of 8
  BufferId barrier;
  std::vector<IndexExpr> barrier_index;
};
inline constexpr int64_t kMostBoxRows = 256, kMostBoxDims = 5;

// Such units see behind it, and behind a barrier, what threads stored to memory of the block
// before.
struct ProxyFence {};

// The threads of each warpgroup, 128 of them, add the product of 64 rows and `columns` columns to
// sums of f32. These lines are rows of swizzled buffers: bf16, f16, or tf32 (kFactorBits of f32).
// One of 16 bits may lie across, with the reduction down its rows: row k has number k of 64 lines.
// The indices have the dims before the last one, and are those of the first row, a multiple of 8.
// The operand of warpgroup g begins 64 * g rows behind it. Thread t of the group has sums
// along the last two dims, [j, 2 * h + e]. Their row is 16 * (t / 32) + t mod 32 / 4 + 8 * h, their
// column 8 * j + 2 * (t mod 4) + e. `sums_index` has the dims before. Products are added number by
// number; on a GPU the order is open.
struct GroupProduct {
  BufferId sums, lhs, rhs;
  std::vector<IndexExpr> sums_index, lhs_index, rhs_index;
  int64_t columns = 8;  // multiples of 64 of an operand across
  DType numbers = DType::bf16;
  bool lhs_across = false, rhs_across = false;
};
inline constexpr int64_t kGroupThreads = 128, kGroupRows = 64, kMostGroupColumns = 256;
// Where a sum is: the thread of the warpgroup, and its number along the last two dims.
constexpr LanePlace place_of_group_sum(int64_t row, int64_t column) {
  const LanePlace place = place_of_sum(row % 16, column % 8);
  return {row / 16 * 32 + place.lane, column / 8 * 4 + place.number};
}

// The index counts from 0; its bounds in TileProgram::indices are [0, extent).
struct Loop {
  Index index;
  Exec exec;
  // All with `combine`, in unroll and lanes loops; none, in threads and blocks loops.
  std::vector<Carry> carried = {};
  Block body;
};

struct Statement {
  std::variant<Number, Position, Compute, Fma, Quad, Pair, Choose, Load, Store, Product, Loop,
               Barrier, WarpCombine, BlockVote, AsyncCopy, CopyGroup, CopyWait, MatrixLoad,
               WarpProduct, MbarrierInit, MbarrierExpect, MbarrierWait, TensorCopy, ProxyFence,
               GroupProduct, KernelWait>
      kind;
};

}  // namespace tile

struct TileProgram {
  std::string name;
  std::vector<TileBuffer> buffers;  // inputs, then outputs, then the others
  std::vector<TileIndex> indices;
  std::vector<DType> scalars;
  std::vector<tile::Loop> phases;  // a phase that is not a threads loop runs on one thread
};

inline constexpr int64_t kMostBlockThreads = 1024;

// Types, order, bounds of every access, one definition of everything.
Status verify(const TileProgram& program);

std::string print(const TileProgram& program);
Result<TileProgram> parse_tiles(std::string_view text, std::string_view file = "<text>");

}  // namespace hone
