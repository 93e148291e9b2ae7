#include "cli/memory_limit.h"

#include <algorithm>

#include "base/memory_hint.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "target/cgroup.h"

namespace hone::cli {
namespace {

constexpr std::string_view kOption = "memory-limit";
constexpr int64_t kMiB = 1 << 20;

bool has_option(const Arguments& arguments) {
  return std::ranges::find(arguments.command().options, kOption, &Option::name) !=
         arguments.command().options.end();
}

int64_t limit_of(const Arguments& arguments) {
  // The other half is for the code, the compiler, and all else that the machine does.
  if (!has_option(arguments) || !arguments.given(kOption)) return usable_memory() / 2;
  const int64_t mib = arguments.integer(kOption);
  return mib == 0 ? INT64_MAX : mib * kMiB;
}

}  // namespace

Face limited_face(const Arguments& arguments, Console& console) {
  Face face = console.face();
  face.memory_limit = limit_of(arguments);
  if (has_option(arguments)) face.labels.memory = "--memory-limit";
  return face;
}

Status name_memory_limit(Status status, const Arguments& arguments) {
  if (status.ok() || status.error().hint() != kMemoryHint || !has_option(arguments)) return status;
  return std::move(status).error().with_hint(
      fmt::format("try a smaller size or batch, or allow more than {} MiB with --{}",
                  limit_of(arguments) / kMiB, kOption));
}

}  // namespace hone::cli
