#include "ir/functional.h"
#include "tensor/counting.h"
#include "tensor/demand.h"

#include <algorithm>

namespace hone {
namespace {

Dims from_ints(const Ints& ints) { return {ints.begin(), ints.end()}; }

// A non-negative axis; out of range fails the builder and gives 0.
int64_t axis_of(Value x, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    x.builder().fail(bad_input("axis {} is outside of rank {}", axis, rank));
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}
int64_t axis_of(Value x, int64_t axis) { return axis_of(x, axis, x.rank()); }

Ints axes_of(Value x, const Ints& axes) {
  Ints result;
  for (int64_t axis : axes) result.push_back(axis_of(x, axis));
  std::sort(result.begin(), result.end());
  return result;
}

// The dims that numpy's rule gives: aligned from the back, 1 stretches.
Dims broadcast_dims(Builder& b, const Dims& x, const Dims& y) {
  size_t rank = std::max(x.size(), y.size());
  Dims result(rank);
  for (size_t i = 0; i < rank; ++i) {  // i counts from the back
    Dim dx = i < x.size() ? x[x.size() - 1 - i] : Dim(1);
    Dim dy = i < y.size() ? y[y.size() - 1 - i] : Dim(1);
    if (!(dx == dy) && !dx.is(1) && !dy.is(1)) {
      demand(Demand::Kind::broadcast, dy, dx);
      b.fail(bad_input("dims {} and {} do not broadcast", to_string(AttrValue(x)),
                       to_string(AttrValue(y))));
    }
    result[rank - 1 - i] = dx.is(1) ? dy : dx;
  }
  return result;
}

void align(Value& a, Value& b) {
  if (a.type() == b.type() || !a.builder().ok()) return;
  Dims dims = broadcast_dims(a.builder(), a.dims(), b.dims());
  a = broadcast_to(a, dims);
  b = broadcast_to(b, dims);
}

// A number as an operand beside `like`.
Value number(Value like, double value) {
  return broadcast_to(like.builder().scalar(like.dtype(), value), like.dims());
}

}  // namespace

// ---- Arithmetic ---------------------------------------------------------------------------------

Value unary(Opcode opcode, Value x) { return x.builder().op(opcode, {x}); }
Value binary(Opcode opcode, Value a, Value b) {
  align(a, b);
  return a.builder().op(opcode, {a, b});
}
Value binary(Opcode opcode, Value a, double b) { return binary(opcode, a, number(a, b)); }

Value operator+(Value a, Value b) { return binary(Opcode::add, a, b); }
Value operator-(Value a, Value b) { return binary(Opcode::sub, a, b); }
Value operator*(Value a, Value b) { return binary(Opcode::mul, a, b); }
Value operator/(Value a, Value b) { return binary(Opcode::div, a, b); }
Value operator-(Value a) { return unary(Opcode::neg, a); }
Value operator+(Value a, double b) { return binary(Opcode::add, a, b); }
Value operator-(Value a, double b) { return binary(Opcode::sub, a, b); }
Value operator*(Value a, double b) { return binary(Opcode::mul, a, b); }
Value operator/(Value a, double b) { return binary(Opcode::div, a, b); }
Value operator+(double a, Value b) { return binary(Opcode::add, number(b, a), b); }
Value operator-(double a, Value b) { return binary(Opcode::sub, number(b, a), b); }
Value operator*(double a, Value b) { return binary(Opcode::mul, number(b, a), b); }
Value operator/(double a, Value b) { return binary(Opcode::div, number(b, a), b); }

Value compare(std::string_view direction, Value a, Value b) {
  align(a, b);
  return a.builder().op(Opcode::compare, {a, b}, {{"direction", std::string(direction)}});
}
Value compare(std::string_view direction, Value a, double b) {
  return compare(direction, a, number(a, b));
}
Value select(Value predicate, Value on_true, Value on_false) {
  Builder& b = on_true.builder();
  Dims dims =
      broadcast_dims(b, broadcast_dims(b, on_true.dims(), on_false.dims()), predicate.dims());
  return b.op(Opcode::select, {broadcast_to(predicate, dims), broadcast_to(on_true, dims),
                               broadcast_to(on_false, dims)});
}
Value maximum(Value a, Value b) { return binary(Opcode::max, a, b); }
Value maximum(Value a, double b) { return binary(Opcode::max, a, b); }
Value minimum(Value a, Value b) { return binary(Opcode::min, a, b); }
Value minimum(Value a, double b) { return binary(Opcode::min, a, b); }
Value power(Value a, double b) { return binary(Opcode::pow, a, b); }
Value stop_gradient(Value x) { return unary(Opcode::stop_gradient, x); }
Value exp(Value x) { return unary(Opcode::exp, x); }
Value log(Value x) { return unary(Opcode::log, x); }
Value sqrt(Value x) { return unary(Opcode::sqrt, x); }
Value rsqrt(Value x) { return unary(Opcode::rsqrt, x); }
Value tanh(Value x) { return unary(Opcode::tanh, x); }
Value logistic(Value x) { return unary(Opcode::logistic, x); }
Value cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.builder().op(Opcode::cast, {x}, {{"dtype", dtype}});
}

