#include "learn/graph_layers.h"

#include "learn/layers.h"

namespace hone {
namespace {

constexpr double kLeak = 0.2;  // of the leaky relu in front of attention's softmax

// False, and an error, unless each row has a segment.
bool fits(Value rows, const Segments& segments) {
  Builder& b = rows.builder();
  if (!b.ok()) return false;
  const Type of = segments.of.type(), offsets = segments.offsets.type();
  if (is_real(rows.dtype()) && rows.rank() >= 1 && is_integer(of.dtype()) && of.rank() == 1 &&
      of.dim(0) == rows.dim(0) && is_integer(offsets.dtype()) && offsets.rank() == 1)
    return true;
  b.fail(
      bad_input("segments are one integer for each row of reals, not {} for {}, and offsets, "
                "not {}",
                of.to_string(), rows.type().to_string(), offsets.to_string()));
  return false;
}

// One number per row, as a tensor of the rank of `like`.
Value as_column(Value numbers, Value like) {
  for (int i = 1; i < like.rank(); ++i) numbers = unsqueeze(numbers, i);
  return numbers;
}

Dim count_of(const Segments& segments) { return segments.offsets.dim(0) - 1; }

// How many rows each segment has.
Value lengths(Value rows, const Segments& segments) {
  const Dim count = count_of(segments);
  const Value length =
      slice(segments.offsets, 0, 1, count + 1) - slice(segments.offsets, 0, 0, count);
  return as_column(cast(length, rows.dtype()), rows);
}

Value reduced(std::string_view kind, Value rows, const Segments& segments) {
  return segment_reduce(kind, rows, segments.offsets, segments.of);
}

// The values of each segment, at its rows.
Value spread(Value x, const Segments& segments) {
  return gather_rows(x, segments.of, segments.offsets);
}

// True for rows that count. Sums forget the others; but an infinity that comes of what they hold
// would still make a NaN of the zeros that their derivative begins with.
Value counts(const Segments& segments, Value like) {
  Builder& b = like.builder();
  const Value ids = cast(segments.of, DType::i64);
  return as_column(binary(Opcode::and_, compare("ge", ids, 0),
                          compare("lt", ids, size_value(b, count_of(segments)))),
                   like);
}

bool fits(Network& net, Value x, const Edges& edges) {
  if (!net.b.ok()) return false;
  const Type sources = edges.sources.type();
  const auto are_edges = [&](Value v) {
    return is_integer(v.dtype()) && v.rank() == 1 && v.dim(0) == sources.dim(0);
  };
  const auto are_offsets = [&](Value v) {
    return is_integer(v.dtype()) && v.rank() == 1 && v.dim(0) == x.dim(0) + 1;
  };
  if (x.rank() == 2 && sources.rank() == 1 && are_edges(edges.sources) &&
      are_edges(edges.targets.of) && are_edges(edges.by_source) &&
      are_offsets(edges.targets.offsets) && are_offsets(edges.source_offsets))
    return true;
  net.b.fail(
      bad_input("a graph layer takes [nodes, features], as many sources as targets and "
                "nodes + 1 offsets, not {}, {}, {} and {}",
                x.type().to_string(), sources.to_string(), edges.targets.of.type().to_string(),
                edges.targets.offsets.type().to_string()));
  return false;
}

// The values of each edge's source.
Value heard_from(Value x, const Edges& edges) {
  return gather_rows(x, edges.sources, edges.source_offsets, edges.by_source);
}

}  // namespace

Segments segments_in(Network& net, std::string_view name) {
  return {net.input(fmt::format("{}.of", name)), net.input(fmt::format("{}.offsets", name))};
}

Edges edges_in(Network& net, std::string_view name) {
  return {segments_in(net, fmt::format("{}.targets", name)),
          net.input(fmt::format("{}.sources", name)), net.input(fmt::format("{}.by_source", name)),
          net.input(fmt::format("{}.source_offsets", name))};
}

Value segment_sum(Value rows, const Segments& segments) {
  return fits(rows, segments) ? reduced("sum", rows, segments) : rows;
}

Value segment_mean(Value rows, const Segments& segments) {
  if (!fits(rows, segments)) return rows;
  return reduced("sum", rows, segments) / maximum(lengths(rows, segments), 1);
}

Value segment_max(Value rows, const Segments& segments) {
  if (!fits(rows, segments)) return rows;
  const Value zero = rows.builder().scalar(rows.dtype(), 0);
  return select(compare("gt", lengths(rows, segments), 0), reduced("max", rows, segments), zero);
}

Value segment_softmax(Value scores, const Segments& segments) {
  if (!fits(scores, segments)) return scores;
  Builder& b = scores.builder();
  const Value used = counts(segments, scores);
  const Value zero = b.scalar(scores.dtype(), 0);
  const Value largest = reduced("max", stop_gradient(scores), segments);
  const Value shifted = select(used, scores - spread(largest, segments), zero);
  const Value powers = select(used, exp(shifted), zero);
  const Value sums = spread(reduced("sum", powers, segments), segments);
  return powers / select(used, sums, b.scalar(scores.dtype(), 1));
}

Value graph_sage(Network& net, std::string_view name, Value x, const Edges& edges,
                 int64_t outputs) {
  if (!fits(net, x, edges)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value heard = segment_mean(heard_from(x, edges), edges.targets);
  return linear(net, "self", x, outputs) + linear(net, "heard", heard, outputs, false);
}

Value graph_isomorphism(Network& net, std::string_view name, Value x, const Edges& edges,
                        int64_t hidden, int64_t outputs) {
  if (!fits(net, x, edges)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value epsilon = net.weight("epsilon", {1}, Initializer::constant(0));
  const Value heard = segment_sum(heard_from(x, edges), edges.targets);
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
  Value score = heard_from(scores("source"), edges) + spread(scores("target"), edges.targets);
  score = maximum(score, score * kLeak);
  const Value shares = unsqueeze(segment_softmax(score, edges.targets), 2);
  const Value sum = segment_sum(heard_from(h, edges) * shares, edges.targets);
  return reshape(sum, {x.dim(0), outputs}) +
         net.weight("bias", {outputs}, Initializer::constant(0));
}

Value attention_pooling(Network& net, std::string_view name, Value x, const Segments& graphs) {
  if (!fits(x, graphs)) return x;
  const Builder::Scope scope = net.scope(name);
  const Value shares = segment_softmax(linear(net, "score", x, 1, false), graphs);
  return segment_sum(x * shares, graphs);
}

Sequences sequences_in(Network& net, std::string_view name) {
  return {net.input(fmt::format("{}.nodes", name)), net.input(fmt::format("{}.share", name)),
          net.input(fmt::format("{}.last", name))};
}

Value recurrent_pooling(Network& net, std::string_view name, Value x, const Sequences& graphs,
                        int64_t width) {
  if (!net.b.ok()) return x;
  const Value states = lstm(net, name, take(x, graphs.nodes), width);
  return take(reshape(states, {-1, width}), graphs.last);
}

Value encoder_pooling(Network& net, std::string_view name, Value x, const Sequences& graphs,
                      int64_t heads) {
  if (!net.b.ok()) return x;
  const Value share = transpose(graphs.share, {1, 0});  // [graphs, places]
  const Value seen =
      transformer_layer(net, name, take(x, transpose(graphs.nodes, {1, 0})), {.heads = heads},
                        compare("gt", unsqueeze(unsqueeze(share, 1), 1), 0));
  return reduce_sum(seen * unsqueeze(share, 2), {1});
}

}  // namespace hone
