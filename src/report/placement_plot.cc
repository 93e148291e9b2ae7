#include <algorithm>
#include <map>

#include "base/text.h"
#include "place/sort_by.h"
#include "report/page_text.h"
#include "report/placement_text.h"
#include "timeline/time_use.h"

namespace hone {
namespace {

// Pixels.
constexpr double kTimeWidth = 1100;
constexpr double kLeft = 160;
constexpr double kBarHeight = 22, kCurveHeight = 40, kTrackGap = 10, kTop = 40;

constexpr size_t kMostTracks = 64;  // of devices, and of links
constexpr size_t kMostBars = 8000;  // of all tracks, the longest

class PlacementPlot {
 public:
  PlacementPlot(const PlaceJudge& judge, const PlaceTimeline& timeline)
      : judge_(judge), timeline_(timeline), jobs_(timeline.jobs.jobs()) {
    const Ticks end = timeline.timeline.end();
    per_tick_ = kTimeWidth / static_cast<double>(std::max<Ticks>(end, 1));
    for (uint32_t job = 0; job < jobs_.jobs.size(); ++job)
      if (timeline.timeline.end(job) > timeline.timeline.start(job)) drawn_.push_back(job);
    if (drawn_.size() > kMostBars) {
      sort_by(drawn_, [&](uint32_t job) {
        return timeline.timeline.start(job) - timeline.timeline.end(job);
      });
      left_out_ = drawn_.size() - kMostBars;
      drawn_.resize(kMostBars);
      std::ranges::sort(drawn_);
    }
  }

  std::string draw() {
    const size_t devices = std::min<size_t>(judge_.devices().size(), kMostTracks);
    for (uint32_t d = 0; d < devices; ++d) {
      add_track(fmt::format("device {}", d), [&](const Job& job) { return job.queue == d; });
      add_memory(d);
    }
    const std::vector<LinkTime> times = link_times(timeline_.timeline, jobs_);
    size_t links = 0;
    for (uint32_t link = 0; link < times.size(); ++link) {
      if (times[link].bytes <= 0 || ++links > kMostTracks) continue;
      add_track(fmt::format("{}: {}", timeline_.jobs.topology().link_name(link),
                            format_bytes(static_cast<int64_t>(times[link].bytes))),
                [&](const Job& job) {
                  return job.queue == Job::kNoQueue &&
                         std::ranges::find(job.route, link, &Crossing::link) != job.route.end();
                });
    }
    const size_t hidden =
        judge_.devices().size() - devices + (links > kMostTracks ? links - kMostTracks : 0);
    std::string title = fmt::format("step {}", format_seconds(timeline_.seconds()));
    if (left_out_ > 0) title += fmt::format(", without the {} shortest jobs", left_out_);
    if (hidden > 0) title += fmt::format(", without {} tracks", hidden);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n<text x=\"{}\" y=\"20\">{}</text>\n",
               kLeft + kTimeWidth + kTrackGap, next_, kLeft, title) +
           body_ + "</svg>\n";
  }

 private:
  double x(Ticks at) const { return kLeft + per_tick_ * static_cast<double>(at); }

  void add_label(std::string_view text, double height) {
    body_ += fmt::format("<text x=\"4\" y=\"{:.1f}\">{}</text>\n", next_ + height / 2 + 4,
                         html(escape(text)));
    body_ +=
        fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\"/>\n",
                    kLeft, next_, kTimeWidth, height);
  }

  template <class Has>
  void add_track(std::string_view label, const Has& has) {
    add_label(label, kBarHeight);
    for (const uint32_t number : drawn_) {
      const Job& job = jobs_.jobs[number];
      if (!has(job)) continue;
      const Ticks begin = timeline_.timeline.start(number), end = timeline_.timeline.end(number);
      std::string told = timeline_.jobs.name_of(number);
      if (job.queue == Job::kNoQueue) told += ", " + format_bytes(static_cast<int64_t>(job.bytes));
      body_ += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
          "fill=\"hsl({},60%,70%)\" stroke=\"#333\" stroke-width=\".5\">"
          "<title>{}: {} to {}</title></rect>\n",
          x(begin), next_, x(end) - x(begin), kBarHeight, number * 137 % 360, html(escape(told)),
          format_seconds(seconds_of(begin)), format_seconds(seconds_of(end)));
    }
    next_ += kBarHeight + kTrackGap / 2;
  }

  // The bytes that it holds over time.
  void add_memory(uint32_t device) {
    const HeldMemory& memory = timeline_.memory[device];
    add_label(fmt::format("{} of {}", format_bytes(memory.peak),
                          format_bytes(judge_.devices()[device].memory)),
              kCurveHeight);
    const double floor = next_ + kCurveHeight;
    const auto whole = static_cast<double>(std::max<int64_t>(memory.peak, 1));
    std::string path = fmt::format("M{} {:.1f}", kLeft, floor);
    // The most of each column of pixels: a curve has as many steps as there are jobs.
    std::map<int64_t, int64_t> columns;
    int64_t held = 0;
    for (const auto& [at, bytes] : memory.curve) {
      int64_t& most = columns.try_emplace(static_cast<int64_t>(x(at)), held).first->second;
      most = std::max(most, bytes);
      held = bytes;
    }
    for (const auto& [column, bytes] : columns)
      path += fmt::format("H{}V{:.2f}", column,
                          floor - kCurveHeight * static_cast<double>(bytes) / whole);
    body_ +=
        fmt::format("<path d=\"{}H{}V{:.1f}Z\" fill=\"#8ab\"/>\n", path, kLeft + kTimeWidth, floor);
    next_ += kCurveHeight + kTrackGap;
  }

  const PlaceJudge& judge_;
  const PlaceTimeline& timeline_;
  const Jobs& jobs_;
  double per_tick_ = 1;
  std::vector<uint32_t> drawn_;
  size_t left_out_ = 0;
  double next_ = kTop;
  std::string body_;
};

}  // namespace

std::string plot_placement(const PlaceJudge& judge, const PlaceTimeline& timeline) {
  return PlacementPlot(judge, timeline).draw();
}

}  // namespace hone
