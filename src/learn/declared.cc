#include "learn/declared.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "learn/layers.h"
#include "learn/losses.h"

namespace hone {
namespace {

using Words = std::span<const std::string_view>;
using Numbers = std::span<const double>;

int64_t whole(double number) { return static_cast<int64_t>(number); }

// ---- Layers -------------------------------------------------------------------------------------

struct LayerKind {
  std::string_view name;
  std::string_view usage;
  std::string_view doc;
  size_t numbers;
  Value (*make)(Network& net, std::string_view name, Value x, Numbers numbers);
};

// The mean over the dim in front of the features: of a text, over its places.
Value mean_of_places(Network& net, Value x) {
  if (x.rank() >= 2) return reduce_mean(x, {static_cast<int64_t>(x.rank()) - 2});
  net.b.fail(bad_input("layer mean takes rank 2 at least, not {}", x.type().to_string()));
  return x;
}

constexpr LayerKind kLayers[] = {
    {"linear", "linear N", "x weight + bias, with N results", 1,
     [](Network& net, std::string_view name, Value x, Numbers n) {
       return linear(net, name, x, whole(n[0]));
     }},
    {"relu", "relu", "max(x, 0)", 0,
     [](Network&, std::string_view, Value x, Numbers) { return relu(x); }},
    {"gelu", "gelu", "x times the normal distribution function of x", 0,
     [](Network&, std::string_view, Value x, Numbers) { return gelu(x); }},
    {"silu", "silu", "x times the logistic function of x", 0,
     [](Network&, std::string_view, Value x, Numbers) { return silu(x); }},
    {"tanh", "tanh", "the hyperbolic tangent", 0,
     [](Network&, std::string_view, Value x, Numbers) { return tanh(x); }},
    {"logistic", "logistic", "1 / (1 + exp(-x))", 0,
     [](Network&, std::string_view, Value x, Numbers) { return logistic(x); }},
    {"dropout", "dropout P", "in training, each element is 0 with probability P", 1,
     [](Network& net, std::string_view, Value x, Numbers n) { return dropout(net, x, n[0]); }},
    {"layer_norm", "layer_norm", "mean 0 and variance 1 over the features, then scale and bias", 0,
     [](Network& net, std::string_view name, Value x, Numbers) {
       return layer_norm(net, name, x);
     }},
    {"rms_norm", "rms_norm", "mean square 1 over the features, then a scale", 0,
     [](Network& net, std::string_view name, Value x, Numbers) { return rms_norm(net, name, x); }},
    {"embedding", "embedding ROWS N", "row x of a table of ROWS by N; x are integers", 2,
     [](Network& net, std::string_view name, Value x, Numbers n) {
       return embedding(net, name, x, whole(n[0]), whole(n[1]));
     }},
    {"transformer", "transformer HEADS", "attention and feed-forward part; x: [batch, place, N]", 1,
     [](Network& net, std::string_view name, Value x, Numbers n) {
       return transformer_layer(net, name, x, {.heads = whole(n[0])});
     }},
    {"mean", "mean", "the mean over places: [batch, place, N] to [batch, N]", 0,
     [](Network& net, std::string_view, Value x, Numbers) { return mean_of_places(net, x); }},
};

Result<DeclaredLayer> parse_layer(Words words) {
  std::vector<std::string_view> names;
  for (const LayerKind& kind : kLayers) names.push_back(kind.name);
  if (words.empty())
    return bad_input("the line names no layer")
        .with_hint(fmt::format("there are {}", join(names, ", ")));
  const auto* kind = std::ranges::find(kLayers, words[0], &LayerKind::name);
  if (kind == std::end(kLayers)) {
    const std::string similar = did_you_mean(words[0], names);
    return bad_input("there is no layer {}", hone::quoted(excerpt(words[0])))
        .with_hint(similar.empty() ? fmt::format("there are {}", join(names, ", ")) : similar);
  }
  if (words.size() != 1 + kind->numbers)
    return bad_input("layer '{}' has {} numbers", kind->usage, words.size() - 1);
  DeclaredLayer layer = {.kind = kind->name, .numbers = {}};
  for (std::string_view word : words.subspan(1)) {
    const double number = HONE_TRY(parse_double(word));
    const bool is_share = kind->name == "dropout";
    const bool is_good = is_share ? number >= 0 && number < 1
                                  : number >= 1 && number <= 1e9 && number == std::floor(number);
    if (!is_good)
      return bad_input("layer '{}': {} is not a {}", kind->usage, word,
                       is_share ? "number from 0 to below 1" : "whole number from 1 to 10^9");
    layer.numbers.push_back(number);
  }
  return layer;
}

// ---- Statements ---------------------------------------------------------------------------------

struct Statement {
  std::string_view name;
  std::string_view usage;
  std::string_view doc;
  Status (*read)(Declaration& to, Words words);
};

Status read_text(Words words, std::string& to) {
  if (words.size() != 1) return bad_input("the line has {} words, not one", words.size());
  to = words[0];
  return {};
}
Status read_number(Words words, double low, double high, double& to) {
  if (words.size() != 1) return bad_input("the line has {} numbers, not one", words.size());
  to = HONE_TRY(parse_double(words[0]));
  if (to >= low && to <= high) return {};
  return bad_input("{} is not between {} and {}", words[0], low, high);
}
Status read_whole(Words words, int64_t low, int64_t& to) {
  if (words.size() != 1) return bad_input("the line has {} numbers, not one", words.size());
  to = HONE_TRY(parse_int(words[0]));
  if (to >= low && to <= 1'000'000'000) return {};
  return bad_input("{} is not between {} and 10^9", words[0], low);
}
Status read_loss(Words words, std::string& to) {
  HONE_TRY(read_text(words, to));
  if (to == "mse" || to == "cross-entropy") return {};
  return bad_input("there is no loss {}", hone::quoted(excerpt(to)))
      .with_hint("there are mse and cross-entropy");
}

constexpr Statement kStatements[] = {
    {"data", "data FILE.npz", "arrays with a row for each sample; from the text's folder",
     [](Declaration& to, Words words) { return read_text(words, to.data); }},
    {"validation", "validation FILE.npz", "the same arrays of samples that it does not learn from",
     [](Declaration& to, Words words) { return read_text(words, to.validation); }},
    {"input", "input NAME", "the array that the first layer reads",
     [](Declaration& to, Words words) { return read_text(words, to.input); }},
    {"target", "target NAME", "the array that the last layer should say: numbers, or labels",
     [](Declaration& to, Words words) { return read_text(words, to.target); }},
    {"loss", "loss mse|cross-entropy", "how far from it that is (mse)",
     [](Declaration& to, Words words) { return read_loss(words, to.loss); }},
    {"layer", "layer KIND [NUMBER]...", "one layer after the other",
     [](Declaration& to, Words words) -> Status {
       to.layers.push_back(HONE_TRY(parse_layer(words)));
       return {};
     }},
    {"model", "model FILE", "a model that exists, in the place of layers; its weights go on",
     [](Declaration& to, Words words) { return read_text(words, to.model); }},
    {"optimizer", "optimizer NAME", "how weights follow their gradients (adam)",
     [](Declaration& to, Words words) -> Status {
       HONE_TRY(read_text(words, to.optimizer));
       to.training.update.optimizer = HONE_TRY(find_optimizer(to.optimizer));
       return {};
     }},
    {"rate", "rate X", "how far a step goes (the optimizer's)",
     [](Declaration& to, Words words) { return read_number(words, 0, 1e6, to.rate); }},
    {"clip", "clip X", "all gradients together are no longer than X",
     [](Declaration& to, Words words) {
       return read_number(words, 0, 1e30, to.training.update.clip_norm);
     }},
    {"average", "average X", "the result is a running mean of the weights that keeps X in a step",
     [](Declaration& to, Words words) {
       return read_number(words, 0, 0.999999, to.training.update.average);
     }},
    {"batch", "batch N", "samples in a step (32)",
     [](Declaration& to, Words words) {
       return read_whole(words, 1, to.training.loader.batch_size);
     }},
    {"epochs", "epochs N", "how often all samples are seen (10)",
     [](Declaration& to, Words words) { return read_whole(words, 1, to.training.epochs); }},
    {"memory", "memory SIZE", "temporaries of a step: 64MiB, 50%, cheap (all)",
     [](Declaration& to, Words words) -> Status {
       std::string size;
       HONE_TRY(read_text(words, size));
       to.training.memory = HONE_TRY(parse_memory_budget(size));
       return {};
     }},
    {"patience", "patience N", "end after N epochs without a better loss",
     [](Declaration& to, Words words) { return read_whole(words, 1, to.training.patience); }},
    {"seed", "seed N", "of the first weights, the order of samples and dropout (0)",
     [](Declaration& to, Words words) -> Status {
       int64_t seed = 0;
       HONE_TRY(read_whole(words, 0, seed));
       to.training.seed = static_cast<uint64_t>(seed);
       return {};
     }},
};

std::string line_text(int64_t number) { return fmt::format("line {}", number); }

Status read_line(std::string_view line, int64_t number, Declaration& to,
                 std::vector<std::string_view>& seen) {
  const std::vector<std::string_view> words = split_words(line.substr(0, line.find('#')));
  if (words.empty()) return {};
  std::vector<std::string_view> names;
  for (const Statement& statement : kStatements) names.push_back(statement.name);
  const auto* statement = std::ranges::find(kStatements, words[0], &Statement::name);
  if (statement == std::end(kStatements)) {
    const std::string similar = did_you_mean(words[0], names);
    return bad_input("there is no statement {}", hone::quoted(excerpt(words[0])))
        .with_hint(similar.empty() ? fmt::format("there are {}", join(names, ", ")) : similar);
  }
  if (statement->name != "layer" && std::ranges::find(seen, statement->name) != seen.end())
    return bad_input("'{}' is given twice", statement->name);
  seen.push_back(statement->name);
  to.lines[statement->name] = number;
  const Status status = statement->read(to, std::span(words).subspan(1));
  if (!status.ok()) return Error(status.error()).about(fmt::format("'{}'", statement->usage));
  if (statement->name == "layer") to.layers.back().line = number;
  return {};
}

// ---- A model in the place of layers -----------------------------------------------------------

Result<Graph> fitting(const Declaration& declaration, Type x) {
  const Lifted& given = *declaration.given;
  std::vector<Type> types = {x};
  for (const NamedTensor& weight : given.weights) types.push_back(weight.tensor.type());
  const Result<Bindings> bindings = bind_inputs(given.graph, types);
  if (!bindings.ok())
    return Error(bindings.error())
        .about(fmt::format("model {}", declaration.model))
        .with_hint(
            "a model with a number for its samples takes batches of this size alone: "
            "'batch N', and as many samples for validation, or a multiple");
  Graph graph = HONE_TRY(specialize(given.graph, *bindings));
  ValueId output = graph.outputs()[0];
  if (declaration.loss == "cross-entropy") output = logits_of(graph, output);
  graph.set_outputs({output});
  return graph;
}

Value given_output(const Declaration& declaration, Network& net, Value x) {
  if (!net.b.ok()) return x;
  const Result<Graph> graph = fitting(declaration, x.type());
  if (!graph.ok()) {
    net.b.fail(Error(graph.error()).within(line_text(declaration.lines.at("model"))));
    return x;
  }
  std::vector<Value> arguments = {x};
  for (const auto& [name, tensor] : declaration.given->weights) {
    const auto dims = tensor.type().dims();
    arguments.push_back(
        net.weight(name, Dims(dims.begin(), dims.end()), Initializer::constant(0), tensor.dtype()));
  }
  return net.b.ok() ? net.b.inlined(*graph, arguments)[0] : x;
}

// A model may take batches of one size alone.
BatchTypes checked_types(const Declaration& declaration, const Batch& rows) {
  BatchTypes types = types_of(rows);
  if (!declaration.given) return types;
  for (auto& [name, type] : types) {
    Dims dims(type.dims().begin(), type.dims().end());
    dims[0] = declaration.training.loader.batch_size;
    type = type.with_dims(dims);
  }
  return types;
}

// ---- Data ---------------------------------------------------------------------------------------

// True if the loss can compare what the layers give with the target.
Status check_target_type(const Declaration& declaration, Type y, Type target) {
  const bool wants_labels = declaration.loss == "cross-entropy";
  Type wanted = y;
  if (wants_labels && y.rank() > 0)
    wanted = Type::get(target.dtype(), y.dims().first(static_cast<size_t>(y.rank()) - 1));
  if (wants_labels ? y.rank() > 0 && is_integer(target.dtype()) && target == wanted : target == y)
    return {};
  Error error = bad_input("'loss {}' takes {}, but the layers give {}, and the target '{}' is {}",
                          declaration.loss,
                          wants_labels ? "a label, an integer, for each list of scores"
                                       : "numbers like those that the layers give",
                          y.to_string(), declaration.target, target.to_string());
  if (!wants_labels && is_integer(target.dtype()))
    error = std::move(error).with_hint("labels go with 'loss cross-entropy'");
  const auto loss = declaration.lines.find("loss");
  return std::move(error).within(
      line_text(loss != declaration.lines.end() ? loss->second : declaration.lines.at("target")));
}

Status check_labels(const Declaration& declaration, const Tensor& labels, int64_t classes,
                    std::string_view file) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<int64_t> piece;
  for (int64_t first = 0; first < labels.elements(); first += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, labels.elements() - first)));
    labels.read_integers(first, piece);
    const auto wrong =
        std::ranges::find_if(piece, [&](int64_t label) { return label < 0 || label >= classes; });
    if (wrong == piece.end()) continue;
    const int64_t row =
        (first + (wrong - piece.begin())) / (labels.elements() / labels.type().dim(0).value());
    return bad_input("row {} of '{}' in {} has label {}; the network has the {} classes from 0 on",
                     row, declaration.target, file, *wrong, classes)
        .within(line_text(declaration.given ? declaration.lines.at("model")
                                            : declaration.layers.back().line));
  }
  return {};
}

}  // namespace

