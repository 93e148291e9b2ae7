#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tensor/dtype.h"

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

}  // namespace hone::python
