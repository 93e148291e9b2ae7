#include <zip.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>

#include "base/file.h"
#include "base/temporary_files.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/npz_name.h"

namespace hone {

namespace {

// The bytes that libzip writes before a stored member's data, besides the name: the local header,
// and, if the member is large, a zip64 field. Were it otherwise, data would only not be aligned.
constexpr int64_t kLocalHeader = 30, kZip64Field = 20, kLargestPlain = 0xffff'ffff;

// A member while libzip writes the archive; its bytes exist from open to close only.
struct Source {
  const Tensor* tensor;
  int64_t offset;  // of the .npy file in the archive
  NpyImage image;
  size_t read = 0;  // bytes that libzip has got so far
  zip_error_t error = {};
  std::exception_ptr thrown;  // C code must not see it

  void open() {
    image = npy_image(*tensor, offset);
    read = 0;
  }
  void close() { image = {}; }

  size_t take(std::span<std::byte> out) {
    size_t total = 0;
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(image.header)), image.data};
    size_t begin = 0;  // of the part
    for (std::span<const std::byte> part : parts) {
      if (read < begin + part.size() && total < out.size()) {
        size_t at = read - begin, count = std::min(part.size() - at, out.size() - total);
        std::memcpy(out.data() + total, part.data() + at, count);
        total += count;
        read += count;
      }
      begin += part.size();
    }
    return total;
  }

  int64_t describe(void* data) const {
    zip_stat_t info;
    zip_stat_init(&info);
    info.valid = ZIP_STAT_SIZE;
    info.size = static_cast<zip_uint64_t>(npy_size(*tensor, offset));
    std::memcpy(data, &info, sizeof info);
    return sizeof info;
  }

  int64_t command(void* data, zip_uint64_t size, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_OPEN: open(); return 0;
      case ZIP_SOURCE_READ:
        return static_cast<int64_t>(take({static_cast<std::byte*>(data), size}));
      case ZIP_SOURCE_CLOSE: close(); return 0;
      case ZIP_SOURCE_STAT: return describe(data);
      case ZIP_SOURCE_ERROR: return zip_error_to_data(&error, data, size);
      case ZIP_SOURCE_FREE: return 0;  // owned by write()
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              -1);
      default: zip_error_set(&error, ZIP_ER_OPNOTSUPP, 0); return -1;
    }
  }
};

zip_int64_t call_source(void* source, void* data, zip_uint64_t size, zip_source_cmd_t command) {
  auto* self = static_cast<Source*>(source);
  try {
    return self->command(data, size, command);
  } catch (...) {
    self->thrown = std::current_exception();
    zip_error_set(&self->error, ZIP_ER_INTERNAL, 0);
    return -1;
  }
}

std::string member_name(const NamedTensor& named) { return named.name + ".npy"; }

// Places each member behind the one before.
std::vector<Source> lay_out(std::span<const NamedTensor> tensors) {
  std::vector<Source> sources;
  int64_t at = 0;
  for (const NamedTensor& named : tensors) {
    at += kLocalHeader + static_cast<int64_t>(member_name(named).size());
    if (npy_size(named.tensor, at) > kLargestPlain) at += kZip64Field;
    sources.push_back({&named.tensor, at, {}, 0, {}, nullptr});
    at += npy_size(named.tensor, at);
  }
  return sources;
}

// True if all went well; otherwise the archive knows what did not.
bool add_members(zip_t* archive, std::span<const NamedTensor> tensors,
                 std::vector<Source>& sources) {
  constexpr zip_uint16_t kFirstOfJanuary1980 = 0x21;
  for (size_t i = 0; i < tensors.size(); ++i) {
    zip_source_t* source = zip_source_function(archive, call_source, &sources[i]);
    if (source == nullptr) return false;
    zip_int64_t index =
        zip_file_add(archive, member_name(tensors[i]).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return false;
    }
    auto at = static_cast<zip_uint64_t>(index);
    if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive, at, 0, kFirstOfJanuary1980, 0) != 0) {
      return false;
    }
  }
  return true;
}

Status write(const std::filesystem::path& path, const std::filesystem::path& temporary,
             std::span<const NamedTensor> tensors) {
  int code = 0;
  zip_t* archive = zip_open(temporary.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return bad_input("cannot write '{}': {}", path.native(), reason);
  }
  std::vector<Source> sources = lay_out(tensors);
  if (add_members(archive, tensors, sources) && zip_close(archive) == 0) return {};
  zip_error_t* reason = zip_get_error(archive);
  Error error = zip_error_system_type(reason) == ZIP_ET_SYS
                    ? os_error("write", path.native(), zip_error_code_system(reason))
                    : bad_input("cannot write '{}': {}", path.native(), zip_error_strerror(reason));
  zip_discard(archive);
  for (const Source& source : sources) {
    if (source.thrown) std::rethrow_exception(source.thrown);
  }
  return error;
}

// An archive without members, which libzip would write as no file at all.
constexpr std::string_view kEmptyArchive("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);

}  // namespace

Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    HONE_TRY(check_npz_name(named.name));
    if (!names.insert(named.name).second) {
      return bad_input("two tensors are named '{}'", escape(named.name));
    }
  }
  if (tensors.empty()) return write_file_atomic(path, kEmptyArchive);
  if (!path.has_filename()) return bad_input("cannot write '{}': it names no file", path.native());
  std::filesystem::path temporary = temporary_name(path);
  Status status = write(path, temporary, tensors);
  if (!status.ok()) {
    discard_file(temporary);
    return status;
  }
  return publish_file(temporary, path);
}

}  // namespace hone