Result<Declaration> parse_declaration(std::string_view text) {
  Declaration declaration;
  std::vector<std::string_view> seen;
  int64_t number = 0;
  for (std::string_view line : split_lines(text)) {
    ++number;
    if (Status status = read_line(line, number, declaration, seen); !status.ok())
      return Error(status.error()).within(line_text(number));
  }
  const bool has_model = !declaration.model.empty();
  if (has_model && !declaration.layers.empty())
    return bad_input("there are layers, and a model in their place")
        .with_hint("keep 'model', or the lines 'layer'")
        .within(line_text(declaration.lines.at("model")));
  for (std::string_view needed : {"data", "input", "target", has_model ? "model" : "layer"})
    if (std::ranges::find(seen, needed) == seen.end())
      return bad_input("the line '{}' is missing", needed)
          .with_hint("'hone help train' shows an example");
  if (declaration.rate > 0) declaration.training.rate = constant_rate(declaration.rate);
  return declaration;
}

Value declared_output(const Declaration& declaration, Network& net) {
  Value x = net.input(declaration.input);
  if (declaration.given) return given_output(declaration, net, x);
  for (size_t i = 0; i < declaration.layers.size() && net.b.ok(); ++i) {
    const DeclaredLayer& layer = declaration.layers[i];
    const auto* kind = std::ranges::find(kLayers, layer.kind, &LayerKind::name);
    x = kind->make(net, fmt::format("{}.{}", i, kind->name), x, layer.numbers);
    if (net.b.ok()) continue;
    Error error = net.b.status().error();
    net.b.forgive();
    net.b.fail(std::move(error).within(line_text(layer.line)));
  }
  return x;
}

