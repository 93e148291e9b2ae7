#include "transport/local_group.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "transport/proof.h"
#include "transport/shared_memory.h"
#include "transport/tcp.h"
#include "transport/threads.h"

namespace hone {
namespace {

using Joined = Result<std::unique_ptr<Transport>>;

// All at once, since each one waits for the others.
Result<std::vector<std::unique_ptr<Transport>>> join_in_threads(
    int32_t devices, const std::function<Joined(int32_t)>& join) {
  std::vector<Joined> joined;
  for (int32_t i = 0; i < devices; ++i) joined.emplace_back(std::unique_ptr<Transport>());
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < devices; ++i)
    threads.emplace_back([&, i] { joined[static_cast<size_t>(i)] = join(i); });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Transport>> transports;
  for (Joined& each : joined) transports.push_back(HONE_TRY(std::move(each)));
  return transports;
}

Result<std::vector<std::unique_ptr<Transport>>> join_by_memory(const std::vector<int32_t>& devices,
                                                               const StreamOptions& options) {
  static std::atomic<int> groups = 0;
  const std::string name = fmt::format("local-{}-{}", getpid(), groups++);
  return join_in_threads(static_cast<int32_t>(devices.size()), [&](int32_t process) {
    return join_shared_memory(name, {process, devices}, options);
  });
}

Result<std::vector<std::unique_ptr<Transport>>> join_by_tcp(const std::vector<int32_t>& devices,
                                                            const StreamOptions& options) {
  TcpGroup group = {.group = {0, devices}, .addresses = {}, .secret = {}};
  for (const std::byte each : HONE_TRY(random_digest())) group.secret += static_cast<char>(each);
  std::vector<TcpListener> listeners;
  for (size_t i = 0; i < devices.size(); ++i) {
    listeners.push_back(HONE_TRY(TcpListener::open()));
    group.addresses.push_back({"127.0.0.1", listeners.back().port()});
  }
  return join_in_threads(static_cast<int32_t>(devices.size()), [&](int32_t process) {
    TcpGroup own = group;
    own.group.process = process;
    return join_tcp(std::move(listeners[static_cast<size_t>(process)]), own, options);
  });
}

}  // namespace

std::string_view name(TransportKind kind) {
  switch (kind) {
    case TransportKind::threads: return "threads";
    case TransportKind::shared_memory: return "shared_memory";
    case TransportKind::tcp: return "tcp";
    case TransportKind::mpi: return "mpi";
  }
  return "";
}

Result<LocalGroup> LocalGroup::join(TransportKind kind, int32_t devices,
                                    const StreamOptions& options) {
  if (devices < 1 || devices > Transport::kMaxDevices)
    return bad_input("{} devices; there are 1 to {}", devices, Transport::kMaxDevices);
  LocalGroup group;
  if (kind == TransportKind::threads) {
    group.transports_.push_back(HONE_TRY(make_thread_transport(devices, options.exchange)));
    return group;
  }
  const std::vector<int32_t> one_each(static_cast<size_t>(devices), 1);
  group.transports_ = HONE_TRY(kind == TransportKind::tcp ? join_by_tcp(one_each, options)
                                                          : join_by_memory(one_each, options));
  return group;
}

}  // namespace hone