// ---- Shape --------------------------------------------------------------------------------------

Value broadcast(Value x, const Dims& dims, const Ints& map) {
  return x.builder().op(Opcode::broadcast, {x}, {{"dims", dims}, {"map", map}});
}

Value broadcast_to(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  int64_t missing = static_cast<int64_t>(dims.size()) - x.rank();
  if (missing < 0) {
    x.builder().fail(
        bad_input("a value of rank {} does not broadcast to rank {}", x.rank(), dims.size()));
    return x;
  }
  return broadcast(x, dims, counting(missing, missing + x.rank()));
}

Value reshape(Value x, const Dims& dims) {
  Dims wanted = dims;
  auto unknown = std::find_if(wanted.begin(), wanted.end(), [](Dim d) { return d.is(-1); });
  if (unknown != wanted.end()) {
    *unknown = 1;
    Dim known = 1;
    for (Dim d : wanted) known *= d;
    std::optional<Dim> rest = x.type().elements().divided_by(known);
    if (!rest) {
      demand(Demand::Kind::multiple, x.type().elements(), known);
      x.builder().fail(bad_input("{} does not reshape to {}: {} elements are not a multiple of {}",
                                 x.type().to_string(), to_string(AttrValue(dims)),
                                 x.type().elements().to_string(), known.to_string()));
      return x;
    }
    *unknown = *rest;
  }
  if (x.dims() == wanted) return x;
  return x.builder().op(Opcode::reshape, {x}, {{"dims", wanted}});
}

Value flatten(Value x, int first_axis) {
  int64_t axis = axis_of(x, first_axis, x.rank() + 1);
  Dims dims = x.dims();
  Dim rest = 1;
  for (size_t i = static_cast<size_t>(axis); i < dims.size(); ++i) rest *= dims[i];
  dims.resize(static_cast<size_t>(axis));
  dims.push_back(rest);
  return reshape(x, dims);
}

Value transpose(Value x, const Ints& permutation) {
  if (permutation == counting(0, x.rank())) return x;
  return x.builder().op(Opcode::transpose, {x}, {{"permutation", permutation}});
}

Value slice(Value x, int axis, Dim start, Dim limit, int64_t stride) {
  size_t a = static_cast<size_t>(axis_of(x, axis));
  if (x.rank() == 0) return x;
  Dims starts(static_cast<size_t>(x.rank()), 0), limits = x.dims();
  Ints strides(static_cast<size_t>(x.rank()), 1);
  starts[a] = start;
  limits[a] = limit;
  strides[a] = stride;
  return x.builder().op(
      Opcode::slice, {x},
      {{"start", starts}, {"limit", limits}, {"stride", stride == 1 ? Ints{} : strides}});
}

