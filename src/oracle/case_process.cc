#include "oracle/case_process.h"

#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace hone {

std::string how_it_ended(const ProcessResult& process) {
  if (process.timed_out) return fmt::format("no result within {}", format_seconds(process.seconds));
  if (process.signal != 0) return fmt::format("killed by {}", signal_name(process.signal));
  return fmt::format("exit code {}: {}", process.exit_code, excerpt(process.err));
}

Status check_limits(const ProcessResult& process) {
  if (process.signal != 0 || process.exit_code != static_cast<int>(ErrorCode::limit)) return {};
  std::string_view words = "a limit was hit";
  static constexpr std::string_view kMark = ": error: ";  // behind the name of the program
  for (std::string_view line : split_lines(process.err))
    if (const size_t mark = line.find(kMark); mark != std::string_view::npos)
      words = line.substr(mark + kMark.size());
  return over_limit("{}", words);
}

Result<DifferentialOutcome> CaseProcess::run(const DifferentialCase& one) const {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("hone-case-{}", getpid());
  HONE_TRY(write_file_atomic(file, print(one)));
  std::vector<std::string> words = program_.words;
  words.push_back(file.string());
  const Result<ProcessResult> process =
      run_process(program_.path, words, {.wall_seconds = time_limit_}, &cancel_);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!process.ok()) return process.error();
  HONE_TRY(check_limits(*process));
  if (process->exit_code != 0 || process->signal != 0)
    return DifferentialOutcome{Verdict::crashed, how_it_ended(*process)};
  const std::string_view word = trim(process->out).substr(0, process->out.find(' '));
  for (Verdict verdict : kVerdicts)
    if (name(verdict) == word) return DifferentialOutcome{verdict, process->out};
  return DifferentialOutcome{Verdict::crashed, how_it_ended(*process)};
}

Verdict CaseProcess::verdict(const DifferentialCase& one) const {
  const Result<DifferentialOutcome> outcome = run(one);
  return outcome.ok() ? outcome->verdict : Verdict::passed;
}

}  // namespace hone
