#include "transport/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>

#include "base/forked.h"
#include "tests/base/says_testing.h"
#include "tests/transport/processes.h"

namespace hone::HONE_FILE {
namespace {

using tested::fresh_name;
using tested::refuses;

bool is_there(const std::string& name) {
  const FileDescriptor file(shm_open(("/hone-" + name).c_str(), O_RDWR | O_CLOEXEC, 0));
  return file.is_open();
}

// A process makes the memory, and is killed while it waits for the others or a little before.
void leave_behind(const std::string& name, const std::vector<int32_t>& devices) {
  const ForkedWork work = [&](const Tell&) {
    std::thread([&] {
      while (!is_there(name)) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      raise(SIGKILL);
    }).detach();
    (void)join_shared_memory(name, {0, devices});
  };
  const auto ends = run_forked(std::span(&work, 1), {}, [](size_t, std::string_view) {});
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(is_there(name));
}

// All come to it at once. Each one may find that it is stale; none may take away the new one.
TEST(SharedMemory, ReplacesWhatAKilledProcessLeftBehind) {
  const std::vector<int32_t> devices(6, 1);
  for (int i = 0; i < 20 && !testing::Test::HasFailure(); ++i) {
    const std::string name = fresh_name();
    leave_behind(name, devices);
    const auto transports = tested::join_all(devices.size(), [&](int32_t process) {
      return join_shared_memory(name, {process, devices}, {.join_seconds = 10});
    });
    EXPECT_FALSE(is_there(name));
  }
}

TEST(SharedMemory, LeavesNoNameBehindWhenAGroupIsNotWhole) {
  const std::string name = fresh_name();
  EXPECT_THAT(join_shared_memory(name, {0, {1, 1}}, {.join_seconds = 0.1}),
              refuses(ErrorCode::limit, "number 1 is missing"));
  EXPECT_FALSE(is_there(name));
}

// Its creator was killed before it wrote anything, or all of it.
TEST(SharedMemory, ReplacesWhatIsNeverReady) {
  const auto leave = [](const std::string& name, off_t bytes) {
    const FileDescriptor file(
        shm_open(("/hone-" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(file.get(), bytes), 0);
  };
  const std::vector<int32_t> devices(4, 1);
  const std::string made = fresh_name();
  leave_behind(made, devices);
  struct stat whole = {};
  ASSERT_EQ(stat(("/dev/shm/hone-" + made).c_str(), &whole), 0);
  shm_unlink(("/hone-" + made).c_str());
  for (int i = 0; i < 20 && !testing::Test::HasFailure(); ++i) {
    const std::string name = fresh_name();
    leave(name, i % 2 == 0 ? 0 : whole.st_size);
    const auto transports = tested::join_all(devices.size(), [&](int32_t process) {
      return join_shared_memory(name, {process, devices}, {.join_seconds = 10});
    });
    EXPECT_FALSE(is_there(name));
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
