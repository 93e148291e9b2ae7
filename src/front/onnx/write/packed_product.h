#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "tensor/tensor.h"

// Products by constant weights of few bits, as MatMulNBits of ONNX Runtime has them.

namespace hone::onnx_io {

struct PackedProduct {
  int64_t inputs = 0, outputs = 0;  // K, N
  bool is_of_blocks = false;        // the data's dims behind the first are parts of K
  int64_t bits = 0, block = 0;      // 0: the weights have no such form, and are f16
  // The data [.., K] of a product that rounds them to bytes; none: it does not.
  ValueId rounded = ValueId::none();
  // u8[N, blocks, block * bits / 8], lowest bits first; or the weights, f16[N, K].
  Tensor numbers = {};
  Tensor scales = {};  // [N, blocks]
  // u8, packed as the numbers, or reals [N, blocks]; absent: 2^(bits - 1)
  std::optional<Tensor> zeros = {};
};

// For a dot, if operand 1 is made of constants by `dequantize`, or by the formula of a format of
// GGUF files, and operand 0 is not quantized. The weights are the same numbers, but those of
// formats that add a minimum: these are rounded to f16.
// For a sum, if product_of_rounded() has built it.
std::optional<PackedProduct> packed_product(const Graph& graph, NodeId node);

// A bool for each node; true: an output needs it even if packed products read nothing but data.
std::vector<bool> needed_beside_weights(const Graph& graph,
                                        const std::map<NodeId, PackedProduct>& packed);

class Emit;
// The node as MatMulNBits, or as a product by weights of f16.
bool export_packed(Emit& e, const PackedProduct& product);

}  // namespace hone::onnx_io
