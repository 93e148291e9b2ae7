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

#include "alloc/learned_guide.def"

}  // namespace

const Guide& plain_guide() {
  static const Guide guide{with_plain({}), 300};
  return guide;
}

const Guide& learned_guide() {
  static const Guide guide{with_plain(kLearned), kLearnedBacktracks};
  return guide;
}

std::vector<Preferences> with_plain(std::span<const Preferences> preferences) {
  std::vector<Preferences> all(preferences.begin(), preferences.end());
  all.insert(all.end(), std::begin(kPlain), std::end(kPlain));
  return all;
}

}  // namespace hone
