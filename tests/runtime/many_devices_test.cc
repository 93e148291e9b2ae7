#include "runtime/many_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/job_threads.h"
#include "tests/base/says_testing.h"
#include "tests/runtime/images.h"

// Devices that divide a batch and add something up, with images made by hand: the thread sanitizer
// runs these. Images of the compiler are in tests/compile.

namespace hone::HONE_FILE {
namespace {

using namespace hone::tested;
using testing::ElementsAre;

// y = 3 x of `count` rows; s = the sum of the first rows of all devices.
Image part(int64_t count, int32_t devices, int64_t arena_bytes = 0) {
  Image image = {.name = "part", .threads = 1};
  image.inputs = {{"x", f32({count})}};
  image.outputs = {{"y", f32({count})}, {"s", f32({1})}};
  image.arena_bytes = arena_bytes;
  image.collectives = 1;
  image.commands.push_back(
      {"s", image::Start{.number = 0,
                         .collective = {.kind = CollectiveKind::all_reduce, .group_size = devices},
                         .dtype = DType::f32,
                         .from = input(0, 4),
                         .to = output(1, 4),
                         .result = "s"}});
  image.commands.push_back(
      launch(image, "scale", count, {input(0, 4 * count), output(0, 4 * count)}, {3}));
  image.commands.push_back({"wait", image::Wait{0}});
  return image;
}

constexpr int64_t kRows = 5;

// Three devices, with 2, 2 and 1 rows.
BatchDivision division() {
  return {.rows = kRows,
          .inputs = {0},
          .outputs = {0, -1},
          .shares = {{0, 2, 0}, {2, 2, 0}, {4, 1, 1}}};
}

Result<std::shared_ptr<const ManyDevices>> loaded(const BatchDivision& division,
                                                  std::vector<Image> images,
                                                  int64_t memory_limit = INT64_MAX) {
  const std::vector<image::Port> inputs = {{"x", f32({kRows})}};
  const std::vector<image::Port> outputs = {{"y", f32({kRows})}, {"s", f32({1})}};
  return ManyDevices::load(division, inputs, outputs, images,
                           {.names = {"a", "b", "c"}, .memory_limit = memory_limit});
}

std::shared_ptr<const ManyDevices> three() {
  auto made = loaded(division(), {part(2, 3), part(1, 3)});
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *made;
}

std::vector<float> values(const Tensor& tensor) {
  const std::span<const float> all = tensor.as<float>();
  return {all.begin(), all.end()};
}

Tensor rows(float first) {
  return Tensor::of<float>(f32({kRows}),
                           std::vector<float>{first, first + 1, first + 2, first + 3, first + 4});
}

void expect_right(const ManyDevices& devices, float first) {
  const auto outputs = devices.run(std::vector{rows(first)});
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_THAT(values((*outputs)[0]),
              ElementsAre(3 * first, 3 * first + 3, 3 * first + 6, 3 * first + 9, 3 * first + 12));
  EXPECT_THAT(values((*outputs)[1]), ElementsAre(3 * first + 6));  // rows 0, 2 and 4
}

TEST(ManyDevices, MeetInEachRun) {
  const auto devices = three();
  for (int i = 0; i < 100; ++i) expect_right(*devices, static_cast<float>(i));
}

TEST(ManyDevices, RunForSeveralThreadsAtOnce) {
  const auto devices = three();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) expect_right(*devices, static_cast<float>(t * 100 + i));
    });
  for (std::thread& thread : threads) thread.join();
}

// Code of a GPU, say: a run waits for the other devices while it has the device.
class OneRunAtATime final : public FarCode {
 public:
  explicit OneRunAtATime(std::shared_ptr<const Executable> code) : code_(std::move(code)) {}
  std::span<const image::Port> inputs() const override { return code_->inputs(); }
  std::span<const image::Port> outputs() const override { return code_->outputs(); }
  int64_t threads() const override { return 1; }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options) const override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return fault("another run has the device");
    return code_->run(inputs, outputs, options);
  }

 private:
  const std::shared_ptr<const Executable> code_;
  mutable std::mutex mutex_;
};

