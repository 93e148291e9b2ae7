#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

// Event files, which TensorBoard shows: records of protobuf messages with checksums.

namespace hone {

// A record: its length, the masked checksum of that, the bytes, and their masked checksum.
std::string event_record(std::string_view event);
// The bytes of an Event with one number; seconds since 1970.
std::string scalar_event(double seconds, int64_t step, std::string_view tag, double value);

// Appends events to a new file in a folder; each is in the file when add() returns.
class EventWriter {
 public:
  static Result<EventWriter> create(const std::filesystem::path& folder);
  Status add(int64_t step, std::string_view tag, double value);
  const std::filesystem::path& path() const { return path_; }

 private:
  EventWriter(FileDescriptor file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status append(std::string_view bytes);

  FileDescriptor file_;
  std::filesystem::path path_;
};

}  // namespace hone
