#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cost/analytic.h"
#include "cost/program_price.h"
#include "ir/reference/evaluate.h"
#include "planner/planner.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "tests/front/onnx_file.h"
#include "tests/target/target_testing.h"

// Exporters spell out what ONNX has one op for. A plan of the spelled-out form costs no more than
// one of the op, by the analytic price and for a target that is always the same.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using Name = std::string;

constexpr int64_t kRows = 128, kWidth = 256, kHeads = 4, kPerHead = 64;

// A model in today's opset, written value by value.
class Spelled : public File {
 public:
  Spelled() {
    proto.mutable_opset_import(0)->set_version(24);
    proto.set_ir_version(11);
  }
  Name input(const Name& name, const Ints& dims, DType dtype = DType::f32) {
    Strings words;
    for (int64_t d : dims) words.push_back(std::to_string(d));
    graph.input(name, dtype, words);
    return name;
  }
  Name op(std::string_view op, const Strings& inputs, const Attributes& attributes = {}) {
    return ops(op, inputs, 1, attributes)[0];
  }
  Strings ops(std::string_view op, const Strings& inputs, int outputs,
              const Attributes& attributes = {}) {
    Strings names;
    for (int i = 0; i < outputs; ++i) names.push_back(fmt::format("v{}", next_++));
    graph.node(op, inputs, names, attributes);
    return names;
  }
  Name constant(const Tensor& tensor) {
    graph.constant(fmt::format("c{}", next_), tensor);
    return fmt::format("c{}", next_++);
  }
  Name weights(const Ints& dims) {
    std::vector<double> values(static_cast<size_t>(type_of(DType::f32, dims).static_elements()));
    for (double& v : values) v = std::uniform_real_distribution(0.5, 1.5)(random_);
    return constant(reals(dims, values));
  }
  Name number(double value) { return constant(reals({}, {value})); }
  Name numbers(const Ints& values) {
    return constant(integers({static_cast<int64_t>(values.size())}, values));
  }
  // Words for frequent ops.
  Name plus(const Name& a, const Name& b) { return op("Add", {a, b}); }
  Name times(const Name& a, const Name& b) { return op("Mul", {a, b}); }
  Name matmul(const Name& a, const Name& b) { return op("MatMul", {a, b}); }
  Name reshape(const Name& x, const Ints& dims) { return op("Reshape", {x, numbers(dims)}); }
  Name transpose(const Name& x, const Ints& order) {
    return op("Transpose", {x}, {{"perm", order}});
  }
  Name slice(const Name& x, int64_t from, int64_t to, int64_t axis) {
    return op("Slice", {x, numbers({from}), numbers({to}), numbers({axis})});
  }
  Name mean(const Name& x, int64_t axis = -1) { return op("ReduceMean", {x, numbers({axis})}); }

 private:
  int next_ = 0;
  std::mt19937 random_{1};
};

double price_of(const Spelled& file, int64_t threads) {
  const Model model = file.model();
  const Graph* imported = single_graph(model);
  if (imported == nullptr) return NAN;
  const Target target = parse_target(kSampleTarget, "t").value();
  const Graph graph = prepare(*imported).value();
  Plan open;
  open.threads = threads;
  const AnalyticCost cost(target);
  const Plan plan = complete(graph, open, target, cost).value();
  const Program program = lower(graph, plan, target).value();
  return price(program, cost)->total();
}

// ---- Norms and activations ----------------------------------------------------------------------

// Made between two layers.
using Part = Name (*)(Spelled& m, const Name& x);

Name layer(Spelled& m, const Name& x, int64_t from, int64_t to) {
  return m.plus(m.matmul(x, m.weights({from, to})), m.weights({to}));
}
void between_layers(Spelled& m, Part part) {
  const Name x = m.input("x", {1, kRows, kWidth});
  const Name y = part(m, layer(m, x, kWidth, kWidth));
  m.graph.outputs({layer(m, y, kWidth, kWidth)});
}

