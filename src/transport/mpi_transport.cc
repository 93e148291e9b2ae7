#include "transport/mpi_transport.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

#include "base/file.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kOutBytes = 512 << 10;  // that wait for a message of MPI, to each process
constexpr size_t kInBytes = 1 << 20;     // that wait to be read; one message more may come
constexpr int kYields = 200;             // before a thread that waits sleeps
constexpr std::chrono::microseconds kLeastNap(20), kMostNap(500);
static_assert(kOutBytes <= kMostMpiBytes);

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

// Each process tells it to each other one before anything else.
struct MpiHello {
  char magic[8] = {'h', 'o', 'n', 'e', '-', 'm', 'p', 'i'};
  uint64_t group = 0;
  char host[48] = {};
  int32_t process = 0;  // its id there
  uint32_t version = 1;
};
static_assert(sizeof(MpiHello) == 72);

// One communication thread, that of the transport, calls MPI: in sleep(). Others put bytes where it
// finds them.
class MpiWires : public Wires {
 public:
  MpiWires(std::shared_ptr<Mpi> mpi, const std::vector<MpiHello>& hellos)
      : mpi_(std::move(mpi)), hellos_(hellos), lines_(hellos.size()) {
    const MpiHello& own = hellos_[static_cast<size_t>(mpi_->rank())];
    for (size_t i = 0; i < lines_.size(); ++i)
      if (std::strncmp(hellos_[i].host, own.host, sizeof own.host) == 0)
        lines_[i].watch =
            FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, hellos_[i].process, 0)));
  }

  // The last frames leave.
  ~MpiWires() override {
    for (const Clock::time_point end = after(1); Clock::now() < end && !has_left();) {
      if (!turn()) std::this_thread::sleep_for(kLeastNap);
    }
    for (const Line& line : lines_)
      if (line.handle != nullptr) mpi_->fail();  // MPI would wait for ever for the rest
  }

  Result<size_t> write(int32_t process, std::span<const std::byte> bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::byte>& out = at(process).out;
    const size_t count = std::min(bytes.size(), kOutBytes - std::min(kOutBytes, out.size()));
    out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
    if (count > 0) wake_.notify_one();
    return count;
  }

  Result<size_t> read(int32_t process, std::span<std::byte> bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Line& line = at(process);
    size_t count = 0;
    while (count < bytes.size() && !line.in.empty()) {
      const std::vector<std::byte>& first = line.in.front();
      const size_t part = std::min(bytes.size() - count, first.size() - line.read);
      std::memcpy(bytes.data() + count, first.data() + line.read, part);
      count += part;
      line.read += part;
      if (line.read < first.size()) continue;
      line.in.pop_front();
      line.read = 0;
    }
    line.unread -= count;
    return count;
  }

  Status check_alive(int32_t process) override {
    pollfd watch = {at(process).watch.get(), POLLIN, 0};
    if (watch.fd < 0 || poll(&watch, 1, 0) <= 0) return {};
    return over_limit("it does not run any more");
  }

  void drop(int32_t process) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    at(process).is_dropped = true;
    at(process).out.clear();
  }

  void sleep(const std::vector<bool>& wants_to_write, double seconds) override {
    const Clock::time_point end = after(seconds);
    std::chrono::microseconds nap = kLeastNap;
    for (int i = 0; Clock::now() < end; ++i) {
      if (turn()) i = 0, nap = kLeastNap;
      std::unique_lock<std::mutex> lock(mutex_);
      if (is_rung_.exchange(false) || can_go_on(wants_to_write)) return;
      if (i < kYields) {
        lock.unlock();
        std::this_thread::yield();
        continue;
      }
      wake_.wait_for(lock, nap);
      nap = std::min(nap * 2, kMostNap);
    }
  }

  void ring() override {
    is_rung_ = true;
    wake_.notify_one();
  }

  std::string name(int32_t process) const override {
    const MpiHello& hello = hellos_[static_cast<size_t>(process)];
    return fmt::format("rank {}, process {} of {}", process, hello.process,
                       std::string(hello.host, strnlen(hello.host, sizeof hello.host)));
  }
  bool can_be_damaged() const override { return false; }

 private:
  struct Line {
    std::vector<std::byte> out;      // that no message has taken yet
    std::vector<std::byte> leaving;  // the message of the handle
    void* handle = nullptr;
    std::deque<std::vector<std::byte>> in;  // messages, the first one read in part
    size_t read = 0;                        // of the first one
    size_t unread = 0;                      // of all
    bool is_dropped = false;
    FileDescriptor watch;  // a pidfd, on this host
  };

  Line& at(int32_t process) { return lines_[static_cast<size_t>(process)]; }

  bool has_left() {
    return std::ranges::all_of(lines_, [](const Line& line) {
      return line.is_dropped || (line.handle == nullptr && line.out.empty());
    });
  }

  bool can_go_on(const std::vector<bool>& wants_to_write) {
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].is_dropped) continue;
      if (lines_[i].unread > 0) return true;
      if (wants_to_write[i] && lines_[i].out.size() < kOutBytes) return true;
    }
    return false;
  }

  // Moves what can be moved. True: something moved.
  bool turn() {
    bool has_moved = false;
    for (int32_t i = 0; i < mpi_->size(); ++i)
      if (i != mpi_->rank()) has_moved = turn_out(i) || turn_in(i) || has_moved;
    return has_moved;
  }

  bool turn_out(int32_t process) {
    Line& line = at(process);
    if (line.handle != nullptr) {
      if (!mpi_->api().has_left(line.handle)) return false;
      line.handle = nullptr;
      line.leaving.clear();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (line.out.empty()) return false;
      line.leaving.swap(line.out);
    }
    line.handle = mpi_->api().send(line.leaving.data(), line.leaving.size(), process);
    return true;
  }

  bool turn_in(int32_t process) {
    Line& line = at(process);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (line.unread > kInBytes) return false;
    }
    const int64_t bytes = mpi_->api().next_bytes(process);
    if (bytes < 0) return false;
    std::vector<std::byte> message(static_cast<size_t>(bytes));
    mpi_->api().receive(message.data(), message.size(), process);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (message.empty()) return true;
    line.unread += message.size();
    line.in.push_back(std::move(message));
    return true;
  }

  const std::shared_ptr<Mpi> mpi_;
  const std::vector<MpiHello> hellos_;
  std::vector<Line> lines_;  // by process
  std::mutex mutex_;         // guards `out`, `in`, `read`, `unread` and `is_dropped` of them
  std::condition_variable wake_;
  std::atomic<bool> is_rung_ = false;
};

