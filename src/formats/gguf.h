#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

// Files of language models for llama.cpp: metadata, a list of tensors, and the tensors' bytes,
// which are often numbers in blocks with a scale each.

namespace hone {

// A type of elements as the format numbers it. Elements stand in blocks: K of them along a row.
struct GgufType {
  uint32_t id;
  std::string_view name;
  int64_t bytes;     // of a block; 0: only its name is known
  int64_t elements;  // of a block
};
// Null: the format has no such type.
const GgufType* gguf_type(uint32_t id);

// Texts point into the file. Integers of all widths are i64, reals are f64, bools of an array i64.
using GgufValue = std::variant<int64_t, double, bool, std::string_view, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string_view>>;

struct GgufTensor {
  std::string_view name;
  const GgufType* type = nullptr;
  std::vector<int64_t> dims;  // outermost first; the last one is the row
  std::span<const std::byte> bytes;

  int64_t rows() const;  // the product of all dims but the last
  int64_t row_bytes() const { return dims.back() / type->elements * type->bytes; }
};

struct Gguf {
  std::map<std::string_view, GgufValue> metadata = {};
  std::vector<GgufTensor> tensors = {};         // in the order of their bytes
  std::shared_ptr<const void> owner = nullptr;  // of the bytes that all of this points to

  const GgufTensor* find(std::string_view name) const;  // null if there is none

  // A value by its key; null if there is none. A value of another kind is an error.
  template <class T>
  Result<const T*> get(std::string_view key) const {
    const auto found = metadata.find(key);
    if (found == metadata.end()) return static_cast<const T*>(nullptr);
    const T* const value = std::get_if<T>(&found->second);
    if (value == nullptr) return of_other_kind(key, found->second);
    return value;
  }

 private:
  static Error of_other_kind(std::string_view key, const GgufValue& value);
};

bool begins_like_gguf(std::string_view beginning);

// The tensors' bytes stay mapped.
Result<Gguf> read_gguf(const std::filesystem::path& path);
// The same for a file in memory, which lives as long as the result; `where` names it in errors.
Result<Gguf> parse_gguf(std::span<const std::byte> file, std::string_view where,
                        std::shared_ptr<const void> owner = nullptr);

}  // namespace hone
