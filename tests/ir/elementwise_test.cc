#include <gtest/gtest.h>

#include <cmath>

#include "tests/ir/op_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::expect_eval;
using tested::expect_infer;
using tested::expect_infer_error;

Tensor random_bits(DType dtype, int64_t count, uint64_t key, uint64_t counter) {
  Op op = Op::get(Opcode::rng_bits, {{"dtype", dtype}, {"dims", Dims{count}}});
  Type scalar = Type::scalar(DType::u64);
  Result<Graph> graph = tested::graph_of(op, {scalar, scalar});
  HONE_CHECK(graph.ok());
  std::vector<Tensor> inputs = {Tensor::of<uint64_t>(scalar, {&key, 1}),
                                Tensor::of<uint64_t>(scalar, {&counter, 1})};
  Result<std::vector<Tensor>> results = evaluate(*graph, inputs);
  HONE_CHECK(results.ok());
  return results->at(0);
}

// Values are by hand, or mathematical constants to more digits than double has.
TEST(Unary, SignOps) {
  expect_eval("neg", {"f32[5] 1.5 -0 0 inf nan"}, {"f32[5] -1.5 +0 -0 -inf nan"});
  expect_eval("neg", {"i8[4] 5 -5 0 -128"}, {"i8[4] -5 5 0 -128"});
  expect_eval("neg", {"u8[3] 0 1 255"}, {"u8[3] 0 255 1"});
  expect_eval("neg", {"u64[2] 1 9223372036854775808"},
              {"u64[2] 18446744073709551615 9223372036854775808"});
  expect_eval("neg", {"i64[1] -9223372036854775808"}, {"i64[1] -9223372036854775808"});
  expect_eval("abs", {"f64[4] -2.5 -0 -inf nan"}, {"f64[4] 2.5 +0 inf nan"});
  expect_eval("abs", {"i16[3] -7 7 -32768"}, {"i16[3] 7 7 -32768"});
  expect_eval("abs", {"u32[2] 0 4294967295"}, {"u32[2] 0 4294967295"});
  expect_eval("sign", {"f32[6] -3 3 -0 0 -inf nan"}, {"f32[6] -1 1 -0 +0 -1 nan"});
  expect_eval("sign", {"i32[3] -9 0 9"}, {"i32[3] -1 0 1"});
  expect_eval("sign", {"u64[2] 0 18446744073709551615"}, {"u64[2] 0 1"});
}

TEST(Unary, Rounding) {
  expect_eval("floor", {"f32[6] 1.5 -1.5 -0 2 inf nan"}, {"f32[6] 1 -2 -0 2 inf nan"});
  expect_eval("ceil", {"f32[5] 1.5 -1.5 -0.5 -inf nan"}, {"f32[5] 2 -1 -0 -inf nan"});
  expect_eval("trunc", {"f32[5] 1.9 -1.9 -0.9 inf nan"}, {"f32[5] 1 -1 -0 inf nan"});
  expect_eval("round", {"f64[8] 0.5 1.5 2.5 -0.5 -1.5 2.4999 inf nan"},
              {"f64[8] +0 2 2 -0 -2 2 inf nan"});
}

TEST(Unary, ExponentialsAndLogarithms) {
  const double tight = 1e-15;
  expect_eval("exp", {"f64[6] 0 1 -1 inf -inf nan"},
              {"f64[6] 1 2.718281828459045235 0.36787944117144232160 inf +0 nan"}, tight);
  expect_eval("exp", {"f64[1] 1000"}, {"f64[1] inf"});
  expect_eval("expm1", {"f64[5] 0 -0 1e-10 -inf nan"}, {"f64[5] +0 -0 1.00000000005e-10 -1 nan"},
              1e-25);
  expect_eval("log", {"f64[6] 1 2 0 -0 -1 inf"},
              {"f64[6] +0 0.69314718055994530942 -inf -inf nan inf"}, tight);
  expect_eval("log1p", {"f64[5] 0 1e-10 -1 -2 inf"}, {"f64[5] 0 9.9999999995e-11 -inf nan inf"},
              1e-25);
  expect_eval("sqrt", {"f64[6] 4 2 -0 -1 inf nan"},
              {"f64[6] 2 1.4142135623730950488 -0 nan inf nan"}, tight);
  expect_eval("rsqrt", {"f64[6] 4 2 0 -0 -1 inf"},
              {"f64[6] 0.5 0.70710678118654752440 inf -inf nan +0"}, tight);
}

