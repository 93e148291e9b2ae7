#include <cmath>

#include "front/onnx/ops/heads.h"
#include "front/onnx/registry.h"

// Attention whose past is one matrix per head, and the convolution that goes before it.

namespace hone::onnx_io {
namespace {

// The state S changes at a time step, before the query reads it: S' = exp(g) S + k v^T. `gated` has
// the decay g. `delta` puts beta (v - exp(g) S^T k) in the place of v.
struct UpdateRule {
  bool gated = false;
  bool delta = false;
};

UpdateRule update_rule(Node& n) {
  const std::string word = n.word("update_rule", "gated_delta");
  if (word != "linear" && word != "gated" && word != "delta" && word != "gated_delta")
    n.bad("update_rule is '{}'", word);
  return {.gated = word.starts_with("gated"), .delta = word.ends_with("delta")};
}

// [batch, time, heads * dim] as [time, batch, heads, dim], of floats.
Value by_time(Node& n, Value x, std::string_view what, int64_t heads) {
  n.require_rank(x, what, 3, 3);
  return cast(transpose(split_heads(n, x, what, heads), {2, 0, 1, 3}), DType::f32);
}

// One number per head, or (beta) for all heads.
Value gate_by_time(Node& n, size_t operand, std::string_view what, int64_t heads, bool is_wanted) {
  if (n.has(operand) != is_wanted)
    n.bad("update_rule {} {}", is_wanted ? "needs" : "has no place for", what);
  if (!is_wanted) return {};
  Value x = n.in(operand);
  n.require_rank(x, what, 3, 3);
  return by_time(n, x, what, x.dim(2).is(1) ? 1 : heads);
}

class LinearAttention {
 public:
  explicit LinearAttention(Node& n)
      : n_(n),
        rule_(update_rule(n)),
        q_heads_(head_count(n, "q_num_heads")),
        kv_heads_(head_count(n, "kv_num_heads")) {
    n.ignore("chunk_size");  // how the sum may be cut
    if (q_heads_ % kv_heads_ != 0)
      n.bad("{} heads of queries share {} of keys", q_heads_, kv_heads_);
  }

  void map() {
    Value query = by_time(n_, n_.in(0), "the query", q_heads_);
    Value key = by_time(n_, n_.in(1), "the key", kv_heads_);
    Value value = by_time(n_, n_.in(2), "the value", kv_heads_);
    if (!(query.dim(3) == key.dim(3)))
      n_.bad("heads of {} and {} elements in query and key", query.dim(3).to_string(),
             key.dim(3).to_string());
    const Dims grouped = {query.dim(0), query.dim(1), kv_heads_, q_heads_ / kv_heads_,
                          query.dim(3)};
    std::vector<Value> scanned = {reshape(query, grouped), key, value};
    if (Value decay = gate_by_time(n_, 4, "decay", kv_heads_, rule_.gated))
      scanned.push_back(decay);
    if (Value beta = gate_by_time(n_, 5, "beta", kv_heads_, rule_.delta)) scanned.push_back(beta);
    const std::vector<Value> results =
        scan(std::vector{first_state(key, value)}, scanned,
             [&](Builder&, std::span<const Value> now) { return step(now); });
    const DType dtype = n_.in(0).dtype();
    // [time, batch, kv heads, group, dim] as [batch, time, heads * dim].
    Value y = transpose(results[1], {1, 0, 2, 3, 4});
    n_.out(0, cast(reshape(y * scale(key), {y.dim(0), y.dim(1), y.dim(4) * q_heads_}), dtype));
    if (n_.wants(1)) n_.out(1, cast(results[0], n_.has(3) ? n_.in(3).dtype() : dtype));
  }

 private:
  Value first_state(Value key, Value value) {
    const Dims dims = {key.dim(1), kv_heads_, key.dim(3), value.dim(3)};
    if (!n_.has(3)) return n_.builder().full(DType::f32, dims, 0);
    Value past = n_.in(3);
    n_.require_rank(past, "past_state", 4, 4);
    for (int i = 0; i < 4; ++i) past = as_promised(past, i, dims[static_cast<size_t>(i)]);
    if (past.dims() != dims) n_.bad("past_state is {}", past.type().to_string());
    return cast(past, DType::f32);
  }

  double scale(Value key) {
    const double given = n_.real("scale", 0);
    if (given != 0) return given;
    if (!key.dim(3).is_static()) n_.unsupported("heads of {} elements", key.dim(3).to_string());
    return 1 / std::sqrt(static_cast<double>(key.dim(3).value()));
  }

  // State, then query [batch, heads, group, dim], key, value, decay and beta [batch, heads, dim].
  std::vector<Value> step(std::span<const Value> now) const {
    Value state = now[0], query = now[1], key = now[2], value = now[3];
    size_t next = 4;
    if (rule_.gated) state = state * unsqueeze(exp(now[next++]), 3);
    if (rule_.delta) {
      Value known = squeeze(matmul(unsqueeze(key, 2), state), 2);
      value = (value - known) * now[next];
    }
    state = state + unsqueeze(key, 3) * unsqueeze(value, 2);
    return {state, matmul(query, state)};
  }

  Node& n_;
  UpdateRule rule_;
  int64_t q_heads_, kv_heads_;
};

}  // namespace

void map_linear_attention(Node& n) { LinearAttention(n).map(); }

// Each channel with its own kernel over the past and the present.
void map_causal_conv_with_state(Node& n) {
  const std::string activation = n.word("activation", "none");
  const bool is_silu = activation == "silu" || activation == "swish";
  if (!is_silu && activation != "none") n.bad("activation is '{}'", activation);
  Value x = n.in(0), w = n.in(1);
  n.require_rank(x, "the input", 3, 3);
  n.require_rank(w, "the weight", 3, 3);
  const Dim channels = x.dim(1), taps = w.dim(2);
  if (!channels.is_static() || !taps.is_static() || taps.value() < 1)
    n.unsupported("{} channels with kernels of {}", channels.to_string(), taps.to_string());
  if (!w.dim(0).is(channels.value()) || !w.dim(1).is(1))
    n.bad("the weight is {}, want a kernel per channel of {}", w.type().to_string(),
          channels.to_string());
  const Dim kept = taps - 1;
  Value past = n.optional(3);
  if (!past) past = n.builder().full(x.dtype(), {x.dim(0), channels, kept}, 0);
  n.require_rank(past, "past_state", 3, 3);
  if (!past.dim(2).is(kept.value()))
    n.bad("past_state is {}, want the last {} inputs", past.type().to_string(), kept.to_string());
  Value all = concat({past, x}, 2);
  Value y = conv(all, w, {.groups = channels.value()});
  if (n.has(2)) y = y + unsqueeze(n.in(2), 1);
  n.out(0, is_silu ? silu(y) : y);
  if (n.wants(1)) n.out(1, slice(all, 2, all.dim(2) - kept, all.dim(2)));
}

}  // namespace hone::onnx_io
