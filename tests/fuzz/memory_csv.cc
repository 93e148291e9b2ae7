#include <algorithm>
#include <cstdint>
#include <string_view>

#include "alloc/csv.h"
#include "alloc/plan_memory.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// plan_memory itself judges the placement.
void place(hone::MemoryProblem problem) {
  if (problem.buffers.empty() || problem.buffers.size() > 100) return;
  const hone::MemoryPlan plan =
      hone::plan_memory(problem, {.minimize = true, .nodes = 300}).value();
  HONE_CHECK(plan.offsets.empty() == (plan.verdict == hone::MemoryVerdict::infeasible), "offsets");
  HONE_CHECK(plan.witness.empty() == (plan.verdict != hone::MemoryVerdict::infeasible), "witness");
  for (const hone::MemoryBounds& bounds : plan.spaces)
    problem.capacity.push_back(std::max(bounds.bound, bounds.height - 1));
  (void)hone::plan_memory(problem, {.nodes = 300}).value();
}

}  // namespace

// Reading never crashes; what is read is well formed, can be judged and placed, and is written with
// offsets as a text that means the same.
HONE_FUZZ(memory_csv) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hone::Result<hone::MemoryCsv> csv = hone::parse_memory_csv(text, "fuzz");
  if (!csv.ok()) return;
  const hone::MemoryProblem& problem = csv->problem;
  HONE_CHECK(hone::check(problem).ok(), "{}", text);
  (void)hone::check_each_alone(*csv);
  std::vector<int64_t> offsets;
  for (const hone::MemoryBuffer& buffer : problem.buffers)
    offsets.push_back(buffer.offset.value_or(0));
  (void)hone::heights_of(problem, offsets);
  place(problem);

  const std::string printed = hone::print_memory_csv(*csv, offsets);
  const hone::Result<hone::MemoryCsv> again = hone::parse_memory_csv(printed, "again");
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(again->ids == csv->ids, "{}", printed);
  for (size_t i = 0; i < offsets.size(); ++i)
    HONE_CHECK(again->problem.buffers[i].offset == offsets[i], "{}", printed);
  HONE_CHECK(hone::print_memory_csv(*again, offsets) == printed, "{}", printed);
}

}  // namespace hone::HONE_FILE
