#include <algorithm>

#include "ir/derivatives/rules.h"
#include "ir/ops/window_axis.h"

// Sums over windows are linear. Maxima and products are spelled out, dim by dim, as the maximum of
// as many slices as the window has positions.

namespace hone {

namespace {

constexpr int64_t kMaxPositions = 4096;  // of a window along one dim

std::vector<WindowParams> params_of(Op op, int rank) {
  return *window_params(op, "window_dilation", rank, "dims");
}

// A window's sum goes back to all its elements: windows over the cotangents, which are as far apart
// as the windows were.
std::vector<Value> window_back(const TransposeCall& call) {
  if (call.op.word("kind") != "sum") return not_linear(call);
  Builder& b = call.builder;
  Value ct = call.cotangent();
  Type x = call.type(0);
  if (x.elements().is(0) || ct.type().elements().is(0)) return {zeros_of(b, x)};
  const Ints& window = call.op.ints("window");
  const std::vector<WindowParams> params = params_of(call.op, x.rank());
  Ints stride, low, high, holes, dilation;
  for (int i = 0; i < x.rank(); ++i) {
    const WindowParams& p = params[static_cast<size_t>(i)];
    const int64_t reach = (window[static_cast<size_t>(i)] - 1) * p.window_dilation;
    stride.push_back(p.in_dilation);
    holes.push_back(p.stride);
    dilation.push_back(p.window_dilation);
    low.push_back(reach - p.pad_low);
    const Dim wanted = (x.dim(i) - 1) * p.in_dilation + 1 + reach;
    const Dim missing = wanted - low.back() - ((ct.dim(i) - 1) * p.stride + 1);
    if (!missing.is_static()) {
      b.fail(unsupported("the derivative of a window pads dim {} by {}, which must be a number", i,
                         missing.to_string())
                 .with_hint("give the symbols sizes first (--dim NAME=SIZE)"));
      return {zeros_of(b, x)};
    }
    high.push_back(missing.value());
  }
  return {b.op(Opcode::window_reduce, {ct},
               {{"kind", std::string("sum")},
                {"window", window},
                {"stride", stride},
                {"pad_low", low},
                {"pad_high", high},
                {"input_dilation", holes},
                {"window_dilation", dilation}})};
}

// The windows along one dim: the slices of the padded operand that hold the first positions of all
// windows, the second ones, and so on.
Value along_axis(Value x, int axis, int64_t window, Dim count, const WindowParams& p,
                 Opcode combine, double fill) {
  Builder& b = x.builder();
  const size_t rank = static_cast<size_t>(x.rank()), at = static_cast<size_t>(axis);
  Dims low(rank, 0), high(rank, 0);
  Ints interior(rank, 0);
  low[at] = p.pad_low;
  high[at] = p.pad_high;
  interior[at] = p.in_dilation - 1;
  Value padded = b.op(Opcode::pad, {x, b.scalar(x.dtype(), fill)},
                      {{"low", low}, {"high", high}, {"interior", interior}});
  Value result;
  for (int64_t i = 0; i < window; ++i) {
    const int64_t start = i * p.window_dilation;
    Value positions = slice(padded, axis, start, (count - 1) * p.stride + 1 + start, p.stride);
    result = result ? binary(combine, result, positions) : positions;
  }
  return result;
}

std::vector<Value> spell_window_reduce(Builder& b, Op op, std::span<const Value> in) {
  const std::string& kind = op.word("kind");
  Value x = in[0];
  if (kind == "sum") return {};
  const Opcode combine = combine_of(kind);
  const double fill = std::get<double>(identity_of(combine, x.dtype()));
  const Ints& window = op.ints("window");
  const std::vector<WindowParams> params = params_of(op, x.rank());
  for (int i = 0; i < x.rank() && b.ok(); ++i) {
    const WindowParams& p = params[static_cast<size_t>(i)];
    const int64_t size = window[static_cast<size_t>(i)];
    if (size > kMaxPositions) {
      b.fail(
          over_limit("the derivative of a {} over windows of {} positions along dim {}: at most "
                     "{} are handled",
                     kind, size, i, kMaxPositions));
      return {x};
    }
    const Dim count = *window_count(x.dim(i), size, p, "dim");
    Dims dims = x.dims();
    dims[static_cast<size_t>(i)] = count;
    x = count.is(0) ? b.full(x.dtype(), dims, fill)
                    : along_axis(x, i, size, count, p, combine, fill);
  }
  return {x};
}

}  // namespace

const Derivative derivative_window_reduce = {.transpose = window_back,
                                             .spelling = spell_window_reduce};

}  // namespace hone
