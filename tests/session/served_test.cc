#include "session/served.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/loaded_model.h"

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
  ASSERT_NE(model->executable(), nullptr);
  EXPECT_EQ(model->inputs()[0].type, Type::get(DType::f32, {3, 2}));
  EXPECT_EQ(model->run({{counting(3)}}).value()[0].real_at(5), 10);
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

TEST(ServedModel, RunsOpenSizesFromSeveralThreads) {
  const auto model = served(kDouble).value();
  EXPECT_EQ(model->executable(), nullptr);
  EXPECT_THAT(model->plan_text().error().what(), HasSubstr("'double' are open"));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t rows = 1; rows <= 4; ++rows)
    threads.emplace_back([&, rows] {
      for (int i = 0; i < 20; ++i) {
        const auto outputs = model->run({{counting(rows)}});
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
  EXPECT_FALSE(model->run({{counting(9)}}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
