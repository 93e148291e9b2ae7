#pragma once

#include "front/onnx/node.h"

// Attention as ONNX describes it, for the standard's ops and the contributed ones.

namespace hone::onnx_io {

// [batch, length, heads * dim] as [batch, heads, length, dim], and back.
Value split_heads(Node& n, Value x, std::string_view what, int64_t heads);
Value merge_heads(Value x);
// An attribute that must be there and positive.
int64_t head_count(Node& n, std::string_view attribute);

struct Heads {
  Value query, key, value;      // [batch, heads, length, dim]; the keys with those of the past
  Value mask;                   // bool: may be seen; real: added to the scores; or absent
  std::optional<double> scale;  // absent: 1 / sqrt(dim); 0 is for raw_scores alone
  double softcap = 0;           // 0: none
  bool causal = false;          // query i of q sees the keys up to i + keys - q
};

// softmax(query key^T * scale + mask) value.
Value attend(Node& n, const Heads& h);
// Its parts: query key^T * scale, the same capped, the mask put on, and probabilities by value.
Value raw_scores(Node& n, const Heads& h);
Value capped(Value scores, double softcap);
Value masked(Value scores, Value mask);
Value weighted(Value probabilities, Value value);

// ---- Masks --------------------------------------------------------------------------------------
// x with a size along an axis that is its own by the file's promise: no proof is needed where
// symbols stand. Other numbers stay for the caller to refuse.
Value as_promised(Value x, int axis, Dim size);
// A mask or a bias over queries and keys, its last two dims, unless they have one size for all.
Value over_scores(Value mask, const Heads& h);
// True where the key of [queries, past + fresh] is of the past or not after the query.
Value causal_mask(Builder& b, Dim queries, Dim past, Dim fresh);
// Queries see the keys of the past and those that do not come after them.
void set_causal(Node& n, Heads& h, Dim past);
// `mask` (bool, real or absent) where `visible` is true; what is not visible is hidden.
Value only_visible(Value mask, Value visible);
// True if a query sees any key: [..., queries, 1].
Value sees_any(Value mask);
// 0 where the bool is true, `hidden` elsewhere.
Value as_bias(Value visible, DType dtype, double hidden);
// Real masks add up; either may be absent.
Value sum_of(Value mask, Value other);

// past followed by x, or x if there is none.
Value with_past(Node& n, Value past, Value x, std::string_view what);
// x of [batch, heads, length, dim] turned by the angles of its positions: tables of [max, pairs]
// with positions [batch, length], or of [batch, length, pairs] without.
Value rotated(Node& n, Value x, Value cos, Value sin, Value positions, bool interleaved);

}  // namespace hone::onnx_io
