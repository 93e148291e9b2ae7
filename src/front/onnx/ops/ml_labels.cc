#include <algorithm>
#include <cmath>
#include <numeric>

#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"
#include "front/onnx/strings.h"

// Tables of ai.onnx.ml: features by their places, values by their keys.

namespace hone::onnx_io {
namespace {

Tensor vector_of(const Ints& numbers) {
  return Tensor::from_integers(Type::get(DType::i64, {static_cast<int64_t>(numbers.size())}),
                               numbers);
}

// A list that stands in one of several attributes, as a vector. Strings are places in the file's
// table.
struct List {
  Tensor tensor;
  bool has_strings = false;
};
std::optional<List> list_of(Node& n, const std::string& name) {
  if (n.has_attribute(name + "_strings"))
    return List{vector_of(n.strings(name + "_strings")), true};
  if (n.has_attribute(name + "_int64s")) return List{vector_of(n.ints(name + "_int64s"))};
  if (n.has_attribute(name + "_floats")) {
    const std::vector<double> numbers = n.reals(name + "_floats");
    const Type type = Type::get(DType::f32, {static_cast<int64_t>(numbers.size())});
    return List{Tensor::from_reals(type, numbers)};
  }
  if (n.version() < 4 || !n.has_attribute(name + "_tensor")) return {};
  Tensor tensor = n.tensor(name + "_tensor");
  if (tensor.type().rank() != 1)
    n.bad("{}_tensor is {}, must be a vector", name, tensor.type().to_string());
  const int32_t data_type = n.attribute(name + "_tensor")->t().data_type();
  return List{tensor, data_type == onnx::TensorProto::STRING};
}

// The value of keys that are not there.
Tensor other_value(Node& n, const List& values) {
  const DType dtype = values.tensor.dtype();
  n.ignore("default_string");
  const double real = n.real("default_float", -0.0);
  const int64_t integer = n.integer("default_int64", -1);
  const Type type = Type::scalar(dtype);
  if (n.version() >= 4 && n.has_attribute("default_tensor")) {
    const Tensor tensor = n.tensor("default_tensor");
    if (tensor.dtype() != dtype || tensor.elements() != 1)
      n.bad("default_tensor is {}, must be one {}", tensor.type().to_string(), name(dtype));
    return Tensor::copy_of(type, tensor.bytes());
  }
  if (values.has_strings)
    return Tensor::from_integers(type, Ints{n.string("default_string", kUnused)});
  if (is_real(dtype)) return Tensor::from_reals(type, std::vector<double>{real});
  return Tensor::from_integers(type, Ints{wrap_to(dtype, integer)});
}

// Keys in order with their values. One of NaN stands apart, since it equals nothing.
class Dictionary {
 public:
  Dictionary(Node& n, const Tensor& keys, const Tensor& values)
      : node_(n), keys_(keys), values_(values) {
    const int64_t count = keys.elements();
    if (values.elements() != count)
      n.bad("there are {} keys and {} values", count, values.elements());
    for (int64_t i = 0; i < count; ++i) {
      if (is_real(keys.dtype()) && std::isnan(keys.real_at(i)))
        nan_ = i;
      else
        order_.push_back(i);
    }
    std::ranges::sort(order_,
                      [&](int64_t a, int64_t b) { return below(a, b) || (!below(b, a) && a < b); });
    check_repeated();
  }

  Value find(Value x, Value other) {
    Value found = order_.empty() ? broadcast_to(other, x.dims()) : searched(x, other);
    // Before version 4 no key is NaN.
    if (nan_ < 0 || node_.version() < 4) return found;
    return select(unary(Opcode::is_nan, x), node_.builder().constant(picked(values_, {nan_}, {})),
                  found);
  }

 private:
  bool below(int64_t a, int64_t b) const {
    if (is_real(keys_.dtype())) return keys_.real_at(a) < keys_.real_at(b);
    return keys_.integer_at(a) < keys_.integer_at(b);
  }

  // The standard takes the last one of repeated keys, ONNX Runtime the first.
  void check_repeated() {
    for (size_t i = 1; i < order_.size(); ++i) {
      const int64_t a = order_[i - 1], b = order_[i];
      if (below(a, b) || values_.real_at(a) == values_.real_at(b)) continue;
      node_.unsupported("key {} stands for {} and {}", keys_.real_at(a), values_.real_at(a),
                        values_.real_at(b));
    }
  }

