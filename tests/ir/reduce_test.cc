#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ir/dense_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// ---- reduce -------------------------------------------------------------------------------------

TEST(Reduce, CombinesAlongAxes) {
  expect_eval("reduce {kind = sum, axes = [1]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2] 6 15"});
  expect_eval("reduce {kind = sum, axes = [0]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[3] 5 7 9"});
  expect_eval("reduce {kind = sum, axes = [1, 0]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[] 21"});
  expect_eval("reduce {kind = sum, axes = []}", {"f32[2] 1 2"}, {"f32[2] 1 2"});
  expect_eval("reduce {kind = sum, axes = []}", {"i32[] 7"}, {"i32[] 7"});
  expect_eval("reduce {kind = product, axes = [0, 2]}", {"f32[2,2,2] 1 2 3 4 5 6 7 8"},
              {"f32[2] 60 672"});
  expect_eval("reduce {kind = max, axes = [0]}", {"f64[3] -3 -1 -2"}, {"f64[] -1"});
  expect_eval("reduce {kind = min, axes = [0]}", {"f16[3] -3 -1 -2"}, {"f16[] -3"});
  expect_eval("reduce {kind = and, axes = [0]}", {"bool[2,3] true true false true false false"},
              {"bool[3] true false false"});
  expect_eval("reduce {kind = or, axes = [0]}", {"bool[2,3] true true false true false false"},
              {"bool[3] true true false"});
  expect_eval("reduce {kind = and, axes = [0]}", {"u8[3] 14 7 6"}, {"u8[] 6"});
  expect_eval("reduce {kind = or, axes = [0]}", {"i8[2] -128 1"}, {"i8[] -127"});
}

TEST(Reduce, OfNothingIsTheIdentity) {
  expect_eval("reduce {kind = sum, axes = [0]}", {"f32[0,2]"}, {"f32[2] 0 0"});
  expect_eval("reduce {kind = product, axes = [0]}", {"i32[0]"}, {"i32[] 1"});
  expect_eval("reduce {kind = max, axes = [0]}", {"f16[0]"}, {"f16[] -inf"});
  expect_eval("reduce {kind = min, axes = [0]}", {"f64[0]"}, {"f64[] inf"});
  expect_eval("reduce {kind = max, axes = [0]}", {"i8[0]"}, {"i8[] -128"});
  expect_eval("reduce {kind = min, axes = [0]}", {"i16[0]"}, {"i16[] 32767"});
  expect_eval("reduce {kind = max, axes = [0]}", {"u64[0]"}, {"u64[] 0"});
  expect_eval("reduce {kind = min, axes = [0]}", {"u64[0]"}, {"u64[] 18446744073709551615"});
  expect_eval("reduce {kind = and, axes = [0]}", {"bool[0]"}, {"bool[] true"});
  expect_eval("reduce {kind = and, axes = [0]}", {"u16[0]"}, {"u16[] 65535"});
  expect_eval("reduce {kind = and, axes = [0]}", {"i32[0]"}, {"i32[] -1"});
  expect_eval("reduce {kind = or, axes = [0]}", {"bool[0]"}, {"bool[] false"});
  expect_eval("reduce {kind = sum, axes = [1]}", {"f32[0,2]"}, {"f32[0]"});
}

TEST(Reduce, OfIntegersWraps) {
  expect_eval("reduce {kind = sum, axes = [0]}", {"i8[3] 127 1 -3"}, {"i8[] 125"});
  expect_eval("reduce {kind = sum, axes = [0]}", {"u8[2] 255 3"}, {"u8[] 2"});
  expect_eval("reduce {kind = product, axes = [0]}", {"i32[2] 65536 32769"}, {"i32[] -2147418112"});
  expect_eval("reduce {kind = product, axes = [0]}", {"i64[2] -9223372036854775808 -1"},
              {"i64[] -9223372036854775808"});
  expect_eval("reduce {kind = max, axes = [0]}", {"u64[3] 1 9223372036854775808 3"},
              {"u64[] 9223372036854775808"});
  expect_eval("reduce {kind = min, axes = [0]}", {"u64[2] 18446744073709551615 3"}, {"u64[] 3"});
  expect_eval("reduce {kind = max, axes = [0]}", {"i64[2] -1 -9223372036854775808"}, {"i64[] -1"});
}

