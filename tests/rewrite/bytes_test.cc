#include <gtest/gtest.h>

#include "base/rng.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

Tensor random_bytes(Type type, int64_t low, int64_t high, Rng& rng) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < type.static_elements(); ++i) numbers.push_back(rng.between(low, high));
  return Tensor::from_integers(type, numbers);
}

struct Quantized {
  DType x = DType::u8, w = DType::i8;
  int64_t x_zero = 0, w_zero = 0;
  bool is_conv = false, is_dynamic = false;  // dynamic: x's zero point is a parameter
  bool are_given = false,
       are_dynamic = false;  // weights, and their zero point, that are parameters
  Attrs attrs = {};
  int64_t lowest = 0, highest = 127;  // of w
};

Value centered(Value v, Value zero) {
  v = cast(v, DType::i32);
  return v - broadcast(cast(zero, DType::i32), v.dims(), {});
}

Graph graph_of(const Quantized& q, Rng& rng) {
  Builder b;
  const auto number = [&](DType dtype, int64_t value) {
    return b.constant(Tensor::from_integers(Type::scalar(dtype), {{value}}));
  };
  const Type x = q.is_conv ? Type::get(q.x, {2, 6, 5, 7}) : Type::get(q.x, {3, 4, 9});
  const Type w = q.is_conv ? Type::get(q.w, {8, 3, 3, 2}) : Type::get(q.w, {3, 9, 5});
  const Value weights =
      q.are_given ? b.parameter("w", w) : b.constant(random_bytes(w, q.lowest, q.highest, rng));
  const Value w_zero = q.are_dynamic ? b.parameter("w_zero", q.w, {}) : number(q.w, q.w_zero);
  const Value zero = q.is_dynamic ? b.parameter("zero", q.x, {}) : number(q.x, q.x_zero);
  Attrs attrs = q.attrs;
  if (q.is_conv)
    attrs.emplace_back("groups", 2);
  else
    attrs = {{"lhs_batch", Ints{0}},
             {"rhs_batch", Ints{0}},
             {"lhs_contract", Ints{2}},
             {"rhs_contract", Ints{1}}};
  const Value y = b.op(q.is_conv ? Opcode::conv : Opcode::dot,
                       {centered(b.parameter("x", x), zero), centered(weights, w_zero)}, attrs);
  return b.finish({y}).value();
}

// True if the product takes bytes now. It computes the same in any case.
bool takes_bytes(const Quantized& q) {
  Rng rng(1);
  const Graph before = graph_of(q, rng), after = products_of_bytes(before).value();
  std::vector<Tensor> inputs;
  for (Type type : before.input_types()) {
    const bool is_signed = type.dtype() == DType::i8;
    inputs.push_back(random_bytes(type, is_signed ? -128 : 0, is_signed ? 127 : 255, rng));
  }
  const Tensor expected = evaluate(before, inputs).value().at(0);
  const Tensor actual = evaluate(after, inputs).value().at(0);
  EXPECT_EQ(actual.content_hash(), expected.content_hash()) << print(after);
  for (NodeId n : after.nodes())
    if (class_of(after.opcode(n)) == OpClass::contraction) {
      const ValueId x = after.operands(n)[0], w = after.operands(n)[1];
      return after.type(x).dtype() == DType::u8 && after.type(w).dtype() == DType::i8;
    }
  return false;
}

TEST(ProductsOfBytes, TakeZeroPointsOutOfProducts) {
  for (bool is_conv : {false, true}) {
    SCOPED_TRACE(is_conv);
    EXPECT_TRUE(takes_bytes({.is_conv = is_conv}));
    EXPECT_TRUE(takes_bytes({.x_zero = 119, .is_conv = is_conv}));
    EXPECT_TRUE(takes_bytes({.x = DType::i8, .x_zero = -128, .is_conv = is_conv}));
    EXPECT_TRUE(takes_bytes({.x = DType::i8, .x_zero = 5, .is_conv = is_conv, .lowest = -128}));
    EXPECT_TRUE(takes_bytes({.w = DType::u8, .w_zero = 128, .is_conv = is_conv, .highest = 255}));
    EXPECT_TRUE(takes_bytes({.is_conv = is_conv, .is_dynamic = true}));
    EXPECT_TRUE(takes_bytes({.x = DType::i8, .is_conv = is_conv, .is_dynamic = true}));
  }
}

TEST(ProductsOfBytes, MayHaveTwoOperandsThatAreGiven) {
  for (DType x : {DType::u8, DType::i8})
    for (DType w : {DType::u8, DType::i8})
      for (int64_t zero : {0, 5, 100}) {
        SCOPED_TRACE(fmt::format("{} x {} less {}", name(x), name(w), zero));
        EXPECT_TRUE(takes_bytes({.x = x, .w = w, .x_zero = zero, .w_zero = 3, .are_given = true}));
        EXPECT_TRUE(takes_bytes({.x = x, .w = w, .w_zero = zero, .are_given = true}));
        EXPECT_TRUE(takes_bytes(
            {.x = x, .w = w, .is_dynamic = true, .are_given = true, .are_dynamic = true}));
      }
  // Constant ones that no i8 holds.
  EXPECT_TRUE(takes_bytes({.w = DType::u8, .w_zero = 7, .highest = 255}));
  EXPECT_TRUE(takes_bytes({.x_zero = 9, .is_conv = true, .are_given = true}));
  EXPECT_TRUE(takes_bytes({.w = DType::u8, .w_zero = 128, .is_conv = true, .are_given = true}));
}

// Padding stands for zeros, which are bytes at the zero point.
TEST(ProductsOfBytes, PadWithTheZeroPoint) {
  const Attrs pads = {{"pad_low", Ints{1, 0}}, {"pad_high", Ints{2, 1}}, {"stride", Ints{2, 1}}};
  EXPECT_TRUE(takes_bytes({.x_zero = 119, .is_conv = true, .attrs = pads}));
  EXPECT_TRUE(takes_bytes({.x = DType::i8, .x_zero = 3, .is_conv = true, .attrs = pads}));
  EXPECT_TRUE(takes_bytes({.is_conv = true, .is_dynamic = true, .attrs = pads}));
  EXPECT_TRUE(takes_bytes({.x = DType::i8, .is_conv = true, .is_dynamic = true, .attrs = pads}));
  const Attrs crops = {{"pad_low", Ints{-1, 0}}, {"pad_high", Ints{0, 1}}};
  EXPECT_TRUE(takes_bytes({.x_zero = 9, .is_conv = true, .attrs = crops}));
}

TEST(ProductsOfBytes, LeaveWhatIsNoProductOfThem) {
  // Weights that no i8 holds, and zeros between the elements.
  EXPECT_FALSE(takes_bytes({.w = DType::u8, .w_zero = 7, .is_conv = true, .highest = 255}));
  EXPECT_FALSE(takes_bytes({.w = DType::u8, .w_zero = 7, .is_conv = true, .are_given = true}));
  EXPECT_FALSE(
      takes_bytes({.x_zero = 119, .is_conv = true, .attrs = {{"input_dilation", Ints{2, 1}}}}));
  EXPECT_TRUE(takes_bytes({.is_conv = true, .attrs = {{"input_dilation", Ints{2, 1}}}}));
  const std::string text =
      "graph @g(%x: i32[2, 3], %w: i32[3, 4]) { "
      "%y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} return %y }";
  const Graph graph = parse_graph(text).value();
  EXPECT_EQ(print(products_of_bytes(graph).value()), print(graph));
}

}  // namespace
}  // namespace hone::HONE_FILE
