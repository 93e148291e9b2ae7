#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "front/onnx/registry.h"

// Recurrent layers: hone's composites are ONNX's with layout 0.

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

}  // namespace hone::onnx_io
