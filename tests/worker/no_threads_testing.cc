#include <memory>
#include <vector>

#include "base/forked.h"
#include "tests/worker/no_threads.h"
#include "worker/watch.h"

namespace hone::tested {

std::string without_threads(const std::function<std::string()>& work) {
  std::string said = "nothing";
  const ForkedWork copy = [&](const Tell& tell) {
    // A thread needs memory for its stack.
    constexpr size_t kMost = 1000;
    std::vector<std::unique_ptr<Watch>> all;
    all.reserve(kMost);
    std::string refusal;
    while (refusal.empty() && all.size() < kMost) {
      Result<std::unique_ptr<Watch>> made = Watch::make([] { return true; });
      if (made.ok())
        all.push_back(*std::move(made));
      else
        refusal = made.error().to_string();
    }
    tell(all.size() < kMost ? work() : "there are always threads");
  };
  const ForkLimits limits = {.silence_seconds = 60, .memory_bytes = int64_t{64} << 20};
  const auto ends =
      run_forked({&copy, 1}, limits, [&](size_t, std::string_view message) { said = message; });
  if (!ends.ok()) return ends.error().to_string();
  const ForkEnd& end = ends->front();
  return end.is_done() && !end.timed_out ? said : "the copy ended otherwise";
}

}  // namespace hone::tested
