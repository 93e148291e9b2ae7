#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/reference/gemm.h"
#include "tests/ir/dense_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

TEST(Dot, MultipliesMatrices) {
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}",
              {"f32[2,3] 1 2 3 4 5 6", "f32[3,2] 1 2 3 4 5 6"}, {"f32[2,2] 22 28 49 64"});
  expect_eval("dot {lhs_contract = [0], rhs_contract = [1]}",
              {"f32[2,3] 1 2 3 4 5 6", "f32[1,2] 10 1"}, {"f32[3,1] 14 25 36"});
  expect_eval("dot {lhs_contract = [0], rhs_contract = [0]}", {"f32[3] 1 2 3", "f32[3] 4 5 6"},
              {"f32[] 32"});
  expect_eval("dot {lhs_contract = [], rhs_contract = []}", {"f32[2] 1 2", "f32[3] 4 5 6"},
              {"f32[2,3] 4 5 6 8 10 12"});
  expect_eval("dot {lhs_batch = [1], rhs_batch = [0], lhs_contract = [0], rhs_contract = [1]}",
              {"i32[2,3] 1 2 3 4 5 6", "i32[3,2] 1 10 2 20 3 30"}, {"i32[3] 41 104 189"});
  expect_eval("dot {lhs_contract = [0, 1], rhs_contract = [1, 0]}",
              {"f32[2,2] 1 2 3 4", "f32[2,2] 1 10 100 1000"}, {"f32[] 4231"});
  expect_eval("dot {lhs_contract = [], rhs_contract = []}", {"f32[] 3", "f32[] 4"}, {"f32[] 12"});
}

TEST(Dot, OfNothingIsZero) {
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[2,0]", "f32[0,2]"},
              {"f32[2,2] 0"});
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[0,2]", "f32[2,3] 1"},
              {"f32[0,3]"});
}

TEST(Dot, KeepsNaNAndInfinityToTheirRowsAndColumns) {
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}",
              {"f32[2,2] nan 1 2 3", "f32[2,2] 0 inf 1 1"}, {"f32[2,2] nan nan 3 inf"});
  expect_eval("dot {lhs_contract = [0], rhs_contract = [0]}", {"f32[2] inf inf", "f32[2] 1 -1"},
              {"f32[] nan"});
}

TEST(Dot, OfIntegersIsExactModuloTheResultType) {
  const std::string matmul = "dot {lhs_contract = [0], rhs_contract = [0]";
  expect_eval(matmul + "}", {"i8[3] 127 127 1", "i8[3] 127 1 1"}, {"i8[] -127"});  // 16257
  expect_eval(matmul + "}", {"u8[2] 255 1", "u8[2] 255 1"}, {"u8[] 2"});
  expect_eval(matmul + ", accumulate = i32}", {"i8[200] -128", "i8[200] -128"}, {"i32[] 3276800"});
  expect_eval(matmul + ", accumulate = i32}", {"u8[2] 255 255", "i8[2] -128 -128"},
              {"i32[] -65280"});
  expect_eval(matmul + ", accumulate = u32}", {"i8[1] -1", "i8[1] 1"}, {"u32[] 4294967295"});
  expect_eval(matmul + ", accumulate = i8}", {"i32[1] 257", "i32[1] 3"}, {"i8[] 3"});
  expect_eval(matmul + "}", {"i32[1] 65536", "i32[1] 65536"}, {"i32[] 0"});
  expect_eval(matmul + "}", {"i64[2] 9223372036854775807 1", "i64[2] 2 3"}, {"i64[] 1"});
  expect_eval(matmul + "}", {"u64[1] 18446744073709551615", "u64[1] 18446744073709551615"},
              {"u64[] 1"});
  expect_eval(matmul + ", accumulate = f32}", {"f16[2] 300 300", "f16[2] 300 300"},
              {"f32[] 180000"});
}

// An operand dim is a label; the dims with a label that both operands have are equal.
struct RandomDot {
  Op op;
  Ints sizes;     // per label: batch, lhs free, rhs free, contracted
  Ints lhs, rhs;  // the label of each dim
  Ints result;
  int64_t contracted = 0;  // labels from here on
};

