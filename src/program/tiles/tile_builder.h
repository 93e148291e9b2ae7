#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "program/tiles/tiles.h"

namespace hone {

// Writes a TileProgram in code that reads like its text:
//
//   TileBuilder b("sum");
//   auto x = b.buffer("x", type, BufferRole::input);
//   b.loop(Exec::threads, "i", 64, [&](IndexExpr i) {
//     auto zero = b.real(DType::f32, 0);
//     auto sum = b.carry(Exec::loop, "k", 784, zero, Opcode::add, [&](IndexExpr k, tile::Scalar
//     acc) {
//       return b.compute(Opcode::add, {acc, b.load(x, {i, k})});
//     });
//     b.store(y, {i}, sum);
//   });
//   TileProgram program = std::move(b).finish();
//
// verify() finds mistakes.
class TileBuilder {
 public:
  using Scalar = tile::Scalar;
  using Indices = std::vector<IndexExpr>;

  explicit TileBuilder(std::string_view name) { program_.name = name; }

  // Adds a buffer under the name, or a similar one if it is taken. Inputs come first, then outputs,
  // then the others.
  tile::BufferId buffer(std::string_view name, Type type, BufferRole role);
  void set_donor(tile::BufferId output, tile::BufferId input) {
    program_.buffers[output].donor = input;
  }

  // With a span, over a part of the trips.
  void loop(Exec exec, std::string_view name, Dim extent,
            const std::function<void(IndexExpr)>& body, std::optional<tile::Span> span = {});
  // A loop that carries a value: `step` makes the next one.
  using Step = std::function<Scalar(IndexExpr, Scalar)>;
  Scalar carry(Exec exec, std::string_view name, Dim extent, Scalar initial,
               std::optional<Opcode> combine, const Step& step,
               std::optional<tile::Span> span = {});
  // Several values, in order.
  using Steps = std::function<std::vector<Scalar>(IndexExpr, const std::vector<Scalar>&)>;
  std::vector<Scalar> carry(std::string_view name, Dim extent, const std::vector<Scalar>& initial,
                            const Steps& steps);

  Scalar real(DType dtype, double value);
  Scalar integer(DType dtype, int64_t value);  // of bool and integer types
  Scalar zero(DType dtype);
  Scalar position(DType dtype, IndexExpr value);
  Scalar compute(Op op, std::vector<Scalar> operands);
  Scalar compute(Opcode opcode, std::vector<Scalar> operands, Attrs attrs = {}) {
    return compute(Op::get(opcode, std::move(attrs)), std::move(operands));
  }
  Scalar cast(Scalar value, DType dtype);  // the value itself if it has the type
  Scalar fma(Scalar a, Scalar b, Scalar c);
  Scalar quad(Scalar a, Scalar b, Scalar c);
  Scalar pair(Scalar a, Scalar b, Scalar c);
  Scalar load(tile::BufferId buffer, Indices index);
  Scalar load(tile::BufferId buffer, Indices index, std::vector<Guard> guards, Scalar otherwise);
  // Loads four neighbours from the index on; without guards there is no `otherwise`.
  Scalar load_word(tile::BufferId buffer, Indices index, std::vector<Guard> guards = {},
                   Scalar otherwise = 0);
  void store(tile::BufferId buffer, Indices index, Scalar value, std::vector<Guard> guards = {});
  void product(tile::Product product);
  void barrier() { add({tile::Barrier()}); }
  void combine(tile::BufferId buffer, Indices index, Opcode combine) {
    add({tile::WarpCombine{buffer, std::move(index), combine}});
  }
  IndexExpr vote(std::string_view name, tile::BufferId buffer, Indices at);
  void copy(tile::AsyncCopy copy) { add({std::move(copy)}); }
  void group() { add({tile::CopyGroup()}); }
  void wait(int64_t open) { add({tile::CopyWait{open}}); }
  void matrices(tile::MatrixLoad load) { add({std::move(load)}); }
  void product(tile::WarpProduct product) { add({std::move(product)}); }
  void set_swizzled(tile::BufferId buffer) { program_.buffers[buffer].is_swizzled = true; }
  void init(tile::BufferId barrier, Indices index) {
    add({tile::MbarrierInit{barrier, std::move(index)}});
  }
  void expect(tile::BufferId barrier, Indices index, int64_t bytes) {
    add({tile::MbarrierExpect{barrier, std::move(index), bytes}});
  }
  void await(tile::BufferId barrier, Indices index, IndexExpr parity) {
    add({tile::MbarrierWait{barrier, std::move(index), std::move(parity)}});
  }
  void fetch(tile::TensorCopy copy) { add({std::move(copy)}); }
  void fence() { add({tile::ProxyFence()}); }
  void group_product(tile::GroupProduct product) { add({std::move(product)}); }
  // The nearest index in [low, high).
  IndexExpr choose(std::string_view name, Dim low, Dim high, Scalar value);

  // ---- Places. The loops that are open have depths, the phase 1. ------------------------------
  int depth() const { return static_cast<int>(open_.size()); }
  // Statements that `body` adds stand in the open loop at `depth`, before the open loops inside of
  // it.
  void within(int depth, const std::function<void()>& body);
  // The least depth where all indices of the expression are known; 0 if there are none.
  int depth_of(const IndexExpr& expr) const;
  // The least depth where statements that are needed here may stand: not between threads loops, nor
  // outside of a loop that may have no trips.
  int outermost() const;
  // Identifies the open loop at `depth`.
  uint32_t loop_at(int depth) const { return open_[static_cast<size_t>(depth - 1)].number; }
  bool is_open(Exec exec) const;
  // True if the expression may differ between trips that run side by side.
  bool is_side_by_side(const IndexExpr& expr) const;

  DType dtype(Scalar scalar) const { return program_.scalars[scalar]; }
  const TileProgram& program() const { return program_; }  // so far, without what is open
  TileProgram finish() && { return std::move(program_); }

 private:
  struct Open {
    tile::Block* body;
    Exec exec;
    bool has_trips;  // for sure
    uint32_t number;
    std::vector<std::string> names;  // of the indices that are known from here on
  };

  Scalar scalar(DType dtype);
  // Under the name, or one made from it if it is taken.
  tile::Index index(std::string_view name, Dim low, Dim high, int depth);
  // One that a statement defines, seen in the rest of the body around it.
  tile::Index made_index(std::string_view name, Dim low, Dim high);
  bool is_taken(std::string_view name) const;
  void add(tile::Statement statement);
  template <class Fill>
  void add_loop(tile::Loop loop, const Fill& fill);

  TileProgram program_;
  std::vector<Open> open_;       // the loops around what comes next
  std::vector<Open> set_aside_;  // those inside of the place that within() chose
  std::vector<int> index_depths_;
  uint32_t loops_ = 0;
};

}  // namespace hone