TEST(Reduce, OfNaNAndZeros) {
  expect_eval("reduce {kind = max, axes = [1]}", {"f32[3,3] nan 1 2 1 nan 2 1 2 nan"},
              {"f32[3] nan"});
  expect_eval("reduce {kind = min, axes = [0]}", {"f32[2] inf nan"}, {"f32[] nan"});
  expect_eval("reduce {kind = sum, axes = [0]}", {"f32[2] inf -inf"}, {"f32[] nan"});
  expect_eval("reduce {kind = max, axes = [1]}", {"f32[2,2] -0 +0 +0 -0"}, {"f32[2] +0 +0"});
  expect_eval("reduce {kind = min, axes = [1]}", {"f32[2,2] -0 +0 +0 -0"}, {"f32[2] -0 -0"});
}

TEST(Reduce, KeepsWideSumsUntilTheEnd) {
  expect_eval("reduce {kind = sum, axes = [0]}", {"f16[3] 65504 65504 -65504"}, {"f16[] 65504"});
  // In float arithmetic the ones vanish.
  Tensor x = tensor_of("f32[3] 16777216 1 1");
  Op op = op_of("reduce {kind = sum, axes = [0]}");
  EXPECT_EQ((*evaluate_op(op, {x}))[0].real_at(0), 16777218);
  EXPECT_EQ((*evaluate_op(op, {x}, Numerics::fp32))[0].real_at(0), 16777216);
}

Ints random_dims(Rng& rng, int64_t largest) {
  Ints dims(at(rng.between(0, 4)));
  for (int64_t& d : dims) d = rng.chance(0.05) ? 0 : rng.between(1, largest);
  return dims;
}

Ints random_axes(Rng& rng, size_t rank) {
  Ints axes;
  for (size_t i = 0; i < rank; ++i)
    if (rng.chance(0.5)) axes.push_back(static_cast<int64_t>(i));
  rng.shuffle(axes);
  return axes;
}

Ints without(const Ints& list, const Ints& axes) {
  Ints kept;
  for (size_t i = 0; i < list.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      kept.push_back(list[i]);
  }
  return kept;
}

double combined(const std::string& kind, double a, double b) {
  if (kind == "sum") return a + b;
  if (kind == "product") return a * b;
  return kind == "max" ? std::fmax(a, b) : std::fmin(a, b);
}

double identity_of(const std::string& kind) {
  if (kind == "sum") return 0;
  if (kind == "product") return 1;
  return kind == "max" ? -INFINITY : INFINITY;
}

const std::vector<std::string> kKinds = {"sum", "product", "max", "min"};

TEST(Reduce, EqualsLoopsForAnyAxes) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    Ints dims = random_dims(rng, trial % 10 == 0 ? 20 : 4);
    Ints axes = random_axes(rng, dims.size());
    const std::string& kind = rng.pick(kKinds);
    Op op = Op::get(Opcode::reduce, {{"kind", kind}, {"axes", axes}});
    Tensor x = small_integers(type_with(DType::f32, dims), rng);
    std::vector<double> in = numbers_of<double>(x);
    Ints kept = without(dims, axes);
    std::vector<double> wanted(at(product(kept)), identity_of(kind));
    for_each_index(dims, [&](const Ints& index) {
      double& value = wanted[offset_of(without(index, axes), kept)];
      value = combined(kind, value, in[offset_of(index, dims)]);
    });
    std::vector<Tensor> results = *evaluate_op(op, {x});
    EXPECT_EQ(numbers_of<double>(results[0]), wanted) << op.attrs_to_string();
    EXPECT_EQ(results[0].type().static_dims(), kept);
  }
}

TEST(Reduce, OfLargeTensorsEqualsLoops) {
  Rng rng(2);
  Tensor x = small_integers(type_of("i32[70,5,300]"), rng);
  std::vector<int64_t> in = numbers_of<int64_t>(x);
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 1}, Ints{0, 2}, Ints{0, 1, 2}}) {
    Ints dims = {70, 5, 300}, kept = without(dims, axes);
    std::vector<int64_t> wanted(at(product(kept)), 0);
    for_each_index(dims, [&](const Ints& index) {
      wanted[offset_of(without(index, axes), kept)] += in[offset_of(index, dims)];
    });
    Op op = Op::get(Opcode::reduce, {{"kind", std::string("sum")}, {"axes", axes}});
    EXPECT_EQ(numbers_of<int64_t>((*evaluate_op(op, {x}))[0]), wanted);
  }
}

