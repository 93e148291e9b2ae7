#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"
#include "ir/composites/recurrent.h"

// Recurrent layers: hone's composites are ONNX's with layout 0. If data are quantized in each
// step, a layer is a loop of its own.

namespace hone::onnx_io {
namespace {

// ---- Activations --------------------------------------------------------------------------------

struct Function {
  std::string_view name;  // of ONNX, in lower case
  std::string_view ours;
  bool alpha = false, beta = false;  // takes one
  double a = 0, b = 0;               // their defaults

  // As the composites write it; parameters are written if one is not the default.
  std::string with(double alpha_given, double beta_given) const {
    std::string text(ours);
    if (alpha_given == a && beta_given == b) return text;
    text += ":" + format_double(alpha_given);
    return beta ? text + ":" + format_double(beta_given) : text;
  }
};

constexpr Function kFunctions[] = {
    {"sigmoid", "sigmoid"},
    {"tanh", "tanh"},
    {"relu", "relu"},
    {"softsign", "softsign"},
    {"softplus", "softplus"},
    {"elu", "elu", true, false, 1},
    {"leakyrelu", "leaky_relu", true, false, 0.01},
    {"thresholdedrelu", "thresholded_relu", true, false, 1},
    {"hardsigmoid", "hard_sigmoid", true, true, 0.2, 0.5},
    {"affine", "affine", true, true, 1, 0},
    {"scaledtanh", "scaled_tanh", true, true, 1, 1},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

const Function& function_of(Node& n, std::string_view name) {
  const std::string wanted = lower(name);
  for (const Function& f : kFunctions)
    if (f.name == wanted) return f;
  n.unsupported("ONNX defines no activation '{}' for recurrent layers", escape(name));
}

// The composite's list: parameters are handed out in order to the functions that take them.
std::string activation_list(Node& n, size_t count, size_t directions) {
  const std::vector<std::string> names = n.words("activations");
  const std::vector<double> alphas = n.reals("activation_alpha");
  const std::vector<double> betas = n.reals("activation_beta");
  if (names.empty()) return "";
  if (names.size() != count * directions)
    n.bad("{} activations for {} direction{}, want {}", names.size(), directions,
          directions == 1 ? "" : "s", count * directions);
  size_t alpha = 0, beta = 0;
  std::vector<std::string> list;
  for (const std::string& name : names) {
    const Function& f = function_of(n, name);
    const double a = f.alpha && alpha < alphas.size() ? alphas[alpha++] : f.a;
    const double b = f.beta && beta < betas.size() ? betas[beta++] : f.b;
    list.push_back(f.with(a, b));
  }
  return join(list, ",");
}

// ---- Layers -------------------------------------------------------------------------------------

struct Cell {
  Opcode opcode;
  int64_t gates;
  size_t functions;  // activations per direction
  size_t states;
};

std::string read_direction(Node& n) {
  const std::string direction = lower(n.word("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    n.bad("direction is '{}', not forward, reverse or bidirectional", escape(direction));
  return direction;
}

// Attributes that hone does not use, or only as a check.
void check_sizes(Node& n, const Cell& cell, Value r, bool bidirectional) {
  n.require_rank(n.in(0), "X", 3, 3);
  n.require_rank(n.in(1), "W", 3, 3);
  n.require_rank(r, "R", 3, 3);
  if (n.version() < 7) n.integer("output_sequence", 0);
  if (n.has_attribute("hidden_size") && !r.dim(2).is(n.integer("hidden_size")))
    n.bad("hidden_size is {}, R has {}", n.integer("hidden_size"), r.dim(2).to_string());
  const int64_t directions = bidirectional ? 2 : 1;
  for (size_t i : {size_t{1}, size_t{2}}) {
    Value v = n.in(i);
    if (!v.dim(0).is(directions) || !(v.dim(1) == cell.gates * r.dim(2)))
      n.bad("{} is {}, want {} direction{} and {} gates of {}", i == 1 ? "W" : "R",
            v.type().to_string(), directions, directions == 1 ? "" : "s", cell.gates,
            r.dim(2).to_string());
  }
}

void map_layer(Node& n, const Cell& cell, Attrs attrs) {
  const std::string direction = read_direction(n);
  const bool batch_first = n.version() >= 14 && n.flag("layout");
  check_sizes(n, cell, n.in(2), direction == "bidirectional");
  const double clip = n.real("clip", 0);
  if (!(clip >= 0)) n.bad("clip is {}, not at least 0", clip);
  attrs.push_back({"direction", direction});
  attrs.push_back({"clip", clip});
  attrs.push_back(
      {"activations", activation_list(n, cell.functions, direction == "bidirectional" ? 2 : 1)});

  std::vector<Value> operands = {n.in(0), n.in(1), n.in(2), n.optional(3), n.optional(4)};
  for (size_t i = 0; i < cell.states; ++i) operands.push_back(n.optional(5 + i));
  if (cell.opcode == Opcode::lstm) operands.push_back(n.optional(7));
  if (batch_first) {
    operands[0] = transpose(operands[0], {1, 0, 2});
    for (size_t i = 5; i < 5 + cell.states; ++i) {
      if (!operands[i]) continue;
      n.require_rank(operands[i], "an initial state", 3, 3);
      operands[i] = transpose(operands[i], {1, 0, 2});
    }
  }
  while (!operands.back()) operands.pop_back();
  const std::vector<Value> results = n.builder().ops(cell.opcode, operands, std::move(attrs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!n.wants(i)) continue;
    // y is [time, directions, batch, hidden].
    const Ints order = i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2};
    n.out(i, batch_first ? transpose(results[i], order) : results[i]);
  }
}

}  // namespace

void map_rnn(Node& n) { map_layer(n, {Opcode::rnn, 1, 1, 1}, {}); }

void map_gru(Node& n) {
  const bool linear = n.version() >= 3 && n.flag("linear_before_reset");
  map_layer(n, {Opcode::gru, 3, 2, 1}, {{"linear_before_reset", linear}});
}

void map_lstm(Node& n) {
  map_layer(n, {Opcode::lstm, 4, 3, 2}, {{"input_forget", n.flag("input_forget")}});
}

// ---- DynamicQuantizeLSTM ------------------------------------------------------------------------

namespace {

Value direction_of(Value v, int64_t d) { return v ? squeeze(slice(v, 0, d, d + 1), 0) : v; }

// Weights [inputs, 4 * hidden] of 8 bits, with a scale and a zero point for all or for each column.
struct ByteWeights {
  Value numbers, scale, zero;
};

// Rows of reals, rounded to u8 over the range of all, by the weights: a product of integers.
Value product_of_bytes(Node& n, Value rows, const ByteWeights& w) {
  const Dynamic d = dynamically_quantized(n, rows);
  const Value sum = matmul(centered(n, d.y, d.zero), centered(n, w.numbers, w.zero));
  return cast(sum, DType::f32) * (d.scale * w.scale);
}

struct ByteLstm {
  Value x;                                 // [time, batch, input]
  Value w, r;                              // [directions, inputs, 4 * hidden]
  Value w_scale, w_zero, r_scale, r_zero;  // [directions] or [directions, 4 * hidden]
  Value bias, lengths, h, c, peephole;
  Dim hidden;
  int64_t directions = 1;
  bool starts_reversed = false, input_forget = false;
  double clip = 0;
  std::vector<RecurrentActivation> activations;

  ByteWeights input_weights(int64_t d) const {
    return {direction_of(w, d), direction_of(w_scale, d), direction_of(w_zero, d)};
  }
  ByteWeights recurrent_weights(int64_t d) const {
    return {direction_of(r, d), direction_of(r_scale, d), direction_of(r_zero, d)};
  }
};

void check_dims(Node& n, Value v, std::string_view what, DType dtype, const Dims& dims) {
  if (v && (v.dtype() != dtype || v.dims() != dims))
    n.bad("{} is {}, want {}", what, v.type().to_string(), Type::get(dtype, dims).to_string());
}

// The weights of all directions, their scales and their zero points at operands 8 or 10.
void read_bytes(Node& n, size_t operand, size_t scale_operand, Dim inputs, const ByteLstm& l,
                Value& scale, Value& zero) {
  const Value v = n.in(operand);
  const std::string_view what = operand == 1 ? "W" : "R";
  if (v.dtype() != DType::u8 && v.dtype() != DType::i8)
    n.bad("{} is {}, want bytes", what, v.type().to_string());
  check_dims(n, v, what, v.dtype(), {l.directions, inputs, 4 * l.hidden});
  scale = n.in(scale_operand), zero = n.in(scale_operand + 1);
  const Dims per_column = {l.directions, 4 * l.hidden};
  const Dims dims = scale.rank() == 2 ? per_column : Dims{l.directions};
  check_dims(n, scale, what == "W" ? "the scale of W" : "the scale of R", DType::f32, dims);
  if (zero.rank() < scale.rank()) {
    check_dims(n, zero, "the zero point", v.dtype(), {l.directions});
    zero = broadcast(zero, per_column, {0});
  }
  check_dims(n, zero, what == "W" ? "the zero point of W" : "the zero point of R", v.dtype(),
             zero.rank() == 2 ? per_column : Dims{l.directions});
}

ByteLstm read_byte_lstm(Node& n) {
  ByteLstm l;
  l.x = n.in(0), l.w = n.in(1), l.r = n.in(2);
  n.require_rank(l.x, "X", 3, 3);
  n.require_rank(l.w, "W", 3, 3);
  n.require_rank(l.r, "R", 3, 3);
  if (l.x.dtype() != DType::f32) n.bad("X is {}, want f32", l.x.type().to_string());
  const std::string direction = read_direction(n);
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.starts_reversed = direction == "reverse";
  l.hidden = l.r.dim(1);
  if (n.has_attribute("hidden_size") && !l.hidden.is(n.integer("hidden_size")))
    n.bad("hidden_size is {}, R has {}", n.integer("hidden_size"), l.hidden.to_string());
  read_bytes(n, 1, 8, l.x.dim(2), l, l.w_scale, l.w_zero);
  read_bytes(n, 2, 10, l.hidden, l, l.r_scale, l.r_zero);
  l.bias = n.optional(3), l.lengths = n.optional(4);
  l.h = n.optional(5), l.c = n.optional(6), l.peephole = n.optional(7);
  const Dim batch = l.x.dim(1), all = l.directions;
  check_dims(n, l.bias, "B", DType::f32, {all, 8 * l.hidden});
  check_dims(n, l.lengths, "sequence_lens", DType::i32, {batch});
  check_dims(n, l.h, "initial_h", DType::f32, {all, batch, l.hidden});
  check_dims(n, l.c, "initial_c", DType::f32, {all, batch, l.hidden});
  check_dims(n, l.peephole, "P", DType::f32, {all, 3 * l.hidden});
  l.clip = n.real("clip", 0);
  if (!(l.clip >= 0)) n.bad("clip is {}, not at least 0", l.clip);
  l.input_forget = n.flag("input_forget");
  const auto directions = static_cast<size_t>(l.directions);
  Result<std::vector<RecurrentActivation>> found =
      lstm_activations(activation_list(n, 3, directions), directions);
  if (!found.ok()) throw Failure{std::move(found).error()};
  l.activations = *std::move(found);
  return l;
}

// x [time, batch, n] with the steps of each sequence in their other order.
Value turned_round(Value x, Value lengths) {
  Builder& b = x.builder();
  const Dims places = {x.dim(0), x.dim(1)};
  const Value step = iota(b, DType::i64, places, 0), sequence = iota(b, DType::i64, places, 1);
  const Value length = minimum(cast(lengths, DType::i64), size_value(b, x.dim(0)));
  const Value back = length - 1 - step;
  const Value row = select(compare("lt", back, 0), step, back) * size_value(b, x.dim(1)) + sequence;
  return looked_up(reshape(x, {x.dim(0) * x.dim(1), x.dim(2)}), row, 0);
}

// All steps of X are rounded together. The steps behind the longest sequence hold no data.
Value input_sums(Node& n, const ByteLstm& l, int64_t d, bool is_turned) {
  Value x = is_turned ? turned_round(l.x, l.lengths) : l.x;
  if (l.lengths) {
    const Value longest = reduce_max(l.lengths, {0});
    const Value is_data = compare("lt", iota(n.builder(), DType::i32, {x.dim(0)}, 0), longest);
    x = select(broadcast(is_data, x.dims(), {0}), x, n.builder().scalar(x.dtype(), 0));
  }
  const Dims rows = {x.dim(0) * x.dim(1), x.dim(2)};
  const Value sums = reshape(product_of_bytes(n, reshape(x, rows), l.input_weights(d)),
                             {x.dim(0), x.dim(1), 4 * l.hidden});
  if (!l.bias) return sums;
  const Value bias = direction_of(l.bias, d);
  return sums + (slice(bias, 0, 0, 4 * l.hidden) + slice(bias, 0, 4 * l.hidden, 8 * l.hidden));
}

// The outputs of all steps, the last output and the last cell of a direction. The state is rounded
// in each step.
std::vector<Value> run_byte_direction(Node& n, const ByteLstm& l, int64_t d) {
  Builder& b = n.builder();
  const auto start = [&](Value given) {
    return given ? direction_of(given, d) : b.full(DType::f32, {l.x.dim(1), l.hidden}, 0);
  };
  const ByteWeights r = l.recurrent_weights(d);
  // The states of all sequences are rounded together: backwards, too, they begin in one step.
  const bool is_reversed = l.starts_reversed != (d == 1), is_turned = is_reversed && l.lengths;
  // Regions see no values from outside: what does not change is carried.
  std::vector<Value> carried = {start(l.h), start(l.c), r.numbers, r.scale, r.zero};
  const size_t peephole = carried.size();
  if (l.peephole) carried.push_back(direction_of(l.peephole, d));
  const size_t lengths = carried.size();
  if (l.lengths) carried.push_back(l.lengths);
  std::vector<Value> scanned = {input_sums(n, l, d, is_turned)};
  if (l.lengths) scanned.push_back(iota(b, DType::i32, {l.x.dim(0)}, 0));

  // The state is the last row of Y, where a sequence that has ended has zeros; its first step
  // behind the end still reads its last output. Without Y the last output stays.
  const bool forgets = l.lengths && n.wants(0);
  const auto body = [&](Builder& region, std::span<const Value> in) -> std::vector<Value> {
    const size_t own = carried.size();
    Value state = in[0];
    if (forgets) {
      const Value has_ended =
          compare("gt", broadcast_to(in[own + 1], in[lengths].dims()), in[lengths]);
      state = select(broadcast(has_ended, state.dims(), {0}), region.scalar(DType::f32, 0), state);
    }
    const Value recurrent = product_of_bytes(n, state, {in[2], in[3], in[4]});
    std::vector<Value> next =
        lstm_step({.sums = in[own] + recurrent,
                   .cell = in[1],
                   .peephole = l.peephole ? in[peephole] : Value(),
                   .activations = std::span(l.activations).subspan(static_cast<size_t>(3 * d), 3),
                   .clip = l.clip,
                   .input_forget = l.input_forget});
    Value output = next[0];
    if (l.lengths) {
      next = masked_step(next, {in[0], in[1]}, in[own + 1], in[lengths]);
      output = next.back();
      next.pop_back();
    }
    next.insert(next.end(), in.begin() + 2, in.begin() + static_cast<int64_t>(own));
    next.push_back(output);
    return next;
  };
  const std::vector<Value> done = scan(carried, scanned, body, is_reversed && !is_turned);
  const Value outputs = done[carried.size()];
  return {is_turned ? turned_round(outputs, l.lengths) : outputs, done[0], done[1]};
}

}  // namespace

void map_dynamic_quantize_lstm(Node& n) {
  const ByteLstm l = read_byte_lstm(n);
  std::vector<std::vector<Value>> results(3);
  for (int64_t d = 0; d < l.directions; ++d) {
    const std::vector<Value> run = run_byte_direction(n, l, d);
    for (size_t i = 0; i < results.size(); ++i)
      results[i].push_back(unsqueeze(run[i], i == 0 ? 1 : 0));
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (n.wants(i)) n.out(i, concat(results[i], i == 0 ? 1 : 0));
}

}  // namespace hone::onnx_io
