#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/composites/expansion.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

using In = std::span<const Value>;

// ---- Another spelling ---------------------------------------------------------------------------

// Key heads repeated before the products, as exports of grouped attention do it.
Value repeated_heads(Value kv, Dim heads) {
  const Dim group = *heads.divided_by(kv.dim(1));
  if (group.is(1)) return kv;
  const Dims dims = {kv.dim(0), kv.dim(1), group, kv.dim(2), kv.dim(3)};
  return reshape(broadcast(kv, dims, {0, 1, 3, 4}), {kv.dim(0), heads, kv.dim(2), kv.dim(3)});
}

std::vector<Value> repeating_attention(Builder& b, Op op, In in) {
  std::vector<Value> operands(in.begin(), in.end());
  operands[1] = repeated_heads(in[1], in[0].dim(1));
  operands[2] = repeated_heads(in[2], in[0].dim(1));
  return op.def().expand(b, op, operands);
}

// ---- Reading contractions -----------------------------------------------------------------------

// An einsum of two operands, with the roles of its letters.
struct Contraction {
  Form operand[2];
  std::string letters[2];
  std::string result;

  bool has(int side, char c) const { return letters[side].find(c) != std::string::npos; }
  std::string shared() const {  // in both operands and the result
    std::string s;
    for (char c : result)
      if (has(0, c) && has(1, c)) s += c;
    return s;
  }
  std::string free(int side) const {
    std::string s;
    for (char c : result)
      if (has(side, c) && !has(1 - side, c)) s += c;
    return s;
  }
  std::string contracted() const {
    std::string s;
    for (char c : letters[0])
      if (result.find(c) == std::string::npos) s += c;
    return s;
  }
};

std::optional<Contraction> contraction_of(const Guess& g, Form f) {
  if (!g.is(f, Opcode::einsum)) return std::nullopt;
  const std::string& equation = g.forms.op(f).word("equation");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  return Contraction{{g.operand(f, 0), g.operand(f, 1)},
                     {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)},
                     equation.substr(arrow + 2)};
}

// The operand with its dims in the order of the roles; an empty role is a dim of 1.
Form laid_out(Guess& g, const Contraction& c, int side, std::initializer_list<std::string> roles) {
  Ints permutation;
  Dims dims;
  const Type type = g.forms.type(c.operand[side]);
  for (const std::string& role : roles) {
    if (role.empty()) {
      dims.push_back(1);
      continue;
    }
    const size_t at = c.letters[side].find(role);
    if (role.size() != 1 || at == std::string::npos) return kNoForm;
    permutation.push_back(static_cast<int64_t>(at));
    dims.push_back(type.dim(static_cast<int>(at)));
  }
  if (permutation.size() != c.letters[side].size()) return kNoForm;
  return g.forms.reshape(g.forms.transpose(c.operand[side], permutation), dims);
}

// The letters of batch and heads among the shared ones.
std::optional<std::pair<std::string, std::string>> batch_and_heads(const std::string& shared,
                                                                   Dim batch) {
  if (shared.size() > 2) return std::nullopt;
  if (shared.size() == 2) return std::pair(shared.substr(0, 1), shared.substr(1));
  if (batch.is(1)) return std::pair(std::string(), shared);
  return std::pair(shared, std::string());
}

// Scores and output with their operands as [batch, heads, length, dim].
struct Heads {
  Form query, key;
};

std::vector<Heads> readings_of_scores(Guess& g, Form scores) {
  const Type type = g.forms.type(scores);  // [batch, heads, queries, keys]
  Form inner = scores;
  while (g.is(inner, Opcode::reshape)) inner = g.operand(inner, 0);
  const auto c = contraction_of(g, inner);
  if (!c) return {};
  const auto shared = batch_and_heads(c->shared(), type.dim(0));
  if (!shared) return {};
  std::vector<Heads> readings;
  for (int side = 0; side < 2; ++side) {
    const std::string queries = c->free(side), keys = c->free(1 - side);
    Form query = laid_out(g, *c, side, {shared->first, shared->second, queries, c->contracted()});
    const Form key =
        laid_out(g, *c, 1 - side, {shared->first, shared->second, keys, c->contracted()});
    if (query == kNoForm || key == kNoForm) continue;
    if (!(g.forms.type(key).dim(2) == type.dim(3))) continue;
    const Dims dims = {type.dim(0), type.dim(1), type.dim(2), g.forms.type(query).dim(3)};
    if (!(product(g.forms.dims(query)) == product(dims))) continue;
    readings.push_back({g.forms.reshape(query, dims), key});
  }
  return readings;
}

