#include "report/placement_text.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "place/moves.h"
#include "place/sort_by.h"
#include "timeline/time_use.h"

namespace hone {
namespace {

constexpr size_t kMostColumns = 8;  // devices that each have a column

std::string part_text(Ticks part, Ticks all) {
  return fmt::format("{:.1f} %",
                     all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0.0);
}

// "+1.2 ms", "-30 us", "0"
std::string change_text(double seconds) {
  if (seconds == 0) return "0";
  return (seconds < 0 ? "-" : "+") + format_seconds(std::abs(seconds));
}

class PlacementTables {
 public:
  PlacementTables(const PlaceJudge& judge, const DevicePlacement& placement,
                  const PlaceTimeline& timeline, PlaceGoal goal, size_t most)
      : judge_(judge),
        problem_(judge.problem()),
        placement_(placement),
        timeline_(timeline),
        goal_(goal),
        most_(most) {}

  std::string all() const {
    std::string text = devices();
    for (const std::string& table : {links(), nodes()})
      if (!table.empty()) text += "\n" + table;
    return text;
  }

 private:
  std::string more(size_t count, std::string_view what) const {
    return count <= most_ ? "" : fmt::format("and {} more {}\n", count - most_, what);
  }

  std::string devices() const {
    const std::vector<QueueTime> times = queue_times(timeline_.timeline, timeline_.jobs.jobs());
    TextTable table("lrrrrr", {"device", "computing", "share", "memory", "at", "of"});
    for (uint32_t d = 0; d < std::min<size_t>(judge_.devices().size(), most_); ++d) {
      const HeldMemory& memory = timeline_.memory[d];
      table.add_row({fmt::format("{} ({})", d,
                                 excerpt(problem_.system.targets[judge_.devices()[d].target].name)),
                     format_seconds(seconds_of(times[d].computing)),
                     part_text(times[d].computing, timeline_.timeline.end()),
                     format_bytes(memory.peak), format_seconds(seconds_of(memory.at)),
                     format_bytes(judge_.devices()[d].memory)});
    }
    return table.to_string() + more(judge_.devices().size(), "devices");
  }

  std::string links() const {
    const std::vector<LinkTime> times = link_times(timeline_.timeline, timeline_.jobs.jobs());
    std::vector<uint32_t> used;
    for (uint32_t link = 0; link < times.size(); ++link)
      if (times[link].bytes > 0) used.push_back(link);
    if (used.empty()) return "";
    sort_by(used, [&](uint32_t link) { return -times[link].busy; });
    TextTable table("lrrr", {"link", "bytes", "busy", "share"});
    for (size_t k = 0; k < std::min(used.size(), most_); ++k) {
      const LinkTime& time = times[used[k]];
      table.add_row({timeline_.jobs.topology().link_name(used[k]),
                     format_bytes(static_cast<int64_t>(time.bytes)),
                     format_seconds(seconds_of(time.busy)),
                     part_text(time.busy, timeline_.timeline.end())});
    }
    return table.to_string() + more(used.size(), "links");
  }

  // A column for each device, if they are few; or else the best other one.
  std::string nodes() const {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < problem_.nodes.size(); ++i) order.push_back(i);
    sort_by(order, [&](uint32_t i) { return -own_seconds(i); });
    order.resize(std::min(order.size(), most_));
    if (order.empty()) return "";
    const PlaceUnits units(judge_);
    const bool has_all = judge_.devices().size() <= kMostColumns;
    std::vector<std::string> titles = {"node", "on", "takes"};
    if (has_all)
      for (size_t d = 0; d < judge_.devices().size(); ++d)
        titles.push_back(fmt::format("{} on {}", name(goal_), d));
    else
      titles.insert(titles.end(), {"best other", name_of_goal()});
    TextTable table("lrl" + std::string(titles.size() - 3, 'r'), titles);
    for (const uint32_t i : order) {
      const std::vector<PlaceChoice> choices = choices_of(judge_, units, placement_, goal_, i);
      std::vector<std::string> row = {excerpt(label(i)), std::to_string(placement_.device[i]),
                                      prices_text(i, choices)};
      if (has_all)
        for (uint32_t d = 0; d < choices.size(); ++d) row.push_back(choice_text(i, d, choices[d]));
      else
        add_best_other(i, choices, row);
      table.add_row(std::move(row));
    }
    return table.to_string() + more(problem_.nodes.size(), "nodes") +
           "A change is of the whole, if the node and its company moved there and all else "
           "stayed.\n";
  }

  double own_seconds(uint32_t i) const {
    return problem_.nodes[i].seconds[judge_.devices()[placement_.device[i]].target];
  }
  std::string label(uint32_t i) const {
    const PlaceNode& node = problem_.nodes[i];
    return node.name.empty() ? std::to_string(node.id) : node.name;
  }
  std::string name_of_goal() const { return std::string(name(goal_)) + " there"; }

  // "1 ms", or "1 ms fast, 3 ms slow" where targets differ.
  std::string prices_text(uint32_t i, const std::vector<PlaceChoice>& choices) const {
    const std::vector<Target>& targets = problem_.system.targets;
    if (targets.size() == 1) return format_seconds(own_seconds(i));
    std::vector<std::string> prices;
    for (uint32_t t = 0; t < targets.size(); ++t) {
      double least = kCannotRun;
      for (uint32_t d = 0; d < choices.size(); ++d)
        if (judge_.devices()[d].target == t) least = std::min(least, choices[d].seconds);
      prices.push_back(least == kCannotRun
                           ? fmt::format("never {}", targets[t].name)
                           : fmt::format("{} {}", format_seconds(least), targets[t].name));
    }
    return join(prices, ", ");
  }

  std::string choice_text(uint32_t i, uint32_t device, const PlaceChoice& choice) const {
    if (placement_.device[i] == device) return "here";
    if (choice.seconds == kCannotRun) return "cannot";
    return choice.change == kCannotRun ? "too large" : change_text(choice.change);
  }

  void add_best_other(uint32_t i, const std::vector<PlaceChoice>& choices,
                      std::vector<std::string>& row) const {
    uint32_t best = placement_.device[i];
    double least = kCannotRun;
    for (uint32_t d = 0; d < choices.size(); ++d)
      if (d != placement_.device[i] && choices[d].change < least)
        least = choices[d].change, best = d;
    row.push_back(least == kCannotRun ? "-" : std::to_string(best));
    row.push_back(least == kCannotRun ? "-" : change_text(least));
  }

  const PlaceJudge& judge_;
  const PlaceProblem& problem_;
  const DevicePlacement& placement_;
  const PlaceTimeline& timeline_;
  PlaceGoal goal_;
  size_t most_;
};

}  // namespace

std::string placement_text(const PlaceJudge& judge, const DevicePlacement& placement,
                           const PlaceTimeline& timeline, PlaceGoal goal, size_t most) {
  return PlacementTables(judge, placement, timeline, goal, most).all();
}

TimelineNames names_of(const PlaceTimeline& timeline) {
  TimelineNames names;
  for (int64_t d = 0; d < timeline.jobs.devices(); ++d)
    names.queues.push_back(fmt::format("device {}", d));
  const Jobs& jobs = timeline.jobs.jobs();
  for (uint32_t link = 0; link < jobs.links.size(); ++link)
    names.links.push_back(timeline.jobs.topology().link_name(link));
  for (uint32_t job = 0; job < jobs.jobs.size(); ++job)
    names.jobs.push_back(timeline.jobs.name_of(job));
  return names;
}

}  // namespace hone
