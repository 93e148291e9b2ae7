#include "runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/base/allocations.h"
#include "tests/base/says_testing.h"
#include "tests/runtime/images.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using namespace hone::tested;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Executable> load(const Image& image, const LoadOptions& options = {}) {
  auto result = Executable::load(image, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().to_string());
  return result.value();
}

Tensor floats(std::vector<float> values) {
  return Tensor::of<float>(f32({static_cast<int64_t>(values.size())}), values);
}
Tensor filled(int64_t n, float value) {
  return floats(std::vector<float>(static_cast<size_t>(n), value));
}
std::vector<float> values(const Tensor& tensor) {
  const std::span<const float> all = tensor.as<float>();
  return {all.begin(), all.end()};
}

std::vector<float> run(const Image& image, std::vector<Tensor> inputs) {
  return values(load(image)->run(inputs).value().front());
}

// An image from x[n] to y[m].
Image image_of(int64_t n, int64_t m) {
  Image image = {.name = "test", .threads = 2};
  image.inputs = {{"x", f32({n})}};
  image.outputs = {{"y", f32({m})}};
  return image;
}

// ---- What it computes --------------------------------------------------------------------------

TEST(Executable, RunsCommandsInOrder) {
  for (int64_t threads : {1, 2, 3}) {
    const Image image = affine(5, floats({1, 2, 3, 4, 5}), threads);
    EXPECT_THAT(run(image, {floats({10, 20, 30, 40, 50})}), ElementsAre(33, 66, 99, 132, 165));
  }
}

TEST(Executable, PhasesWaitForEachOther) {
  constexpr int64_t kSize = 1000;
  Image image = image_of(kSize, kSize);
  image.arena_bytes = 4 * kSize;
  image.commands.push_back(launch(image, "square", kSize,
                                  {input(0, 4 * kSize), arena(0, 4 * kSize), output(0, 4 * kSize)},
                                  {kSize}));
  image.kernels[0].phases.push_back({"reverse", kSize, true});
  std::vector<float> x(kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::shared_ptr<const Executable> executable = load(image);
  for (int times = 0; times < 50; ++times) {
    const std::vector<float> y = values(executable->run({{floats(x)}}).value().front());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[kSize - 1 - i] * x[kSize - 1 - i]);
  }
}

// Copies that threads share: whole pieces and the rest, and one whose ends overlap.
TEST(Executable, CopiesOfAnySizeAreWhole) {
  for (int64_t threads : {1, 3}) {
    for (int64_t size : {131'071, 131'072, 1'000'003}) {
      Image image = image_of(size, size);
      image.threads = threads;
      image.arena_bytes = 8 * size;
      image.commands = {{"in", image::Copy{input(0, 4 * size), arena(0, 4 * size)}},
                        {"over", image::Copy{arena(0, 4 * size), arena(4, 4 * size)}},
                        {"out", image::Copy{arena(4, 4 * size), output(0, 4 * size)}}};
      std::vector<float> x(static_cast<size_t>(size));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      const Result<std::vector<Tensor>> results = load(image)->run({{floats(x)}});
      ASSERT_TRUE(results.ok()) << results.error().to_string();
      EXPECT_EQ(values(results->front()), x);
    }
  }
}

TEST(Executable, EachThreadHasScratchOfItsOwn) {
  constexpr int64_t kSize = 999;
  Image image = image_of(kSize, kSize);
  image.threads = 3;
  image.commands.push_back(
      launch(image, "with_scratch", kSize, {input(0, 4 * kSize), output(0, 4 * kSize)}));
  image.kernels[0].scratch_bytes = 4 * kSize;
  EXPECT_THAT(run(image, {filled(kSize, 41)}), Each(42));
}

// y[i] = x[n - 1 - i] for each trip, one number a time; both ways round.
TEST(Executable, PlacesMoveWithLoops) {
  for (bool reverse : {false, true}) {
    Image image = image_of(4, 4);
    image.loops = 1;
    const image::Place from = moving(input(0, 4, 12), {{0, -4}});
    const image::Place to = moving(output(0, 4), {{0, 4}});
    image.commands.push_back(
        {"loop", image::Repeat{0, 4, reverse, {{"copy", image::Copy{from, to}}}}});
    EXPECT_THAT(run(image, {floats({1, 2, 3, 4})}), ElementsAre(4, 3, 2, 1));
  }
}

