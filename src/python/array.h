#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/memory_pool.h"
#include "tensor/tensor.h"

// Arrays of Python and the memory that hone reads and writes. Nothing is copied where an array lies
// as kernels read it: row by row without gaps, aligned to its elements.
//
// numpy lays its structs out anew with each major version, and pybind11/numpy.h knows those of one
// alone. So numpy itself makes all arrays, called as Python calls it, and memory is read and
// written through the buffer protocol and DLPack, which stay.

namespace hone::python {

struct DlpackArray;

// An input or output of a model. numpy lacks some element types: an array holds their bits, uint16
// for bf16, uint8 for f8, and for types of fewer than 8 bits, packed, a row of uint8.
struct Port {
  std::string name;
  Type type;  // its sizes may be open

  bool is_packed() const { return bits(type.dtype()) < 8; }
};

// The name of an array's elements in Python: "float32"; the bits, if numpy lacks the type.
std::string numpy_name(DType dtype);
// "float32 (N, 3)".
std::string text(const Port& port);

// The type of this kind and width that an array can have: none of those that are storage alone.
std::optional<DType> sized(DTypeKind kind, int64_t bits);
// An array whose owner does not lend its memory.
Error unreadable(const std::string& label, std::string_view why);

// An array that somebody gave, by the buffer protocol or by DLPack, held as long as this lives. It
// is made, moved and destroyed with the GIL.
class GivenArray {
 public:
  enum class Use : uint8_t {
    read,
    watch,  // read where it is, as it will be at later runs
    write,
  };

  // Raises if it is not an array in memory, is to be written and is read-only, or is lent as a copy
  // where a copy does not serve. `label` names it: "input 'x'".
  GivenArray(pybind11::handle array, const std::string& label, Use use);
  // One that somebody lends; its memory may be that of a device.
  GivenArray(DlpackArray lent, const std::string& label, Use use);
  GivenArray(GivenArray&& other) noexcept;
  GivenArray& operator=(GivenArray&&) = delete;
  ~GivenArray();

  // As it is; raises if hone lacks the element type.
  Type type(const std::string& label) const;
  // The type of the port that it fits; raises if it fits not.
  Type fit(const Port& port, const std::string& label) const;
  // Its elements as kernels read them: where they are, or, if they do not lie so, copied.
  const std::byte* elements(Type type);
  // Where they are, to be written or watched; raises if they do not lie as kernels need it.
  std::byte* place(Type type, const std::string& label) const;

 private:
  GivenArray() = default;
  bool take_buffer(pybind11::handle array, const std::string& label);  // else an error of Python
  void take_made(const pybind11::object& array, const std::string& label);
  void take_dlpack(DlpackArray lent, const std::string& label);
  void check_use(Use use, const std::string& label) const;
  void set_rank(int rank, const std::string& label);
  bool lies_well(Type type) const;
  std::span<const int64_t> dims() const { return {dims_, static_cast<size_t>(rank_)}; }
  std::string text() const;  // "float64 [2, 3]"

  Py_buffer buffer_ = {};
  std::unique_ptr<void, void (*)(void*)> managed_{nullptr, nullptr};  // DLPack's
  std::byte* data_ = nullptr;
  std::optional<DType> dtype_;  // none: an element type that hone lacks
  std::string format_;          // for people
  bool is_read_only_ = false;
  bool is_copy_ = false;  // what is written to it nobody sees
  int rank_ = 0;
  int64_t dims_[kMaxRank] = {};
  int64_t strides_[kMaxRank] = {};  // bytes
  std::unique_ptr<std::byte[]> copy_;
};

// A tuple: numbers, or texts where sizes are open.
pybind11::tuple shape_of(Type type);

// An array of numpy, row by row, whose elements are to be written to `data`.
struct NewArray {
  pybind11::object array;
  std::byte* data = nullptr;
};
NewArray new_array(Type type);
// The same; large memory is the pool's, which has it back when nobody holds the array.
NewArray new_array(Type type, const std::shared_ptr<MemoryPool>& pool);
// An array of numpy over the tensor's own memory, if nobody else has it, or over a copy.
pybind11::object array_of(Tensor tensor);
// Registers what such an array keeps, for this module alone.
void define_arrays();

// A tensor in the array's memory, which it keeps. To be destroyed by any thread.
Tensor tensor_of(GivenArray given, Type type);

}  // namespace hone::python
