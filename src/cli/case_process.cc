#include "cli/case_process.h"

#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace hone::cli {

std::string how_it_ended(const ProcessResult& process) {
  if (process.timed_out) return fmt::format("no result within {}", format_seconds(process.seconds));
  if (process.signal != 0) return fmt::format("killed by {}", signal_name(process.signal));
  return fmt::format("exit code {}: {}", process.exit_code, excerpt(process.err));
}

DifferentialOutcome CaseProcess::run(const DifferentialCase& one) const {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("hone-case-{}", getpid());
  const Status written = write_file_atomic(file, print(one));
  if (!written.ok()) return {Verdict::refused, written.error().to_string()};
  const Result<ProcessResult> process = run_process(
      "/proc/self/exe", {"reduce-case", file.string()}, {.wall_seconds = time_limit_}, &cancel_);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!process.ok()) return {Verdict::passed, process.error().to_string()};
  if (process->exit_code != 0 || process->signal != 0)
    return {Verdict::crashed, how_it_ended(*process)};
  const std::string_view word = trim(process->out).substr(0, process->out.find(' '));
  for (Verdict verdict : kVerdicts)
    if (name(verdict) == word) return {verdict, process->out};
  return {Verdict::crashed, how_it_ended(*process)};
}

}  // namespace hone::cli
