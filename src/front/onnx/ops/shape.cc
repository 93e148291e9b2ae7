#include <algorithm>
#include <cmath>
#include <numeric>

#include "front/onnx/flow.h"
#include "front/onnx/frame.h"
#include "front/onnx/ops/forms.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// Shapes, and what is made of shapes alone.

namespace hone::onnx_io {
namespace {

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (Dim dim : dims) result *= dim;
  return result;
}

std::string text(const Dims& dims) { return to_string(AttrValue(dims)); }

// A tensor's element as a scalar constant.
Value scalar_constant(Node& n, const Tensor& tensor) {
  if (tensor.elements() != 1)
    n.bad("the value has type {}, want one element", tensor.type().to_string());
  return n.builder().constant(tensor.viewed_as(Type::scalar(tensor.dtype())));
}

// An attribute before version 13, then an operand.
std::optional<Ints> axes_of(Node& n) {
  if (n.version() < 13) {
    if (n.has_attribute("axes")) return n.ints("axes");
  } else if (n.has(1)) {
    return n.integers(1);
  }
  return std::nullopt;
}

bool has_measured_axes(Node& n) {
  if (n.version() < 13 || !n.has(1) || n.known(1)) return false;
  n.refuse_endless(1);
  return true;
}

int64_t axes_count(Node& n) {
  Value axes = n.in(1);
  if (axes.rank() != 1) n.bad("operand 1 has rank {}, want a vector of axes", axes.rank());
  if (!axes.dim(0).is_static())
    n.unsupported("the number of axes, {}, is not known", axes.dim(0).to_string());
  return axes.dim(0).value();
}

// For axes that depend on data: whether each of `rank` dims is named by them, bool[rank].
Value named_dims(Node& n, int64_t rank) {
  Builder& b = n.builder();
  const std::vector<Value> axes = elements_of(n, 1);
  Value dims = iota(b, DType::i64, {rank}, 0), named = b.full(DType::boolean, {rank}, 0);
  for (Value axis : axes) {
    Value counted = select(compare("lt", axis, 0), axis + static_cast<double>(rank), axis);
    named = binary(Opcode::or_, named, compare("eq", dims, counted));
  }
  n.must_be(reduce_sum(cast(named, DType::i64), {0}), static_cast<int64_t>(axes.size()),
            "the number of dims that axes name");
  return named;
}

// x under the dims that an i64 vector holds.
Value reshaped_to(Node& n, Value x, Value sizes, int64_t rank) {
  std::vector<Value> scalars;
  for (int64_t i = 0; i < rank; ++i) scalars.push_back(element_of(sizes, i));
  return reshaped(n, x, scalars);
}

// The dims of x where the axes do not name them.
void squeeze_measured(Node& n, Value x) {
  const int64_t left = x.rank() - axes_count(n);
  if (left < 0) n.bad("{} axes for rank {}", axes_count(n), x.rank());
  Value kept = unary(Opcode::not_, named_dims(n, x.rank()));
  // A stable sort brings what is kept to the front.
  Value key = cast(unary(Opcode::not_, kept), DType::u8);
  const std::vector<Value> pair = {key, dims_value(n.builder(), x.dims())};
  n.out(reshaped_to(n, x, sort(pair, 0, false)[1], left));
}

// The dims of x in order where the axes do not name them, 1 elsewhere.
void unsqueeze_measured(Node& n, Value x) {
  const int64_t rank = x.rank() + axes_count(n);
  if (rank > kMaxRank) n.over_limit("the result has rank {}; the limit is {}", rank, kMaxRank);
  Builder& b = n.builder();
  Value named = named_dims(n, rank);
  Value place = cumulative("sum", cast(unary(Opcode::not_, named), DType::i64), 0) - 1;
  Value one = b.full(DType::i64, {rank}, 1);
  Value sizes = x.rank() == 0 ? one : take(dims_value(b, x.dims()), place);
  n.out(reshaped_to(n, x, select(named, one, sizes), rank));
}

}  // namespace

// ---- Sizes --------------------------------------------------------------------------------------

