#include "session/memory.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ir/summary.h"
#include "target/cgroup.h"

namespace hone {
namespace {

constexpr double kReal = 8;  // bytes of an element in the reference

struct Needed {
  double held = 0;       // by the run: inputs, outputs and constants
  double native = 0;     // on the way, at most if nothing is fused
  double reference = 0;  // on the way
  double given = 0;      // to a contest by the reference, in each of its numerics
  double judged = 0;     // by a contest: both sides of its largest output, and room to compare
};

Result<Needed> needed_by(const Graph& graph, const Bindings& bindings) {
  const GraphSummary summary = HONE_TRY(summarize(graph, bindings));
  Needed needed = {.held = static_cast<double>(summary.constant_bytes),
                   .native = static_cast<double>(summary.peak_bytes),
                   .reference = kReal * static_cast<double>(summary.peak_elements)};
  double elements = 0, largest = 0;
  for (const std::vector<NamedType>* ports : {&summary.inputs, &summary.outputs})
    for (const NamedType& port : *ports) {
      const Type type = HONE_TRY(port.type.bind(bindings));
      needed.held += static_cast<double>(type.static_bytes());
      if (ports == &summary.inputs) continue;
      elements += static_cast<double>(type.static_elements());
      largest = std::max(largest, static_cast<double>(type.static_elements()));
    }
  needed.given = 3 * kReal * elements;
  needed.judged = 4 * kReal * largest;
  return needed;
}

std::string bytes_text(double bytes) {
  const auto whole = static_cast<int64_t>(std::min(bytes, 9e18));
  return fmt::format("{} ({} bytes)", format_bytes(whole), whole);
}

}  // namespace

int64_t memory_limit(const Face& face) { return face.memory_limit.value_or(usable_memory()); }

Error too_large(double needed, const Face& face) {
  constexpr double kMiB = 1 << 20;
  const Labels& labels = face.labels;
  Error error = over_limit("this run needs about {}, the limit is {}", bytes_text(needed),
                           bytes_text(static_cast<double>(memory_limit(face))));
  std::string hint = fmt::format("choose smaller sizes with {}, {} or the options of the model",
                                 labels.size, labels.shape);
  if (!labels.memory.empty())
    hint +=
        fmt::format(", or allow as much with {} {:.0f}", labels.memory, std::ceil(needed / kMiB));
  return std::move(error).with_hint(hint);
}

Result<MemoryLeft> memory_left(const Graph& graph, const Bindings& bindings, Engine engine,
                               const Face& face) {
  const Needed needed = HONE_TRY(needed_by(graph, bindings));
  const int64_t limit = memory_limit(face);
  double all = needed.held;
  if (engine == Engine::reference) all += needed.reference;
  if (engine == Engine::contest)
    all += needed.native + needed.given + std::max(needed.reference, needed.judged);
  if (all > static_cast<double>(limit)) return too_large(all, face);
  if (engine != Engine::contest) {
    const int64_t left = limit - static_cast<int64_t>(needed.held);
    return MemoryLeft{.native = left, .reference = left};
  }
  // Both have what they are known to need, and share the rest.
  const int64_t half = (limit - static_cast<int64_t>(all)) / 2;
  return MemoryLeft{.native = static_cast<int64_t>(needed.native) + half,
                    .reference = static_cast<int64_t>(needed.reference) + half};
}

}  // namespace hone
