#include "session/memory.h"

#include <algorithm>

#include <unistd.h>

#include "base/text.h"
#include "ir/summary.h"

namespace hone {

int64_t machine_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : INT64_MAX;
}

Error too_large(double needed, int64_t limit, const Labels& labels) {
  return over_limit("this run needs about {}, the machine has {}",
                    format_bytes(static_cast<int64_t>(std::min(needed, 9e18))), format_bytes(limit))
      .with_hint(fmt::format("choose smaller sizes with {}, {} or the options of the model",
                             labels.size, labels.shape));
}

// The reference computes in 8 bytes per element. Native code has what it is given and gives as the
// types say.
Result<int64_t> memory_left(const Graph& graph, const Bindings& bindings, Engine engine,
                            const Labels& labels) {
  const GraphSummary summary = HONE_TRY(summarize(graph, bindings));
  const auto constants = static_cast<double>(summary.constant_bytes);
  double held = constants;
  for (const std::vector<NamedType>* ports : {&summary.inputs, &summary.outputs})
    for (const NamedType& port : *ports) {
      const Type type = HONE_TRY(port.type.bind(bindings));
      held += static_cast<double>(type.static_bytes());
    }
  const double computed = 8.0 * static_cast<double>(summary.peak_elements) + constants;
  const double needed = engine == Engine::native ? held : std::max(held, computed);
  const int64_t limit = machine_memory();
  if (needed > static_cast<double>(limit)) return too_large(needed, limit, labels);
  return limit - static_cast<int64_t>(held);
}

}  // namespace hone
