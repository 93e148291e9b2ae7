#pragma once

#include <span>
#include <vector>

#include "assign/core_tables.h"

namespace hone {

// Finds the best options of some nodes of a core at once, while all others keep theirs, and usages
// count by their prices alone.
//
// Nodes with at most two neighbours left are eliminated: what is best of them, for each pair of
// options of the neighbours, becomes a cost of that pair. If none is left, a node with many
// neighbours keeps its option. The result is exact for the nodes that are left.
class Window {
 public:
  Window(const Core& core, const CoreTables& tables);

  // `costs` has what each option of a node costs, prices included, by node of the core. Changes
  // `options` at `nodes`, which are different. Returns the number of nodes that kept theirs.
  size_t improve(std::span<const uint32_t> nodes, const std::vector<std::vector<double>>& costs,
                 std::vector<uint32_t>& options);

 private:
  struct Member {
    uint32_t node = 0;
    std::vector<double> costs;  // of row_length() reals, which are kNever at the end
    std::vector<uint32_t> links;
    bool is_done = false;
  };
  // Costs of pairs of two members, in rows of either.
  struct Link {
    uint32_t first = 0;
    uint32_t second = 0;
    const double* by_first = nullptr;
    const double* by_second = nullptr;
    uint32_t other(uint32_t member) const { return member == first ? second : first; }
    const double* rows(uint32_t member) const { return member == first ? by_first : by_second; }
  };
  // A member that is eliminated, and the links that it had then.
  struct Step {
    uint32_t member = 0;
    std::vector<uint32_t> links;
  };

  void enter(std::span<const uint32_t> nodes, const std::vector<std::vector<double>>& costs,
             const std::vector<uint32_t>& options);
  void keep(uint32_t member, uint32_t option);
  void eliminate(uint32_t member);
  void eliminate_leaf(uint32_t member);
  bool eliminate_between(uint32_t member);
  void unlink(uint32_t member, uint32_t link);
  void add_link(uint32_t a, uint32_t b, const double* by_a, const double* by_b);
  void mark(uint32_t member);
  double* room(size_t reals);

  size_t options_of(uint32_t member) const { return core_.nodes[members_[member].node].options(); }

  const Core& core_;
  const CoreTables& tables_;
  std::vector<uint32_t> member_of_;  // by node of the core
  std::vector<Member> members_;
  size_t count_ = 0;  // members in use
  std::vector<Link> links_;
  std::vector<Step> steps_;
  size_t step_count_ = 0;
  std::vector<uint32_t> ready_;            // members that may have at most two links
  std::vector<std::vector<double>> made_;  // tables that elimination made
  size_t made_count_ = 0;
};

}  // namespace hone
