#include <cstdint>
#include <string_view>

#include "ir/text.h"
#include "plan/plan.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The graph of the seeds, so that legality has something to find.
constexpr std::string_view kGraph = R"(
graph @g(%x: f32[4, 8], %p: bool[]) -> f32[32] {
  %e = exp %x
  %n = neg %e
  %s = add %e, %n
  %if = if %p, %s then (%a: f32[4, 8]) {
    %b = exp %a
    return %b
  } else (%a: f32[4, 8]) {
    return %a
  }
  %r = reshape %if {dims = [32]}
  %q = sqrt %r
  return %q
})";

hone::Target target() {
  hone::Target target;
  target.name = "t";
  target.cores = 4;
  return target;
}

}  // namespace

// Parsing never crashes; what is read prints as a text that means the same; legality has an answer.
HONE_FUZZ(plan) {
  static const hone::Graph graph = hone::parse_graph(kGraph).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plans = hone::parse_plans(text, "fuzz");
  const hone::Result<hone::Plan> plan = hone::parse_plan(text, "fuzz");
  if (!plan.ok()) return;
  HONE_CHECK(plans.ok() && plans->size() == 1 && (*plans)[0].plan == *plan, "{}", text);
  const std::string printed = hone::print(*plan);
  const hone::Result<hone::Plan> again = hone::parse_plan(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(*again == *plan, "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);
  HONE_CHECK(hone::diff(*plan, *again).empty(), "{}", printed);
  const hone::Status partial = hone::check(*plan, graph, target());
  const hone::Status complete = hone::check_complete(*plan, graph, target());
  HONE_CHECK(partial.ok() || !complete.ok(), "{}", printed);
}

}  // namespace hone::HONE_FILE