void map_shape(Node& n) {
  Value x = n.in();
  const int64_t rank = x.rank();
  int64_t start = 0, end = rank;
  if (n.version() >= 15) {
    auto clamped = [rank](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
    start = clamped(n.integer("start", 0));
    end = std::max(start, clamped(n.integer("end", rank)));
  }
  const Dims dims = x.dims();
  n.out(dims_value(n.builder(), {dims.begin() + start, dims.begin() + end}));
}

void map_size(Node& n) { n.out(size_value(n.builder(), n.in().type().elements())); }

// ---- Constants ----------------------------------------------------------------------------------

void map_constant(Node& n) {
  constexpr std::string_view kNames[] = {"value",        "sparse_value", "value_float",
                                         "value_floats", "value_int",    "value_ints",
                                         "value_string", "value_strings"};
  std::vector<std::string_view> given;
  for (std::string_view name : kNames)
    if (n.has_attribute(name)) given.push_back(name);
  if (given.size() != 1) n.bad("has {} of the value attributes, want one", given.size());
  auto vector_of = [](DType dtype, size_t size) {
    return Type::get(dtype, {Dim(static_cast<int64_t>(size))});
  };
  const std::string_view name = given[0];
  Tensor tensor;
  if (name == "value") {
    tensor = n.tensor(name);
  } else if (name == "sparse_value") {
    const onnx::AttributeProto* sparse = n.attribute(name);
    n.require(sparse->has_sparse_tensor(), "sparse_value is not a sparse tensor");
    tensor = n.take(n.frame().file().tensor(sparse->sparse_tensor()));
  } else if (name == "value_float") {
    tensor = Tensor::scalar(DType::f32, n.real(name));
  } else if (name == "value_floats") {
    const std::vector<double> reals = n.reals(name);
    tensor = Tensor::from_reals(vector_of(DType::f32, reals.size()), reals);
  } else if (name == "value_int") {
    tensor = Tensor::from_integers(Type::scalar(DType::i64), Ints{n.integer(name)});
  } else if (name == "value_ints") {
    const Ints ints = n.ints(name);
    tensor = Tensor::from_integers(vector_of(DType::i64, ints.size()), ints);
  } else if (name == "value_strings") {
    const Ints places = n.strings(name);
    tensor = Tensor::from_integers(vector_of(DType::i64, places.size()), places);
  } else {
    tensor = Tensor::from_integers(Type::scalar(DType::i64), Ints{n.string(name, "")});
  }
  n.out(n.builder().constant(tensor));
}

void map_constant_of_shape(Node& n) {
  const Dims dims = measured_sizes(n, 0);
  Value value = n.has_attribute("value") ? scalar_constant(n, n.tensor("value"))
                                         : n.builder().scalar(DType::f32, 0);
  n.out(broadcast_to(value, dims));
}

void map_eye_like(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the input", 2, 2);
  const DType dtype = n.dtype("dtype", x.dtype());
  // Beyond any size the diagonal is outside on either side alike.
  const int64_t k = std::clamp<int64_t>(n.integer("k", 0), -kMaxElements, kMaxElements);
  Builder& b = n.builder();
  Value row = iota(b, DType::i64, x.dims(), 0), column = iota(b, DType::i64, x.dims(), 1);
  n.out(cast(compare("eq", row + static_cast<double>(k), column), dtype));
}

// ---- Range --------------------------------------------------------------------------------------

namespace {

// How many steps lead from start up to, without, limit; null if no dim says it.
std::optional<Dim> step_count(Node& n, Dim start, Dim limit, Dim delta) {
  if (delta.is(0)) n.bad("the step is 0");
  if (!delta.is_static()) return std::nullopt;
  const bool down = delta.value() < 0;
  const Dim distance = down ? start - limit : limit - start;
  if (provably_le(distance, 0)) return Dim(0);
  const Dim count = ceildiv(distance, down ? -delta.value() : delta.value());
  if (!provably_le(0, distance)) return std::nullopt;
  return count;
}

// The same in the graph: ceil((limit - start) / delta), at least 0.
Value step_count(Value start, Value limit, Value delta) {
  if (is_real(start.dtype())) {
    Value steps = (cast(limit, DType::f64) - cast(start, DType::f64)) / cast(delta, DType::f64);
    return maximum(cast(unary(Opcode::ceil, steps), DType::i64), 0);
  }
  limit = cast(limit, DType::i64), start = cast(start, DType::i64);
  delta = cast(delta, DType::i64);
  Value distance = limit - start;
  // Division rounds toward zero, which for a positive quotient is down: add what was cut off.
  Value cut = cast(compare("ne", binary(Opcode::rem, distance, delta), 0), DType::i64);
  Value same_way = compare("ge", binary(Opcode::xor_, distance, delta), 0);
  Value count = maximum(distance / delta + cut, 0);  // x / 0 is -1
  return select(same_way, count, start.builder().scalar(DType::i64, 0));
}

}  // namespace

namespace {

bool is_number(Node& n, Value scalar, int64_t number) {
  const std::optional<Dim> known =
      is_integer(scalar.dtype()) ? known_scalar(n, scalar) : std::nullopt;
  return known && known->is(number);
}

// The count, which is 0 where a check says that it has no meaning.
Value checked_count(Node& n, Value start, Value limit, Value delta) {
  Value count = step_count(start, limit, delta);
  if (!n.is_checked()) return count;
  Value stands = compare("eq", delta, 0);
  // Between integers of 64 bits the distance may have no number.
  Value up = compare("ge", limit, start),
        wraps = compare("ne", up, compare("ge", limit - start, 0));
  n.check(delta, stands, "a step other than 0");
  if (is_integer(start.dtype())) n.check(limit, wraps, "a limit less than 2^63 from the start");
  Value none = n.builder().scalar(DType::i64, 0);
  Value wrong = is_integer(start.dtype()) ? binary(Opcode::or_, stands, wraps) : stands;
  return select(wrong, none, count);
}

void map_range_by(Node& n, Value delta) {
  Value start = scalar_of(n, 0), limit = scalar_of(n, 1);
  for (size_t i = 0; i < n.inputs(); ++i) n.refuse_endless(i);
  std::optional<Dim> count;
  if (is_integer(start.dtype())) {
    std::optional<Dim> first = known_scalar(n, start), last = known_scalar(n, limit);
    std::optional<Dim> step = known_scalar(n, delta);
    if (first && last && step) count = step_count(n, *first, *last, *step);
  }
  if (!count) count = n.size(checked_count(n, start, limit, delta));
  Value steps = iota(n.builder(), start.dtype(), {*count}, 0);
  if (is_number(n, start, 0) && is_number(n, delta, 1)) return n.out(steps);
  n.out(steps * delta + start);
}

}  // namespace

void map_range(Node& n) { map_range_by(n, scalar_of(n, 2)); }

void map_contributed_range(Node& n) {
  map_range_by(n, n.has(2) ? scalar_of(n, 2) : n.builder().scalar(n.in(0).dtype(), 1));
}

// ---- Reshape ------------------------------------------------------------------------------------

namespace {

// The target with what 0 and -1 stand for.
Dims completed(Node& n, Value x, Dims target, bool zero_keeps) {
  std::optional<size_t> rest;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].is(0) && zero_keeps) {
      if (i >= static_cast<size_t>(x.rank()))
        n.bad("target {} keeps dim {} of {}, which has none", text(target), i,
              x.type().to_string());
      target[i] = x.dim(static_cast<int>(i));
    } else if (target[i].is(-1)) {
      if (rest) n.bad("target {} leaves two dims open", text(target));
      rest = i;
    } else if (target[i].range().low < 0) {
      n.bad("target {} has the size {}", text(target), target[i].to_string());
    }
  }
  if (!rest) return target;
  target[*rest] = 1;
  const Dim known = product(target), elements = x.type().elements();
  const std::optional<Dim> size = n.divided(elements, known);
  if (!size) {
    target[*rest] = -1;
    n.bad("{} with {} elements has no shape {}", x.type().to_string(), elements.to_string(),
          text(target));
  }
  target[*rest] = *size;
  return target;
}