// A value that a trip reads of the trip before shows the order: y[0] = 1, y[i] = y[i - 1] * 2.
TEST(Executable, TripsAreInOrder) {
  Image image = image_of(1, 5);
  image.loops = 1;
  image.commands.push_back({"first", image::Copy{input(0, 4), output(0, 4)}});
  image::Command step = launch(
      image, "scale", 1, {moving(output(0, 4), {{0, 4}}), moving(output(0, 4, 4), {{0, 4}})}, {2});
  image.commands.push_back({"loop", image::Repeat{0, 4, false, {step}}});
  EXPECT_THAT(run(image, {floats({1})}), ElementsAre(1, 2, 4, 8, 16));
  // And downwards: y[4] = x, y[i] = y[i + 1] * 2.
  image.commands[0] = {"first", image::Copy{input(0, 4), output(0, 4, 16)}};
  std::get<image::Launch>(step.kind).buffers = {moving(output(0, 4, 4), {{0, 4}}),
                                                moving(output(0, 4), {{0, 4}})};
  image.commands[1] = {"loop", image::Repeat{0, 4, true, {step}}};
  EXPECT_THAT(run(image, {floats({1})}), ElementsAre(16, 8, 4, 2, 1));
}

// A transpose of 2 x 3, by two loops.
TEST(Executable, LoopsNest) {
  Image image = image_of(6, 6);
  image.loops = 2;
  const image::Copy copy = {moving(input(0, 4), {{1, 12}, {0, 4}}),
                            moving(output(0, 4), {{1, 4}, {0, 8}})};
  image.commands = {
      {"rows",
       image::Repeat{1, 2, false, {{"columns", image::Repeat{0, 3, false, {{"copy", copy}}}}}}}};
  EXPECT_THAT(run(image, {floats({1, 2, 3, 4, 5, 6})}), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Executable, LoopsWithoutTripsDoNothing) {
  Image image = image_of(1, 1);
  image.loops = 1;
  // There is no trip in which this would be out of bounds.
  const image::Copy copy = {input(0, 4), moving(output(0, 4, 4), {{0, 4}})};
  image.commands = {{"y", image::Copy{input(0, 4), output(0, 4)}},
                    {"loop", image::Repeat{0, 0, false, {{"copy", copy}}}}};
  EXPECT_THAT(run(image, {floats({7})}), ElementsAre(7));
}

TEST(Executable, BranchesOnAByte) {
  Image image = {.name = "branch"};
  image.inputs = {{"if", Type::scalar(DType::boolean)}, {"a", f32({1})}, {"b", f32({1})}};
  image.outputs = {{"y", f32({1})}};
  image.commands = {{"if", image::Branch{input(0, 1),
                                         {{"a", image::Copy{input(1, 4), output(0, 4)}}},
                                         {{"b", image::Copy{input(2, 4), output(0, 4)}}}}}};
  for (bool condition : {true, false}) {
    const Tensor flag = Tensor::from_integers(Type::scalar(DType::boolean), {{condition}});
    EXPECT_THAT(run(image, {flag, floats({1}), floats({2})}), ElementsAre(condition ? 1 : 2));
  }
}

// Counts from x to 10.
Image counting_loop() {
  Image image = {.name = "count"};
  image.inputs = {{"x", Type::scalar(DType::i64)}};
  image.outputs = {{"y", Type::scalar(DType::i64)}};
  image.arena_bytes = 1;
  image::Command test = launch(image, "is_below", 1, {output(0, 8), arena(0, 1)}, {10});
  image::Command body = launch(image, "count_up", 1, {output(0, 8)});
  image.commands = {{"start", image::Copy{input(0, 8), output(0, 8)}},
                    {"while", image::While{{test}, arena(0, 1), {body}}}};
  return image;
}

TEST(Executable, WhileTestsFirst) {
  for (auto [start, end] : {std::pair(3, 10), std::pair(10, 10), std::pair(12, 12)}) {
    const Tensor x = Tensor::scalar(DType::i64, start);
    EXPECT_EQ(load(counting_loop())->run({{x}}).value()[0].integer_at(0), end);
  }
}

// ---- How it runs -------------------------------------------------------------------------------

TEST(Executable, ASecondRunAllocatesNothing) {
#ifndef HONE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "allocations cannot be counted here";
#endif
  constexpr int64_t kSize = 256;
  Image image = affine(kSize, filled(kSize, 1));
  image.loops = 1;
  image.commands.push_back(
      {"loop", image::Repeat{0,
                             8,
                             false,
                             {{"copy", image::Copy{moving(input(0, 4), {{0, 4}}),
                                                   moving(arena(0, 4), {{0, 4}})}}}}});
  const std::shared_ptr<Team> team = Team::create({.threads = 2}).value();
  // A worker allocates a stack for signals when it starts, which may be late.
  std::atomic<bool> has_worked = false;
  const auto main_thread = std::this_thread::get_id();
  while (!has_worked)
    team->run(2, 2, [&](int64_t, int64_t, int64_t) noexcept {
      if (std::this_thread::get_id() != main_thread) has_worked = true;
    });
  const std::shared_ptr<const Executable> executable = load(image, {.team = team});
  alignas(64) float x[kSize] = {}, y[kSize];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  ASSERT_TRUE(executable->run(inputs, outputs).ok());
  is_counting = true;
  for (int i = 0; i < 100; ++i) {
    x[5] = static_cast<float>(i);
    if (!executable->run(inputs, outputs).ok() || y[5] != 3 * (x[5] + 1)) allocations = -1;
  }
  is_counting = false;
  EXPECT_EQ(allocations, 0);
}

TEST(Executable, OutputsLieInTheMemoryOfEarlierOnes) {
  constexpr int64_t kSize = 100'000;
  const auto executable = load(affine(kSize, filled(kSize, 3), 1));
  Tensor held = executable->run(std::vector{filled(kSize, 10)}).value().front();
  Tensor other = executable->run(std::vector{filled(kSize, 20)}).value().front();
  const void* const where = other.bytes().data();
  EXPECT_NE(where, held.bytes().data());
  other = {};
  other = executable->run(std::vector{filled(kSize, 30)}).value().front();
  EXPECT_EQ(other.bytes().data(), where);
  EXPECT_THAT(values(other), Each(99));
  EXPECT_THAT(values(held), Each(39));
}

TEST(Executable, RunsInManyThreadsAtOnce) {
  constexpr int64_t kSize = 300;
  const std::shared_ptr<const Executable> executable = load(affine(kSize, filled(kSize, 1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = filled(kSize, static_cast<float>(t));
      for (int i = 0; i < 200; ++i) {
        const std::vector<Tensor> y = executable->run({{x}}).value();
        EXPECT_THAT(values(y[0]), Each(3 * (t + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Executable, ExecutablesShareATeam) {
  const std::shared_ptr<Team> team = Team::create({.threads = 2}).value();
  const std::shared_ptr<const Executable> one = load(affine(9, filled(9, 1), 1), {.team = team});
  const std::shared_ptr<const Executable> many = load(affine(9, filled(9, 2), 8), {.team = team});
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(values(one->run({{filled(9, 1)}}).value()[0]), Each(6));
    EXPECT_THAT(values(many->run({{filled(9, 1)}}).value()[0]), Each(9));
  }
}

TEST(Executable, StopsWhenItIsCancelled) {
  Image image = counting_loop();
  std::get<image::Launch>(std::get<image::While>(image.commands[1].kind).test[0].kind).symbols = {
      INT64_MAX};
  const std::shared_ptr<const Executable> executable = load(image);
  CancelToken cancel;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    cancel.cancel();
  });
  const auto result = executable->run({{Tensor::scalar(DType::i64, 0)}}, {.cancel = &cancel});
  canceller.join();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::interrupted);
}

TEST(Executable, ConstantsAreUsedInPlaceOrAligned) {
  alignas(64) float memory[20] = {};
  const auto owner = std::make_shared<int>(0);
  const auto at = [&](size_t offset) {
    const std::span<const float> part(memory + offset, 4);
    return Tensor::shared(f32({4}), owner, std::as_bytes(part)).value();
  };
  const std::shared_ptr<const Executable> in_place = load(affine(4, at(0)));
  const std::shared_ptr<const Executable> copied = load(affine(4, at(1)));
  memory[0] = memory[1] = 5;
  EXPECT_THAT(values(in_place->run({{filled(4, 1)}}).value()[0]), ElementsAre(18, 18, 3, 3));
  EXPECT_THAT(values(copied->run({{filled(4, 1)}}).value()[0]), Each(3));
}

TEST(Executable, InputsNeedNotBeAlignedWhenTheyAreTensors) {
  alignas(64) std::byte memory[17] = {};
  const Tensor x = Tensor::shared(f32({4}), std::make_shared<int>(0),
                                  std::span<const std::byte>(memory).subspan(1))
                       .value();
  EXPECT_THAT(run(affine(4, filled(4, 2)), {x}), Each(6));
}

// ---- Donation ----------------------------------------------------------------------------------

// y = x, then y += w, in place.
Image accumulating(int64_t n, const Tensor& w) {
  Image image = image_of(n, n);
  image.donations = {{0, 0}};
  image.constants = {w};
  image.commands.push_back({"y", image::Copy{input(0, 4 * n), output(0, 4 * n)}});
  image.commands.push_back(
      launch(image, "add", n, {output(0, 4 * n), constant(0, 4 * n), output(0, 4 * n)}));
  return image;
}

TEST(Executable, AnOutputMayLieInItsDonor) {
  const std::shared_ptr<const Executable> executable = load(accumulating(4, filled(4, 2)));
  EXPECT_EQ(executable->donors()[0], 0u);
  alignas(64) float x[4] = {1, 2, 3, 4}, y[4] = {};
  const void* inputs[] = {x};
  void* outputs[] = {y};
  ASSERT_TRUE(executable->run(inputs, outputs).ok());
  EXPECT_THAT(x, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(y, ElementsAre(3, 4, 5, 6));
  outputs[0] = x;
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(executable->run(inputs, outputs).ok());
  EXPECT_THAT(x, ElementsAre(5, 6, 7, 8));
}

TEST(Executable, TensorsThatAreGivenUpBecomeOutputs) {
  const std::shared_ptr<const Executable> executable = load(accumulating(4, filled(4, 2)));
  std::vector<Tensor> state = {floats({1, 2, 3, 4})};
  const std::byte* memory = state[0].bytes().data();
  state = executable->run_donating(std::move(state)).value();
  EXPECT_THAT(values(state[0]), ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(state[0].bytes().data(), memory);
  // Not those that somebody else has.
  const Tensor kept = state[0];
  state = executable->run_donating(std::move(state)).value();
  EXPECT_THAT(values(kept), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(values(state[0]), ElementsAre(5, 6, 7, 8));
}

TEST(Executable, OutputsThatOverlapAreRefused) {
  const auto error = [](const Executable& executable, const float* x, float* y) {
    const void* inputs[] = {x};
    void* outputs[] = {y};
    const Status status = executable.run(inputs, outputs);
    return status.ok() ? "" : status.error().to_string();
  };
  alignas(64) float memory[8] = {};
  const std::shared_ptr<const Executable> given = load(accumulating(4, filled(4, 2)));
  const std::shared_ptr<const Executable> other = load(affine(4, filled(4, 2)));
  EXPECT_THAT(error(*other, memory, memory), HasSubstr("output 'y' overlaps input 'x'"));
  EXPECT_THAT(error(*other, memory, memory + 3), HasSubstr("output 'y' overlaps input 'x'"));
  EXPECT_EQ(error(*other, memory, memory + 4), "");
  EXPECT_EQ(error(*other, memory + 4, memory), "");
  EXPECT_THAT(error(*given, memory, memory + 1), says("input 'x'"));

  Image two = image_of(4, 4);
  two.outputs.push_back({"z", f32({4})});
  for (uint32_t i = 0; i < 2; ++i)
    two.commands.push_back({"copy", image::Copy{input(0, 16), output(i, 16)}});
  const std::shared_ptr<const Executable> copies = load(two);
  const void* inputs[] = {memory};
  void* outputs[] = {memory + 4, memory + 4};
  EXPECT_THAT(copies->run(inputs, outputs).error().to_string(), HasSubstr("overlaps output"));
}

TEST(Executable, DonationsThatDoNotFitAreRefused) {
  const auto error = [](std::vector<image::Donation> donations, int64_t m) {
    Image image = image_of(4, m);
    image.donations = std::move(donations);
    const auto loaded = Executable::load(image);
    return loaded.ok() ? "" : loaded.error().to_string();
  };
  EXPECT_THAT(error({{1, 0}}, 4), says("input 1 ... output 0"));
  EXPECT_THAT(error({{0, 1}}, 4), says("input 0 ... output 1"));
  EXPECT_THAT(error({{0, 0}, {0, 0}}, 4), HasSubstr("donated twice"));
  EXPECT_THAT(error({{0, 0}}, 5), HasSubstr("output 'y' is f32[5]"));
}

TEST(Executable, EmptyTensorsNeedNoMemory) {
  const std::shared_ptr<const Executable> executable = load(affine(0, filled(0, 0)));
  EXPECT_EQ(executable->run({{filled(0, 0)}}).value()[0].elements(), 0);
  const void* inputs[] = {nullptr};
  void* outputs[] = {nullptr};
  EXPECT_TRUE(executable->run(inputs, outputs).ok());
}

// ---- What it tells -----------------------------------------------------------------------------

TEST(Executable, ProfilesCountRunsAndTime) {
  Image image = image_of(4, 4);
  image.loops = 1;
  const image::Place from = moving(input(0, 4, 0), {{0, 4}});
  image.commands.push_back(launch(image, "scale", 4, {input(0, 16), output(0, 16)}, {2}));
  image.commands.push_back(
      {"loop", image::Repeat{0, 4, false, {{"step", image::Copy{from, output(0, 4)}}}}});
  const std::shared_ptr<const Executable> executable = load(image);
  Profile profile;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(executable->run({{floats({1, 2, 3, 4})}}, {.profile = &profile}).ok());
  ASSERT_EQ(profile.size(), 2u);
  EXPECT_EQ(profile[0].command, "scale");
  EXPECT_EQ(profile[0].kernel, "scale");
  EXPECT_EQ(profile[0].runs, 3);
  EXPECT_GT(profile[0].least, 0);
  EXPECT_GE(profile[0].seconds, 3 * profile[0].least);
  EXPECT_EQ(profile[1].command, "step");
  EXPECT_EQ(profile[1].kernel, "");
  EXPECT_EQ(profile[1].runs, 12);

  const std::shared_ptr<const Executable> other = load(image_of(4, 4));
  EXPECT_THAT(other->run({{filled(4, 1)}}, {.profile = &profile}).error().what(),
              HasSubstr("the profile has 2 commands"));
}

// A launch has one entry of the caller, and one for each part that another thread had.
TEST(Executable, TracesLaunchesAndCopies) {
  constexpr int64_t kSize = 1 << 20;
  Image image = image_of(kSize, kSize);
  image.arena_bytes = 4 * kSize;
  image.commands.push_back(launch(image, "square", kSize,
                                  {input(0, 4 * kSize), arena(0, 4 * kSize), output(0, 4 * kSize)},
                                  {kSize}));
  image.kernels[0].phases.push_back({"reverse", kSize, true});
  image.commands.push_back({"move", image::Copy{input(0, 4), output(0, 4)}});
  const std::shared_ptr<const Executable> executable = load(image);
  Profile profile;
  RunTrace trace = {.program = 7};
  const std::vector<Tensor> x = {filled(kSize, 2)};
  constexpr int kRuns = 20;
  for (int run = 0; run < kRuns; ++run)
    ASSERT_TRUE(executable->run(x, {.profile = &profile, .trace = &trace}).ok());
  std::array<int, 2> own = {}, others = {};
  for (const RunTrace::Entry& entry : trace.entries) {
    EXPECT_EQ(entry.program, 7u);
    ASSERT_LT(entry.command, 2u);
    EXPECT_LE(entry.span.begin, entry.span.end);
    ++(entry.span.thread == this_thread() ? own : others)[entry.command];
  }
  EXPECT_EQ(own, (std::array{kRuns, kRuns}));
  EXPECT_LE(others[0], 2 * kRuns);
  EXPECT_EQ(others[1], 0);
  EXPECT_EQ(trace.lost, 0);
}

TEST(Executable, TracesAsFarAsThereIsRoom) {
  const std::shared_ptr<const Executable> executable = load(affine(1, floats({1})));
  Profile profile;
  RunTrace trace = {.most = 3};
  for (int run = 0; run < 10; ++run)
    ASSERT_TRUE(executable->run({{floats({1})}}, {.profile = &profile, .trace = &trace}).ok());
  EXPECT_EQ(trace.entries.size(), 3u);
  EXPECT_EQ(trace.lost, static_cast<int64_t>(10 * profile.size()) - 3);
}

// ---- What it refuses ---------------------------------------------------------------------------

TEST(Executable, ChecksWhatItIsRunOn) {
  const std::shared_ptr<const Executable> executable = load(affine(4, filled(4, 1)));
  EXPECT_THAT(executable->run({}).error().what(), says("0 inputs ... 1 ... needed"));
  EXPECT_THAT(executable->run({{filled(5, 1)}}).error().what(),
              says("input 'x' ... f32[5] ... f32[4]"));
  alignas(64) float x[5], y[4];
  const void* none[] = {nullptr};
  const void* odd[] = {reinterpret_cast<char*>(x) + 2};
  const void* good[] = {x};
  void* outputs[] = {y};
  EXPECT_THAT(executable->run(none, outputs).error().what(), HasSubstr("'x' has no memory"));
  EXPECT_THAT(executable->run(odd, outputs).error().what(), says("aligned ... 4 bytes"));
  EXPECT_THAT(executable->run(good, {}).error().what(), says("0 outputs ... 1 ... needed"));
}

TEST(Executable, MemoryHasALimit) {
  Image image = affine(4, filled(4, 1));
  const auto limited = load(image, {.memory_limit = 4096 - 1});
  const auto status = limited->run({{filled(4, 1)}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::limit);
  EXPECT_THAT(status.error().to_string(), says("4095 ... image 'affine'"));
  EXPECT_TRUE(load(image, {.memory_limit = 4096})->run({{filled(4, 1)}}).ok());

  image.arena_bytes = int64_t{1} << 60;  // more than addresses
  const auto huge = load(image)->run({{filled(4, 1)}});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code(), ErrorCode::limit);
  image.arena_bytes = INT64_MAX;
  EXPECT_EQ(Executable::load(image).error().code(), ErrorCode::limit);
}

TEST(Executable, RefusesCodeThatThisMachineLacksInstructionsFor) {
  Image image = affine(4, filled(4, 1));
  image.kernels[0].needs = {Isa::avx512, {Extension::amx_int8}};
  const auto refusal = [&](const Instructions& machine) {
    const auto loaded = Executable::load(image, {.machine = machine});
    return loaded.ok() ? "" : loaded.error().to_string();
  };
  EXPECT_EQ(refusal({Isa::avx512, {Extension::amx_int8, Extension::amx_bf16}}), "");
  EXPECT_THAT(refusal({Isa::avx2, {}}), says("needs avx512 ... avx2"));
  EXPECT_THAT(refusal({Isa::avx512, {Extension::amx_bf16}}),
              HasSubstr("needs amx_int8, which this machine lacks"));
  EXPECT_EQ(Executable::load(image, {.machine = Instructions{}}).error().code(),
            ErrorCode::unsupported);
}

// Each case breaks a good image in one way.
TEST(Executable, RefusesImagesThatReachBeyondTheirMemory) {
  struct Case {
    std::string_view words;
    std::function<void(Image&)> change;
  };
  const auto launch_of = [](Image& image) -> image::Launch& {
    return std::get<image::Launch>(image.commands[0].kind);
  };
  const auto replace = [](Image& image, auto kind) { image.commands = {{"c", std::move(kind)}}; };
  const auto in_loop = [](Image& image, image::Copy copy, int64_t trips) {
    image.loops = 2;
    image.commands = {{"loop", image::Repeat{0, trips, false, {{"c", std::move(copy)}}}}};
  };
  using Region = image::Place::Region;
  const Case cases[] = {
      {"", [](Image&) {}},
      {"runs on 0 threads", [](Image& i) { i.threads = 0; }},
      {"arena ... -1", [](Image& i) { i.arena_bytes = -1; }},
      {"beyond ... 8 bytes", [](Image& i) { i.arena_bytes = 8; }},
      {"constant 0 is empty", [](Image& i) { i.constants[0] = {}; }},
      {"input 'x' has the type none", [](Image& i) { i.inputs[0].type = {}; }},
      {"beyond ... 12 bytes", [](Image& i) { i.inputs[0].type = f32({3}); }},
      {"object ... image 'affine', kernel 'add'", [](Image& i) { i.kernels[0].object = nullptr; }},
      {"ELF file", [](Image& i) { i.kernels[0].object = std::make_shared<std::string>(100, 'x'); }},
      {"no function 'missing'", [](Image& i) { i.kernels[0].phases[0].symbol = "missing"; }},
      {"'add' has -1 trips", [](Image& i) { i.kernels[0].phases[0].trips = -1; }},
      {"scratch ... -1", [](Image& i) { i.kernels[0].scratch_bytes = -1; }},
      {"too large", [](Image& i) { i.kernels[0].scratch_bytes = INT64_MAX - 5000; }},
      {"launches kernel 2 of 2", [&](Image& i) { launch_of(i).kernel = 2; }},
      {"there is no input 1", [&](Image& i) { launch_of(i).buffers[0].index = 1; }},
      {"there is no constant 1", [&](Image& i) { launch_of(i).buffers[1].index = 1; }},
      {"there is no arena 1", [&](Image& i) { launch_of(i).buffers[2].index = 1; }},
      {"there is no output 4294967295",
       [&](Image& i) { launch_of(i).buffers[2] = output(~0u, 0); }},
      {"in region 9", [&](Image& i) { launch_of(i).buffers[0].region = static_cast<Region>(9); }},
      {"place ... -1 bytes", [&](Image& i) { launch_of(i).buffers[0].bytes = -1; }},
      {"beyond", [&](Image& i) { launch_of(i).buffers[0].offset = -4; }},
      {"beyond", [&](Image& i) { launch_of(i).buffers[0].offset = 4; }},
      {"beyond", [&](Image& i) { launch_of(i).buffers[0].offset = INT64_MAX; }},
      {"loop 0", [&](Image& i) { launch_of(i).buffers[0].steps = {{0, 0}}; }},
      {"copies 4 bytes to 8",
       [&](Image& i) { replace(i, image::Copy{input(0, 4), output(0, 8)}); }},
      {"writes to input 0", [&](Image& i) { replace(i, image::Copy{input(0, 4), input(0, 4)}); }},
      {"writes to constant 0",
       [&](Image& i) { replace(i, image::Copy{input(0, 4), constant(0, 4)}); }},
      {"condition ... 2 bytes", [&](Image& i) { replace(i, image::Branch{input(0, 2), {}, {}}); }},
      {"beyond", [&](Image& i) { replace(i, image::While{{}, input(0, 1, 16), {}}); }},
      {"loop 0 ... 0", [&](Image& i) { replace(i, image::Repeat{0, 1, false, {}}); }},
      {"has -1 trips",
       [&](Image& i) {
         i.loops = 1;
         replace(i, image::Repeat{0, -1, false, {}});
       }},
      {"another",
       [&](Image& i) {
         i.loops = 1;
         replace(i, image::Repeat{0, 2, false, {{"r", image::Repeat{0, 2, false, {}}}}});
       }},
      {"", [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{0, 4}})}, 4); }},
      {"in some trip",
       [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{0, 4}})}, 5); }},
      {"in some trip",
       [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{0, -4}})}, 2); }},
      {"in some trip",
       [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{0, 1}, {0, 4}})}, 4); }},
      {"in some trip",
       [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{0, INT64_MIN}})}, 9); }},
      {"loop 1", [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{1, 4}})}, 2); }},
      {"loop 7", [&](Image& i) { in_loop(i, {input(0, 4), moving(output(0, 4), {{7, 4}})}, 2); }},
      {"loop 0",
       [&](Image& i) {
         in_loop(i, {input(0, 4), output(0, 4)}, 2);
         i.commands.push_back({"after", image::Copy{input(0, 4), moving(output(0, 4), {{0, 4}})}});
       }},
  };
  for (const Case& test : cases) {
    Image image = affine(4, filled(4, 1));
    test.change(image);
    const auto result = Executable::load(image);
    const std::string text = result.ok() ? "" : result.error().to_string();
    // The image may ask for more memory than there is.
    EXPECT_EQ(check_image(image).ok(), result.ok() || test.words == "too large") << text;
    if (test.words.empty()) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_THAT(text, says(std::string(test.words)));
      EXPECT_THAT(text, HasSubstr("image 'affine'"));
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
