#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/front/shape_judge.h"

namespace hone::shape_judge {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kMostElements = 20'000;
constexpr double kMostInteger = 1e9;  // below it all of i32 and i64 are alike

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0) throw Illegal{"a dim is negative"};
    if (dim > kMostElements) throw Unclear{"too large"};
    count *= dim;
    if (count > kMostElements) throw Unclear{"too large"};
  }
  return count;
}

// The indices of a place in a tensor of these dims.
Dims indices_at(int64_t place, const Dims& dims) {
  Dims indices(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    indices[i] = place % dims[i];
    place /= dims[i];
  }
  return indices;
}

int64_t place_of(const Dims& indices, const Dims& dims) {
  int64_t place = 0;
  for (size_t i = 0; i < dims.size(); ++i) place = place * dims[i] + indices[i];
  return place;
}

// Each element of the result is one of x, or `fill` if `source` says false.
Array gathered(const Array& x, const Dims& dims, const std::function<bool(Dims&)>& source,
               double fill = 0) {
  Array y = {x.kind, dims, {}};
  const int64_t count = count_of(dims);
  for (int64_t i = 0; i < count; ++i) {
    Dims indices = indices_at(i, dims);
    const bool is_inside = source(indices);
    y.values.push_back(is_inside ? x.values[static_cast<size_t>(place_of(indices, x.dims))] : fill);
  }
  return y;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw Illegal{"dims do not broadcast"};
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

Array broadcast(const Array& x, const Dims& dims) {
  return gathered(x, dims, [&](Dims& indices) {
    indices.erase(indices.begin(), indices.end() - static_cast<int64_t>(x.dims.size()));
    for (size_t i = 0; i < indices.size(); ++i)
      if (x.dims[i] == 1) indices[i] = 0;
    return true;
  });
}

double held(Kind kind, double value) {
  if (kind == Kind::boolean) return value != 0 ? 1 : 0;
  if (kind == Kind::f32) return static_cast<float>(value);
  if (!(std::abs(value) <= kMostInteger)) throw Unclear{"an integer is large"};
  return std::trunc(value);
}

class Op {
 public:
  Op(const onnx::NodeProto& node, Arrays& arrays) : node_(node), arrays_(arrays) {}
  void run();

 private:
  bool has(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
  const Array& in(int i) const {
    if (!has(i)) throw Illegal{"an operand is missing"};
    return arrays_.at(node_.input(i));
  }
  void out(int i, Array array) { arrays_[node_.output(i)] = std::move(array); }
  void out(Array array) { out(0, std::move(array)); }

  const onnx::AttributeProto* attribute(const char* name) const {
    for (const onnx::AttributeProto& a : node_.attribute())
      if (a.name() == name) return &a;
    return nullptr;
  }
  int64_t integer(const char* name, int64_t otherwise) const {
    const onnx::AttributeProto* a = attribute(name);
    return a == nullptr ? otherwise : a->i();
  }
  std::string word(const char* name, const char* otherwise) const {
    const onnx::AttributeProto* a = attribute(name);
    return a == nullptr ? otherwise : a->s();
  }
  // A list of integers: of a vector, or of a scalar where the op allows one.
  Dims list(int i, bool may_be_scalar = false) const {
    const Array& x = in(i);
    if (x.dims.size() != 1 && !(may_be_scalar && x.dims.empty())) throw Illegal{"no vector"};
    if (x.kind != Kind::i64 && x.kind != Kind::i32) throw Illegal{"no integers"};
    Dims values;
    for (double value : x.values) values.push_back(static_cast<int64_t>(value));
    return values;
  }
  double scalar(int i) const {
    if (in(i).values.size() != 1) throw Illegal{"no scalar"};
    return in(i).values[0];
  }
  static int64_t axis_in(int64_t axis, size_t rank) {
    const auto count = static_cast<int64_t>(rank);
    if (axis < -count || axis >= count) throw Illegal{"an axis is out of range"};
    return axis < 0 ? axis + count : axis;
  }
  static Dims axes_in(Dims axes, size_t rank) {
    for (int64_t& axis : axes) axis = axis_in(axis, rank);
    Dims sorted = axes;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) throw Illegal{"an axis is given twice"};
    return axes;
  }

  void shape();
  void gather();
  void slice();
  void concat();
  void elementwise(const std::function<double(double, double)>& f, bool compares = false);
  void quotient();
  void each(const std::function<double(double)>& f);
  void cast();
  void squeeze();
  void unsqueeze();
  void reduce();
  void where();
  void non_zero();
  void range();
  void constant_of_shape();
  void expand();
  void reshape();
  void tile();
  void pad();
  void resize();
  void transpose();
  void split();

  const onnx::NodeProto& node_;
  Arrays& arrays_;
};

Array vector_of(const Dims& values) {
  Array x = {Kind::i64, {static_cast<int64_t>(values.size())}, {}};
  x.values.assign(values.begin(), values.end());
  return x;
}

void Op::shape() {
  const Dims& dims = in(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = place(integer("start", 0)), end = place(integer("end", rank));
  out(vector_of(start >= end ? Dims() : Dims(dims.begin() + start, dims.begin() + end)));
}

void Op::gather() {
  const Array &x = in(0), &indices = in(1);
  const auto axis = static_cast<size_t>(axis_in(integer("axis", 0), x.dims.size()));
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<int64_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<int64_t>(axis) + 1, x.dims.end());
  const size_t rank = indices.dims.size();
  out(gathered(x, dims, [&](Dims& at) {
    const Dims where(at.begin() + static_cast<int64_t>(axis),
                     at.begin() + static_cast<int64_t>(axis + rank));
    auto index =
        static_cast<int64_t>(indices.values[static_cast<size_t>(place_of(where, indices.dims))]);
    if (index < -x.dims[axis] || index >= x.dims[axis]) throw Unclear{"an index is out of range"};
    if (index < 0) index += x.dims[axis];
    at.erase(at.begin() + static_cast<int64_t>(axis),
             at.begin() + static_cast<int64_t>(axis + rank));
    at.insert(at.begin() + static_cast<int64_t>(axis), index);
    return true;
  }));
}

void Op::slice() {
  const Array& x = in(0);
  const Dims starts = list(1), ends = list(2);
  Dims axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (has(3)) axes = list(3);
  if (has(4)) steps = list(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw Illegal{"lists of different lengths"};
  axes = axes_in(axes, x.dims.size());
  Dims dims = x.dims, first(dims.size(), 0), by(dims.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t dim = x.dims[axis], step = steps[i];
    if (step == 0) throw Illegal{"a step of 0"};
    int64_t start = starts[i] < 0 ? starts[i] + dim : starts[i];
    int64_t end = ends[i] < 0 ? ends[i] + dim : ends[i];
    if (step > 0) {
      start = std::clamp<int64_t>(start, 0, dim);
      end = std::clamp<int64_t>(end, 0, dim);
    } else {
      if (start < 0 || dim == 0) throw Unclear{"starts before the beginning, and goes down"};
      start = std::clamp<int64_t>(start, 0, dim - 1);
      end = std::clamp<int64_t>(end, -1, dim - 1);
    }
    const int64_t distance = step > 0 ? end - start : start - end, stride = std::abs(step);
    dims[axis] = distance <= 0 ? 0 : (distance + stride - 1) / stride;
    first[axis] = start;
    by[axis] = step;
  }
  out(gathered(x, dims, [&](Dims& at) {
    for (size_t i = 0; i < at.size(); ++i) at[i] = first[i] + at[i] * by[i];
    return true;
  }));
}

void Op::concat() {
  const size_t rank = in(0).dims.size();
  const auto axis = static_cast<size_t>(axis_in(integer("axis", 0), rank));
  Array y = in(0);
  for (int i = 1; i < node_.input_size(); ++i) {
    const Array& x = in(i);
    Dims dims = y.dims, others = x.dims;
    if (x.dims.size() != rank || x.kind != y.kind) throw Illegal{"parts differ"};
    const int64_t before = y.dims[axis];
    dims[axis] = others[axis] = 0;
    if (dims != others) throw Illegal{"parts differ"};
    dims[axis] = before + x.dims[axis];
    Array joined = {y.kind, dims, {}};
    for (int64_t place = 0; place < count_of(dims); ++place) {
      Dims at = indices_at(place, dims);
      const bool is_first = at[axis] < before;
      if (!is_first) at[axis] -= before;
      const Array& from = is_first ? y : x;
      joined.values.push_back(from.values[static_cast<size_t>(place_of(at, from.dims))]);
    }
    y = std::move(joined);
  }
  out(std::move(y));
}

void Op::elementwise(const std::function<double(double, double)>& f, bool compares) {
  Array y = in(0);
  for (int i = 1; i < node_.input_size(); ++i) {
    const Array& x = in(i);
    if (x.kind != y.kind) throw Illegal{"kinds differ"};
    const Dims dims = broadcast_dims(y.dims, x.dims);
    const Array a = broadcast(y, dims), b = broadcast(x, dims);
    y = {y.kind, dims, {}};
    for (size_t k = 0; k < a.values.size(); ++k) y.values.push_back(f(a.values[k], b.values[k]));
  }
  if (compares) y.kind = Kind::boolean;
  for (double& value : y.values) value = held(y.kind, value);
  out(std::move(y));
}

void Op::quotient() {
  const bool is_real = in(0).kind == Kind::f32;
  elementwise([&](double a, double b) {
    if (b == 0) throw Unclear{"divides by 0"};
    return is_real ? a / b : std::trunc(a / b);
  });
}

void Op::each(const std::function<double(double)>& f) {
  Array y = in(0);
  for (double& value : y.values) value = held(y.kind, f(value));
  out(std::move(y));
}

void Op::cast() {
  Array y = in(0);
  switch (integer("to", 0)) {
    case onnx::TensorProto::FLOAT: y.kind = Kind::f32; break;
    case onnx::TensorProto::INT32: y.kind = Kind::i32; break;
    case onnx::TensorProto::INT64: y.kind = Kind::i64; break;
    case onnx::TensorProto::BOOL: y.kind = Kind::boolean; break;
    default: throw Unclear{"casts to a kind that the judge does not know"};
  }
  for (double& value : y.values) value = held(y.kind, value);
  out(std::move(y));
}

void Op::squeeze() {
  Array y = in(0);
  Dims axes;
  if (has(1)) {
    axes = axes_in(list(1), y.dims.size());
  } else {
    for (size_t i = 0; i < y.dims.size(); ++i)
      if (y.dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  Dims dims;
  for (size_t i = 0; i < y.dims.size(); ++i) {
    const bool is_named = std::ranges::find(axes, static_cast<int64_t>(i)) != axes.end();
    if (is_named && y.dims[i] != 1) throw Illegal{"a squeezed dim is not 1"};
    if (!is_named) dims.push_back(y.dims[i]);
  }
  y.dims = dims;
  out(std::move(y));
}

void Op::unsqueeze() {
  Array y = in(0);
  const Dims given = list(1);
  Dims axes = axes_in(given, y.dims.size() + given.size());
  std::ranges::sort(axes);
  for (int64_t axis : axes) y.dims.insert(y.dims.begin() + axis, 1);
  out(std::move(y));
}

void Op::reduce() {
  const Array& x = in(0);
  const std::string& op = node_.op_type();
  Dims axes;
  if (op == "ReduceSum") {
    if (has(1)) axes = list(1);
  } else if (const onnx::AttributeProto* given = attribute("axes")) {
    axes.assign(given->ints().begin(), given->ints().end());
  }
  if (axes.empty()) {
    axes.resize(x.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  axes = axes_in(axes, x.dims.size());
  Dims kept = x.dims;
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<std::vector<double>> groups(static_cast<size_t>(count_of(kept)));
  for (size_t i = 0; i < x.values.size(); ++i) {
    Dims at = indices_at(static_cast<int64_t>(i), x.dims);
    for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
    groups[static_cast<size_t>(place_of(at, kept))].push_back(x.values[i]);
  }
  Array y = {x.kind, kept, {}};
  for (const std::vector<double>& group : groups) {
    if (op == "ReduceSum") {
      y.values.push_back(held(y.kind, std::accumulate(group.begin(), group.end(), 0.0)));
    } else if (op == "ReduceProd") {
      y.values.push_back(
          held(y.kind, std::accumulate(group.begin(), group.end(), 1.0, std::multiplies<>())));
    } else {
      if (group.empty()) throw Unclear{"an extreme of nothing"};
      y.values.push_back(op == "ReduceMax" ? std::ranges::max(group) : std::ranges::min(group));
    }
  }
  if (integer("keepdims", 1) == 0) {
    std::ranges::sort(axes, std::greater<>());
    for (int64_t axis : axes) y.dims.erase(y.dims.begin() + axis);
  }
  out(std::move(y));
}

void Op::where() {
  if (in(1).kind != in(2).kind || in(0).kind != Kind::boolean) throw Illegal{"kinds differ"};
  const Dims dims = broadcast_dims(in(0).dims, broadcast_dims(in(1).dims, in(2).dims));
  const Array condition = broadcast(in(0), dims), x = broadcast(in(1), dims);
  Array y = broadcast(in(2), dims);
  for (size_t i = 0; i < y.values.size(); ++i)
    if (condition.values[i] != 0) y.values[i] = x.values[i];
  out(std::move(y));
}

void Op::non_zero() {
  const Array& x = in(0);
  std::vector<Dims> places;
  for (size_t i = 0; i < x.values.size(); ++i)
    if (x.values[i] != 0) places.push_back(indices_at(static_cast<int64_t>(i), x.dims));
  Array y = {
      Kind::i64, {static_cast<int64_t>(x.dims.size()), static_cast<int64_t>(places.size())}, {}};
  for (size_t axis = 0; axis < x.dims.size(); ++axis)
    for (const Dims& place : places) y.values.push_back(static_cast<double>(place[axis]));
  out(std::move(y));
}

void Op::range() {
  const double start = scalar(0), limit = scalar(1), delta = scalar(2);
  if (delta == 0) throw Unclear{"a step of 0"};
  const auto count = static_cast<int64_t>(std::max(std::ceil((limit - start) / delta), 0.0));
  Array y = {in(0).kind, {count}, {}};
  count_of(y.dims);
  for (int64_t i = 0; i < count; ++i)
    y.values.push_back(held(y.kind, start + static_cast<double>(i) * delta));
  out(std::move(y));
}

void Op::constant_of_shape() {
  const Dims dims = list(0);
  if (attribute("value") != nullptr) throw Unclear{"a value that the judge does not read"};
  out({Kind::f32, dims, std::vector<double>(static_cast<size_t>(count_of(dims)), 0)});
}

void Op::expand() {
  const Dims target = list(1);
  count_of(target);
  out(broadcast(in(0), broadcast_dims(in(0).dims, target)));
}

void Op::reshape() {
  Array y = in(0);
  Dims target = list(1);
  int64_t* rest = nullptr;
  int64_t known = 1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && integer("allowzero", 0) == 0) {
      if (i >= y.dims.size()) throw Illegal{"keeps a dim that the input lacks"};
      target[i] = y.dims[i];
    }
    if (target[i] == -1) {
      if (rest != nullptr) throw Illegal{"two dims of -1"};
      rest = &target[i];
    } else if (target[i] < 0) {
      throw Illegal{"a negative dim"};
    } else {
      known *= target[i];
    }
  }
  const auto count = static_cast<int64_t>(y.values.size());
  if (rest != nullptr) {
    if (known == 0) throw Unclear{"-1 beside a dim of 0"};
    if (count % known != 0) throw Illegal{"-1 is no whole number"};
    *rest = count / known;
    known *= *rest;
  }
  if (known != count) throw Illegal{"another number of elements"};
  y.dims = target;
  out(std::move(y));
}

void Op::tile() {
  const Array& x = in(0);
  const Dims repeats = list(1);
  if (repeats.size() != x.dims.size()) throw Illegal{"repeats for another rank"};
  Dims dims = x.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] < 0) throw Illegal{"a negative number of repeats"};
    dims[i] *= repeats[i];
  }
  out(gathered(x, dims, [&](Dims& at) {
    for (size_t i = 0; i < at.size(); ++i) at[i] %= x.dims[i];
    return true;
  }));
}

void Op::pad() {
  const Array& x = in(0);
  const Dims pads = list(1);
  const size_t rank = x.dims.size();
  if (pads.size() != 2 * rank) throw Illegal{"pads for another rank"};
  const std::string mode = word("mode", "constant");
  Dims dims = x.dims;
  for (size_t i = 0; i < rank; ++i) {
    dims[i] += pads[i] + pads[rank + i];
    const bool is_negative = pads[i] < 0 || pads[rank + i] < 0;
    if (mode == "constant") continue;
    if (is_negative) throw Unclear{"negative pads of another mode"};
    const bool is_padded = pads[i] > 0 || pads[rank + i] > 0;
    const int64_t room = mode == "reflect" ? x.dims[i] - 1 : x.dims[i] > 0 ? kMostElements : 0;
    if (is_padded && std::max(pads[i], pads[rank + i]) > room) throw Unclear{"nothing to repeat"};
  }
  out(gathered(x, dims, [&](Dims& at) {
    bool is_inside = true;
    for (size_t i = 0; i < rank; ++i) {
      at[i] -= pads[i];
      const int64_t last = x.dims[i] - 1;
      if (mode == "edge") at[i] = std::clamp<int64_t>(at[i], 0, last);
      if (mode == "reflect" && at[i] < 0) at[i] = -at[i];
      if (mode == "reflect" && at[i] > last) at[i] = 2 * last - at[i];
      is_inside &= at[i] >= 0 && at[i] <= last;
    }
    return is_inside;
  }));
}

// Nearest, with positions divided by the scale and rounded down.
void Op::resize() {
  const Array& x = in(0);
  if (word("mode", "") != "nearest" || word("nearest_mode", "") != "floor" ||
      word("coordinate_transformation_mode", "") != "asymmetric")
    throw Unclear{"a way to resize that the judge does not know"};
  const size_t rank = x.dims.size();
  Dims dims(rank);
  std::vector<double> scales(rank);
  if (has(2) == has(3)) throw Illegal{"sizes and scales"};
  const Array& given = in(has(2) ? 2 : 3);
  if (given.dims != Dims{static_cast<int64_t>(rank)}) throw Illegal{"sizes for another rank"};
  for (size_t i = 0; i < rank; ++i) {
    if (x.dims[i] == 0) throw Unclear{"resizes nothing"};
    if (has(2)) {
      scales[i] = given.values[i];
      if (!(scales[i] > 0)) throw Illegal{"a scale is not positive"};
      dims[i] = static_cast<int64_t>(std::floor(static_cast<double>(x.dims[i]) * scales[i]));
      if (scales[i] != std::floor(scales[i])) throw Unclear{"a scale that rounds"};
    } else {
      if (given.values[i] < 0) throw Illegal{"a size is negative"};
      dims[i] = static_cast<int64_t>(given.values[i]);
      if (dims[i] == 0) throw Unclear{"resizes to nothing"};
      if (dims[i] % x.dims[i] != 0 && x.dims[i] % dims[i] != 0)
        throw Unclear{"a scale that rounds"};
      scales[i] = static_cast<double>(dims[i]) / static_cast<double>(x.dims[i]);
    }
  }
  out(gathered(x, dims, [&](Dims& at) {
    for (size_t i = 0; i < rank; ++i)
      at[i] =
          dims[i] % x.dims[i] == 0 ? at[i] / (dims[i] / x.dims[i]) : at[i] * (x.dims[i] / dims[i]);
    return true;
  }));
}

void Op::transpose() {
  const Array& x = in(0);
  const size_t rank = x.dims.size();
  Dims order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  if (const onnx::AttributeProto* given = attribute("perm"))
    order.assign(given->ints().begin(), given->ints().end());
  if (order.size() != rank) throw Illegal{"perm for another rank"};
  order = axes_in(order, rank);
  Dims dims;
  for (int64_t axis : order) dims.push_back(x.dims[static_cast<size_t>(axis)]);
  out(gathered(x, dims, [&](Dims& at) {
    Dims from(rank);
    for (size_t i = 0; i < rank; ++i) from[static_cast<size_t>(order[i])] = at[i];
    at = from;
    return true;
  }));
}

void Op::split() {
  const Array& x = in(0);
  const auto axis = static_cast<size_t>(axis_in(integer("axis", 0), x.dims.size()));
  const int64_t parts = node_.output_size();
  Dims sizes(static_cast<size_t>(parts), x.dims[axis] / parts);
  if (has(1)) sizes = list(1);
  if (static_cast<int64_t>(sizes.size()) != parts) throw Illegal{"another number of parts"};
  for (int64_t size : sizes)
    if (size < 0) throw Illegal{"a negative part"};
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != x.dims[axis])
    throw Illegal{"the parts do not make the whole"};
  int64_t start = 0;
  for (int i = 0; i < node_.output_size(); ++i) {
    Dims dims = x.dims;
    dims[axis] = sizes[static_cast<size_t>(i)];
    out(i, gathered(x, dims, [&](Dims& at) {
          at[axis] += start;
          return true;
        }));
    start += dims[axis];
  }
}

