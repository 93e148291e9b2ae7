#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/library_calls.h"

// Systems of equations whose matrix is a triangle, and the factor of Cholesky. Both take a row or a
// column a step, in f64: numbers of f32 lose too much on the way.

namespace hone::hlo {
namespace {

Value turned(Value x) {
  Ints order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

// This dim first, the others in their order: what a scan takes a step each of.
Value steps_of(Value x, int axis) {
  Ints order = {axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  return transpose(x, order);
}

Ints batch_of(Value x) {
  Ints batch;
  for (int i = 0; i + 2 < x.rank(); ++i) batch.push_back(i);
  return batch;
}

// For an op that takes or puts row or column `at` of x.
std::vector<Value> starts_at(Builder& b, Value x, int axis, Value at) {
  std::vector<Value> starts(static_cast<size_t>(x.rank()), b.scalar(DType::i64, 0));
  starts[static_cast<size_t>(axis)] = at;
  return starts;
}

Value with_line(Builder& b, Value x, int axis, Value at, Value line) {
  std::vector<Value> operands = {x, unsqueeze(line, axis)};
  for (const Value& one : starts_at(b, x, axis, at)) operands.push_back(one);
  return b.op(Opcode::dynamic_update, operands);
}

Value line_of(Builder& b, Value x, int axis, Value at) {
  std::vector<Value> operands = {x};
  for (const Value& one : starts_at(b, x, axis, at)) operands.push_back(one);
  Dims sizes = x.dims();
  sizes[static_cast<size_t>(axis)] = 1;
  return squeeze(b.op(Opcode::dynamic_slice, operands, {{"sizes", sizes}}), axis);
}

// True where an element stands below the diagonal, or on it.
Value at_places(Value x, std::string_view column_to_row) {
  const Value row = iota(x.builder(), DType::i64, x.dims(), x.rank() - 2);
  const Value column = iota(x.builder(), DType::i64, x.dims(), x.rank() - 1);
  return compare(column_to_row, column, row);
}

Value chosen(Value predicate, Value x) {
  return select(predicate, x, x.builder().scalar(x.dtype(), 0));
}

DType checked_type(Node& n, Value a) {
  if (a.rank() < 2) n.refuse(bad_input("{} is no matrix", a.type().to_string()));
  const Dim rows = a.dim(a.rank() - 2), columns = a.dim(a.rank() - 1);
  if (rows != columns) n.refuse(bad_input("{} is not square", a.type().to_string()));
  if (!is_real(a.dtype()) || is_storage_only(a.dtype()))
    n.refuse(unsupported("of {} is not handled", name(a.dtype())));
  return a.dtype();
}

struct Triangle {
  bool left = true;  // a x = b, not x a = b
  bool lower = true;
  bool transposes = false;
  bool unit = false;  // the diagonal is taken for ones
};

// Row after row: what the rows before have is subtracted, and the rest divided by the diagonal. The
// other triangle is not read.
Value solved(Node& n, Value a, Value b, Triangle form) {
  const DType type = checked_type(n, a);
  if (b.rank() != a.rank()) n.refuse(bad_input("both operands must be matrices"));
  if (b.dtype() != type) n.refuse(unsupported("of {} is not handled", name(b.dtype())));
  // x a = b is the same as turned(a) turned(x) = turned(b).
  if (form.transposes == form.left) {
    a = turned(a);
    form.lower = !form.lower;
  }
  if (!form.left) b = turned(b);
  const int row = a.rank() - 2;
  if (b.dim(row) != a.dim(row))
    n.refuse(bad_input("a matrix of {} rows does not fit one of {}", a.dim(row).to_string(),
                       b.dim(row).to_string()));
  a = cast(a, DType::f64);
  b = cast(b, DType::f64);
  const Value others = chosen(at_places(a, form.lower ? "lt" : "gt"), a);
  const Value diagonal = reduce_sum(chosen(at_places(a, "eq"), a), {row + 1});
  const Value places = iota(n.builder(), DType::i64, {a.dim(row)}, 0);
  Value x = b;
  if (!a.dim(row).is(0)) {
    const Value state[] = {b * 0.0};
    const Value scanned[] = {steps_of(others, row), steps_of(diagonal, row), steps_of(b, row),
                             places};
    const Ints batch = batch_of(a);
    x = scan(
        state, scanned,
        [&](Builder& inner, std::span<const Value> in) {
          Value rest = in[3] - dot_general(in[1], in[0], batch, batch, {row}, {row});
          if (!form.unit) rest = rest / broadcast(in[2], rest.dims(), batch);
          return std::vector<Value>{with_line(inner, in[0], row, in[4], rest)};
        },
        !form.lower)[0];
  }
  return cast(form.left ? x : turned(x), type);
}

// Column after column of L, with a = L turned(L). A column whose pivot is not positive is NaN, and
// so are those behind it.
Value lower_factor(Value a) {
  const int row = a.rank() - 2, column = a.rank() - 1;
  a = cast(a, DType::f64);
  if (a.dim(row).is(0)) return a;
  const Value state[] = {chosen(at_places(a, "lt"), a) * 0.0};
  const Value scanned[] = {steps_of(a, column), iota(a.builder(), DType::i64, {a.dim(row)}, 0)};
  const Ints batch = batch_of(a);
  return scan(state, scanned, [&](Builder& b, std::span<const Value> in) {
    const Value line = line_of(b, in[0], row, in[2]);
    const Value rest = in[1] - dot_general(in[0], line, batch, batch, {column}, {row});
    const Value place = iota(b, DType::i64, rest.dims(), row);
    const Value at = broadcast(in[2], rest.dims(), {});
    const Value pivot = reduce_sum(chosen(compare("eq", place, at), rest), {row}, true);
    const Value nan = pivot * 0.0 + std::numeric_limits<double>::quiet_NaN();
    const Value root = select(compare("gt", pivot, 0.0), sqrt(pivot), nan);
    const Value made = chosen(compare("ge", place, at), rest / root);
    return std::vector<Value>{with_line(b, in[0], column, in[2], made)};
  })[0];
}

// A letter that LAPACK takes: of the record, or of the text that HLO has of it.
char letter(Node& n, std::string_view key) {
  constexpr std::string_view kRecord = "mhlo.backend_config|backend_config";
  int64_t number = n.field(kRecord, key, int64_t{-1});
  const Attribute* text = n.find(kRecord);
  if (number < 0 && text != nullptr && text->kind == Attribute::Kind::word) {
    const std::string wanted = fmt::format("{} = ", key);
    const size_t at = text->text.find(wanted);
    if (at != std::string_view::npos) {
      const std::string_view rest = text->text.substr(at + wanted.size());
      const Result<int64_t> read =
          parse_int(rest.substr(0, std::min(rest.find_first_of(" :,}"), rest.size())));
      if (read.ok()) number = *read;
    }
  }
  if (number < 'A' || number > 'Z')
    n.refuse(bad_input("the option '{}' of LAPACK is missing", key));
  return static_cast<char>(number);
}

}  // namespace

std::vector<Value> map_triangular_solve(Node& n) {
  n.need(2);
  const std::string_view form = n.word("transpose_a", "NO_TRANSPOSE");
  return {solved(n, n.in(0), n.in(1),
                 {.left = n.integer("left_side", 1) != 0,
                  .lower = n.integer("lower", 0) != 0,
                  .transposes = form == "TRANSPOSE" || form == "ADJOINT",
                  .unit = n.flag("unit_diagonal")})};
}

std::vector<Value> map_cholesky(Node& n) {
  n.need(1);
  const DType type = checked_type(n, n.in());
  const bool lower = n.flag("lower");
  const Value factor = cast(lower_factor(lower ? n.in() : turned(n.in())), type);
  return {lower ? factor : turned(factor)};
}

std::vector<Value> lapack_triangle(Node& n) {
  n.need(2);
  const char transposes = letter(n, "trans_x");
  const Triangle form = {.left = letter(n, "side") == 'L',
                         .lower = letter(n, "uplo") == 'L',
                         .transposes = transposes == 'T' || transposes == 'C',
                         .unit = letter(n, "diag") == 'U'};
  n.read_all();
  return {solved(n, n.in(0), n.in(1), form)};
}

std::vector<Value> lapack_cholesky(Node& n) {
  n.need(1);
  const DType type = checked_type(n, n.in());
  const bool lower = letter(n, "uplo") == 'L';
  n.read_all();
  const Value factor = lower_factor(lower ? n.in() : turned(n.in()));
  const int row = factor.rank() - 2;
  const Value diagonal = reduce_sum(chosen(at_places(factor, "eq"), factor), {row + 1});
  const Value place = iota(n.builder(), DType::i64, diagonal.dims(), row) + 1.0;
  const double none = static_cast<double>(factor.dim(row).value()) + 1;
  const Value bad = unary(Opcode::is_nan, diagonal);
  const Value first = reduce("min", select(bad, place, place * 0.0 + none), {row});
  const Value made = cast(lower ? factor : turned(factor), type);
  return {made, cast(select(compare("eq", first, none), first * 0.0, first), DType::i32)};
}

}  // namespace hone::hlo
