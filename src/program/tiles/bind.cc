#include "program/tiles/bind.h"

#include <algorithm>

namespace hone {

namespace {

using namespace tile;

// The algebra's members hide the functions of these names.
IndexExpr bound_quotient(IndexExpr a, Dim positive) { return floordiv(std::move(a), positive); }
IndexExpr bound_remainder(IndexExpr a, Dim positive) { return mod(std::move(a), positive); }

// An index expression with the dims that `change` gives for its own.
template <class Change>
struct DimAlgebra {
  const Change& change;
  IndexExpr number(Dim dim) const { return change(dim); }
  IndexExpr iter(int i) const { return IndexExpr::iter(i); }
  IndexExpr add(IndexExpr a, IndexExpr b) const { return std::move(a) + std::move(b); }
  IndexExpr multiply(IndexExpr a, Dim factor) const { return std::move(a) * change(factor); }
  IndexExpr floordiv(IndexExpr a, Dim positive) const {
    return bound_quotient(std::move(a), change(positive));
  }
  IndexExpr mod(IndexExpr a, Dim positive) const {
    return bound_remainder(std::move(a), change(positive));
  }
};

// Shows every dim of an index expression to `read`.
template <class Read>
struct DimReader {
  struct Nothing {};
  const Read& read;
  Nothing number(Dim dim) const {
    read(dim);
    return {};
  }
  Nothing iter(int /*i*/) const { return {}; }
  Nothing add(Nothing, Nothing) const { return {}; }
  Nothing multiply(Nothing, Dim factor) const { return number(factor); }
  Nothing floordiv(Nothing, Dim positive) const { return number(positive); }
  Nothing mod(Nothing, Dim positive) const { return number(positive); }
};

template <class AnyAccess, class OnExpr, class OnDim>
void each_guard(AnyAccess& access, const OnExpr& expr, const OnDim& dim) {
  for (auto& guard : access.guards) {
    expr(guard.value);
    dim(guard.lower);
    dim(guard.upper);
  }
}

// Calls `expr` with each index expression of a loop's statements, `dim` with each dim outside of
// them. Elementwise ops have no sizes.
template <class AnyLoop, class OnExpr, class OnDim>
void each_size(AnyLoop& loop, const OnExpr& expr, const OnDim& dim) {
  for (auto& statement : loop.body) {
    std::visit(
        [&](auto& s) {
          using S = std::remove_cvref_t<decltype(s)>;
          if constexpr (std::is_same_v<S, Loop>) {
            each_size(s, expr, dim);
          } else if constexpr (std::is_same_v<S, Position>) {
            expr(s.value);
          } else if constexpr (std::is_same_v<S, Product>) {
            for (auto* each : {&s.sums_block, &s.lhs_block, &s.rhs_block}) expr(*each);
          } else if constexpr (std::is_same_v<S, WarpCombine> || std::is_same_v<S, MbarrierInit> ||
                               std::is_same_v<S, MbarrierExpect>) {
            for (auto& each : s.index) expr(each);
          } else if constexpr (std::is_same_v<S, BlockVote>) {
            for (auto& each : s.at) expr(each);
          } else if constexpr (std::is_same_v<S, MbarrierWait>) {
            for (auto& each : s.index) expr(each);
            expr(s.parity);
          } else if constexpr (std::is_same_v<S, TensorCopy>) {
            for (auto* index : {&s.to_index, &s.from_index, &s.barrier_index})
              for (auto& each : *index) expr(each);
          } else if constexpr (std::is_same_v<S, WarpProduct> || std::is_same_v<S, GroupProduct>) {
            for (auto* index : {&s.sums_index, &s.lhs_index, &s.rhs_index})
              for (auto& each : *index) expr(each);
          } else if constexpr (std::is_same_v<S, MatrixLoad>) {
            for (auto* index : {&s.to_index, &s.from_index})
              for (auto& each : *index) expr(each);
          } else if constexpr (std::is_same_v<S, AsyncCopy>) {
            for (auto* index : {&s.to_index, &s.from_index})
              for (auto& each : *index) expr(each);
            each_guard(s, expr, dim);
          } else if constexpr (std::is_same_v<S, Load> || std::is_same_v<S, Store>) {
            for (auto& each : s.index) expr(each);
            each_guard(s, expr, dim);
          }
        },
        statement.kind);
  }
}

}  // namespace

std::vector<Symbol> symbols_of(const TileProgram& program) {
  std::vector<Symbol> symbols;
  auto add = [&](Dim dim) {
    if (!dim.is_static())
      for (Symbol symbol : dim.symbols())
        if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(symbol);
  };
  for (const TileBuffer& buffer : program.buffers) std::ranges::for_each(buffer.type.dims(), add);
  const DimReader<decltype(add)> reader{add};
  for (const TileIndex& index : program.indices) {
    add(index.low);
    add(index.high);
    if (!index.span) continue;
    index.span->first.compute(reader);
    index.span->end.compute(reader);
  }
  for (const Loop& phase : program.phases)
    each_size(phase, [&](const IndexExpr& expr) { expr.compute(reader); }, add);
  return symbols;
}

Result<TileProgram> specialize(const TileProgram& program, const Bindings& bindings) {
  for (Symbol symbol : symbols_of(program))
    if (auto found = bindings.find(symbol.name()); found != bindings.end())
      HONE_TRY(check_binding(symbol, found->second));
  TileProgram bound = program;
  for (TileBuffer& buffer : bound.buffers) buffer.type = HONE_TRY(buffer.type.bind(bindings));
  auto value = [&](Dim dim) { return dim.bind(bindings); };
  const DimAlgebra<decltype(value)> algebra{value};
  for (TileIndex& index : bound.indices) {
    index.low = value(index.low);
    index.high = value(index.high);
    if (index.span)
      index.span = {index.span->first.compute(algebra), index.span->end.compute(algebra)};
  }
  for (Loop& phase : bound.phases)
    each_size(
        phase, [&](IndexExpr& expr) { expr = expr.compute(algebra); },
        [&](Dim& dim) { dim = value(dim); });
  return bound;
}

}  // namespace hone
