#include "shard/batch_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/batch_inputs.h"
#include "tests/base/says_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::judge_parts;
using tested::refuses;
using testing::ElementsAre;

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

// Right on that many devices, or refused: false.
bool holds(const Graph& graph, std::span<const Tensor> inputs, const std::vector<int>& dims,
           int64_t rows, int64_t devices) {
  bool is_refused = false;
  EXPECT_EQ(judge_parts(graph, inputs, dims, rows, devices, is_refused), "");
  return !is_refused;
}

// ---- Graphs as text -----------------------------------------------------------------------------

std::string part_of(std::string_view text, BatchShare share, std::vector<int> inputs = {0}) {
  const Graph graph = parsed(text);
  inputs.resize(graph.inputs().size(), kWhole);
  const Result<BatchPart> part = batch_part(graph, std::move(inputs), share);
  return part.ok() ? print(part->graph) : part.error().to_string();
}

TEST(BatchPart, LeavesWeightsWholeAndMakesBroadcastsSmaller) {
  EXPECT_EQ(part_of(R"(
graph @layer(%x: f32[8, 3], %w: f32[3, 4], %b: f32[4]) -> f32[8, 4] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[8, 4]
  %c = broadcast %b {dims = [8, 4], map = [1]} : f32[8, 4]
  %y = add %h, %c : f32[8, 4]
  return %y
}
)",
                    {8, 2, 3, 2}),
            R"(graph @layer(%x: f32[3, 3], %w: f32[3, 4], %b: f32[4]) -> f32[3, 4] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} : f32[3, 4]
  %4 = broadcast %b {dims = [3, 4], map = [1]} : f32[3, 4]
  %y = add %h, %4 : f32[3, 4]
  return %y
}
)");
}

TEST(BatchPart, FollowsRowsThroughReshapesAndTransposes) {
  const Graph graph = parsed(R"(
graph @heads(%x: f32[4, 6, 8]) -> (f32[24, 8], f32[2, 4, 6, 4], f32[8, 6, 4]) {
  %merged = reshape %x {dims = [24, 8]} : f32[24, 8]
  %heads = reshape %merged {dims = [4, 6, 2, 4]} : f32[4, 6, 2, 4]
  %first = transpose %heads {permutation = [2, 0, 1, 3]} : f32[2, 4, 6, 4]
  %outer = transpose %heads {permutation = [0, 2, 1, 3]} : f32[4, 2, 6, 4]
  %flat = reshape %outer {dims = [8, 6, 4]} : f32[8, 6, 4]
  return %merged, %first, %flat
}
)");
  const auto part = batch_part(graph, {0}, {4, 1, 2, 2});
  ASSERT_TRUE(part.ok()) << part.error().to_string();
  EXPECT_THAT(part->outputs, ElementsAre(0, 1, 0));
  EXPECT_EQ(part->graph.type(part->graph.outputs()[2]), Type::get(DType::f32, {4, 6, 4}));
  EXPECT_FALSE(part->depends_on_first);
  EXPECT_TRUE(holds(graph, *random_inputs(graph, 1), {0}, 4, 3));
}

TEST(BatchPart, CutsConstantsAndPlacesWhereARowMeetsThem) {
  const Graph graph = parsed(R"(
graph @places(%x: f32[3, 2]) -> f32[3, 2] {
  %c = constant [1, 2, 3, 4, 5, 6] : f32[3, 2]
  %row = iota {dtype = f32, dims = [3, 2], axis = 0} : f32[3, 2]
  %a = mul %x, %c : f32[3, 2]
  %y = add %a, %row : f32[3, 2]
  return %y
}
)");
  EXPECT_TRUE(batch_part(graph, {0}, {3, 1, 2, 2})->depends_on_first);
  EXPECT_TRUE(holds(graph, *random_inputs(graph, 1), {0}, 3, 2));
}

TEST(BatchPart, GivesRowsToAnInputThatMeetsThem) {
  const Graph graph = parsed(R"(
graph @masked(%x: f32[4, 5], %state: f32[1, 4, 5]) -> f32[4, 5] {
  %s = reshape %state {dims = [4, 5]} : f32[4, 5]
  %y = add %x, %s : f32[4, 5]
  return %y
}
)");
  EXPECT_THAT(batch_part(graph, {0, kWhole}, {4, 0, 2, 2})->inputs, ElementsAre(0, 1));
}

