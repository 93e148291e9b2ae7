#include "ir/contents.h"

#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "tests/ir/op_testing.h"
#include "tests/ir/text_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

ValueId named(const Graph& graph, std::string_view name) {
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    if (graph.name({v}) == name) return {v};
  ADD_FAILURE() << "no value " << name;
  return graph.inputs()[1];
}

std::string text_of(const std::optional<Dims>& dims) {
  return dims ? to_string(AttrValue(*dims)) : "unknown";
}

// The facts that are known of %y in a graph with these lines, with %n = N, %m = M, %s = [N, M, 3].
std::string of_shape(std::string_view lines) {
  Graph graph =
      parse_ok(fmt::format("graph @g(%x: f32[N, M], %data: i64[3]) where N in 1..64, M in 0..9 {{\n"
                           "  %one = constant 1 : i64[]\n"
                           "  %ns = broadcast %one {{dims = [N], map = []}}\n"
                           "  %n = reduce %ns {{kind = sum, axes = [0]}}\n"
                           "  %ms = broadcast %one {{dims = [M], map = []}}\n"
                           "  %m = reduce %ms {{kind = sum, axes = [0]}}\n"
                           "  %n1 = reshape %n {{dims = [1]}}\n"
                           "  %m1 = reshape %m {{dims = [1]}}\n"
                           "  %c1 = constant [3] : i64[1]\n"
                           "  %s = concat %n1, %m1, %c1 {{axis = 0}}\n"
                           "{}\n  return %y }}",
                           lines));
  return text_of(Contents(graph).of(named(graph, "y")));
}

TEST(Contents, FollowsShapesThroughMovingOps) {
  EXPECT_EQ(of_shape("%y = reverse %s {axes = [0]}"), "[3, M, N]");
  EXPECT_EQ(of_shape("%y = slice %s {start = [0], limit = [3], stride = [2]}"), "[N, 3]");
  EXPECT_EQ(of_shape("%y = broadcast %s {dims = [2, 3], map = [1]}"), "[N, M, 3, N, M, 3]");
  EXPECT_EQ(of_shape("%b = broadcast %s {dims = [2, 3], map = [1]}\n"
                     "%y = transpose %b {permutation = [1, 0]}"),
            "[N, N, M, M, 3, 3]");
  EXPECT_EQ(of_shape("%y = pad %s, %n {low = [1], high = [0], interior = [1]}"),
            "[N, N, N, M, N, 3]");
  EXPECT_EQ(of_shape("%y = dynamic_slice %s, %one {sizes = [2]}"), "[M, 3]");
  EXPECT_EQ(of_shape("%y = dynamic_update %s, %n1, %one"), "[N, N, 3]");
}

TEST(Contents, FollowsGathersAndScattersWithKnownIndices) {
  EXPECT_EQ(of_shape("%i = constant [2, 0] : i64[2, 1]\n"
                     "%y = gather %s, %i {offset_dims = [], collapsed_dims = [0], index_map = [0], "
                     "index_vector_dim = 1, sizes = [1]}"),
            "[3, N]");
  EXPECT_EQ(of_shape("%i = constant [2] : i64[1, 1]\n"
                     "%y = scatter %s, %i, %n1 {window_dims = [], inserted_dims = [0], "
                     "index_map = [0], index_vector_dim = 1}"),
            "[N, M, N]");
  EXPECT_EQ(of_shape("%i = reshape %m {dims = [1, 1]}\n"
                     "%y = gather %s, %i {offset_dims = [], collapsed_dims = [0], index_map = [0], "
                     "index_vector_dim = 1, sizes = [1]}"),
            "unknown");
}

TEST(Contents, ElementsThatAreNotNeededMayBeUnknown) {
  EXPECT_EQ(of_shape("%c = concat %data, %s {axis = 0}\n"
                     "%y = slice %c {start = [3], limit = [5]}"),
            "[N, M]");
  EXPECT_EQ(of_shape("%c = concat %data, %s {axis = 0}\n"
                     "%y = slice %c {start = [2], limit = [5]}"),
            "unknown");
  EXPECT_EQ(of_shape("%p = constant [true, true, false] : bool[3]\n"
                     "%c = select %p, %s, %data\n"
                     "%y = slice %c {start = [0], limit = [2]}"),
            "[N, M]");
}

