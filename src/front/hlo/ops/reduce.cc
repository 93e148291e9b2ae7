#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "front/hlo/bodies.h"
#include "front/hlo/importer.h"
#include "front/hlo/library_calls.h"

// Reductions: of whole dims, of windows, and of elements side by side.

namespace hone::hlo {
namespace {

// Half of the operands are reduced, the others are the values that each reduction begins with.
size_t half(Node& n) {
  const size_t count = n.operands().size();
  if (count == 0 || count % 2 != 0)
    n.refuse(bad_input("it has {} operands; each needs a value to begin with", count));
  for (size_t i = 0; i < count / 2; ++i) {
    if (n.in(i).dims() != n.in(0).dims())
      n.refuse(bad_input("the operands 0 and {} differ in shape", i));
    if (n.in(count / 2 + i).rank() != 0)
      n.refuse(bad_input("operand {} must be a scalar", count / 2 + i));
  }
  return count / 2;
}

Value begun_with(Node& n, std::string_view kind, Value init, Value made) {
  const std::optional<Tensor> known = n.known(init);
  if (known && is_identity(kind, *known)) return made;
  return binary(opcode_of(kind), init, made);
}

// The reduced dims first, as one.
Value flat(Value x, const Ints& axes, const Dims& rest, Dim steps) {
  Ints order = axes;
  for (int i = 0; i < x.rank(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
  Dims dims = {steps};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return reshape(transpose(x, order), dims);
}

// Any body: one step for each element of the reduced dims, in order.
std::vector<Value> stepwise(Node& n, const Body& body, size_t count, const Ints& axes,
                            const Dims& rest, Dim steps) {
  std::vector<Value> initial, scanned;
  for (size_t i = 0; i < count; ++i) {
    initial.push_back(spread(n.in(count + i), rest));
    scanned.push_back(flat(n.in(i), axes, rest, steps));
  }
  if (steps.is(0)) return initial;
  return scan(initial, scanned, [&](Builder& b, std::span<const Value> arguments) {
    return n.apply_in(b, body, arguments, rest);
  });
}

// A window that ends at each element and reaches back to the first: cumulative sums as JAX writes
// them.
std::optional<int> running_axis(const Windows& w, const Dims& dims, bool& reverse) {
  std::optional<int> axis;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (w.stride[i] != 1 || w.base_dilation[i] != 1 || w.window_dilation[i] != 1)
      return std::nullopt;
    if (w.size[i] == 1 && w.low[i] == 0 && w.high[i] == 0) continue;
    const bool forward = w.low[i] == w.size[i] - 1 && w.high[i] == 0;
    const bool backward = w.high[i] == w.size[i] - 1 && w.low[i] == 0;
    if (axis || !dims[i].is(w.size[i]) || (!forward && !backward)) return std::nullopt;
    axis = static_cast<int>(i);
    reverse = backward;
  }
  return axis;
}

Value windows_by_op(Node& n, std::string_view kind, Value x, Value init, const Windows& w) {
  const std::optional<Tensor> known = n.known(init);
  const bool is_neutral = known && is_identity(kind, *known);
  bool reverse = false;
  const std::optional<int> axis = running_axis(w, x.dims(), reverse);
  if (axis && is_neutral) return cumulative(kind, x, *axis, false, reverse);
  const auto over = [&](Value base, const Windows& windows) {
    return n.builder().op(Opcode::window_reduce, {base},
                          {{"kind", std::string(kind)},
                           {"window", windows.size},
                           {"stride", windows.stride},
                           {"pad_low", windows.low},
                           {"pad_high", windows.high},
                           {"input_dilation", windows.base_dilation},
                           {"window_dilation", windows.window_dilation}});
  };
  if (is_neutral) return over(x, w);
  // Padding counts as the first value: it is written out.
  Windows plain = w;
  plain.low.assign(w.low.size(), 0);
  plain.high = plain.low;
  plain.base_dilation.assign(w.low.size(), 1);
  return binary(opcode_of(kind), init, over(padded_base(x, init, w), plain));
}

}  // namespace

std::vector<Value> map_reduce(Node& n) {
  const size_t count = half(n);
  const Body body = n.body(0, "to_apply");
  Ints axes = n.ints("dimensions");
  std::ranges::sort(axes);
  const Type type = n.in().type();
  Dims rest;
  Dim steps = 1;
  for (int i = 0; i < type.rank(); ++i) {
    if (std::ranges::find(axes, i) == axes.end())
      rest.push_back(type.dim(i));
    else
      steps *= type.dim(i);
  }
  if (rest.size() + axes.size() != static_cast<size_t>(type.rank()))
    n.refuse(bad_input("the dims {} are not all different dims of {}", join(axes, ", "),
                       type.to_string()));
  const std::optional<std::string_view> kind = combiner(body);
  if (count == 1 && kind && has_op(*kind, n.in().dtype()))
    return {begun_with(n, *kind, n.in(1), reduce(*kind, n.in(), axes))};
  if (count == 2) {
    std::vector<Value> made = extreme_and_place(n, body, axes);
    if (!made.empty()) return made;
  }
  return stepwise(n, body, count, axes, rest, steps);
}

std::vector<Value> map_reduce_window(Node& n) {
  const size_t count = half(n);
  const Body body = n.body(0, "to_apply");
  const Windows w = windows_of(n, n.in().rank());
  const std::optional<std::string_view> kind = combiner(body);
  const bool is_empty = n.result().is_static() && n.result().static_elements() == 0;
  if (count == 1 && kind && has_op(*kind, n.in().dtype()) && *kind != "and" && *kind != "or" &&
      !is_empty)
    return {windows_by_op(n, *kind, n.in(0), n.in(1), w)};
  if (!n.in().type().is_static())
    n.refuse(unsupported("by such a body of sizes that are open is not handled"));
  std::vector<Value> bases;
  for (size_t i = 0; i < count; ++i) bases.push_back(padded_base(n.in(i), n.in(count + i), w));
  const Ints fits = positions(n, w, bases[0].type().static_dims());
  const Dims dims(fits.begin(), fits.end());
  std::vector<Value> state;
  for (size_t i = 0; i < count; ++i) state.push_back(spread(n.in(count + i), dims));
  for_each_place(n, w, [&](const Ints& place) {
    std::vector<Value> arguments = state;
    for (const Value& base : bases) arguments.push_back(at_place(base, w, fits, place));
    state = n.apply(body, arguments, &dims);
  });
  return state;
}

namespace {

Ints known_numbers(Node& n, size_t operand) {
  Ints numbers;
  for (const Dim dim : n.known_dims(operand)) {
    if (!dim.is_static()) n.refuse(unsupported("operand {} must be numbers", operand));
    numbers.push_back(dim.value());
  }
  return numbers;
}

}  // namespace

// The operands behind the two are those of the window: its dims, strides, both dilations, and the
// padding. A window as long as an open dim must be a cumulative one.
std::vector<Value> dynamic_reduce_window(Node& n) {
  n.need(7);
  const Value x = n.in(0), init = n.in(1);
  const Body body = n.body(0, "called_computations");
  const std::optional<std::string_view> kind = combiner(body);
  n.read_all();
  if (init.rank() != 0 || !kind || !has_op(*kind, x.dtype()) || *kind == "and" || *kind == "or")
    n.refuse(unsupported("by such a body of sizes that are open is not handled"));
  const auto count = static_cast<size_t>(x.rank());
  const Dims size = n.known_dims(2), padding = n.known_dims(6);
  Windows w;
  w.stride = known_numbers(n, 3);
  w.base_dilation = known_numbers(n, 4);
  w.window_dilation = known_numbers(n, 5);
  for (const size_t have : {size.size(), w.stride.size(), w.base_dilation.size(),
                            w.window_dilation.size(), padding.size() / 2})
    if (have != count) n.refuse(bad_input("a window of {} dims for an operand of {}", have, count));
  std::optional<int> axis;
  bool reverse = false;
  for (size_t i = 0; i < count; ++i) {
    const Dim low = padding[2 * i], high = padding[2 * i + 1];
    if (!size[i].is_static() || !low.is_static() || !high.is_static()) {
      const bool forward = low == size[i] - 1 && high.is(0);
      const bool backward = high == size[i] - 1 && low.is(0);
      if (axis || size[i] != x.dim(static_cast<int>(i)) || (!forward && !backward))
        n.refuse(unsupported("of windows of an open size that are not cumulative is not handled"));
      axis = static_cast<int>(i);
      reverse = backward;
    }
    const bool is_open = axis == static_cast<int>(i);
    w.size.push_back(is_open ? 1 : size[i].value());
    w.low.push_back(is_open ? 0 : low.value());
    w.high.push_back(is_open ? 0 : high.value());
  }
  if (!axis) return {windows_by_op(n, *kind, x, init, w)};
  const Ints ones(count, 1), none(count, 0);
  const std::optional<Tensor> known = n.known(init);
  const bool is_neutral = known && is_identity(*kind, *known);
  if (!is_neutral || w.size != ones || w.stride != ones || w.base_dilation != ones ||
      w.window_dilation != ones || w.low != none || w.high != none)
    n.refuse(unsupported("of windows of an open size that are not cumulative is not handled"));
  return {cumulative(*kind, x, *axis, false, reverse)};
}

std::vector<Value> map_map(Node& n) {
  const Type type = n.result();
  const Dims dims(type.dims().begin(), type.dims().end());
  return n.apply(n.body(0, "to_apply"), n.operands(), &dims);
}

}  // namespace hone::hlo
