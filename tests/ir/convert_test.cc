#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

TEST(CastTest, RealToIntegerRoundsTowardZeroAndSaturates) {
  expect_eval("cast {dtype = i8}", {"f32[7] 1.9 -1.9 127.5 128 -129 nan inf"},
              {"i8[7] 1 -1 127 127 -128 0 127"});
  expect_eval("cast {dtype = u8}", {"f32[5] -1 -0.5 255.9 256 nan"}, {"u8[5] 0 0 255 255 0"});
  expect_eval("cast {dtype = i64}", {"f64[3] 1e30 -1e30 -7.5"},
              {"i64[3] 9223372036854775807 -9223372036854775808 -7"});
  expect_eval("cast {dtype = u64}", {"f64[2] 1e30 9223372036854775808"},
              {"u64[2] 18446744073709551615 9223372036854775808"});
  expect_eval("cast {dtype = i4}", {"f32[3] 100 -100 3.7"}, {"i4[3] 7 -8 3"});
}

TEST(CastTest, IntegerToIntegerWraps) {
  expect_eval("cast {dtype = i8}", {"i32[4] 128 255 256 -129"}, {"i8[4] -128 -1 0 127"});
  expect_eval("cast {dtype = u8}", {"i8[2] -1 5"}, {"u8[2] 255 5"});
  expect_eval("cast {dtype = i64}", {"u64[1] 18446744073709551615"}, {"i64[1] -1"});
  expect_eval("cast {dtype = u4}", {"i32[2] 16 -1"}, {"u4[2] 0 15"});
  expect_eval("cast {dtype = i2}", {"i32[3] 2 -1 5"}, {"i2[3] -2 -1 1"});
  expect_eval("cast {dtype = u2}", {"f32[3] 2.5 -1 9"}, {"u2[3] 2 0 3"});
}

TEST(CastTest, Bool) {
  expect_eval("cast {dtype = bool}", {"f32[5] 0 -0 0.5 nan -2"},
              {"bool[5] false false true true true"});
  expect_eval("cast {dtype = bool}", {"i8[2] 0 -128"}, {"bool[2] false true"});
  expect_eval("cast {dtype = f32}", {"bool[2] false true"}, {"f32[2] 0 1"});
  expect_eval("cast {dtype = u8}", {"bool[2] false true"}, {"u8[2] 0 1"});
}

TEST(CastTest, IntegerToReal) {
  expect_eval("cast {dtype = f64}", {"u64[1] 18446744073709551615"},
              {"f64[1] 18446744073709551616"});
  // Halfway between 16777216 and 16777218: ties to even.
  expect_eval("cast {dtype = f32}", {"i32[2] 16777217 16777219"}, {"f32[2] 16777216 16777220"});
  expect_eval("cast {dtype = f16}", {"i32[1] 65536"}, {"f16[1] inf"});
}

TEST(CastTest, RealToReal) {
  expect_eval("cast {dtype = f16}", {"f32[4] 65504 65520 nan -0"}, {"f16[4] 65504 inf nan -0"});
  expect_eval("cast {dtype = f8e4m3fn}", {"f32[2] 448 1e9"}, {"f8e4m3fn[2] 448 nan"});
  expect_eval("cast {dtype = f64}", {"bf16[] 1.5"}, {"f64[] 1.5"});
}

// A chain keeps what it knew in wide mode and rounds at each step in rounded mode.
TEST(CastTest, WideModeDoesNotRoundBetweenNodes) {
  Graph graph;
  ValueId x = graph.add_parameter(Type::scalar(DType::f64));
  ValueId narrow = graph.result(*graph.append(op_of("cast {dtype = f16}"), {{x}}));
  ValueId back = graph.result(*graph.append(op_of("cast {dtype = f64}"), {{narrow}}));
  graph.set_outputs({back});
  Tensor third = Tensor::scalar(DType::f64, 1.0 / 3);
  auto run = [&](Numerics numerics) {
    Result<std::vector<Tensor>> results =
        evaluate(graph, std::span<const Tensor>(&third, 1), {.numerics = numerics});
    EXPECT_TRUE(results.ok());
    return results->at(0).real_at(0);
  };
  EXPECT_EQ(run(Numerics::wide), 1.0 / 3);
  EXPECT_EQ(run(Numerics::rounded), 1365.0 / 4096);  // 1/3 with 11 significant bits
  EXPECT_EQ(run(Numerics::fp32), static_cast<double>(1.0F / 3));
}

TEST(CastTest, Shapes) {
  expect_infer("cast {dtype = i32}", {"f32[N, 3]"}, {"i32[N,3]"});
  expect_eval("cast {dtype = i32}", {"f32[0] 0"}, {"i32[0] 0"});
}

TEST(BitcastTest, KeepsPatterns) {
  // 1.0f is 0x3f800000, -0.0f is 0x80000000.
  expect_eval("bitcast {dtype = i32}", {"f32[2] 1 -0"}, {"i32[2] 1065353216 -2147483648"});
  expect_eval("bitcast {dtype = u32}", {"f32[2] 1 -0"}, {"u32[2] 1065353216 2147483648"});
  expect_eval("bitcast {dtype = f32}", {"u32[3] 1065353216 2147483648 2139095040"},
              {"f32[3] 1 -0 inf"});
  // Halves: 0x3c00 is 1 in f16; the same bits are 2^-7 in bf16 (exponent 0x78 = 120).
  expect_eval("bitcast {dtype = bf16}", {"f16[] 1"}, {"bf16[] 0.0078125"});
  expect_eval("bitcast {dtype = i8}", {"u8[2] 255 127"}, {"i8[2] -1 127"});
  expect_eval("bitcast {dtype = i4}", {"u4[2] 15 7"}, {"i4[2] -1 7"});
  expect_eval("bitcast {dtype = f4e2m1}", {"u4[3] 15 7 1"}, {"f4e2m1[3] -6 6 0.5"});
  expect_eval("bitcast {dtype = u8}", {"f8e8m0[2] 1 0.5"}, {"u8[2] 127 126"});
  // f8e5m2 has f16's upper byte: 1 is 0x3c.
  expect_eval("bitcast {dtype = u8}", {"f8e5m2[] 1"}, {"u8[] 60"});
  expect_eval("bitcast {dtype = i64}", {"f64[] -2"}, {"i64[] -4611686018427387904"});
  expect_eval("bitcast {dtype = f64}", {"u64[] 13835058055282163712"}, {"f64[] -2"});
}

TEST(BitcastTest, Errors) {
  expect_infer_error("bitcast {dtype = i64}", {"f32[2]"}, "f32 has 32 bits, i64 has 64");
  expect_infer_error("bitcast {dtype = bool}", {"u8[2]"}, "bitcast ... bool");
  expect_infer_error("bitcast {dtype = u8}", {"bool[2]"}, "has element type bool");
  expect_infer("bitcast {dtype = u16}", {"bf16[N]"}, {"u16[N]"});
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