TEST(Contents, DoesArithmetic) {
  EXPECT_EQ(of_shape("%y = add %s, %s"), "[2*N, 2*M, 6]");
  EXPECT_EQ(of_shape("%y = sub %s, 1"), "[N - 1, M - 1, 2]");
  EXPECT_EQ(of_shape("%r = reverse %s {axes = [0]} %y = mul %s, %r"), "[3*N, M*M, 3*N]");
  EXPECT_EQ(of_shape("%y = neg %s"), "[-N, -M, -3]");
  EXPECT_EQ(of_shape("%a = neg %s %y = abs %a"), "[N, M, 3]");
  EXPECT_EQ(of_shape("%t = sub %n, 70 %y = sign %t"), "[-1]");
  EXPECT_EQ(of_shape("%y = sign %m"), "unknown");
  EXPECT_EQ(of_shape("%y = max %n, 1"), "[N]");
  EXPECT_EQ(of_shape("%y = min %m, 9"), "[M]");
  EXPECT_EQ(of_shape("%y = max %m, 1"), "unknown");
}

TEST(Contents, DividesTowardZero) {
  EXPECT_EQ(of_shape("%y = div %n, 2"), "[N/2]");
  EXPECT_EQ(of_shape("%t = neg %n %y = div %t, 2"), "[-(N/2)]");
  EXPECT_EQ(of_shape("%y = div %n, -2"), "[-(N/2)]");
  EXPECT_EQ(of_shape("%t = sub %n, 2 %y = div %t, 2"), "unknown");  // -1 / 2 is 0
  EXPECT_EQ(of_shape("%t = sub %n, 2 %u = mul %t, 4 %y = div %u, 2"), "[2*N - 4]");
  EXPECT_EQ(of_shape("%t = mul %n, %m %y = div %t, %n"), "[M]");
  EXPECT_EQ(of_shape("%t = mul %n, %m %y = div %t, %m"), "unknown");  // M may be 0
  EXPECT_EQ(of_shape("%y = rem %n, 2"), "[N - 2*(N/2)]");
  EXPECT_EQ(of_shape("%y = rem %n, 100"), "[N]");
  EXPECT_EQ(of_shape("%z = constant 0 : i64[] %y = div %one, %z"), "[-1]");
}

TEST(Contents, DecidesWhatIsProvable) {
  EXPECT_EQ(of_shape("%p = compare %n, 1 {direction = ge} %y = select %p, %m, %n"), "[M]");
  EXPECT_EQ(of_shape("%p = compare %n, 65 {direction = eq} %y = select %p, %m, %n"), "[N]");
  EXPECT_EQ(of_shape("%p = compare %m, 1 {direction = ge} %y = select %p, %m, %n"), "unknown");
  EXPECT_EQ(of_shape("%p = compare %m, 1 {direction = ge} %y = select %p, %n, %n"), "[N]");
  EXPECT_EQ(of_shape("%p = compare %m, 1 {direction = ge} %q = compare %n, 0 {direction = le}\n"
                     "%y = and %p, %q"),
            "[0]");
  EXPECT_EQ(of_shape("%q = compare %n, 0 {direction = le} %y = not %q"), "[1]");
  EXPECT_EQ(of_shape("%y = cast %n {dtype = bool}"), "[1]");
}

TEST(Contents, ReducesAndAccumulates) {
  EXPECT_EQ(of_shape("%y = reduce %s {kind = product, axes = [0]}"), "[3*M*N]");
  EXPECT_EQ(of_shape("%y = reduce %s {kind = sum, axes = [0]}"), "[M + N + 3]");
  EXPECT_EQ(of_shape("%y = cumulative %s {kind = sum, axis = 0}"), "[N, M + N, M + N + 3]");
  EXPECT_EQ(of_shape("%y = cumulative %s {kind = sum, axis = 0, exclusive = true, reverse = true}"),
            "[M + 3, 3, 0]");
  EXPECT_EQ(of_shape("%b = broadcast %s {dims = [3, 2], map = [0]}\n"
                     "%y = reduce %b {kind = sum, axes = [1]}"),
            "[2*N, 2*M, 6]");
  EXPECT_EQ(of_shape("%y = cumsum %s {axis = -1}"), "[N, M + N, M + N + 3]");
}

TEST(Contents, CountsOnesAlongSymbolicAxes) {
  EXPECT_EQ(of_shape("%b = broadcast %one {dims = [N, M, 300, 300], map = []}\n"
                     "%y = reduce %b {kind = sum, axes = [0, 1, 2, 3]}"),
            "[90000*M*N]");
  EXPECT_EQ(of_shape("%b = broadcast %m {dims = [N, 2], map = []}\n"
                     "%y = reduce %b {kind = sum, axes = [0]}"),
            "[M*N, M*N]");
  EXPECT_EQ(of_shape("%b = broadcast %m {dims = [N], map = []}\n"
                     "%y = reduce %b {kind = max, axes = [0]}"),
            "[M]");
  EXPECT_EQ(of_shape("%b = broadcast %n {dims = [M], map = []}\n"  // M may be 0
                     "%y = reduce %b {kind = max, axes = [0]}"),
            "unknown");
}

