#pragma once

#include <map>

#include "cost/plan_cost.h"
#include "search/layouts.h"
#include "search/search.h"

namespace hone {

struct LayoutSearchOptions {
  std::vector<int64_t> blocks{std::begin(kUsualBlocks), std::end(kUsualBlocks)};
  size_t most = 8;  // layouts of a value
};

// The layouts of a frame, groups and all else fixed. There is a variable for each value that may
// have any layout and in which no others lie. It ranges over its layout now, the usual ones, and
// the layouts of others that its kernels read and write. Local prices are those of kernels, so that
// dynamic programming can look through it.
//
//   LayoutSearch space(editor.main(), price);
//   PricedLayouts prices(space);
//   const SearchResult found = HONE_TRY(search.run(space, prices));
//   HONE_TRY(space.move_to(found.best));  // the editor has these layouts
class LayoutSearch : public SearchSpace, public FactoredSpace {
 public:
  using Values = std::vector<uint32_t>;

  // Both outlive it, and nobody else edits meanwhile.
  LayoutSearch(FrameEditor& frame, PlanCost& price, const LayoutSearchOptions& options = {});

  // The frame has the layouts of the point from now on, or those of the start, if an error says
  // that these cannot be.
  Status move_to(Point point);
  // The values whose layouts are variables, and what a point says of them.
  std::vector<ValueId> variable_values() const;
  std::vector<Layout> layouts(Point point) const;
  // The price of the whole plan, with these layouts; infinity: they cannot be.
  Result<double> seconds(Point point);

  Point start() override { return 0; }
  size_t coordinates(Point) override { return variables_.size(); }
  std::vector<Point> neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) override;
  std::optional<Point> sample(Rng& rng) override;
  std::optional<Point> cross(Point a, Point b, Rng& rng) override;
  Status each(const PointVisit& visit) override;
  double size() override;
  std::string text(Point point) override;
  FactoredSpace* factors() override { return this; }

  std::span<const uint32_t> domains() const override { return domains_; }
  std::span<const std::vector<uint32_t>> scopes() const override { return scopes_; }
  Result<double> local(size_t factor, std::span<const uint32_t> values) override;
  std::vector<uint32_t> values(uint32_t point) const override { return *places_[point]; }
  uint32_t point(std::span<const uint32_t> values) override;

 private:
  struct Variable {
    ValueId value;
    std::vector<Layout> layouts;  // that of the start first
  };
  void add_variables(const LayoutSearchOptions& options);
  void add_factors();
  std::vector<Layout> candidates(ValueId v, const LayoutSearchOptions& options) const;

  FrameEditor& frame_;
  PlanCost& price_;
  const Undo before_;  // what the start has
  std::vector<Variable> variables_;
  std::vector<uint32_t> domains_;
  std::vector<uint32_t> steps_;  // by factor
  std::vector<std::vector<uint32_t>> scopes_;
  std::map<Values, Point> points_;
  std::vector<const Values*> places_;
  Point here_ = 0;
};

// The price of the whole plan with the layouts of a point.
class PricedLayouts : public Pricer {
 public:
  explicit PricedLayouts(LayoutSearch& space) : space_(space) {}
  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override;

 private:
  LayoutSearch& space_;
};

}  // namespace hone
