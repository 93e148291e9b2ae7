#include "ir/composites/recurrent.h"

#include "base/text.h"
#include "ir/composites/expansion.h"

// Recurrent layers. One direction is: the input part of all gates in one contraction, then a scan
// over the time with the recurrent part and the cell. Regions are closed, so what does not change
// (recurrent weights, peepholes, lengths) is carried along.

namespace hone {
namespace {

using In = std::span<const Value>;

// ---- Activations --------------------------------------------------------------------------------

using Activation = RecurrentActivation;

// A function with parameters a and b, which a list writes as "hard_sigmoid:0.25:0.5". Parameters
// that are not written have their defaults.
struct NamedActivation {
  std::string_view name;
  Value (*fn)(Value x, double a, double b);
  int parameters = 0;
  double a = 0, b = 0;
};

Value elu(Value x, double a, double) {
  Value below = unary(Opcode::expm1, x);
  return select(compare("lt", x, 0), a == 1 ? below : below * a, x);
}
Value leaky_relu(Value x, double a, double) { return select(compare("lt", x, 0), x * a, x); }
Value softplus(Value x, double, double) {
  return maximum(x, 0) + unary(Opcode::log1p, exp(-unary(Opcode::abs, x)));
}
Value thresholded_relu(Value x, double a, double) {
  return select(compare("ge", x, a), x, x.builder().scalar(x.dtype(), 0));
}

constexpr NamedActivation kActivations[] = {
    {"sigmoid", [](Value x, double, double) { return logistic(x); }},
    {"tanh", [](Value x, double, double) { return tanh(x); }},
    {"relu", [](Value x, double, double) { return maximum(x, 0); }},
    {"hard_sigmoid", [](Value x, double a, double b) { return clamp(a * x + b, 0, 1); }, 2, 0.2,
     0.5},
    {"softsign", [](Value x, double, double) { return x / (1 + unary(Opcode::abs, x)); }},
    {"softplus", softplus},
    {"elu", elu, 1, 1},
    {"leaky_relu", leaky_relu, 1, 0.01},
    {"thresholded_relu", thresholded_relu, 1, 1},
    {"affine", [](Value x, double a, double b) { return a * x + b; }, 2, 1, 0},
    {"scaled_tanh", [](Value x, double a, double b) { return a * tanh(b * x); }, 2, 1, 1},
};

std::string activation_names() {
  std::vector<std::string_view> names;
  for (const NamedActivation& a : kActivations) names.push_back(a.name);
  return join(names, ", ");
}

Result<Activation> activation(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  for (const NamedActivation& named : kActivations) {
    if (named.name != parts[0]) continue;
    const size_t given = parts.size() - 1;
    if (given > static_cast<size_t>(named.parameters))
      return bad_input("'{}' has {} parameters, {} takes {}", text, given, named.name,
                       named.parameters);
    const double a = given > 0 ? HONE_TRY(parse_double(parts[1])) : named.a;
    const double b = given > 1 ? HONE_TRY(parse_double(parts[2])) : named.b;
    return Activation([fn = named.fn, a, b](Value x) { return fn(x, a, b); });
  }
  return bad_input("there is no activation '{}'; there are {}", parts[0], activation_names());
}

constexpr std::string_view kOfLstm = "sigmoid,tanh,tanh";

// `count` functions per direction from a list for one direction or for all of them.
Result<std::vector<Activation>> activations(std::string_view list, std::string_view standard,
                                            size_t directions) {
  const size_t count = split(standard, ',').size();
  std::vector<Activation> found;
  for (std::string_view name : split(list.empty() ? standard : list, ','))
    found.push_back(HONE_TRY(activation(trim(name))));
  if (found.size() != count && found.size() != count * directions)
    return bad_input("{} activations, want {}{}", found.size(), count,
                     directions > 1 ? fmt::format(" or {}", count * directions) : "");
  for (size_t i = 0; found.size() < count * directions; ++i) {
    Activation again = found[i];
    found.push_back(std::move(again));
  }
  return found;
}

// ---- One layer ----------------------------------------------------------------------------------

struct Layer {
  Value x, w, r, bias, lengths;
  std::vector<Value> initial;  // per state: [dirs, batch, hidden] or absent
  Value peephole;
  Dim time, batch, hidden;
  int directions = 1;
  bool starts_reversed = false;
  double clip = 0;
  std::vector<Activation> activations;
};

// The operands of a cell in one step. `gates` is the input part, [batch, gates * hidden].
struct Step {
  Value gates;
  std::vector<Value> state;
  Value r;               // [gates * hidden, hidden]
  Value recurrent_bias;  // [gates * hidden], for cells that do not add it to the input part
  Value peephole;        // [3 * hidden]
  std::span<const Activation> activations;
  double clip;
  Dim hidden;

