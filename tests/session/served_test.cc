#include "session/served.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <tuple>

#include "runtime/loaded_model.h"
#include "tensor/filled.h"
#include "tests/front/onnx_file.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

constexpr std::string_view kDouble =
    "graph @double(%x: f32[N, 2]) -> f32[N, 2] where N in 1..8 { %y = add %x, %x return %y }";

Tensor counting(int64_t rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < 2 * rows; ++i) values.push_back(static_cast<double>(i));
  return Tensor::from_reals(Type::get(DType::f32, {rows, 2}), values);
}

Result<std::unique_ptr<ServedModel>> served(std::string_view text, Given given = {}) {
  NativeOptions options;
  options.target = host_target().value();
  options.threads = 1;
  return ServedModel::make(
      HONE_TRY(parse_source(text, "test", std::move(given))), std::move(options));
}

TEST(ServedModel, CompilesAtOnceWhatHasNumbersAsSizes) {
  const auto model = served(kDouble, {.sizes = {.dims = {{"N", 3}}}}).value();
  ASSERT_NE(model->runnable()->single(), nullptr);
  EXPECT_EQ(model->inputs()[0].type, Type::get(DType::f32, {3, 2}));
  EXPECT_EQ(model->runnable()->run({{counting(3)}}).value()[0].real_at(5), 10);
  EXPECT_THAT(model->plan_text().value(), HasSubstr("plan @double"));
}

TEST(ServedModel, IsWrittenAsACompiledModel) {
  const auto model = served(kDouble, {.sizes = {.dims = {{"N", 2}}}}).value();
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "hone_served_test.honec";
  ASSERT_TRUE(model->save(path, "0").ok());
  const auto loaded = load_honec(HonecFile::open(path).value()).value();
  EXPECT_EQ(loaded->run({{counting(2)}}).value()[0].real_at(3), 6);
  std::filesystem::remove(path);
}

TEST(ServedModel, BeginsOnQuickCodeAndIsWrittenWithTheRealOne) {
  const auto made = [](QuickStart when) {
    NativeOptions options;
    options.target = host_target().value();
    options.quick_start = when;
    return ServedModel::make(
               parse_source(
                   "graph @m(%x: f32[3, 2]) { %y = tanh %x %z = sort %y {axis = 0} return %z }",
                   "test")
                   .value(),
               std::move(options))
        .value();
  };
  const auto real = made(QuickStart::never);
  const std::vector<Tensor> inputs = {counting(3)};
  const Tensor wanted = real->runnable()->run(inputs).value()[0];
  for (const bool waits : {true, false}) {
    auto quick = made(QuickStart::always);
    const std::shared_ptr<const Runnable> code = quick->runnable();
    const auto* early = dynamic_cast<const EarlyCode*>(code.get());
    ASSERT_NE(early, nullptr);
    EXPECT_TRUE(code->run(inputs).value()[0].same_bytes(wanted));
    if (waits) {
      ASSERT_TRUE(quick->finish().ok());
      EXPECT_TRUE(early->is_real());
      const std::filesystem::path path =
          std::filesystem::path(testing::TempDir()) / "hone_quick_test.honec";
      ASSERT_TRUE(quick->save(path, "0").ok());
      const auto loaded = load_honec(HonecFile::open(path).value()).value();
      EXPECT_TRUE(loaded->run(inputs).value()[0].same_bytes(wanted));
      std::filesystem::remove(path);
    }
    quick = nullptr;  // its thread ends, and whoever has the code goes on
    EXPECT_TRUE(code->run(inputs).value()[0].same_bytes(wanted));
  }
}

Tensor all_same(const Ints& dims, double value) {
  const Type type = Type::get(DType::f32, Dims(dims.begin(), dims.end()));
  return repeated(Tensor::scalar(DType::f32, value), type);
}

