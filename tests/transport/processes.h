#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/shared_memory.h"
#include "transport/tcp.h"

// Groups of processes for tests: threads of this process that do as if they were some.

namespace hone::tested {

inline constexpr const char* kSecret = "a secret that nobody else knows";

// How a process joins its group.
using JoinGroup = std::function<Result<std::unique_ptr<Transport>>(int32_t process)>;

inline std::string fresh_name() {
  static std::atomic<int> counter = 0;
  return fmt::format("test-{}-{}", getpid(), counter++);
}

inline JoinGroup by_shared_memory(const std::vector<int32_t>& devices,
                                  const StreamOptions& options = {}) {
  return [devices, options, name = fresh_name()](int32_t process) {
    return join_shared_memory(name, {process, devices}, options);
  };
}

// Listens for all of them at once, before anyone forks.
inline JoinGroup by_tcp(const std::vector<int32_t>& devices, const StreamOptions& options = {}) {
  auto listeners = std::make_shared<std::vector<TcpListener>>();
  TcpGroup group = {.group = {0, devices}, .addresses = {}, .secret = kSecret};
  for (size_t i = 0; i < devices.size(); ++i) {
    listeners->push_back(*TcpListener::open());
    group.addresses.push_back({"127.0.0.1", listeners->back().port()});
  }
  return [listeners, group, options](int32_t process) mutable {
    group.group.process = process;
    return join_tcp(std::move((*listeners)[static_cast<size_t>(process)]), group, options);
  };
}

// The transports of all processes, each joined by a thread of its own.
inline std::vector<std::unique_ptr<Transport>> join_all(size_t processes, const JoinGroup& join) {
  std::vector<std::unique_ptr<Transport>> transports(processes);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processes; ++i)
    threads.emplace_back([&, i, own = join]() {
      Result<std::unique_ptr<Transport>> joined = own(static_cast<int32_t>(i));
      EXPECT_TRUE(joined.ok()) << joined.error().to_string();
      if (joined.ok()) transports[i] = std::move(joined).value();
    });
  for (std::thread& thread : threads) thread.join();
  return transports;
}

}  // namespace hone::tested
