#include "cache/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "base/temporary_files.h"
#include "base/text.h"

namespace hone {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".entry";
constexpr std::string_view kTemporary = ".entry.tmp-";  // as temporary_name() goes on
constexpr size_t kNameSize = 32;
constexpr int64_t kMaxEntry = int64_t{1} << 30;
constexpr auto kStale = std::chrono::hours(1);  // what nobody is still writing to after this
constexpr uint64_t kVersion = 1;
constexpr size_t kTitleSize = 512;
constexpr std::string_view kWritten = "hone-written";
constexpr int64_t kPage = 4096;  // bytes

// The beginning of a file; the key and the bytes follow.
struct Header {
  char magic[8] = {'h', 'o', 'n', 'e', 'm', 'a', 'd', 'e'};
  uint64_t checksum = 0;  // of all that follows it
  uint64_t version = kVersion;
  uint64_t key_hash[2] = {};
  uint64_t key_bytes = 0;
  uint64_t content_bytes = 0;
};
static_assert(std::endian::native == std::endian::little && sizeof(Header) == 56);
constexpr size_t kChecked = offsetof(Header, version);

std::string name_of(const uint64_t (&hash)[2]) {
  return fmt::format("{:016x}{:016x}", hash[0], hash[1]);
}

struct File {
  Header header;
  std::string text;  // all of it, the header included

  std::string_view key() const {
    return std::string_view(text).substr(sizeof(Header), header.key_bytes);
  }
  std::string_view content() const {
    return std::string_view(text).substr(sizeof(Header) + header.key_bytes);
  }
  uint64_t checksum() const { return hash_string(std::string_view(text).substr(kChecked)); }
};

File make_file(std::string_view key, std::string_view bytes) {
  File file;
  file.header.key_hash[0] = hash_string(key, 1);
  file.header.key_hash[1] = hash_string(key, 2);
  file.header.key_bytes = key.size();
  file.header.content_bytes = bytes.size();
  file.text.resize(sizeof(Header));
  file.text.append(key).append(bytes);
  std::memcpy(file.text.data(), &file.header, sizeof(Header));
  file.header.checksum = file.checksum();
  std::memcpy(file.text.data(), &file.header, sizeof(Header));
  return file;
}

// At most `limit` bytes from the beginning.
std::optional<std::string> read_some(int file, size_t limit) {
  std::string text(limit, '\0');
  size_t used = 0;
  while (used < limit) {
    const ssize_t count = ::read(file, text.data() + used, limit - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    used += static_cast<size_t>(count);
  }
  text.resize(used);
  return text;
}

Result<File> check(std::string text, std::string_view name) {
  const File plain;
  File file;
  file.text = std::move(text);
  if (file.text.size() < sizeof(Header)) return bad_input("it has {} bytes", file.text.size());
  std::memcpy(&file.header, file.text.data(), sizeof(Header));
  const Header& header = file.header;
  if (std::memcmp(header.magic, plain.header.magic, sizeof header.magic) != 0) {
    return bad_input("it is not an entry of a cache");
  }
  if (header.version != kVersion) {
    return bad_input("it has version {}; this hone reads {}", header.version, kVersion);
  }
  const uint64_t rest = file.text.size() - sizeof(Header);
  if (header.key_bytes > rest || header.content_bytes != rest - header.key_bytes) {
    return bad_input("it has {} bytes for a key of {} and a content of {}", rest, header.key_bytes,
                     header.content_bytes);
  }
  if (file.checksum() != header.checksum) return bad_input("its checksum is wrong");
  if (name_of(make_file(file.key(), "").header.key_hash) != name) {
    return bad_input("it belongs to another key");
  }
  return file;
}

// The entry, or why it is not good; nothing if it is not there or cannot be opened.
std::optional<Result<File>> read_entry(const fs::path& path) {
  const Result<FileDescriptor> file = open_contained(path.parent_path(), path.filename().native());
  struct stat info = {};
  if (!file.ok() || ::fstat(file->get(), &info) != 0) return std::nullopt;
  if (info.st_size > kMaxEntry) return bad_input("it has {} bytes", info.st_size);
  std::optional<std::string> text = read_some(file->get(), static_cast<size_t>(info.st_size));
  if (!text) return bad_input("it cannot be read");
  return check(*std::move(text), path.stem().native());
}

// The first line of its key, without checking the rest.
std::string title_of(const fs::path& path) {
  const Result<FileDescriptor> file = open_contained(path.parent_path(), path.filename().native());
  if (!file.ok()) return "";
  const std::optional<std::string> text = read_some(file->get(), sizeof(Header) + kTitleSize);
  if (!text || text->size() < sizeof(Header)) return "";
  Header header;
  std::memcpy(&header, text->data(), sizeof header);
  if (name_of(header.key_hash) != path.stem()) return "";
  const std::string_view key = std::string_view(*text).substr(sizeof header, header.key_bytes);
  return std::string(key.substr(0, key.find('\n')));
}

Error os_error(std::string_view action, const fs::path& path) {
  const std::string reason = std::generic_category().message(errno);
  return bad_input("cannot {} '{}': {}", action, path.native(), reason);
}

Status make_folder(const fs::path& folder) {
  std::error_code code;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), code);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return os_error("create", folder);
  return {};
}

