#pragma once

#include <optional>
#include <span>
#include <vector>

#include "place/placer.h"

// Multi-chip modules: a package of small chips, in the order of the devices, that work as a
// pipeline. A tensor never goes to an earlier chip. Used chips are the first ones, without a gap. A
// tensor goes straight from a chip to another one only if no third chip lies on a way between them.
// A chip has room for what its nodes hold. The memory planner alone says whether it has room for
// tensors, too, and only of a whole placement (arena.h).

namespace hone {

inline constexpr uint32_t kMostChips = 64;

// True if the placement keeps the rules of chips; an error names the nodes and chips that do not.
// Memory is for check_arenas() (arena.h).
Status check_chips(const PlaceProblem& problem, const DevicePlacement& placement);

// Finds placements that keep the rules, by propagation: what is decided removes chips from what is
// still open. Blocks (PlaceUnits) are decided in a drawn order; where one has no chip left, the
// last decision is taken back.
class ChipSolver {
 public:
  // The problem has at most kMostChips devices.
  explicit ChipSolver(const PlaceRun& run);

  size_t blocks() const { return before_.size(); }
  uint32_t chips() const { return chips_; }

  // The block gets any chip but this one, until the bars are lifted. False: it or a block around
  // it would have none left by the order of chips; then it is not barred.
  bool bar(uint32_t block, uint32_t chip);
  void lift_bars() { barred_.assign(blocks(), 0); }

  // Draws a chip for each block; `probabilities`: by block and chip. None: too many decisions
  // failed.
  std::optional<std::vector<uint32_t>> sample(std::span<const double> probabilities, Rng& rng);
  // The same, but each block first gets the chip of the candidate where that still can be.
  std::optional<std::vector<uint32_t>> fix(std::span<const uint32_t> candidate,
                                           std::span<const double> probabilities, Rng& rng);
  DevicePlacement placement(std::span<const uint32_t> chip_of_block) const;

 private:
  using Chips = uint64_t;  // a set
  struct Change {
    uint32_t block;
    Chips before;
  };

  bool begin();                      // false: the bars leave a block no chip
  Chips open(uint32_t block) const;  // the chips that it may have now
  bool may_cross(uint32_t from, uint32_t to) const;
  bool decide(uint32_t block, uint32_t chip);  // false: it contradicts; all is as before
  void take_back();                            // the last decision
  bool narrow(uint32_t block, Chips to);
  bool propagate(uint32_t block);
  bool has_no_gap() const;
  void join(uint32_t from, uint32_t to);
  bool finish(std::span<const double> probabilities, Rng& rng);
  std::vector<uint32_t> chosen() const;

  const PlaceRun& run_;
  uint32_t chips_;
  std::vector<std::vector<uint32_t>> before_, after_;
  std::vector<double> held_;  // of blocks
  std::vector<Chips> can_;    // at first, but for these:
  std::vector<Chips> barred_;
  // The search.
  std::vector<Chips> domain_;
  std::vector<bool> is_decided_;
  std::vector<double> room_;       // of chips
  std::vector<Chips> to_, reach_;  // by chip: where tensors go, straight and on any way
  std::vector<Change> trail_;
  struct Decision {
    uint32_t block, chip;
    size_t trail;
    std::vector<Chips> to;
  };
  std::vector<Decision> decisions_;
};

// Ways to look for placements of a module with the least load, all by the solver. A placement
// whose arenas do not fit is mended: a block that makes, uses or holds what is too much gets
// another chip, up to eight times. Then it is given up.
enum class ChipSearch : uint8_t {
  greedy,     // equal parts of the order
  random,     // samples of equal probabilities
  annealing,  // one block at a time gets another chip, and the rest is fixed
  policy,     // samples of the policy's probabilities, then some blocks of the best drawn again
};
inline constexpr ChipSearch kChipSearches[] = {ChipSearch::greedy, ChipSearch::random,
                                               ChipSearch::annealing, ChipSearch::policy};
std::string_view name(ChipSearch search);

struct ChipOutcome {
  DevicePlacement placement;
  double value = kCannotRun;      // kCannotRun: no sample kept the rules and fitted
  int64_t valid = 0;              // samples that did
  int64_t mended = 0;             // of these, those that did not fit at first
  std::vector<double> best = {};  // by sample: the least value until then
  // The samples that it took to come to this value or below; one more than there were: never.
  int64_t samples_to(double value) const;
};
// Judges as many samples; greedy takes one. Limit: the problem has more than kMostChips devices, or
// times or bytes of a sample cannot be added up.
Result<ChipOutcome> search_chips(const PlaceJudge& judge, ChipSearch search, int64_t samples,
                                 uint64_t seed, const PlacePolicy* policy = nullptr,
                                 const CancelToken* cancel = nullptr);

}  // namespace hone
