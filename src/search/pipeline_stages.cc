#include "search/pipeline_stages.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "search/pipeline_index.h"

namespace hone {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Layers of a cluster take at most this much more than their even share.
constexpr double kUneven = 0.5;

class StageSearch {
 public:
  StageSearch(const StageTable& table, int devices, int micro_batches, StageDevices use)
      : table_(table),
        layers_(table.layers),
        devices_(devices),
        micro_batches_(micro_batches),
        spare_(use == StageDevices::some ? devices : 0),
        from_(index_at(layers_)) {
    for (const auto& [key, ways] : table.ways) {
      const auto [first, end, count] = key;
      for (int way = 0; way < std::ssize(ways) && count <= devices_; ++way)
        from_[index_at(first)].push_back({first, end, count, way});
    }
  }

  // Tries each pace that a stage can set, in ascending order: no stage is slower than it.
  std::vector<StageChoice> run(int most_stages) {
    best_.assign(index_at(most_stages) + 1, {{}, kNever});
    std::vector<double> paces;
    for (const std::vector<LayerStage>& stages : from_)
      for (const LayerStage& stage : stages) paces.push_back(table_.way(stage).seconds);
    std::ranges::sort(paces);
    double last = -1;
    for (const double pace : paces) {
      if (pace <= last * (1 + 1e-6)) continue;
      last = pace;
      const bool may_gain = std::ranges::any_of(
          best_, [&](const StageChoice& one) { return (micro_batches_ - 1) * pace < one.seconds; });
      if (!may_gain) break;
      solve(pace, most_stages);
    }
    return best_;
  }

 private:
  struct Cell {
    double seconds = kNever;
    LayerStage stage = {};
  };

  // The cell of layers from `first` on, in that number of stages and of devices.
  Cell& cell(int stages, int first, int devices) {
    return cells_[index_at((stages * (layers_ + 1) + first) * (devices_ + 1) + devices)];
  }

  void solve(double most, int most_stages) {
    cells_.assign(index_at((most_stages + 1) * (layers_ + 1) * (devices_ + 1)), {});
    for (int devices = 0; devices <= spare_; ++devices) cell(0, layers_, devices).seconds = 0;
    for (int stages = 1; stages <= most_stages; ++stages)
      for (int first = layers_ - 1; first >= 0; --first)
        for (int devices = stages; devices <= devices_; ++devices)
          fill(stages, first, devices, most);
    for (int stages = 1; stages <= most_stages; ++stages) take(stages);
  }

  void fill(int stages, int first, int devices, double most) {
    Cell& made = cell(stages, first, devices);
    for (const LayerStage& stage : from_[index_at(first)]) {
      if (stage.devices > devices) continue;
      const double own = table_.way(stage).seconds;
      const double rest = cell(stages - 1, stage.end, devices - stage.devices).seconds;
      if (rest == kNever || own > most || own + rest >= made.seconds) continue;
      if (table_.fits(stage, stages - 1, micro_batches_)) made = {own + rest, stage};
    }
  }

  void take(int stages) {
    if (cell(stages, 0, devices_).seconds == kNever) return;
    StageChoice choice;
    int first = 0, devices = devices_;
    for (int left = stages; left > 0; --left) {
      const LayerStage& stage = cell(left, first, devices).stage;
      choice.stages.push_back(stage);
      first = stage.end;
      devices -= stage.devices;
    }
    choice.seconds = step_seconds(table_, choice.stages, micro_batches_);
    if (choice.seconds < best_[index_at(stages)].seconds)
      best_[index_at(stages)] = std::move(choice);
  }

  const StageTable& table_;
  const int layers_, devices_, micro_batches_;
  const int spare_;                            // devices that may have no stage
  std::vector<std::vector<LayerStage>> from_;  // by their first layer
  std::vector<Cell> cells_;
  std::vector<StageChoice> best_;
};

}  // namespace

double step_seconds(const StageTable& table, const std::vector<LayerStage>& stages,
                    int micro_batches) {
  double sum = 0, most = 0;
  for (const LayerStage& stage : stages) {
    sum += table.way(stage).seconds;
    most = std::max(most, table.way(stage).seconds);
  }
  return sum + (micro_batches - 1) * most;
}

