#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// The preferences of the floor search. Among the sections in which something can be placed at once
// it turns to the one with the highest score. There it places the block with the highest score. A
// score is a weighted sum of facts about the section or the block; these numbers are the weights.
struct Preferences {
  // Weights of a section. Two logarithms: of how many blocks could be the lowest, and of its
  // weight, which grows where the search fails. Three shares of the capacity: what no placement
  // fills, how high its lowest open block may lie, and what would be free if nothing were lost
  // above that.
  std::array<float, 5> section;
  // Weights of a block. Four logarithms: of its size, of its life in sections, of the weights of
  // these, and of how many it overlaps. Two counts of its sides in time, 0 to 2: those on which
  // nothing can lie lower than it, and those on which the lowest lies right at its end.
  std::array<float, 6> block;
};

// How far the search goes back where it fails. The last decision with a part in the failure is
// proved wrong. It may go back further: to an earlier one with a part in it, or to the root. The
// one with the highest score is taken again if that is above 0, and the next preferences have their
// turn. Scores are sums of the products of what is known with these numbers.
struct JumpWeights {
  // Weights of the failure: 1; the number of turns; the logarithm of the number of blocks; the
  // share of blocks that is open. The last one is the logarithm of the backtracks since the turn
  // was at its deepest.
  std::array<double, 5> failure;
  // Weights of a decision, or the root: the logarithms of the backtracks since it was taken, and of
  // the levels that are undone.
  std::array<double, 2> decision;
};

// The weights of sections stay from turn to turn.
struct Guide {
  std::vector<Preferences> preferences;  // have their turns in this order, again and again
  JumpWeights jump;
};

const Guide& plain_guide();  // made by hand
// Trained by ./dev train-guide on problems of generate.h; also has turns for the plain preferences,
// so that on problems of other kinds it is not much worse.
const Guide& learned_guide();
// Turns for these preferences, then for the plain ones.
std::vector<Preferences> with_plain(std::span<const Preferences> preferences);

}  // namespace hone