TEST(Unary, Trigonometry) {
  const double tight = 1e-15;
  // pi/6, pi/4, pi/3 as doubles
  const char* angles =
      "f64[3] 0.52359877559829887308 0.78539816339744830962 1.04719755119659774615";
  expect_eval("sin", {angles}, {"f64[3] 0.5 0.70710678118654752440 0.86602540378443864676"}, tight);
  expect_eval("cos", {angles}, {"f64[3] 0.86602540378443864676 0.70710678118654752440 0.5"}, tight);
  expect_eval("tan", {angles}, {"f64[3] 0.57735026918962576451 1 1.73205080756887729353"}, tight);
  expect_eval("asin", {"f64[3] 0.5 1 2"},
              {"f64[3] 0.52359877559829887308 1.57079632679489661923 nan"}, tight);
  expect_eval("acos", {"f64[3] 0.5 -1 2"},
              {"f64[3] 1.04719755119659774615 3.14159265358979323846 nan"}, tight);
  expect_eval("atan", {"f64[3] 1 inf -inf"},
              {"f64[3] 0.78539816339744830962 1.57079632679489661923 -1.57079632679489661923"},
              tight);
  for (const char* op : {"sin", "cos", "tan"}) {
    expect_eval(op, {"f64[3] inf -inf nan"}, {"f64[3] nan"});
  }
}

TEST(Unary, Hyperbolics) {
  const double tight = 1e-15;
  expect_eval("sinh", {"f64[4] 0 1 inf -inf"}, {"f64[4] 0 1.17520119364380145688 inf -inf"}, tight);
  expect_eval("cosh", {"f64[4] 0 1 -1 -inf"},
              {"f64[4] 1 1.54308063481524377848 1.54308063481524377848 inf"}, tight);
  expect_eval("tanh", {"f64[4] 0 1 inf -inf"}, {"f64[4] 0 0.76159415595576488812 1 -1"}, tight);
  expect_eval("asinh", {"f64[3] 0 1 inf"}, {"f64[3] 0 0.88137358701954302523 inf"}, tight);
  expect_eval("acosh", {"f64[3] 1 2 0.5"}, {"f64[3] 0 1.31695789692481670863 nan"}, tight);
  expect_eval("atanh", {"f64[4] 0.5 1 -1 2"}, {"f64[4] 0.54930614433405484570 inf -inf nan"},
              tight);
}

TEST(Unary, LogisticIsAccurateEverywhere) {
  expect_eval("logistic", {"f64[6] 0 1 -1 inf -inf nan"},
              {"f64[6] 0.5 0.73105857863000487926 0.26894142136999512075 1 0 nan"}, 1e-16);
  // e^-700 (1 - e^-700 + ...): no cancellation, no overflow
  expect_eval("logistic", {"f64[2] -700 1000"}, {"f64[2] 9.8596765437597708567e-305 1"}, 1e-318);
  expect_eval("erf", {"f64[5] 0 0.5 1 inf -inf"},
              {"f64[5] 0 0.52049987781304653768 0.84270079294971486934 1 -1"}, 1e-16);
}

TEST(Unary, Predicates) {
  const char* all = "f16[5] 0 -65504 inf -inf nan";
  expect_eval("is_finite", {all}, {"bool[5] 1 1 0 0 0"});
  expect_eval("is_inf", {all}, {"bool[5] 0 0 1 1 0"});
  expect_eval("is_nan", {all}, {"bool[5] 0 0 0 0 1"});
}