Name layer_norm(Spelled& m, const Name& x) {
  return m.op("LayerNormalization", {x, m.weights({kWidth}), m.weights({kWidth})});
}
Name layer_norm_by_power(Spelled& m, const Name& x) {
  const Name centered = m.op("Sub", {x, m.mean(x)});
  const Name variance = m.mean(m.op("Pow", {centered, m.number(2)}));
  const Name deviation = m.op("Sqrt", {m.plus(variance, m.number(1e-5))});
  return m.plus(m.times(m.op("Div", {centered, deviation}), m.weights({kWidth})),
                m.weights({kWidth}));
}
Name layer_norm_by_reciprocal(Spelled& m, const Name& x) {
  const Name centered = m.op("Sub", {x, m.mean(x)});
  const Name again = m.op("Sub", {x, m.mean(x)});
  const Name variance = m.mean(m.times(again, again));
  const Name deviation = m.op("Sqrt", {m.plus(variance, m.number(1e-5))});
  const Name factor = m.op("Reciprocal", {deviation});
  return m.plus(m.times(m.times(centered, factor), m.weights({kWidth})), m.weights({kWidth}));
}

Name rms_norm(Spelled& m, const Name& x) {
  return m.op("RMSNormalization", {x, m.weights({kWidth})});
}
Name rms_norm_by_power(Spelled& m, const Name& x) {
  const Name square = m.mean(m.op("Pow", {x, m.number(2)}));
  const Name factor = m.op("Reciprocal", {m.op("Sqrt", {m.plus(square, m.number(1e-5))})});
  return m.times(m.weights({kWidth}), m.times(x, factor));
}
Name rms_norm_by_division(Spelled& m, const Name& x) {
  const Name square = m.mean(m.times(x, x));
  const Name root = m.op("Sqrt", {m.plus(square, m.number(1e-5))});
  return m.times(m.op("Div", {x, root}), m.weights({kWidth}));
}

Name gelu(Spelled& m, const Name& x) { return m.op("Gelu", {x}); }
Name gelu_by_erf(Spelled& m, const Name& x) {
  const Name y = m.op("Erf", {m.op("Div", {x, m.number(std::sqrt(2.0))})});
  return m.times(m.times(x, m.plus(y, m.number(1))), m.number(0.5));
}
Name gelu_by_erf_of_half(Spelled& m, const Name& x) {
  const Name y = m.op("Erf", {m.times(x, m.number(std::sqrt(0.5)))});
  return m.times(m.times(m.number(0.5), x), m.plus(m.number(1), y));
}
Name gelu_tanh(Spelled& m, const Name& x) { return m.op("Gelu", {x}, {{"approximate", "tanh"}}); }
Name gelu_by_tanh(Spelled& m, const Name& x) {
  const Name cube = m.op("Pow", {x, m.number(3)});
  const Name sum = m.plus(x, m.times(cube, m.number(0.044715)));
  const Name y = m.op("Tanh", {m.times(sum, m.number(0.7978845608))});
  return m.times(m.times(x, m.number(0.5)), m.plus(y, m.number(1)));
}

Name swiglu(Spelled& m, const Name& x, const Name& gate) {
  return m.times(gate, layer(m, x, kWidth, kWidth));
}
Name swiglu_by_op(Spelled& m, const Name& x) {
  return swiglu(m, x, m.op("Swish", {layer(m, x, kWidth, kWidth)}));
}
Name swiglu_by_sigmoid(Spelled& m, const Name& x) {
  const Name gate = layer(m, x, kWidth, kWidth);
  return swiglu(m, x, m.times(gate, m.op("Sigmoid", {gate})));
}
Name swiglu_by_exp(Spelled& m, const Name& x) {
  const Name gate = layer(m, x, kWidth, kWidth);
  const Name down = m.plus(m.op("Exp", {m.op("Neg", {gate})}), m.number(1));
  return swiglu(m, x, m.op("Div", {gate, down}));
}

// ---- Attention ----------------------------------------------------------------------------------

struct Heads {
  Name query, key, value;
};

// Slices of one product, with the heads in front.
Heads heads(Spelled& m, int64_t rows = kRows) {
  const Name x = m.input("x", {1, rows, kWidth});
  const Name all = layer(m, x, kWidth, 3 * kWidth);
  const Strings parts = m.ops("Split", {all}, 3, {{"axis", 2}, {"num_outputs", 3}});
  const auto in_front = [&](const Name& part) {
    return m.transpose(m.reshape(part, {1, rows, kHeads, kPerHead}), {0, 2, 1, 3});
  };
  return {in_front(parts[0]), in_front(parts[1]), in_front(parts[2])};
}
void finish(Spelled& m, const Name& y, int64_t rows = kRows) {
  const Name together = m.reshape(m.transpose(y, {0, 2, 1, 3}), {1, rows, kWidth});
  m.graph.outputs({layer(m, together, kWidth, kWidth)});
}
Name transposed_key(Spelled& m, const Heads& h) { return m.transpose(h.key, {0, 1, 3, 2}); }
void softmax_and_finish(Spelled& m, const Heads& h, const Name& scores) {
  finish(m, m.matmul(m.op("Softmax", {scores}, {{"axis", -1}}), h.value));
}