// The same for a target that depends on data: the graph computes the sizes.
std::vector<Value> measured_target(Node& n, Value x, bool zero_keeps) {
  Builder& b = n.builder();
  std::vector<Value> sizes = elements_of(n, 1);
  Value one = b.scalar(DType::i64, 1), known = one;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (zero_keeps && i < static_cast<size_t>(x.rank())) {
      Value kept = size_value(b, x.dim(static_cast<int>(i)));
      sizes[i] = select(compare("eq", sizes[i], 0), kept, sizes[i]);
    }
    known = known * select(compare("eq", sizes[i], -1), one, sizes[i]);
  }
  Value rest = size_value(b, x.type().elements()) / maximum(known, one);
  for (Value& size : sizes) size = select(compare("eq", size, -1), rest, size);
  return sizes;
}

}  // namespace

void map_reshape(Node& n) {
  Value x = n.in();
  std::optional<Dims> target;
  if (n.version() < 5) {
    n.ignore("consumed_inputs");
    const Ints shape = n.ints("shape");
    target = Dims(shape.begin(), shape.end());
  } else {
    target = n.known(1);
    if (!target) n.refuse_endless(1);
  }
  const bool zero_keeps = n.version() < 14 || !n.flag("allowzero");
  n.out(target ? reshape(x, completed(n, x, *target, zero_keeps))
               : reshaped(n, x, measured_target(n, x, zero_keeps)));
}

