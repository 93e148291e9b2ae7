#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

// numpy's .npz files: zip archives of .npy files, one for each tensor.

namespace hone {

struct NamedTensor {
  std::string name;  // the member's name without ".npy"; '/' may divide it, as in "layer/weight"
  Tensor tensor;
};

// The limit of a reader. Deflate cannot shrink by more than about 1032, so a member that claims
// more is a trap; the bytes are those of all compressed members together.
inline constexpr int64_t kMaxInflation = 1100;
inline constexpr int64_t kMaxInflatedBytes = int64_t{1} << 36;

// True if a member of this name and type is wanted; others are left out. An error refuses the file.
// It is asked before the member's data is inflated.
using NpzFilter = std::function<Result<bool>(std::string_view name, Type type)>;

// Looks at the first member, or at the end of an archive without members.
bool begins_like_npz(std::string_view beginning);

// In the order of the file. Members that are stored uncompressed stay mapped. The checksums of all
// that is wanted are verified.
Result<std::vector<NamedTensor>> read_npz(const std::filesystem::path& path,
                                          const NpzFilter& filter = {});

// The same for a file in memory; `where` names it in errors. Tensors share the bytes for as long
// as they keep `owner`; without an owner they copy them. Checksums of members that are stored
// uncompressed are not verified, so that large weights are read only when they are needed.
Result<std::vector<NamedTensor>> parse_npz(std::span<const std::byte> file, std::string_view where,
                                           std::shared_ptr<const void> owner = nullptr);

// Atomic; the same tensors give the same bytes. Members are not compressed, and their data is
// aligned to 64 bytes, so that a reader can map it. Holds one lazy tensor's bytes at a time.
Status write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace hone
