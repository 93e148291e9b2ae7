#include "alloc/guide.h"

namespace hone {
namespace {

// Few choices; few choices near the ground; the lowest; each with what it then places first.
constexpr Preferences kPlain[] = {
    {{-1, 1, 0, -20, 0}, {1, 0, 0, 0, 0, 1}},
    {{-1, 1, 0, 0, 0}, {1, 1, 0, 0, 0, 1}},
    {{0, 0, 0, -100, 0}, {0, 0, 1, 0, 0, 0}},
    {{-1, 1, 0, 0, 0}, {1, 0, 1, 0, 0, 0}},
};

// To the root, after 300 backtracks and a tenth more each turn: the logarithms of 300 and 1.1.
constexpr JumpWeights kPlainJump = {{-5.703782474656201, -0.09531017980432486, 0, 0, 0}, {1, 0}};

#include "alloc/learned_guide.def"

}  // namespace

const Guide& plain_guide() {
  static const Guide guide{with_plain({}), kPlainJump};
  return guide;
}

const Guide& learned_guide() {
  static const Guide guide{with_plain(kLearned), kLearnedJump};
  return guide;
}

std::vector<Preferences> with_plain(std::span<const Preferences> preferences) {
  std::vector<Preferences> all(preferences.begin(), preferences.end());
  all.insert(all.end(), std::begin(kPlain), std::end(kPlain));
  return all;
}

}  // namespace hone