std::vector<StageChoice> best_stages(const StageTable& table, int devices, int micro_batches,
                                     int stages, StageDevices use) {
  HONE_CHECK(devices > 0 && micro_batches > 0 && table.layers > 0, "no pipeline");
  const int most = std::min(devices, table.layers);
  if (stages > most) return {};
  std::vector<StageChoice> all =
      StageSearch(table, devices, micro_batches, use).run(stages > 0 ? stages : most);
  std::vector<StageChoice> made;
  for (int s = 1; s < std::ssize(all); ++s)
    if (!all[index_at(s)].stages.empty() && (stages == 0 || s == stages))
      made.push_back(std::move(all[index_at(s)]));
  return made;
}

std::vector<std::vector<int32_t>> devices_in_order(const std::vector<LayerStage>& stages) {
  std::vector<std::vector<int32_t>> all;
  int32_t next = 0;
  for (const LayerStage& stage : stages) {
    std::vector<int32_t>& own = all.emplace_back(index_at(stage.devices));
    std::iota(own.begin(), own.end(), next);
    next += stage.devices;
  }
  return all;
}

namespace {

// How badly devices [first, first + count) lie: the groups that they would fit in and leave.
int64_t misfit(const System& system, int32_t first, int32_t count) {
  int64_t left = 0;
  for (const Level& level : system.levels)
    if (level.devices >= count && first / level.devices != (first + count - 1) / level.devices)
      ++left;
  return 2 * left + (first % count != 0 ? 1 : 0);
}

// The first device of the best place among those that are free.
std::optional<int32_t> best_place(const System& system, const std::vector<bool>& is_free,
                                  int32_t count) {
  std::optional<int32_t> best;
  for (int32_t first = 0, free = 0; index_at(first + free) < is_free.size();) {
    if (!is_free[index_at(first + free)]) {
      first += free + 1;
      free = 0;
    } else if (++free == count) {
      if (!best || misfit(system, first, count) < misfit(system, *best, count)) best = first;
      ++first;
      --free;
    }
  }
  return best;
}

}  // namespace

std::vector<std::vector<int32_t>> devices_in_groups(const std::vector<LayerStage>& stages,
                                                    const System& system) {
  std::vector<size_t> order(stages.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t s) { return std::pair(-stages[s].devices, s); });
  std::vector<bool> is_free(static_cast<size_t>(system.device_count()), true);
  std::vector<std::vector<int32_t>> all(stages.size());
  for (const size_t s : order) {
    const std::optional<int32_t> first = best_place(system, is_free, stages[s].devices);
    if (!first) return {};
    for (int32_t i = 0; i < stages[s].devices; ++i) {
      all[s].push_back(*first + i);
      is_free[index_at(*first + i)] = false;
    }
  }
  return all;
}

std::vector<int> clustered(const std::vector<double>& seconds,
                           const std::vector<std::vector<double>>& received, int layers) {
  const auto items = static_cast<int>(seconds.size());
  layers = std::clamp(layers, 1, items);
  std::vector<double> before = {0};
  for (const double one : seconds) before.push_back(before.back() + one);
  const double most = before.back() / layers * (1 + kUneven);
  // The most, and then the sum, of what layers receive: of the first k items in r layers.
  struct Cell {
    double most = kNever;
    double sum = kNever;
    int from = -1;
  };
  std::vector<std::vector<Cell>> cells(index_at(layers) + 1,
                                       std::vector<Cell>(index_at(items) + 1));
  cells[0][0] = {0, 0, 0};
  for (int r = 1; r <= layers; ++r)
    for (int k = r; k <= items; ++k)
      for (int i = k - 1; i >= r - 1; --i) {
        // One item alone may take longer.
        if (i < k - 1 && before[index_at(k)] - before[index_at(i)] > most) break;
        const Cell& rest = cells[index_at(r) - 1][index_at(i)];
        if (rest.from < 0) continue;
        const double own = received[index_at(i)][index_at(k)];
        const Cell made = {std::max(rest.most, own), rest.sum + own, i};
        Cell& cell = cells[index_at(r)][index_at(k)];
        if (std::pair(made.most, made.sum) < std::pair(cell.most, cell.sum)) cell = made;
      }
  int used = layers;
  while (used > 1 && cells[index_at(used)][index_at(items)].from < 0) --used;
  if (cells[index_at(used)][index_at(items)].from < 0) return {items};
  std::vector<int> ends;
  for (int k = items; used > 0; --used) {
    ends.push_back(k);
    k = cells[index_at(used)][index_at(k)].from;
  }
  std::ranges::reverse(ends);
  return ends;
}

}  // namespace hone