  Value clipped(Value v) const { return clip > 0 ? clamp(v, -clip, clip) : v; }
  Value activated(size_t i, Value v) const { return activations[i](clipped(v)); }
  // Rows [begin, end) of the gates, in units of `hidden`.
  Value rows(Value v, int axis, int64_t begin, int64_t end) const {
    return slice(v, axis, begin * hidden, end * hidden);
  }
};

// The new state; its first entry is the output.
using Cell = std::function<std::vector<Value>(const Step&)>;

std::optional<Layer> checked_layer(Builder& b, Op op, In in, int64_t gates, size_t states,
                                   std::string_view standard_activations) {
  Layer l;
  l.x = in[0], l.w = in[1], l.r = in[2];
  l.bias = operand_or_none(in, 3), l.lengths = operand_or_none(in, 4);
  for (size_t i = 0; i < states; ++i) l.initial.push_back(operand_or_none(in, 5 + i));
  const std::string& direction = op.word("direction");
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.starts_reversed = direction == "reverse";
  l.clip = op.real("clip");
  if (!need_rank(b, "x", l.x, 3, "[time, batch, input]") ||
      !need_rank(b, "r", l.r, 3, "[directions, gates * hidden, hidden]")) {
    return std::nullopt;
  }
  l.time = l.x.dim(0), l.batch = l.x.dim(1), l.hidden = l.r.dim(2);
  const DType dtype = l.x.dtype();
  const Dim dirs = l.directions, rows = gates * l.hidden;
  if (!need_type(b, "w", l.w, dtype, {dirs, rows, l.x.dim(2)}) ||
      !need_type(b, "r", l.r, dtype, {dirs, rows, l.hidden}) ||
      !need_type(b, "bias", l.bias, dtype, {dirs, 2 * rows})) {
    return std::nullopt;
  }
  if (l.lengths) {
    const bool wide = l.lengths.dtype() == DType::i64;
    if (!need_type(b, "lengths", l.lengths, wide ? DType::i64 : DType::i32, {l.batch})) {
      return std::nullopt;
    }
  }
  for (size_t i = 0; i < states; ++i) {
    if (!need_type(b, i == 0 ? "h0" : "c0", l.initial[i], dtype, {dirs, l.batch, l.hidden})) {
      return std::nullopt;
    }
  }
  if (l.clip < 0) {
    b.fail(bad_input("clip is {}, want 0 or more", l.clip));
    return std::nullopt;
  }
  auto found =
      activations(op.word("activations"), standard_activations, static_cast<size_t>(l.directions));
  if (!found.ok()) {
    b.fail(std::move(found).error());
    return std::nullopt;
  }
  l.activations = *std::move(found);
  return l;
}

}  // namespace

Result<std::vector<RecurrentActivation>> lstm_activations(std::string_view list,
                                                          size_t directions) {
  return activations(list, kOfLstm, directions);
}

// Keeps the state of sequences that have ended, and gives 0 as their output.
std::vector<Value> masked_step(const std::vector<Value>& next, const std::vector<Value>& state,
                               Value now, Value lengths) {
  Value running = compare("lt", broadcast_to(now, lengths.dims()), lengths);
  running = broadcast(running, next[0].dims(), {0});
  std::vector<Value> results;
  for (size_t i = 0; i < next.size(); ++i) results.push_back(select(running, next[i], state[i]));
  Value zero = next[0].builder().scalar(next[0].dtype(), 0);
  results.push_back(select(running, next[0], zero));
  return results;
}

std::vector<Value> lstm_step(const LstmStep& s) {
  const Value c = s.cell;
  const Dim hidden = c.dim(1);
  auto part = [&](Value v, int axis, int64_t i) {
    return slice(v, axis, i * hidden, (i + 1) * hidden);
  };
  auto gate = [&](int64_t i) { return part(s.sums, 1, i); };
  auto peep = [&](int64_t i, Value cell) {
    return s.peephole ? gate(i) + broadcast_to(part(s.peephole, 0, i), cell.dims()) * cell
                      : gate(i);
  };
  auto activated = [&](size_t i, Value v) {
    return s.activations[i](s.clip > 0 ? clamp(v, -s.clip, s.clip) : v);
  };
  Value input = activated(0, peep(0, c));
  Value forget = s.input_forget ? 1 - input : activated(0, peep(2, c));
  Value candidate = activated(1, gate(3));
  Value next_c = forget * c + input * candidate;
  Value output = activated(0, peep(1, next_c));
  return {output * s.activations[2](next_c), next_c};
}

namespace {

struct Direction {
  Value outputs;             // [time, batch, hidden]
  std::vector<Value> state;  // each [batch, hidden]
};

Direction run_direction(Builder& b, const Layer& l, int direction, const Cell& cell,
                        bool separate_recurrent_bias) {
  auto own = [&](Value v) { return v ? part(v, 0, direction) : Value(); };
  const size_t states = l.initial.size();
  const size_t per_direction = l.activations.size() / static_cast<size_t>(l.directions);

  Value gates = dot_general(l.x, own(l.w), {}, {}, {2}, {1});
  Value recurrent_bias;
  if (Value bias = own(l.bias)) {
    const std::vector<Value> halves = split(bias, 0, 2);
    recurrent_bias = separate_recurrent_bias ? halves[1] : Value();
    Value added = separate_recurrent_bias ? halves[0] : halves[0] + halves[1];
    gates = gates + broadcast_to(added, gates.dims());
  }

  // Carried: the state, then what does not change. Absent values take no place.
  std::vector<Value> carried;
  for (Value v : l.initial)
    carried.push_back(v ? own(v) : b.full(l.x.dtype(), {l.batch, l.hidden}, 0));
  std::vector<int> place(4, -1);
  const std::vector<Value> constants = {own(l.r), recurrent_bias, own(l.peephole), l.lengths};
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!constants[i]) continue;
    place[i] = static_cast<int>(carried.size());
    carried.push_back(constants[i]);
  }
  std::vector<Value> scanned = {gates};
  if (l.lengths) scanned.push_back(iota(b, l.lengths.dtype(), {l.time}, 0));

