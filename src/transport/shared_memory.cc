#include "transport/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/file.h"

namespace hone {
namespace {

constexpr uint64_t kSegmentMagic = 0x31306d68'73656e68;  // the last thing that the creator writes
constexpr int32_t kMaxProcesses = 64;
constexpr uint64_t kRingBytes = 256 << 10;
constexpr size_t kLine = 64;  // of a cache

struct alignas(kLine) Head {
  std::atomic<uint64_t> magic;
  std::atomic<int32_t> creator;  // its process id
  int32_t processes;
  uint64_t group;  // its hash
};

struct alignas(kLine) Place {
  std::atomic<int32_t> id;       // of the process that has joined; 0: none yet
  std::atomic<uint32_t> bell;    // counts what it should look at; a futex
  std::atomic<uint32_t> sleeps;  // it waits for the bell
};

struct Ring {
  alignas(kLine) std::atomic<uint64_t> written;  // bytes, of all times
  alignas(kLine) std::atomic<uint64_t> read;
  std::atomic<uint32_t> is_full;  // the writer wants to hear of room
  alignas(kLine) std::byte bytes[kRingBytes];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

size_t bytes_for(int32_t processes) {
  const auto count = static_cast<size_t>(processes);
  return sizeof(Head) + count * sizeof(Place) + count * count * sizeof(Ring);
}

std::string why() { return std::strerror(errno); }

bool is_alive(int32_t id) { return ::kill(id, 0) == 0 || errno == EPERM; }

// ---- The memory --------------------------------------------------------------------------------

class SharedSegment {
 public:
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), processes_(other.processes_) {}
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment() {
    if (address_ != nullptr) munmap(address_, bytes_for(processes_));
  }

  static Result<SharedSegment> map(const FileDescriptor& file, int32_t processes) {
    SharedSegment segment;
    segment.processes_ = processes;
    void* address =
        mmap(nullptr, bytes_for(processes), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) return over_limit("cannot map shared memory: {}", why());
    segment.address_ = static_cast<std::byte*>(address);
    return segment;
  }

  Head& head() const { return *reinterpret_cast<Head*>(address_); }
  Place& place(int32_t process) const {
    return reinterpret_cast<Place*>(address_ + sizeof(Head))[process];
  }
  Ring& ring(int32_t from, int32_t to) const {
    std::byte* rings = address_ + sizeof(Head) + static_cast<size_t>(processes_) * sizeof(Place);
    return reinterpret_cast<Ring*>(
        rings)[static_cast<size_t>(from) * static_cast<size_t>(processes_) +
               static_cast<size_t>(to)];
  }

 private:
  std::byte* address_ = nullptr;
  int32_t processes_ = 0;
};

// ---- The streams -------------------------------------------------------------------------------

class SharedWires : public Wires {
 public:
  SharedWires(SharedSegment segment, const ProcessGroup& group)
      : segment_(std::move(segment)),
        own_(group.process),
        processes_(group.processes()),
        is_dropped_(group.devices.size()) {
    for (int32_t i = 0; i < processes_; ++i) {
      const int32_t id = segment_.place(i).id.load();
      ids_.push_back(id);
      const auto file = i == own_ ? -1 : static_cast<int>(syscall(SYS_pidfd_open, id, 0));
      watches_.emplace_back(file);
      is_dropped_[static_cast<size_t>(i)] = i == own_;
    }
    seen_ = place().bell.load();
  }

  Result<size_t> write(int32_t process, std::span<const std::byte> bytes) override {
    Ring& ring = segment_.ring(own_, process);
    const uint64_t at = ring.written.load(std::memory_order_relaxed);
    uint64_t used = HONE_TRY(used_of(ring));
    if (used == kRingBytes) {
      ring.is_full.store(1);
      used = HONE_TRY(used_of(ring));
      if (used == kRingBytes) return size_t{0};
    }
    const auto count = std::min<uint64_t>(bytes.size(), kRingBytes - used);
    const uint64_t begin = at % kRingBytes, first = std::min(count, kRingBytes - begin);
    std::memcpy(ring.bytes + begin, bytes.data(), first);
    std::memcpy(ring.bytes, bytes.data() + first, count - first);
    ring.written.store(at + count, std::memory_order_release);
    if (count < bytes.size()) ring.is_full.store(1);
    ring_at(process);
    return count;
  }

  Result<size_t> read(int32_t process, std::span<std::byte> bytes) override {
    Ring& ring = segment_.ring(process, own_);
    const uint64_t at = ring.read.load(std::memory_order_relaxed);
    const uint64_t used = HONE_TRY(used_of(ring));
    const auto count = std::min<uint64_t>(bytes.size(), used);
    if (count == 0) return size_t{0};
    const uint64_t begin = at % kRingBytes, first = std::min(count, kRingBytes - begin);
    std::memcpy(bytes.data(), ring.bytes + begin, first);
    std::memcpy(bytes.data() + first, ring.bytes, count - first);
    ring.read.store(at + count, std::memory_order_seq_cst);
    if (ring.is_full.exchange(0) != 0) ring_at(process);
    return count;
  }