Value pad(Value x, const Ints& low, const Ints& high, double value) {
  return x.builder().op(Opcode::pad, {x, x.builder().scalar(x.dtype(), value)},
                        {{"low", from_ints(low)}, {"high", from_ints(high)}});
}

Value concat(std::span<const Value> parts, int axis) {
  HONE_CHECK(!parts.empty(), "concat of nothing");
  if (parts.size() == 1) return parts[0];
  return parts[0].builder().op(Opcode::concat, parts, {{"axis", axis_of(parts[0], axis)}});
}
Value concat(std::initializer_list<Value> parts, int axis) {
  return concat(std::span<const Value>(parts.begin(), parts.size()), axis);
}

std::vector<Value> split(Value x, int axis, const Dims& sizes) {
  std::vector<Value> parts;
  Dim start = 0;
  for (Dim size : sizes) {
    parts.push_back(slice(x, axis, start, start + size));
    start += size;
  }
  if (!(start == x.dim(axis))) {
    demand(Demand::Kind::equal, x.dim(axis), start);
    x.builder().fail(bad_input("split into sizes of sum {}, dim {} is {}", start.to_string(), axis,
                               x.dim(axis).to_string()));
  }
  return parts;
}

std::vector<Value> split(Value x, int axis, int parts) {
  std::optional<Dim> size = x.dim(axis).divided_by(parts);
  if (!size) {
    demand(Demand::Kind::multiple, x.dim(axis), parts);
    x.builder().fail(bad_input("dim {} of size {} does not split into {} equal parts", axis,
                               x.dim(axis).to_string(), parts));
    return std::vector<Value>(static_cast<size_t>(parts), x);
  }
  return split(x, axis, Dims(static_cast<size_t>(parts), *size));
}

Value squeeze(Value x, int axis) {
  Dims dims = x.dims();
  int64_t a = axis_of(x, axis);
  if (dims.empty() || !dims[static_cast<size_t>(a)].is(1)) {
    x.builder().fail(
        bad_input("squeeze of axis {} of {}, which is not 1", axis, x.type().to_string()));
    return x;
  }
  dims.erase(dims.begin() + a);
  return reshape(x, dims);
}

Value unsqueeze(Value x, int axis) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + axis_of(x, axis, x.rank() + 1), 1);
  return reshape(x, dims);
}

Value reverse(Value x, const Ints& axes) {
  return x.builder().op(Opcode::reverse, {x}, {{"axes", axes_of(x, axes)}});
}

Value iota(Builder& b, DType dtype, const Dims& dims, int axis) {
  return b.op(Opcode::iota, std::span<const Value>(),
              {{"dtype", dtype}, {"dims", dims}, {"axis", int64_t{axis}}});
}

Value take(Value table, Value indices, int axis) {
  int64_t a = axis_of(table, axis);
  Dims sizes = table.dims();
  if (sizes.empty()) return table;
  sizes[static_cast<size_t>(a)] = 1;
  Ints offset = counting(0, a);
  for (int64_t i = a + 1; i < table.rank(); ++i) offset.push_back(i - 1 + indices.rank());
  return table.builder().op(Opcode::gather, {table, indices},
                            {{"offset_dims", offset},
                             {"collapsed_dims", Ints{a}},
                             {"index_map", Ints{a}},
                             {"index_vector_dim", int64_t{indices.rank()}},
                             {"sizes", sizes}});
}

// ---- Contraction --------------------------------------------------------------------------------

Value dot_general(Value a, Value b, const Ints& lhs_batch, const Ints& rhs_batch,
                  const Ints& lhs_contract, const Ints& rhs_contract) {
  return a.builder().op(Opcode::dot, {a, b},
                        {{"lhs_batch", lhs_batch},
                         {"rhs_batch", rhs_batch},
                         {"lhs_contract", lhs_contract},
                         {"rhs_contract", rhs_contract}});
}

