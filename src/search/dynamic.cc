#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "search/search.h"

// Variable elimination. The sum of the prices that speak of a variable is tabulated over all other
// variables that they speak of, with the variable's best value each. Then the variable is gone.
// Tables of a chain or tree stay small, and the result is exact. Where a table would be too large,
// a variable keeps its value, and another one in the next round.

namespace hone {
namespace {

using Values = std::vector<uint32_t>;

constexpr double kTables[] = {64, 1024, 16384, 1 << 18};  // entries: small ones first
constexpr double kMostLocal = 1 << 12;  // entries of a table of one factor, each priced
constexpr int kMostStale = 2;           // rounds without a better point, of one size

// Prices of assignments to a few variables.
struct Table {
  std::vector<uint32_t> scope;  // the last varies fastest
  std::vector<double> seconds;
};

// Goes through all assignments to some variables; the last varies fastest. False: that was the
// last.
bool next(Values& values, const std::vector<uint32_t>& scope, std::span<const uint32_t> domains) {
  for (size_t i = scope.size(); i-- > 0;) {
    if (++values[scope[i]] < domains[scope[i]]) return true;
    values[scope[i]] = 0;
  }
  return false;
}

size_t place(const Table& table, const Values& values, std::span<const uint32_t> domains) {
  size_t at = 0;
  for (uint32_t v : table.scope) at = at * domains[v] + values[v];
  return at;
}

double entries(const auto& scope, std::span<const uint32_t> domains) {
  double product = 1;
  for (uint32_t v : scope) product *= domains[v];
  return product;
}

// ---- Which variables go, in which order ---------------------------------------------------------

// The one with the smallest table goes first. Variables that make tables too large stay as they
// are.
class Order {
 public:
  Order(FactoredSpace& factors, double most, Rng& rng)
      : domains_(factors.domains()), near_(domains_.size()), is_kept_(domains_.size()) {
    for (const std::vector<uint32_t>& scope : factors.scopes()) {
      const std::vector<uint32_t> open = small(scope, std::min(most, kMostLocal), rng);
      for (uint32_t a : open)
        for (uint32_t b : open)
          if (a != b) near_[a].insert(b);
    }
    for (uint32_t v = 0; v < domains_.size(); ++v)
      if (is_kept_[v]) leave(v);
    for (uint32_t v = 0; v < domains_.size(); ++v) put(v);
    while (!open_.empty()) {
      const auto [size, v] = *open_.begin();
      if (size <= most)
        eliminate(v);
      else
        keep(widest());
    }
  }

  const std::vector<uint32_t>& order() const { return order_; }
  bool is_kept(uint32_t v) const { return is_kept_[v]; }
  bool is_exact() const { return std::ranges::find(is_kept_, true) == is_kept_.end(); }

 private:
  // The open part of the scope, as much as keeps its table small enough.
  std::vector<uint32_t> small(std::vector<uint32_t> scope, double most, Rng& rng) {
    std::erase_if(scope, [&](uint32_t v) { return is_kept_[v]; });
    while (entries(scope, domains_) > most) {
      const size_t at = rng.below(scope.size());
      is_kept_[scope[at]] = true;
      scope.erase(scope.begin() + static_cast<ptrdiff_t>(at));
    }
    return scope;
  }

  double size(uint32_t v) const { return domains_[v] * entries(near_[v], domains_); }
  void put(uint32_t v) {
    if (!is_kept_[v]) open_.emplace(size(v), v);
  }
  void leave(uint32_t v) {
    for (uint32_t other : near_[v]) near_[other].erase(v);
    near_[v].clear();
  }

  void eliminate(uint32_t v) {
    const std::set<uint32_t> near = near_[v];
    for (uint32_t other : near) open_.erase({size(other), other});
    open_.erase({size(v), v});
    leave(v);
    for (uint32_t a : near)
      for (uint32_t b : near)
        if (a != b) near_[a].insert(b);
    for (uint32_t other : near) put(other);
    order_.push_back(v);
  }

  void keep(uint32_t v) {
    const std::set<uint32_t> near = near_[v];
    for (uint32_t other : near) open_.erase({size(other), other});
    open_.erase({size(v), v});
    is_kept_[v] = true;
    leave(v);
    for (uint32_t other : near) put(other);
  }

  // The open one with the largest table.
  uint32_t widest() const { return open_.rbegin()->second; }

  const std::span<const uint32_t> domains_;
  std::vector<std::set<uint32_t>> near_;  // by variable: those that share a table with it
  std::vector<bool> is_kept_;
  std::set<std::pair<double, uint32_t>> open_;
  std::vector<uint32_t> order_;
};

// ---- One search ---------------------------------------------------------------------------------

class Elimination {
 public:
  Elimination(SearchRun& run, FactoredSpace& factors)
      : run_(run),
        factors_(factors),
        domains_(factors.domains()),
        known_(factors.scopes().size()),
        all_(domains_.size(), 0) {}

