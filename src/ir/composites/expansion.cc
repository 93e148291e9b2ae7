#include "ir/composites/expansion.h"
#include "tensor/demand.h"

namespace hone {
namespace {

bool complain(Builder& b, Error error) {
  b.fail(std::move(error));
  return false;
}

std::string as_layout(std::string_view layout) {
  return layout.empty() ? "" : fmt::format(": {}", layout);
}

}  // namespace

std::vector<Value> failed(Builder& b, Error error) {
  b.fail(std::move(error));
  return {};
}

bool need_real(Builder& b, std::string_view name, Value v) {
  if (!b.ok()) return false;
  if (kReal.contains(v.dtype())) return true;
  return complain(b, bad_input("{} is {}, want a real element type (f64, f32, f16, bf16)", name,
                               v.type().to_string()));
}

bool need_integer(Builder& b, std::string_view name, Value v) {
  if (!b.ok()) return false;
  if (kInteger.contains(v.dtype())) return true;
  return complain(b, bad_input("{} is {}, want an integer element type of 8 bits or more", name,
                               v.type().to_string()));
}

bool need_number(Builder& b, std::string_view name, Value v) {
  if (!b.ok()) return false;
  if (kNumber.contains(v.dtype())) return true;
  return complain(b, bad_input("{} is {}, want a real or integer element type to compute with",
                               name, v.type().to_string()));
}

bool need_rank(Builder& b, std::string_view name, Value v, int rank, std::string_view layout) {
  if (!b.ok()) return false;
  if (v.rank() == rank) return true;
  return complain(b, bad_input("{} is {}, of rank {}, want rank {}{}", name, v.type().to_string(),
                               v.rank(), rank, as_layout(layout)));
}

bool need_rank_at_least(Builder& b, std::string_view name, Value v, int rank,
                        std::string_view layout) {
  if (!b.ok()) return false;
  if (v.rank() >= rank) return true;
  return complain(b, bad_input("{} is {}, of rank {}, want rank {} or more{}", name,
                               v.type().to_string(), v.rank(), rank, as_layout(layout)));
}

bool need_type(Builder& b, std::string_view name, Value v, Type type) {
  if (!b.ok()) return false;
  if (!v || v.type() == type) return true;
  demand_equal(v.type().dims(), type.dims());
  return complain(b, bad_input("{} is {}, want {}", name, v.type().to_string(), type.to_string()));
}

bool need_type(Builder& b, std::string_view name, Value v, DType dtype, const Dims& dims) {
  if (!b.ok()) return false;
  if (!v || (v.dtype() == dtype && v.dims() == dims)) return true;
  demand_equal(v.type().dims(), dims);
  return complain(b, bad_input("{} is {}, want {}{}", name, v.type().to_string(), hone::name(dtype),
                               to_string(AttrValue(dims))));
}

bool need_broadcastable(Builder& b, std::string_view name, Value v, const Dims& dims) {
  if (!b.ok()) return false;
  if (!v) return true;
  const size_t rank = static_cast<size_t>(v.rank());
  bool fits = rank <= dims.size();
  for (size_t i = 0; fits && i < rank; ++i) {
    const Dim d = v.type().dims()[i], wanted = dims[dims.size() - rank + i];
    fits = d.is(1) || d == wanted;
    if (!fits) demand(Demand::Kind::stretch, d, wanted);
  }
  if (fits) return true;
  return complain(
      b, bad_input("{} is {}, which does not broadcast to {}{}", name, v.type().to_string(),
                   hone::name(v.dtype()), to_string(AttrValue(dims))));
}

bool need_positive(Builder& b, std::string_view name, int64_t number) {
  if (!b.ok()) return false;
  if (number > 0) return true;
  return complain(b, bad_input("{} is {}, want 1 or more", name, number));
}

std::optional<int> axis_in(Builder& b, int64_t axis, int rank) {
  if (!b.ok()) return std::nullopt;
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  b.fail(bad_input("axis {} is outside rank {}", axis, rank));
  return std::nullopt;
}

Ints int_range(int begin, int end) {
  Ints range;
  for (int i = begin; i < end; ++i) range.push_back(i);
  return range;
}

Dims dims_from(std::span<const Dim> dims, int begin, int end) {
  return {dims.begin() + begin, dims.begin() + end};
}

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (Dim d : dims) result *= d;
  return result;
}

Dims with_dim(Dims dims, int axis, Dim dim) {
  dims[static_cast<size_t>(axis)] = dim;
  return dims;
}

Value along(Value v, const Dims& dims, int axis) {
  return v.rank() == 0 ? broadcast(v, dims, {}) : broadcast(v, dims, {axis});
}

Value integers(Builder& b, DType dtype, const Ints& numbers) {
  const Type type = Type::get(dtype, {static_cast<int64_t>(numbers.size())});
  return b.constant(Tensor::from_integers(type, numbers));
}

Value reals(Builder& b, DType dtype, std::span<const double> numbers) {
  const Type type = Type::get(dtype, {static_cast<int64_t>(numbers.size())});
  return b.constant(Tensor::from_reals(type, numbers));
}

Value part(Value x, int axis, int64_t index) {
  return squeeze(slice(x, axis, index, index + 1), axis);
}

Value clamp(Value x, double low, double high) { return maximum(minimum(x, high), low); }

}  // namespace hone