RandomDot random_dot(Rng& rng) {
  int64_t batch = rng.between(0, 2), left = rng.between(0, 2), right = rng.between(0, 2);
  int64_t contract = rng.between(0, 2);
  RandomDot dot;
  for (int64_t label = 0; label < batch + left + right + contract; ++label) {
    dot.sizes.push_back(rng.chance(0.05) ? 0 : rng.between(1, 5));
    bool shared = label < batch || label >= batch + left + right;
    if (shared || label < batch + left) dot.lhs.push_back(label);
    if (shared || label >= batch + left) dot.rhs.push_back(label);
  }
  dot.contracted = batch + left + right;
  rng.shuffle(dot.lhs);
  rng.shuffle(dot.rhs);
  auto place = [](const Ints& labels, int64_t label) {
    return std::find(labels.begin(), labels.end(), label) - labels.begin();
  };
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  for (int64_t label = 0; label < batch; ++label) {
    lhs_batch.push_back(place(dot.lhs, label));
    rhs_batch.push_back(place(dot.rhs, label));
    dot.result.push_back(label);
  }
  for (int64_t label = dot.contracted; label < dot.contracted + contract; ++label) {
    lhs_contract.push_back(place(dot.lhs, label));
    rhs_contract.push_back(place(dot.rhs, label));
  }
  for (int64_t label : dot.lhs)
    if (label >= batch && label < batch + left) dot.result.push_back(label);
  for (int64_t label : dot.rhs)
    if (label >= batch + left && label < dot.contracted) dot.result.push_back(label);
  dot.op = Op::get(Opcode::dot, {{"lhs_batch", lhs_batch},
                                 {"rhs_batch", rhs_batch},
                                 {"lhs_contract", lhs_contract},
                                 {"rhs_contract", rhs_contract}});
  return dot;
}

Ints pick(const Ints& from, const Ints& labels) {
  Ints picked;
  for (int64_t label : labels) picked.push_back(from[at(label)]);
  return picked;
}

// Adds products in row-major order of the labels, contracted labels last.
template <class T>
std::vector<T> sum_products(const RandomDot& dot, const std::vector<T>& lhs,
                            const std::vector<T>& rhs) {
  std::vector<T> result(at(product(pick(dot.sizes, dot.result))), T(0));
  for_each_index(dot.sizes, [&](const Ints& index) {
    auto element = [&](const Ints& labels) {
      return offset_of(pick(index, labels), pick(dot.sizes, labels));
    };
    result[element(dot.result)] += lhs[element(dot.lhs)] * rhs[element(dot.rhs)];
  });
  return result;
}

TEST(Dot, EqualsTheSumOfProductsForAnyOrderOfDims) {
  Rng rng(1);
  for (int trial = 0; trial < 400; ++trial) {
    RandomDot dot = random_dot(rng);
    DType dtype = std::vector<DType>{DType::f32, DType::i32, DType::f64}[at(trial % 3)];
    Tensor lhs = small_integers(type_with(dtype, pick(dot.sizes, dot.lhs)), rng);
    Tensor rhs = small_integers(type_with(dtype, pick(dot.sizes, dot.rhs)), rng);
    std::vector<Tensor> results = *evaluate_op(dot.op, {lhs, rhs});
    std::vector<double> wanted =
        sum_products(dot, numbers_of<double>(lhs), numbers_of<double>(rhs));
    EXPECT_EQ(numbers_of<double>(results[0]), wanted) << dot.op.attrs_to_string();
    EXPECT_EQ(results[0].type().static_dims(), pick(dot.sizes, dot.result));
  }
}

TEST(Dot, AddsInOrderOfTheContractedDimsInEachMode) {
  Rng rng(2);
  for (int trial = 0; trial < 100; ++trial) {
    RandomDot dot = random_dot(rng);
    Tensor lhs = uniform_reals(type_with(DType::f32, pick(dot.sizes, dot.lhs)), rng);
    Tensor rhs = uniform_reals(type_with(DType::f32, pick(dot.sizes, dot.rhs)), rng);
    EXPECT_EQ(numbers_of<float>((*evaluate_op(dot.op, {lhs, rhs}, Numerics::fp32))[0]),
              sum_products(dot, numbers_of<float>(lhs), numbers_of<float>(rhs)));
    EXPECT_EQ(numbers_of<double>((*evaluate_op(dot.op, {lhs, rhs}))[0]),
              sum_products(dot, numbers_of<double>(lhs), numbers_of<double>(rhs)));
  }
}