TEST(Unary, Bits) {
  expect_eval("not", {"bool[2] 0 1"}, {"bool[2] 1 0"});
  expect_eval("not", {"i8[3] 0 -1 5"}, {"i8[3] -1 0 -6"});
  expect_eval("not", {"u16[2] 0 255"}, {"u16[2] 65535 65280"});
  expect_eval("popcount", {"i8[3] -1 7 -128"}, {"i8[3] 8 3 1"});
  expect_eval("popcount", {"u64[2] 18446744073709551615 0"}, {"u64[2] 64 0"});
  expect_eval("popcount", {"i64[1] -1"}, {"i64[1] 64"});
}

TEST(Unary, EveryRealTypeAndEveryShape) {
  for (const char* type : {"f64", "f32", "f16", "bf16"}) {
    std::string x = fmt::format("{}[3] 1 4 16", type);
    std::string y = fmt::format("{}[3] 1 2 4", type);
    expect_eval("sqrt", {x}, {y});
  }
  expect_eval("exp", {"f32[] 0"}, {"f32[] 1"});
  expect_eval("exp", {"f32[2,0,3]"}, {"f32[2,0,3]"});
  expect_eval("exp", {"f32[300,500] 0"}, {"f32[300,500] 1"});  // more than one piece
}

TEST(Unary, InferenceRefusesOtherTypes) {
  expect_infer("exp", {"bf16[N, 3]"}, {"bf16[N, 3]"});
  expect_infer("is_nan", {"f32[2*N]"}, {"bool[2*N]"});
  expect_infer_error("exp", {"i32[2]"}, "i32");
  expect_infer_error("neg", {"bool[2]"}, "bool");
  expect_infer_error("not", {"f32[2]"}, "f32");
  expect_infer_error("popcount", {"bool[2]"}, "bool");
  expect_infer_error("exp", {"f8e5m2[2]"}, "f8e5m2");
  expect_infer_error("exp", {"f32[2]", "f32[2]"}, "takes 1 operands");
}

TEST(Binary, Reals) {
  expect_eval("add", {"f32[4] 1 0.5 inf nan", "f32[4] 4 -2 -inf 1"}, {"f32[4] 5 -1.5 nan nan"});
  expect_eval("sub", {"f32[3] 1 inf -0", "f32[3] 4 inf 0"}, {"f32[3] -3 nan -0"});
  expect_eval("mul", {"f32[4] 3 -2 0 1e30", "f32[4] 0.5 -0 inf 1e30"}, {"f32[4] 1.5 +0 nan inf"});
  expect_eval("div", {"f32[5] 1 1 -1 0 1", "f32[5] 4 0 0 0 -inf"}, {"f32[5] 0.25 inf -inf nan -0"});
  expect_eval("rem", {"f64[7] 5.5 -5.5 5.5 -5.5 1 inf -0", "f64[7] 2 2 -2 -2 0 3 5"},
              {"f64[7] 1.5 -1.5 1.5 -1.5 nan nan -0"});
  expect_eval("rem", {"f64[1] -3", "f64[1] inf"}, {"f64[1] -3"});
  expect_eval("pow", {"f64[8] 2 2 -8 -2 0 nan 1 inf", "f64[8] 10 -1 0.5 3 0 0 nan -1"},
              {"f64[8] 1024 0.5 nan -8 1 1 1 0"});
  expect_eval("pow", {"f64[2] 0 -0", "f64[2] -1 -1"}, {"f64[2] inf -inf"});
  expect_eval("atan2", {"f64[5] 1 -1 0 -0 0", "f64[5] 1 1 -1 -1 0"},
              {"f64[5] 0.78539816339744830962 -0.78539816339744830962 3.14159265358979323846 "
               "-3.14159265358979323846 0"},
              1e-15);
}

TEST(Binary, MaxAndMinPropagateNanAndOrderZeros) {
  expect_eval("max", {"f32[6] 1 nan 1 -0 0 -inf", "f32[6] 2 1 nan 0 -0 -5"},
              {"f32[6] 2 nan nan +0 +0 -5"});
  expect_eval("min", {"f32[6] 1 nan 1 -0 0 -inf", "f32[6] 2 1 nan 0 -0 -5"},
              {"f32[6] 1 nan nan -0 -0 -inf"});
  expect_eval("max", {"i8[2] -1 3", "i8[2] 1 -3"}, {"i8[2] 1 3"});
  expect_eval("max", {"u64[1] 9223372036854775808", "u64[1] 1"}, {"u64[1] 9223372036854775808"});
  expect_eval("min", {"u64[1] 9223372036854775808", "u64[1] 1"}, {"u64[1] 1"});
}

