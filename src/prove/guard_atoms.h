#pragma once

#include <vector>

#include "rules/rule.h"

namespace hone {

// The conditions that guards are made of, the plainest first: of the symbols of a rule and of the
// sizes that its types name.
std::vector<Condition> guard_atoms(const Rule& rule);

// Which conditions hold at which of some lists of sizes.
class AtomTable {
 public:
  AtomTable(std::vector<Condition> atoms, const std::vector<Bindings>& good,
            const std::vector<Bindings>& bad);

  // Among the conjunctions of at most three conditions that hold at none of the bad sizes, the
  // first that holds at the most good ones. Empty: there is none that holds at any.
  std::vector<Condition> weakest() const;

 private:
  using Row = std::vector<uint64_t>;  // a bit for each list of sizes

  std::vector<Condition> atoms_;
  std::vector<Row> good_, bad_;  // of each atom
};

}  // namespace hone