// The operand of the output's contraction that is not the probabilities.
Form value_operand(Guess& g, const Contraction& c, int probabilities, Dim batch) {
  const auto shared = batch_and_heads(c.shared(), batch);
  if (!shared) return kNoForm;
  const int side = 1 - probabilities;
  return laid_out(g, c, side, {shared->first, shared->second, c.contracted(), c.free(side)});
}

// If the heads are repeated ones, the original heads.
Form unrepeated(Guess& g, Form kv) {
  const Form repeated = g.is(kv, Opcode::reshape) ? g.operand(kv, 0) : kv;
  if (!g.is(repeated, Opcode::broadcast)) return kNoForm;
  const Form original = g.operand(repeated, 0);
  const Type type = g.forms.type(kv);
  Dim others = type.dim(0) * type.dim(2) * type.dim(3);
  const auto heads = product(g.forms.dims(original)).divided_by(others);
  if (!heads) return kNoForm;
  return g.forms.reshape(original, {type.dim(0), *heads, type.dim(2), type.dim(3)});
}

// ---- Reading scores -----------------------------------------------------------------------------

struct Scores {
  Form dot = kNoForm;
  double scale = 1;
  double softcap = 0;
  bool causal = false;
  Form mask = kNoForm;  // at the scores' dims
};

bool hides(const Guess& g, Form f) {
  return g.forms.is_splat(f, -std::numeric_limits<double>::infinity());
}

bool is_causal(const Guess& g, Form predicate) {
  const Form test = g.core(predicate);
  return g.is(test, Opcode::compare) && g.is(g.operand(test, 0), Opcode::reverse) &&
         g.is(g.operand(test, 1), Opcode::reverse);
}

// number * dot, or softcap * tanh(number * dot).
bool read_products(Guess& g, Form f, Scores& s) {
  const Factors factors = g.forms.factors(f);
  if (factors.list.size() != 1) return false;
  const Form only = factors.list[0];
  if (g.is(only, Opcode::tanh)) {
    s.softcap = recovered(g.forms.type(f).dtype(), factors.number);
    if (!read_products(g, g.operand(only, 0), s)) return false;
    s.scale *= factors.number;
    return true;
  }
  Form inner = only;
  while (g.is(inner, Opcode::reshape)) inner = g.operand(inner, 0);
  if (!g.is(inner, Opcode::einsum)) return false;
  s.dot = only;
  s.scale = factors.number;
  return true;
}

std::optional<Scores> read_scores(Guess& g, Form f) {
  Scores s;
  if (g.is(f, Opcode::select) && hides(g, g.operand(f, 2)) && is_causal(g, g.operand(f, 0))) {
    s.causal = true;
    f = g.operand(f, 1);
  }
  if (g.is(f, Opcode::select) && hides(g, g.operand(f, 2))) {
    s.mask = g.operand(f, 0);
    f = g.operand(f, 1);
  }
  if (read_products(g, f, s)) return s;
  if (!g.is(f, Opcode::add) || s.mask != kNoForm) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    s.mask = g.operand(f, i);
    if (read_products(g, g.operand(f, 1 - i), s)) return s;
  }
  return std::nullopt;
}

// ---- Guess --------------------------------------------------------------------------------------

double scale_attribute(Guess& g, const Scores& s, Form query) {
  const DType dtype = g.forms.type(query).dtype();
  const Dim width = g.forms.type(query).dim(3);
  if (width.is_static() && width.value() > 0) {
    const double standard = 1 / std::sqrt(static_cast<double>(width.value()));
    if (g.forms.snapped(dtype, standard) == g.forms.snapped(dtype, s.scale)) return 0;
  }
  return recovered(dtype, s.scale);
}

// [past, present] along the length.
std::optional<std::pair<Form, Form>> joined(const Guess& g, Form f) {
  if (!g.is(f, Opcode::concat) || g.forms.operands(f).size() != 2) return std::nullopt;
  if (g.forms.type(f).rank() != 4 || g.forms.op(f).integer("axis") != 2) return std::nullopt;
  return std::pair(g.operand(f, 0), g.operand(f, 1));
}

bool propose_attention(Guess& g, const Scores& s, Form query, Form key, Form value) {
  const Op op = Op::get(
      Opcode::attention,
      {{"scale", scale_attribute(g, s, query)}, {"causal", s.causal}, {"softcap", s.softcap}});
  std::vector<Form> masks = {kNoForm};
  if (s.mask != kNoForm) masks = g.numpy_operands(s.mask);
  for (Form mask : masks) {
    const auto keys = joined(g, key), values = joined(g, value);
    if (keys && values &&
        g.propose(op, {query, keys->second, values->second, mask, keys->first, values->first})) {
      return true;
    }
    const Form few_keys = unrepeated(g, key), few_values = unrepeated(g, value);
    if (few_keys != kNoForm && few_values != kNoForm &&
        g.propose(op, {query, few_keys, few_values, mask}, repeating_attention)) {
      return true;
    }
    if (g.propose(op, {query, key, value, mask})) return true;
  }
  return false;
}

