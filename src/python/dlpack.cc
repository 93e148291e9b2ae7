#include "python/dlpack.h"

#include <utility>

#include "base/text.h"
#include "python/array.h"
#include "python/error.h"

namespace hone::python {

namespace py = pybind11;

namespace {

// ---- As the specification lays it out, versions 0.x and 1.x ------------------------------------

struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {  // the capsule "dltensor"
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {  // the capsule "dltensor_versioned"
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};

constexpr int32_t kCpu = 1, kPinnedCpu = 3;  // device types whose memory is that of the machine
constexpr uint64_t kReadOnly = 1, kCopied = 2;
constexpr uint32_t kMajor = 1;

template <class Managed>
void give_back(void* managed) {
  auto* it = static_cast<Managed*>(managed);
  if (it->deleter != nullptr) it->deleter(it);
}

std::optional<DType> dtype_of(const DlTensor& tensor) {
  if (tensor.lanes != 1) return std::nullopt;
  const auto is = [&](int bits, DType dtype) {
    return tensor.bits == bits ? std::optional(dtype) : std::nullopt;
  };
  switch (tensor.code) {
    case 0: return sized(DTypeKind::sint, tensor.bits);
    case 1: return sized(DTypeKind::uint, tensor.bits);
    case 2: return sized(DTypeKind::real, tensor.bits);
    case 4: return is(16, DType::bf16);
    case 6: return is(8, DType::boolean);
    case 10: return is(8, DType::f8e4m3fn);
    case 11: return is(8, DType::f8e4m3fnuz);
    case 12: return is(8, DType::f8e5m2);
    case 13: return is(8, DType::f8e5m2fnuz);
    case 14: return is(8, DType::f8e8m0);
    default: return std::nullopt;
  }
}

// Uses version 1 if its owner knows that: it says what must not be written to.
py::object capsule_of(py::handle array, const std::string& label) {
  const py::object lend = array.attr("__dlpack__");
  try {
    try {
      return lend(py::arg("max_version") = py::make_tuple(kMajor, 0));
    } catch (const py::error_already_set& why) {
      if (!why.matches(PyExc_TypeError)) throw;
    }
    return lend();
  } catch (const py::error_already_set& why) {
    raise(unreadable(label, why.what()));
  }
}

// Takes the capsule's content; whoever else looks at it finds it used.
template <class Managed>
Managed* content_of(py::handle capsule, const char* name, const char* used, DlpackArray& array) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), used);
  array.managed = {managed, &give_back<Managed>};
  return managed;
}

}  // namespace

DlpackArray borrow_dlpack(py::handle array, const std::string& label) {
  const auto device = array.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (device.first != kCpu && device.first != kPinnedCpu)
    raise(unsupported("{} is on device {}:{} of DLPack; hone computes on the processor", label,
                      device.first, device.second)
              .with_hint("copy it to the CPU before: tensor.cpu()"));
  const py::object capsule = capsule_of(array, label);
  DlpackArray borrowed;
  const DlTensor* tensor = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* managed =
        content_of<DlVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned", borrowed);
    if (managed->major != kMajor)
      raise(unreadable(label, fmt::format("it speaks version {} of DLPack", managed->major)));
    borrowed.is_read_only = (managed->flags & kReadOnly) != 0;
    borrowed.is_copy = (managed->flags & kCopied) != 0;
    tensor = &managed->tensor;
  } else {
    tensor = &content_of<DlManaged>(capsule, "dltensor", "used_dltensor", borrowed)->tensor;
  }
  borrowed.dtype = dtype_of(*tensor);
  borrowed.format = fmt::format("DLPack {}:{}", tensor->code, tensor->bits);
  borrowed.data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  borrowed.rank = tensor->ndim;
  borrowed.shape = tensor->shape;
  borrowed.strides = tensor->strides;
  borrowed.element = tensor->bits / 8;
  return borrowed;
}

}  // namespace hone::python
