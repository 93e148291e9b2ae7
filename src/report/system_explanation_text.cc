#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.h"
#include "base/text_table.h"
#include "report/system_explanation.h"
#include "timeline/time_use.h"

namespace hone {
namespace {

std::string seconds_text(Ticks ticks) { return format_seconds(seconds_of(ticks)); }
std::string share_text(Ticks part, Ticks all) {
  return fmt::format("{:.1f}%",
                     all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0.0);
}
std::string bytes_text(double bytes) { return format_bytes(static_cast<int64_t>(bytes)); }

class Tables {
 public:
  Tables(const SystemTimeline& explanation, size_t most)
      : explanation_(explanation),
        jobs_(explanation.jobs()),
        timeline_(explanation.timeline),
        most_(most) {}

  std::string all() const {
    std::string text = "\n" + chain() + "\n" + devices();
    for (const std::string& table : {links(), exchanges()})
      if (!table.empty()) text += "\n" + table;
    return text;
  }

 private:
  // "... and 3 more links (--top N shows more)"
  std::string rest(size_t count, std::string_view what) const {
    if (count <= most_) return "";
    return fmt::format("and {} more {} (--top N shows more)\n", count - most_, what);
  }

  // A message moves at the rate of its slowest link.
  uint32_t slowest_link(const Job& job) const {
    const auto rate = [&](const Crossing& crossing) {
      return jobs_.links[crossing.link].bytes_per_second;
    };
    return std::ranges::min_element(job.route, {}, rate)->link;
  }

  std::string chain() const {
    std::map<std::string, Ticks> parts;
    for (const uint32_t number : longest_chain(timeline_, jobs_)) {
      const Job& job = jobs_.jobs[number];
      const Ticks whole = timeline_.end(number) - timeline_.start(number);
      if (job.queue != Job::kNoQueue) {
        parts[explanation_.is_step(number) ? "sums and copies" : "computing"] += whole;
        continue;
      }
      const Ticks latency = ticks_of(job.seconds);
      if (latency > 0) parts["latency"] += latency;
      if (whole > latency)
        parts["link " + explanation_.link_name(slowest_link(job))] += whole - latency;
    }
    std::vector<std::pair<std::string, Ticks>> order(parts.begin(), parts.end());
    std::ranges::sort(order, {},
                      [](const auto& part) { return std::pair(-part.second, part.first); });
    TextTable table("lrr", {"on the longest chain", "time", "share"});
    for (const auto& [what, ticks] : std::span(order).first(std::min(order.size(), most_)))
      table.add_row({what, seconds_text(ticks), share_text(ticks, timeline_.end())});
    return table.to_string() + rest(order.size(), "parts");
  }

  // The cause for which a device waits longest.
  std::string most_waited(const QueueTime& time) const {
    std::map<std::string, Ticks> causes;
    for (const QueueWait& wait : time.waits)
      causes[explanation_.name_of(wait.cause)] += wait.end - wait.begin;
    if (causes.empty()) return "";
    const auto most =
        std::ranges::max_element(causes, {}, [](const auto& cause) { return cause.second; });
    return fmt::format("{} ({})", excerpt(most->first), seconds_text(most->second));
  }

  std::string devices() const {
    const std::vector<QueueTime> times = queue_times(timeline_, jobs_);
    const bool has_memory = !explanation_.memory.empty();
    std::vector<std::string> titles = {"devices", "computing", "waiting", "done at"};
    if (has_memory) titles.push_back("memory");
    titles.push_back("waits most for");
    TextTable table(has_memory ? "lrrrrl" : "lrrrl", titles);
    for (size_t d = 0; d < std::min(times.size(), most_); ++d) {
      Ticks waiting = 0;
      for (const QueueWait& wait : times[d].waits) waiting += wait.end - wait.begin;
      std::vector<std::string> row = {explanation_.devices_name(static_cast<uint32_t>(d)),
                                      seconds_text(times[d].computing), seconds_text(waiting),
                                      seconds_text(times[d].end)};
      if (has_memory) row.push_back(format_bytes(explanation_.memory[d]));
      row.push_back(most_waited(times[d]));
      table.add_row(std::move(row));
    }
    return table.to_string() + rest(times.size(), "sorts of devices");
  }

  std::string links() const {
    const std::vector<LinkTime> times = link_times(timeline_, jobs_);
    std::vector<uint32_t> used;
    for (uint32_t link = 0; link < times.size(); ++link)
      if (times[link].bytes > 0) used.push_back(link);
    if (used.empty()) return "";
    std::ranges::sort(used, {}, [&](uint32_t link) { return std::pair(-times[link].busy, link); });
    TextTable table("lrrr", {"link", "busy", "share", "bytes"});
    for (const uint32_t link : std::span(used).first(std::min(used.size(), most_)))
      table.add_row({explanation_.link_name(link), seconds_text(times[link].busy),
                     share_text(times[link].busy, timeline_.end()), bytes_text(times[link].bytes)});
    return table.to_string() + rest(used.size(), "links");
  }

  std::string exchanges() const {
    const std::vector<TimedExchange>& all = explanation_.exchanges;
    if (all.empty()) return "";
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(-all[i].schedule.seconds, i); });
    TextTable table("llrlr", {"collective", "groups", "bytes", "schedule", "alone"});
    for (const size_t i : std::span(order).first(std::min(order.size(), most_))) {
      const TimedExchange& one = all[i];
      const std::string times = one.times == 1 ? "" : fmt::format(", {} times", one.times);
      table.add_row({fmt::format("{} {}{}", name(one.kind), excerpt(one.name), times),
                     fmt::format("{} of {}", one.groups, one.members), format_bytes(one.bytes),
                     to_string(one.schedule.schedule), format_seconds(one.schedule.seconds)});
    }
    return table.to_string() + rest(all.size(), "collectives");
  }

  const SystemTimeline& explanation_;
  const Jobs& jobs_;
  const Timeline& timeline_;
  const size_t most_;
};

}  // namespace

std::string explanation_text(const System& system, const SystemTimeline& explanation,
                             std::string_view model, size_t most) {
  return fmt::format("{} on each of the {} devices of {}, by price {}\n", excerpt(model),
                     system.device_count(), excerpt(system.name),
                     seconds_text(explanation.timeline.end())) +
         Tables(explanation, most).all();
}

std::string overlaps_text(const SystemPlans& plans, size_t most) {
  const std::vector<ChosenOverlap>& all = plans.overlaps;
  if (all.empty()) return "";
  TextTable table("lrrl", {"product", "alone", "in steps", "taken"});
  for (const ChosenOverlap& one : std::span(all).first(std::min(all.size(), most)))
    table.add_row({excerpt(one.value), format_seconds(one.before), format_seconds(one.after),
                   one.overlap.empty() ? "no" : one.overlap});
  std::string text = table.to_string();
  if (all.size() > most)
    text += fmt::format("and {} more products (--top N shows more)\n", all.size() - most);
  return text + fmt::format("without steps, all takes {}\n", format_seconds(plans.undivided));
}

TimelineNames names_of(const SystemTimeline& explanation) {
  TimelineNames names;
  const Classes& classes = explanation.classes.classes;
  for (uint32_t one = 0; one < classes.devices; ++one)
    names.queues.push_back("device " + explanation.devices_name(one));
  for (uint32_t one = 0; one < classes.links; ++one)
    names.links.push_back(explanation.link_name(one));
  for (uint32_t job = 0; job < explanation.jobs().jobs.size(); ++job)
    names.jobs.push_back(explanation.name_of(job));
  return names;
}

}  // namespace hone
