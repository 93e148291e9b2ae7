#include "ir/op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ir/op_def.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

TEST(Op, EqualAttributesGiveTheSameOp) {
  Op a = Op::get(Opcode::reduce, {{"kind", "sum"}, {"axes", Ints{1, 2}}});
  Op b = Op::get(Opcode::reduce, {{"axes", Ints{1, 2}}, {"kind", "sum"}});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a, Op::get(Opcode::reduce, {{"kind", "max"}, {"axes", Ints{1, 2}}}));
}

TEST(Op, DefaultsFillWhatIsLeftOutAndAreNotPrinted) {
  Op softmax = Op::get(Opcode::softmax);
  EXPECT_EQ(softmax.integer("axis"), -1);
  EXPECT_EQ(softmax, Op::get(Opcode::softmax, {{"axis", int64_t{-1}}}));
  EXPECT_EQ(softmax.attrs_to_string(), "");
  EXPECT_EQ(Op::get(Opcode::softmax, {{"axis", int64_t{2}}}).attrs_to_string(), "{axis = 2}");
}

// Logs and data sets name kernels by hashes of their ops: an attribute that an op gets later leaves
// those alone that do not have it.
TEST(Op, HashesStayWhatTheyWere) {
  const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
  const Op dot = Op::get(Opcode::dot, contract);
  EXPECT_EQ(dot.hash(), 3077290229019712510u);
  EXPECT_EQ(Op::get(Opcode::conv).hash(), 15513313450319730038u);
  EXPECT_NE(Op::get(Opcode::conv, {{"flush", true}}).hash(), Op::get(Opcode::conv).hash());
}

TEST(Op, TextOfAttributesParsesBack) {
  Symbol n = Symbol::get("N", 1, 64);
  const Op ops[] = {
      Op::get(Opcode::reshape, {{"dims", Dims{Dim(n) * 2, 8}}}),
      Op::get(Opcode::einsum, {{"equation", "ij,jk->ik"}}),
      Op::get(Opcode::layer_norm, {{"epsilon", 1e-12}}),
      Op::get(Opcode::cast, {{"dtype", DType::bf16}}),
      Op::get(Opcode::resize,
              {{"sizes", Dims{1, 1, 4, 4}}, {"scales", std::vector<double>{1, 1, 2, 0.5}}}),
  };
  for (Op op : ops) {
    std::string text = fmt::format("{} {}", op.name(), op.attrs_to_string());
    Result<Op> parsed = parse_op(text, {n});
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.error().to_string();
    EXPECT_EQ(*parsed, op) << text;
  }
}

TEST(Op, BindReplacesSymbols) {
  Symbol n = Symbol::get("N", 1, 64);
  Op symbolic = Op::get(Opcode::reshape, {{"dims", Dims{Dim(n) * 2, 8}}});
  EXPECT_TRUE(symbolic.has_symbols());
  Op bound = symbolic.bind({{"N", 3}});
  EXPECT_FALSE(bound.has_symbols());
  EXPECT_EQ(bound, Op::get(Opcode::reshape, {{"dims", Dims{6, 8}}}));
}

struct BadOp {
  const char* text;
  const char* what;
  const char* hint = "";
};

TEST(Op, BadAttributesAreRefusedByName) {
  const BadOp cases[] = {
      {"sofmax", "there is no op 'sofmax'", "did you mean 'softmax'?"},
      {"softmax {axes = 1}", "softmax has no attribute 'axes'", "did you mean 'axis'?"},
      {"softmax {axis = x}", "x"},
      {"softmax {axis = 1, axis = 2}", "attribute 'axis' is given twice"},
      {"softmax {axis}", "expected 'name = value', found 'axis'"},
      {"softmax {axis = 1", "expected '}' after the attributes"},
      {"reduce {axes = [1]}", "attribute 'kind' is missing"},
      {"reduce {kind = mean, axes = [1]}", "attribute 'kind' is 'mean', must be one of"},
      {"reduce {kind = sum, axes = 1}", "list ... '1'"},
      {"reduce {kind = sum, axes = [1}", "unbalanced"},
      {"reshape {dims = [N]}", "N"},
      {"softmax {axis = 4611686018427387904}", "attribute 'axis' holds a number beyond 2147483648"},
      {"slice {start = [0], limit = [1], stride = [9223372036854775807]}", "'stride' holds"},
      {"pad {low = [0], high = [0], interior = [9223372036854775807]}", "'interior' holds"},
      {"cast {dtype = f31}", "'f31' ... element type"},
  };
  for (const BadOp& bad : cases) {
    Result<Op> op = parse_op(bad.text);
    ASSERT_FALSE(op.ok()) << bad.text;
    EXPECT_TRUE(op.error().code() == ErrorCode::bad_input || op.error().code() == ErrorCode::limit);
    EXPECT_THAT(op, tested::says(bad.what)) << bad.text;
    if (*bad.hint != 0) EXPECT_EQ(op.error().hint(), bad.hint) << bad.text;
  }
}