  static Tensor picked(const Tensor& from, const Ints& order, const Dims& dims) {
    const Type type = Type::get(from.dtype(), dims);
    if (is_real(from.dtype())) {
      std::vector<double> reals;
      for (int64_t i : order) reals.push_back(from.real_at(i));
      return Tensor::from_reals(type, reals);
    }
    Ints integers;
    for (int64_t i : order) integers.push_back(from.integer_at(i));
    return Tensor::from_integers(type, integers);
  }

  // Searches by halves: the last key that is not above x.
  Value searched(Value x, Value other) {
    Builder& b = node_.builder();
    const auto count = static_cast<int64_t>(order_.size());
    Value keys = b.constant(picked(keys_, order_, {count}));
    Value place = b.full(DType::i32, x.dims(), 0);
    for (int64_t rest = count; rest > 1; rest -= rest / 2) {
      Value middle = place + static_cast<double>(rest / 2);
      place = select(compare("le", take(keys, middle), x), middle, place);
    }
    Value values = take(b.constant(picked(values_, order_, {count})), place);
    return select(compare("eq", take(keys, place), x), values, other);
  }

  Node& node_;
  const Tensor& keys_;
  const Tensor& values_;
  Ints order_;
  int64_t nan_ = -1;
};

}  // namespace

// A vector is one row of the result. An index out of range is clamped.
void map_array_feature_extractor(Node& n) {
  Value x = n.in(), indices = n.in(1);
  n.require_rank(x, "the data", 1);
  if (!is_integer(indices.dtype()))
    n.bad("the indices have type {}, want integers", indices.type().to_string());
  indices = reshape(indices, {indices.type().elements()});
  check_indices(n, indices, x.dim(-1), false);
  Value picked = take(x, indices, -1);
  n.out(x.rank() == 1 ? unsqueeze(picked, 0) : picked);
}

void map_label_encoder(Node& n) {
  const std::optional<List> keys = list_of(n, "keys"), values = list_of(n, "values");
  if (!keys || !values) n.bad("{} are missing", keys ? "values" : "keys");
  for (const Tensor& list : {keys->tensor, values->tensor})
    if (!(kNumber.contains(list.dtype()))) n.unsupported("a table of {}", name(list.dtype()));
  Value x = n.in();
  if (x.dtype() != keys->tensor.dtype() || keys->has_strings != n.holds_strings(0))
    n.bad("the operand is {}, the keys are {}",
          n.holds_strings(0) ? "of strings" : x.type().to_string(),
          keys->has_strings ? "strings" : name(keys->tensor.dtype()));
  Value other = n.builder().constant(other_value(n, *values));
  n.out(Dictionary(n, keys->tensor, values->tensor).find(x, other));
}

namespace {

// From strings to integers or back, as the operand has it.
void map_both_ways(Node& n, const Ints& strings, const Ints& numbers) {
  Value x = n.in();
  if (x.dtype() != DType::i64)
    n.bad("the operand is {}, must have strings or i64", x.type().to_string());
  const bool reads = n.holds_strings(0);
  const int64_t other_number = n.integer("default_int64", -1);
  if (reads) n.ignore("default_string");
  const int64_t other = reads ? other_number : n.string("default_string", kUnused);
  const Tensor fallback = Tensor::from_integers(Type::scalar(DType::i64), Ints{other});
  const Tensor keys = vector_of(reads ? strings : numbers);
  const Tensor values = vector_of(reads ? numbers : strings);
  n.out(Dictionary(n, keys, values).find(x, n.builder().constant(fallback)));
}

}  // namespace

// The numbers of strings are their places in the list.
void map_label_encoder_of_strings(Node& n) {
  const Ints strings = n.strings("classes_strings");
  Ints numbers(strings.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  map_both_ways(n, strings, numbers);
}

void map_category_mapper(Node& n) {
  map_both_ways(n, n.strings("cats_strings"), n.ints("cats_int64s"));
}

// A map for each row becomes the row: the keys are the labels of its columns.
void map_zip_map(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the operand", 1, 2);
  if (!is_real(x.dtype())) n.bad("the operand is {}, must have reals", x.type().to_string());
  const size_t strings = n.strings("classlabels_strings").size();
  const size_t numbers = n.ints("classlabels_int64s").size();
  if ((strings == 0) == (numbers == 0))
    n.bad("one of classlabels_strings and classlabels_int64s is needed");
  const auto count = static_cast<int64_t>(strings + numbers);
  if (x.dim(-1).is_static() && !x.dim(-1).is(count))
    n.bad("{} labels for {} columns", count, x.dim(-1).value());
  n.out(x.rank() == 1 ? unsqueeze(x, 0) : x);
}

}  // namespace hone::onnx_io
