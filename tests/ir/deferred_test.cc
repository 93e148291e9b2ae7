#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using tested::difference;
using tested::tensor_of;
using ::testing::HasSubstr;

using Make = std::function<Result<Body>(std::span<const Type>)>;

class FakeSource : public SegmentSource {
 public:
  explicit FakeSource(Make make) : make_(std::move(make)) {}
  Result<Body> specialize(std::span<const Type> inputs) const override { return make_(inputs); }
  std::string describe() const override { return "fake"; }

 private:
  Make make_;
};

Segment deferred(std::vector<std::string> inputs, std::vector<std::string> results, Make make) {
  return {DeferredSegment{std::make_shared<FakeSource>(std::move(make)), std::move(inputs),
                          std::move(results)}};
}

std::vector<Segment> segments_of(std::string_view text) {
  Result<Model> model = parse_model(fmt::format("model @m() -> () {{\n{}\n}}", text));
  EXPECT_TRUE(model.ok()) << model.error().to_string() << text;
  return model.ok() ? std::move(model->segments) : std::vector<Segment>();
}

Body body_of(std::string_view text, std::vector<std::string> results) {
  return {segments_of(text), std::move(results)};
}

std::vector<ModelValue> values(std::initializer_list<std::pair<std::string, std::string>> list) {
  std::vector<ModelValue> result;
  for (const auto& [name, type] : list) result.push_back({name, tested::type_of(type)});
  return result;
}

// %y: %x twice as long if its length is odd, else as rows of two: a rank that depends on a size.
Result<Body> twice_or_rows(std::span<const Type> inputs) {
  const int64_t n = inputs[0].dim(0).value();
  if (n % 2 != 0)
    return body_of(fmt::format("%y = run %x graph @twice(%x: f32[{}]) {{\n"
                               "  %y = concat %x, %x {{axis = 0}} return %y }}",
                               n),
                   {"y"});
  return body_of(fmt::format("%h = run %x graph @rows(%x: f32[{}]) {{\n"
                             "  %y = reshape %x {{dims = [{}, 2]}} return %y }}\n"
                             "%y = run %h graph @neg(%x: f32[R, 2]) where R in 0..64 {{\n"
                             "  %y = neg %x return %y }}",
                             n, n / 2),
                 {"y"});
}

// %x: f32[N] -> %y, flattened to %z: f32[K].
Model flattening_model() {
  Model model;
  model.inputs = values({{"x", "f32[N]"}});
  model.outputs = {{"z", Type::get(DType::f32, {Symbol::get("K", 0, 128)})}};
  model.segments.push_back(deferred({"x"}, {"y"}, twice_or_rows));
  model.segments.push_back(deferred({"y"}, {"z"}, [](std::span<const Type> inputs) {
    return Result<Body>(body_of(fmt::format("%z = run %y graph @flat(%y: {}) {{\n"
                                            "  %z = reshape %y {{dims = [{}]}} return %z }}",
                                            inputs[0].to_string(), inputs[0].static_elements()),
                                {"z"}));
  }));
  return model;
}

std::string run(ModelRunner& runner, const std::vector<std::string>& inputs,
                const std::vector<std::string>& wanted) {
  std::vector<Tensor> tensors;
  for (const std::string& text : inputs) tensors.push_back(tensor_of(text));
  Result<std::vector<Tensor>> results = runner.run(tensors);
  if (!results.ok()) return results.error().to_string();
  if (results->size() != wanted.size()) return fmt::format("{} results", results->size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string wrong = difference((*results)[i], tensor_of(wanted[i]));
    if (!wrong.empty()) return fmt::format("result {}{}", i, wrong);
  }
  return "";
}