// The table and the definitions agree, and every definition is complete.
TEST(OpTable, EveryRowHasACompleteDefinition) {
  std::set<std::string_view> names;
  for (int i = 0; i < kOpcodeCount; ++i) {
    Opcode opcode = static_cast<Opcode>(i);
    const OpDef& def = op_def(opcode);
    SCOPED_TRACE(name(opcode));
    EXPECT_EQ(def.opcode, opcode);
    EXPECT_TRUE(names.insert(name(opcode)).second) << "two rows of one name";
    EXPECT_EQ(opcode_from_name(name(opcode)), opcode);
    EXPECT_FALSE(def.summary.empty());
    for (const AttrSpec& spec : def.attrs) {
      EXPECT_FALSE(spec.doc.empty() && spec.words.empty()) << spec.name;
      if (spec.default_text.empty()) continue;
      Result<AttrValue> value = parse_attr(spec.kind, spec.default_text);
      EXPECT_TRUE(value.ok()) << spec.name << " = " << spec.default_text;
    }
    if (is_composite(opcode)) {
      EXPECT_NE(def.expand, nullptr);
      EXPECT_EQ(def.eval, nullptr) << "a composite means its expansion";
    } else {
      EXPECT_EQ(def.expand, nullptr);
      bool leaf = opcode == Opcode::parameter || opcode == Opcode::constant;
      if (!leaf) EXPECT_NE(def.infer, nullptr);
      if (!leaf) EXPECT_NE(def.eval, nullptr);
    }
  }
}

// The promises of an op's class of its definition.
TEST(OpTable, ClassesAgreeWithDefinitions) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    const OpDef& def = op_def(opcode);
    const OpClass op_class = class_of(opcode);
    SCOPED_TRACE(name(opcode));
    EXPECT_EQ(op_class == OpClass::composite, def.expand != nullptr);
    EXPECT_EQ(op_class == OpClass::control, !def.regions.empty());
    if (op_class == OpClass::elementwise) EXPECT_EQ(def.access, nullptr) << "it has the usual one";
    if (op_class == OpClass::movement || op_class == OpClass::indexed)
      EXPECT_TRUE(def.traits.moves_data);
    if (def.traits.is_piecewise) EXPECT_EQ(op_class, OpClass::movement);
    if (def.traits.identity != Identity::none) EXPECT_TRUE(def.traits.commutative);
    EXPECT_LT(def.traits.updates, std::max(1, operand_arity(def).min));
  }
}

TEST(OpTable, ReductionsFindTheOpThatCombines) {
  using Number = std::variant<int64_t, double>;
  EXPECT_EQ(combine_of("sum"), Opcode::add);
  EXPECT_EQ(combine_of("mul"), Opcode::mul);
  EXPECT_EQ(combine_of("or"), Opcode::or_);
  EXPECT_EQ(identity_of(Opcode::mul, DType::f32), Number(1.0));
  EXPECT_EQ(identity_of(Opcode::max, DType::bf16),
            Number(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(identity_of(Opcode::min, DType::i8), Number(int64_t{127}));
  EXPECT_EQ(identity_of(Opcode::and_, DType::u8), Number(int64_t{255}));
}

TEST(OpTable, PricesDependOnTheElementType) {
  EXPECT_EQ(slots_of(Opcode::div, DType::f32), 16);
  EXPECT_EQ(slots_of(Opcode::div, DType::i32), 100);
  EXPECT_EQ(slots_of(Opcode::transpose, DType::f32), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
