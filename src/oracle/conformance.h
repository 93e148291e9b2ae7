#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/model.h"
#include "oracle/compare.h"
#include "runtime/runnable.h"

// Test cases of two sorts. A text of StableHLO may contain its answers: each function with
// check.expect_eq and the like is a case (front/hlo/checks.h). The others have the ONNX standard's
// form. Each is a folder with model.onnx and data sets:
//   test_data_set_N/input_M.pb, output_M.pb    TensorProto files, or
//   input_M.npy, output_M.npy                  there or beside the model; names.json, an object of
//                                              two lists "inputs" and "outputs", may name them

namespace hone {

struct ConformanceCase {
  std::string set;               // the last part of the folder that was searched
  std::string name;              // the path below it
  std::filesystem::path folder;  // or the file
  std::string program = {};      // of a file: the function that is the case
  std::string disabled = {};     // why its authors do not run it; "": they do
};

// All cases in the folders and below, by name in each, or in files. Symbolic links to folders are
// not followed.
Result<std::vector<ConformanceCase>> find_conformance_cases(
    std::span<const std::filesystem::path> folders);

enum class CaseClass : uint8_t {
  pass,
  wrong,        // other outputs than expected; or hone says that the model or its data are bad
  unsupported,  // refused, with a reason
  crashed,      // a signal, a fault of hone, no time or no memory
};
inline constexpr CaseClass kCaseClasses[] = {CaseClass::pass, CaseClass::wrong,
                                             CaseClass::unsupported, CaseClass::crashed};
std::string_view name(CaseClass result);

enum class CaseMode : uint8_t {
  plain,
  constants,  // inputs are constants of the graphs, which are folded
  symbolic,   // dims of inputs are symbols, as far as the model can be typed then
};
inline constexpr CaseMode kCaseModes[] = {CaseMode::plain, CaseMode::constants, CaseMode::symbolic};
std::string_view name(CaseMode mode);

// Which dims of the inputs were symbols. Deferred: all, but the model could be typed only in part
// before their sizes were known.
enum class SymbolicDims : uint8_t { none, deferred, leading, all };
inline constexpr SymbolicDims kSymbolicDims[] = {SymbolicDims::none, SymbolicDims::deferred,
                                                 SymbolicDims::leading, SymbolicDims::all};
std::string_view name(SymbolicDims dims);

struct CaseOptions {
  CaseMode mode = CaseMode::plain;
  // Makes the model run; null: the reference runs it.
  std::function<Result<std::shared_ptr<const Runnable>>(const Model& model)> compile = {};
  GivenTolerance tolerance = {};         // of real outputs; others must be equal
  std::string program = {};              // of a file: the function; its own checks judge it
  int64_t max_bytes = int64_t{4} << 30;  // of the evaluation
};

struct CaseOutcome {
  CaseClass result = CaseClass::crashed;
  std::string reason;  // "" if it passed
  std::string where;   // "node 'conv1' (Conv)", "output 'y'"
  SymbolicDims symbolic = SymbolicDims::none;
  int64_t data_sets = 0;  // that were compared
  double seconds = 0;
  int64_t max_rss = 0;  // bytes
};

// In this process: a model that hone is not safe for takes the caller along.
CaseOutcome run_conformance_case(const std::filesystem::path& folder, const CaseOptions& options);
// The outcome of an error in what should be right.
CaseOutcome refusal(const Error& error);
// The outcome of an error while it runs.
CaseOutcome failure(const Error& error);
// A function of a file that contains its answers.
CaseOutcome run_checked_program(const std::filesystem::path& file, const CaseOptions& options);

// How outcomes travel between processes; one line.
std::string outcome_line(const CaseOutcome& outcome);
Result<CaseOutcome> parse_outcome(std::string_view line);

}  // namespace hone
