#include "report/quantize_page.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/page_files.h"
#include "report/page_text.h"

namespace hone {
namespace {

constexpr size_t kMostRows = 2000;
// Pixels of the drawing.
constexpr double kWidth = 640, kHeight = 320, kMargin = 56;

std::string card(std::string_view number, std::string_view what) {
  return fmt::format("<div class=\"card\"><strong>{}</strong><span>{}</span></div>\n", html(number),
                     html(what));
}

std::string cost_text(double cost, bool is_by_seconds) {
  return is_by_seconds ? format_seconds(cost) : format_bytes(static_cast<int64_t>(cost));
}

// The front: costs to the right, errors upwards by their logarithms.
class FrontDrawing {
 public:
  FrontDrawing(const QuantizeReport& report) : report_(report) {
    for (const quantize::FrontPoint& point : report.result.front) {
      if (!(point.error > 0) || !std::isfinite(point.error)) continue;
      points_.push_back(point);
      most_cost_ = std::max(most_cost_, point.cost);
      least_ = std::min(least_, point.error), most_ = std::max(most_, point.error);
    }
    least_ = std::min(least_, report.error) / 2, most_ = std::max(most_, report.error) * 2;
  }

  std::string draw() const {
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"error over cost\" width=\"100%\" "
        "font-size=\"12\" fill=\"currentColor\">\n",
        kWidth, kHeight);
    const double limit = y_of(report_.error);
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
        "stroke-dasharray=\"4\"/><text x=\"{}\" y=\"{:.1f}\">allowed: {:.2g}</text>\n",
        kMargin, kWidth, limit, limit, kMargin + 4, limit - 4, report_.error);
    for (const quantize::FrontPoint& point : points_)
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"var({})\"><title>{}, "
          "error {:.3g}{}</title></circle>\n",
          x_of(point.cost), y_of(point.error), point.is_taken ? 7 : 4,
          point.is_taken ? "--c1" : "--c0", cost_text(point.cost, report_.is_by_seconds),
          point.error, point.is_taken ? ", taken" : "");
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<text x=\"{}\" y=\"{}\">0</text><text x=\"0\" y=\"14\">error</text>\n",
        kWidth, kHeight - 8, cost_text(most_cost_, report_.is_by_seconds), kMargin, kHeight - 8);
    return svg + "</svg>\n";
  }

 private:
  double x_of(double cost) const {
    const double share = most_cost_ > 0 ? cost / most_cost_ : 0;
    return kMargin + share * (kWidth - 2 * kMargin);
  }
  double y_of(double error) const {
    const double share = std::log(error / least_) / std::log(most_ / least_);
    return kHeight - kMargin / 2 - share * (kHeight - kMargin);
  }

  const QuantizeReport& report_;
  std::vector<quantize::FrontPoint> points_;
  double most_cost_ = 0, least_ = 1, most_ = 0;
};

std::string layer_rows(const quantize::QuantizeResult& result) {
  std::string rows;
  const size_t count = std::min(result.reports.size(), kMostRows);
  for (const quantize::LayerReport& each : std::span(result.reports).first(count)) {
    const bool is_changed = each.level != quantize::Precision::f32;
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        html(page_text(each.name)), quantize::name(each.level),
        is_changed ? fmt::format("{:.2g}", each.error) : "", format_seconds(each.seconds_f32),
        format_seconds(each.seconds), format_bytes(each.bytes), html(page_text(remark(each))));
  }
  if (count < result.reports.size())
    rows += fmt::format("<tr><td>{} more layers</td></tr>\n", result.reports.size() - count);
  return rows;
}

}  // namespace

std::string quantize_page(const QuantizeReport& report) {
  const quantize::QuantizeResult& result = report.result;
  const std::string model = html(page_text(report.model));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<title>{} - fewer bits</title>\n<style>\n",
      model);
  page += page_file("report.css");
  page += fmt::format(
      "body {{ display: block; }}\n</style>\n</head>\n<body>\n<h1>{}</h1>\n"
      "<div class=\"cards\">\n",
      model);
  page += card(format_seconds(report.times.a.median()), "before, measured in turns");
  page += card(format_seconds(report.times.b.median()), "after");
  page += card(fmt::format("{:.3g}", result.calibration.error), "error on arrays that it saw");
  page += card(fmt::format("{:.3g}", result.unseen.error), "error on arrays that it did not see");
  if (const std::optional<double> equal = result.unseen.equal_best())
    page += card(fmt::format("{:.2f} %", 100 * *equal), "equal best answers");
  page +=
      "</div>\n<section><h2>Choices that no other one beats</h2>\n<p class=\"hint\">Each point is "
      "a choice of levels for all layers: ";
  page += report.is_by_seconds ? "its time by price" : "the bytes of its weights";
  page += ", and its error on the calibration arrays. The large one is taken.</p>\n";
  page += FrontDrawing(report).draw();
  page +=
      "</section>\n<section><h2>Layers</h2>\n<table>\n<tr><th>layer</th><th>level</th>"
      "<th>error alone</th><th>f32</th><th>now</th><th>weights</th><th>remarks</th></tr>\n";
  return page + layer_rows(result) + "</table>\n</section>\n</body>\n</html>\n";
}

}  // namespace hone
