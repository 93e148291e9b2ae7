#pragma once

#include <unordered_map>
#include <vector>

#include "planner/frame.h"

namespace hone {

// Joins kernels with the only kernel that reads them where one chain costs less than both. A sort
// of chains says which nodes may be part of one, and which pairs are worth a price.
class ChainJoiner {
 public:
  // Both live as long. `price` is that of the edited frame.
  ChainJoiner(PlanningFrame& frame, PlanCost& price);
  virtual ~ChainJoiner() = default;

  // Tells whether some were joined.
  Result<bool> run();

 protected:
  virtual bool may_take(NodeId node) const = 0;
  virtual bool may_pay(const Step& first, const Step& second) const = 0;
  // Tells whether a kernel that is computed like this stays alone.
  virtual bool stays_alone(const Schedule& /*first*/) const { return false; }
  // A chain pays if it costs less than this part of both kernels. One that costs the same, like a
  // single block, saves nothing and ties more down.
  virtual double paying_part() const { return 0.999; }

  // Tells whether a kernel of both can be carried out in a way that this sort is about.
  virtual bool may_be_one(const KernelBody& body) const;

  GraphView graph() const { return graph_; }
  FrameEditor& edited() { return edited_; }
  PlanCost& price() { return price_; }
  const Target& target() const { return edited_.whole().target(); }
  // Tells whether all results have sizes that are numbers.
  bool has_sizes(const Step& step) const;

 private:
  Result<bool> take_one_before(NodeId last);
  bool may_be_in_chain(const Step& step) const;
  Result<bool> joins(uint32_t before, uint32_t after);
  Result<bool> join(uint32_t before, uint32_t after);
  // Its price, where constants that it makes weights of lie as is best.
  Result<double> seconds(uint32_t step);
  bool reads_alone(const Step& reader, const Step& step) const;

  FrameEditor& edited_;
  const PlannedGraph& planned_;
  const GraphView graph_;
  const UsersView users_;
  const FusionFreedom& freedom_;
  PlanCost& price_;
  std::unordered_map<uint64_t, bool> pays_;  // by the shape of both as one kernel
};

}  // namespace hone
