#include "learn/graph_layers.h"

#include <limits>

#include "learn/layers.h"

namespace hone {
namespace {

constexpr double kLeak = 0.2;  // of the leaky relu in front of attention's softmax

// False, and an error, unless each row has a segment.
bool fits(Value rows, Value segments) {
  Builder& b = rows.builder();
  if (!b.ok()) return false;
  if (is_real(rows.dtype()) && rows.rank() >= 1 && is_integer(segments.dtype()) &&
      segments.rank() == 1 && segments.dim(0) == rows.dim(0))
    return true;
  b.fail(bad_input("segments are one integer for each row of reals, not {} for {}",
                   segments.type().to_string(), rows.type().to_string()));
  return false;
}

Value combine(Value into, Value rows, Value segments, std::string_view how) {
  Ints window;
  for (int i = 1; i < rows.rank(); ++i) window.push_back(i);
  return rows.builder().op(Opcode::scatter, {into, segments, rows},
                           {{"window_dims", window},
                            {"inserted_dims", Ints{0}},
                            {"index_map", Ints{0}},
                            {"index_vector_dim", int64_t{1}},
                            {"combine", std::string(how)}});
}

Value combine(Value rows, Value segments, Dim size, double initial, std::string_view how) {
  Dims dims = rows.dims();
  dims[0] = size;
  return combine(rows.builder().full(rows.dtype(), dims, initial), rows, segments, how);
}

// One number per row, as a tensor of the rank of `like`.
Value as_column(Value numbers, Value like) {
  for (int i = 1; i < like.rank(); ++i) numbers = unsqueeze(numbers, i);
  return numbers;
}

// True for rows that count. Sums forget the others; but an infinity that comes of what they hold
// would still make a NaN of the zeros that their derivative begins with.
Value counts(Value segments, Value size_of, Value like) {
  Builder& b = segments.builder();
  const Value ids = cast(segments, DType::i64);
  const Value low =
      compare("ge", ids,
              b.constant(Tensor::from_integers(Type::scalar(DType::i64), std::vector<int64_t>{0})));
  return as_column(binary(Opcode::and_, low, compare("lt", ids, size_of)), like);
}

// What the largest row of each segment has, back at the rows; no derivative goes through it.
Value largest(Value rows, Value segments, Dim size) {
  const double lowest = -std::numeric_limits<double>::infinity();
  return take(combine(stop_gradient(rows), segments, size, lowest, "max"), segments);
}

bool fits(Network& net, Value x, const Edges& edges) {
  if (!net.b.ok()) return false;
  if (x.rank() == 2 && edges.sources.type() == edges.targets.type()) return true;
  net.b.fail(bad_input(
      "a graph layer takes [nodes, features] and as many sources as targets, "
      "not {}, {} and {}",
      x.type().to_string(), edges.sources.type().to_string(), edges.targets.type().to_string()));
  return false;
}

}  // namespace

Value segment_sum(Value rows, Value segments, Dim size) {
  return fits(rows, segments) ? combine(rows, segments, size, 0, "add") : rows;
}

Value segment_mean(Value rows, Value segments, Dim size) {
  if (!fits(rows, segments)) return rows;
  const Value ones = rows.builder().full(rows.dtype(), {rows.dim(0)}, 1);
  const Value sizes = maximum(segment_sum(ones, segments, size), 1);
  return segment_sum(rows, segments, size) / as_column(sizes, rows);
}

Value segment_max(Value rows, Value segments, Dim size) {
  if (!fits(rows, segments)) return rows;
  const Value is_largest = compare("eq", rows, largest(rows, segments, size));
  const Value winners = cast(is_largest, rows.dtype());
  const Value zero = rows.builder().scalar(rows.dtype(), 0);
  const Value sum = segment_sum(select(is_largest, rows, zero), segments, size);
  return sum / maximum(segment_sum(winners, segments, size), 1);
}

Value segment_softmax(Value scores, Value segments, Dim size) {
  if (!fits(scores, segments)) return scores;
  Builder& b = scores.builder();
  const Value used = counts(segments, size_value(b, size), scores);
  const Value zero = b.scalar(scores.dtype(), 0);
  const Value shifted = select(used, scores - largest(scores, segments, size), zero);
  const Value powers = select(used, exp(shifted), zero);
  const Value sums = take(segment_sum(powers, segments, size), segments);
  return powers / select(used, sums, b.scalar(scores.dtype(), 1));
}

Value graph_sage(Network& net, std::string_view name, Value x, const Edges& edges,
                 int64_t outputs) {
  if (!fits(net, x, edges)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value heard = segment_mean(take(x, edges.sources), edges.targets, x.dim(0));
  return linear(net, "self", x, outputs) + linear(net, "heard", heard, outputs, false);
}

Value graph_isomorphism(Network& net, std::string_view name, Value x, const Edges& edges,
                        int64_t hidden, int64_t outputs) {
  if (!fits(net, x, edges)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value epsilon = net.weight("epsilon", {1}, Initializer::constant(0));
  const Value heard = segment_sum(take(x, edges.sources), edges.targets, x.dim(0));
  return mlp(net, "mlp", x * (epsilon + 1) + heard, {hidden, outputs});
}

Value graph_attention(Network& net, std::string_view name, Value x, const Edges& edges,
                      int64_t outputs, int64_t heads) {
  if (!fits(net, x, edges)) return x;
  const Builder::Scope scope = net.scope(name);
  if (heads < 1 || outputs < 1 || outputs % heads != 0) {
    net.b.fail(bad_input("{} heads do not divide the {} outputs of graph attention", heads, outputs)
                   .with_hint("make the outputs a multiple of the heads"));
    return x;
  }
  const int64_t size = outputs / heads;
  const Value h = reshape(linear(net, "values", x, outputs, false), {x.dim(0), heads, size});
  const auto scores = [&](std::string_view part) {  // [nodes, heads]
    return reduce_sum(h * net.weight(part, {heads, size}, Initializer::glorot(size, 1)), {2});
  };
  Value score = take(scores("source"), edges.sources) + take(scores("target"), edges.targets);
  score = maximum(score, score * kLeak);
  const Value shares = unsqueeze(segment_softmax(score, edges.targets, x.dim(0)), 2);
  const Value sum = segment_sum(take(h, edges.sources) * shares, edges.targets, x.dim(0));
  return reshape(sum, {x.dim(0), outputs}) +
         net.weight("bias", {outputs}, Initializer::constant(0));
}

Value attention_pooling(Network& net, std::string_view name, Value x, Value graph_of, Dim graphs) {
  if (!fits(x, graph_of)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value shares = segment_softmax(linear(net, "score", x, 1, false), graph_of, graphs);
  return segment_sum(x * shares, graph_of, graphs);
}

}  // namespace hone