Value matmul(Value a, Value b) {
  if (a.rank() == 0 || b.rank() == 0) {
    a.builder().fail(bad_input("matmul of {} and {}", a.type().to_string(), b.type().to_string()));
    return a;
  }
  // Vectors and a plain matrix on the right need no batch dims.
  if (b.rank() <= 2) return dot_general(a, b, {}, {}, {a.rank() - 1}, {std::max(0, b.rank() - 2)});
  bool vector = a.rank() == 1;
  if (vector) a = unsqueeze(a, 0);
  Dims a_batch = a.dims(), b_batch = b.dims();
  a_batch.resize(a_batch.size() - 2);
  b_batch.resize(b_batch.size() - 2);
  Dims batch = broadcast_dims(a.builder(), a_batch, b_batch);
  auto with_batch = [&](Value x) {
    Dims dims = batch;
    dims.push_back(x.dim(-2));
    dims.push_back(x.dim(-1));
    return broadcast_to(x, dims);
  };
  int64_t n = static_cast<int64_t>(batch.size());
  Value result =
      dot_general(with_batch(a), with_batch(b), counting(0, n), counting(0, n), {n + 1}, {n});
  return vector ? squeeze(result, -2) : result;
}

Value conv(Value x, Value w, const ConvOptions& options) {
  size_t spatial = static_cast<size_t>(std::max(0, x.rank() - 2));
  Ints low, high;
  if (!options.padding.empty()) {
    if (options.padding.size() != 2 * spatial) {
      x.builder().fail(bad_input("conv: {} paddings for {} spatial dims, need {}",
                                 options.padding.size(), spatial, 2 * spatial));
      return x;
    }
    auto middle = options.padding.begin() + static_cast<int64_t>(spatial);
    low.assign(options.padding.begin(), middle);
    high.assign(middle, options.padding.end());
  }
  return x.builder().op(Opcode::conv, {x, w},
                        {{"stride", options.stride},
                         {"pad_low", low},
                         {"pad_high", high},
                         {"input_dilation", options.input_dilation},
                         {"kernel_dilation", options.dilation},
                         {"groups", options.groups}});
}

// ---- Reduction ----------------------------------------------------------------------------------

Value reduce(std::string_view kind, Value x, const Ints& axes, bool keep) {
  Ints sorted = axes_of(x, axes);
  Value result =
      x.builder().op(Opcode::reduce, {x}, {{"kind", std::string(kind)}, {"axes", sorted}});
  if (!keep || !x.builder().ok()) return result;
  Dims dims = x.dims();
  for (int64_t axis : sorted) dims[static_cast<size_t>(axis)] = 1;
  return reshape(result, dims);
}
Value reduce_sum(Value x, const Ints& axes, bool keep) { return reduce("sum", x, axes, keep); }
Value reduce_max(Value x, const Ints& axes, bool keep) { return reduce("max", x, axes, keep); }

Value reduce_mean(Value x, const Ints& axes, bool keep) {
  Dim count = 1;
  for (int64_t axis : axes_of(x, axes)) count *= x.rank() > 0 ? x.dim(static_cast<int>(axis)) : 1;
  Value sum = reduce_sum(x, axes, keep);
  if (count.is_static()) return sum / static_cast<double>(count.value());
  // A symbolic count is measured: the sum of ones over the same axes.
  Value ones = x.builder().full(x.dtype(), x.dims(), 1);
  return sum / reduce_sum(ones, axes, keep);
}

Value argmax(Value x, int axis, bool keep) {
  int64_t a = axis_of(x, axis);
  Value index = x.builder().op(Opcode::arg_reduce, {x}, {{"kind", "max"}, {"axis", a}});
  return keep ? unsqueeze(index, static_cast<int>(a)) : index;
}