void attention(Spelled& m) {
  const Heads h = heads(m);
  finish(m, m.op("Attention", {h.query, h.key, h.value}));
}
// As PyTorch 2 writes it: both operands times the root of the scale, with reshapes around.
Name scores_of_scaled(Spelled& m, const Heads& h) {
  const Name scale = m.constant(reals({1}, {std::sqrt(0.125)}));
  const Name flat = m.reshape(h.key, {kHeads, kRows, kPerHead});
  const Name key = m.reshape(m.transpose(flat, {0, 2, 1}), {1, kHeads, kPerHead, kRows});
  return m.matmul(m.times(h.query, scale), m.times(key, scale));
}
void attention_of_scaled(Spelled& m) {
  const Heads h = heads(m);
  softmax_and_finish(m, h, scores_of_scaled(m, h));
}
void attention_of_divided(Spelled& m) {
  const Heads h = heads(m);
  const Name scores = m.matmul(h.query, transposed_key(m, h));
  softmax_and_finish(m, h, m.op("Div", {scores, m.number(8)}));
}

void causal_attention(Spelled& m) {
  const Heads h = heads(m);
  finish(m, m.op("Attention", {h.query, h.key, h.value}, {{"is_causal", 1}}));
}
// Trilu of ones, taken for a mask of floats by comparing twice.
void causal_attention_by_where(Spelled& m) {
  const Heads h = heads(m);
  const Name ones = m.op("Expand", {m.number(1), m.numbers({kRows, kRows})});
  const Name lower = m.op("Trilu", {ones}, {{"upper", 0}});
  const Name is_hidden = m.op("Equal", {lower, m.number(0)});
  const Name mask = m.op("Where", {is_hidden, m.number(-3.4028234663852886e38), m.number(0)});
  softmax_and_finish(m, h, m.plus(scores_of_scaled(m, h), mask));
}
// Positions compared, as transformers do since version 4.48.
void causal_attention_by_positions(Spelled& m) {
  const Heads h = heads(m);
  const Name at = m.op("Range", {m.constant(integers({}, {0})), m.constant(integers({}, {kRows})),
                                 m.constant(integers({}, {1}))});
  const Name is_hidden = m.op("Greater", {m.reshape(at, {1, kRows}), m.reshape(at, {kRows, 1})});
  const Name wide = m.op("Cast", {is_hidden}, {{"to", 1}});
  const Name mask = m.times(wide, m.number(-3.4028234663852886e38));
  const Name four = m.reshape(mask, {1, 1, kRows, kRows});
  softmax_and_finish(m, h, m.plus(scores_of_scaled(m, h), four));
}

void padded_attention(Spelled& m) {
  const Heads h = heads(m);
  const Name mask = m.input("mask", {1, kRows}, DType::i64);
  const Name seen = m.op("Cast", {m.reshape(mask, {1, 1, 1, kRows})}, {{"to", 9}});
  finish(m, m.op("Attention", {h.query, h.key, h.value, seen}));
}
void padded_attention_by_sum(Spelled& m) {
  const Heads h = heads(m);
  const Name mask = m.input("mask", {1, kRows}, DType::i64);
  const Name wide =
      m.op("Expand", {m.reshape(mask, {1, 1, 1, kRows}), m.numbers({1, 1, kRows, kRows})});
  const Name number = m.op("Cast", {wide}, {{"to", 1}});
  const Name lack = m.op("Sub", {m.number(1), number});
  const Name is_hidden = m.op("Cast", {lack}, {{"to", 9}});
  const Name sum = m.op("Where", {is_hidden, m.number(-3.4028234663852886e38), lack});
  softmax_and_finish(m, h, m.plus(scores_of_scaled(m, h), sum));
}

