#include "cli/tracer.h"

#include "base/file.h"
#include "cli/arguments.h"
#include "cli/console.h"

namespace hone::cli {

Status Tracer::check(const Arguments& arguments) {
  if (!arguments.given("trace")) return {};
  if (arguments.text("trace") == "-")
    return usage_error("--trace writes a file; the standard output has other data");
  return {};
}

Tracer::Tracer(const Arguments& arguments)
    : path_(arguments.given("trace") ? arguments.text("trace") : ""),
      process_(fmt::format("hone {} {}", arguments.command().name, arguments.text("MODEL"))) {}

void Tracer::watch(NativeOptions& options) {
  if (!is_wanted()) return;
  options.observer = [this](CompileStage stage, double seconds) {
    const int64_t end = steady_now();
    trace_.add({"stage", std::string(name(stage))},
               {end - static_cast<int64_t>(1e9 * seconds), end, this_thread()});
  };
  options.kernel_observer = [this](const std::string& kernel, const Span& span) {
    trace_.add({"compile", kernel}, span);
  };
}

Status Tracer::write(Console& console) const {
  if (!is_wanted()) return {};
  HONE_TRY(write_file_atomic(path_, trace_.json(process_)));
  const int64_t lost = trace_.lost();
  console.note(
      "wrote {}, for ui.perfetto.dev{}", path_,
      lost == 0 ? ""
                : fmt::format("; {} later events are left out, {} are there", lost, Trace::kMost));
  return {};
}

}  // namespace hone::cli
