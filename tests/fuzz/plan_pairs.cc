#include <cstdint>
#include <span>

#include "cost/plan_model.h"
#include "learn/plan_pairs.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Reading plans that ran in turns, or a model of plans, never crashes; what is read is written as
// what is read back.
HONE_FUZZ(plan_pairs) {
  using namespace hone;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (const auto model = parse_plan_model(bytes, "fuzz"); model.ok())
    HONE_CHECK(!model->members.empty(), "a model without networks");
  const auto arrays = parse_npz(bytes, "fuzz");
  if (!arrays.ok()) return;
  const auto pairs = plan_pairs_of(*arrays);
  if (pairs.ok()) HONE_CHECK(plan_pairs_of(arrays_of(*pairs)).value() == *pairs, "other plans");
}

}  // namespace hone::HONE_FILE