TEST(Deferred, IsMadeWhenItsSizesAreKnown) {
  ModelRunner runner(flattening_model());
  EXPECT_EQ(run(runner, {"f32[1] 5"}, {"f32[2] 5 5"}), "");
  EXPECT_EQ(run(runner, {"f32[4] 1 2 3 4"}, {"f32[4] -1 -2 -3 -4"}), "");
  EXPECT_EQ(runner.specialized(), 4);
  EXPECT_EQ(run(runner, {"f32[1] 7"}, {"f32[2] 7 7"}), "");
  EXPECT_EQ(run(runner, {"f32[4] 1"}, {"f32[4] -1"}), "");
  EXPECT_EQ(runner.specialized(), 4);
  std::vector<Tensor> input = {tensor_of("f32[3] 1 2 3")};
  Result<std::vector<Tensor>> once = evaluate_model(flattening_model(), input);
  ASSERT_TRUE(once.ok()) << once.error().to_string();
  EXPECT_EQ(difference(once->at(0), tensor_of("f32[6] 1 2 3 1 2 3")), "");
}

TEST(Deferred, KeepsTheMostRecentlyUsed) {
  int made = 0;
  Model model;
  model.inputs = values({{"x", "f32[N, M, K]"}});
  model.outputs = values({{"y", "f32[N, M, K]"}});
  model.segments.push_back(deferred({"x"}, {"y"}, [&](std::span<const Type> inputs) {
    ++made;
    return Result<Body>(
        body_of(fmt::format("%y = run %x graph @n(%x: {}) {{ %y = neg %x return %y }}",
                            inputs[0].to_string()),
                {"y"}));
  }));
  ModelRunner runner(model);
  auto run_size = [&](int64_t n, int64_t m) {
    std::vector<Tensor> x = {Tensor::zeros(Type::get(DType::f32, {n, m, 4}))};
    ASSERT_TRUE(runner.run(x).ok());
  };
  for (int64_t m = 1; m <= 2; ++m)
    for (int64_t n = 0; n <= 64; ++n) run_size(n, m);
  EXPECT_EQ(made, 130);  // two more than are kept: the first two are gone
  run_size(2, 1);
  EXPECT_EQ(made, 130);
  run_size(0, 1);
  EXPECT_EQ(made, 131);
  EXPECT_EQ(runner.specialized(), 131);
}

TEST(Deferred, StandsInLoops) {
  // %s doubles its length in each iteration; its pieces %r[1] grow.
  Model model;
  model.inputs = {{"n", Type::scalar(DType::i64)},
                  {"x", tested::type_of("f32[N]")},
                  {"none", tested::type_of("f32[0]")}};
  model.outputs = {{"y", Type::get(DType::f32, {Symbol::get("A", 0, 1000)})},
                   {"firsts", Type::get(DType::f32, {Symbol::get("B", 0, 1000)})}};
  LoopSegment loop;
  loop.trip_count = "n";
  loop.carried = {{"s", "x"}};
  loop.grown = {"none"};
  loop.results = {"y", "firsts"};
  loop.body.results = {"t", "first"};
  loop.body.segments.push_back(deferred({"s"}, {"t", "first"}, [](std::span<const Type> inputs) {
    return Result<Body>(
        body_of(fmt::format("%t, %first = run %s graph @twice(%s: {}) {{\n"
                            "  %d = add %s, %s  %t = concat %s, %d {{axis = 0}}\n"
                            "  %f = slice %t {{start = [1], limit = [2]}} return %t, %f }}",
                            inputs[0].to_string()),
                {"t", "first"}));
  }));
  model.segments.push_back({std::move(loop)});
  EXPECT_TRUE(verify(model).ok()) << verify(model).error().to_string();
  ModelRunner runner(model);
  std::vector<std::string> wanted = {"f32[8] 1 2 2 4 2 4 4 8", "f32[3] 2"};
  EXPECT_EQ(run(runner, {"i64[] 3", "f32[1] 1", "f32[0]"}, wanted), "");
  EXPECT_EQ(runner.specialized(), 3);
  EXPECT_EQ(run(runner, {"i64[] 3", "f32[1] 1", "f32[0]"}, wanted), "");
  EXPECT_EQ(runner.specialized(), 3);
  EXPECT_EQ(run(runner, {"i64[] 0", "f32[1] 1", "f32[0]"}, {"f32[1] 1", "f32[0]"}), "");

  Result<Model> special = specialize(model, {{"N", 1}});  // the sizes still change in the loop
  ASSERT_TRUE(special.ok()) << special.error().to_string();
  EXPECT_NE(first_deferred(*special), nullptr);
  ModelRunner again(*special);
  EXPECT_EQ(run(again, {"i64[] 3", "f32[1] 1", "f32[0]"}, wanted), "");
}