TEST(Binary, IntegersWrap) {
  expect_eval("add", {"i8[2] 127 -128", "i8[2] 1 -1"}, {"i8[2] -128 127"});
  expect_eval("add", {"u8[1] 200", "u8[1] 100"}, {"u8[1] 44"});
  expect_eval("add", {"u64[1] 18446744073709551615", "u64[1] 2"}, {"u64[1] 1"});
  expect_eval("add", {"i64[1] 9223372036854775807", "i64[1] 1"}, {"i64[1] -9223372036854775808"});
  expect_eval("sub", {"u16[1] 0", "u16[1] 1"}, {"u16[1] 65535"});
  expect_eval("sub", {"i32[1] -2147483648", "i32[1] 1"}, {"i32[1] 2147483647"});
  expect_eval("mul", {"i8[2] 100 -128", "i8[2] 3 -1"}, {"i8[2] 44 -128"});
  expect_eval("mul", {"u32[1] 65536", "u32[1] 65536"}, {"u32[1] 0"});
  expect_eval("mul", {"i64[1] 4611686018427387904", "i64[1] 3"}, {"i64[1] -4611686018427387904"});
}

TEST(Binary, IntegerDivision) {
  expect_eval("div", {"i32[5] 7 -7 7 -7 5", "i32[5] 2 2 -2 -2 0"}, {"i32[5] 3 -3 -3 3 -1"});
  expect_eval("div", {"i8[2] -128 0", "i8[2] -1 0"}, {"i8[2] -128 -1"});
  expect_eval("div", {"i64[1] -9223372036854775808", "i64[1] -1"}, {"i64[1] -9223372036854775808"});
  expect_eval("div", {"u8[3] 255 7 7", "u8[3] 2 255 0"}, {"u8[3] 127 0 255"});
  expect_eval("div", {"u64[2] 18446744073709551614 1", "u64[2] 2 0"},
              {"u64[2] 9223372036854775807 18446744073709551615"});
  expect_eval("rem", {"i32[5] 7 -7 7 -7 5", "i32[5] 2 2 -2 -2 0"}, {"i32[5] 1 -1 1 -1 5"});
  expect_eval("rem", {"i16[1] -32768", "i16[1] -1"}, {"i16[1] 0"});
  expect_eval("rem", {"i64[1] -9223372036854775808", "i64[1] -1"}, {"i64[1] 0"});
  expect_eval("rem", {"u64[2] 18446744073709551615 9", "u64[2] 10 0"}, {"u64[2] 5 9"});
}

TEST(Binary, IntegerPowers) {
  expect_eval("pow", {"i32[4] 3 -2 0 7", "i32[4] 4 3 0 0"}, {"i32[4] 81 -8 1 1"});
  expect_eval("pow", {"i8[1] 2", "i8[1] 7"}, {"i8[1] -128"});
  expect_eval("pow", {"i8[5] 1 -1 -1 2 0", "i8[5] -3 -3 -2 -1 -1"}, {"i8[5] 1 -1 1 0 0"});
  expect_eval("pow", {"u8[2] 3 2", "u8[2] 6 200"}, {"u8[2] 217 0"});  // 729 = 2*256 + 217
  expect_eval("pow", {"u64[1] 3", "u64[1] 18446744073709551615"},
              {"u64[1] 12297829382473034411"});  // 1/3 modulo 2^64
}

