#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.h"

// Values as one writes them on paper. Binary functions broadcast as numpy does (dims aligned from
// the back, 1 stretches) and take plain numbers; axes may be negative.

namespace hone {

// ---- Arithmetic ---------------------------------------------------------------------------------
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);

Value unary(Opcode opcode, Value x);
Value binary(Opcode opcode, Value a, Value b);  // with broadcasting
Value binary(Opcode opcode, Value a, double b);
Value compare(std::string_view direction, Value a, Value b);  // eq ne lt le gt ge
Value compare(std::string_view direction, Value a, double b);
Value select(Value predicate, Value on_true, Value on_false);  // with broadcasting
Value maximum(Value a, Value b);
Value maximum(Value a, double b);
Value minimum(Value a, Value b);
Value minimum(Value a, double b);
Value power(Value a, double b);
Value exp(Value x);
Value stop_gradient(Value x);
Value log(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value tanh(Value x);
Value logistic(Value x);
Value cast(Value x, DType dtype);

// ---- Shape --------------------------------------------------------------------------------------
Value broadcast_to(Value x, const Dims& dims);                // numpy rule
Value broadcast(Value x, const Dims& dims, const Ints& map);  // operand dim i is result dim map[i]
Value reshape(Value x, const Dims& dims);                     // one dim may be -1
Value flatten(Value x, int first_axis);                       // [a, b, c, d] with 2 -> [a, b, c*d]
Value transpose(Value x, const Ints& permutation);
Value slice(Value x, int axis, Dim start, Dim limit, int64_t stride = 1);
Value pad(Value x, const Ints& low, const Ints& high, double value = 0);
Value concat(std::span<const Value> parts, int axis);
Value concat(std::initializer_list<Value> parts, int axis);
std::vector<Value> split(Value x, int axis, const Dims& sizes);
std::vector<Value> split(Value x, int axis, int parts);
Value squeeze(Value x, int axis);
Value unsqueeze(Value x, int axis);
Value reverse(Value x, const Ints& axes);
Value iota(Builder& b, DType dtype, const Dims& dims, int axis);
// The dim as an i64 scalar that the graph computes: a symbol is counted, as the sum of that many
// ones.
Value size_value(Builder& b, Dim dim);
Value take(Value table, Value indices, int axis = 0);  // numpy.take; out of range clamps

// ---- Contraction --------------------------------------------------------------------------------
Value matmul(Value a, Value b);  // numpy.matmul, batch dims broadcast
Value dot_general(Value a, Value b, const Ints& lhs_batch, const Ints& rhs_batch,
                  const Ints& lhs_contract, const Ints& rhs_contract);

struct ConvOptions {
  Ints stride = {};          // empty: all 1
  Ints padding = {};         // low per spatial dim, then high per spatial dim; empty: all 0
  Ints dilation = {};        // of the kernel; empty: all 1
  Ints input_dilation = {};  // transposed convolutions; empty: all 1
  int64_t groups = 1;
};
// x: [batch, channels, spatial...], w: [out channels, in channels / groups, spatial...]
Value conv(Value x, Value w, const ConvOptions& options = {});

// ---- Reduction ----------------------------------------------------------------------------------
Value reduce(std::string_view kind, Value x, const Ints& axes, bool keep = false);
Value reduce_sum(Value x, const Ints& axes, bool keep = false);
Value reduce_max(Value x, const Ints& axes, bool keep = false);
Value reduce_mean(Value x, const Ints& axes, bool keep = false);
Value argmax(Value x, int axis, bool keep = false);  // i64, first of equals

struct PoolOptions {
  Ints window;
  Ints stride = {};
  Ints padding = {};  // low per spatial dim, then high per spatial dim
  Ints dilation = {};
  bool count_padding = false;  // average pools
};
Value max_pool(Value x, const PoolOptions& options);  // x: [batch, channels, spatial...]
Value avg_pool(Value x, const PoolOptions& options);
Value cumulative(std::string_view kind, Value x, int axis, bool exclusive = false,
                 bool reverse = false);
std::vector<Value> sort(std::span<const Value> keys_and_values, int axis, bool descending);

// ---- Segments -----------------------------------------------------------------------------------
// Segment s holds the rows offsets[s] up to offsets[s + 1]; `segments` says the same for each row.
Value segment_reduce(std::string_view kind, Value rows, Value offsets, Value segments = {});
// x[indices[e]], or 0. Derivatives sum by `order` and `offsets`, which sort the indices.
Value gather_rows(Value x, Value indices, Value offsets, Value order = {});

// ---- Control ------------------------------------------------------------------------------------
std::vector<Value> if_else(Value predicate, std::span<const Value> arguments,
                           const Builder::Body& on_true, const Builder::Body& on_false);
// state -> state while condition(state) holds
std::vector<Value> while_loop(std::span<const Value> initial, const Builder::Body& condition,
                              const Builder::Body& body);
// body(state..., slice of each scanned...) -> state..., slice of each stacked result...
// Axis 0 of the scanned values is the time. Returns final state..., stacked results...
std::vector<Value> scan(std::span<const Value> initial, std::span<const Value> scanned,
                        const Builder::Body& body, bool reverse = false);

// ---- Composites ---------------------------------------------------------------------------------
Value relu(Value x);
Value gelu(Value x, bool tanh_form = false);
Value silu(Value x);
Value hard_swish(Value x);
Value hard_sigmoid(Value x);
Value softmax(Value x, int axis = -1);
Value log_softmax(Value x, int axis = -1);
// Normalizes over the dims from `axis` on; scale and bias have those dims.
Value layer_norm(Value x, Value scale, Value bias, int axis = -1, double epsilon = 1e-5);
Value rms_norm(Value x, Value scale, int axis = -1, double epsilon = 1e-6);
// Channel is dim 1; all four are [channels].
Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance,
                 double epsilon = 1e-5);
Value group_norm(Value x, Value scale, Value bias, int64_t groups, double epsilon = 1e-5);
Value global_average_pool(Value x);  // [n, c, spatial...] -> [n, c, 1...]
Value einsum(std::string_view equation, std::span<const Value> operands);
Value einsum(std::string_view equation, std::initializer_list<Value> operands);

}  // namespace hone
