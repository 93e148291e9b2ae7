#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "tensor/type.h"

namespace hone {

class MemoryPool;  // memory_pool.h

namespace detail {
class TensorStorage;  // tensor.cc
}

// Numbers with a static type, row-major, little-endian, sub-byte types packed low half first.
// A Tensor is a cheap handle; storage is shared and immutable once it has a second owner.
class Tensor {
 public:
  Tensor() = default;

  static Tensor zeros(Type type);
  // Takes memory that goes back to the pool with the last handle. Whoever writes the bytes clears
  // the unused bits of the last one: equal tensors have equal bytes.
  static Tensor uninitialized(Type type, std::shared_ptr<MemoryPool> pool);
  static Tensor copy_of(Type type, std::span<const std::byte> bytes);
  template <class T>  // T must be the storage form of type.dtype(): float, int64_t, uint16_t, ...
  static Tensor of(Type type, std::span<const T> values) {
    return copy_of(type, std::as_bytes(values));
  }
  // Converts each number to the type. To a real type by rounding once to nearest even; to an
  // integer type reals saturate as in real_to_integer and integers wrap; to bool it is != 0.
  static Tensor from_reals(Type type, std::span<const double> values);
  static Tensor from_integers(Type type, std::span<const int64_t> values);
  static Tensor scalar(DType dtype, double value);

  // Shares the bytes of another owner (a mapped file, a user's buffer) for as long as `owner`
  // lives. The bytes need not be aligned. Their count is checked.
  static Result<Tensor> shared(Type type, std::shared_ptr<const void> owner,
                               std::span<const std::byte> bytes);
  static Result<Tensor> mapped(Type type, std::shared_ptr<const MappedFile> file, int64_t offset);

  // Filled by `fill` when the bytes are first read (once, thread-safe), with the same bytes each
  // time it is called; they are not zeroed before. `identity` stands for the content in
  // content_hash(), so that hashing does not force it.
  static Tensor lazy(Type type, uint64_t identity, std::function<void(std::span<std::byte>)> fill);

  explicit operator bool() const { return static_cast<bool>(type_); }
  Type type() const { return type_; }
  DType dtype() const { return type_.dtype(); }
  int64_t elements() const { return type_.static_elements(); }
  int64_t byte_size() const { return type_.static_bytes(); }

  std::span<const std::byte> bytes() const;
  // The same, for reading the bytes once: an unread lazy tensor is filled into `scratch` and stays
  // unread.
  std::span<const std::byte> bytes_once(std::vector<std::byte>& scratch) const;
  bool is_writable() const;              // its bytes are its own, and this is the only handle
  std::span<std::byte> mutable_bytes();  // HONE_CHECK: is_writable()
  template <class T>
  std::span<const T> as() const {  // unaligned bytes are copied, once per storage
    return {static_cast<const T*>(aligned_data(alignof(T))), bytes().size() / sizeof(T)};
  }
  bool is_materialized() const;  // false for an unread lazy tensor

  double real_at(int64_t index) const;      // any dtype, as a number
  int64_t integer_at(int64_t index) const;  // canonical image, see wrap_to; reals are refused

  // Bulk forms; `out` has the range's size. Multithreading is left to the caller.
  void read_reals(int64_t begin, std::span<double> out) const;
  void read_reals(int64_t begin, std::span<float> out) const;
  void read_integers(int64_t begin, std::span<int64_t> out) const;

  // The same bytes under another type of equal size (a reshape or a bit cast); no copy.
  Tensor viewed_as(Type type) const;

  uint64_t content_hash() const;  // of type and bytes (or identity); computed once per storage
  bool same_bytes(const Tensor& other) const;

 private:
  Tensor(Type type, std::shared_ptr<detail::TensorStorage> storage);
  const void* aligned_data(size_t alignment) const;

  Type type_;
  std::shared_ptr<detail::TensorStorage> storage_;
};

}  // namespace hone
