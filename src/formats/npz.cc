#include "formats/npz.h"

#include <zip.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/npy_header.h"
#include "formats/npz_name.h"
#include "formats/zip_layout.h"

namespace hone {

namespace {

constexpr std::string_view kSuffix = ".npy";

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using OpenMember = std::unique_ptr<zip_file_t, CloseMember>;

std::string message_of(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Result<Archive> open_archive(std::span<const std::byte> file) {
  // To libzip, nothing is an archive without members.
  if (file.empty()) return bad_input("not a .npz file: it is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
  if (source == nullptr) return bad_input("cannot read the archive: {}", message_of(error));
  Archive archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    return bad_input("not a .npz file: {}", message_of(error));
  }
  zip_error_fini(&error);
  return archive;
}

// Reads members whose bytes are in the file as they are.
enum class Checksums : uint8_t { verified, ignored };

// One reading of an archive.
class Reader {
 public:
  Reader(std::span<const std::byte> file, std::shared_ptr<const void> owner, Archive archive,
         const NpzFilter& filter, Checksums checksums)
      : filter_(filter),
        checksums_(checksums),
        owner_(std::move(owner)),
        archive_(std::move(archive)),
        layout_(zip_layout(file)),
        budget_(std::min(static_cast<int64_t>(file.size()) * kMaxInflation, kMaxInflatedBytes)),
        unverified_(static_cast<int64_t>(file.size())) {}

  Result<std::vector<NamedTensor>> read() {
    std::vector<NamedTensor> tensors;
    std::set<std::string_view> names;
    zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
      zip_stat_t info;
      if (zip_stat_index(archive_.get(), i, ZIP_FL_ENC_RAW, &info) != 0) {
        return bad_input("member {}: {}", i, zip_strerror(archive_.get()));
      }
      std::string_view name = info.name;
      if (!names.insert(name).second) return bad_input("two members are named '{}'", escape(name));
      std::string place = fmt::format("member '{}'", escape(name.substr(0, 100)));
      Result<std::optional<NamedTensor>> tensor = member(i, info);
      if (!tensor.ok()) return std::move(tensor).error().within(place);
      if (*tensor) tensors.push_back(**std::move(tensor));
    }
    return tensors;
  }

 private:
  // Null if it is not wanted.
  Result<std::optional<NamedTensor>> member(zip_uint64_t index, const zip_stat_t& info) {
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((info.valid & kNeeded) != kNeeded) return bad_input("its size is not given");
    if (info.encryption_method != ZIP_EM_NONE) return unsupported("it is encrypted");
    if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE) {
      return unsupported("its compression method, number {}, is not supported", info.comp_method)
          .with_hint("numpy writes stored and deflated members");
    }
    std::string_view name = info.name;
    if (!name.ends_with(kSuffix)) return bad_input("it is not a .npy file");
    name.remove_suffix(kSuffix.size());
    HONE_TRY(check_npz_name(name));
    const bool is_needed = !filter_ || HONE_TRY(is_wanted(index, name, info.size));
    if (!is_needed) return std::optional<NamedTensor>();
    const auto found = [&](Tensor tensor) {
      return std::optional(NamedTensor{std::string(name), std::move(tensor)});
    };
    if (const ZipMember* place = stored(index, info)) {
      if (checksums_ == Checksums::verified) HONE_TRY(verify(index, info));
      return found(HONE_TRY(parse_npy(place->data, "", owner_)));
    }
    std::shared_ptr<const std::byte[]> bytes = HONE_TRY(inflate(index, info));
    std::span<const std::byte> all(bytes.get(), info.size);
    return found(HONE_TRY(parse_npy(all, "", std::move(bytes))));
  }

