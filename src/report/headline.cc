#include "report/headline.h"

#include "base/text.h"

namespace hone {
namespace {

std::string load_text(const ModelReport& report) {
  if (report.load < 0) return "The machine's load is not known.";
  std::string text = fmt::format("The machine's load was {:.2g} before", report.load);
  if (report.load_after >= 0) text += fmt::format(" and {:.2g} after", report.load_after);
  return fmt::format("{} the measurements, on {} core{}.", text, report.target.cores,
                     report.target.cores == 1 ? "" : "s");
}

// The time of a run: all kernels and copies, each by the fastest of its runs.
double seconds_of_kernels(const ModelReport& report) {
  double all = 0;
  for (const ReportedGraph& graph : report.graphs)
    if (graph.profile) all += graph.profile->seconds;
  return all;
}

}  // namespace

std::vector<std::string> headline(const ModelReport& report) {
  if (report.sides.empty()) return {};
  const Timing& own = report.sides[0].timing;
  std::vector<std::string> says = {
      fmt::format("A run takes {}, the median of {} runs on {} thread{}.",
                  format_seconds(own.median()), own.seconds.size(), report.threads,
                  report.threads == 1 ? "" : "s"),
      load_text(report)};
  const double kernels = seconds_of_kernels(report);
  if (kernels <= 0) return says;
  const double rest = own.median() - kernels;
  std::string why = fmt::format(
      "Its kernels and copies come to {}, measured afterwards: of each the fastest of its runs "
      "counts{}.",
      format_seconds(kernels),
      report.threads == 1 ? ", in CPU time, which other processes do not lengthen" : "");
  says.push_back(std::move(why));
  if (rest >= 0)
    says.push_back(fmt::format(
        "The other {} are what slower runs and other processes add, and what lies between kernels.",
        format_seconds(rest)));
  else
    says.push_back(fmt::format("That is {} more than a run: the machine was slower by then.",
                               format_seconds(-rest)));
  return says;
}

}  // namespace hone