TEST(Dot, EqualsTheSumOfProductsBeyondOneBlock) {
  struct Sizes {
    int64_t rows, columns, depth;
  };
  for (Sizes s : {Sizes{150, 270, 500}, Sizes{1, 600, 300}, Sizes{600, 1, 300}, Sizes{3, 5, 1000},
                  Sizes{2, 300, 250}, Sizes{131, 7, 249}}) {
    Rng rng(3);
    Tensor lhs = uniform_reals(Type::get(DType::f32, {s.rows, s.depth}), rng);
    Tensor rhs = uniform_reals(Type::get(DType::f32, {s.columns, s.depth}), rng);
    std::vector<float> a = numbers_of<float>(lhs), b = numbers_of<float>(rhs), wanted;
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        float sum = 0;
        for (int64_t d = 0; d < s.depth; ++d)
          sum += a[at(i * s.depth + d)] * b[at(j * s.depth + d)];
        wanted.push_back(sum);
      }
    }
    Op op = op_of("dot {lhs_contract = [1], rhs_contract = [1]}");
    EXPECT_EQ(numbers_of<float>((*evaluate_op(op, {lhs, rhs}, Numerics::fp32))[0]), wanted);
  }
}

TEST(Dot, DoesNotDependOnTheNumberOfThreads) {
  Rng rng(4);
  std::vector<float> a(3 * 200 * 300), b(3 * 300 * 520);
  for (float& x : a) x = static_cast<float>(rng.normal());
  for (float& x : b) x = static_cast<float>(rng.normal());
  auto offsets = [](int64_t count, int64_t step) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(i * step);
    return result;
  };
  GemmTableSide<float> lhs(a.data(), offsets(3, 200 * 300), offsets(200, 300), offsets(300, 1));
  GemmTableSide<float> rhs(b.data(), offsets(3, 300 * 520), offsets(520, 1), offsets(300, 520));
  auto multiply = [&](int threads) {
    ThreadPool pool(threads);
    std::vector<float> out(3 * 200 * 520);
    gemm<float>(pool, {3, 200, 520, 300}, lhs, rhs, [&](const GemmTile<float>& tile) {
      for (int64_t i = 0; i < tile.rows; ++i) {
        for (int64_t j = 0; j < tile.columns; ++j)
          out[at((tile.batch * 200 + tile.row + i) * 520 + tile.column + j)] = tile.at(i, j);
      }
    });
    return out;
  };
  std::vector<float> alone = multiply(1);
  EXPECT_EQ(multiply(2), alone);
  EXPECT_EQ(multiply(5), alone);
}

TEST(Dot, WorksInTheField) {
  Rng rng(5);
  std::vector<uint64_t> lhs(6), rhs(12);
  for (uint64_t& x : lhs) x = rng.below(FieldElement::kPrime);
  for (uint64_t& x : rhs) x = rng.below(FieldElement::kPrime);
  Graph graph = *graph_of(op_of("dot {lhs_contract = [1], rhs_contract = [0]}"),
                          {type_of("f32[2,3]"), type_of("f32[3,4]")});
  std::vector<FieldInput> inputs = {{lhs, {}}, {rhs, {}}};
  std::vector<std::vector<uint64_t>> results = *evaluate_in_field(graph, inputs);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      unsigned __int128 sum = 0;
      for (size_t k = 0; k < 3; ++k) {
        sum +=
            static_cast<unsigned __int128>(lhs[i * 3 + k]) * rhs[k * 4 + j] % FieldElement::kPrime;
      }
      EXPECT_EQ(results[0][i * 4 + j], static_cast<uint64_t>(sum % FieldElement::kPrime));
    }
  }
}

TEST(Dot, ReadsWhatItsAccessRelationSays) {
  Rng rng(6);
  for (int trial = 0; trial < 60; ++trial) {
    RandomDot dot = random_dot(rng);
    for (int64_t& size : dot.sizes) size = std::min<int64_t>(size, 3);
    DType dtype = trial % 2 == 0 ? DType::f32 : DType::i16;
    expect_access_is_exact(dot.op,
                           {small_integers(type_with(dtype, pick(dot.sizes, dot.lhs)), rng),
                            small_integers(type_with(dtype, pick(dot.sizes, dot.rhs)), rng)});
  }
}

