#include "codegen/emit/emitter.h"
#include "tensor/dim_compute.h"

namespace hone::code {

struct DimAlgebra {
  Emitter& e;

  Value number(int64_t n) { return e.code_.integer(e.code_.i(64), n); }
  Value symbol(Symbol symbol) { return e.around_.symbols.at(symbol.name()); }
  Value add(Value a, Value b) { return e.code_.add(a, b); }
  Value multiply(Value a, Value b) { return e.code_.mul(a, b); }
  // Unsigned division of what is lifted above 0.
  Value divide(Value a, int64_t low, int64_t positive) {
    const int64_t lift = lift_of(low, positive);
    if (lift != 0) a = add(a, number(lift * positive));
    const Value quotient = e.b_.create<mlir::arith::DivUIOp>(a, number(positive));
    return lift == 0 ? quotient : e.code_.sub(quotient, number(lift));
  }
};

Value Emitter::dim(Dim dim) {
  DimAlgebra algebra{*this};
  return compute_dim(dim, algebra);
}

// A number, or a vector of one per lane.
struct IndexAlgebra {
  struct Part {
    Value value;
    bool is_negative;  // may be
  };
  Emitter& e;
  const Trips& trips;

  Part number(Dim dim) { return {e.dim(dim), dim.range().low < 0}; }
  Part iter(int i) {
    const auto position = static_cast<size_t>(i);
    const bool may = e.program_.indices[position].low.range().low < 0;
    const Lockstep::Open* lanes = e.open_.lanes();
    if (lanes != nullptr && lanes->index == i)
      return {e.code_.iota(e.code_.i(64), lanes->extent), may};
    return {e.open_.at(e.indices_[position], trips), may};
  }
  Part add(Part a, Part b) {
    match(a, b);
    return {e.code_.add(a.value, b.value), a.is_negative || b.is_negative};
  }
  Part multiply(Part a, Dim factor) {
    Part b = number(factor);
    match(a, b);
    return {e.code_.mul(a.value, b.value), a.is_negative || b.is_negative};
  }
  Part floordiv(Part a, Dim positive) { return divide(a, positive, false); }
  Part mod(Part a, Dim positive) { return divide(a, positive, true); }

  Part divide(Part a, Dim positive, bool wants_rest) {
    using namespace mlir::arith;
    Part b = number(positive);
    match(a, b);
    if (!a.is_negative) {
      if (wants_rest) return {e.b_.create<RemUIOp>(a.value, b.value), false};
      return {e.b_.create<DivUIOp>(a.value, b.value), false};
    }
    const Value quotient = e.b_.create<DivSIOp>(a.value, b.value);
    const Value rest = e.code_.sub(a.value, e.code_.mul(quotient, b.value));
    const Value is_below = e.code_.compare(Ints::slt, rest, e.code_.integer(0, rest));
    if (wants_rest) return {e.code_.select(is_below, e.code_.add(rest, b.value), rest), false};
    const Value one_less = e.code_.sub(quotient, e.code_.integer(1, quotient));
    return {e.code_.select(is_below, one_less, quotient), true};
  }

  void match(Part& a, Part& b) {
    if (Instructions::is_vector(a.value)) b.value = e.as_vector(b.value);
    if (Instructions::is_vector(b.value)) a.value = e.as_vector(a.value);
  }
};

Value Emitter::index(const IndexExpr& here, const Trips& trips) {
  IndexAlgebra algebra{*this, trips};
  return here.compute(algebra).value;
}

Value Emitter::as_vector(Value value) {
  return Instructions::is_vector(value) ? value : code_.splat(value, lanes());
}

IndexExpr Emitter::here(const IndexExpr& expr, const Trips& trips, std::optional<int64_t> lane) {
  if (variance_.of(expr) == 0) return expr;
  std::vector<IndexExpr> point = themselves_;
  for (size_t depth = 0; depth < open_.open().size(); ++depth) {
    const Lockstep::Open& loop = open_.open()[depth];
    if (!loop.is_lanes)
      point[static_cast<size_t>(loop.index)] = trips[depth];
    else if (lane)
      point[static_cast<size_t>(loop.index)] = *lane;
  }
  return expr.substitute(point);
}

bool Emitter::depends_on_lanes(const IndexExpr& expr) const {
  return (variance_.of(expr) & open_.lanes_loop()) != 0;
}

}  // namespace hone::code
