#include "ir/model.h"

#include <gtest/gtest.h>

#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"
#include "tests/ir/segment_models.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

Model parse_ok(std::string_view text) {
  Result<Model> model = parse_model(text);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return {};
  Status status = verify(*model);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return std::move(model).value();
}

std::string verify_error(std::string_view text) {
  Result<Model> model = parse_model(text);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return "does not parse";
  Status status = verify(*model);
  return status.ok() ? "no error" : status.error().what();
}

std::string parse_error(std::string_view text) {
  Result<Model> model = parse_model(text);
  return model.ok() ? "no error"
                    : fmt::format("{}: {}", model.error().where(), model.error().what());
}

Tensor f32(std::vector<double> values, Dims dims) {
  return Tensor::from_reals(Type::get(DType::f32, dims), values);
}
Tensor i64(int64_t value) {
  return Tensor::from_integers(Type::scalar(DType::i64), std::span(&value, 1));
}
Tensor flag(bool value) { return Tensor::scalar(DType::boolean, value); }

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  if (is_real(tensor.dtype())) {
    tensor.read_reals(0, std::span<double>(values));
  } else {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      values[static_cast<size_t>(i)] = static_cast<double>(tensor.integer_at(i));
  }
  return values;
}

TEST(Model, ASegmentLearnsASizeFromData) {
  Model model = parse_ok(kPositives);
  auto outputs = *evaluate_model(model, std::vector{f32({-1, 2, 0, 3.5, -4, 1}, {6})});
  EXPECT_EQ(outputs[0].type().to_string(), "f32[3]");
  EXPECT_EQ(numbers(outputs[0]), (std::vector<double>{2, 3.5, 1}));
  EXPECT_EQ(numbers(outputs[1]), (std::vector<double>{4, 7, 2}));
  outputs = *evaluate_model(model, std::vector{f32({-1, -2, 0, -3.5, -4, -1}, {6})});
  EXPECT_EQ(outputs[1].type().to_string(), "f32[0]");
}

TEST(Model, OutputsCanKeepWhatF32WouldRound) {
  Model model = parse_ok(
      "graph @third(%x: f32[1]) { %three = constant 3 : f32[1] %y = div %x, %three return %y, %x "
      "}");
  auto outputs = *evaluate_model(model, std::vector{f32({1}, {1})}, {.real_outputs_as_f64 = true});
  EXPECT_EQ(outputs[0].type().to_string(), "f64[1]");
  EXPECT_EQ(outputs[0].real_at(0), 1.0 / 3.0);
  outputs = *evaluate_model(model, std::vector{f32({1}, {1})});
  EXPECT_EQ(outputs[0].real_at(0), static_cast<double>(1.0F / 3.0F));
}

TEST(Model, AGraphIsAModel) {
  Result<Graph> graph = parse_graph("graph @f(%x: f32[2], %0: f32[2]) { return %x, %x, %0 }");
  Model model = model_of(*graph);
  ASSERT_TRUE(verify(model).ok()) << verify(model).error().to_string();
  EXPECT_EQ(model.inputs[0].name, "x");
  EXPECT_EQ(model.inputs[1].name, "input1");
  // An output that is an input cannot have its name as well.
  EXPECT_EQ(model.outputs[0].name, "output0");
  EXPECT_EQ(single_graph(model)->name(), "f");
  auto outputs = *evaluate_model(model, std::vector{f32({1, 2}, {2}), f32({3, 4}, {2})});
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(numbers(outputs[1]), (std::vector<double>{1, 2}));
  EXPECT_EQ(numbers(outputs[2]), (std::vector<double>{3, 4}));
}

TEST(Model, ALoopCarriesAndGrows) {
  Model model = parse_ok(kLoop);
  auto outputs = *evaluate_model(model, std::vector{i64(3), f32({5}, {})});
  EXPECT_EQ(numbers(outputs[0]), std::vector<double>{40});
  EXPECT_EQ(outputs[1].type().to_string(), "f32[3, 2]");
  EXPECT_EQ(numbers(outputs[1]), (std::vector<double>{0, 5, 1, 10, 2, 20}));
  // The condition ends it.
  outputs = *evaluate_model(model, std::vector{i64(1000), f32({40}, {})});
  EXPECT_EQ(numbers(outputs[0]), std::vector<double>{160});
  // No iteration at all.
  outputs = *evaluate_model(model, std::vector{i64(0), f32({7}, {})});
  EXPECT_EQ(numbers(outputs[0]), std::vector<double>{7});
  EXPECT_EQ(outputs[1].type().to_string(), "f32[0, 2]");
}

TEST(Model, ALoopEndsAtTheLimit) {
  Model model = parse_ok(kLoop);
  auto outputs = evaluate_model(model, std::vector{i64(1000), f32({0}, {})}, {.max_iterations = 9});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), ErrorCode::limit);
}