// Without waiting for the disk: what a power cut breaks, the checksum finds.
Status write_new(const fs::path& path, std::string_view text) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.is_open()) return os_error("create", path);
  while (!text.empty()) {
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error("write", path);
    text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

bool is_name(std::string_view text) {
  return text.size() == kNameSize && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Notes what is about to be written, as a byte for each page of it at the end of a file that all
// processes share: appending needs no lock. The pages since the folder was last looked at; nothing
// if that is not known, as in a folder that has no such file yet.
std::optional<int64_t> add_written(const fs::path& folder, int64_t bytes) {
  const fs::path path = folder / kWritten;
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor file(::open(path.c_str(), kFlags));
  if (!file.is_open()) {
    const FileDescriptor made(::open(path.c_str(), kFlags | O_CREAT, S_IRUSR | S_IWUSR));
    return std::nullopt;
  }
  const std::string marks(static_cast<size_t>((bytes + kPage - 1) / kPage), '.');
  struct stat info = {};
  if (::write(file.get(), marks.data(), marks.size()) != std::ssize(marks)) return std::nullopt;
  if (::fstat(file.get(), &info) != 0) return std::nullopt;
  return info.st_size;
}

// Entries, last used first, without titles; `left_behind` are files of writers that are gone.
struct Listing {
  std::vector<CompileCache::Entry> entries;
  std::vector<fs::path> left_behind;
  int64_t bytes_under_way = 0;  // of files whose writers may still be there
};

Listing list_folder(const fs::path& folder) {
  Listing listing;
  std::error_code code;
  fs::directory_iterator files(folder, code);
  for (const fs::directory_iterator end; !code && files != end; files.increment(code)) {
    const std::string file = files->path().filename();
    const std::string name = file.substr(0, kNameSize);
    const std::string_view rest = std::string_view(file).substr(name.size());
    if (!is_name(name)) continue;
    if (rest != kExtension && !rest.starts_with(kTemporary)) continue;
    std::error_code gone;  // somebody else removed it
    const auto time = fs::last_write_time(files->path(), gone);
    const auto bytes = gone ? 0 : static_cast<int64_t>(files->file_size(gone));
    if (gone) continue;
    if (rest == kExtension)
      listing.entries.push_back({name, "", bytes, time});
    else if (fs::file_time_type::clock::now() - time > kStale)
      listing.left_behind.push_back(files->path());
    else
      listing.bytes_under_way += bytes;
  }
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const auto& a, const auto& b) { return a.last_use > b.last_use; });
  return listing;
}

bool remove_file(const fs::path& path) {
  std::error_code ignored;  // somebody else removed it, or nobody can
  return fs::remove(path, ignored);
}

}  // namespace

