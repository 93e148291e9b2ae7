#include "learn/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/crc32c.h"
#include "formats/wire_write.h"

namespace hone {
namespace {

// Checksums of what holds checksums itself would be weak, so they are stored turned and shifted.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string event_record(std::string_view event) {
  using wire::little_endian;
  const std::string length = little_endian(uint64_t{event.size()});
  return length + little_endian(masked(crc32c(length))) + std::string(event) +
         little_endian(masked(crc32c(event)));
}

std::string scalar_event(double seconds, int64_t step, std::string_view tag, double value) {
  using wire::integer, wire::number, wire::text;
  const std::string one = text(1, tag) + number(2, static_cast<float>(value));  // Summary.Value
  return number(1, seconds) + integer(2, step) + text(5, text(1, one));
}

Result<EventWriter> EventWriter::create(const std::filesystem::path& folder) {
  HONE_TRY(make_folders(folder));
  const double seconds = now();
  for (int attempt = 0;; ++attempt) {
    const std::filesystem::path path =
        folder / fmt::format("events.out.tfevents.{:010}.hone.{}.{}", static_cast<int64_t>(seconds),
                             getpid(), attempt);
    FileDescriptor file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (!file.is_open() && errno == EEXIST) continue;
    if (!file.is_open()) return os_error("create", path.native(), errno);
    EventWriter writer(std::move(file), path);
    HONE_TRY(
        writer.append(event_record(wire::number(1, seconds) + wire::text(3, "brain.Event:2"))));
    return writer;
  }
}

Status EventWriter::add(int64_t step, std::string_view tag, double value) {
  return append(event_record(scalar_event(now(), step, tag, value)));
}

Status EventWriter::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error("write", path_.native(), errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace hone