TEST(Deferred, OnlyTheBranchThatIsTakenIsMade) {
  Model model;
  model.inputs = {{"p", Type::scalar(DType::boolean)}, {"x", tested::type_of("f32[N]")}};
  model.outputs = values({{"y", "f32[N]"}});
  IfSegment choice{.condition = "p", .on_true = {}, .on_false = {{}, {"x"}}, .results = {"y"}};
  choice.on_true = {{}, {"z"}};
  choice.on_true.segments.push_back(deferred({"x"}, {"z"}, [](std::span<const Type> inputs) {
    return Result<Body>(bad_input("cannot be for {}", inputs[0].to_string()));
  }));
  model.segments.push_back({std::move(choice)});
  ModelRunner runner(model);
  EXPECT_EQ(run(runner, {"bool[] false", "f32[2] 1 2"}, {"f32[2] 1 2"}), "");
  EXPECT_EQ(runner.specialized(), 0);
  EXPECT_THAT(run(runner, {"bool[] true", "f32[2] 1 2"}, {}), HasSubstr("cannot be for f32[2]"));
  Result<Model> special = specialize(model, {{"N", 2}});  // it may never be reached
  ASSERT_TRUE(special.ok()) << special.error().to_string();
  ModelRunner again(*special);
  EXPECT_EQ(run(again, {"bool[] false", "f32[2] 1 2"}, {"f32[2] 1 2"}), "");
}

TEST(Deferred, SpecializePutsTheBodyInItsPlace) {
  Model model = flattening_model();
  EXPECT_TRUE(graphs_of(model).empty());
  Result<std::string> text = print(model);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(text.error().what(), says("segment 'fake' ... input sizes"));
  EXPECT_THAT(text.error().hint(), says("--dim or --shape"));

  Result<Model> special = specialize(model, {{"N", 6}});
  ASSERT_TRUE(special.ok()) << special.error().to_string();
  EXPECT_EQ(first_deferred(*special), nullptr);
  EXPECT_EQ(graphs_of(*special).size(), 3u);
  EXPECT_TRUE(verify(*special).ok());
  EXPECT_TRUE(print(*special).ok());
  ModelRunner runner(*special);
  EXPECT_EQ(run(runner, {"f32[6] 2"}, {"f32[6] -2"}), "");
  EXPECT_EQ(runner.specialized(), 0);
}

// ---- Hostile ------------------------------------------------------------------------------------

// %x: f32[N] -> %y: f32[N] by a source; the error of running it.
std::string error_of(Make make) {
  Model model;
  model.inputs = values({{"x", "f32[N]"}, {"other", "f32[N]"}});
  model.outputs = values({{"y", "f32[N]"}});
  model.segments.push_back(deferred({"x"}, {"y"}, std::move(make)));
  ModelRunner runner(model);
  std::string at_run = run(runner, {"f32[2] 1 2", "f32[2] 1 2"}, {"f32[2] 1 2"});
  Result<Model> special = specialize(model, {{"N", 2}});
  EXPECT_EQ(special.ok(), at_run.empty()) << at_run;
  return at_run;
}