// Two heads of keys and values for four of queries.
Heads few_keys(Spelled& m) {
  const Name x = m.input("x", {1, kRows, kWidth});
  const auto part = [&](int64_t count) {
    const Name y = layer(m, x, kWidth, count * kPerHead);
    return m.transpose(m.reshape(y, {1, kRows, count, kPerHead}), {0, 2, 1, 3});
  };
  return {part(kHeads), part(kHeads / 2), part(kHeads / 2)};
}
void grouped_attention(Spelled& m) {
  const Heads h = few_keys(m);
  finish(m, m.op("Attention", {h.query, h.key, h.value}));
}
void grouped_attention_by_repeats(Spelled& m) {
  Heads h = few_keys(m);
  const auto repeated = [&](const Name& x) {
    const Name five = m.reshape(x, {1, kHeads / 2, 1, kRows, kPerHead});
    const Name twice = m.op("Expand", {five, m.numbers({1, kHeads / 2, 2, kRows, kPerHead})});
    return m.reshape(twice, {1, kHeads, kRows, kPerHead});
  };
  h.key = repeated(h.key);
  h.value = repeated(h.value);
  const Name scores = m.matmul(h.query, transposed_key(m, h));
  softmax_and_finish(m, h, m.times(scores, m.number(0.125)));
}

void rotary(Spelled& m) {
  const Heads h = heads(m);
  const Name cos = m.weights({kRows, kPerHead / 2}), sin = m.weights({kRows, kPerHead / 2});
  const auto at = m.constant(integers({1, kRows}, [] {
    Ints values(kRows);
    for (int64_t i = 0; i < kRows; ++i) values[static_cast<size_t>(i)] = i;
    return values;
  }()));
  const auto turned = [&](const Name& x) { return m.op("RotaryEmbedding", {x, cos, sin, at}); };
  finish(m, m.op("Attention", {turned(h.query), turned(h.key), h.value}));
}
void rotary_by_halves(Spelled& m) {
  const Heads h = heads(m);
  const auto table = [&] {
    const Name half = m.weights({1, 1, kRows, kPerHead / 2});
    return m.op("Concat", {half, half}, {{"axis", -1}});
  };
  const Name cos = table(), sin = table();
  const auto turned = [&](const Name& x) {
    const Name second = m.op("Neg", {m.slice(x, kPerHead / 2, kPerHead, 3)});
    const Name halves = m.op("Concat", {second, m.slice(x, 0, kPerHead / 2, 3)}, {{"axis", -1}});
    return m.plus(m.times(x, cos), m.times(halves, sin));
  };
  finish(m, m.op("Attention", {turned(h.query), turned(h.key), h.value}));
}

// ---- Weights ------------------------------------------------------------------------------------

constexpr int64_t kWords = 2000;

// Words in, words out.
void words(Spelled& m, bool is_tied) {
  const Name table = m.weights({kWords, kWidth});
  const Name ids = m.input("ids", {1, kRows}, DType::i64);
  const Name x = layer(m, m.op("Gather", {table, ids}), kWidth, kWidth);
  const Name out = is_tied ? m.transpose(table, {1, 0}) : m.weights({kWidth, kWords});
  m.graph.outputs({m.matmul(x, out)});
}
void apart(Spelled& m) { words(m, false); }
void tied(Spelled& m) { words(m, true); }

void one_layer(Spelled& m, int64_t rows, bool is_transposed) {
  const Name x = m.input("x", {1, rows, kWidth});
  const Name w =
      is_transposed ? m.transpose(m.weights({1024, kWidth}), {1, 0}) : m.weights({kWidth, 1024});
  m.graph.outputs({m.plus(m.matmul(x, w), m.weights({1024}))});
}
void as_it_lies(Spelled& m) { one_layer(m, kRows, false); }
void transposed(Spelled& m) { one_layer(m, kRows, true); }
void row_as_it_lies(Spelled& m) { one_layer(m, 1, false); }
void row_transposed(Spelled& m) { one_layer(m, 1, true); }
void few_as_they_lie(Spelled& m) { one_layer(m, 8, false); }
void few_transposed(Spelled& m) { one_layer(m, 8, true); }

// ---- Images -------------------------------------------------------------------------------------

// Swin: 4 windows of 7 x 7 of an image that is shifted by 3, 3 heads of 32.
constexpr int64_t kSide = 14, kWindow = 7, kShift = 3, kWindows = 4, kInWindow = 49, kSwin = 96;