namespace {

// Pool options over the spatial dims as full-rank attributes of window_reduce.
Attrs window_attrs(std::string_view kind, Value x, const PoolOptions& o) {
  size_t spatial = static_cast<size_t>(std::max(0, x.rank() - 2));
  auto full = [&](const Ints& part, int64_t fill) {
    Ints all(2, fill);
    all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  Ints low(spatial, 0), high(spatial, 0);
  if (o.padding.size() == 2 * spatial) {
    low.assign(o.padding.begin(), o.padding.begin() + static_cast<int64_t>(spatial));
    high.assign(o.padding.begin() + static_cast<int64_t>(spatial), o.padding.end());
  } else if (!o.padding.empty()) {
    x.builder().fail(bad_input("pool: {} paddings for {} spatial dims, need {}", o.padding.size(),
                               spatial, 2 * spatial));
  }
  Ints ones(spatial, 1);
  return {{"kind", std::string(kind)},
          {"window", full(o.window, 1)},
          {"stride", full(o.stride.empty() ? ones : o.stride, 1)},
          {"pad_low", full(low, 0)},
          {"pad_high", full(high, 0)},
          {"window_dilation", full(o.dilation.empty() ? ones : o.dilation, 1)}};
}

}  // namespace

Value max_pool(Value x, const PoolOptions& options) {
  return x.builder().op(Opcode::window_reduce, {x}, window_attrs("max", x, options));
}

Value avg_pool(Value x, const PoolOptions& options) {
  Value sum = x.builder().op(Opcode::window_reduce, {x}, window_attrs("sum", x, options));
  bool padded =
      std::any_of(options.padding.begin(), options.padding.end(), [](int64_t p) { return p != 0; });
  if (!padded || options.count_padding) {
    int64_t count = 1;
    for (int64_t w : options.window) count *= w;
    return sum / static_cast<double>(count);
  }
  // Only real elements count: the window sum of ones, which folds to a constant.
  Dims dims = x.dims();
  dims[0] = dims[1] = 1;
  Value ones = x.builder().full(x.dtype(), dims, 1);
  return sum / x.builder().op(Opcode::window_reduce, {ones}, window_attrs("sum", x, options));
}

Value cumulative(std::string_view kind, Value x, int axis, bool exclusive, bool reverse) {
  return x.builder().op(Opcode::cumulative, {x},
                        {{"kind", std::string(kind)},
                         {"axis", axis_of(x, axis)},
                         {"exclusive", exclusive},
                         {"reverse", reverse}});
}

std::vector<Value> sort(std::span<const Value> keys_and_values, int axis, bool descending) {
  HONE_CHECK(!keys_and_values.empty(), "sort of nothing");
  Value first = keys_and_values[0];
  return first.builder().ops(Opcode::sort, keys_and_values,
                             {{"axis", axis_of(first, axis)}, {"descending", descending}});
}

// ---- Segments -----------------------------------------------------------------------------------

Value segment_reduce(std::string_view kind, Value rows, Value offsets, Value segments) {
  return rows.builder().op(Opcode::segment_reduce, {rows, offsets, segments},
                           {{"kind", std::string(kind)}});
}

Value gather_rows(Value x, Value indices, Value offsets, Value order) {
  return x.builder().op(Opcode::gather_rows, {x, indices, offsets, order});
}

// ---- Control ------------------------------------------------------------------------------------

namespace {
std::vector<Type> types_of(std::span<const Value> values) {
  std::vector<Type> types;
  for (Value v : values) types.push_back(v.type());
  return types;
}
}  // namespace

std::vector<Value> if_else(Value predicate, std::span<const Value> arguments,
                           const Builder::Body& on_true, const Builder::Body& on_false) {
  Builder& b = predicate.builder();
  std::vector<Type> types = types_of(arguments);
  std::vector<GraphRef> regions = {b.region("then", types, on_true),
                                   b.region("else", types, on_false)};
  std::vector<Value> operands = {predicate};
  operands.insert(operands.end(), arguments.begin(), arguments.end());
  return b.ops(Opcode::if_, operands, {}, std::move(regions));
}

std::vector<Value> while_loop(std::span<const Value> initial, const Builder::Body& condition,
                              const Builder::Body& body) {
  HONE_CHECK(!initial.empty(), "a while loop without state");
  Builder& b = initial[0].builder();
  std::vector<Type> types = types_of(initial);
  std::vector<GraphRef> regions = {b.region("condition", types, condition),
                                   b.region("body", types, body)};
  return b.ops(Opcode::while_, initial, {}, std::move(regions));
}

std::vector<Value> scan(std::span<const Value> initial, std::span<const Value> scanned,
                        const Builder::Body& body, bool reverse) {
  HONE_CHECK(!scanned.empty(), "a scan over nothing");
  Builder& b = scanned[0].builder();
  std::vector<Type> types = types_of(initial);
  for (Value v : scanned) {
    if (v.rank() == 0) {
      b.fail(bad_input("scan over a value of rank 0"));
      return std::vector<Value>(initial.size() + 8, v);
    }
    types.push_back(v.type().with_dims(v.type().dims().subspan(1)));
  }
  std::vector<GraphRef> regions = {b.region("body", types, body)};
  std::vector<Value> operands(initial.begin(), initial.end());
  operands.insert(operands.end(), scanned.begin(), scanned.end());
  return b.ops(Opcode::scan, operands,
               {{"carried", static_cast<int64_t>(initial.size())}, {"reverse", reverse}},
               std::move(regions));
}

// ---- Composites ---------------------------------------------------------------------------------

Value relu(Value x) { return unary(Opcode::relu, x); }
Value gelu(Value x, bool tanh_form) {
  return x.builder().op(Opcode::gelu, {x}, {{"form", std::string(tanh_form ? "tanh" : "erf")}});
}
Value silu(Value x) { return unary(Opcode::silu, x); }
Value hard_swish(Value x) { return unary(Opcode::hard_swish, x); }
Value hard_sigmoid(Value x) { return unary(Opcode::hard_sigmoid, x); }
Value softmax(Value x, int axis) {
  return x.builder().op(Opcode::softmax, {x}, {{"axis", int64_t{axis}}});
}
Value log_softmax(Value x, int axis) {
  return x.builder().op(Opcode::log_softmax, {x}, {{"axis", int64_t{axis}}});
}
Value layer_norm(Value x, Value scale, Value bias, int axis, double epsilon) {
  return x.builder().op(Opcode::layer_norm, {x, scale, bias},
                        {{"axis", int64_t{axis}}, {"epsilon", epsilon}});
}
Value rms_norm(Value x, Value scale, int axis, double epsilon) {
  return x.builder().op(Opcode::rms_norm, {x, scale},
                        {{"axis", int64_t{axis}}, {"epsilon", epsilon}});
}
Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance, double epsilon) {
  return x.builder().op(Opcode::batch_norm, {x, scale, bias, mean, variance},
                        {{"epsilon", epsilon}});
}
Value group_norm(Value x, Value scale, Value bias, int64_t groups, double epsilon) {
  return x.builder().op(Opcode::group_norm, {x, scale, bias},
                        {{"groups", groups}, {"epsilon", epsilon}});
}
Value global_average_pool(Value x) {
  return x.builder().op(Opcode::global_pool, {x}, {{"kind", "average"}});
}
Value einsum(std::string_view equation, std::span<const Value> operands) {
  HONE_CHECK(!operands.empty(), "einsum of nothing");
  return operands[0].builder().op(Opcode::einsum, operands, {{"equation", std::string(equation)}});
}
Value einsum(std::string_view equation, std::initializer_list<Value> operands) {
  return einsum(equation, std::span<const Value>(operands.begin(), operands.size()));
}

}  // namespace hone
