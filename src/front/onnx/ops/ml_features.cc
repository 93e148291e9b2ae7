#include <algorithm>

#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// Mappings that prepare features for the models of ai.onnx.ml.

namespace hone::onnx_io {
namespace {

// One number for all features, or one per feature: the last dim.
void check_per_feature(Node& n, Value x, size_t count, std::string_view what) {
  const Dim features = x.dim(-1);
  if (count == 1 || !features.is_static() || features.is(static_cast<int64_t>(count))) return;
  n.bad("{} has {} numbers for {} features", what, count, features.value());
}

// Bools: where x has the number in place of which others go.
Value is_replaced(Node& n, Value x) {
  if (!is_real(x.dtype())) {
    n.ignore("replaced_value_float");
    const Type type = Type::scalar(x.dtype());
    const Ints number = {wrap_to(x.dtype(), n.integer("replaced_value_int64", 0))};
    return compare("eq", x, n.builder().constant(Tensor::from_integers(type, number)));
  }
  n.ignore("replaced_value_int64");
  const double number = n.real("replaced_value_float", 0);
  return std::isnan(number) ? unary(Opcode::is_nan, x) : compare("eq", x, number);
}

// The categories of a OneHotEncoder; strings are places in the file's table.
Ints categories(Node& n) {
  const bool has_strings = n.has_attribute("cats_strings");
  if (has_strings == n.has_attribute("cats_int64s"))
    n.bad("one of cats_int64s and cats_strings is needed");
  Ints categories = has_strings ? n.strings("cats_strings") : n.ints("cats_int64s");
  if (categories.empty()) n.bad("it has no categories");
  if (has_strings != n.holds_strings(0))
    n.bad("the operand has {}, the categories are {}", has_strings ? "numbers" : "strings",
          has_strings ? "strings" : "numbers");
  Ints sorted = categories;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) n.bad("a category is there twice");
  return categories;
}

// Rows of numbers with `width` columns: further ones are cut, and missing ones are 0.
Value with_columns(Node& n, Value x, int64_t width) {
  n.require_rank(x, "an operand", 1, 2);
  if (!is_real(x.dtype()) && !is_integer(x.dtype()))
    n.bad("an operand is {}, must have numbers", x.type().to_string());
  if (x.rank() == 1) x = unsqueeze(x, 0);
  const Dim columns = x.dim(1);
  if (!columns.is_static())
    n.unsupported("an operand has {} columns, its number must be known", columns.to_string());
  x = cast(x, DType::f32);
  if (columns.value() > width) return slice(x, 1, 0, width);
  return columns.is(width) ? x : pad(x, {0, 0}, {0, width - columns.value()});
}

}  // namespace

void map_imputer(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1, 2);
  const bool is_reals = is_real(x.dtype());
  if (!is_reals && !is_integer(x.dtype()))
    n.bad("the operand is {}, must have numbers", x.type().to_string());
  const std::vector<double> reals = n.reals("imputed_value_floats");
  const Ints integers = n.ints("imputed_value_int64s");
  const size_t count = is_reals ? reals.size() : integers.size();
  const std::string_view name = is_reals ? "imputed_value_floats" : "imputed_value_int64s";
  if (count == 0) n.bad("{} is missing, and the operand is {}", name, x.type().to_string());
  if (!(is_reals ? integers.empty() : reals.empty()))
    n.bad("imputed values are given twice, as floats and as integers");
  check_per_feature(n, x, count, name);
  const Type type = Type::get(x.dtype(), {static_cast<int64_t>(count)});
  Ints wrapped;
  for (int64_t integer : integers) wrapped.push_back(wrap_to(x.dtype(), integer));
  Value imputed = n.builder().constant(is_reals ? Tensor::from_reals(type, reals)
                                                : Tensor::from_integers(type, wrapped));
  n.out(select(is_replaced(n, x), imputed, x));
}

// Reals count as the integers that they are rounded to, towards 0.
void map_one_hot_encoder(Node& n) {
  Value x = n.in();
  if (!is_real(x.dtype()) && !is_integer(x.dtype()))
    n.bad("the operand is {}, must have numbers or strings", x.type().to_string());
  const Ints list = categories(n);
  Value number = unsqueeze(is_real(x.dtype()) ? cast(x, DType::i64) : x, -1);
  if (number.dtype() != DType::i64) number = cast(number, DType::i64);
  Value found = compare("eq", number, integers(n.builder(), list));
  if (is_real(x.dtype()))
    found =
        binary(Opcode::and_, found, unary(Opcode::not_, unsqueeze(unary(Opcode::is_nan, x), -1)));
  Value result = cast(found, DType::f32);
  if (!n.flag("zeros", true))
    n.check(x, compare("eq", reduce_max(result, {-1}), 0), "one of the categories");
  n.out(result);
}

void map_feature_vectorizer(Node& n) {
  const Ints widths = n.ints("inputdimensions");
  if (n.inputs() == 0 || widths.size() != n.inputs())
    n.bad("inputdimensions has {} numbers for {} operands", widths.size(), n.inputs());
  std::vector<Value> parts;
  for (size_t i = 0; i < n.inputs(); ++i) {
    if (widths[i] < 0 || widths[i] > kMaxElements / 2)
      n.bad("inputdimensions has the number {}", widths[i]);
    parts.push_back(with_columns(n, n.in(i), widths[i]));
  }
  n.out(concat(parts, 1));
}

}  // namespace hone::onnx_io