TEST(BatchPart, KeepsACompositeWhoseLocalFormMeansTheSame) {
  EXPECT_EQ(part_of(R"(
graph @softmax(%x: f32[4, 6]) -> f32[4, 6] {
  %y = softmax %x {axis = 1} : f32[4, 6]
  return %y
}
)",
                    {4, 0, 2, 2}),
            R"(graph @softmax(%x: f32[2, 6]) -> f32[2, 6] {
  %y = softmax %x {axis = 1} : f32[2, 6]
  return %y
}
)");
}

TEST(BatchPart, FollowsTheStateOfALoop) {
  Builder b("loop");
  const Value x = b.parameter("x", DType::f32, {5, 4, 3});
  const Value zero = b.full(DType::f32, {4, 3}, 0);
  const std::vector<Value> all =
      scan({{zero}}, {{x}}, [](Builder&, std::span<const Value> in) -> std::vector<Value> {
        const Value next = tanh(in[0] + in[1]);
        return {next, next};
      });
  const Graph graph = *b.finish({all[0], all[1]});
  EXPECT_THAT(batch_part(graph, {1}, {4, 0, 1, 4})->outputs, ElementsAre(0, 1));
  EXPECT_TRUE(holds(graph, *random_inputs(graph, 2), {1}, 4, 3));
}

// ---- What mixes rows ----------------------------------------------------------------------------

struct Mixing {
  std::string_view node;
  std::string_view type;
  std::string_view says;
};

TEST(BatchPart, RefusesAnOpThatMixesRowsByItsName) {
  const Mixing cases[] = {
      {"reduce %x {kind = max, axes = [0]}", "f32[3]", "reduce ... combines ... dim 0"},
      {"reduce %x {kind = product, axes = [0]}", "f32[3]", "reduce ... combines ... dim 0"},
      {"softmax %x {axis = 0}", "f32[4, 3]", "softmax ... reduce ... dim 0"},
      {"sort %x {axis = 0}", "f32[4, 3]", "sort ... data says"},
      {"reverse %x {axes = [0]}", "f32[4, 3]", "reverse"},
      {"cumulative %x {kind = sum, axis = 0}", "f32[4, 3]", "cumulative ... combines"},
      {"concat %x, %x {axis = 0}", "f32[8, 3]", "concat"},
      {"slice %x {start = [0, 0], limit = [2, 3]}", "f32[2, 3]", "slice"},
      {"slice %x {start = [0, 0], limit = [4, 3], stride = [2, 1]}", "f32[2, 3]", "slice"},
      {"reshape %x {dims = [3, 4]}", "f32[3, 4]", "reshape"},
      {"dot %x, %x {lhs_contract = [1], rhs_contract = [1]}", "f32[4, 4]", "dot"},
      {"arg_reduce %x {kind = max, axis = 0}", "i64[3]", "arg_reduce"},
      {"pad %x, %zero {low = [1, 0], high = [0, 0]}", "f32[5, 3]", "pad"},
  };
  for (const Mixing& one : cases) {
    const Graph graph = parsed(fmt::format(
        "graph @g(%x: f32[4, 3]) -> {} {{\n  %zero = constant 0 : f32[]\n  %y = {} : {}\n"
        "  return %y\n}}\n",
        one.type, one.node, one.type));
    EXPECT_THAT(
        batch_part(graph, {0}, {4, 0, 2, 2}),
        refuses(ErrorCode::unsupported, fmt::format("y ... op ... {} ... device", one.says)))
        << one.node;
  }
}

TEST(BatchPart, RefusesAGraphThatAsksForItsDevice) {
  const std::string_view texts[] = {
      "graph @g(%x: f32[4], %w: f32[]) -> f32[4] { %y = device_index %f = cast %y {dtype = f32} "
      "%b = broadcast %f {dims = [4], map = []} %z = add %x, %b return %z }",
      "graph @g(%x: f32[4], %w: f32[]) -> f32[4] { %y = permute %w {pairs = [0, 0]} "
      "%b = broadcast %y {dims = [4], map = []} %z = add %x, %b return %z }"};
  for (std::string_view text : texts)
    EXPECT_THAT(batch_part(parsed(text), {0, -1}, {4, 0, 2, 2}),
                refuses(ErrorCode::unsupported, "y ... talks to other devices"))
        << text;
}