TEST(Reduce, InTheFieldHasNoOrder) {
  std::vector<FieldInput> inputs = {{{1, 2, FieldElement::kPrime - 1}, {}}};
  auto in_field = [&](std::string_view kind) {
    Graph graph = *graph_of(op_of(fmt::format("reduce {{kind = {}, axes = [0]}}", kind)),
                            {type_of("f32[3]")});
    return evaluate_in_field(graph, inputs);
  };
  EXPECT_EQ((*in_field("sum"))[0], std::vector<uint64_t>{2});
  EXPECT_EQ((*in_field("product"))[0], std::vector<uint64_t>{FieldElement::kPrime - 2});
  EXPECT_EQ(in_field("max").error().code(), ErrorCode::unsupported);
  EXPECT_EQ(in_field("min").error().code(), ErrorCode::unsupported);
}

TEST(Reduce, ReadsWhatItsAccessRelationSays) {
  Rng rng(3);
  for (int trial = 0; trial < 50; ++trial) {
    Ints dims = random_dims(rng, 3);
    Op op = Op::get(Opcode::reduce,
                    {{"kind", rng.pick(kKinds)}, {"axes", random_axes(rng, dims.size())}});
    DType dtype = trial % 2 == 0 ? DType::f32 : DType::i8;
    expect_access_is_exact(op, {small_integers(type_with(dtype, dims), rng)});
  }
}

TEST(Reduce, InfersItsType) {
  expect_infer("reduce {kind = max, axes = [0, 2]}", {"bf16[N, M, 3]"}, {"bf16[M]"});
  expect_infer("reduce {kind = or, axes = []}", {"bool[N]"}, {"bool[N]"});
  expect_symbols_bind("reduce {kind = sum, axes = [1]}", {"f32[N, M, K]"});
  expect_infer_error("reduce {kind = sum, axes = [2]}", {"f32[2,2]"}, "axes 2 is outside rank 2");
  expect_infer_error("reduce {kind = sum, axes = [-1]}", {"f32[2,2]"}, "axes -1 is outside rank 2");
  expect_infer_error("reduce {kind = sum, axes = [1, 1]}", {"f32[2,2]"}, "axes names axis 1 twice");
  expect_infer_error("reduce {kind = sum, axes = [0]}", {"bool[2]"},
                     "kind 'sum' takes numbers, not bool");
  expect_infer_error("reduce {kind = max, axes = [0]}", {"bool[2]"},
                     "kind 'max' takes numbers, not bool");
  expect_infer_error("reduce {kind = and, axes = [0]}", {"f32[2]"},
                     "kind 'and' takes bools and integers, not f32");
  expect_infer_error("reduce {kind = sum, axes = [0]}", {"f8e5m2[2]"}, "element type f8e5m2");
}

// ---- arg_reduce ---------------------------------------------------------------------------------

TEST(ArgReduce, FindsTheExtreme) {
  expect_eval("arg_reduce {kind = max, axis = 1}", {"f32[2,3] 1 3 2 6 4 5"}, {"i64[2] 1 0"});
  expect_eval("arg_reduce {kind = min, axis = 0}", {"f32[2,3] 1 3 5 6 2 4"}, {"i64[3] 0 1 1"});
  expect_eval("arg_reduce {kind = min, axis = 1, dtype = u8}", {"i8[2,2,1] 1 -128 127 0"},
              {"u8[2,1] 1 1"});
  expect_eval("arg_reduce {kind = max, axis = 0}", {"f32[1] nan"}, {"i64[] 0"});
  expect_eval("arg_reduce {kind = max, axis = 1}", {"f32[0,2]"}, {"i64[0]"});
}

TEST(ArgReduce, TakesTheFirstOrTheLastOfEquals) {
  expect_eval("arg_reduce {kind = max, axis = 0}", {"f32[4] 1 2 2 1"}, {"i64[] 1"});
  expect_eval("arg_reduce {kind = max, axis = 0, last = true}", {"f32[4] 1 2 2 1"}, {"i64[] 2"});
  expect_eval("arg_reduce {kind = min, axis = 0}", {"f32[4] 1 2 2 1"}, {"i64[] 0"});
  expect_eval("arg_reduce {kind = min, axis = 0, last = true}", {"f32[4] 1 2 2 1"}, {"i64[] 3"});
  expect_eval("arg_reduce {kind = max, axis = 0}", {"f32[2] -0 +0"}, {"i64[] 0"});
  expect_eval("arg_reduce {kind = min, axis = 0}", {"f32[2] +0 -0"}, {"i64[] 0"});
}

