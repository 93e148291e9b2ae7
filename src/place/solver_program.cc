#include "place/solver_program.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace hone {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(line, ' '))
    if (!trim(word).empty()) words.push_back(trim(word));
  return words;
}

Result<std::string> solved_by_cbc(const PlaceRun& run, const std::string& text) {
  const PlaceSolver& solver = run.options().solver;
  if (solver.program.empty()) return unsupported("there is no program 'cbc'");
  const TempDir folder = HONE_TRY(TempDir::create(solver.scratch));
  const std::filesystem::path lp = folder.path() / "place.lp",
                              solution = folder.path() / "place.solution";
  HONE_TRY(write_file_atomic(lp, text));
  const double left =
      std::clamp(run.options().seconds - run.seconds_here(), 1.0, kMostSolverSeconds);
  HONE_TRY(run_process(solver.program.string(),
                       {lp.string(), "timeMode", "elapsed", "sec", format_double(std::floor(left)),
                        "threads", "1", "solve", "solu", solution.string()},
                       {.wall_seconds = left + 10}, run.options().cancel));
  constexpr int64_t kMostSolution = int64_t{1} << 26;
  return read_file(solution, kMostSolution);
}

std::vector<SolvedValue> solved_values(std::string_view solution) {
  std::vector<SolvedValue> values;
  for (const std::string_view line : split_lines(solution)) {
    std::vector<std::string_view> words = words_of(line);
    // "12 x_3_1 1 0"; a solution that is not feasible has "**" in front.
    if (words.size() < 3) continue;
    const Result<double> value = parse_double(words[2]);
    if (value.ok()) values.push_back({words[1], *value});
  }
  return values;
}

}  // namespace hone
