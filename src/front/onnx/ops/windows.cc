#include "front/onnx/ops/windows.h"

#include <algorithm>
#include <limits>

namespace hone::onnx_io {
namespace {

// No number of an attribute of hone is greater.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// Padding for ceil(in / stride) windows, none of which is needless.
Dim same_padding(Node& n, Dim in, Dim span, int64_t stride) {
  const Dim total = (ceildiv(in, stride) - 1) * stride + span - in;
  // Whatever the input, it lies in span - stride .. span - 1.
  if (total.is_static()) return std::max<int64_t>(0, total.value());
  if (in.divisible_by(stride) && (span - stride).is_static())
    return std::max<int64_t>(0, (span - stride).value());
  if (span.is(1)) return 0;
  if (provably_le(stride, span)) return total;
  n.unsupported(
      "auto_pad with windows of {} every {} over {} positions gives a padding that is not an "
      "expression of the size",
      span.to_string(), stride, in.to_string());
}

void pad_automatically(Node& n, Value x, const std::string& mode, Windows& w) {
  for (size_t i = 0; i < w.rank(); ++i) {
    Dim total = 0;
    if (mode != "VALID")
      total = same_padding(n, x.dim(static_cast<int>(i) + 2), w.span(i), w.stride[i]);
    const Dim half = floordiv(total, 2);
    w.low.push_back(mode == "SAME_LOWER" ? total - half : half);
    w.high.push_back(total - w.low.back());
  }
}

}  // namespace

Ints window_attribute(Node& n, std::string_view name, size_t count, int64_t fallback,
                      int64_t least) {
  Ints list = n.ints(name);
  if (list.empty()) return Ints(count, fallback);
  if (list.size() != count) n.bad("{} has {} entries, want {}", name, list.size(), count);
  for (size_t i = 0; i < count; ++i) {
    if (list[i] < least || list[i] > kMost)
      n.bad("{}[{}] is {}, not in {}..{}", name, i, list[i], least, kMost);
  }
  return list;
}

std::string read_auto_pad(Node& n) {
  const std::string mode = n.word("auto_pad", "NOTSET");
  if (mode.empty()) return "NOTSET";
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    n.bad("auto_pad is '{}', not NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode);
  return mode;
}

Windows read_windows(Node& n, Value x, Dims kernel, bool dilated) {
  const size_t spatial = kernel.size();
  Windows w;
  w.kernel = std::move(kernel);
  w.stride = window_attribute(n, "strides", spatial, 1, 1);
  w.dilation = dilated ? window_attribute(n, "dilations", spatial, 1, 1) : Ints(spatial, 1);
  const Ints pads = window_attribute(n, "pads", 2 * spatial, 0, 0);
  const std::string mode = read_auto_pad(n);
  if (mode != "NOTSET") {
    pad_automatically(n, x, mode, w);
    return w;
  }
  w.low.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial));
  w.high.assign(pads.begin() + static_cast<int64_t>(spatial), pads.end());
  return w;
}

Dims kernel_of_weights(Node& n, Value x, Value w) {
  n.require_rank(x, "the input", 3);
  if (w.rank() != x.rank()) n.bad("the weights have rank {}, the input has {}", w.rank(), x.rank());
  const Dims dims = w.dims();
  Dims kernel(dims.begin() + 2, dims.end());
  if (!n.has_attribute("kernel_shape")) return kernel;
  const Ints said = n.ints("kernel_shape");
  if (said.size() != kernel.size())
    n.bad("kernel_shape has {} entries, the weights have {} spatial dims", said.size(),
          kernel.size());
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!kernel[i].is(said[i]))
      n.bad("kernel_shape[{}] is {}, the weights have {}", i, said[i], kernel[i].to_string());
  }
  return kernel;
}

Value with_numeric_padding(Value x, Windows& w, double fill) {
  Dims low(static_cast<size_t>(x.rank()), 0), high = low;
  bool symbolic = false;
  for (size_t i = 0; i < w.rank(); ++i) {
    if (w.low[i].is_static() && w.high[i].is_static()) continue;
    symbolic = true;
    std::swap(low[i + 2], w.low[i]);
    std::swap(high[i + 2], w.high[i]);
  }
  if (!symbolic) return x;
  Builder& b = x.builder();
  return b.op(Opcode::pad, {x, b.scalar(x.dtype(), fill)}, {{"low", low}, {"high", high}});
}

Ints numbers(const Dims& dims) {
  Ints result;
  for (Dim d : dims) result.push_back(d.value());
  return result;
}

Value per_channel(Value v, Value like) { return broadcast(v, like.dims(), {1}); }

Value channels_first(Value x) {
  Ints order = {0, x.rank() - 1};
  for (int64_t i = 1; i + 1 < x.rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

Value channels_last(Value x) {
  Ints order = {0};
  for (int64_t i = 2; i < x.rank(); ++i) order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}

Value convolution(Node& n, Value x, Value w) {
  Windows windows = read_windows(n, x, kernel_of_weights(n, x, w));
  const int64_t groups = n.integer("group", 1);
  if (groups < 1) n.bad("group is {}, not at least 1", groups);
  x = with_numeric_padding(x, windows, 0);
  Ints padding = numbers(windows.low);
  const Ints high = numbers(windows.high);
  padding.insert(padding.end(), high.begin(), high.end());
  return conv(x, w,
              {.stride = windows.stride,
               .padding = padding,
               .dilation = windows.dilation,
               .groups = groups});
}

}  // namespace hone::onnx_io
