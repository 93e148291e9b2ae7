#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tensor/type.h"

// Arrays by DLPack, the protocol in which frameworks lend each other memory.

namespace hone::python {

// An array that somebody lends. `shape` and `strides` are the lender's; all of it lasts as long as
// `managed`, which goes back to the lender.
struct DlpackArray {
  std::unique_ptr<void, void (*)(void*)> managed{nullptr, nullptr};
  std::byte* data = nullptr;
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // elements; null: row by row
  int64_t element = 0;               // bytes
  std::optional<DType> dtype;        // none: an element type that hone lacks
  std::string format;                // for people: "DLPack 5:64"
  bool is_read_only = false;
  bool is_copy = false;  // what is written to it the lender never sees
};

// Raises if the array is not in memory of the machine, or its owner does not lend it. `label` names
// it: "input 'x'". With the GIL held.
DlpackArray borrow_dlpack(pybind11::handle array, const std::string& label);

inline constexpr int kDlpackCuda = 2;  // a type of devices: NVIDIA's GPUs

// The same for an array in memory of this GPU. `data` is an address there; what it holds is ready
// for what comes later in the stream, as DLPack numbers streams.
DlpackArray borrow_dlpack_on_gpu(pybind11::handle array, const std::string& label, int device,
                                 int64_t stream);

// A capsule that lends memory of a device, which `owner` keeps.
struct DlpackDevice {
  int type = 0;
  int number = 0;
};
pybind11::object lend_dlpack(std::shared_ptr<const void> owner, uint64_t address, Type type,
                             DlpackDevice device);

}  // namespace hone::python