// The scores of exp(scores - max) in the probabilities.
std::optional<Form> scores_below(Guess& g, Form probabilities) {
  for (Form e : g.factors_with_core(probabilities, Opcode::exp)) {
    const Form shifted = g.operand(g.core(e), 0);
    if (!g.is(shifted, Opcode::add)) continue;
    for (size_t i = 0; i < 2; ++i) {
      const Form shift = g.negated(g.operand(shifted, i));
      if (shift != kNoForm && g.is(g.core(shift), Opcode::reduce)) return g.operand(shifted, 1 - i);
    }
  }
  return std::nullopt;
}

bool guess_attention(Guess& g) {
  if (g.forms.type(g.root).rank() != 4) return false;
  Form inner = g.root;
  while (g.is(inner, Opcode::reshape)) inner = g.operand(inner, 0);
  const auto c = contraction_of(g, inner);
  if (!c) return false;
  for (int side = 0; side < 2; ++side) {
    const auto scores = scores_below(g, c->operand[side]);
    if (!scores || g.forms.type(*scores).rank() != 4) continue;
    const auto read = read_scores(g, *scores);
    const Form value = value_operand(g, *c, side, g.forms.type(g.root).dim(0));
    if (!read || value == kNoForm) continue;
    for (const Heads& h : readings_of_scores(g, read->dot))
      if (propose_attention(g, *read, h.query, h.key, value)) return true;
  }
  return false;
}

// ---- Rotary embedding ---------------------------------------------------------------------------

// One half of the result: a +- b with products of a part of x and a table.
bool propose_rotary(Guess& g, Form half, bool interleaved, const Dims& dims) {
  if (!g.is(half, Opcode::add)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Form plus = g.operand(half, i), minus = g.negated(g.operand(half, 1 - i));
    if (minus == kNoForm) continue;
    const Factors a = g.forms.factors(plus), b = g.forms.factors(minus);
    if (a.list.size() != 2 || b.list.size() != 2) continue;
    for (size_t k = 0; k < 2; ++k) {
      // a.list[k] is the first part of x.
      const Form piece = g.core(a.list[k]);
      if (!g.is(piece, Opcode::slice)) continue;
      Form x = g.operand(piece, 0);
      if (interleaved) x = g.forms.reshape(x, dims);
      if (g.forms.type(x).rank() != 4) continue;
      const Dims& table = g.forms.dims(a.list[1 - k]);
      for (const Ints& map : {Ints{2, 3}, Ints{0, 2, 3}}) {
        Dims wanted;
        for (int64_t m : map) wanted.push_back(table[static_cast<size_t>(m)]);
        const Form cos = g.unbroadcast(a.list[1 - k], wanted, map);
        if (cos == kNoForm) continue;
        for (size_t j = 0; j < 2; ++j) {
          const Form sin = g.unbroadcast(b.list[j], wanted, map);
          const Op op = Op::get(Opcode::rotary_embedding, {{"interleaved", interleaved}});
          if (sin == kNoForm) continue;
          if (g.propose(op, {x, cos, sin})) return true;
          // What is turned may be the first part of x.
          if (g.is(x, Opcode::slice) && g.propose(op, {g.operand(x, 0), cos, sin})) return true;
        }
      }
    }
  }
  return false;
}

bool guess_rotary(Guess& g) {
  const Dims dims = g.forms.dims(g.root);
  if (dims.size() != 4) return false;
  Form joined = g.root;
  // The turned part may be followed by the rest.
  if (g.is(joined, Opcode::concat) && g.forms.op(joined).integer("axis") == 3) {
    if (propose_rotary(g, g.operand(joined, 0), false, dims)) return true;
    joined = g.operand(joined, 0);
    if (g.is(joined, Opcode::concat) && propose_rotary(g, g.operand(joined, 0), false, dims))
      return true;
  }
  const Dims turned = g.forms.dims(joined);
  while (g.is(joined, Opcode::reshape)) joined = g.operand(joined, 0);
  if (!g.is(joined, Opcode::concat)) return false;
  Form half = g.operand(joined, 0);
  while (g.is(half, Opcode::reshape)) half = g.operand(half, 0);
  return propose_rotary(g, half, true, turned);
}

constexpr RaiseRule kAttentionRules[] = {
    {Opcode::einsum, guess_attention},
    {Opcode::reshape, guess_attention},
    {Opcode::concat, guess_rotary},
    {Opcode::reshape, guess_rotary},
};

}  // namespace

std::span<const RaiseRule> attention_rules() { return kAttentionRules; }

}  // namespace hone
