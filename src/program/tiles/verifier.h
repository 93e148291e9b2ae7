#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "program/tiles/bounds.h"
#include "program/tiles/tiles.h"

// The state of a program that is verified, for the files that check its statements.

namespace hone::tile {

class Verifier {
 public:
  explicit Verifier(const TileProgram& program);
  Status run();

 private:
  // The place of a statement: at the top of the program, right below a blocks loop, between the
  // threads loops of a block, right below a threads loop, or deeper.
  enum class Place : uint8_t { top, blocks, block, threads, inside };
  enum class Use : uint8_t { none, numbers, mbarriers };
  struct Element {
    BufferId output;
    std::vector<IndexExpr> index;
    int depth;  // of the body
    bool is(const Element& other) const { return output == other.output && index == other.index; }
  };

  // ---- Buffers, statements of a thread, and names (verify.cc) -----------------------------------
  static int place(BufferRole role);
  Status buffers();
  static Status check_swizzled(const TileBuffer& buffer);
  Status donors();
  Status body(const Block& statements, Place place);
  template <class... Kinds>
  static bool is_any_of(const Statement& statement) {
    return (std::holds_alternative<Kinds>(statement.kind) || ...);
  }
  void leave(const Block& statements);
  template <class S>
  void leave_scope(const S& s) {
    if constexpr (requires { s.result; }) in_scope_[s.result] = false;
  }
  void leave_scope(const Choose& s) { index_in_scope_[static_cast<size_t>(s.index)] = false; }
  void leave_scope(const BlockVote& s) { index_in_scope_[static_cast<size_t>(s.index)] = false; }
  void leave_scope(const Loop& s) {
    for (const Carry& carry : s.carried) in_scope_[carry.result] = false;
  }
  static bool is_threads_loop(const Statement& statement);
  Status check(const Number& s, Place /*place*/);
  Status check(const Position& s, Place /*place*/);
  Status check(const Compute& s, Place /*place*/);
  Status check(const Fma& s, Place /*place*/);
  Status check(const Quad& s, Place /*place*/);
  Status check(const Pair& s, Place /*place*/);
  template <class Sum>
  Status sum_of_words(std::string_view what, const Sum& s, DType sum) {
    for (Scalar operand : {s.a, s.b, s.c}) HONE_TRY(use(operand));
    HONE_TRY(define(s.result));
    const auto is = [&](Scalar scalar, DType dtype) { return type(scalar) == dtype; };
    if (is(s.a, DType::u32) && is(s.b, DType::u32) && is(s.c, sum) && is(s.result, sum)) return {};
    return bad_input("{} takes two words of u32 and adds to {}", what, name(sum));
  }
  Status check(const Choose& s, Place /*place*/);
  Status check(const Load& s, Place /*place*/);
  Status check_word(const Load& s);
  Status from_donor(const Load& s);
  Status check(const Store& s, Place /*place*/);
  Status check(const Product& s, Place /*place*/);
  DType type(Scalar s) const { return program_.scalars[s]; }
  Status define(Scalar s);
  Status use(Scalar s) const;
  Status define_index(Index i);
  Status known(const IndexExpr& expr) const;
  Status same_type(BufferId buffer, Scalar s) const;
  Status access(BufferId id, const std::vector<IndexExpr>& index, const std::vector<Guard>& guards,
                Use use = Use::numbers);

  // ---- Loops (verify_loops.cc) ------------------------------------------------------------------
  Status check(const Loop& s, Place place);
  bool keeps_whole_warps(const Loop& s, Place place) const;
  bool keeps_one_thread(const Loop& s, Place place) const;
  bool are_numbers(const Block& statements) const;
  static Place inside_of(const Loop& s, Place place);
  Status check_divided(const Loop& s, Place place) const;
  Status check_span(const Loop& s, const TileIndex& index);
  Status check_carry(const Loop& loop, const Carry& carry, std::string_view index);
  static bool accumulates(const Block& body, Scalar next, Scalar inside, Opcode combine);
  static int64_t uses(const Block& body, Scalar scalar);

  // ---- What the threads of a block do together (verify_blocks.cc) -------------------------------
  static Status check_block_level(const Statement& statement, const Block& all, Place place);
  Status check(const Barrier& /*s*/, Place /*place*/);
  Status check(const KernelWait& /*s*/, Place place);
  bool is_of_others(const TileBuffer& buffer) const;
  Status check(const WarpCombine& s, Place /*place*/);
  Status check(const BlockVote& s, Place /*place*/);
  Status check(const CopyGroup& /*s*/, Place /*place*/);
  Status check(const CopyWait& s, Place /*place*/);
  Status check(const AsyncCopy& s, Place /*place*/);
  Status check_begins_piece(std::string_view what, const TileBuffer& buffer,
                            const std::vector<IndexExpr>& index, int64_t count) const;
  bool is_multiple(const IndexExpr& expr, int64_t of) const;
  Status check(const MatrixLoad& s, Place /*place*/);
  Status is_known_to_warp(const IndexExpr& expr) const;
  Status check_matrix_numbers(const MatrixLoad& s);
  Status check(const WarpProduct& s, Place /*place*/);
  Status check_factors(BufferId id, std::vector<IndexExpr> index, DType dtype, int64_t numbers);

  // ---- Copies and products on Hopper (verify_groups.cc) -----------------------------------------
  Status check_one_thread(std::string_view what) const;
  Status check_mbarrier(BufferId id, const std::vector<IndexExpr>& index);
  Status check(const MbarrierInit& s, Place /*place*/);
  Status check(const MbarrierExpect& s, Place /*place*/);
  Status check(const MbarrierWait& s, Place /*place*/);
  Status check(const TensorCopy& s, Place /*place*/);
  Status check_box(const TensorCopy& s, const TileBuffer& from) const;
  bool may_be_copied(BufferId id) const;
  Status check_rows(std::string_view what, BufferId id, std::vector<IndexExpr> index, int64_t rows);
  Status check(const ProxyFence& /*s*/, Place /*place*/);
  Status check(const GroupProduct& s, Place /*place*/);

  const TileProgram& program_;
  const TileBounds bounds_;
  std::vector<std::optional<BufferId>> output_in_;  // by input: the output that may lie in it
  std::vector<Element> to_be_stored_, stored_;      // in the bodies at hand
  int depth_ = 0;
  std::optional<std::pair<int64_t, bool>> product_kind_;  // rows, whether of quads: of all of them
  std::vector<bool> defined_, in_scope_;
  std::vector<bool> index_defined_, index_in_scope_, is_chosen_;
  std::vector<Use> use_;          // of buffers
  const Loop* phase_ = nullptr;   // at hand
  bool in_block_ = false;         // in a blocks loop
  int64_t block_threads_ = 0;     // of the phase, if it has blocks loops of numbers of threads
  bool has_waited_ = true;        // for kernels before this one, or need not
  bool is_one_thread_ = false;    // in a threads loop of a block that has one trip
  bool has_whole_warps_ = false;  // in a threads loop of a block, where no thread leaves its warp
  int lockstep_ = 0;              // unroll and lanes loops around the statement at hand
  int unreachable_ = 0;           // loops without trips around the statement at hand
};

}  // namespace hone::tile
