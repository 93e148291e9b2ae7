#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/npz.h"
#include "tensor/tensor.h"

// Files of named tensors that most training tools read. A file has eight bytes with the size of a
// header, the header as JSON, and the tensors' bytes, one tensor directly after the other.

namespace hone {

struct Safetensors {
  std::map<std::string, std::string> metadata;  // what else the writer says, as texts
  std::vector<NamedTensor> tensors = {};        // in the order of their bytes

  const Tensor* find(std::string_view name) const;  // null if there is none
};

// Looks at the size of the header, and at its first byte.
bool begins_like_safetensors(std::string_view beginning);

// The tensors' bytes stay mapped if they are aligned.
Result<Safetensors> read_safetensors(const std::filesystem::path& path);

// The same for a file in memory; `where` names it in errors. The tensors share the bytes for as
// long as they keep `owner`; without an owner they copy them.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file, std::string_view where,
                                      std::shared_ptr<const void> owner = nullptr);

// Atomic. Refused: names that repeat, and element types that the format lacks (f4, i4, i2, u4, u2).
Status write_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace hone
