#pragma once

#include <string>

#include "base/progress.h"
#include "base/subprocess.h"
#include "report/differential.h"

namespace hone::cli {

// "killed by SIGSEGV", "no result within 1 min".
std::string how_it_ended(const ProcessResult& process);

// Runs cases in processes of their own, which may crash.
class CaseProcess {
 public:
  CaseProcess(double time_limit, const CancelToken& cancel)
      : time_limit_(time_limit), cancel_(cancel) {}

  DifferentialOutcome run(const DifferentialCase& one) const;

 private:
  const double time_limit_;  // seconds for a case; 0: none
  const CancelToken& cancel_;
};

}  // namespace hone::cli