  Status check_alive(int32_t process) override {
    pollfd watch = {watches_[static_cast<size_t>(process)].get(), POLLIN, 0};
    const bool has_ended =
        watch.fd >= 0 ? poll(&watch, 1, 0) > 0 : !is_alive(ids_[static_cast<size_t>(process)]);
    if (has_ended) return over_limit("it does not run any more");
    return {};
  }

  void drop(int32_t process) override { is_dropped_[static_cast<size_t>(process)] = true; }

  void sleep(const std::vector<bool>& wants_to_write, double seconds) override {
    place().sleeps.store(1);
    if (!can_go_on(wants_to_write)) {
      const timespec time = {static_cast<time_t>(seconds),
                             static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
      syscall(SYS_futex, &place().bell, FUTEX_WAIT, seen_, &time, nullptr, 0);
    }
    place().sleeps.store(0);
    seen_ = place().bell.load();
  }

  void ring() override { ring_at(own_); }

  std::string name(int32_t process) const override {
    return fmt::format("process {}", ids_[static_cast<size_t>(process)]);
  }
  bool can_be_damaged() const override { return false; }

 private:
  Place& place() { return segment_.place(own_); }

  // A peer may be broken: its numbers are checked before they are used.
  static Result<uint64_t> used_of(const Ring& ring) {
    const uint64_t used =
        ring.written.load(std::memory_order_acquire) - ring.read.load(std::memory_order_acquire);
    if (used > kRingBytes) return bad_input("its shared memory is damaged");
    return used;
  }

  void ring_at(int32_t process) {
    Place& place = segment_.place(process);
    place.bell.fetch_add(1);
    if (place.sleeps.load() != 0)
      syscall(SYS_futex, &place.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  bool can_go_on(const std::vector<bool>& wants_to_write) {
    for (int32_t i = 0; i < processes_; ++i) {
      if (is_dropped_[static_cast<size_t>(i)]) continue;
      const Ring& in = segment_.ring(i, own_);
      if (in.written.load() != in.read.load()) return true;
      if (!wants_to_write[static_cast<size_t>(i)]) continue;
      Ring& out = segment_.ring(own_, i);
      out.is_full.store(1);
      if (out.written.load() - out.read.load() < kRingBytes) return true;
    }
    return false;
  }

  const SharedSegment segment_;
  const int32_t own_;
  const int32_t processes_;
  std::vector<int32_t> ids_;
  std::vector<FileDescriptor> watches_;  // pidfds
  std::vector<std::atomic<bool>> is_dropped_;
  uint32_t seen_ = 0;  // of the bell
};

// ---- Joining -----------------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;

bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

class Join {
 public:
  Join(std::string_view name, const ProcessGroup& group, const StreamOptions& options)
      : path_(fmt::format("/hone-{}", name)),
        name_(name),
        group_(group),
        end_(Clock::now() +
             std::chrono::microseconds(static_cast<int64_t>(options.join_seconds * 1e6))) {}

  Result<SharedSegment> run() {
    while (true) {
      if (std::optional<SharedSegment> segment = HONE_TRY(create())) return wait_for_all(*segment);
      if (std::optional<SharedSegment> segment = HONE_TRY(open())) return wait_for_all(*segment);
      HONE_TRY(pause("its creator is not ready"));
    }
  }

 private:
  Status pause(std::string_view what) {
    if (Clock::now() > end_)
      return over_limit("the processes that share memory '{}' are not all there in time: {}", name_,
                        what);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return {};
  }

  // True if the name stands for this memory, and not for a newer one.
  bool is_named(const FileDescriptor& file) const {
    const FileDescriptor named(shm_open(path_.c_str(), O_RDWR | O_CLOEXEC, 0));
    struct stat own = {}, other = {};
    return named.is_open() && fstat(file.get(), &own) == 0 && fstat(named.get(), &other) == 0 &&
           own.st_ino == other.st_ino;
  }

  // Takes the name from this memory. Whoever does so holds its lock, so that nobody takes it from a
  // newer one that somebody has made meanwhile.
  void unlink(const FileDescriptor& file) const {
    if (!file.is_open() || flock(file.get(), LOCK_EX) != 0) return;
    if (is_named(file)) shm_unlink(path_.c_str());
    flock(file.get(), LOCK_UN);
  }

  // Its creator holds the lock until it is ready. If the lock is free, the creator was killed, or
  // has only just made it: then it will find that the name is gone.
  void unlink_unready(const FileDescriptor& file) const {
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) return;
    if (!is_ready(file) && is_named(file)) shm_unlink(path_.c_str());
    flock(file.get(), LOCK_UN);
  }

  bool is_ready(const FileDescriptor& file) const {
    struct stat status = {};
    if (fstat(file.get(), &status) != 0 || status.st_size == 0) return false;
    if (static_cast<size_t>(status.st_size) != bytes_for(group_.processes())) return true;
    const Result<SharedSegment> segment = SharedSegment::map(file, group_.processes());
    return segment.ok() && segment->head().magic.load() == kSegmentMagic;
  }

  // None: somebody else has.
  Result<std::optional<SharedSegment>> create() {
    FileDescriptor file(shm_open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!file.is_open()) {
      if (errno == EEXIST) return std::optional<SharedSegment>();
      return over_limit("cannot make shared memory '{}': {}", name_, why());
    }
    if (flock(file.get(), LOCK_EX) != 0 || !is_named(file)) return std::optional<SharedSegment>();
    // Reserved, not only promised: a full /dev/shm is an error here and no signal later.
    const auto bytes = static_cast<off_t>(bytes_for(group_.processes()));
    if (const int fault = posix_fallocate(file.get(), 0, bytes); fault != 0) {
      unlink(file);
      return over_limit("cannot make shared memory of {} bytes: {}", bytes, std::strerror(fault));
    }
    Result<SharedSegment> mapped = SharedSegment::map(file, group_.processes());
    if (!mapped.ok()) {
      unlink(file);
      return mapped.error();
    }
    SharedSegment segment = std::move(mapped).value();
    Head& head = segment.head();  // all else is zero
    head.creator.store(getpid());
    head.processes = group_.processes();
    head.group = group_.hash();
    head.magic.store(kSegmentMagic);
    flock(file.get(), LOCK_UN);
    if (const Status good = take_place(segment); !good.ok()) {
      unlink(file);
      return good.error();
    }
    created_ = std::move(file);
    return std::optional<SharedSegment>(std::move(segment));
  }

  // None: it is not ready, or was left behind.
  Result<std::optional<SharedSegment>> open() {
    const FileDescriptor file(shm_open(path_.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (!file.is_open()) {
      if (errno == ENOENT) return std::optional<SharedSegment>();
      return bad_input("cannot open shared memory '{}': {}", name_, why());
    }
    struct stat status = {};
    if (fstat(file.get(), &status) != 0 || status.st_size == 0) {
      unlink_unready(file);
      return std::optional<SharedSegment>();
    }
    if (status.st_uid != geteuid()) return bad_input("shared memory '{}' is another user's", name_);
    if (static_cast<size_t>(status.st_size) != bytes_for(group_.processes())) {
      // The creator makes it in one step, so this is another group's.
      return bad_input(
          "shared memory '{}' is that of another group: {} bytes, and {} processes "
          "take {}",
          name_, status.st_size, group_.processes(), bytes_for(group_.processes()));
    }
    SharedSegment segment = HONE_TRY(SharedSegment::map(file, group_.processes()));
    const Head& head = segment.head();
    if (head.magic.load() != kSegmentMagic) {
      unlink_unready(file);
      return std::optional<SharedSegment>();
    }
    if (!is_alive(head.creator.load())) {
      unlink(file);
      return std::optional<SharedSegment>();
    }
    if (head.processes != group_.processes() || head.group != group_.hash())
      return bad_input("process {} shares memory '{}' with another group of devices",
                       head.creator.load(), name_);
    HONE_TRY(take_place(segment));
    return std::optional<SharedSegment>(std::move(segment));
  }

  Status take_place(const SharedSegment& segment) {
    int32_t nobody = 0;
    if (segment.place(group_.process).id.compare_exchange_strong(nobody, getpid())) return {};
    return bad_input("process {} has joined memory '{}' as number {} before", nobody, name_,
                     group_.process);
  }

  Result<SharedSegment> wait_for_all(SharedSegment& segment) {
    Status good;
    for (int32_t i = 0; i < group_.processes() && good.ok(); ++i)
      while (good.ok() && segment.place(i).id.load() == 0)
        good = pause(fmt::format("number {} is missing", i));
    unlink(created_);
    if (!good.ok()) return good.error();
    return std::move(segment);
  }

  const std::string path_;
  const std::string name_;
  const ProcessGroup& group_;
  const Clock::time_point end_;
  FileDescriptor created_;  // none: another process has made the memory
};

}  // namespace

Result<std::unique_ptr<Transport>> join_shared_memory(std::string_view name,
                                                      const ProcessGroup& group,
                                                      const StreamOptions& options) {
  HONE_TRY(check(group));
  if (!is_good_name(name))
    return bad_input("'{}' names no shared memory; it has letters, digits, - and _", name);
  if (group.processes() > kMaxProcesses)
    return over_limit("{} processes share memory; there are at most {}", group.processes(),
                      kMaxProcesses);
  SharedSegment segment = HONE_TRY(Join(name, group, options).run());
  return make_stream_transport(std::make_unique<SharedWires>(std::move(segment), group), group,
                               options);
}

}  // namespace hone
