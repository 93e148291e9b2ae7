#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "base/subprocess.h"
#include "oracle/differential.h"

namespace hone {

// "killed by SIGSEGV", "no result within 1 min".
std::string how_it_ended(const ProcessResult& process);

// An error of ErrorCode::limit, in its words, if a process of hone ended by one. The system gave it
// too little memory or too few threads, which says nothing about its case.
Status check_limits(const ProcessResult& process);

// A program of the face that runs the case in the file that is its last word, and prints a verdict
// and a reason: {"/usr/bin/hone", {"reduce-case"}}.
struct CaseProgram {
  std::string path;
  std::vector<std::string> words;
};

// Runs cases in processes of their own, which may crash.
class CaseProcess {
 public:
  CaseProcess(CaseProgram program, double time_limit, const CancelToken& cancel)
      : program_(std::move(program)), time_limit_(time_limit), cancel_(cancel) {}

  // Errors: the case could not be run, or not to its end.
  Result<DifferentialOutcome> run(const DifferentialCase& one) const;
  // For reductions: a smaller case that cannot be run does not fail.
  Verdict verdict(const DifferentialCase& one) const;

 private:
  const CaseProgram program_;
  const double time_limit_;  // seconds for a case; 0: none
  const CancelToken& cancel_;
};

}  // namespace hone