TEST(BatchPart, RefusesScatterIntoRowsThatDataNames) {
  const Graph graph = parsed(R"(
graph @g(%x: f32[4, 3], %i: i64[2, 1], %u: f32[2, 3]) {
  %y = scatter %x, %i, %u {combine = add, window_dims = [1], inserted_dims = [0],
                           index_map = [0], index_vector_dim = 1}
  return %y
}
)");
  EXPECT_THAT(batch_part(graph, {0, kWhole, kWhole}, {4, 0, 2, 2}),
              refuses(ErrorCode::unsupported, "y ... scatter"));
}

TEST(BatchPart, RefusesALoopOverTheRows) {
  Builder b("loop");
  const Value x = b.parameter("x", DType::f32, {4, 3});
  const std::vector<Value> all =
      scan({{b.full(DType::f32, {3}, 0)}}, {{x}},
           [](Builder&, std::span<const Value> in) { return std::vector<Value>{in[0] + in[1]}; });
  EXPECT_THAT(batch_part(*b.finish({all[0]}), {0}, {4, 0, 2, 2}),
              refuses(ErrorCode::unsupported, "scan ... step"));
}

// ---- The models of the zoo ----------------------------------------------------------------------

TEST(BatchPart, DividesModelsOfTheZooButForThoseThatMixRows) {
  // A loop that ends when all images are done, and a graph whose nodes are no batch. The first dim
  // of the recurrent ones is time.
  const std::map<std::string_view, std::string_view> refused = {{"yolo_v3", "while ... reduce"},
                                                                {"graph_network", "gather"},
                                                                {"lstm", "lstm ... scan"},
                                                                {"gnmt", "lstm ... scan"},
                                                                {"nas_rnn", "scan"}};
  for (const ZooEntry& entry : zoo_entries()) {
    const Graph graph = *build_zoo_model(entry.name, {.size = ZooSize::tiny, .batch = 4});
    const BatchInputs batch = *batch_inputs(graph, graph.input_types());
    const auto part = batch_part(graph, batch.dims, {batch.rows, 0, 1, 2});
    if (const auto known = refused.find(entry.name); known != refused.end())
      EXPECT_THAT(part, refuses(ErrorCode::unsupported, std::string(known->second)));
    else
      EXPECT_TRUE(part.ok()) << entry.name << ": " << part.error().to_string();
  }
}

// ---- Random graphs ------------------------------------------------------------------------------

// A graph of ops that keep rows apart, but for one in some: it has rows along dim 0 of its input.
class RandomBatch {
 public:
  explicit RandomBatch(uint64_t seed) : rng_(seed), rows_(rng_.between(2, 6)) {}

  Graph graph() {
    const Value x = b_.parameter("x", DType::f32, {rows_, 4, 6});
    w_ = b_.constant(random_weights(), "w");
    Value y = x;
    const int64_t steps = rng_.between(2, 6);
    for (int64_t i = 0; i < steps; ++i) {
      y = step(y, x);
      if (rng_.between(0, 14) == 0) y = mixed(y);
      if (rng_.between(0, 5) == 0) y = summed(y);
    }
    Result<Graph> graph = b_.finish({y, reduce_sum(y, {2}), reduce_sum(y, {0, 2})});
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    return *graph;
  }
  int64_t rows() const { return rows_; }
  bool is_mixed() const { return is_mixed_; }  // in another way than by sums

 private:
  Tensor random_weights() {
    std::vector<double> values;
    for (int i = 0; i < 36; ++i) values.push_back(static_cast<double>(rng_.between(-8, 8)) / 8);
    return Tensor::from_reals(Type::get(DType::f32, {6, 6}), values);
  }