Result<std::unique_ptr<CompileCache>> CompileCache::open(fs::path folder, int64_t limit) {
  if (limit < 0) return bad_input("a cache of {} bytes", limit);
  struct stat info = {};
  if (::stat(folder.c_str(), &info) != 0) {
    if (errno != ENOENT) return os_error("use", folder);
  } else if (!S_ISDIR(info.st_mode)) {
    return bad_input("cannot use '{}' as a cache: it is not a folder", folder.native());
  } else if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return bad_input("cannot use '{}' as a cache: it belongs to another user", folder.native())
        .with_hint("its entries are code that hone runs; choose a folder of your own");
  } else if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return bad_input("cannot use '{}' as a cache: its group or others may write to it",
                     folder.native())
        .with_hint(
            fmt::format("its entries are code that hone runs: chmod go-w '{}'", folder.native()));
  }
  return std::unique_ptr<CompileCache>(new CompileCache(std::move(folder), limit));
}

fs::path CompileCache::path_of(std::string_view name) const {
  return folder_ / fmt::format("{}{}", name, kExtension);
}

std::optional<std::string> CompileCache::find(std::string_view key) {
  const fs::path path = path_of(name_of(make_file(key, "").header.key_hash));
  std::optional<Result<File>> file = read_entry(path);
  if (!file) return std::nullopt;
  if (!file->ok()) {
    remove_file(path);
    return std::nullopt;
  }
  std::string& text = (*file)->text;
  if ((*file)->key() != key) return std::nullopt;  // its hash is the same
  // The time of the file is that of its last use.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  text.erase(0, sizeof(Header) + key.size());
  return std::move(text);
}

Status CompileCache::put(std::string_view key, std::string_view bytes) {
  const File file = make_file(key, bytes);
  const int64_t size = static_cast<int64_t>(file.text.size());
  if (size > std::min(limit_, kMaxEntry)) return {};
  HONE_TRY(make_folder(folder_));
  const fs::path path = path_of(name_of(file.header.key_hash));
  const fs::path temporary = temporary_name(path);
  // Before it is written, so that nobody who is killed leaves what was never counted.
  const std::optional<int64_t> written = add_written(folder_, size);
  Status status = write_new(temporary, file.text);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = os_error("write", path);
  discard_file(temporary);  // nothing of that name is left if all went well
  HONE_TRY(std::move(status));
  if (!written || *written > limit_ / 16 / kPage) collect();
  return {};
}

std::vector<CompileCache::Entry> CompileCache::list() const {
  std::vector<Entry> entries = list_folder(folder_).entries;
  for (Entry& entry : entries) entry.title = title_of(path_of(entry.name));
  return entries;
}

CompileCache::Verified CompileCache::verify() {
  Verified result;
  for (const Entry& entry : list_folder(folder_).entries) {
    const fs::path path = path_of(entry.name);
    const std::optional<Result<File>> file = read_entry(path);
    if (file && file->ok()) {
      ++result.good;
    } else if (remove_file(path)) {  // unless somebody else did
      result.removed.push_back(
          {entry.name, file ? file->error().what() : "it is not a plain file"});
    }
  }
  return result;
}

CompileCache::Collected CompileCache::collect(int64_t limit) {
  // First, so that others who write meanwhile do not come to collect as well.
  (void)!::truncate((folder_ / kWritten).c_str(), 0);
  const Listing listing = list_folder(folder_);
  Collected result;
  for (const fs::path& path : listing.left_behind) result.removed += remove_file(path) ? 1 : 0;
  const int64_t room = limit - listing.bytes_under_way;
  bool is_full = false;  // whatever is older than the first that does not fit goes too
  for (const Entry& entry : listing.entries) {
    is_full |= entry.bytes > room - result.kept_bytes;
    if (is_full && remove_file(path_of(entry.name))) {
      ++result.removed;
    } else if (!is_full) {
      ++result.kept;
      result.kept_bytes += entry.bytes;
    }
  }
  return result;
}

}  // namespace hone
