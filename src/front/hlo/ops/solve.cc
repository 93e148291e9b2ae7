#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"

// Systems of equations whose matrix is a triangle.

namespace hone::hlo {
namespace {

Value turned(Value x) {
  Ints order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

}  // namespace

// Row after row: what the rows before have is subtracted, and the rest divided by the diagonal. The
// other triangle is not read.
std::vector<Value> map_triangular_solve(Node& n) {
  n.need(2);
  constexpr int64_t kMostRows = 128;
  Value a = n.in(0);
  Value b = n.in(1);
  const int rank = a.rank();
  if (rank < 2 || b.rank() != rank) n.refuse(bad_input("both operands must be matrices"));
  if (!is_real(a.dtype()) || is_storage_only(a.dtype()) || b.dtype() != a.dtype())
    n.refuse(unsupported("of {} is not handled", name(a.dtype())));
  const int64_t rows = a.type().static_dims()[static_cast<size_t>(rank - 1)];
  const bool left = n.integer("left_side", 1) != 0;
  const std::string_view form = n.word("transpose_a", "NO_TRANSPOSE");
  const bool transposes = form == "TRANSPOSE" || form == "ADJOINT";
  bool lower = n.integer("lower", 0) != 0;
  if (rows > kMostRows) n.refuse(unsupported("of {} rows is not handled; {} are", rows, kMostRows));
  // x a = b is the same as turned(a) turned(x) = turned(b).
  if (transposes == left) {
    a = turned(a);
    lower = !lower;
  }
  if (!left) b = turned(b);
  const int row = rank - 2;
  const int column = rank - 1;
  Ints batch;
  for (int i = 0; i < row; ++i) batch.push_back(i);
  const DType type = a.dtype();
  const DType inner = DType::f64;  // numbers of f32 lose too much on the way
  a = cast(a, inner);
  b = cast(b, inner);
  std::vector<Value> solved(static_cast<size_t>(rows));
  for (int64_t step = 0; step < rows; ++step) {
    const int64_t i = lower ? step : rows - 1 - step;
    Value rest = slice(b, row, i, i + 1);
    const Value line = slice(a, row, i, i + 1);
    if (step > 0) {
      const int64_t first = lower ? 0 : i + 1;
      const int64_t last = lower ? i : rows;
      const Value before = concat(
          std::span(solved).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)),
          row);
      rest = rest -
             dot_general(slice(line, column, first, last), before, batch, batch, {column}, {row});
    }
    solved[static_cast<size_t>(i)] =
        n.flag("unit_diagonal") ? rest : rest / slice(line, column, i, i + 1);
  }
  Value x = rows == 0 ? b : concat(solved, row);
  if (!left) x = turned(x);
  return {cast(x, type)};
}

}  // namespace hone::hlo
