#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/log/log_testing.h"

// The two programs of kill.sh, which calls them by their names: one writes until it is killed, the
// other looks for what was acknowledged.

namespace hone::HONE_FILE {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Appends to the file at once: what a killed process has written there stays.
void acknowledge(const FileDescriptor& file, const std::string& lines) {
  ASSERT_EQ(::write(file.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
}

TEST(KilledLog, DISABLED_Writes) {
  const std::string path = variable("WRITER_LOG"), name = variable("WRITER_NAME");
  ASSERT_FALSE(path.empty() || name.empty());
  const FileDescriptor acks(
      ::open((path + ".acks").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  ASSERT_TRUE(acks.is_open());
  const std::unique_ptr<Log> log = Log::open(path).value();
  Rng rng(hash_string(name));
  for (uint64_t next = 0;;) {
    std::vector<Record> records;
    std::string lines;
    for (uint64_t count = 1 + rng.below(10); count > 0; --count) {
      Record& record = records.emplace_back(some_record(next));
      record.choice = fmt::format("{}.{}", name, next++);
      record.seconds.resize(1 + rng.below(200), 1e-6);
      lines += record.choice + "\n";
    }
    const KnownText text = {"kernel", next, std::string(rng.below(5000), 'x')};
    ASSERT_TRUE(log->add(records, {&text, 1}).ok());
    acknowledge(acks, lines);
    if (rng.chance(0.1)) ASSERT_TRUE(log->set_best(some_plan(rng.below(5))).ok());
    if (rng.chance(0.02)) (void)log->gc({.before = 0}).ok();  // moves everything, removes nothing
  }
}

TEST(KilledLog, DISABLED_HasWhatWasAcknowledged) {
  const std::string path = variable("WRITER_LOG");
  const std::unique_ptr<Log> log = Log::open(path).value();
  EXPECT_FALSE(log->salvaged().has_value());
  EXPECT_EQ(log->verify().value().damaged, 0);
  std::set<std::string> there;
  ASSERT_TRUE(log->visit({},
                         [&](const Record& record) -> Status {
                           EXPECT_TRUE(there.insert(record.choice).second) << record.choice;
                           return {};
                         })
                  .ok());
  const std::string acks = read_file(path + ".acks", 1 << 30).value();
  std::vector<std::string_view> lines = split_lines(acks);
  for (std::string_view line : lines) EXPECT_TRUE(there.contains(std::string(line))) << line;
  std::ofstream(path + ".count") << lines.size() << " " << there.size() << "\n";
}

}  // namespace
}  // namespace hone::HONE_FILE