TEST(Contents, NarrowTypesMustHoldTheValue) {
  EXPECT_EQ(of_shape("%t = cast %n {dtype = i8} %y = add %t, 63"), "[N + 63]");
  EXPECT_EQ(of_shape("%t = cast %n {dtype = i8} %y = add %t, 64"), "unknown");
  EXPECT_EQ(of_shape("%t = cast %n {dtype = u8} %y = neg %t"), "unknown");
  EXPECT_EQ(of_shape("%t = mul %n, 100 %y = cast %t {dtype = i8}"), "unknown");
  EXPECT_EQ(of_shape("%t = mul %n, 1152921504606846976 %y = mul %t, 4"), "unknown");
  EXPECT_EQ(of_shape("%y = constant 9223372036854775807 : i64[]"), "unknown");
  EXPECT_EQ(of_shape("%c = constant [5, 9223372036854775807] : i64[2]\n"
                     "%y = slice %c {start = [0], limit = [1]}"),
            "[5]");
}

TEST(Contents, GoesThroughRealsThatAreExact) {
  EXPECT_EQ(of_shape("%r = cast %n {dtype = f32} %t = mul %r, 2.0 %f = floor %t\n"
                     "%y = cast %f {dtype = i64}"),
            "[2*N]");
  EXPECT_EQ(of_shape("%r = cast %n {dtype = f32} %t = mul %r, 0.5 %f = floor %t\n"
                     "%y = cast %f {dtype = i64}"),
            "unknown");
  EXPECT_EQ(of_shape("%t = mul %n, 1000000 %r = cast %t {dtype = f32}\n"  // beyond 2^24
                     "%y = cast %r {dtype = i64}"),
            "unknown");
  // 7 * 1.5 = 10.5
  EXPECT_EQ(of_shape("%c = constant 7 : i64[] %r = cast %c {dtype = f32} %t = mul %r, 1.5\n"
                     "%f = ceil %t %y = cast %f {dtype = i64}"),
            "[11]");
}

TEST(Contents, ComputesNumbersByTheReference) {
  EXPECT_EQ(of_shape("%c = constant [3, 1, 2] : i64[3] %y = sort %c {axis = 0}"), "[1, 2, 3]");
  EXPECT_EQ(of_shape("%c = constant [3, 1, 2] : i64[3]\n"
                     "%y = arg_reduce %c {kind = min, axis = 0}"),
            "[1]");
  EXPECT_EQ(of_shape("%y = iota {dtype = i64, dims = [3], axis = 0}"), "[0, 1, 2]");
  EXPECT_EQ(of_shape("%y = add %data, %data"), "unknown");
}

TEST(Contents, RemembersAcrossGrowthAndTakesAssumptions) {
  Builder b;
  Symbol n = Symbol::get("N", 1, 9);
  Value p = b.parameter("p", DType::i64, {2});
  Value doubled = p + p;
  Contents contents(b.graph());
  EXPECT_EQ(text_of(contents.of(doubled.id())), "unknown");
  contents.assume(p.id(), {Dim(n), 4});
  EXPECT_EQ(text_of(contents.of(doubled.id())), "[2*N, 8]");
  Value more = doubled + p;
  EXPECT_EQ(text_of(contents.of(more.id())), "[3*N, 12]");
  EXPECT_FALSE(contents.constant(more.id()));
  contents.assume(p.id(), {1, 2});
  EXPECT_EQ(text_of(contents.of(more.id())), "[3, 6]");
  EXPECT_FALSE(contents.constant(more.id()));  // an assumption is not a constant
}

TEST(Contents, GivesConstants) {
  Builder b;
  Value large = b.constant(Tensor::zeros(Type::get(DType::f32, {1 << 20})));
  Value sum = reduce_sum(large, {0});
  Value half = b.full(DType::f32, {3, 5000}, 0.5);
  Value shifted = reduce_sum(half + 1.0, {1});
  Value data = b.parameter("x", DType::f32, {});
  Contents contents(b.graph());
  EXPECT_TRUE(contents.constant(large.id()));
  EXPECT_FALSE(contents.constant(sum.id()));  // of more than 2^16 elements
  std::optional<Tensor> full = contents.constant(half.id());
  ASSERT_TRUE(full);
  EXPECT_EQ(full->type(), half.type());
  EXPECT_EQ(full->real_at(14999), 0.5);
  ASSERT_TRUE(contents.constant(shifted.id()));
  EXPECT_EQ(contents.constant(shifted.id())->real_at(2), 7500);
  EXPECT_FALSE(contents.constant((data + 1.0).id()));
}