Name rolled(Spelled& m, const Name& x, int64_t by) {
  Name y = x;
  for (int64_t axis : {1, 2})
    y = m.op("Concat", {m.slice(y, by, kSide, axis), m.slice(y, 0, by, axis)}, {{"axis", axis}});
  return y;
}
Name windows_of(Spelled& m, const Name& x) {
  const Name six = m.reshape(x, {1, 2, kWindow, 2, kWindow, kSwin});
  return m.reshape(m.transpose(six, {0, 1, 3, 2, 4, 5}), {kWindows, kInWindow, kSwin});
}
Name image_of(Spelled& m, const Name& x) {
  const Name six = m.reshape(x, {1, 2, 2, kWindow, kWindow, kSwin});
  return m.reshape(m.transpose(six, {0, 1, 3, 2, 4, 5}), {1, kSide, kSide, kSwin});
}
// The heads of all windows, from one product of 5 dims as torchvision writes it.
Heads heads_of_windows(Spelled& m, const Name& x) {
  const Name all = m.reshape(layer(m, x, kSwin, 3 * kSwin), {kWindows, kInWindow, 3, 3, 32});
  const Name in_front = m.transpose(all, {2, 0, 3, 1, 4});
  const auto part = [&](int64_t i) {
    return m.op("Gather", {in_front, m.constant(integers({}, {i}))}, {{"axis", 0}});
  };
  return {part(0), part(1), part(2)};
}
void swin(Spelled& m, Name (*attend)(Spelled&, const Heads&)) {
  const Name x = m.input("x", {1, kSide, kSide, kSwin});
  const Heads h = heads_of_windows(m, windows_of(m, rolled(m, x, kShift)));
  const Name y = m.reshape(m.transpose(attend(m, h), {0, 2, 1, 3}), {kWindows, kInWindow, kSwin});
  const Name image = image_of(m, layer(m, y, kSwin, kSwin));
  m.graph.outputs({m.plus(rolled(m, image, kSide - kShift), x)});
}
void swin_by_attention(Spelled& m) {
  swin(m, [](Spelled& m, const Heads& h) {
    return m.op("Attention",
                {h.query, h.key, h.value, m.weights({kWindows, 3, kInWindow, kInWindow})});
  });
}
// The bias of places and the mask of windows are added apart, the latter in 5 dims.
void swin_by_sums(Spelled& m) {
  swin(m, [](Spelled& m, const Heads& h) {
    const Name query = m.times(h.query, m.number(1 / std::sqrt(32.0)));
    const Name scores = m.matmul(query, m.transpose(h.key, {0, 1, 3, 2}));
    const Name placed = m.plus(scores, m.weights({1, 3, kInWindow, kInWindow}));
    const Name five = m.reshape(placed, {1, kWindows, 3, kInWindow, kInWindow});
    const Name mask = m.weights({1, kWindows, 1, kInWindow, kInWindow});
    const Name four = m.reshape(m.plus(five, mask), {kWindows, 3, kInWindow, kInWindow});
    return m.matmul(m.op("Softmax", {four}, {{"axis", -1}}), h.value);
  });
}

// ConvNeXt: a filter of 7 x 7 for each channel, a norm over channels, two layers.
void convnext(Spelled& m, Name (*norm)(Spelled&, const Name&), bool is_norm_in_front) {
  const Name x = m.input("x", {1, kWidth, kSide, kSide});
  const Name y = m.op("Conv", {x, m.weights({kWidth, 1, 7, 7}), m.weights({kWidth})},
                      {{"group", kWidth}, {"pads", Ints{3, 3, 3, 3}}});
  const Name n = is_norm_in_front ? m.transpose(norm(m, y), {0, 2, 3, 1})
                                  : norm(m, m.transpose(y, {0, 2, 3, 1}));
  const Name hidden = gelu(m, layer(m, n, kWidth, 512));
  const Name out = m.times(layer(m, hidden, 512, kWidth), m.weights({kWidth}));
  m.graph.outputs({m.plus(x, m.transpose(out, {0, 3, 1, 2}))});
}
void convnext_block(Spelled& m) { convnext(m, layer_norm, false); }
void convnext_block_by_power(Spelled& m) { convnext(m, layer_norm_by_power, false); }
void convnext_block_by_channels(Spelled& m) {
  convnext(
      m,
      [](Spelled& m, const Name& x) {
        const Name centered = m.op("Sub", {x, m.mean(x, 1)});
        const Name variance = m.mean(m.op("Pow", {centered, m.number(2)}), 1);
        const Name deviation = m.op("Sqrt", {m.plus(variance, m.number(1e-5))});
        const auto along = [&] { return m.weights({kWidth, 1, 1}); };
        return m.plus(m.times(along(), m.op("Div", {centered, deviation})), along());
      },
      true);
}

// ---- Cases --------------------------------------------------------------------------------------

