#include "report/pass_times.h"

#include "base/text.h"
#include "base/text_table.h"

namespace hone {

std::string pass_times(std::span<const PassReport> reports) {
  TextTable table("lrrr", {"pass", "time", "nodes before", "after"});
  double total = 0;
  for (const PassReport& report : reports) {
    table.add_row({std::string(report.name), format_seconds(report.seconds),
                   std::to_string(report.nodes_before), std::to_string(report.nodes_after)});
    total += report.seconds;
  }
  table.add_row({"total", format_seconds(total), "", ""});
  return std::string(trim(table.to_string()));
}

}  // namespace hone