  Value step(Value y, Value x) {
    switch (rng_.between(0, 13)) {
      case 0: return relu(y);
      case 1: return matmul(y, w_);
      case 2: return softmax(y, static_cast<int>(rng_.between(1, 2)));
      case 3: return reshape(matmul(reshape(y, {rows_ * 4, 6}), w_), {rows_, 4, 6});
      case 4: return transpose(tanh(transpose(y, {1, 0, 2})), {1, 0, 2});
      case 5: return y + iota(b_, DType::f32, {rows_, 4, 6}, static_cast<int>(rng_.between(0, 2)));
      case 6: return y * x;
      case 7: return concat({slice(y, 1, 2, 4), slice(y, 1, 0, 2)}, 1);
      case 8: return cumulative("sum", y, 2);
      case 9: return reverse(y, {1});
      case 10: return matmul(softmax(matmul(y, transpose(x, {0, 2, 1})), 2), y);
      case 11: return sort({{y}}, 1, false)[0];
      case 12: {
        const Value flat =
            reshape(transpose(reshape(y, {rows_, 4, 2, 3}), {0, 2, 1, 3}), {rows_ * 2, 4, 3});
        const Value products = matmul(flat, transpose(flat, {0, 2, 1}));
        return matmul(slice(reshape(products, {rows_, 8, 4}), 1, 0, 4), y) * 0.1;
      }
      default: {
        const Value zero = b_.full(DType::f32, {rows_, 6}, 0);
        const Value steps = transpose(y, {1, 0, 2});
        const auto body = [](Builder&, std::span<const Value> in) -> std::vector<Value> {
          const Value next = tanh(in[0] * 0.5 + in[1]);
          return {next, next};
        };
        return transpose(scan({{zero}}, {{steps}}, body)[1], {1, 0, 2});
      }
    }
  }

  // Sums over the rows, which each row sees.
  Value summed(Value y) {
    const auto rows = static_cast<double>(rows_);
    switch (rng_.between(0, 7)) {
      case 0: return y + reduce_sum(y, {0}, true);
      case 1: return y - reduce_mean(y, {0, 1}, true);
      case 2: {  // as a norm of a batch
        const Value centered = y - reduce_mean(y, {0, 1}, true);
        return centered / sqrt(reduce_mean(centered * centered, {0, 1}, true) + 0.1);
      }
      case 3: {  // products of all rows: their gradient goes to a weight
        const Value flat = reshape(y, {rows_ * 4, 6});
        const Value product = dot_general(flat, flat, {}, {}, {0}, {0}) / (rows * 4);
        return tanh(matmul(y, product));
      }
      case 4: {  // two sums, one of them transposed, meet
        const Value one = reduce_sum(y, {0});
        const Value two = transpose(reduce_sum(transpose(y, {0, 2, 1}), {0}), {1, 0});
        return y + (one + two) / rows;
      }
      case 5: {  // counts
        const Value is_positive = cast(compare("gt", y, b_.scalar(DType::f32, 0)), DType::i64);
        return y + cast(reduce_sum(is_positive, {0}), DType::f32);
      }
      case 6: {  // a table whose rows data names
        const Value names = cast(minimum(maximum(reduce_sum(y, {1, 2}), 0), 3), DType::i64);
        const Value one_hot =
            cast(compare("eq", unsqueeze(names, 1), iota(b_, DType::i64, {1, 4}, 1)), DType::f32);
        return y + unsqueeze(dot_general(one_hot, reduce_sum(y, {1}), {}, {}, {0}, {0}), 0);
      }
      default: {
        const Value half = cast(reduce_sum(cast(tanh(y), DType::f16), {0}), DType::f32);
        return y + half;
      }
    }
  }

  Value mixed(Value y) {
    is_mixed_ = true;
    switch (rng_.between(0, 6)) {
      case 0: return y + reduce("max", y, {0}, true);
      case 1: return softmax(y, 0);
      case 2: return reverse(y, {0});
      case 3: return cumulative("sum", y, 0);
      case 4: return sort({{y}}, 0, false)[0];
      case 5: return concat({slice(y, 0, 1, rows_), slice(y, 0, 0, 1)}, 0);
      default:  // of 4 rows it is a transpose, which mixes nothing
        return rows_ == 4 ? reverse(y, {0}) : reshape(transpose(y, {1, 0, 2}), {rows_, 4, 6});
    }
  }

  Rng rng_;
  const int64_t rows_;
  bool is_mixed_ = false;
  Builder b_ = Builder("batch");
  Value w_;
};