template <Part part>
void layers_around(Spelled& m) {
  between_layers(m, part);
}

struct Case {
  const char* name;
  void (*spelled)(Spelled& m);
  void (*whole)(Spelled& m);
  double most = 1.01;   // the price of the spelled-out form, for 1 of the other
  bool is_same = true;  // both have the same weights
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Forms that still cost more than 1.01 have a limit of their own, which is to go.
constexpr double kDearer = 1.02;

constexpr Case kCases[] = {
    {"LayerNormByPower", layers_around<layer_norm_by_power>, layers_around<layer_norm>},
    {"LayerNormByReciprocal", layers_around<layer_norm_by_reciprocal>, layers_around<layer_norm>},
    {"RmsNormByPower", layers_around<rms_norm_by_power>, layers_around<rms_norm>},
    {"RmsNormByDivision", layers_around<rms_norm_by_division>, layers_around<rms_norm>, kDearer},
    {"GeluByErf", layers_around<gelu_by_erf>, layers_around<gelu>},
    {"GeluByErfOfHalf", layers_around<gelu_by_erf_of_half>, layers_around<gelu>},
    {"GeluByTanh", layers_around<gelu_by_tanh>, layers_around<gelu_tanh>},
    {"SwigluBySigmoid", layers_around<swiglu_by_sigmoid>, layers_around<swiglu_by_op>},
    {"SwigluByExp", layers_around<swiglu_by_exp>, layers_around<swiglu_by_op>},
    {"AttentionOfScaled", attention_of_scaled, attention, kDearer},
    {"AttentionOfDivided", attention_of_divided, attention},
    {"CausalByWhere", causal_attention_by_where, causal_attention, 1.022},
    {"CausalByPositions", causal_attention_by_positions, causal_attention, kDearer},
    {"PaddedBySum", padded_attention_by_sum, padded_attention, 1.1},
    {"GroupedByRepeats", grouped_attention_by_repeats, grouped_attention},
    {"RotaryByHalves", rotary_by_halves, rotary},
    // The table is read in two ways, so the product packs panels of it in each run.
    {"Tied", tied, apart, 1.02, false},
    {"Transposed", transposed, as_it_lies, 1.01, false},
    {"TransposedForOneRow", row_transposed, row_as_it_lies, 1.01, false},
    {"TransposedForFewRows", few_transposed, few_as_they_lie, 1.01, false},
    {"SwinBySums", swin_by_sums, swin_by_attention, 1.04, false},
    {"ConvNextByPower", convnext_block_by_power, convnext_block},
    {"ConvNextByChannels", convnext_block_by_channels, convnext_block},
};

class Spellings : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Spellings, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Spellings, CostNoMoreThanTheOp) {
  Spelled spelled, whole;
  GetParam().spelled(spelled);
  GetParam().whole(whole);
  for (int64_t threads : {1, 2})
    EXPECT_LE(price_of(spelled, threads) / price_of(whole, threads), GetParam().most) << threads;
}

std::vector<Tensor> inputs_of(const Graph& graph) {
  std::mt19937 random(2);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs()) {
    const Type type = graph.type(v);
    std::vector<double> values(static_cast<size_t>(type.static_elements()));
    for (double& each : values)
      each = is_real(type.dtype()) ? std::uniform_real_distribution(-1.0, 1.0)(random)
                                   : static_cast<double>(random() % 2);
    inputs.push_back(Tensor::from_reals(type, values));
  }
  return inputs;
}

void expect_near_all(const Tensor& got, const Tensor& want) {
  double largest = 0, furthest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    largest = std::max(largest, std::abs(want.real_at(i)));
    furthest = std::max(furthest, std::abs(want.real_at(i) - got.real_at(i)));
  }
  EXPECT_LT(furthest, 1e-5 * largest);
}

TEST_P(Spellings, ComputeTheSame) {
  if (!GetParam().is_same) GTEST_SKIP() << "the weights differ";
  Spelled spelled, whole;
  GetParam().spelled(spelled);
  GetParam().whole(whole);
  const Model one = spelled.model(), other = whole.model();
  const std::vector<Tensor> inputs = inputs_of(*single_graph(other));
  const Tensor want = evaluate(*single_graph(other), inputs).value()[0];
  expect_near_all(evaluate(prepare(*single_graph(one)).value(), inputs).value()[0], want);
  expect_near_all(evaluate(prepare(*single_graph(other)).value(), inputs).value()[0], want);
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