TEST(Binary, Bits) {
  expect_eval("and", {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"}, {"bool[4] 0 0 0 1"});
  expect_eval("or", {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"}, {"bool[4] 0 1 1 1"});
  expect_eval("xor", {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"}, {"bool[4] 0 1 1 0"});
  expect_eval("and", {"i8[2] -1 12", "i8[2] 5 10"}, {"i8[2] 5 8"});
  expect_eval("or", {"i8[2] -128 12", "i8[2] 1 10"}, {"i8[2] -127 14"});
  expect_eval("xor", {"u16[2] 65535 12", "u16[2] 1 10"}, {"u16[2] 65534 6"});
}

TEST(Binary, Shifts) {
  expect_eval("shift_left", {"i8[5] 1 1 1 1 64", "i8[5] 3 7 8 -1 1"}, {"i8[5] 8 -128 0 0 -128"});
  expect_eval("shift_left", {"u64[3] 1 1 3", "u64[3] 63 64 63"},
              {"u64[3] 9223372036854775808 0 9223372036854775808"});
  expect_eval("shift_left", {"i64[2] 1 1", "i64[2] 63 64"}, {"i64[2] -9223372036854775808 0"});
  expect_eval("shift_right", {"i8[5] -8 -8 -8 8 8", "i8[5] 1 8 -1 8 2"}, {"i8[5] -4 -1 -1 0 2"});
  expect_eval("shift_right", {"u8[3] 255 255 255", "u8[3] 1 7 8"}, {"u8[3] 127 1 0"});
  expect_eval("shift_right", {"u64[2] 18446744073709551615 9223372036854775808", "u64[2] 1 63"},
              {"u64[2] 9223372036854775807 1"});
  expect_eval("shift_right", {"i64[2] -1 -9223372036854775808", "i64[2] 64 62"}, {"i64[2] -1 -2"});
}

TEST(Binary, InferenceWantsOneType) {
  expect_infer("add", {"f32[N, 1]", "f32[N, 1]"}, {"f32[N, 1]"});
  expect_infer_error("add", {"f32[2]", "f32[3]"}, "f32[2] and f32[3]");
  expect_infer_error("add", {"f32[2]", "f64[2]"}, "f32[2] and f64[2]");
  expect_infer_error("add", {"f32[N]", "f32[M]"}, "f32[N] and f32[M]");
  expect_infer_error("add", {"bool[2]", "bool[2]"}, "bool");
  expect_infer_error("max", {"bool[2]", "bool[2]"}, "bool");
  expect_infer_error("and", {"f32[2]", "f32[2]"}, "f32");
  expect_infer_error("shift_left", {"bool[2]", "bool[2]"}, "bool");
  expect_infer_error("atan2", {"i32[2]", "i32[2]"}, "i32");
  expect_infer_error("add", {"f32[2]"}, "takes 2 operands");
}

TEST(Compare, OrdersNumbersAndNotNan) {
  const char* a = "f32[5] 1 2 2 -0 nan";
  const char* b = "f32[5] 2 1 2 0 nan";
  expect_eval("compare {direction = eq}", {a, b}, {"bool[5] 0 0 1 1 0"});
  expect_eval("compare {direction = ne}", {a, b}, {"bool[5] 1 1 0 0 1"});
  expect_eval("compare {direction = lt}", {a, b}, {"bool[5] 1 0 0 0 0"});
  expect_eval("compare {direction = le}", {a, b}, {"bool[5] 1 0 1 1 0"});
  expect_eval("compare {direction = gt}", {a, b}, {"bool[5] 0 1 0 0 0"});
  expect_eval("compare {direction = ge}", {a, b}, {"bool[5] 0 1 1 1 0"});
}

TEST(Compare, KnowsSigns) {
  expect_eval("compare {direction = lt}", {"i8[2] -1 1", "i8[2] 1 -1"}, {"bool[2] 1 0"});
  expect_eval("compare {direction = lt}",
              {"u64[2] 9223372036854775808 1", "u64[2] 1 9223372036854775808"}, {"bool[2] 0 1"});
  expect_eval("compare {direction = gt}", {"bool[2] 1 0", "bool[2] 0 0"}, {"bool[2] 1 0"});
  expect_infer_error("compare {direction = lt}", {"i8[2]", "u8[2]"}, "i8[2] and u8[2]");
  expect_infer_error("compare {direction = lt}", {"i4[2]", "i4[2]"}, "i4");
}

TEST(Select, Chooses) {
  expect_eval("select", {"bool[3] 1 0 1", "f32[3] 1 nan -0", "f32[3] nan 5 6"}, {"f32[3] 1 5 -0"});
  expect_eval("select", {"bool[] 0", "u4[] 3", "u4[] 15"}, {"u4[] 15"});
  expect_eval("select", {"bool[2] 0 1", "bool[2] 0 0", "bool[2] 1 1"}, {"bool[2] 1 0"});
  expect_infer_error("select", {"bool[]", "f32[2]", "f32[2]"}, "bool[] and the choices f32[2]");
  expect_infer_error("select", {"bool[2]", "f32[2]", "f32[3]"}, "f32[2] and f32[3]");
  expect_infer_error("select", {"i32[2]", "f32[2]", "f32[2]"}, "i32");
}

TEST(Iota, CountsAlongItsAxis) {
  expect_eval("iota {dtype = i32, dims = [2, 3], axis = 1}", {}, {"i32[2,3] 0 1 2 0 1 2"});
  expect_eval("iota {dtype = bf16, dims = [2, 3], axis = 0}", {}, {"bf16[2,3] 0 0 0 1 1 1"});
  expect_eval("iota {dtype = u8, dims = [2, 0], axis = 1}", {}, {"u8[2,0]"});
  expect_infer("iota {dtype = f32, dims = [N, 3], axis = 0}", {}, {"f32[N, 3]"});
  expect_infer_error("iota {dtype = f32, dims = [2], axis = 1}", {}, "axis 1 is outside rank 1");
  expect_infer_error("iota {dtype = f32, dims = [], axis = 0}", {}, "axis 0 is outside rank 0");
  expect_infer_error("iota {dtype = bool, dims = [2], axis = 0}", {}, "bool");
}

TEST(Iota, WrapsNarrowIntegers) {
  Result<Graph> graph =
      tested::graph_of(tested::op_of("iota {dtype = i8, dims = [300], axis = 0}"), {});
  ASSERT_TRUE(graph.ok());
  Result<std::vector<Tensor>> results = evaluate(*graph, {});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->at(0).integer_at(127), 127);
  EXPECT_EQ(results->at(0).integer_at(128), -128);
  EXPECT_EQ(results->at(0).integer_at(299), 43);
}

// Known answers of Random123 (see tests/base/rng_test.cc), in decimal.
TEST(RngBits, IsThreefry) {
  expect_eval("rng_bits {dtype = u32, dims = [2]}", {"u64[] 0", "u64[] 0"},
              {"u32[2] 1797259609 2579123966"});
  expect_eval("rng_bits {dtype = u32, dims = [2]}",
              {"u64[] 247824715720788526", "u64[] 9629550131187509896"},
              {"u32[2] 3297917596 1212020640"});
  expect_eval("rng_bits {dtype = u64, dims = [1, 2]}", {"u64[] 0", "u64[] 0"},
              {"u64[1,2] 14030652003081164901 8034964082011408461"});
}

TEST(RngBits, BlocksFollowTheCounter) {
  for (DType dtype : {DType::u32, DType::u64}) {
    for (uint64_t counter :
         {uint64_t{5}, ~uint64_t{0}}) {  // the last block is followed by the first
      Tensor all = random_bits(dtype, 7, 9, counter);
      Tensor later = random_bits(dtype, 5, 9, counter + 1);
      for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(all.integer_at(i + 2), later.integer_at(i)) << i;
      EXPECT_NE(all.integer_at(0), all.integer_at(2));
    }
  }
}

TEST(RngBits, WantsScalarsAndMakesUnsignedNumbers) {
  expect_infer_error("rng_bits {dtype = i32, dims = [2]}", {"u64[]", "u64[]"}, "i32");
  expect_infer_error("rng_bits {dtype = u32, dims = [2]}", {"u64[]", "u32[]"},
                     "counter must be u64[], not u32[]");
  expect_infer_error("rng_bits {dtype = u32, dims = [2]}", {"u64[2]", "u64[]"},
                     "key must be u64[], not u64[2]");
}

}  // namespace
}  // namespace hone::HONE_FILE
