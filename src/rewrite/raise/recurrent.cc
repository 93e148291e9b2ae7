#include <algorithm>
#include <set>

#include "base/text.h"
#include "rewrite/raise/guess.h"

namespace hone {
namespace {

// Layers come back from scans that look like ours: what the cell does inside is found by trying the
// few attributes that its ops allow.

struct CellKind {
  Opcode opcode;
  int64_t gates;
  size_t states;
  size_t functions;
  std::string_view standard;
};
constexpr CellKind kKinds[] = {
    {Opcode::lstm, 4, 2, 3, "sigmoid,tanh,tanh"},
    {Opcode::gru, 3, 1, 2, "sigmoid,tanh"},
    {Opcode::rnn, 1, 1, 1, "tanh"},
};

// ---- Reading a scan -----------------------------------------------------------------------------

// One direction; kNoForm for what is absent.
struct Direction {
  Form scan = kNoForm;
  Form x = kNoForm, w = kNoForm, r = kNoForm, bias = kNoForm, lengths = kNoForm, peephole = kNoForm;
  std::vector<Form> initial;
};

// The scan behind a root: y, or a state, of one direction or of the first of two.
Form scan_behind(const Guess& g, Form f) {
  f = g.core(f);
  if (g.is(f, Opcode::concat)) f = g.core(g.operand(f, 0));
  return g.is(f, Opcode::scan) ? f : kNoForm;
}

// The operand that the values of all directions were cut from; `own` is one direction's part.
Form whole(Guess& g, Form own, int directions) {
  if (own == kNoForm) return kNoForm;
  if (directions == 1) {
    Dims dims = g.forms.dims(own);
    dims.insert(dims.begin(), 1);
    return g.forms.reshape(own, dims);
  }
  const Form cut = g.core(own);
  return g.is(cut, Opcode::slice) ? g.operand(cut, 0) : kNoForm;
}

// x and w of the contraction [time, batch, gates].
bool read_inputs(Guess& g, Form product, Dim rows, Direction& d) {
  const Type type = g.forms.type(product);
  const Form inner = g.core(product);
  if (!g.is(inner, Opcode::einsum) || type.rank() != 3) return false;
  const std::string& equation = g.forms.op(inner).word("equation");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string result = equation.substr(arrow + 2);
  const std::string letters[2] = {equation.substr(0, comma),
                                  equation.substr(comma + 1, arrow - comma - 1)};
  for (int side = 0; side < 2; ++side) {
    // w has the gates, x the rest; the contracted letter stands in both.
    const std::string &of_x = letters[side], &of_w = letters[1 - side];
    const Form x = g.operand(inner, static_cast<size_t>(side));
    const Form w = g.operand(inner, static_cast<size_t>(1 - side));
    std::string input;
    for (char c : of_x)
      if (of_w.find(c) != std::string::npos && result.find(c) == std::string::npos) input += c;
    if (input.size() > 1 || of_w.size() != input.size() + (rows.is(1) ? 0 : 1)) continue;
    auto ordered = [&](Form f, const std::string& from, const std::string& to) {
      Ints permutation;
      for (char c : to) permutation.push_back(static_cast<int64_t>(from.find(c)));
      return g.forms.transpose(f, permutation);
    };
    std::string x_order, w_order;
    for (char c : result) {
      if (of_x.find(c) != std::string::npos) x_order += c;
      if (of_w.find(c) != std::string::npos) w_order += c;
    }
    x_order += input, w_order += input;
    if (x_order.size() != of_x.size() || w_order.size() != of_w.size()) continue;
    Dim width = 1;
    if (!input.empty()) width = g.forms.type(x).dim(static_cast<int>(of_x.find(input)));
    d.x = g.forms.reshape(ordered(x, of_x, x_order), {type.dim(0), type.dim(1), width});
    d.w = g.forms.reshape(ordered(w, of_w, w_order), {rows, width});
    return true;
  }
  return false;
}

// The bias of one direction that a slice of it, or the sum of its halves, comes from.
Form bias_behind(const Guess& g, Form added) {
  const Form inner = g.core(added);
  const Form half = g.is(inner, Opcode::add) ? g.core(g.operand(inner, 0)) : inner;
  return g.is(half, Opcode::slice) ? g.operand(half, 0) : kNoForm;
}

std::optional<Direction> read_direction(Guess& g, Form scan, const CellKind& kind) {
  const std::span<const Form> operands = g.forms.operands(scan);
  const size_t count = g.forms[scan].payload;
  const size_t carried = static_cast<size_t>(g.forms.op(scan).integer("carried"));
  if (carried <= kind.states || count <= carried || count > carried + 2) return std::nullopt;
  Direction d;
  d.scan = scan;
  for (size_t i = 0; i < kind.states; ++i) {
    const bool zero = g.forms.is_splat(operands[i], 0);
    d.initial.push_back(zero ? kNoForm : operands[i]);
  }
  d.r = operands[kind.states];
  const Type r = g.forms.type(d.r), state = g.forms.type(operands[0]);
  if (r.rank() != 2 || state.rank() != 2 || !(r.dim(1) == state.dim(1)) ||
      !(r.dim(0) == kind.gates * r.dim(1))) {
    return std::nullopt;
  }
  for (size_t i = kind.states + 1; i < carried; ++i) {
    const Form f = operands[i];
    if (is_integer(g.forms.type(f).dtype()))
      d.lengths = f;
    else if (kind.opcode == Opcode::lstm)
      d.peephole = f;
  }
  const Form gates = operands[carried];
  if (read_inputs(g, gates, r.dim(0), d)) return d;
  if (!g.is(gates, Opcode::add)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    if (!read_inputs(g, g.operand(gates, i), r.dim(0), d)) continue;
    d.bias = bias_behind(g, g.operand(gates, 1 - i));
    if (d.bias == kNoForm) return std::nullopt;
    return d;
  }
  return std::nullopt;
}

// ---- Attributes ---------------------------------------------------------------------------------

// What the cell is made of.
struct Contents {
  std::set<Opcode> opcodes;
  std::set<double> clips;
};

Contents contents_of(const Guess& g, Form scan) {
  Contents contents;
  std::set<Form> seen;
  const std::span<const Form> all = g.forms.operands(scan);
  std::vector<Form> todo(all.begin() + static_cast<int64_t>(g.forms[scan].payload), all.end());
  while (!todo.empty()) {
    const Form f = todo.back();
    todo.pop_back();
    if (!seen.insert(f).second) continue;
    for (Form x : g.forms.operands(f))
      if (x != kNoForm) todo.push_back(x);
    if (!g.forms.is(f, FormKind::op)) continue;
    contents.opcodes.insert(g.forms.op(f).opcode());
    if (!g.is(f, Opcode::min)) continue;
    if (const auto high = g.beside_splat(f); high && high->second > 0)
      contents.clips.insert(high->second);
  }
  return contents;
}

// The activations that leave a trace among the cell's ops.
std::vector<std::string> possible_functions(const Contents& contents) {
  constexpr std::pair<std::string_view, Opcode> kTraces[] = {
      {"sigmoid", Opcode::logistic}, {"tanh", Opcode::tanh},         {"relu", Opcode::max},
      {"hard_sigmoid", Opcode::min}, {"softsign", Opcode::abs},      {"softplus", Opcode::log1p},
      {"elu", Opcode::expm1},        {"leaky_relu", Opcode::select},
  };
  std::vector<std::string> names;
  for (const auto& [name, trace] : kTraces)
    if (contents.opcodes.contains(trace)) names.emplace_back(name);
  return names;
}

// The standard list (as ""), then every list of possible functions.
std::vector<std::string> activation_lists(const CellKind& kind, const Contents& contents) {
  const std::vector<std::string> names = possible_functions(contents);
  std::vector<std::string> lists = {""};
  for (size_t i = 0; i < kind.functions; ++i) {
    std::vector<std::string> longer;
    for (const std::string& list : lists)
      for (const std::string& name : names)
        longer.push_back(list.empty() ? name : list + "," + name);
    lists = std::move(longer);
  }
  std::erase(lists, kind.standard);
  lists.insert(lists.begin(), "");
  return lists;
}

bool propose_layer(Guess& g, const CellKind& kind, const Direction& d, const std::string& direction,
                   const std::vector<Form>& operands) {
  const Contents contents = contents_of(g, d.scan);
  std::vector<double> clips = {0};
  for (double clip : contents.clips) clips.push_back(recovered(g.forms.type(d.r).dtype(), clip));
  std::string_view variant;
  if (kind.opcode == Opcode::lstm) variant = "input_forget";
  if (kind.opcode == Opcode::gru) variant = "linear_before_reset";
  for (const std::string& list : activation_lists(kind, contents)) {
    for (double clip : clips) {
      for (bool flag : {false, true}) {
        Attrs attrs = {{"direction", direction}, {"activations", list}, {"clip", clip}};
        if (!variant.empty())
          attrs.push_back({variant, flag});
        else if (flag)
          continue;
        if (g.propose(Op::get(kind.opcode, attrs), operands)) return true;
      }
    }
  }
  return false;
}

bool guess_layer(Guess& g) {
  const Form scan = scan_behind(g, g.root);
  if (scan == kNoForm) return false;
  const Form joined = g.core(g.root);
  const int directions =
      g.is(joined, Opcode::concat) ? static_cast<int>(g.forms.operands(joined).size()) : 1;
  if (directions > 2) return false;
  const std::string direction = directions == 2                    ? "bidirectional"
                                : g.forms.op(scan).flag("reverse") ? "reverse"
                                                                   : "forward";
  for (const CellKind& kind : kKinds) {
    const auto d = read_direction(g, scan, kind);
    if (!d) continue;
    std::vector<Form> operands = {d->x, whole(g, d->w, directions), whole(g, d->r, directions),
                                  whole(g, d->bias, directions), d->lengths};
    for (Form f : d->initial) operands.push_back(whole(g, f, directions));
    if (kind.opcode == Opcode::lstm) operands.push_back(whole(g, d->peephole, directions));
    if (operands[1] == kNoForm || operands[2] == kNoForm) continue;
    if (propose_layer(g, kind, *d, direction, operands)) return true;
  }
  return false;
}

constexpr RaiseRule kRecurrentRules[] = {
    {Opcode::reshape, guess_layer},
    {Opcode::concat, guess_layer},
    {Opcode::scan, guess_layer},
};

}  // namespace

std::span<const RaiseRule> recurrent_rules() { return kRecurrentRules; }

}  // namespace hone