void map_flatten(Node& n) {
  Value x = n.in();
  const int64_t rank = x.rank(), given = n.integer("axis", 1);
  const int64_t axis = given < 0 && n.version() >= 11 ? given + rank : given;
  if (axis < 0 || axis > rank) n.bad("axis {} is outside of rank {}", given, rank);
  const Dims dims = x.dims();
  const std::span<const Dim> all = dims;
  const size_t at = static_cast<size_t>(axis);
  n.out(reshape(x, {product(all.first(at)), product(all.subspan(at))}));
}

void map_squeeze(Node& n) {
  Value x = n.in();
  if (has_measured_axes(n)) return squeeze_measured(n, x);
  Ints axes;
  if (std::optional<Ints> given = axes_of(n)) {
    axes = n.axes_in(*given, x.rank());
  } else {
    for (int i = 0; i < x.rank(); ++i) {
      const Dim dim = x.dim(i);
      if (dim.is(1)) axes.push_back(i);
      if (!dim.is_static() && dim.range().low <= 1 && dim.range().high >= 1)
        n.unsupported("the result's rank depends on whether dim {} ({}) is 1", i, dim.to_string());
    }
  }
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const int at = static_cast<int>(*axis);
    if (x.dim(at).is_static() && !x.dim(at).is(1))
      n.bad("dim {} of {} is not 1", at, x.type().to_string());
    n.must_be(x.dim(at), 1, fmt::format("dim {}", *axis));
    if (!x.dim(at).is(1)) x = slice(x, at, 0, 1);
    x = squeeze(x, at);
  }
  n.out(x);
}

void map_unsqueeze(Node& n) {
  Value x = n.in();
  if (has_measured_axes(n)) return unsqueeze_measured(n, x);
  std::optional<Ints> axes = axes_of(n);
  if (!axes) n.bad("has no axes");
  const size_t rank = static_cast<size_t>(x.rank()) + axes->size();
  if (rank > static_cast<size_t>(kMaxRank))
    n.over_limit("the result has rank {}; the limit is {}", rank, kMaxRank);
  Dims dims = x.dims();
  for (int64_t axis : n.axes_in(*axes, static_cast<int>(rank))) dims.insert(dims.begin() + axis, 1);
  n.out(reshape(x, dims));
}

// ---- Order and repetition -----------------------------------------------------------------------

void map_transpose(Node& n) {
  Value x = n.in();
  Ints permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  if (n.has_attribute("perm")) permutation = distinct_axes(n, n.ints("perm"), x.rank());
  if (permutation.size() != static_cast<size_t>(x.rank()))
    n.bad("perm has {} entries for rank {}", permutation.size(), x.rank());
  n.out(transpose(x, permutation));
}

void map_expand(Node& n) {
  Value x = n.in();
  const Dims asked = measured_sizes(n, 1);
  const size_t rank = std::max(asked.size(), static_cast<size_t>(x.rank()));
  if (rank > static_cast<size_t>(kMaxRank))
    n.over_limit("the result has rank {}; the limit is {}", rank, kMaxRank);
  const size_t missing = rank - static_cast<size_t>(x.rank());
  Dims dims(missing, 1);
  for (Dim dim : x.dims()) dims.push_back(dim);
  for (size_t i = 0; i < asked.size(); ++i) {
    const size_t at = rank - asked.size() + i;
    if (asked[i].is(1) || dims[at] == asked[i]) continue;
    if (dims[at].is_static() && asked[i].is_static() && !dims[at].is(1))
      n.bad("{} does not expand to {}", x.type().to_string(), text(asked));
    if (dims[at].is_static() && !dims[at].is(1)) {
      n.must_be(asked[i], dims[at], fmt::format("dim {} of the target", i), /*or_one=*/true);
      continue;
    }
    if (!dims[at].is_static()) {
      // The size is 1, which is repeated, or of the size asked for: indices are clamped.
      if (!asked[i].is_static() && asked[i].range().low <= 1) {
        demand(Demand::Kind::broadcast, dims[at], asked[i]);
        n.unsupported("whether {} or {} is 1 depends on data", dims[at].to_string(),
                      asked[i].to_string());
      }
      n.must_be(dims[at], asked[i], fmt::format("dim {} of the input", at - missing),
                /*or_one=*/true);
      Value places = iota(n.builder(), DType::i64, {asked[i]}, 0);
      x = looked_up(x, places, static_cast<int>(at - missing));
    }
    dims[at] = asked[i];
  }
  n.out(stretched(x, dims));
}

