#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/case_process.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "report/reduce.h"

namespace hone::cli {
namespace {

constexpr int64_t kMaxCaseText = int64_t{64} << 20;  // bytes

Result<DifferentialCase> case_of(const Arguments& arguments) {
  const std::string& file = arguments.text("CASE");
  return parse_case(HONE_TRY(read_file(file, kMaxCaseText)), file);
}

}  // namespace

Status cmd_reduce(const Arguments& arguments, Console& console) {
  const DifferentialCase one = HONE_TRY(case_of(arguments));
  const Target host = HONE_TRY(host_target());
  if (one.isa > host.isa)
    return unsupported("the case needs {}, this machine has {}", name(one.isa), name(host.isa));
  const CaseProcess process(arguments.real("time-limit"), console.cancel());
  const DifferentialOutcome before = process.run(one);
  HONE_TRY(console.cancel().check());
  if (!is_failure(before.verdict)) {
    console.note("the case does not fail: {}", name(before.verdict));
    return {};
  }
  console.note("{}", trim(before.reason));
  int64_t runs = 0;
  const DifferentialCase reduced =
      reduce(one, before.verdict, host, [&](const DifferentialCase& smaller) {
        ++runs;
        return process.run(smaller).verdict;
      });
  HONE_TRY(console.cancel().check());
  console.note("reduced in {} runs", runs);
  const std::string output = arguments.text("output");
  if (output != "-") return write_file_atomic(output, print(reduced));
  console.write(print(reduced));
  return {};
}

Status cmd_reduce_case(const Arguments& arguments, Console& console) {
  const DifferentialCase one = HONE_TRY(case_of(arguments));
  const Target host = HONE_TRY(host_target());
  const std::shared_ptr<Team> team = HONE_TRY(Team::create({.threads = host.cores}));
  const DifferentialOutcome outcome = run_case(one, host, team);
  console.print("{} {}\n", name(outcome.verdict), outcome.reason);
  return {};
}

}  // namespace hone::cli