  Status run() {
    for (const double most : kTables) {
      for (int stale = 0; stale < kMostStale;) {
        const Order order(factors_, most, run_.rng());
        const double before = run_.least();
        const std::optional<Values> found = HONE_TRY(solve(order));
        if (!found || !run_.price(factors_.point(*found), run_.least())) return {};
        if (order.is_exact()) return {};
        stale = run_.least() < before ? 0 : stale + 1;
      }
    }
    return {};
  }

 private:
  // Nothing: the run is over.
  Result<std::optional<Values>> solve(const Order& order) {
    Values values = factors_.values(run_.best());
    tables_.clear();
    tables_of_.assign(domains_.size(), {});
    for (size_t f = 0; f < factors_.scopes().size(); ++f) {
      std::optional<Table> table = HONE_TRY(tabulate(f, order, values));
      if (!table) return std::optional<Values>();
      add(std::move(*table));
    }
    std::vector<Table> sums;
    for (uint32_t v : order.order()) sums.push_back(eliminate(v));
    for (size_t i = sums.size(); i-- > 0;) choose(order.order()[i], sums[i], values);
    return std::optional(std::move(values));
  }

  void add(Table table) {
    for (uint32_t v : table.scope) tables_of_[v].push_back(tables_.size());
    tables_.push_back(std::move(table));
  }

  // The local prices of a factor for all values of what is open; the rest as it is.
  Result<std::optional<Table>> tabulate(size_t factor, const Order& order, const Values& now) {
    const std::vector<uint32_t>& scope = factors_.scopes()[factor];
    Table table;
    for (uint32_t v : scope)
      if (!order.is_kept(v)) table.scope.push_back(v);
    Values values = now;
    for (uint32_t v : table.scope) values[v] = 0;
    do {
      Values local;
      for (uint32_t v : scope) local.push_back(values[v]);
      const auto [at, is_new] = known_[factor].try_emplace(std::move(local));
      if (is_new) {
        if (!run_.take_trial()) return std::optional<Table>();
        const double seconds = HONE_TRY(factors_.local(factor, at->first));
        at->second = seconds >= 0 ? seconds : std::numeric_limits<double>::infinity();
      }
      table.seconds.push_back(at->second);
    } while (next(values, table.scope, domains_));
    return std::optional(std::move(table));
  }

  // Puts a table in the place of all that have the variable: their sum where that is least. Gives
  // the sum, of the variable last.
  Table eliminate(uint32_t v) {
    std::set<uint32_t> others;
    std::vector<Table> with;
    for (size_t t : tables_of_[v]) {
      with.push_back(std::move(tables_[t]));
      others.insert(with.back().scope.begin(), with.back().scope.end());
    }
    others.erase(v);
    for (uint32_t other : others)
      std::erase_if(tables_of_[other], [&](size_t t) {
        return std::ranges::find(tables_of_[v], t) != tables_of_[v].end();
      });
    Table least{.scope = {others.begin(), others.end()}, .seconds = {}};
    Table sum{.scope = least.scope, .seconds = {}};
    sum.scope.push_back(v);
    do {
      double seconds = 0;
      for (const Table& table : with) seconds += table.seconds[place(table, all_, domains_)];
      sum.seconds.push_back(seconds);
      if (all_[v] == 0) least.seconds.push_back(seconds);
      least.seconds.back() = std::min(least.seconds.back(), seconds);
    } while (next(all_, sum.scope, domains_));
    add(std::move(least));
    return sum;
  }

  // The best value, now that those that went later have theirs; the value that it has, if none is
  // better.
  void choose(uint32_t v, const Table& sum, Values& values) const {
    double least = sum.seconds[place(sum, values, domains_)];
    uint32_t best = values[v];
    for (values[v] = 0; values[v] < domains_[v]; ++values[v])
      if (const double seconds = sum.seconds[place(sum, values, domains_)]; seconds < least) {
        least = seconds;
        best = values[v];
      }
    values[v] = best;
  }

  SearchRun& run_;
  FactoredSpace& factors_;
  const std::span<const uint32_t> domains_;
  std::vector<std::map<Values, double>> known_;  // local prices, by factor
  std::vector<Table> tables_;                    // of a round; empty: a sum has taken its place
  std::vector<std::vector<size_t>> tables_of_;   // by variable: those that have it
  Values all_;  // of all variables: 0 between the loops that go through them
};

class Dynamic : public Search {
  Status look(SearchRun& run) const override {
    FactoredSpace* const factors = run.space().factors();
    if (factors == nullptr)
      return unsupported("the prices of this space are not sums of local prices")
          .with_hint("the search 'dynamic' is for layouts; any other one can look through it");
    return Elimination(run, *factors).run();
  }
};

}  // namespace

const Search& dynamic_search() {
  static const Dynamic search;
  return search;
}

}  // namespace hone