Result<Lifted> given_network(const Graph& model) {
  if (model.inputs().size() != 1)
    return bad_input("a network has one input, and '{}' has {}", model.name(),
                     model.inputs().size());
  Lifted given = HONE_TRY(lift_weights(HONE_TRY(unpack_weights(model)), 0, {}));
  if (!given.weights.empty()) return given;
  return bad_input(
      "'{}' has no weights to train: no real constant of rank 1 or more decides its first output",
      model.name());
}

Result<Graph> trained_network(const Lifted& given, std::span<const NamedTensor> weights) {
  return pack_weights(HONE_TRY(lower_weights(given, weights)));
}

Status check_samples(const Declaration& declaration, const Batch& rows, std::string_view file) {
  const BatchTypes types = checked_types(declaration, rows);
  Builder b("network");
  Network net(b, Network::Mode::evaluation, types);
  const Value y = declared_output(declaration, net);
  HONE_TRY(b.status());
  const Tensor& target = rows.at(declaration.target);
  const auto type = std::ranges::find(types, declaration.target, &BatchTypes::value_type::first);
  HONE_TRY(check_target_type(declaration, y.type(), type->second));
  if (declaration.loss != "cross-entropy") return {};
  return check_labels(declaration, target, y.type().dim(y.rank() - 1).value(), file);
}

Objective declared_objective(const Declaration& declaration, Network& net) {
  const Value y = declared_output(declaration, net);
  const Value target = net.input(declaration.target);
  if (declaration.loss == "mse") return {mean_squared_error(y, target)};
  if (!net.b.ok() || y.rank() < 1) return {cross_entropy(y, target)};
  const Value guess = argmax(y, -1);
  const Value right = cast(compare("eq", guess, cast(target, DType::i64)), DType::f32);
  Ints axes;
  for (int i = 0; i < right.rank(); ++i) axes.push_back(i);
  return {cross_entropy(y, target), {{"accuracy", reduce_mean(right, axes)}}};
}

}  // namespace hone
