#include "codegen/emit/variance.h"

namespace hone::code {

namespace {

using namespace tile;

bool is_lockstep(Exec exec) { return exec == Exec::unroll || exec == Exec::lanes; }

// Goes over the program until nothing changes any more, because the values that a loop carries
// depend on those that it computes.
class Spread {
 public:
  explicit Spread(Variance& variance) : v_(variance) {}

  bool changes(const TileProgram& program) {
    changed_ = false;
    for (const Loop& phase : program.phases) visit(phase, 0);
    return changed_;
  }

 private:
  void add(Scalar scalar, LoopSet loops) { grow(v_.scalars[scalar], loops); }
  void grow(LoopSet& to, LoopSet loops) {
    changed_ = changed_ || (loops & ~to) != 0;
    to |= loops;
  }
  LoopSet of(Scalar scalar) const { return v_.scalars[scalar]; }

  void visit(const Block& body, int depth) {
    for (const Statement& statement : body)
      std::visit([&](const auto& s) { visit(s, depth); }, statement.kind);
  }
  void visit(const Number&, int) {}
  void visit(const Position& s, int) { add(s.result, v_.of(s.value)); }
  void visit(const Compute& s, int) {
    for (Scalar operand : s.operands) add(s.result, of(operand));
  }
  void visit(const Fma& s, int) { add(s.result, of(s.a) | of(s.b) | of(s.c)); }
  void visit(const Quad& s, int) { add(s.result, of(s.a) | of(s.b) | of(s.c)); }
  void visit(const Pair& s, int) { add(s.result, of(s.a) | of(s.b) | of(s.c)); }
  void visit(const Choose& s, int) { grow(v_.indices[static_cast<size_t>(s.index)], of(s.value)); }
  void visit(const Load& s, int) {
    add(s.result, v_.of(s.index, s.guards) | (s.otherwise ? of(*s.otherwise) : 0));
  }
  void visit(const Store&, int) {}
  void visit(const Product&, int) {}
  void visit(const Barrier&, int) {}
  void visit(const WarpCombine&, int) {}
  void visit(const BlockVote&, int) {}
  void visit(const AsyncCopy&, int) {}
  void visit(const CopyGroup&, int) {}
  void visit(const CopyWait&, int) {}
  void visit(const MatrixLoad&, int) {}
  void visit(const WarpProduct&, int) {}
  void visit(const MbarrierInit&, int) {}
  void visit(const MbarrierExpect&, int) {}
  void visit(const MbarrierWait&, int) {}
  void visit(const TensorCopy&, int) {}
  void visit(const ProxyFence&, int) {}
  void visit(const GroupProduct&, int) {}
  void visit(const KernelWait&, int) {}

  void visit(const Loop& s, int depth) {
    const LoopSet self = is_lockstep(s.exec) ? LoopSet{1} << depth : 0;
    grow(v_.indices[static_cast<size_t>(s.index)], self);
    for (const Carry& carry : s.carried) add(carry.inside, self | of(carry.initial));
    visit(s.body, self != 0 ? depth + 1 : depth);
    for (const Carry& carry : s.carried) {
      add(carry.inside, of(carry.next));
      add(carry.result, (of(carry.inside) | of(carry.initial)) & ~self);
    }
  }

  Variance& v_;
  bool changed_ = false;
};

struct MentionsAlgebra {
  const Variance& variance;
  LoopSet number(Dim) const { return 0; }
  LoopSet iter(int i) const { return variance.indices[static_cast<size_t>(i)]; }
  LoopSet add(LoopSet a, LoopSet b) const { return a | b; }
  LoopSet multiply(LoopSet a, Dim) const { return a; }
  LoopSet floordiv(LoopSet a, Dim) const { return a; }
  LoopSet mod(LoopSet a, Dim) const { return a; }
};

Status check_lockstep(const TileProgram& program, const Block& body, int depth, bool in_lanes) {
  for (const Statement& statement : body) {
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr) continue;
    const TileIndex& index = program.indices[static_cast<size_t>(loop->index)];
    const bool is_lanes = loop->exec == Exec::lanes;
    if (is_lockstep(loop->exec)) {
      if (!index.high.is_static())
        return unsupported("{} loop {} has {} trips; code needs a number", name(loop->exec),
                           index.name, index.high.to_string());
      if (depth + 1 > kMaxLockstepDepth)
        return over_limit("unroll and lanes loops are nested more than {} deep", kMaxLockstepDepth);
      if (is_lanes && in_lanes)
        return unsupported("lanes loop {} stands inside of another one", index.name);
    }
    HONE_TRY(check_lockstep(program, loop->body, depth + (is_lockstep(loop->exec) ? 1 : 0),
                            in_lanes || is_lanes));
  }
  return {};
}

Status check_spans(const TileProgram& program, const Variance& variance, const Block& body) {
  for (const Statement& statement : body) {
    const Loop* loop = std::get_if<Loop>(&statement.kind);
    if (loop == nullptr) continue;
    const TileIndex& index = program.indices[static_cast<size_t>(loop->index)];
    if (index.span && (variance.of(index.span->first) | variance.of(index.span->end)) != 0)
      return unsupported("what runs side by side takes different trips of loop {}", index.name);
    HONE_TRY(check_spans(program, variance, loop->body));
  }
  return {};
}

}  // namespace

Variance::Variance(const TileProgram& program)
    : scalars(program.scalars.size()), indices(program.indices.size()) {
  while (Spread(*this).changes(program)) {
  }
}

LoopSet Variance::of(const IndexExpr& expr) const {
  MentionsAlgebra algebra{*this};
  return expr.compute(algebra);
}

LoopSet Variance::of(const std::vector<IndexExpr>& index, const std::vector<Guard>& guards) const {
  LoopSet loops = 0;
  for (const IndexExpr& expr : index) loops |= of(expr);
  for (const Guard& guard : guards) loops |= of(guard.value);
  return loops;
}

Status check_lockstep(const TileProgram& program) {
  for (const Loop& phase : program.phases) {
    Block block;
    block.push_back({phase});
    HONE_TRY(check_lockstep(program, block, 0, false));
  }
  const Variance variance(program);  // of loops that are no deeper than it can count
  for (const Loop& phase : program.phases) HONE_TRY(check_spans(program, variance, phase.body));
  return {};
}

}  // namespace hone::code
