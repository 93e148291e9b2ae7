#include "cli/wait_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "transport/threads.h"
#include "worker/idle.h"

namespace hone::cli::HONE_FILE {
namespace {

// Keeps the lines.
class Lines final : public Progress {
 public:
  void start(int64_t, std::string_view) override {}
  void advance(int64_t) override {}
  void finish(std::string_view) override {}
  void note(std::string_view line) override {
    const std::scoped_lock lock(mutex_);
    text_ += std::string(line) + "\n";
  }
  std::string text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

TEST(WaitTeller, NamesDevicePeerAndCommandWhileARunWaits) {
  const auto transport = make_thread_transport(3).value();
  Lines lines;
  std::vector<std::byte> idle(4), wanted(4);
  const std::vector<std::byte> sent(4);
  const Ticket request = transport->receive({0, 1, 0}, idle, kAwaitsRequest).value();
  const Ticket receive = transport->receive({2, 1, 0}, wanted, "all_reduce %told").value();
  {
    const WaitTeller teller(lines, 0.1);
    for (int i = 0; i < 6000 && lines.text().find("%told") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(lines.text(), testing::HasSubstr("device 1 has waited for device 2 for "));
  EXPECT_THAT(lines.text(), testing::HasSubstr(": all_reduce %told\n"));
  EXPECT_THAT(lines.text(), testing::Not(testing::HasSubstr(std::string(kAwaitsRequest))));
  for (const int32_t from : {0, 2})
    EXPECT_TRUE(transport->wait(transport->send({from, 1, 0}, sent, "a test").value()).ok());
  EXPECT_TRUE(transport->wait(request).ok());
  EXPECT_TRUE(transport->wait(receive).ok());
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