TEST(ArgReduce, TakesNaNForTheExtreme) {
  expect_eval("arg_reduce {kind = max, axis = 0}", {"f32[4] inf nan 2 nan"}, {"i64[] 1"});
  expect_eval("arg_reduce {kind = min, axis = 0}", {"f32[4] -inf nan 2 nan"}, {"i64[] 1"});
  expect_eval("arg_reduce {kind = min, axis = 0, last = true}", {"f32[4] nan nan 2 -inf"},
              {"i64[] 1"});
}

TEST(ArgReduce, ComparesUnsignedIntegersAboveTheSignedRange) {
  expect_eval("arg_reduce {kind = max, axis = 0}", {"u64[3] 1 18446744073709551615 3"},
              {"i64[] 1"});
  expect_eval("arg_reduce {kind = min, axis = 0}", {"u64[3] 9223372036854775808 2 3"}, {"i64[] 1"});
  expect_eval("arg_reduce {kind = max, axis = 0}", {"i64[3] -1 9223372036854775807 3"},
              {"i64[] 1"});
}

TEST(ArgReduce, EqualsLoops) {
  Rng rng(4);
  for (int trial = 0; trial < 200; ++trial) {
    Ints dims = {rng.between(1, 4), rng.between(1, 4), rng.between(1, 4)};
    int64_t axis = rng.between(0, 2);
    bool is_max = rng.chance(0.5), last = rng.chance(0.5);
    Op op =
        Op::get(Opcode::arg_reduce,
                {{"kind", std::string(is_max ? "max" : "min")}, {"axis", axis}, {"last", last}});
    Tensor x = small_integers(type_with(trial % 2 == 0 ? DType::f32 : DType::i16, dims), rng);
    std::vector<double> in = numbers_of<double>(x);
    Ints kept = without(dims, {axis});
    std::vector<int64_t> wanted;
    for_each_index(kept, [&](Ints index) {
      index.insert(index.begin() + axis, 0);
      int64_t best = 0;
      auto value = [&](int64_t i) {
        index[at(axis)] = i;
        return in[offset_of(index, dims)] * (is_max ? 1 : -1);
      };
      for (int64_t i = 1; i < dims[at(axis)]; ++i) {
        if (last ? value(i) >= value(best) : value(i) > value(best)) best = i;
      }
      wanted.push_back(best);
    });
    EXPECT_EQ(numbers_of<int64_t>((*evaluate_op(op, {x}))[0]), wanted) << op.attrs_to_string();
    if (trial < 30) expect_access_is_exact(op, {x});
  }
}

TEST(ArgReduce, InfersItsType) {
  expect_infer("arg_reduce {kind = max, axis = 1}", {"f32[N, M]"}, {"i64[N]"});
  expect_infer("arg_reduce {kind = max, axis = 1, dtype = i8}", {"f32[N, 2*M]"}, {"i8[N]"});
  expect_symbols_bind("arg_reduce {kind = max, axis = 0}", {"f32[K, N]"});
  expect_infer_error("arg_reduce {kind = max, axis = 2}", {"f32[2,2]"}, "axis 2 is outside rank 2");
  expect_infer_error("arg_reduce {kind = max, axis = -1}", {"f32[2]"}, "axis -1 is outside rank 1");
  expect_infer_error("arg_reduce {kind = max, axis = 0, dtype = f32}", {"f32[2]"},
                     "dtype f32 ... integer");
  expect_infer_error("arg_reduce {kind = max, axis = 0, dtype = i4}", {"f32[2]"},
                     "dtype i4 ... integer");
  expect_infer_error("arg_reduce {kind = max, axis = 1}", {"f32[2,0]"}, "dim 1 ... 0 ... 1");
  expect_infer_error("arg_reduce {kind = max, axis = 0}", {"f32[N]"},
                     "dim 0 ... N ... provably ... 1");
  expect_infer("arg_reduce {kind = max, axis = 0, dtype = u8}", {"f32[256]"}, {"u8[]"});
  expect_infer_error("arg_reduce {kind = max, axis = 0, dtype = u8}", {"f32[257]"},
                     "dim 0 ... 257 ... u8");
  expect_infer_error("arg_reduce {kind = max, axis = 0, dtype = i8}", {"f32[4*M]"},
                     "dim 0 ... 4*M ... i8");
  expect_infer_error("arg_reduce {kind = max, axis = 0}", {"bool[2]"}, "element type bool");
}

// ---- cumulative ---------------------------------------------------------------------------------

