#pragma once

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "log/log.h"

// Logs of tests lie in folders of their own.

namespace hone {

class LogTest : public testing::Test {
 protected:
  std::string path(const std::string& name = "log.db") const {
    return (folder_.path() / name).native();
  }
  std::unique_ptr<Log> open(const std::string& name = "log.db") const {
    return Log::open(path(name)).value();
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

// One whose fields all differ from the defaults, and from those of other seeds.
inline Record some_record(uint64_t seed = 0) {
  return {.kind = seed % 2 == 0 ? "kernel" : "graph",
          .subject = 0xfedc'ba98'7654'3210 + seed,
          .choice = fmt::format("{{algorithm = nest, order = [0, {}]}}", seed),
          .code = 0x8000'0000'0000'0000 + seed,
          .target = 0xffff'ffff'ffff'ffff,
          .conditions = "threads=1 cache=warm",
          .seconds = {1e-6 * static_cast<double>(seed + 1), 0x1.fffffffffffffp-20, 3e-6},
          .version = "0.1.0",
          .time = 1'700'000'000 + static_cast<int64_t>(seed),
          .noise = 0.02};
}

inline Record failed_record(Outcome outcome, const std::string& detail) {
  Record record = some_record();
  record.seconds.clear();
  record.outcome = outcome;
  record.detail = detail;
  return record;
}

inline BestPlan some_plan(uint64_t graph = 1) {
  return {.graph = graph,
          .target = 0x9000'0000'0000'0000,
          .threads = 2,
          .plan = "plan @mlp {\n  threads = 2\n}\n",
          .gain = 1.1,
          .low = 1.05,
          .high = 1.2,
          .version = "0.1.0",
          .time = 1'700'000'000};
}

inline std::vector<Record> without_ids(std::vector<Record> records) {
  for (Record& record : records) record.id = 0;
  return records;
}

}  // namespace hone
