#include "report/memory_plot.h"

#include "alloc/uses.h"
#include "base/text.h"
#include "report/page_text.h"

#include <algorithm>
#include <array>

namespace hone {
namespace {

// Pixels.
constexpr double kPlotWidth = 1200;
constexpr double kHeight = 480;  // of a space
constexpr double kMargin = 40;

constexpr size_t kMostTitles = 4000;
constexpr size_t kMostRectangles = 200'000;
constexpr size_t kColors = 24;

struct Rectangle {
  size_t buffer;
  int64_t begin, end;
  int64_t low, high;

  double area() const { return static_cast<double>(end - begin) * static_cast<double>(high - low); }
};

// Neighbours in number are far apart in hue.
int64_t hue_of(size_t buffer) { return static_cast<int64_t>(buffer * 137 % 360); }

// One space, in its own part of the drawing.
class Panel {
 public:
  Panel(const MemoryProblem& problem, const std::vector<int64_t>& offsets, uint32_t space)
      : capacity_(problem.capacity_of(space)) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      const MemoryBuffer& buffer = problem.buffers[i];
      if (buffer.space != space) continue;
      for (const MemoryUse& use : uses_of(buffer)) {
        rectangles_.push_back({i, use.begin, use.end, offsets[i] + use.low, offsets[i] + use.high});
        height_ = std::max(height_, offsets[i] + buffer.size);
      }
    }
    if (rectangles_.empty()) return;
    begin_ = std::ranges::min(rectangles_, {}, &Rectangle::begin).begin;
    end_ = std::ranges::max(rectangles_, {}, &Rectangle::end).end;
    if (rectangles_.size() > kMostRectangles) {
      std::ranges::nth_element(rectangles_, rectangles_.begin() + kMostRectangles, std::greater(),
                               &Rectangle::area);
      left_out_ = rectangles_.size() - kMostRectangles;
      rectangles_.resize(kMostRectangles);
    }
  }

  // `top`: where it begins; `name` is empty if there is but one space.
  std::string draw(double top, std::string_view name, const MemoryProblem& problem,
                   const std::vector<int64_t>& offsets,
                   std::span<const std::string_view> ids) const {
    std::string text = fmt::format(
        "<text x=\"{}\" y=\"{}\">{}</text>\n"
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\"/>\n",
        kMargin, top - 8, title(name), kMargin, top, kPlotWidth, kHeight);
    if (rectangles_.size() <= kMostTitles)
      for (const Rectangle& one : rectangles_)
        text += titled(one, top, problem.buffers[one.buffer], offsets[one.buffer],
                       ids.empty() ? std::to_string(one.buffer) : html(escape(ids[one.buffer])));
    else
      text += by_color(top);
    if (shows_capacity())
      text += fmt::format("<path d=\"M{} {:.2f}h{}\" stroke=\"#c00\" stroke-dasharray=\"6 4\"/>\n",
                          kMargin, y(capacity_, top), kPlotWidth);
    return text;
  }

 private:
  // Far above, it would leave no room for the buffers.
  bool shows_capacity() const { return capacity_ / 2 <= height_; }

  std::string title(std::string_view name) const {
    std::string text(name);
    text += fmt::format("{}height {}", name.empty() ? "" : ": ", height_);
    if (capacity_ != kNoCapacity) text += fmt::format(", capacity {}", capacity_);
    if (!rectangles_.empty()) text += fmt::format(", moments {} to {}", begin_, end_);
    if (left_out_ > 0) text += fmt::format(", without the {} smallest rectangles", left_out_);
    return text;
  }

  double x(int64_t moment) const {
    return kMargin + kPlotWidth * (static_cast<double>(moment) - static_cast<double>(begin_)) /
                         std::max(1.0, static_cast<double>(end_) - static_cast<double>(begin_));
  }
  double y(int64_t offset, double top) const {
    const int64_t full = shows_capacity() ? std::max(height_, capacity_) : height_;
    return top + kHeight -
           kHeight * static_cast<double>(offset) / std::max(1.0, static_cast<double>(full));
  }

  std::string titled(const Rectangle& one, double top, const MemoryBuffer& buffer, int64_t offset,
                     const std::string& id) const {
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"hsl({},60%,70%)\" stroke=\"#333\" stroke-width=\".5\">"
        "<title>{}: [{}, {}), {} bytes at {}</title></rect>\n",
        x(one.begin), y(one.high, top), x(one.end) - x(one.begin),
        y(one.low, top) - y(one.high, top), hue_of(one.buffer), id, buffer.begin, buffer.end,
        buffer.size, offset);
  }

  std::string by_color(double top) const {
    std::array<std::string, kColors> paths;
    for (const Rectangle& one : rectangles_) {
      const double width = x(one.end) - x(one.begin);
      paths[one.buffer * 7 % kColors] +=
          fmt::format("M{:.1f} {:.1f}h{:.2f}v{:.2f}h{:.2f}z", x(one.begin), y(one.high, top), width,
                      y(one.low, top) - y(one.high, top), -width);
    }
    std::string text;
    for (size_t i = 0; i < kColors; ++i)
      if (!paths[i].empty())
        text +=
            fmt::format("<path fill=\"hsl({},60%,70%)\" d=\"{}\"/>\n", i * 360 / kColors, paths[i]);
    return text;
  }

  int64_t capacity_;
  int64_t height_ = 0;
  int64_t begin_ = 0, end_ = 0;
  std::vector<Rectangle> rectangles_;
  size_t left_out_ = 0;
};

}  // namespace

std::string plot_memory(const MemoryProblem& problem, const std::vector<int64_t>& offsets,
                        std::span<const std::string_view> ids) {
  HONE_CHECK(offsets.size() == problem.buffers.size(), "{} offsets of {} buffers", offsets.size(),
             problem.buffers.size());
  const uint32_t spaces = space_count(problem);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kPlotWidth + 2 * kMargin, spaces * (kHeight + kMargin) + kMargin);
  for (uint32_t space = 0; space < spaces; ++space) {
    const Panel panel(problem, offsets, space);
    const std::string name = spaces == 1 ? "" : fmt::format("space {}", space);
    text += panel.draw(kMargin + space * (kHeight + kMargin), name, problem, offsets, ids);
  }
  return text + "</svg>\n";
}

}  // namespace hone
