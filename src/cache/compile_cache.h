#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// Keeps the results of compiling in a folder, so that each is made once on a machine: objects of
// kernels, complete plans, whole programs. An entry is a file, named by a 128-bit hash of its key
// and holding key and bytes with a checksum. It is written beside its place and renamed, so that it
// is there as a whole or not at all, and checked when it is read. One that is damaged, cut, of
// another version or of another key counts as absent and is removed.
//
// Any number of threads and processes may use a folder at once, and be killed while they do. A
// checksum is not a signature: whoever may write to the folder decides what code runs.
class CompileCache {
 public:
  static constexpr int64_t kDefaultLimit = int64_t{1} << 30;

  // The folder need not exist; the first entry makes it, for its owner alone. Refused: a folder
  // that its group or others may write to, or that belongs to somebody else. `limit`: bytes of all
  // entries; those not used for longest go first. A file in the folder counts what all processes
  // write, and whoever has it count a sixteenth of the limit looks at the folder. There may be that
  // much more, and what is being written at that moment.
  static Result<std::unique_ptr<CompileCache>> open(std::filesystem::path folder,
                                                    int64_t limit = kDefaultLimit);

  // The bytes that were put in last under the key. The key is text that says all that they depend
  // on: what was compiled, for which target, by which version. Its first line is for people.
  std::optional<std::string> find(std::string_view key);
  // An entry larger than the limit is not kept. After an error the cache is as it was.
  Status put(std::string_view key, std::string_view bytes);

  struct Entry {
    std::string name;   // of the file, without its extension
    std::string title;  // the first line of the key; empty if the file is damaged
    int64_t bytes = 0;  // of the file
    std::filesystem::file_time_type last_use;
  };
  std::vector<Entry> list() const;  // last used first

  struct Damage {
    std::string name;
    std::string reason;
  };
  struct Verified {
    int64_t good = 0;
    std::vector<Damage> removed;
  };
  // Checks every entry, and removes those that are not good.
  Verified verify();

  struct Collected {
    int64_t removed = 0;  // entries, and what killed processes left behind
    int64_t kept = 0;
    int64_t kept_bytes = 0;
  };
  // Removes entries until the rest, and what is being written, has at most that many bytes.
  Collected collect(int64_t limit);
  Collected collect() { return collect(limit_); }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  CompileCache(std::filesystem::path folder, int64_t limit)
      : folder_(std::move(folder)), limit_(limit) {}
  std::filesystem::path path_of(std::string_view name) const;

  const std::filesystem::path folder_;
  const int64_t limit_;
};

}  // namespace hone