  // Decides by the header alone.
  Result<bool> is_wanted(zip_uint64_t index, std::string_view name, zip_uint64_t size) {
    constexpr size_t kHeader = size_t{64} << 10;
    OpenMember member(zip_fopen_index(archive_.get(), index, 0));
    if (member == nullptr) return bad_input("{}", zip_strerror(archive_.get()));
    std::string begin(kHeader, '\0');
    size_t done = 0;
    while (done < begin.size()) {
      const zip_int64_t count = zip_fread(member.get(), begin.data() + done, begin.size() - done);
      if (count < 0) return bad_input("{}", zip_file_strerror(member.get()));
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    const NpyHeader header = HONE_TRY(parse_npy_header(std::string_view(begin).substr(0, done)));
    const Dims dims(header.shape.begin(), header.shape.end());
    const Type type = HONE_TRY(Type::make(header.dtype, dims));
    if (!HONE_TRY(filter_(name, type))) return false;
    // Whoever wants this type does not want more bytes inflated than it has.
    const auto bytes = static_cast<zip_uint64_t>(type.static_bytes()) + header.size;
    if (size > bytes)
      return bad_input("{} bytes come after the data of {}", size - bytes, type.to_string());
    return true;
  }

  // The member's bytes within the file, if they are there as they are.
  const ZipMember* stored(zip_uint64_t index, const zip_stat_t& info) const {
    if (index >= layout_.size()) return nullptr;
    const ZipMember& found = layout_[index];
    bool same = found.stored && info.comp_method == ZIP_CM_STORE && found.name == info.name &&
                found.data.size() == info.size;
    return same ? &found : nullptr;
  }

  // libzip compares the checksum at the end.
  Status verify(zip_uint64_t index, const zip_stat_t& info) {
    // Members that overlap would be read again and again.
    if (info.size > static_cast<zip_uint64_t>(unverified_))
      return bad_input("with it, the members hold more bytes than the file");
    unverified_ -= static_cast<int64_t>(info.size);
    OpenMember member(zip_fopen_index(archive_.get(), index, 0));
    if (member == nullptr) return bad_input("{}", zip_strerror(archive_.get()));
    std::vector<std::byte> piece(size_t{64} << 10);
    zip_int64_t count = 0;
    while ((count = zip_fread(member.get(), piece.data(), piece.size())) > 0) {
    }
    if (count < 0) return bad_input("its bytes are damaged: {}", zip_file_strerror(member.get()));
    return {};
  }

  Result<std::shared_ptr<const std::byte[]>> inflate(zip_uint64_t index, const zip_stat_t& info) {
    if (info.size / kMaxInflation > info.comp_size) {
      return bad_input("it claims to hold {} bytes in {}", info.size, info.comp_size);
    }
    if (info.size > static_cast<zip_uint64_t>(budget_)) {
      return over_limit(
          "with it, the members hold more than {} times the bytes of the file, or "
          "more than {}",
          kMaxInflation, format_bytes(kMaxInflatedBytes));
    }
    budget_ -= static_cast<int64_t>(info.size);
    OpenMember member(zip_fopen_index(archive_.get(), index, 0));
    if (member == nullptr) return bad_input("{}", zip_strerror(archive_.get()));
    auto bytes = std::make_shared_for_overwrite<std::byte[]>(info.size + 1);
    zip_uint64_t done = 0;
    // The one byte more makes libzip reach the end, where it compares the checksum.
    for (;;) {
      zip_int64_t count = zip_fread(member.get(), bytes.get() + done, info.size + 1 - done);
      if (count < 0) return bad_input("{}", zip_file_strerror(member.get()));
      if (count == 0) break;
      done += static_cast<zip_uint64_t>(count);
      if (done > info.size)
        return bad_input("it holds more than the {} bytes it claims", info.size);
    }
    if (done < info.size) return bad_input("it holds {} bytes, not {}", done, info.size);
    return std::shared_ptr<const std::byte[]>(std::move(bytes));
  }

  const NpzFilter& filter_;
  const Checksums checksums_;
  std::shared_ptr<const void> owner_;
  Archive archive_;
  std::vector<ZipMember> layout_;
  int64_t budget_;      // bytes that may still be inflated
  int64_t unverified_;  // stored bytes that may still be verified
};

Result<std::vector<NamedTensor>> parse(std::span<const std::byte> file,
                                       std::shared_ptr<const void> owner, const NpzFilter& filter,
                                       Checksums checksums) {
  Archive archive = HONE_TRY(open_archive(file));
  return Reader(file, std::move(owner), std::move(archive), filter, checksums).read();
}

}  // namespace

// Nobody extracts members to files of these names, but they end up in graphs, plans and terminals.
Status check_npz_name(std::string_view name) {
  bool plain = !name.empty() && name.size() <= 4096 && name.front() != '/' &&
               std::all_of(name.begin(), name.end(),
                           [](unsigned char c) { return c >= 0x20 && c != 0x7f && c != '\\'; });
  for (std::string_view part : split(name, '/')) plain &= part != "." && part != "..";
  if (!plain) {
    return bad_input(
        "'{}' cannot name a tensor: it is empty, very long, or has control characters, "
        "backslashes, or parts of a path such as '..'",
        escape(name.substr(0, 100)));
  }
  return {};
}

bool begins_like_npz(std::string_view beginning) {
  return beginning.starts_with("PK\3\4") || beginning.starts_with("PK\5\6");
}

Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path,
                                          const NpzFilter& filter) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  std::span<const std::byte> bytes = file->bytes();
  Result<std::vector<NamedTensor>> tensors =
      parse(bytes, std::move(file), filter, Checksums::verified);
  if (!tensors.ok()) return std::move(tensors).error().within(path.native());
  return tensors;
}

Result<std::vector<NamedTensor>> parse_npz(std::span<const std::byte> file, std::string_view where,
                                           std::shared_ptr<const void> owner) {
  Result<std::vector<NamedTensor>> tensors = parse(file, std::move(owner), {}, Checksums::ignored);
  if (!tensors.ok()) return std::move(tensors).error().within(where);
  return tensors;
}

}  // namespace hone