// True if each element of each output was computed from its own row of the first input. Rows lie
// along dim 0. The reference says which elements it has read.
bool keeps_rows_apart(const Graph& graph, std::span<const Tensor> inputs, int64_t rows) {
  const auto traced = *trace_dependencies(graph, inputs);
  const int64_t each = inputs[0].elements() / rows;
  for (const ElementDependencies& output : traced) {
    const auto size = static_cast<int64_t>(output.size()) / rows;
    for (size_t e = 0; e < output.size(); ++e)
      for (const InputElement& from : output[e])
        if (from.element / each != static_cast<int64_t>(e) / size) return false;
  }
  return true;
}

TEST(BatchPart, EqualsTheWholeGraphOrIsRefusedRightly) {
  int divided = 0, refused = 0;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    RandomBatch random(seed);
    const Graph graph = random.graph();
    const std::vector<Tensor> inputs = *random_inputs(graph, seed);
    const auto devices = static_cast<int64_t>(seed % 8 + 1);
    const bool is_whole = holds(graph, inputs, {0}, random.rows(), devices);
    // A mixed value may have no effect: no element depends on it.
    if (!random.is_mixed())
      EXPECT_TRUE(is_whole) << "seed " << seed << "\n" << print(graph);
    else if (!keeps_rows_apart(graph, inputs, random.rows()))
      EXPECT_FALSE(is_whole) << "seed " << seed << "\n" << print(graph);
    ++(is_whole ? divided : refused);
  }
  EXPECT_GT(divided, 100);
  EXPECT_GT(refused, 20);
}

// A state of a loop may be of a type that no collective adds up.
TEST(BatchPart, KeepsStatesOfTypesThatAreForStorage) {
  for (const std::string_view type : {"f8e5m2fnuz", "i4", "bf16"}) {
    const Graph graph = parsed(fmt::format(
        "graph @small(%x: f32[4]) -> (f32[4], {0}[2]) {{\n"
        "  %y = tanh %x\n  %a = constant [2, 1] : {0}[2]\n  %z = constant 0 : i32[]\n"
        "  %b, %n = while %a, %z\n"
        "    condition(%s: {0}[2], %i: i32[]) {{\n"
        "      %e = constant 3 : i32[] %go = compare %i, %e {{direction = lt}} return %go }}\n"
        "    body(%s: {0}[2], %i: i32[]) {{ %c = constant [1, -3] : {0}[2]\n"
        "      %o = constant 1 : i32[] %j = add %i, %o return %c, %j }}\n"
        "  return %y, %b\n}}\n",
        type));
    EXPECT_TRUE(holds(graph, *random_inputs(graph, 1), {0}, 4, 2)) << type;
  }
}

// All ops, along any dim of any input.
void run_random_graphs(uint64_t begin, uint64_t end, std::set<Opcode>& seen, int& held) {
  for (uint64_t seed = begin; seed < end; ++seed) {
    const Graph graph = random_graph({.seed = seed, .min_steps = 2, .max_steps = 8});
    const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
    for (size_t i = 0; i < inputs.size(); ++i)
      for (int dim = 0; dim < inputs[i].type().rank(); ++dim) {
        const int64_t size = inputs[i].type().dim(dim).value();
        const int64_t rows = size % 3 == 0 && seed % 2 == 0 ? size / 3 : size;
        if (rows < 2) continue;
        std::vector<int> dims(inputs.size(), kWhole);
        dims[i] = dim;
        if (!holds(graph, inputs, dims, rows, static_cast<int64_t>(seed % 3 + 2))) continue;
        ++held;
        for (NodeId n : graph.nodes()) seen.insert(graph.opcode(n));
      }
  }
}

TEST(BatchPart, EqualsWholeRandomGraphs) {
  std::set<Opcode> seen;
  int held = 0;
  run_random_graphs(0, 400, seen, held);
  EXPECT_GT(held, 100);
  EXPECT_GT(seen.size(), 40U);
}

TEST(BatchPart, DISABLED_SweepEqualsWholeRandomGraphs) {
  std::set<Opcode> seen;
  int held = 0;
  run_random_graphs(400, 20'000, seen, held);
  EXPECT_GT(held, 5'000);
}

}  // namespace
}  // namespace hone::HONE_FILE