  auto body = [&](Builder&, std::span<const Value> in) -> std::vector<Value> {
    auto constant = [&](size_t i) {
      return place[i] < 0 ? Value() : in[static_cast<size_t>(place[i])];
    };
    Step step;
    step.gates = in[carried.size()];
    step.state.assign(in.begin(), in.begin() + static_cast<int64_t>(states));
    step.r = constant(0), step.recurrent_bias = constant(1), step.peephole = constant(2);
    step.activations = std::span(l.activations)
                           .subspan(static_cast<size_t>(direction) * per_direction, per_direction);
    step.clip = l.clip;
    step.hidden = l.hidden;
    std::vector<Value> next = cell(step);
    Value output = next[0];
    if (l.lengths) {
      next = masked_step(next, step.state, in[carried.size() + 1], constant(3));
      output = next.back();
      next.pop_back();
    }
    next.insert(next.end(), in.begin() + static_cast<int64_t>(states),
                in.begin() + static_cast<int64_t>(carried.size()));
    next.push_back(output);
    return next;
  };
  const bool reverse = l.starts_reversed != (direction == 1);
  const std::vector<Value> results = scan(carried, scanned, body, reverse);
  if (!b.ok()) return {};
  return {results[carried.size()],
          {results.begin(), results.begin() + static_cast<int64_t>(states)}};
}