TEST(Contents, LongChainsNeedNoStack) {
  Builder b;
  Value v = size_value(b, Symbol::get("N", 1, 9));
  for (int i = 0; i < 100'000; ++i) v = -v;
  EXPECT_EQ(text_of(Contents(b.graph()).of(v.id())), "[N]");
}

TEST(Contents, ExpressionsStaySmall) {
  Builder b;
  Value v = size_value(b, Symbol::get("N", 0, 1));
  Value w = v;
  for (int i = 0; i < 60; ++i) v = v * v;  // N^(2^60)
  for (int64_t i = 0; i < 500; ++i) w = (w * 3.0 + 1.0) / (2.0 + static_cast<double>(i % 2));
  Contents contents(b.graph());
  EXPECT_EQ(text_of(contents.of(v.id())), "unknown");
  EXPECT_EQ(text_of(contents.of(w.id())), "unknown");
}

// ---- size_value ---------------------------------------------------------------------------------

TEST(SizeValue, IsTheDim) {
  const Dim n = Symbol::get("N", 1, 64), k = Symbol::get("K", 8, 64, 8);
  const Dim z = Symbol::get("Z", -5, 5);
  for (Dim dim : {Dim(7), n, n * 224 * 224, 2 * n + k - 3, floordiv(n + 3, 4), n * k,
                  floordiv(k, 16) * n, floordiv(z, 3), z * z, Dim(3) - n, floordiv(k, 8)}) {
    Builder b;
    b.parameter("x", DType::f32, {n, k, z + 5});
    Value v = size_value(b, dim);
    Result<Graph> graph = b.finish({v});
    ASSERT_TRUE(graph.ok()) << dim.to_string() << ": " << graph.error().to_string();
    if (dim != floordiv(z, 3)) {  // it is done with a shift that the elements do not undo
      EXPECT_EQ(text_of(Contents(*graph).of(v.id())), fmt::format("[{}]", dim.to_string()));
    }
    for (auto [ni, ki, zi] : {std::array{1, 8, -5}, {5, 24, 4}, {64, 64, -1}}) {
      Tensor x = Tensor::zeros(Type::get(DType::f32, {ni, ki, zi + 5}));
      Result<std::vector<Tensor>> result = evaluate(*graph, {&x, 1});
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      Bindings bindings = {{"N", ni}, {"K", ki}, {"Z", zi}};
      EXPECT_EQ(result->at(0).integer_at(0), dim.bind(bindings).value()) << dim.to_string();
    }
  }
}

// ---- Properties ---------------------------------------------------------------------------------

// Everything that is known of a graph's values holds when it runs with these bindings.
void expect_true(const Graph& original, const Bindings& bindings, std::span<const Tensor> inputs,
                 int64_t& checked) {
  Graph graph = original;
  std::vector<ValueId> values;
  for (NodeId n : graph.nodes()) {
    if (has_effect(graph, n)) return;
    for (ValueId v : graph.results(n)) values.push_back(v);
  }
  graph.set_outputs(values);
  Result<std::vector<Tensor>> results = evaluate(graph, inputs, {.numerics = Numerics::rounded});
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  Contents contents(graph);
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& actual = (*results)[i];
    std::string where =
        fmt::format("{} of {}", graph.describe(graph.producer(values[i])), graph.name());
    if (std::optional<Tensor> constant = contents.constant(values[i])) {
      EXPECT_EQ(tested::difference(*constant, actual), "") << where;
    }
    std::optional<Dims> dims = contents.of(values[i]);
    if (!dims) continue;
    ASSERT_EQ(static_cast<int64_t>(dims->size()), actual.elements()) << where;
    for (size_t e = 0; e < dims->size(); ++e) {
      EXPECT_EQ((*dims)[e].bind(bindings).value(), actual.integer_at(static_cast<int64_t>(e)))
          << where << ", element " << e << " is " << (*dims)[e].to_string();
    }
    ++checked;
  }
}

const Symbol kN = Symbol::get("N", 1, 12), kM = Symbol::get("M", 0, 9);