// A head of attention as exporters write it: positions are the first of a table, the mask has a
// size of its own, and three sizes are open.
std::string decoder_bytes() {
  onnx_testing::File file;
  auto& graph = file.graph;
  graph.input("x", DType::f32, {"batch", "new", "2"});
  graph.input("past", DType::f32, {"batch", "past_length", "2"});
  graph.input("mask", DType::f32, {"batch", "1", "total"});
  graph.constant("table", all_same({1, 64, 2}, 1));
  graph.constant("zero", onnx_testing::integers({1}, {0}));
  graph.constant("one", onnx_testing::integers({1}, {1}));
  graph.node("Shape", {"x"}, {"shape"});
  graph.node("Gather", {"shape", "one"}, {"length"});
  graph.node("Slice", {"table", "zero", "length", "one"}, {"places"});
  graph.node("Add", {"x", "places"}, {"q"});
  graph.node("Concat", {"past", "q"}, {"present"}, {{"axis", 1}});
  graph.node("Transpose", {"present"}, {"keys"}, {{"perm", Ints{0, 2, 1}}});
  graph.node("MatMul", {"q", "keys"}, {"products"});
  graph.node("Add", {"products", "mask"}, {"scores"});
  graph.node("Softmax", {"scores"}, {"weights"}, {{"axis", -1}});
  graph.node("MatMul", {"weights", "present"}, {"y"});
  graph.outputs({"y", "present"});
  return file.proto.SerializeAsString();
}

TEST(ServedModel, OfATransformerIsWrittenForAllSizes) {
  const auto model = served(decoder_bytes()).value();
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "hone_served_decoder.honec";
  const Status saved = model->save(path, "0");
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  const auto loaded = LoadedModel::load(HonecFile::open(path).value()).value();
  for (const auto& [batch, past, added] :
       {std::tuple<int64_t, int64_t, int64_t>(1, 0, 5), {1, 5, 1}, {2, 6, 3}}) {
    const std::vector<Tensor> inputs = {all_same({batch, added, 2}, 0.5),
                                        all_same({batch, past, 2}, 0.5),
                                        all_same({batch, 1, past + added}, 0.5)};
    const auto outputs = loaded->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    EXPECT_EQ((*outputs)[0].type().static_dims(), (Ints{batch, added, 2}));
    EXPECT_EQ((*outputs)[1].type().static_dims(), (Ints{batch, past + added, 2}));
    const std::vector<Tensor> expected = model->runnable()->run(inputs).value();
    EXPECT_NEAR((*outputs)[0].real_at(0), expected[0].real_at(0), 1e-6);
  }
  std::filesystem::remove(path);
}

TEST(ServedModel, RunsOpenSizesFromSeveralThreads) {
  const auto model = served(kDouble).value();
  EXPECT_EQ(model->runnable()->single(), nullptr);
  EXPECT_THAT(model->plan_text().error().what(), HasSubstr("'double' are open"));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t rows = 1; rows <= 4; ++rows)
    threads.emplace_back([&, rows] {
      for (int i = 0; i < 20; ++i) {
        const auto outputs = model->runnable()->run({{counting(rows)}});
        if (!outputs.ok() || (*outputs)[0].real_at(2 * rows - 1) != 4.0 * rows - 2) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ServedModel, IsWrittenForAllSizes) {
  const auto model = served(kDouble).value();
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "hone_served_open_test.honec";
  ASSERT_TRUE(model->save(path, "0").ok());
  const auto loaded = LoadedModel::load(HonecFile::open(path).value()).value();
  for (int64_t rows : {1, 8})
    EXPECT_EQ(loaded->run({{counting(rows)}}).value()[0].real_at(2 * rows - 1), 4.0 * rows - 2);
  std::filesystem::remove(path);
}

TEST(ServedModel, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(served(kDouble, {.sizes = {.dims = {{"N", 9}}}}).error().to_string(), HasSubstr("9"));
  const auto model = served(kDouble).value();
  EXPECT_FALSE(model->runnable()->run({{counting(9)}}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
