#pragma once

#include <span>
#include <string_view>

#include "learn/network.h"

// Layers: functions on Values that take the weights they need from the network, below `name`. The
// last dim of `x` holds the features.

namespace hone {

// x weight + bias: [..., inputs] -> [..., outputs]. Weights begin as in He et al. 2015.
Value linear(Network& net, std::string_view name, Value x, int64_t outputs, bool has_bias = true);
// Layers of these widths with relu between them.
Value mlp(Network& net, std::string_view name, Value x, std::span<const int64_t> widths);
Value mlp(Network& net, std::string_view name, Value x, std::initializer_list<int64_t> widths);
// The rows of a table at integer indices: [...] -> [..., width]. Indices out of range count as the
// nearest row.
Value embedding(Network& net, std::string_view name, Value indices, int64_t rows, int64_t width);
Value layer_norm(Network& net, std::string_view name, Value x, double epsilon = 1e-5);
Value rms_norm(Network& net, std::string_view name, Value x, double epsilon = 1e-6);
// In training, each element is 0 with this probability, else as much larger as keeps the mean.
Value dropout(Network& net, Value x, double probability);

// The states after each step, [time, batch, hidden], of x: [time, batch, inputs].
Value lstm(Network& net, std::string_view name, Value x, int64_t hidden);

// One layer of Vaswani et al. 2017, with norms in front of attention and feed-forward part.
// x: [batch, length, width]; `mask`, if given, is bool and true where a key may be seen, and
// broadcasts to [batch, heads, length, length].
struct TransformerOptions {
  int64_t heads = 4;
  int64_t hidden = 0;  // of the feed-forward part; 0: four times the width
  double dropout = 0;
};
Value transformer_layer(Network& net, std::string_view name, Value x,
                        const TransformerOptions& options, Value mask = {});

}  // namespace hone