// Ops with random operands of fitting types, over sizes, numbers and data.
Graph random_shape_graph(Rng& rng) {
  Builder b("shapes");
  b.parameter("x", DType::f32, {kN, kM});
  std::vector<Value> pool = {
      size_value(b, kN), size_value(b, kM), size_value(b, 2 * Dim(kN) + kM),
      size_value(b, -3), size_value(b, 0),  b.parameter("data", DType::i64, {})};
  auto pick = [&](auto fits) {
    for (int i = 0; i < 30; ++i) {
      Value v = pool[rng.below(pool.size())];
      if (fits(v)) return v;
    }
    return pool[0];
  };
  constexpr std::array kTypes = {DType::i64, DType::i32, DType::i8,  DType::u8,
                                 DType::u64, DType::f32, DType::f16, DType::boolean};
  constexpr std::array<std::string_view, 6> kDirections = {"eq", "ne", "lt", "le", "gt", "ge"};
  constexpr std::array kBinary = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::div,
                                  Opcode::rem, Opcode::max, Opcode::min};
  constexpr std::array kUnary = {Opcode::neg, Opcode::abs, Opcode::sign};
  for (int step = 0; step < 40; ++step) {
    Value a = pick([](Value v) { return !is_bool(v.dtype()); });
    Value same = pick([&](Value v) { return v.type() == a.type(); });
    if (same.type() != a.type()) same = a;
    const bool is_vector = a.rank() == 1;
    switch (rng.below(12)) {
      case 0:
      case 1:
      case 2: pool.push_back(binary(kBinary[rng.below(kBinary.size())], a, same)); break;
      case 3:
        if (is_signed(a.dtype())) pool.push_back(unary(kUnary[rng.below(kUnary.size())], a));
        break;
      case 4: {
        Value p = compare(kDirections[rng.below(6)], a, same);
        pool.push_back(p);
        pool.push_back(select(p, a, same));
        break;
      }
      case 5: pool.push_back(cast(a, kTypes[rng.below(kTypes.size())])); break;
      case 6: pool.push_back(is_vector ? concat({a, same}, 0) : unsqueeze(a, 0)); break;
      case 7:
        if (is_vector) pool.push_back(reverse(a, {0}));
        break;
      case 8:
        if (is_vector && a.dim(0).value() > 1) pool.push_back(slice(a, 0, 1, a.dim(0)));
        break;
      case 9:
        if (is_vector) {
          constexpr std::array<std::string_view, 4> kKinds = {"sum", "product", "max", "min"};
          pool.push_back(reduce(kKinds[rng.below(4)], a, {0}));
          pool.push_back(cumulative(kKinds[rng.below(4)], a, 0, rng.chance(0.5), rng.chance(0.5)));
        } else {
          pool.push_back(reduce_sum(broadcast(a, {kN, 2}, {}), {0}));
        }
        break;
      case 10: pool.push_back(a + static_cast<double>(rng.between(0, 5))); break;
      default:
        if (is_vector)
          pool.push_back(
              take(a, cast(pick([](Value v) { return v.rank() == 0 && is_integer(v.dtype()); }),
                           DType::i64)));
    }
    if (pool.back().rank() == 1 && pool.back().dim(0).value() > 40) pool.pop_back();
  }
  Result<Graph> graph = b.finish(std::span(&pool.back(), 1));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? std::move(*graph) : Graph();
}

TEST(Contents, PropertyWhatIsKnownOfShapeGraphsHolds) {
  int64_t checked = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seed);
    Graph graph = random_shape_graph(rng);
    for (int i = 0; i < 4; ++i) {
      int64_t n = rng.between(1, 12), m = rng.between(0, 9), data = rng.between(-20, 20);
      std::vector<Tensor> inputs = {Tensor::zeros(Type::get(DType::f32, {n, m})),
                                    Tensor::from_integers(Type::scalar(DType::i64), {&data, 1})};
      expect_true(graph, {{"N", n}, {"M", m}}, inputs, checked);
      if (HasFailure()) FAIL() << "seed " << seed << ", N = " << n << ", M = " << m;
    }
  }
  EXPECT_GT(checked, 150 * 4 * 15);
}

TEST(Contents, PropertyWhatIsKnownOfRandomGraphsHolds) {
  int64_t checked = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Graph graph = random_graph({.seed = seed, .max_elements = 64});
    expect_true(graph, {}, random_graph_inputs(graph, seed), checked);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(checked, 400);
}

}  // namespace
}  // namespace hone::HONE_FILE