// y [time, dirs, batch, hidden], then each state [dirs, batch, hidden].
std::vector<Value> run_layer(Builder& b, const Layer& l, const Cell& cell,
                             bool separate_recurrent_bias = false) {
  std::vector<std::vector<Value>> results(1 + l.initial.size());
  for (int d = 0; d < l.directions; ++d) {
    const Direction run = run_direction(b, l, d, cell, separate_recurrent_bias);
    if (!b.ok()) return {};
    results[0].push_back(unsqueeze(run.outputs, 1));
    for (size_t i = 0; i < run.state.size(); ++i)
      results[1 + i].push_back(unsqueeze(run.state[i], 0));
  }
  std::vector<Value> joined;
  for (size_t i = 0; i < results.size(); ++i) joined.push_back(concat(results[i], i == 0 ? 1 : 0));
  return joined;
}

// ---- Cells --------------------------------------------------------------------------------------

Value recurrent(Value h, Value r) { return dot_general(h, r, {}, {}, {1}, {1}); }

// Gates i, o, f, c; peepholes i, o, f.
std::vector<Value> lstm_cell(const Step& s, bool input_forget) {
  return lstm_step({.sums = s.gates + recurrent(s.state[0], s.r),
                    .cell = s.state[1],
                    .peephole = s.peephole,
                    .activations = s.activations,
                    .clip = s.clip,
                    .input_forget = input_forget});
}

// Gates z, r, h.
std::vector<Value> gru_cell(const Step& s, bool linear_before_reset) {
  Value h = s.state[0];
  auto recurrent_part = [&](Value state, int64_t begin, int64_t end) {
    Value y = recurrent(state, s.rows(s.r, 0, begin, end));
    if (s.recurrent_bias) y = y + broadcast_to(s.rows(s.recurrent_bias, 0, begin, end), y.dims());
    return y;
  };
  Value both = s.rows(s.gates, 1, 0, 2) + recurrent_part(h, 0, 2);
  Value update = s.activated(0, s.rows(both, 1, 0, 1));
  Value reset = s.activated(0, s.rows(both, 1, 1, 2));
  Value inner =
      linear_before_reset ? reset * recurrent_part(h, 2, 3) : recurrent_part(reset * h, 2, 3);
  Value candidate = s.activated(1, s.rows(s.gates, 1, 2, 3) + inner);
  return {(1 - update) * candidate + update * h};
}

std::vector<Value> rnn_cell(const Step& s) {
  return {s.activated(0, s.gates + recurrent(s.state[0], s.r))};
}

// ---- Ops ----------------------------------------------------------------------------------------

std::vector<Value> expand_lstm(Builder& b, Op op, In in) {
  std::optional<Layer> layer = checked_layer(b, op, in, 4, 2, kOfLstm);
  if (!layer) return {};
  layer->peephole = operand_or_none(in, 7);
  if (!need_type(b, "peephole", layer->peephole, layer->x.dtype(),
                 {layer->directions, 3 * layer->hidden})) {
    return {};
  }
  const bool input_forget = op.flag("input_forget");
  return run_layer(b, *layer, [=](const Step& s) { return lstm_cell(s, input_forget); });
}

std::vector<Value> expand_gru(Builder& b, Op op, In in) {
  std::optional<Layer> layer = checked_layer(b, op, in, 3, 1, "sigmoid,tanh");
  if (!layer) return {};
  const bool linear = op.flag("linear_before_reset");
  // After the reset gate the recurrent bias is scaled, so it cannot join the input part.
  return run_layer(b, *layer, [=](const Step& s) { return gru_cell(s, linear); }, linear);
}

