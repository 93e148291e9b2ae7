#include "program/tiles/bind.h"

#include <algorithm>

namespace hone {

namespace {

using namespace tile;

// The algebra's members hide the functions of these names.
IndexExpr quotient(IndexExpr a, Dim positive) { return floordiv(std::move(a), positive); }
IndexExpr remainder(IndexExpr a, Dim positive) { return mod(std::move(a), positive); }

// An index expression with the dims that `change` gives for its own.
template <class Change>
struct DimAlgebra {
  const Change& change;
  IndexExpr number(Dim dim) const { return change(dim); }
  IndexExpr iter(int i) const { return IndexExpr::iter(i); }
  IndexExpr add(IndexExpr a, IndexExpr b) const { return std::move(a) + std::move(b); }
  IndexExpr multiply(IndexExpr a, Dim factor) const { return std::move(a) * change(factor); }
  IndexExpr floordiv(IndexExpr a, Dim positive) const {
    return quotient(std::move(a), change(positive));
  }
  IndexExpr mod(IndexExpr a, Dim positive) const {
    return remainder(std::move(a), change(positive));
  }
};

// Passes every dim of statements to `change` and stores what it gives.
template <class Change>
class DimChanger {
 public:
  explicit DimChanger(const Change& change) : change_(change) {}

  void visit(Loop& loop) const {
    for (Statement& statement : loop.body) std::visit([&](auto& s) { visit(s); }, statement.kind);
  }

 private:
  void visit(Number& /*s*/) const {}
  void visit(Fma& /*s*/) const {}
  void visit(Choose& /*s*/) const {}
  void visit(Compute& /*s*/) const {}  // elementwise ops have no sizes
  void visit(Position& s) const { visit(s.value); }
  void visit(Load& s) const { access(s.index, s.guards); }
  void visit(Store& s) const { access(s.index, s.guards); }
  void access(std::vector<IndexExpr>& index, std::vector<Guard>& guards) const {
    for (IndexExpr& expr : index) visit(expr);
    for (Guard& guard : guards) {
      visit(guard.value);
      guard.lower = change_(guard.lower);
      guard.upper = change_(guard.upper);
    }
  }
  void visit(IndexExpr& expr) const {
    DimAlgebra<Change> algebra{change_};
    expr = expr.compute(algebra);
  }

  const Change& change_;
};

template <class Change>
void change_dims(std::vector<Loop>& phases, const Change& change) {
  for (Loop& phase : phases) DimChanger<Change>(change).visit(phase);
}

}  // namespace

std::vector<Symbol> symbols_of(const TileProgram& program) {
  std::vector<Symbol> symbols;
  auto add = [&](Dim dim) {
    if (!dim.is_static())
      for (Symbol symbol : dim.symbols())
        if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
    return dim;
  };
  for (const TileBuffer& buffer : program.buffers) std::ranges::for_each(buffer.type.dims(), add);
  for (const TileIndex& index : program.indices) {
    add(index.low);
    add(index.high);
  }
  std::vector<Loop> phases = program.phases;
  change_dims(phases, add);
  return symbols;
}

Result<TileProgram> specialize(const TileProgram& program, const Bindings& bindings) {
  for (Symbol symbol : symbols_of(program))
    if (auto found = bindings.find(symbol.name()); found != bindings.end())
      HONE_TRY(check_binding(symbol, found->second));
  TileProgram bound = program;
  for (TileBuffer& buffer : bound.buffers) buffer.type = HONE_TRY(buffer.type.bind(bindings));
  auto value = [&](Dim dim) { return dim.bind(bindings); };
  for (TileIndex& index : bound.indices) {
    index.low = value(index.low);
    index.high = value(index.high);
  }
  change_dims(bound.phases, value);
  return bound;
}

}  // namespace hone
