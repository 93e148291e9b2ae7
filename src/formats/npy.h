#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

// numpy's .npy files, format versions 1.0 to 3.0. One file holds one tensor.

namespace hone {

bool begins_like_npy(std::string_view beginning);

// Bytes in row-major, little-endian order stay mapped; others are copied and reordered.
Result<Tensor> read_npy(const std::filesystem::path& path);

// The same for a file in memory; `where` names it in errors. The tensor shares the bytes for as
// long as it keeps `owner`; without an owner it copies them.
Result<Tensor> parse_npy(std::span<const std::byte> file, std::string_view where,
                         std::shared_ptr<const void> owner = nullptr);

// Atomic. Element types that numpy lacks are written as the next one that holds all their numbers,
// and are read back as that. Examples are bf16, f8 and f4 as f32, i4 and i2 as i8, u4 and u2 as u8.
Status write_npy(const std::filesystem::path& path, const Tensor& tensor);

// A .npy file in two parts. The data starts at a multiple of 64 bytes if the header does so at
// `offset` in some larger file.
struct NpyImage {
  std::string header;
  std::span<const std::byte> data;  // of the tensor, or of the scratch
  std::vector<std::byte> scratch;
};
NpyImage npy_image(const Tensor& tensor, int64_t offset = 0);
// The size of npy_image(tensor, offset), without making a lazy tensor's bytes.
int64_t npy_size(const Tensor& tensor, int64_t offset = 0);

}  // namespace hone
