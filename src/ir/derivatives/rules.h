#pragma once

#include "ir/derivative.h"
#include "ir/functional.h"

// The derivatives that op definitions name, one constant per op, and what the rules share.

namespace hone {

// unary.cc
extern const Derivative derivative_neg, derivative_abs, derivative_exp, derivative_expm1,
    derivative_log, derivative_log1p, derivative_sqrt, derivative_rsqrt, derivative_sin,
    derivative_cos, derivative_tan, derivative_asin, derivative_acos, derivative_atan,
    derivative_sinh, derivative_cosh, derivative_tanh, derivative_asinh, derivative_acosh,
    derivative_atanh, derivative_logistic, derivative_erf, derivative_cast;
// binary.cc
extern const Derivative derivative_add, derivative_sub, derivative_mul, derivative_div,
    derivative_rem, derivative_pow, derivative_max, derivative_min, derivative_atan2,
    derivative_select;
// shape.cc
extern const Derivative derivative_broadcast, derivative_reshape, derivative_transpose,
    derivative_slice, derivative_pad, derivative_concat, derivative_reverse;
// indexed.cc
extern const Derivative derivative_dynamic_slice, derivative_dynamic_update, derivative_gather,
    derivative_scatter;
// segment.cc
extern const Derivative derivative_segment_reduce, derivative_gather_rows;
// dot.cc, conv.cc
extern const Derivative derivative_dot, derivative_conv;
// reduce.cc, window.cc, sort.cc
extern const Derivative derivative_reduce, derivative_cumulative, derivative_window_reduce,
    derivative_sort;
// collective.cc
extern const Derivative derivative_all_reduce, derivative_all_gather, derivative_reduce_scatter,
    derivative_all_to_all, derivative_permute;
// composites.cc
extern const Derivative derivative_relu, derivative_softplus, derivative_softmax,
    derivative_log_softmax;

inline Dims dims_of(Type type) { return {type.dims().begin(), type.dims().end()}; }

inline Value zeros_of(Builder& b, Type type) {
  return b.full(type.dtype(), {type.dims().begin(), type.dims().end()}, 0);
}

// Rows of x at indices, also where x may have none to look at.
Value rows_at(Value x, Value indices);

// The sum of two tangents of which some may be absent.
inline Value sum_of(Value a, Value b) { return !a ? b : !b ? a : a + b; }

// For an application that is not linear in the operands whose cotangents are asked for.
std::vector<Value> not_linear(const TransposeCall& call);

// The tangent of an op that is linear in all its operands of differentiable types: the op itself.
std::vector<Value> linear_tangents(const TangentCall& call);

}  // namespace hone