// Tells all processes who this one is, and hears who they are.
Result<std::vector<MpiHello>> exchange_hellos(const Mpi& mpi, const ProcessGroup& group,
                                              double seconds) {
  MpiHello own = {.group = group.hash(), .process = getpid()};
  gethostname(own.host, sizeof own.host - 1);
  std::vector<MpiHello> hellos(static_cast<size_t>(mpi.size()), own);
  std::vector<void*> handles;
  for (int32_t i = 0; i < mpi.size(); ++i)
    if (i != mpi.rank()) handles.push_back(mpi.api().send(&own, sizeof own, i));
  const Clock::time_point end = after(seconds);
  for (int32_t i = 0; i < mpi.size(); ++i) {
    if (i == mpi.rank()) continue;
    int64_t bytes = -1;
    while ((bytes = mpi.api().next_bytes(i)) < 0) {
      if (Clock::now() > end) return over_limit("rank {} did not join in time", i);
      std::this_thread::sleep_for(kLeastNap);
    }
    MpiHello& hello = hellos[static_cast<size_t>(i)];
    if (bytes != sizeof hello) return bad_input("rank {} does not speak for hone", i);
    mpi.api().receive(&hello, sizeof hello, i);
    if (std::memcmp(hello.magic, own.magic, sizeof own.magic) != 0 || hello.version != own.version)
      return bad_input("rank {} runs another version of hone", i);
    if (hello.group != own.group)
      return bad_input("rank {} belongs to another group of devices", i);
  }
  while (std::erase_if(handles, [&](void* each) { return mpi.api().has_left(each); }) > 0 ||
         !handles.empty())
    std::this_thread::yield();
  return hellos;
}

}  // namespace

// ---- MPI ---------------------------------------------------------------------------------------

Mpi::Mpi(const MpiApi& api) : api_(api), rank_(api.rank()), size_(api.size()) {}

Mpi::~Mpi() {
  if (!has_failed_) api_.end();
}

Result<std::shared_ptr<Mpi>> Mpi::start(const std::filesystem::path& module) {
  const auto without = [&](std::string_view why) {
    return unsupported("this hone has no MPI: {}", why)
        .with_hint("install libopenmpi-dev and openmpi-bin, and build hone again");
  };
  // It is never closed: MPI cannot start twice.
  void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return without(dlerror());
  const auto* const api = static_cast<const MpiApi*>(dlsym(library, MpiApi::kSymbol));
  if (api == nullptr || api->version != MpiApi::kVersion)
    return without(fmt::format("{} is of another version", module.string()));
  if (!api->start()) return without("it refuses threads");
  return std::shared_ptr<Mpi>(new Mpi(*api));
}

Result<std::unique_ptr<Transport>> join_mpi(std::shared_ptr<Mpi> mpi, int32_t devices_of_each,
                                            const StreamOptions& options) {
  const std::vector<int32_t> devices(static_cast<size_t>(mpi->size()), devices_of_each);
  return join_mpi(std::move(mpi), devices, options);
}

Result<std::unique_ptr<Transport>> join_mpi(std::shared_ptr<Mpi> mpi,
                                            const std::vector<int32_t>& devices,
                                            const StreamOptions& options) {
  HONE_CHECK(std::ssize(devices) == mpi->size(), "{} ranks for {} processes", devices.size(),
             mpi->size());
  const ProcessGroup group = {mpi->rank(), devices};
  HONE_TRY(check(group));
  Result<std::vector<MpiHello>> hellos = exchange_hellos(*mpi, group, options.join_seconds);
  if (!hellos.ok()) {
    mpi->fail();
    return hellos.error();
  }
  return make_stream_transport(std::make_unique<MpiWires>(std::move(mpi), *hellos), group, options);
}

}  // namespace hone
