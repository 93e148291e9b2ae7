#pragma once

#include <algorithm>
#include <compare>
#include <cstring>
#include <filesystem>
#include <optional>
#include <queue>
#include <type_traits>
#include <vector>

#include "base/file.h"

// Records in order, more of them than memory holds.

namespace hone {

// A file without a name: it is gone when it is closed, or the process is killed.
class SpillFile {
 public:
  static Result<SpillFile> create(const std::filesystem::path& folder);
  Status append(std::span<const std::byte> bytes);
  Status read(size_t at, std::span<std::byte> bytes) const;
  size_t size() const { return size_; }

 private:
  FileDescriptor file_;
  size_t size_ = 0;
};

// Records are added, then taken in ascending order. Memory holds `memory` bytes of them; each time
// that they are more, they are sorted and written behind one another, and merged in the end.
template <class Record>
class SortedRuns {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  // folder: of the file; if it is empty, more records than memory holds are over the limit.
  SortedRuns(size_t memory, std::filesystem::path folder)
      : most_(std::max(memory / sizeof(Record), kLeast)), folder_(std::move(folder)) {}

  Status add(const Record& record) {
    if (buffer_.size() == most_) HONE_TRY(spill());
    // No more than the limit where twice as much would be.
    if (buffer_.size() == buffer_.capacity())
      buffer_.reserve(std::min(most_, std::max(kLeast, 2 * buffer_.size())));
    buffer_.push_back(record);
    ++size_;
    return {};
  }

  size_t size() const { return size_; }
  size_t spilled() const { return file_ ? file_->size() : 0; }  // bytes

  // take(const Record&) -> Status gets each. Afterwards there are none.
  template <class Take>
  Status merge(const Take& take) {
    std::sort(buffer_.begin(), buffer_.end());
    std::vector<Cursor> cursors;
    const size_t each = std::max(kLeast, most_ / (8 * (runs_.size() + 1)));
    for (const Run& run : runs_) {
      cursors.push_back({.next = run.begin, .end = run.begin + run.count});
      HONE_TRY(fill(cursors.back(), each));
    }
    if (!buffer_.empty()) cursors.push_back({.records = std::move(buffer_)});
    const auto is_later = [&](size_t a, size_t b) { return cursors[b].head() < cursors[a].head(); };
    std::priority_queue<size_t, std::vector<size_t>, decltype(is_later)> heads(is_later);
    for (size_t c = 0; c < cursors.size(); ++c) heads.push(c);
    while (!heads.empty()) {
      const size_t c = heads.top();
      heads.pop();
      HONE_TRY(take(cursors[c].head()));
      if (++cursors[c].at == cursors[c].records.size()) HONE_TRY(fill(cursors[c], each));
      if (cursors[c].at < cursors[c].records.size()) heads.push(c);
    }
    *this = SortedRuns(most_ * sizeof(Record), folder_);
    return {};
  }

 private:
  static constexpr size_t kLeast = 64;
  struct Run {
    size_t begin, count;  // records of the file
  };
  struct Cursor {
    std::vector<Record> records = {};  // those that are in memory
    size_t at = 0;                     // the next of them
    size_t next = 0, end = 0;          // what the file has of them
    const Record& head() const { return records[at]; }
  };

  Status spill() {
    if (folder_.empty())
      return over_limit("{} bytes of memory do not hold {} records", most_ * sizeof(Record), size_);
    if (!file_) file_ = HONE_TRY(SpillFile::create(folder_));
    std::sort(buffer_.begin(), buffer_.end());
    runs_.push_back({file_->size() / sizeof(Record), buffer_.size()});
    HONE_TRY(file_->append(std::as_bytes(std::span(buffer_))));
    buffer_.clear();
    return {};
  }

  Status fill(Cursor& cursor, size_t most) {
    cursor.at = 0;
    cursor.records.resize(std::min(most, cursor.end - cursor.next));
    if (cursor.records.empty()) return {};
    HONE_TRY(file_->read(cursor.next * sizeof(Record),
                         std::as_writable_bytes(std::span(cursor.records))));
    cursor.next += cursor.records.size();
    return {};
  }

  size_t most_;
  std::filesystem::path folder_;
  std::vector<Record> buffer_;
  std::vector<Run> runs_;
  std::optional<SpillFile> file_;
  size_t size_ = 0;
};

}  // namespace hone
