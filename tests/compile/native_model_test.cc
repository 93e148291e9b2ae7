#include "compile/native_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "ir/model_text.h"
#include "ir/reference/evaluate_model.h"

// Segments run by the runtime's interpreter, those that are deferred, too.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

class Source : public SegmentSource {
 public:
  explicit Source(std::function<Result<Body>(int64_t)> make) : make_(std::move(make)) {}
  Result<Body> specialize(std::span<const Type> inputs) const override {
    return make_(inputs[0].dim(0).value());
  }
  std::string describe() const override { return "node 'late'"; }

 private:
  std::function<Result<Body>(int64_t)> make_;
};

Body body_of(std::string_view text) {
  return {parse_model(fmt::format("model @m() -> () {{\n{}\n}}", text)).value().segments, {"y"}};
}

// %y: %x twice as long if its length is odd, else as rows of two: a rank that depends on a size.
Result<Body> twice_or_rows(int64_t n) {
  return n % 2 != 0 ? body_of(fmt::format("%y = run %x graph @twice(%a: f32[{}]) {{\n"
                                          "  %b = concat %a, %a {{axis = 0}} return %b }}",
                                          n))
                    : body_of(fmt::format("%y = run %x graph @rows(%a: f32[{}]) {{\n"
                                          "  %b = reshape %a {{dims = [{}, 2]}} return %b }}",
                                          n, n / 2));
}

// %x, negated, goes through what the source makes; what comes of it is added up.
Model late_model(std::function<Result<Body>(int64_t)> make) {
  Model model = parse_model(R"(
model @late(%given: f32[N]) -> () where N in 0..64 {
  %x = run %given graph @neg(%a: f32[M]) where M in 0..64 { %b = neg %a return %b }
})")
                    .value();
  model.segments.push_back(
      {DeferredSegment{std::make_shared<Source>(std::move(make)), {"x"}, {"y"}}});
  model.outputs = {{"x", model.inputs[0].type}};
  return model;
}

Tensor counting(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
  return Tensor::from_reals(Type::get(DType::f32, {n}), values);
}

std::shared_ptr<NativeModel> native(const Model& model, int64_t memory_limit = INT64_MAX) {
  return NativeModel::make(model, host_target().value(), {.memory_limit = memory_limit}).value();
}

TEST(NativeModel, MakesBodiesForTheTypesThatItMeets) {
  Model model = late_model(twice_or_rows);
  int made = 0;
  model.segments.back() = {DeferredSegment{std::make_shared<Source>([&](int64_t n) {
                                             ++made;
                                             return twice_or_rows(n);
                                           }),
                                           {"x"},
                                           {"y"}}};
  const auto run = native(model);
  for (int64_t n : {3, 4, 3, 5, 4}) {
    std::vector<UnitTimes> times;
    const std::vector<Tensor> outputs = run->run({{counting(n)}}, {}, &times).value();
    EXPECT_TRUE(outputs[0].same_bytes(evaluate_model(model, {{counting(n)}}).value()[0]));
    EXPECT_EQ(times.size(), 2u);  // @neg, and a graph of the body
  }
  EXPECT_EQ(made, 3 + 5);  // 5 of the reference, which keeps nothing
}

TEST(NativeModel, TellsWhatTimesAreOf) {
  const auto run = native(late_model(twice_or_rows));
  run->code().keep_sources();
  std::vector<UnitTimes> times;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run->run({{counting(3)}}, {}, &times).ok());
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].runs, 2);
  EXPECT_EQ(run->made(times[0])->name, "neg");
  EXPECT_EQ(run->made(times[1])->name, "twice");
  EXPECT_NE(times[0].unit, times[1].unit);
  times[1].unit = 1000;
  EXPECT_FALSE(run->made(times[1]));
}

TEST(NativeModel, ABodyWithoutEndIsOverALimit) {
  std::function<Result<Body>(int64_t)> again;
  again = [&again](int64_t) -> Result<Body> {
    Body body;
    body.segments.push_back({DeferredSegment{std::make_shared<Source>(again), {"x"}, {"y"}}});
    body.results = {"y"};
    return body;
  };
  const auto outputs = native(late_model(again))->run({{counting(2)}});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), ErrorCode::limit);
  EXPECT_THAT(outputs.error().to_string(), HasSubstr("nested"));
}

TEST(NativeModel, NamesTheSegmentThatFails) {
  const auto outputs = native(late_model([](int64_t) {
                         return Result<Body>(bad_input("no body"));
                       }))->run({{counting(2)}});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), ErrorCode::bad_input);
  EXPECT_THAT(outputs.error().where(), HasSubstr("node 'late'"));
}

// The body holds what the model holds besides.
TEST(NativeModel, BodiesShareTheMemoryOfTheModel) {
  const Model model = late_model(twice_or_rows);
  const int64_t neg = 21 * 4, twice = 2 * neg;
  EXPECT_TRUE(native(model, 4096 + neg + twice)->run({{counting(21)}}).ok());
  const auto outputs = native(model, neg + twice - 1)->run({{counting(21)}});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code(), ErrorCode::limit);
}

TEST(NativeModel, RefusesInputsAndOutputsThatDoNotFit) {
  Model model = late_model(twice_or_rows);
  EXPECT_THAT(native(model)->run({{counting(65)}}).error().what(), HasSubstr("'given'"));
  model.outputs = {{"y", model.inputs[0].type}};
  EXPECT_THAT(native(model)->run({{counting(3)}}).error().what(), HasSubstr("output 'y'"));
}

TEST(NativeModel, RunsGoSideBySide) {
  const auto run = native(late_model(twice_or_rows));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t n = 1; n <= 4; ++n)
    threads.emplace_back([&, n] {
      for (int i = 0; i < 20; ++i) {
        const auto outputs = run->run({{counting(n)}});
        if (!outputs.ok() || (*outputs)[0].real_at(n - 1) != 1.0 - static_cast<double>(n)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
