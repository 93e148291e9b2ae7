#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <span>

#include "ir/model_text.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(OnnxElementwise, OldBroadcastFollowsItsAttributes) {
  Tensor a = reals({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(
      numbers(run_node("Add", 6, {a, reals({3}, {10, 20, 30})}, {{"broadcast", 1}, {"axis", 1}})),
      Numbers({11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(numbers(run_node("Mul", 1, {reals({2, 2}, {1, 2, 3, 4}), reals({2}, {10, 100})},
                             {{"broadcast", 1}, {"consumed_inputs", Ints{0, 0}}})),
            Numbers({10, 200, 30, 400}));
  EXPECT_EQ(numbers(run_node("Pow", 1, {a, reals({1, 1}, {2})}, {{"broadcast", 1}})),
            Numbers({1, 4, 9, 16, 25, 36}));
  EXPECT_THAT(import_error("Add", 6, {a, reals({3}, {1, 2, 3})}, {{"broadcast", 1}, {"axis", 3}}),
              says("f32[3] ... f32[2, 3, 1] ... axis 3"));
  EXPECT_THAT(import_error("Add", 7, {a, a}, {{"broadcast", 1}}), HasSubstr("'broadcast'"));
}

TEST(OnnxElementwise, BroadcastsSymbolicDims) {
  NodeOptions symbolic = {.symbolic = true};
  Tensor a = reals({2, 3}, {1, 2, 3, 4, 5, 6}), b = reals({3}, {10, 20, 30});
  EXPECT_EQ(numbers(run_node("Add", 14, {a, b}, {}, symbolic)), Numbers({11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(numbers(run_node("Max", 13, {a, reals({2, 1}, {2, 5})}, {}, symbolic)),
            Numbers({2, 2, 3, 5, 5, 6}));
}

TEST(OnnxElementwise, LogicalAndBitwiseOpsTakeTheirTypesOnly) {
  Tensor bools = integers({2}, {1, 0}, DType::boolean), ints = integers({2}, {6, -1}, DType::i8);
  EXPECT_EQ(numbers(run_node("BitwiseXor", 18, {ints, integers({2}, {3, 0}, DType::i8)})),
            Numbers({5, -1}));
  EXPECT_EQ(numbers(run_node("BitwiseNot", 18, {ints})), Numbers({-7, 0}));
  EXPECT_EQ(numbers(run_node("Xor", 7, {bools, integers({}, {1}, DType::boolean)})),
            Numbers({0, 1}));
  EXPECT_THAT(import_error("And", 7, {ints, ints}), HasSubstr("must be bools, one is i8[2]"));
  EXPECT_THAT(import_error("BitwiseAnd", 18, {bools, bools}), HasSubstr("must be integers"));
  EXPECT_THAT(import_error("Not", 1, {ints}), HasSubstr("must be bool"));
  EXPECT_THAT(import_error("BitShift", 11, {ints, ints}, {{"direction", "UP"}}),
              says("'UP' ... LEFT or RIGHT"));
}

TEST(OnnxElementwise, ModHasTheSignOfTheDivisorUnlessFmod) {
  Tensor a = integers({4}, {-7, 7, -7, 6}), b = integers({4}, {3, -3, -3, -3});
  EXPECT_EQ(numbers(run_node("Mod", 13, {a, b})), Numbers({2, -2, -1, 0}));
  EXPECT_EQ(numbers(run_node("Mod", 13, {a, b}, {{"fmod", 1}})), Numbers({-1, 1, -1, 0}));
  EXPECT_THAT(import_error("Mod", 13, {reals({1}, {1}), reals({1}, {1})}), HasSubstr("fmod = 1"));
}

TEST(OnnxElementwise, PowKeepsLargeExponentsOfAnotherType) {
  // 2^24 + 1 is odd, and no f32.
  Tensor base = reals({2}, {-1, 2}), exponent = integers({2}, {16777217, 3});
  EXPECT_EQ(numbers(run_node("Pow", 15, {base, exponent})), Numbers({-1, 8}));
  EXPECT_EQ(
      numbers(run_node("Pow", 15, {integers({2}, {9, 2}, DType::i32), reals({2}, {0.5, 10})})),
      Numbers({3, 1024}));
  EXPECT_EQ(
      numbers(run_node("Pow", 15,
                       {integers({2}, {-1, 2}, DType::i32), integers({2}, {-3, -1}, DType::i8)})),
      Numbers({-1, 0}));
}

// A product costs a fraction of a power, and exporters spell squares in norms and cubes in gelus.
TEST(OnnxElementwise, PowOfTwoAndThreeIsAProduct) {
  const Numbers special = {-0.0, 3, -1.5, std::numeric_limits<double>::infinity(), 1e30};
  const auto has_power = [&](Tensor base, Operand exponent) {
    const std::string bytes = node_model("Pow", 15, {base, exponent});
    const Model model = parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", ".").value();
    return print(model).value().find(" pow ") != std::string::npos;
  };
  const Tensor base = reals({5}, special);
  for (const Tensor& exponent : {reals({}, {2}), reals({1}, {3}), integers({}, {3})}) {
    EXPECT_FALSE(has_power(base, constant(exponent)));
    EXPECT_EQ(numbers(run_node("Pow", 15, {base, constant(exponent)})),
              numbers(run_node("Pow", 15, {base, exponent})));
  }
  EXPECT_FALSE(has_power(reals({1}, {3}, DType::f16), constant(reals({}, {2}, DType::f16))));
  EXPECT_TRUE(has_power(reals({1}, {3}, DType::f16), constant(reals({}, {3}, DType::f16))));
  EXPECT_TRUE(has_power(base, constant(reals({}, {4}))));
  EXPECT_TRUE(has_power(base, reals({}, {2})));
  EXPECT_EQ(run_node("Pow", 15, {reals({2}, {2, 3}), constant(reals({1, 1}, {2}))}).type(),
            type_of(DType::f32, {1, 2}));
}

TEST(OnnxElementwise, ClipByAttributesAndByOperands) {
  Tensor x = reals({3}, {-kInf, 0.5, 4});
  EXPECT_EQ(numbers(run_node("Clip", 6, {x}, {{"max", 1.0}})),
            Numbers({-std::numeric_limits<float>::max(), 0.5, 1}));
  EXPECT_EQ(numbers(run_node("Clip", 13, {x, none(), reals({}, {1})})), Numbers({-kInf, 0.5, 1}));
  EXPECT_EQ(numbers(run_node("Clip", 13, {x, reals({}, {3}), reals({}, {2})})), Numbers({2, 2, 2}));
  EXPECT_THAT(import_error("Clip", 13, {x, reals({2}, {0, 0})}), HasSubstr("must be a scalar"));
}

TEST(OnnxElementwise, CastToF8SaturatesUnlessTold) {
  Tensor x = reals({4}, {1000, -kInf, kNan, 0.3});
  auto cast = [&](int version, int to, int saturate) {
    return numbers(run_node("Cast", version, {x}, {{"to", to}, {"saturate", saturate}}));
  };
  // 0.3 lies between 0.28125 and 0.3125 (three bits of mantissa), and 0.25 and 0.3125 (two bits).
  using testing::ElementsAre;
  using testing::NanSensitiveDoubleEq;
  auto is = [](double v) { return NanSensitiveDoubleEq(v); };
  EXPECT_THAT(cast(19, 17, 1), ElementsAre(is(448), is(-448), is(kNan), is(0.3125)));
  EXPECT_THAT(cast(19, 17, 0), ElementsAre(is(kNan), is(kNan), is(kNan), is(0.3125)));
  EXPECT_THAT(cast(19, 18, 1), ElementsAre(is(240), is(kNan), is(kNan), is(0.3125)));
  EXPECT_THAT(cast(24, 18, 1), ElementsAre(is(240), is(-240), is(kNan), is(0.3125)));
  EXPECT_THAT(cast(19, 19, 0), ElementsAre(is(1024), is(-kInf), is(kNan), is(0.3125)));
  EXPECT_THAT(cast(19, 19, 1), ElementsAre(is(1024), is(-57344), is(kNan), is(0.3125)));
}

TEST(OnnxElementwise, CastToPowersOfTwoRoundsAsToldTo) {
  Tensor x = reals({5}, {3, 4, 0x1.8p127, 0x1p-140, 0});
  auto cast = [&](const char* mode, int saturate) {
    return numbers(
        run_node("Cast", 24, {x}, {{"to", 24}, {"round_mode", mode}, {"saturate", saturate}}));
  };
  EXPECT_EQ(cast("up", 1), Numbers({4, 4, 0x1p127, 0x1p-126, 0x1p-127}));
  EXPECT_EQ(cast("down", 1), Numbers({2, 4, 0x1p127, 0x1p-127, 0x1p-127}));
  EXPECT_EQ(cast("nearest", 1), Numbers({4, 4, 0x1p127, 0x1p-127, 0x1p-127}));
  for (const char* mode : {"up", "nearest"}) EXPECT_TRUE(std::isnan(cast(mode, 0)[2])) << mode;
  EXPECT_THAT(import_error("Cast", 24, {x}, {{"to", 24}, {"round_mode", "odd"}}),
              HasSubstr("round_mode is 'odd'"));
}

TEST(OnnxElementwise, CastsByNumberNameAndExample) {
  Tensor x = reals({2}, {2.7, -1.5});
  EXPECT_EQ(run_node("Cast", 1, {x}, {{"to", "INT32"}}).dtype(), DType::i32);
  EXPECT_EQ(numbers(run_node("Cast", 13, {x}, {{"to", 7}})), Numbers({2, -1}));
  EXPECT_EQ(run_node("CastLike", 15, {x, integers({1}, {0}, DType::u8)}).dtype(), DType::u8);
  EXPECT_THAT(import_error("Cast", 13, {x}), HasSubstr("attribute 'to' is missing"));
  EXPECT_THAT(import_error("Cast", 1, {x}, {{"to", "QUAD"}}), says("'QUAD' ... element type"));
  EXPECT_THAT(import_error("Cast", 13, {x}, {{"to", 8}}), HasSubstr("STRING"));
}

TEST(OnnxElementwise, IsInfByDirection) {
  Tensor x = reals({4}, {kInf, -kInf, kNan, 1});
  EXPECT_EQ(numbers(run_node("IsInf", 10, {x})), Numbers({1, 1, 0, 0}));
  EXPECT_EQ(numbers(run_node("IsInf", 10, {x}, {{"detect_negative", 0}})), Numbers({1, 0, 0, 0}));
  EXPECT_EQ(numbers(run_node("IsInf", 20, {x}, {{"detect_positive", 0}})), Numbers({0, 1, 0, 0}));
  EXPECT_EQ(numbers(run_node("IsInf", 20, {reals({2}, {kInf, 1}, DType::f8e5m2)})),
            Numbers({1, 0}));
  EXPECT_EQ(numbers(run_node("IsNaN", 20, {reals({2}, {kNan, 1}, DType::f8e4m3fn)})),
            Numbers({1, 0}));
}

TEST(OnnxElementwise, DropoutKeepsAllWhenNothingIsDrawn) {
  Tensor x = reals({2}, {1, 2});
  NodeOptions two = {.outputs = 2};
  auto kept = [&](int version, const std::vector<Operand>& operands, const Attributes& attributes) {
    std::vector<Tensor> y = run_outputs("Dropout", version, operands, attributes, two);
    EXPECT_EQ(numbers(y[0]), Numbers({1, 2}));
    EXPECT_EQ(numbers(y[1]), Numbers({1, 1}));
    return y[1].dtype();
  };
  EXPECT_EQ(kept(6, {x}, {{"is_test", 1}}), DType::f32);
  EXPECT_EQ(kept(7, {x}, {{"ratio", 0.3}}), DType::f32);
  EXPECT_EQ(kept(10, {x}, {}), DType::boolean);
  EXPECT_EQ(kept(13, {x, reals({}, {0.5})}, {{"seed", 3}}), DType::boolean);
  Operand training = constant(integers({}, {1}, DType::boolean));
  EXPECT_EQ(kept(13, {x, constant(reals({}, {0})), training}, {}), DType::boolean);
  EXPECT_THAT(import_error("Dropout", 13, {x, constant(reals({}, {0.5})), training}),
              HasSubstr("draws random numbers"));
  EXPECT_THAT(import_error("Dropout", 6, {x}), HasSubstr("draws random numbers"));
}

TEST(OnnxElementwise, Determinants) {
  // A zero in the corner needs an exchange of rows; the second matrix is singular.
  Tensor x = reals({2, 3, 3}, {0, 2, 1, 1, 0, 3, 4, 1, 1, 1, 2, 3, 2, 4, 6, 1, 0, 1});
  // 0*(0-3) - 2*(1-12) + 1*(1-0) = 23
  for (bool symbolic : {false, true}) {
    Tensor det = run_node("Det", 11, {x}, {}, {.symbolic = symbolic});
    EXPECT_EQ(det.type(), type_of(DType::f32, {2}));
    EXPECT_NEAR(det.real_at(0), 23, 1e-5);
    EXPECT_NEAR(det.real_at(1), 0, 1e-5);
  }
  EXPECT_EQ(numbers(run_node("Det", 22, {reals({2, 2}, {0, 0, 0, 0})})), Numbers({0}));
  EXPECT_THAT(import_error("Det", 11, {reals({2, 3}, Numbers(6))}),
              HasSubstr("no square matrices"));
}

TEST(OnnxElementwise, IntegersOfNewerVersions) {
  Tensor a = integers({3}, {200, 7, 1}, DType::u8), b = integers({3}, {100, 2, 2}, DType::u8);
  EXPECT_EQ(numbers(run_node("Add", 14, {a, b})), Numbers({44, 9, 3}));
  EXPECT_EQ(numbers(run_node("Div", 14, {integers({2}, {-7, 7}), integers({2}, {2, 2})})),
            Numbers({-3, 3}));
  EXPECT_EQ(numbers(run_node("Sum", 13, {reals({1}, {1}), reals({1}, {2}), reals({1}, {4})})),
            Numbers({7}));
  EXPECT_EQ(numbers(run_node("Mean", 13, {reals({1}, {1}), reals({2}, {2, 5})})),
            Numbers({1.5, 3}));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
