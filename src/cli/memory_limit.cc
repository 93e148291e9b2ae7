#include "cli/memory_limit.h"

#include "base/memory_hint.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "target/cgroup.h"

namespace hone::cli {
namespace {

constexpr std::string_view kOption = "memory-limit";
constexpr int64_t kMiB = 1 << 20;

int64_t limit_of(const Arguments& arguments) {
  // The other half is for the code, the compiler, and all else that the machine does.
  if (!arguments.given(kOption)) return usable_memory() / 2;
  const int64_t mib = arguments.integer(kOption);
  return mib == 0 ? INT64_MAX : mib * kMiB;
}

}  // namespace

Face limited_face(const Arguments& arguments, Console& console) {
  Face face = console.face();
  face.memory_limit = limit_of(arguments);
  if (arguments.takes(kOption)) face.labels.memory = "--memory-limit";
  return face;
}

Status name_memory_limit(Status status, const Arguments& arguments) {
  if (status.ok() || status.error().hint() != kMemoryHint || !arguments.takes(kOption))
    return status;
  return std::move(status).error().with_hint(
      fmt::format("try a smaller size or batch, or allow more than {} MiB with --{}",
                  limit_of(arguments) / kMiB, kOption));
}

}  // namespace hone::cli
