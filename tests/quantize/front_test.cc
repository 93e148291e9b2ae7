#include "quantize/front.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hone::HONE_FILE {
namespace {

using namespace hone::quantize;

TEST(Front, KeepsWhatNoOtherOneBeats) {
  Front front;
  front.add({.options = {0}, .cost = 2, .error = 2, .is_allowed = true});
  front.add({.options = {1}, .cost = 3, .error = 1, .is_allowed = true});
  front.add({.options = {2}, .cost = 3, .error = 3, .is_allowed = true});  // beaten by both
  front.add({.options = {3}, .cost = 2, .error = 2, .is_allowed = true});  // the same again
  ASSERT_EQ(front.all().size(), 2u);
  EXPECT_EQ(front.all()[0].options, std::vector{0});
  EXPECT_EQ(front.all()[1].options, std::vector{1});
  // One that is better in both, but is not allowed, beats none that is.
  front.add({.options = {4}, .cost = 1, .error = 1, .is_allowed = false});
  EXPECT_EQ(front.all().size(), 3u);
  front.add({.options = {5}, .cost = 1, .error = 1, .is_allowed = true});
  ASSERT_EQ(front.all().size(), 1u);
  EXPECT_EQ(front.all()[0].options, std::vector{5});
}

// Errors that do not add up: those of layer 0 and layer 1 cancel where both have option 1.
Assigned cancelling(const std::vector<int>& options) {
  constexpr double kCosts[] = {10, 6, 3};
  double cost = 0, error = 0.01;
  for (int option : options) cost += kCosts[option + 1];
  const auto part = [&](size_t l) { return options[l] == kStays ? 0.0 : 1.0 + options[l]; };
  error += std::abs(part(0) - part(1)) + part(2) + part(3) * part(4);
  return {.options = options, .cost = cost, .error = error, .is_allowed = error <= 1};
}

TEST(Evolve, FindsTheFrontOfAllAssignments) {
  const std::vector<int> counts(5, 2);
  Front all, found;
  for (int code = 0; code < 243; ++code) {
    std::vector<int> options;
    for (int rest = code, l = 0; l < 5; ++l, rest /= 3) options.push_back(rest % 3 - 1);
    all.add(cancelling(options));
  }
  found.add(cancelling(std::vector<int>(5, kStays)));
  int64_t measured = 0;
  const auto measure = [&](const std::vector<int>& options) -> Result<Assigned> {
    ++measured;
    return cancelling(options);
  };
  ASSERT_TRUE(evolve(found, counts, {.trials = 200, .aim = 1, .seed = 1}, measure).ok());
  EXPECT_LE(measured, 200);
  ASSERT_EQ(found.all().size(), all.all().size());
  for (size_t i = 0; i < all.all().size(); ++i) {
    EXPECT_EQ(found.all()[i].cost, all.all()[i].cost);
    EXPECT_EQ(found.all()[i].error, all.all()[i].error);
  }
}

TEST(Evolve, DoesTheSameAgainAndStopsAtErrors) {
  const std::vector<int> counts = {2, 0, 1};  // the second layer stays
  const auto run = [&](uint64_t seed) {
    Front front;
    front.add({.options = {kStays, kStays, kStays}, .cost = 9, .error = 0});
    std::vector<std::vector<int>> asked;
    const auto measure = [&](const std::vector<int>& options) -> Result<Assigned> {
      EXPECT_EQ(options[1], kStays);
      asked.push_back(options);
      return Assigned{.options = options, .cost = 9.0 - options[0], .error = options[2] + 1.0};
    };
    EXPECT_TRUE(evolve(front, counts, {.trials = 100, .aim = 1, .seed = seed}, measure).ok());
    return asked;
  };
  EXPECT_EQ(run(4), run(4));
  EXPECT_EQ(run(4).size(), 5u);  // all others: it ends where nothing new comes up
  Front front;
  front.add({.options = {kStays, kStays, kStays}});
  const auto fails = [](const std::vector<int>&) -> Result<Assigned> {
    return bad_input("it is over");
  };
  EXPECT_FALSE(evolve(front, counts, {.trials = 9, .aim = 1}, fails).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