std::vector<Value> expand_rnn(Builder& b, Op op, In in) {
  std::optional<Layer> layer = checked_layer(b, op, in, 1, 1, "tanh");
  if (!layer) return {};
  return run_layer(b, *layer, rnn_cell);
}

#define HONE_RECURRENT_ATTRS(names)                                                         \
  {"direction", AttrKind::word, "forward", "of the time", "forward|reverse|bidirectional"}, \
      {"activations", AttrKind::word, "\"\"",                                               \
       "names between commas, for one direction or both, parameters after colons: "         \
       "leaky_relu:0.1; empty: " names},                                                    \
      {"clip", AttrKind::real, "0", "bound of what goes into the gate activations; 0: none"}
constexpr AttrSpec kLstmAttrs[] = {
    HONE_RECURRENT_ATTRS("sigmoid,tanh,tanh"),
    {"input_forget", AttrKind::flag, "false", "the forget gate is 1 - input gate"}};
constexpr AttrSpec kGruAttrs[] = {HONE_RECURRENT_ATTRS("sigmoid,tanh"),
                                  {"linear_before_reset", AttrKind::flag, "false",
                                   "the reset gate scales the recurrent product, not the state"}};
constexpr AttrSpec kRnnAttrs[] = {HONE_RECURRENT_ATTRS("tanh")};
#undef HONE_RECURRENT_ATTRS

}  // namespace

extern const OpDef op_def_lstm;
const OpDef op_def_lstm = {
    .opcode = Opcode::lstm,
    .summary = "long short-term memory over a sequence",
    .semantics =
        "x [time, batch, input]; w [dirs, 4*hidden, input], r [dirs, 4*hidden, hidden] with the "
        "gates input, output, forget, cell; bias [dirs, 8*hidden]: for w, then for r; lengths "
        "[batch]; h0, c0 [dirs, batch, hidden]; peephole [dirs, 3*hidden]: input, output, forget. "
        "Steps from a sequence's length on give 0 and keep its state; a reversed direction begins "
        "at the sequence's last step. A length below 0 counts as 0, one above the time as the "
        "time. Results: y [time, dirs, batch, hidden], y_h, y_c [dirs, batch, hidden].",
    .operands = "x, w, r, bias?, lengths?, h0?, c0?, peephole?",
    .results = "y, y_h, y_c",
    .attrs = kLstmAttrs,
    .dtypes = kReal,
    .expand = expand_lstm};

extern const OpDef op_def_gru;
const OpDef op_def_gru = {
    .opcode = Opcode::gru,
    .summary = "gated recurrent unit over a sequence",
    .semantics =
        "x [time, batch, input]; w [dirs, 3*hidden, input], r [dirs, 3*hidden, hidden] with the "
        "gates update, reset, hidden; bias [dirs, 6*hidden]: for w, then for r; lengths [batch]; "
        "h0 "
        "[dirs, batch, hidden]. The new state is (1 - update) * candidate + update * state. "
        "Lengths: as in lstm. Results: y [time, dirs, batch, hidden], y_h [dirs, batch, hidden].",
    .operands = "x, w, r, bias?, lengths?, h0?",
    .results = "y, y_h",
    .attrs = kGruAttrs,
    .dtypes = kReal,
    .expand = expand_gru};

extern const OpDef op_def_rnn;
const OpDef op_def_rnn = {
    .opcode = Opcode::rnn,
    .summary = "simple recurrent layer over a sequence",
    .semantics =
        "x [time, batch, input]; w [dirs, hidden, input], r [dirs, hidden, hidden]; bias "
        "[dirs, 2*hidden]: for w, then for r; lengths [batch]; h0 [dirs, batch, hidden]. "
        "The new state is activation(w x + r state + bias). Lengths: as in lstm. Results: "
        "y [time, dirs, batch, hidden], y_h [dirs, batch, hidden].",
    .operands = "x, w, r, bias?, lengths?, h0?",
    .results = "y, y_h",
    .attrs = kRnnAttrs,
    .dtypes = kReal,
    .expand = expand_rnn};

}  // namespace hone