TEST(Cumulative, RunsAlongTheAxis) {
  expect_eval("cumulative {kind = sum, axis = 0}", {"f32[4] 1 2 3 4"}, {"f32[4] 1 3 6 10"});
  expect_eval("cumulative {kind = sum, axis = 0, exclusive = true}", {"f32[4] 1 2 3 4"},
              {"f32[4] 0 1 3 6"});
  expect_eval("cumulative {kind = sum, axis = 0, reverse = true}", {"f32[4] 1 2 3 4"},
              {"f32[4] 10 9 7 4"});
  expect_eval("cumulative {kind = product, axis = 0, exclusive = true, reverse = true}",
              {"i32[4] 1 2 3 4"}, {"i32[4] 24 12 4 1"});
  expect_eval("cumulative {kind = max, axis = 0}", {"f32[4] 1 3 2 4"}, {"f32[4] 1 3 3 4"});
  expect_eval("cumulative {kind = max, axis = 0, exclusive = true}", {"f32[2] 1 3"},
              {"f32[2] -inf 1"});
  expect_eval("cumulative {kind = min, axis = 0, exclusive = true}", {"u8[2] 1 3"},
              {"u8[2] 255 1"});
  expect_eval("cumulative {kind = max, axis = 0}", {"f32[4] 1 nan 2 4"}, {"f32[4] 1 nan nan nan"});
  expect_eval("cumulative {kind = sum, axis = 0}", {"i8[3] 100 100 100"}, {"i8[3] 100 -56 44"});
  expect_eval("cumulative {kind = sum, axis = 1}", {"f32[2,0]"}, {"f32[2,0]"});
  expect_eval("cumulative {kind = sum, axis = 0}", {"f32[0,2]"}, {"f32[0,2]"});
}

// The evaluator computes what the loop over the relation's sequential dim accumulates.
void expect_prefix_access(Op op, const Tensor& x) {
  Graph graph = *graph_of(op, {x.type()});
  std::vector<ElementDependencies> traced = *trace_dependencies(graph, std::vector<Tensor>{x});
  std::vector<Type> types = {x.type()};
  AccessRelation relation = access_of({.op = op, .operands = types}, types);
  Ints dims = x.type().static_dims();
  for_each_index(dims, [&](const Ints& index) {
    Region wanted;
    for (int64_t i : index) wanted.dims.push_back({i, i});
    Region needed = needed_regions(relation, types, 0, wanted)[0];
    std::vector<InputElement> elements;
    for_each_index(dims, [&](const Ints& source) {
      Region one;
      for (int64_t i : source) one.dims.push_back({i, i});
      if (!needed.contains(one)) return;
      elements.push_back({0, static_cast<uint32_t>(offset_of(source, dims))});
      EXPECT_TRUE(reached_regions(relation, types, 0, one)[0].contains(wanted));
    });
    EXPECT_EQ(traced[0][offset_of(index, dims)], elements) << op.attrs_to_string();
  });
}

TEST(Cumulative, EqualsLoops) {
  Rng rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    Ints dims = {rng.between(1, 4), rng.between(1, 4), rng.between(1, 4)};
    int64_t axis = rng.between(0, 2);
    bool exclusive = rng.chance(0.5), reverse = rng.chance(0.5);
    const std::string& kind = rng.pick(kKinds);
    Op op =
        Op::get(Opcode::cumulative,
                {{"kind", kind}, {"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
    Tensor x = small_integers(type_with(DType::f32, dims), rng);
    std::vector<double> in = numbers_of<double>(x), wanted;
    for_each_index(dims, [&](const Ints& index) {
      double value = identity_of(kind);
      for (int64_t i = 0; i < dims[at(axis)]; ++i) {
        int64_t before = reverse ? i - index[at(axis)] : index[at(axis)] - i;
        if (before < (exclusive ? 1 : 0)) continue;
        Ints source = index;
        source[at(axis)] = i;
        value = combined(kind, value, in[offset_of(source, dims)]);
      }
      wanted.push_back(value);
    });
    EXPECT_EQ(numbers_of<double>((*evaluate_op(op, {x}))[0]), wanted) << op.attrs_to_string();
    if (trial < 40) expect_prefix_access(op, x);
  }
}

TEST(Cumulative, InfersItsType) {
  expect_infer("cumulative {kind = sum, axis = 1}", {"bf16[N, M]"}, {"bf16[N, M]"});
  expect_infer_error("cumulative {kind = sum, axis = 1}", {"f32[2]"}, "axis 1 is outside rank 1");
  expect_infer_error("cumulative {kind = sum, axis = 0}", {"f32[]"}, "axis 0 is outside rank 0");
  expect_infer_error("cumulative {kind = sum, axis = 0}", {"bool[2]"}, "element type bool");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