TEST(ManyDevices, RunsOfFarCodeTakeTurns) {
  const std::vector<Image> images = {part(2, 3), part(1, 3)};
  std::vector<DeviceShare> shares;
  for (const auto& [first, count, code] : division().shares) {
    DeviceShare share = load_here(shares.size(), 3, images, code, {}).value();
    share.first = first;
    share.count = count;
    share.far = std::make_shared<const OneRunAtATime>(std::move(share.code));
    shares.push_back(std::move(share));
  }
  const auto devices =
      ManyDevices::make({{{"x", f32({kRows})}, 0}},
                        {{{"y", f32({kRows})}, 0}, {{"s", f32({1})}, -1}}, kRows, std::move(shares))
          .value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) expect_right(*devices, static_cast<float>(t * 100 + i));
    });
  for (std::thread& thread : threads) thread.join();
}

// The others wait for a device that never comes.
TEST(ManyDevices, AllEndWhenOneFails) {
  const auto devices = loaded(division(), {part(2, 3), part(1, 3, 1 << 20)}, 3 << 10).value();
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(devices->run(std::vector{rows(1)}), refuses(ErrorCode::limit, "device 'c'"));
}

TEST(ManyDevices, EndWhenTheyAreCancelled) {
  const auto devices = three();
  CancelToken cancel;
  std::thread stopper([&] { cancel.cancel(); });
  for (int i = 0; i < 100; ++i) {
    const auto outputs = devices->run(std::vector{rows(1)}, {.cancel = &cancel});
    if (!outputs.ok()) EXPECT_THAT(outputs, refuses(ErrorCode::interrupted, "stopped"));
  }
  stopper.join();
  expect_right(*devices, 7);
}

TEST(ManyDevices, RefuseImagesThatDoNotFit) {
  EXPECT_THAT(loaded(division(), {part(2, 3)}), refuses(ErrorCode::bad_input, "code 1 of 1"));
  Image without = part(1, 3);
  without.commands.erase(without.commands.begin());
  without.commands.pop_back();
  EXPECT_THAT(loaded(division(), {part(2, 3), without}),
              refuses(ErrorCode::bad_input, "in another order"));
  Image sends = part(1, 3);
  sends.commands.front().kind = image::Send{};
  EXPECT_THAT(loaded(division(), {part(2, 3), sends}), refuses(ErrorCode::unsupported, "messages"));
  BatchDivision wrong = division();
  wrong.shares[2].first = 3;
  EXPECT_THAT(loaded(wrong, {part(2, 3), part(1, 3)}),
              refuses(ErrorCode::bad_input, "row 4 is the next"));
  wrong = division();
  wrong.outputs[0] = 1;
  EXPECT_THAT(loaded(wrong, {part(2, 3), part(1, 3)}), refuses(ErrorCode::bad_input, "dim 1"));
}

TEST(JobThreads, AllMembersWorkAtTheSameTime) {
  const auto threads = JobThreads::make(4).value();
  for (int job = 0; job < 50; ++job) {
    std::atomic<int> here = 0;
    const std::function<void(size_t)> meet = [&](size_t) {
      ++here;
      while (here < 4) std::this_thread::yield();
    };
    threads->start(meet);
    threads->wait();
    EXPECT_EQ(here, 4);
  }
}

TEST(JobThreads, TellsWhetherItIsDone) {
  const auto threads = JobThreads::make(1).value();
  std::atomic<bool> may_end = false;
  const std::function<void(size_t)> wait = [&](size_t) {
    while (!may_end) std::this_thread::yield();
  };
  threads->start(wait);
  EXPECT_FALSE(threads->wait_for(std::chrono::milliseconds(1)));
  may_end = true;
  threads->wait();
  EXPECT_TRUE(threads->wait_for(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace hone::HONE_FILE
