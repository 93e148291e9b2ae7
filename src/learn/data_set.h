#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/log.h"
#include "target/target.h"

// A data set on disk: what kernels take on one machine under one protocol, and which programs have
// them. docs/datasets.md describes the folder:
//
//   dataset.json     what was measured, and how
//   programs.jsonl   a line for each kernel of each program
//   log.db           a log with all records, and with the texts of kernels and of the target

namespace hone {

struct DataSetInfo {
  Target target;
  int64_t threads = 1;
  std::string conditions = {};  // of records (log.h): the protocol
  std::string version = {};     // of hone, that made the set
  int64_t seed = 0;             // of what was drawn
  int64_t schedules = 0;        // that are wanted of a kernel
  // The same target with the rates that 'hone target probe' measures; none: nobody has measured
  // them where the set was made.
  std::optional<Target> probe = {};
};

// Where a kernel comes from: the program's default plan, or that plan with other groups or layouts.
enum class KernelOrigin : uint8_t { plan, groups, layouts };
std::string_view name(KernelOrigin origin);

// A kernel of a program, with the schedule that the planner gave it.
struct ProgramKernel {
  uint64_t kernel = 0;
  std::string program = {};  // "zoo:resnet50"
  std::string planned = {};  // a schedule's text
  double price = 0;          // seconds of a launch, as the planner priced it
  KernelOrigin origin = KernelOrigin::plan;
  bool operator==(const ProgramKernel&) const = default;
};

// A line of printable ASCII without #.
inline constexpr size_t kMaxProgramBytes = 1000;
Status check_program_name(std::string_view name);
// The name of the program's files: "zoo_mlp_size=tiny" for "zoo:mlp,size=tiny".
std::string file_name_of(std::string_view program);

class DataSet {
 public:
  // The content of the folder stays, if it is of the same target, threads and conditions;
  // otherwise an error says which of them differs. Seed and number of schedules become those given.
  // A probe that the folder has stays, too.
  static Result<DataSet> make(const std::string& folder, const DataSetInfo& info);
  // One that is there. Nothing is written.
  static Result<DataSet> open(const std::string& folder);

  const DataSetInfo& info() const { return info_; }
  const std::string& folder() const { return folder_; }
  Log& log() const { return *log_; }
  // In the order in which they were added.
  const std::vector<ProgramKernel>& kernels() const { return kernels_; }
  std::vector<std::string> programs() const;      // sorted
  bool has_program(std::string_view name) const;  // with the kernels of its default plan

  // Keeps rates that were measured. An error: of another target.
  Status know_probe(const Target& probe);
  // A kernel that the program has already stays as it is. Atomic.
  Status add(std::span<const ProgramKernel> kernels);
  // The records that belong to the set.
  Query query() const;

 private:
  DataSet(std::string folder, DataSetInfo info) : folder_(std::move(folder)), info_(info) {}
  Status read_programs();

  std::string folder_;
  DataSetInfo info_;
  std::shared_ptr<Log> log_;
  std::vector<ProgramKernel> kernels_;
};

// An error if data of both must not be mixed; it names what differs.
Status check_same(const DataSetInfo& a, const DataSetInfo& b);
// Refuses fingerprints that differ. Times of different processors are never mixed.
Status check_target(uint64_t known, uint64_t given);

struct MergedSets {
  LogCounts added = {};  // records and texts
  int64_t kernels = 0;   // of programs, that were added
};
// Adds the kernels that another set has, if both are of one target, threads and conditions.
Result<MergedSets> merge(DataSet& into, const DataSet& from);

}  // namespace hone
