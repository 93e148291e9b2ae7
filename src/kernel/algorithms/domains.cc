#include "kernel/algorithms/domains.h"

#include <algorithm>
#include <numeric>

namespace hone {

// ---- Counts -------------------------------------------------------------------------------------

// Where the most depends on the loops: that of all.
double CountDecision::bound(const ScheduleSite& site) const {
  return most_(site, plain_nest(site.parallel())) + 1;
}

bool CountDecision::each(const ScheduleSite& site, const Schedule& so_far,
                         const ScheduleVisit& visit) const {
  for (int count = 0; count <= most_(site, so_far); ++count)
    if (!visit(with(so_far, count))) return false;
  return true;
}

void CountDecision::draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const {
  get(so_far) = rng.chance(chance_) ? static_cast<int>(rng.between(0, most_(site, so_far))) : 0;
}

Schedules CountDecision::near(const ScheduleSite& site, const Schedule& schedule) const {
  const int now = *get(schedule);
  Schedules all;
  if (now > 0) all.push_back(with(schedule, now - 1));
  if (now < most_(site, schedule)) all.push_back(with(schedule, now + 1));
  return all;
}

Schedules CountDecision::simpler(const ScheduleSite&, const Schedule& schedule) const {
  Schedules all;
  for (int count = 0; count < *get(schedule); ++count) all.push_back(with(schedule, count));
  return all;
}

// ---- Numbers ------------------------------------------------------------------------------------

double NumberDecision::bound(const ScheduleSite& site) const {
  return static_cast<double>(numbers_(site).size());
}

bool NumberDecision::each(const ScheduleSite& site, const Schedule& so_far,
                          const ScheduleVisit& visit) const {
  return std::ranges::all_of(numbers_(site), [&](int n) { return visit(with(so_far, n)); });
}

void NumberDecision::draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const {
  const std::vector<int> numbers = numbers_(site);
  get(so_far) = rng.pick(numbers);
}

Schedules NumberDecision::near(const ScheduleSite& site, const Schedule& schedule) const {
  Schedules all;
  for (int number : numbers_(site))
    if (number != *get(schedule)) all.push_back(with(schedule, number));
  return all;
}

Schedules NumberDecision::simpler(const ScheduleSite& site, const Schedule& schedule) const {
  const int simplest = numbers_(site).front();
  if (*get(schedule) == simplest) return {};
  return {with(schedule, simplest)};
}

// ---- Packing ------------------------------------------------------------------------------------

namespace {

constexpr Packing kPackings[] = {
#define HONE_PACKING(member, doc) Packing::member,
#include "kernel/algorithms.def"
};

}  // namespace

double PackingDecision::bound(const ScheduleSite&) const { return std::size(kPackings); }

bool PackingDecision::each(const ScheduleSite&, const Schedule& so_far,
                           const ScheduleVisit& visit) const {
  return std::ranges::all_of(kPackings, [&](Packing p) { return visit(with(so_far, p)); });
}

void PackingDecision::draw(const ScheduleSite&, Schedule& so_far, Rng& rng) const {
  get(so_far) = kPackings[rng.below(std::size(kPackings))];
}

Schedules PackingDecision::near(const ScheduleSite&, const Schedule& schedule) const {
  Schedules all;
  for (Packing packing : kPackings)
    if (packing != *get(schedule)) all.push_back(with(schedule, packing));
  return all;
}

Schedules PackingDecision::simpler(const ScheduleSite&, const Schedule& schedule) const {
  if (*get(schedule) == Packing::no) return {};
  return {with(schedule, Packing::no)};
}

// ---- Orders -------------------------------------------------------------------------------------

int OrderDecision::moving(const ScheduleSite& site) const {
  return site.parallel() - (last_ == nullptr ? 0 : 1);
}

std::vector<int> OrderDecision::simplest(const ScheduleSite& site) const {
  std::vector<int> order(static_cast<size_t>(site.parallel()));
  std::iota(order.begin(), order.end(), 0);
  if (last_ == nullptr) return order;
  std::erase(order, last_(site));
  order.push_back(last_(site));
  return order;
}

double OrderDecision::bound(const ScheduleSite& site) const {
  double orders = 1;
  for (int i = 2; i <= moving(site); ++i) orders *= i;
  return orders;
}

bool OrderDecision::each(const ScheduleSite& site, const Schedule& so_far,
                         const ScheduleVisit& visit) const {
  std::vector<int> order = simplest(site);
  do {
    if (!visit(with(so_far, order))) return false;
  } while (std::next_permutation(order.begin(), order.begin() + moving(site)));
  return true;
}

void OrderDecision::draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const {
  std::vector<int> order = simplest(site);
  std::vector<int> moved(order.begin(), order.begin() + moving(site));
  if (rng.chance(0.5)) rng.shuffle(moved);
  std::ranges::copy(moved, order.begin());
  get(so_far) = std::move(order);
}

Schedules OrderDecision::near(const ScheduleSite& site, const Schedule& schedule) const {
  Schedules all;
  for (size_t i = 0; i + 1 < static_cast<size_t>(std::max(moving(site), 0)); ++i) {
    std::vector<int> order = *get(schedule);
    std::swap(order[i], order[i + 1]);
    all.push_back(with(schedule, std::move(order)));
  }
  return all;
}

Schedules OrderDecision::simpler(const ScheduleSite& site, const Schedule& schedule) const {
  std::vector<int> order = simplest(site);
  if (*get(schedule) == order) return {};
  return {with(schedule, std::move(order))};
}

// ---- Tiles --------------------------------------------------------------------------------------

int64_t Counts::find(int64_t n) const {
  int64_t low = -1;
  for (int64_t high = size; high - low > 1;) {
    const int64_t middle = low + (high - low) / 2;
    (at(middle) <= n ? low : high) = middle;
  }
  return low;
}

double TileDecision::bound(const ScheduleSite& site) const {
  double lists = 1;
  const Schedule all = plain_nest(site.parallel());
  for (int dim = 0; dim < site.dims(); ++dim)
    lists *= 1 + static_cast<double>(domain_.counts(site, all, dim).size);
  return lists;
}

bool TileDecision::each(const ScheduleSite& site, const Schedule& so_far,
                        const ScheduleVisit& visit) const {
  Schedule schedule = with(so_far, {});
  return each_from(site, schedule, 0, visit);
}

bool TileDecision::each_from(const ScheduleSite& site, Schedule& so_far, int dim,
                             const ScheduleVisit& visit) const {
  if (dim == site.dims()) return visit(so_far);
  if (!each_from(site, so_far, dim + 1, visit)) return false;
  const Counts counts = domain_.counts(site, so_far, dim);
  bool wants_more = true;
  for (int64_t i = 0; i < counts.size && wants_more; ++i) {
    get(so_far).push_back({dim, counts.at(i)});
    const bool fits = domain_.fit(site, get(so_far));
    wants_more = !fits || each_from(site, so_far, dim + 1, visit);
    get(so_far).pop_back();
    if (!fits) break;
  }
  return wants_more;
}

void TileDecision::draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const {
  std::vector<Tile> tiles;
  domain_.draw(site, so_far, tiles, rng);
  std::ranges::sort(tiles, {}, &Tile::dim);
  get(so_far) = std::move(tiles);
}

// One tile more, less, larger or smaller; also twice as large, half as large.
Schedules TileDecision::near(const ScheduleSite& site, const Schedule& schedule) const {
  Schedules all;
  for (int dim = 0; dim < site.dims(); ++dim) {
    std::vector<Tile> others = *get(schedule);
    const auto tile = std::ranges::find(others, dim, &Tile::dim);
    const Counts counts = domain_.counts(site, schedule, dim);
    int64_t now = -1;
    if (tile != others.end()) {
      now = counts.find(tile->count);
      others.erase(tile);
    }
    std::vector<int64_t> steps = {now - 1, now + 1, (now + 1) / 2 - 1, 2 * now + 1};
    std::ranges::sort(steps);
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (int64_t next : steps) {
      if (next == now || next < -1 || next >= counts.size) continue;
      std::vector<Tile> tiles = others;
      if (next >= 0) tiles.push_back({dim, counts.at(next)});
      std::ranges::sort(tiles, {}, &Tile::dim);
      all.push_back(with(schedule, std::move(tiles)));
    }
  }
  return all;
}

Schedules TileDecision::simpler(const ScheduleSite& site, const Schedule& schedule) const {
  const std::vector<Tile>& now = *get(schedule);
  Schedules all;
  if (now.size() > 1) all.push_back(with(schedule, {}));
  for (size_t i = now.size(); i-- > 0;) {
    std::vector<Tile> fewer = now;
    fewer.erase(fewer.begin() + static_cast<int64_t>(i));
    all.push_back(with(schedule, std::move(fewer)));
  }
  for (size_t i = 0; i < now.size(); ++i) {
    const Counts counts = domain_.counts(site, schedule, now[i].dim);
    int64_t last = 0;
    for (int64_t smaller :
         {counts.at(0), counts.at(std::max<int64_t>(counts.find(now[i].count / 2), 0)),
          counts.at(std::max<int64_t>(counts.find(now[i].count - 1), 0))}) {
      if (smaller <= last || smaller >= now[i].count) continue;
      last = smaller;
      std::vector<Tile> tiles = now;
      tiles[i].count = smaller;
      all.push_back(with(schedule, std::move(tiles)));
    }
  }
  return all;
}

}  // namespace hone
