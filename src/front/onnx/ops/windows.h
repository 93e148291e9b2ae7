#pragma once

#include <string_view>

#include "front/onnx/node.h"

// Convolutions and pools share these: windows that slide over the spatial dims, which are those
// from dim 2 on.

namespace hone::onnx_io {

// One entry per spatial dim.
struct Windows {
  Dims kernel;
  Ints stride, dilation;
  Dims low, high;  // padding

  size_t rank() const { return kernel.size(); }
  Dim span(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
};

// An attribute with `count` entries from `least` on; all `fallback` if it is absent.
Ints window_attribute(Node& n, std::string_view name, size_t count, int64_t fallback,
                      int64_t least);
// auto_pad: NOTSET, VALID, SAME_UPPER or SAME_LOWER.
std::string read_auto_pad(Node& n);
// strides, pads and auto_pad, and dilations if the op has them.
Windows read_windows(Node& n, Value x, Dims kernel, bool dilated = true);
// The kernel of the weights, which an attribute kernel_shape may repeat.
Dims kernel_of_weights(Node& n, Value x, Value w);

// Paddings that depend on symbols are made here, with `fill`; numbers are left in `windows`.
Value with_numeric_padding(Value x, Windows& windows, double fill);
// The numbers of dims that have them.
Ints numbers(const Dims& dims);

// A vector with one number per channel, which is dim 1 of `like`.
Value per_channel(Value v, Value like);
// Channels from the last place to dim 1, and back.
Value channels_first(Value x);
Value channels_last(Value x);
// AveragePool with the attributes that it has in a version of the standard; MaxPool without
// indices.
Value average_pool(Node& n, Value x, int version);
Value max_pool_dilated(Node& n, Value x);
// Conv and its kin, but for the bias: all attributes are read here.
Value convolution(Node& n, Value x, Value w);

}  // namespace hone::onnx_io
