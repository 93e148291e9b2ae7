#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace hone {

using Dims = std::vector<Dim>;
using Ints = std::vector<int64_t>;

inline constexpr int kMaxRank = 16;
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
// The bounds of symbols are often rough, so a symbolic type may seem larger than it ever gets.
// Strides and offsets up to this size do not overflow.
inline constexpr int64_t kMaxSymbolicElements = int64_t{1} << 60;

struct TypeData;  // type.cc

// The type of a tensor: element type and dims. A handle to an interned, immortal record: copying
// and comparing are pointer operations. A default-constructed Type stands for an absent operand.
class Type {
 public:
  Type() = default;

  // Checks rank <= kMaxRank, every dim's range >= 0, elements <= kMaxElements. In a symbolic type
  // the static dims make <= kMaxElements, and all dims <= kMaxSymbolicElements.
  static Result<Type> make(DType dtype, std::span<const Dim> dims);
  // For dims that are known to be good; a bad one is a bug of the caller.
  static Type get(DType dtype, std::span<const Dim> dims);
  static Type get(DType dtype, std::initializer_list<Dim> dims) {
    return get(dtype, std::span<const Dim>(dims.begin(), dims.size()));
  }
  static Type scalar(DType dtype) { return get(dtype, std::span<const Dim>()); }

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const;
  std::span<const Dim> dims() const;
  int rank() const { return static_cast<int>(dims().size()); }
  Dim dim(int axis) const { return dims()[static_cast<size_t>(axis)]; }
  bool is_static() const;  // every dim is a number

  Dim elements() const;
  int64_t static_elements() const;      // HONE_CHECK(is_static())
  Ints static_dims() const;             // HONE_CHECK(is_static())
  int64_t static_bytes() const;         // sub-byte types are packed over the whole tensor
  std::byte bits_of_last_byte() const;  // that elements use; the others are 0

  Type with_dtype(DType dtype) const;
  Type with_dims(std::span<const Dim> dims) const;  // bad dims are a bug of the caller
  // Each binding must fit its symbol. An error if the new type is too large.
  Result<Type> bind(const Bindings& bindings) const;

  std::string to_string() const;  // "f32[N, 784]", "i64[]"
  size_t hash() const;
  bool operator==(const Type&) const = default;

 private:
  explicit Type(const TypeData* data) : data_(data) {}
  const TypeData* data_ = nullptr;
};

// Row-major strides in elements.
Ints row_major_strides(std::span<const int64_t> dims);

}  // namespace hone