namespace {

Value repeated(Node& n, Value x, int axis, Dim times) {
  if (times.range().low < 0) n.bad("dim {} is repeated {} times", axis, times.to_string());
  if (times.is(1)) return x;
  Dims dims = x.dims();
  const std::span<const Dim> all = dims;
  const size_t at = static_cast<size_t>(axis);
  const Dim before = product(all.first(at)), after = product(all.subspan(at));
  Value y = broadcast(reshape(x, {before, after}), {before, times, after}, {0, 2});
  dims[at] *= times;
  return reshape(y, dims);
}

}  // namespace

void map_tile(Node& n) {
  Value x = n.in();
  if (n.version() < 6) {
    const int64_t axis = static_cast<int64_t>(n.real(2, 0));
    const double times = std::clamp(n.real(1, 1), -1.0, static_cast<double>(kMaxElements));
    n.out(repeated(n, x, n.axis_in(axis, x.rank()), Dim(static_cast<int64_t>(times))));
    return;
  }
  const Dims repeats = measured_sizes(n, 1, x.type().elements());
  if (repeats.size() != static_cast<size_t>(x.rank()))
    n.bad("{} repeats for rank {}", repeats.size(), x.rank());
  for (int i = 0; i < x.rank(); ++i) x = repeated(n, x, i, repeats[static_cast<size_t>(i)]);
  n.out(x);
}

void map_trilu(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the input", 2);
  const bool upper = n.flag("upper", true);
  Builder& b = n.builder();
  const Dims dims = {x.dim(-2), x.dim(-1)};
  Value offset = iota(b, DType::i64, dims, 1) - iota(b, DType::i64, dims, 0);
  Value k = n.has(1) ? cast(scalar_of(n, 1), DType::i64) : b.scalar(DType::i64, 0);
  Value kept = compare(upper ? "ge" : "le", offset, k);
  n.out(select(kept, x, broadcast_to(b.scalar(x.dtype(), 0), x.dims())));
}

// ---- Blocks -------------------------------------------------------------------------------------

namespace {

int64_t block_of(Node& n, Value x) {
  n.require_rank(x, "the input", 4, 4);
  const int64_t block = n.integer("blocksize");
  if (block < 1 || block > (int64_t{1} << 20)) n.bad("blocksize is {}", block);
  return block;
}

// How the channels of an element are ordered: depth, column, row, or column, row, depth. `since`:
// the version from which there is a choice.
bool columns_first(Node& n, int since) {
  const std::string mode = n.version() < since ? "DCR" : n.word("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.bad("mode is '{}', want DCR or CRD", mode);
  return mode == "CRD";
}

}  // namespace

void map_depth_to_space(Node& n) {
  Value x = n.in();
  const int64_t block = block_of(n, x);
  const bool columns = columns_first(n, 11);
  n.out(n.builder().op(Opcode::depth_to_space, {x},
                       {{"block", block}, {"mode", columns ? "crd" : "dcr"}}));
}

// space_to_depth orders a result's channels by the place in the block, then by the channel of x;
// with columns first it is the other way round.
void map_space_to_depth(Node& n) {
  Value x = n.in();
  const int64_t block = block_of(n, x);
  Value y = n.builder().op(Opcode::space_to_depth, {x}, {{"block", block}});
  if (columns_first(n, 28)) {
    const Dims dims = y.dims();
    y = reshape(y, {dims[0], block * block, x.dim(1), dims[2], dims[3]});
    y = reshape(transpose(y, {0, 2, 1, 3, 4}), dims);
  }
  n.out(y);
}

}  // namespace hone::onnx_io
