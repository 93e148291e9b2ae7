#include "worker/each_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/base/says_testing.h"

// Devices that take several inputs, one behind the other.

namespace hone::HONE_FILE {
namespace {

using tested::says;

const Type kNumber = Type::get(DType::i64, {});

// A device whose work is a function of the number of its run and of its input.
class Told final : public FarCode {
 public:
  using Work = std::function<Result<int64_t>(int64_t run, int64_t input, const RunOptions&)>;
  explicit Told(Work work) : work_(std::move(work)) {}

  std::span<const image::Port> inputs() const override { return in_; }
  std::span<const image::Port> outputs() const override { return out_; }
  int64_t threads() const override { return 1; }
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options) const override {
    const int64_t run = begun++;
    *static_cast<int64_t*>(outputs[0]) =
        HONE_TRY(work_(run, *static_cast<const int64_t*>(inputs[0]), options));
    ++done;
    return {};
  }

  mutable std::atomic<int64_t> begun = 0, done = 0;

 private:
  const Work work_;
  const std::vector<image::Port> in_ = {{"x", kNumber}}, out_ = {{"y", kNumber}};
};

EachDevice devices_of(const std::vector<std::shared_ptr<Told>>& all) {
  std::vector<DeviceShare> shares;
  for (const std::shared_ptr<Told>& one : all)
    shares.push_back(
        {.name = fmt::format("device {}", shares.size()), .code = nullptr, .far = one});
  return EachDevice(std::move(shares));
}

// Run k has the inputs 10 k, 10 k + 1, and so on.
std::vector<std::vector<Tensor>> inputs_of(int64_t runs, int64_t devices) {
  std::vector<std::vector<Tensor>> all(static_cast<size_t>(runs));
  for (int64_t k = 0; k < runs; ++k)
    for (int64_t d = 0; d < devices; ++d)
      all[static_cast<size_t>(k)].push_back(
          Tensor::from_integers(kNumber, std::vector<int64_t>{10 * k + d}));
  return all;
}

TEST(EachDevice, ADeviceGoesOnWhileOthersComputeWhatWasBefore) {
  constexpr int64_t kRuns = 40;
  std::atomic<int64_t> furthest = 0;
  std::shared_ptr<Told> first, second;
  const auto wait_for = [](const std::atomic<int64_t>& number, int64_t least,
                           const RunOptions& options) -> Status {
    while (number < least) {
      HONE_TRY(options.cancel->check());
      std::this_thread::yield();
    }
    return {};
  };
  first = std::make_shared<Told>([&](int64_t run, int64_t input, const RunOptions&) {
    furthest = std::max<int64_t>(furthest, run - second->done);
    return Result<int64_t>(2 * input);
  });
  // It ends no run before the first device has begun the next one.
  second = std::make_shared<Told>(
      [&](int64_t run, int64_t input, const RunOptions& options) -> Result<int64_t> {
        HONE_TRY(wait_for(first->begun, std::min(run + 2, kRuns), options));
        return 3 * input;
      });
  const EachDevice both = devices_of({first, second});
  const auto outputs = both.run_all(inputs_of(kRuns, 2)).value();
  ASSERT_EQ(outputs.size(), kRuns);
  for (int64_t k = 0; k < kRuns; ++k) {
    EXPECT_EQ(outputs[static_cast<size_t>(k)][0].integer_at(0), 20 * k);
    EXPECT_EQ(outputs[static_cast<size_t>(k)][1].integer_at(0), 30 * k + 3);
  }
  EXPECT_LE(furthest, 1) << "more messages than there are devices would be on their way";
}

TEST(EachDevice, AFailureEndsAllRunsAndSaysWhichOne) {
  const auto good = std::make_shared<Told>(
      [](int64_t, int64_t input, const RunOptions&) { return Result<int64_t>(input); });
  const auto bad =
      std::make_shared<Told>([](int64_t run, int64_t input, const RunOptions&) -> Result<int64_t> {
        if (run == 2) return bad_input("a broken wire");
        return input;
      });
  const EachDevice both = devices_of({good, bad});
  EXPECT_THAT(both.run_all(inputs_of(50, 2)), says("device 1 ... run 3 ... a broken wire"));
  EXPECT_LE(good->begun, 4);
  EXPECT_EQ(bad->begun, 3);
}

TEST(EachDevice, RefusesWhatDoesNotFitBeforeAnythingRuns) {
  const auto one = std::make_shared<Told>(
      [](int64_t, int64_t input, const RunOptions&) { return Result<int64_t>(input); });
  const EachDevice alone = devices_of({one});
  std::vector<std::vector<Tensor>> inputs = inputs_of(3, 1);
  inputs[1][0] = Tensor::zeros(Type::get(DType::f32, {2}));
  EXPECT_THAT(alone.run_all(inputs), says("run 2 ... 'x' ... f32[2] ... i64[]"));
  EXPECT_EQ(one->begun, 0);
  EXPECT_TRUE(alone.run_all({}).value().empty());
  CancelToken token;
  token.cancel();
  EXPECT_EQ(alone.run_all(inputs_of(3, 1), {.cancel = &token}).error().code(),
            ErrorCode::interrupted);
}

}  // namespace
}  // namespace hone::HONE_FILE