// A carried value that gets longer: its graph runs at another size in each iteration.
TEST(Model, ACarriedValueMayChangeItsSize) {
  Model model = parse_ok(kGrowingState);
  auto outputs = *evaluate_model(model, std::vector{i64(2), f32({1, 2}, {2})});
  EXPECT_EQ(numbers(outputs[0]), (std::vector<double>{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(Model, IfRunsOneBody) {
  Model model = parse_ok(kIf);
  auto outputs = *evaluate_model(model, std::vector{flag(true), f32({1, 2, 3, 4}, {4})});
  EXPECT_EQ(numbers(outputs[0]), (std::vector<double>{1, 2}));
  outputs = *evaluate_model(model, std::vector{flag(false), f32({1, 2, 3, 4}, {4})});
  EXPECT_EQ(numbers(outputs[0]), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Model, TextRoundTrips) {
  for (std::string_view text : {kPositives, kLoop, kGrowingState, kIf}) {
    std::string printed = print(parse_ok(text)).value();
    EXPECT_EQ(*print(parse_ok(printed)), printed);
  }
  EXPECT_EQ(*print(parse_ok(kIf)),
            R"(model @choose(%p: bool[], %x: f32[4]) -> (%y: f32[K]) where K in 1..4 {
  %y = if %p {
    %a = run %x
      graph @half(%x: f32[4]) -> f32[2] {
        %a = slice %x {start = [0], limit = [2]} : f32[2]
        return %a
      }
    yield %a
  } else {
    yield %x
  }
}
)");
  EXPECT_NE(print(parse_ok(kLoop))
                .value()

                .find("  %end, %history = loop trip %trips while %yes counter %i "
                      "with %state = %start grow %empty {\n"),
            std::string::npos);
  EXPECT_NE(print(parse_ok(kLoop)).value().find("    yield %next grow %row while %more\n  }\n}\n"),
            std::string::npos);
}

TEST(Model, SpecializeCarriesSizesAlong) {
  constexpr std::string_view text = R"(
    model @m(%x: f32[N]) -> (%z: f32[A]) where N in 1..64, A in 1..128 {
      %y = run %x graph @a(%x: f32[P]) where P in 1..64 { %y = concat %x, %x {axis = 0} return %y }
      %z = run %y graph @b(%x: f32[Q]) where Q in 1..128 { %y = neg %x return %y }
    })";
  Model model = *specialize(parse_ok(text), {{"N", 8}});
  EXPECT_EQ(model.inputs[0].type.to_string(), "f32[8]");
  std::vector<const Graph*> graphs = graphs_of(model);
  EXPECT_EQ(graphs[0]->output_types()[0].to_string(), "f32[16]");
  EXPECT_EQ(graphs[1]->output_types()[0].to_string(), "f32[16]");
  EXPECT_FALSE(specialize(parse_ok(text), {{"N", 65}}).ok());
}

TEST(Model, SpecializeFollowsLoopsThatKeepTheirSizes) {
  constexpr std::string_view text = R"(
    model @m(%n: i64[], %x: f32[N]) -> (%z: f32[N]) where N in 1..64 {
      %z = loop trip %n with %s = %x {
        %t = run %s graph @a(%x: f32[P]) where P in 1..64 { %y = neg %x return %y }
        yield %t
      }
    })";
  Model model = *specialize(parse_ok(text), {{"N", 8}});
  EXPECT_TRUE(graphs_of(model)[0]->is_static());
  model = *specialize(parse_ok(kGrowingState), {{"N", 8}});
  EXPECT_FALSE(graphs_of(model)[0]->is_static());
}

// ---- Errors ----------------------------------------------------------------------------------

std::string with_body(std::string_view body) {
  return fmt::format("model @m(%x: f32[3], %n: i64[], %p: bool[]) -> (%y: f32[3]) {{\n{}\n}}",
                     body);
}
constexpr std::string_view kNeg = " graph @neg(%x: f32[3]) { %y = neg %x return %y }";

TEST(ModelError, NamesAreGivenOnceBeforeTheyAreRead) {
  EXPECT_THAT(verify_error(with_body(fmt::format("%y = run %z {}", kNeg))),
              says("'%z' ... not defined"));
  EXPECT_EQ(verify_error(with_body(fmt::format("%x = run %x {}", kNeg))),
            "the name '%x' is given twice");
  EXPECT_THAT(verify_error(with_body("")), says("'%y' ... not defined"));
  // A value that a body defines is not seen outside.
  EXPECT_THAT(verify_error(with_body(fmt::format(
                  "%a = if %p {{ %y = run %x {} yield %y }} else {{ yield %x }}", kNeg))),
              says("'%y' ... not defined"));
}

TEST(ModelError, CountsAndTypesMustFit) {
  EXPECT_THAT(verify_error(with_body(fmt::format("%y = run %x, %x {}", kNeg))),
              says("1 inputs ... 2"));
  EXPECT_THAT(verify_error(with_body(fmt::format("%y, %z = run %x {}", kNeg))),
              says("1 outputs ... 2"));
  EXPECT_EQ(verify_error(with_body(fmt::format("%y = run %n {}", kNeg))),
            "is i64[], must be f32[3]");
  EXPECT_EQ(
      verify_error(with_body("%y = run graph @c() { %c = constant [1, 2] : f32[2] return %c }")),
      "is f32[2], must be f32[3] (dim 0: size 2 is not 3)");
  EXPECT_EQ(verify_error(with_body("%y = if %x { yield %x } else { yield %x }")),
            "condition '%x' is f32[3], must be bool[]");
  EXPECT_EQ(verify_error(with_body("%y = if %p { yield %x } else { yield %n }")),
            "result '%y' of if is f32[3] or i64[]");
  EXPECT_THAT(verify_error(with_body("%y = if %p { yield %x, %x } else { yield %x }")),
              says("if ... 1 results ... 2 and 1"));
}

TEST(ModelError, LoopsMustEndAndKeepTheirTypes) {
  EXPECT_THAT(verify_error(with_body("%y = loop while %p with %s = %x { yield %s }")),
              says("loop ... trip count ... condition"));
  EXPECT_THAT(verify_error(with_body("%y = loop trip %x with %s = %x { yield %s }")),
              says("trip count '%x' ... f32[3]"));
  EXPECT_EQ(verify_error(with_body("%y = loop trip %n with %s = %x { yield %n }")),
            "result '%y' of loop is f32[3] or i64[]");
  EXPECT_THAT(verify_error(with_body("%y = loop trip %n grow %n { yield grow %n }")),
              says("'%y' ... loop ... axis"));
  EXPECT_THAT(verify_error(with_body("%y = loop trip %n with %s = %x grow %x { yield %s }")),
              says("loop ... 1 values ... 1 ... 1 results ... 1"));
}

TEST(ModelError, CropsNeedAnAxisAndACount) {
  auto error = [](std::string_view crop) {
    return verify_error(with_body(fmt::format(
        "%y, %c = run %x, %n crop {} graph @g(%x: f32[3], %n: i64[]) {{ return %x, %n }}", crop)));
  };
  EXPECT_EQ(error("%y[0] to %c"), "no error");
  EXPECT_THAT(error("%y[1] to %c"), says("output 0 ... rank 1 ... axis 1"));
  EXPECT_THAT(error("%c[0] to %y"), says("output 1 ... output 0 ... f32[3]"));
  EXPECT_THAT(error("%y[0] to %c, %y[0] to %c"), says("output 0 ... twice ... axis 0"));
}

TEST(ModelError, ACountMustBeWithinTheSize) {
  Model model = parse_ok(
      "model @m(%x: f32[3], %n: i64[]) -> (%y: f32[K]) where K in 0..3 {\n"
      "%y, %c = run %x, %n crop %y[0] to %c graph @g(%x: f32[3], %n: i64[]) { return %x, %n } }");
  auto run = [&](int64_t count) {
    return evaluate_model(model, std::vector{f32({1, 2, 3}, {3}), i64(count)});
  };
  EXPECT_EQ(numbers((*run(2))[0]), (std::vector<double>{1, 2}));
  EXPECT_THAT(run(4).error().what(), says("'%y' ... 4 ... axis 0 ... 3"));
  EXPECT_THAT(run(-1).error().what(), says("'%y' ... -1 ... axis 0 ... 3"));
}

TEST(ModelError, InputsAndOutputsMustBeAsDeclared) {
  Model model = parse_ok(kPositives);
  EXPECT_EQ(evaluate_model(model, {}).error().what(),
            "model 'positives' takes 1 inputs, 0 are given");
  EXPECT_EQ(evaluate_model(model, std::vector{f32({1, 2}, {2})}).error().what(),
            "input '%x' is f32[2], must be f32[6] (dim 0: size 2 is not 6)");
  model = parse_ok(kGrowingState);
  EXPECT_THAT(evaluate_model(model, std::vector{i64(9), f32({1, 2}, {2})}).error().what(),
              says("output '%y' ... f32[1024] ... f32[L] ... dim 0 ... 1024 ... 1..1000"));
}

TEST(ModelError, TextErrorsHaveTheirPlace) {
  EXPECT_EQ(parse_error("modl"), "<text>:1:1: expected 'model' or 'graph', found 'modl'");
  EXPECT_THAT(parse_error("model @m() -> () { %3 = run"),
              says("<text>:1:20: ... names ... numbers"));
  EXPECT_EQ(parse_error("model @m() -> () { %y = ran"),
            "<text>:1:25: expected 'run', 'if' or 'loop', found 'ran'");
  EXPECT_THAT(parse_error("model @m() -> () { %y = run crop %z[0] to %y"),
              says("<text>:1:34: ... %z ... result"));
  std::string deep = "model @m(%p: bool[]) -> () {";
  for (int i = 0; i < 100; ++i) deep += " if %p {";
  EXPECT_THAT(parse_error(deep), says("segments ... 64"));
}

}  // namespace
}  // namespace hone::HONE_FILE
