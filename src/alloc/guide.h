#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// What the floor search prefers. Among the sections in which something can be placed at once it
// turns to the one with the highest score, and there places the block with the highest score: sums
// of the products of what is known of them with these numbers.
struct Preferences {
  // Of a section: the logarithm of how many blocks could be the lowest; that of its weight, which
  // grows where the search fails; and, as shares of the capacity, what no placement fills, how
  // high its lowest open block may lie, and what would be free if nothing were lost above that.
  std::array<float, 5> section;
  // Of a block: the logarithms of its size, of its life in sections, of the weights of these, and
  // of how many it overlaps; on how many of its two sides in time nothing can lie lower than it,
  // and on how many the lowest lies right at its end.
  std::array<float, 6> block;
};

// Restarts take turns with the preferences. The first turn has so many backtracks; the weights of
// sections stay from turn to turn.
struct Guide {
  std::vector<Preferences> preferences;
  double backtracks;
};

const Guide& plain_guide();  // made by hand
// Trained by ./dev train-guide on problems of generate.h; also has turns for the plain preferences,
// so that on problems of other kinds it is not much worse.
const Guide& learned_guide();
// Turns for these preferences, then for the plain ones.
std::vector<Preferences> with_plain(std::span<const Preferences> preferences);

}  // namespace hone
