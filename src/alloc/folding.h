#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "alloc/niches.h"
#include "alloc/subset_sum.h"
#include "base/rng.h"

namespace hone {

// Boxes are joined to larger ones that have no gap: two that live equally long, one on the other;
// two of a size, of which one begins where the other ends. What was cut out of one rectangle
// becomes one again, if all joints are those where it was cut. Where several joints are possible,
// the one that is least likely to be a coincidence comes first; what does not come out even is
// taken apart again in places, and joined in other ways. A joint is less likely a coincidence if
// what it makes can be joined on at once in the other direction: two boxes in a row that are
// together as long as a third that begins with them, say.
class Folding {
 public:
  // Alignments are not looked at.
  Folding(std::span<const Box> boxes, int32_t sections);

  // Takes some apart, and joins again; undone if that leaves more. How many boxes it looked at.
  int64_t refold(Rng& rng);

  size_t count() const { return roots_.size(); }  // what is left
  std::vector<Box> roots() const;
  // Where the boxes lie, by where the roots do.
  std::vector<int64_t> unfold(std::span<const int64_t> offsets) const;

 private:
  // A box without what is not looked at: trees have many.
  struct Rect {
    int32_t first = 0, end = 0;  // in use in the sections [first, end)
    int64_t size = 0;

    int32_t length() const { return end - first; }
  };
  struct Node {
    Rect box;
    // What it was joined of: `behind` in time, otherwise the second lies on the first.
    std::array<int32_t, 2> parts = {-1, -1};
    int32_t whole = -1;  // that it is a part of
    bool behind = false;
    float risk = 0;  // of the likeliest coincidence in it
    // Its places in roots_, among those that begin and end where it does, and in seams_.
    int32_t root = -1, begin = -1, end = -1, seam = -1;
    int64_t attempt = 0;  // that made it a root
  };
  // A root where it begins or ends, with what decides about joints there.
  struct Edge {
    int64_t size;
    int32_t other;  // where it ends or begins
    int32_t box;
  };
  // Where the parts of a box touch that lie one behind the other.
  struct Seam {
    int64_t size;
    int32_t box;
  };

  Node& node(int32_t i) { return nodes_[static_cast<size_t>(i)]; }
  const Node& node(int32_t i) const { return nodes_[static_cast<size_t>(i)]; }
  std::vector<Edge>& begins(int32_t section) { return begins_[static_cast<size_t>(section)]; }
  std::vector<Edge>& ends(int32_t section) { return ends_[static_cast<size_t>(section)]; }
  static double number(const auto& list) { return static_cast<double>(list.size()); }

  // Two roots; the other lies behind the one in time, or on it.
  struct Joint {
    int32_t one, other;
    bool behind;
  };
  // A root that a box is joined with; `before`: which comes first.
  struct Step {
    int32_t box;
    bool behind, before;
  };

  // folding.cc: trees of boxes.
  void put(int32_t i);
  void take(int32_t i);
  void touch(int32_t section);
  std::vector<Seam>& seams(const Node& chain) {
    return seams_[static_cast<size_t>(node(chain.parts[1]).box.first)];
  }
  void sew(int32_t i);
  void unpick(int32_t i);
  void doubt(int32_t i);
  int32_t join(const Joint& joint, double risk);
  void take_apart(int32_t i, double risk, int64_t& most);
  std::vector<int32_t> neighbours(Rng& rng);

  // folding_joints.cc: which joints there are, and how sure they are.
  void fold(std::span<const int32_t> sections, double risk);
  void fold_anew(double risk);
  void fold_touched();
  void measure();
  bool fold_at(int32_t section);
  void find_stacks(int32_t section);
  void find_chains(int32_t section);
  void sort(std::vector<Edge>& edges, auto key) const;
  bool join_sure();
  double risk_of(const Joint& joint);
  bool allows(double risk);
  bool foresees(const Joint& joint);
  bool follows(const Rect& box, bool behind, double risk, int depth);
  double as_large(int64_t size) const;
  double as_long(int32_t length) const;

  // folding_sums.cc: joints of several boxes at once.
  bool join_sums(int32_t section);
  bool join_sums(std::span<const Edge> group, bool behind);
  bool join_sum(std::span<const Edge> group, const Edge& single, bool behind, double likely);
  int32_t stack(std::span<const Edge> boxes, double risk);
  void join_stack(std::span<const Edge> boxes, const Edge& single, bool behind, double risk);

  // folding_lives.cc: joints of all boxes of a life.
  void stack_alone();
  // A box, or all of one life, by size.
  struct Party {
    int64_t size;
    std::span<const Edge> boxes;
    bool is_life() const { return boxes.size() > 1; }
  };
  bool join_lives(int32_t section);
  bool has_life(std::span<const Edge> edges);
  void find_parties(std::vector<Edge>& edges, std::vector<Party>& parties) const;
  bool join_equal(double ways);
  bool join_nearly_all(double ways, bool behind);
  bool leave_out(std::span<const Edge> boxes, int64_t excess, double& risk);
  double less_sure(const Party& life) const;

  std::vector<Node> nodes_;  // the boxes, then what they were joined to
  size_t boxes_;
  std::vector<int32_t> free_;  // nodes that are in no tree
  std::vector<int32_t> roots_;
  std::vector<std::vector<Edge>> begins_, ends_;  // roots by section
  std::vector<std::vector<Seam>> seams_;          // of all trees, by section
  int64_t unit_ = 0;                              // divides all sizes
  // By the logarithm: how likely another box is as large, or as long.
  std::array<double, 64> as_large_ = {}, as_long_ = {};

  double most_risk_ = 0;  // that is allowed
  int depth_ = 1;         // how many joints are foreseen
  bool adds_ = true;      // looks for sums
  // Chance, in an attempt: how far it changes risks, and what breaks ties.
  Rng* rng_ = nullptr;
  double noise_ = 0;
  uint32_t salt_ = 0;
  std::vector<int32_t> touched_;
  std::vector<bool> is_touched_;
  std::vector<double> waits_;  // per section: the least risk of what was not allowed
  // Of one section, in work.
  double least_ = 0;  // risk of what was not allowed
  std::vector<Edge> before_, behind_, group_, singles_;
  std::vector<int64_t> sizes_;
  SubsetSum subsets_;
  std::vector<int32_t> left_out_;   // of a stack
  std::vector<int32_t> with_life_;  // by the other end; 0 where nothing is counted
  std::vector<Party> parties_before_, parties_behind_;
  std::vector<Joint> found_;
  std::vector<Step> path_;  // foreseen
  std::vector<int32_t> used_;
  double risk_of_path_ = 0;
  int64_t looks_ = 0, most_looks_ = INT64_MAX;
  // Of the attempt: roots that it took, that it made, and trees that it took apart.
  int64_t attempt_ = 0;
  std::vector<int32_t> taken_, put_, apart_, joined_;
};

}  // namespace hone