TEST(Deferred, ABodyMustDeliver) {
  constexpr std::string_view kPass = "%{} = run %{} graph @g(%x: f32[2]) {{ return %x }}";
  auto make = [](std::string text, std::vector<std::string> results) {
    return [=](std::span<const Type>) { return Result<Body>(body_of(text, results)); };
  };
  EXPECT_EQ(error_of(make(fmt::format(kPass, "y", "x"), {"y"})), "");
  EXPECT_THAT(error_of(make(fmt::format(kPass, "z", "x"), {"z"})), says("results ... z ... y"));
  EXPECT_THAT(error_of(make(fmt::format(kPass, "y", "x"), {})),
              HasSubstr("its results are named by nothing, must be y"));
  EXPECT_THAT(error_of(make(fmt::format(kPass, "z", "x"), {"y"})), says("'%y' ... not defined"));
  EXPECT_THAT(error_of(make(fmt::format(kPass, "y", "other"), {"y"})),
              says("'%other' ... not defined"));
  EXPECT_THAT(error_of(make(fmt::format(kPass, "x", "x"), {"y"})),
              HasSubstr("the name '%x' is given twice"));
  EXPECT_THAT(error_of(make("%y = run %x graph @g(%x: f32[3]) { return %x }", {"y"})),
              HasSubstr("is f32[2], must be f32[3]"));
  EXPECT_THAT(error_of(make("%y = run %x graph @g(%x: f32[2]) { %y = reshape %x {dims = [2, 1]} "
                            "return %y }",
                            {"y"})),
              HasSubstr("output '%y' is f32[2, 1], must be f32["));
}

TEST(Deferred, BodiesThatNeverEndAreRefused) {
  // Its body is the same segment again.
  struct Endless : SegmentSource, std::enable_shared_from_this<Endless> {
    Result<Body> specialize(std::span<const Type>) const override {
      Body body;
      body.segments.push_back({DeferredSegment{shared_from_this(), {"x"}, {"y"}}});
      body.results = {"y"};
      return body;
    }
    std::string describe() const override { return "endless"; }
  };
  Model model;
  model.inputs = values({{"x", "f32[N]"}});
  model.outputs = values({{"y", "f32[N]"}});
  model.segments.push_back({DeferredSegment{std::make_shared<Endless>(), {"x"}, {"y"}}});
  ModelRunner runner(model);
  EXPECT_THAT(run(runner, {"f32[2] 1 2"}, {}), HasSubstr("nested more than 128 deep"));
  EXPECT_THAT(specialize(model, {{"N", 2}}).error().what(), says("4096 deferred segments"));
  model.segments[0] = {DeferredSegment{nullptr, {"x"}, {"y"}}};
  EXPECT_THAT(verify(model).error().what(), says("deferred segment ... source"));
}

TEST(Deferred, WhatItGivesIsCheckedWhereItIsUsed) {
  auto three = [](std::span<const Type>) {
    return Result<Body>(
        body_of("%c = run graph @c() { %c = constant [1, 2, 3] : f32[3] return %c }", {"c"}));
  };
  // %c as whatever the rest of the model takes it for.
  auto error = [&](std::string_view rest, std::vector<ModelValue> outputs) {
    Model model;
    model.outputs = std::move(outputs);
    model.segments = segments_of(rest);
    model.segments.insert(model.segments.begin(), deferred({}, {"c"}, three));
    EXPECT_TRUE(verify(model).ok()) << verify(model).error().to_string();
    ModelRunner runner(model);
    return run(runner, {}, {});
  };
  EXPECT_THAT(error("%y = if %c { yield %c } else { yield %c }", {}),
              HasSubstr("condition '%c' is f32[3], must be bool[]"));
  EXPECT_THAT(error("%y = loop trip %c with %s = %c { yield %s }", {}),
              says("trip count '%c' ... f32[3]"));
  EXPECT_THAT(error("%y = loop while %c with %s = %c { yield %s while %c }", {}),
              HasSubstr("condition '%c' is f32[3], must be bool[]"));
  EXPECT_THAT(error("%n, %e = run graph @n() { %n = constant 2 : i64[] "
                    "%e = constant [] : f32[0, 3] return %n, %e }\n"
                    "%y = loop trip %n grow %e { yield grow %c }",
                    {}),
              says("f32[0, 3] ... f32[3] ... iteration 0"));
  EXPECT_THAT(error("%y = run %c graph @g(%x: f32[4]) { return %x }", {}),
              HasSubstr("input 0 ('x') is f32[3], but the graph 'g' takes f32[4]"));
  EXPECT_THAT(error("", values({{"c", "i64[3]"}})),
              HasSubstr("output '%c' is f32[3], must be i64[3]"));
  EXPECT_EQ(error("", {}), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
