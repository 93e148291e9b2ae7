#include "search/search.h"

namespace hone {
namespace {

class Exhaustive : public Search {
  Status look(SearchRun& run) const override {
    std::vector<Point> open;
    HONE_TRY(run.space().each([&](std::optional<Point> point) {
      if (!point) return run.may_go_on();
      open.push_back(*point);
      if (open.size() < run.batch()) return true;
      const bool wants_more = run.price(open, run.least());
      open.clear();
      return wants_more;
    }));
    run.price(open, run.least());
    return {};
  }
};

}  // namespace

const Search& exhaustive_search() {
  static const Exhaustive search;
  return search;
}

}  // namespace hone