void Op::run() {
  using Method = void (Op::*)();
  static const std::map<std::string, Method> kMethods = {
      {"Shape", &Op::shape},      {"Gather", &Op::gather},
      {"Slice", &Op::slice},      {"Concat", &Op::concat},
      {"Div", &Op::quotient},     {"Cast", &Op::cast},
      {"Squeeze", &Op::squeeze},  {"Unsqueeze", &Op::unsqueeze},
      {"ReduceSum", &Op::reduce}, {"ReduceProd", &Op::reduce},
      {"ReduceMax", &Op::reduce}, {"ReduceMin", &Op::reduce},
      {"Where", &Op::where},      {"NonZero", &Op::non_zero},
      {"Range", &Op::range},      {"ConstantOfShape", &Op::constant_of_shape},
      {"Expand", &Op::expand},    {"Reshape", &Op::reshape},
      {"Tile", &Op::tile},        {"Pad", &Op::pad},
      {"Resize", &Op::resize},    {"Transpose", &Op::transpose},
      {"Split", &Op::split},
  };
  static const std::map<std::string, double (*)(double)> kUnary = {
      {"Identity", [](double x) { return x; }},
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::abs(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
  };
  static const std::map<std::string, double (*)(double, double)> kBinary = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Max", [](double a, double b) { return std::max(a, b); }},
      {"Min", [](double a, double b) { return std::min(a, b); }},
  };
  static const std::map<std::string, double (*)(double, double)> kComparisons = {
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
  };
  const std::string& op = node_.op_type();
  if (const auto method = kMethods.find(op); method != kMethods.end())
    return (this->*method->second)();
  if (const auto f = kUnary.find(op); f != kUnary.end()) return each(f->second);
  if (const auto f = kBinary.find(op); f != kBinary.end()) return elementwise(f->second);
  if (const auto f = kComparisons.find(op); f != kComparisons.end())
    return elementwise(f->second, /*compares=*/true);
  if (op == "Size") return out({Kind::i64, {}, {static_cast<double>(in(0).values.size())}});
  throw Unclear{"the judge does not know " + op};
}

}  // namespace

void run_node(const onnx::NodeProto& node, Arrays& arrays) { Op(node, arrays).run(); }

}  // namespace hone::shape_judge