TEST(Dot, InfersItsType) {
  expect_infer("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[N, 8]", "f32[8, 2*N + 1]"},
               {"f32[N, 2*N + 1]"});
  expect_infer("dot {lhs_contract = [1], rhs_contract = [0]}", {"f16[3, N]", "f16[N, 2]"},
               {"f16[3, 2]"});
  expect_infer(
      "dot {lhs_batch = [0, 2], rhs_batch = [1, 0], lhs_contract = [1], "
      "rhs_contract = [2]}",
      {"f32[M, 5, N, 7]", "f32[N, M, 5]"}, {"f32[M, N, 7]"});
  expect_infer("dot {lhs_contract = [0], rhs_contract = [0], accumulate = f32}",
               {"bf16[8]", "bf16[8]"}, {"f32[]"});
  expect_infer("dot {lhs_contract = [0], rhs_contract = [0], accumulate = i64}",
               {"u8[8]", "i16[8]"}, {"i64[]"});
  expect_symbols_bind(
      "dot {lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], "
      "rhs_contract = [1]}",
      {"f32[N, K, M]", "f32[N, K]"});
}

TEST(Dot, RejectsIllTypedApplications) {
  const std::string matmul = "dot {lhs_contract = [1], rhs_contract = [0]}";
  expect_infer_error(matmul, {"f32[2,3]", "f32[4,2]"},
                     "contracted dims 1 ... lhs ... 0 ... rhs ... 3 and 4 ... differ");
  expect_infer_error(matmul, {"f32[2,N]", "f32[M,2]"},
                     "contracted dims 1 ... lhs ... 0 ... rhs ... N and M ... provably");
  expect_infer_error("dot {lhs_batch = [0], rhs_batch = [0], lhs_contract = [], rhs_contract = []}",
                     {"f32[2]", "f32[3]"},
                     "batch dims 0 ... lhs ... 0 ... rhs ... 2 and 3 ... differ");
  expect_infer_error("dot {lhs_contract = [1], rhs_contract = []}", {"f32[2,3]", "f32[3,2]"},
                     "lhs has 1 contracted dims, rhs has 0");
  expect_infer_error("dot {lhs_batch = [0], lhs_contract = [1], rhs_contract = [0]}",
                     {"f32[2,3]", "f32[3,2]"}, "lhs has 1 batch dims, rhs has 0");
  expect_infer_error("dot {lhs_contract = [2], rhs_contract = [0]}", {"f32[2,3]", "f32[3,2]"},
                     "lhs_contract 2 is outside rank 2");
  expect_infer_error("dot {rhs_batch = [-1], lhs_contract = [1], rhs_contract = [0]}",
                     {"f32[2,3]", "f32[3,2]"}, "rhs_batch -1 is outside rank 2");
  expect_infer_error("dot {lhs_contract = [1, 1], rhs_contract = [0, 1]}", {"f32[2,3]", "f32[3,3]"},
                     "lhs_contract names axis 1 twice");
  expect_infer_error(
      "dot {lhs_batch = [1], rhs_batch = [1], lhs_contract = [1], rhs_contract = "
      "[0]}",
      {"f32[3,3]", "f32[3,3]"}, "dim 1 ... lhs ... batch ... contracted");
  expect_infer_error(matmul, {"bool[2,3]", "bool[3,2]"}, "element type bool");
  expect_infer_error(matmul, {"i4[2,3]", "i4[3,2]"}, "element type i4");
  expect_infer_error(matmul, {"i8[2,3]", "bool[3,2]"}, "second operand ... bool ... number");
  expect_infer_error(matmul, {"f32[2,3]", "f16[3,2]"}, "f32 and f16 ... 'accumulate'");
  auto with = [](std::string_view accumulate) {
    return "dot {lhs_contract = [0], rhs_contract = [0], accumulate = " + std::string(accumulate) +
           "}";
  };
  expect_infer_error(with("f32"), {"f32[3]", "f16[3]"}, "f32 and f16 ... multiplied");
  expect_infer_error(with("i32"), {"i8[3]", "f32[3]"}, "i8 and f32 ... multiplied");
  expect_infer_error(with("i32"), {"f32[3]", "f32[3]"}, "f32 products ... i32");
  expect_infer_error(with("f32"), {"i8[3]", "i8[3]"}, "i8 products ... f32");
  expect_infer_error(with("bool"), {"i8[3]", "i8[3]"}, "i8 products ... bool");
  expect_infer_error(with("i4"), {"i8[3]", "i8[3]"}, "i8 products ... i4");
  expect_infer_error(with("f8"), {"f32[3]", "f32[3]"}, "accumulate 'f8' ... element type");
  expect_infer_error("dot {lhs_contract = [], rhs_contract = []}",
                     {"f32[1,1,1,1,1,1,1,1,1]", "f32[1,1,1,1,1,1,1,1]"}, "17", ErrorCode::limit);
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
