#include "python/dlpack.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// Element types by the numbers of DLPack; bits of those that it lacks.
std::pair<uint8_t, uint8_t> dlpack_type(DType dtype) {
  const auto bits = static_cast<uint8_t>(std::max(hone::bits(dtype), 8));
  if (is_bool(dtype)) return {6, bits};
  if (dtype == DType::bf16) return {4, bits};
  if (is_storage_only(dtype) || hone::bits(dtype) < 8) return {1, bits};
  if (is_real(dtype)) return {2, bits};
  return {is_signed(dtype) ? 0 : 1, bits};
}

// An array that is lent, with its sizes.
struct Lent {
  DlManaged managed = {};
  std::shared_ptr<const void> owner;
  std::vector<int64_t> sizes;
};

// Uses version 1 if its owner knows that: it says what must not be written to. `how` are arguments
// that all versions have.
py::object capsule_of(py::handle array, const std::string& label, py::dict how) {
  const py::object lend = array.attr("__dlpack__");
  try {
    try {
      return lend(py::arg("max_version") = py::make_tuple(kMajor, 0), **how);
    } catch (const py::error_already_set& why) {
      if (!why.matches(PyExc_TypeError)) throw;
    }
    return lend(**how);
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

namespace {

DlpackArray borrowed_by(py::handle array, const std::string& label, py::dict how) {
  const py::object capsule = capsule_of(array, label, std::move(how));
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

}  // namespace

DlpackArray borrow_dlpack(py::handle array, const std::string& label) {
  const auto device = array.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (device.first != kCpu && device.first != kPinnedCpu)
    raise(unsupported("{} is on device {}:{} of DLPack; hone computes on the processor", label,
                      device.first, device.second)
              .with_hint("copy it to the CPU before: tensor.cpu(); a model for a GPU takes all its "
                         "inputs there"));
  return borrowed_by(array, label, {});
}

DlpackArray borrow_dlpack_on_gpu(py::handle array, const std::string& label, int device,
                                 int64_t stream) {
  const bool has_device = py::hasattr(array, "__dlpack_device__");
  const auto at = has_device ? array.attr("__dlpack_device__")().cast<std::pair<int, int>>()
                             : std::pair(kCpu, 0);
  if (at.first != kDlpackCuda || at.second != device)
    raise(bad_input("{} is on device {}:{} of DLPack, and other inputs are on cuda:{}", label,
                    at.first, at.second, device)
              .with_hint(fmt::format("give all inputs there: tensor.to('cuda:{}')", device)));
  py::dict how;
  how["stream"] = stream;
  return borrowed_by(array, label, std::move(how));
}

py::object lend_dlpack(std::shared_ptr<const void> owner, uint64_t address, Type type,
                       DlpackDevice device) {
  auto lent = std::make_unique<Lent>();
  lent->owner = std::move(owner);
  const bool is_packed = bits(type.dtype()) < 8;
  const Ints dims = is_packed ? Ints{type.static_bytes()} : type.static_dims();
  lent->sizes.assign(dims.begin(), dims.end());
  const auto [code, bits] = dlpack_type(type.dtype());
  lent->managed.tensor = {.data = reinterpret_cast<void*>(address),
                          .device_type = device.type,
                          .device_id = device.number,
                          .ndim = static_cast<int32_t>(lent->sizes.size()),
                          .code = code,
                          .bits = bits,
                          .lanes = 1,
                          .shape = lent->sizes.data(),
                          .strides = nullptr,
                          .byte_offset = 0};
  lent->managed.context = lent.get();
  lent->managed.deleter = [](DlManaged* it) { delete static_cast<Lent*>(it->context); };
  // Whoever takes the content renames the capsule, and gives the content back by its deleter.
  PyObject* const capsule = PyCapsule_New(&lent->managed, "dltensor", [](PyObject* it) {
    if (PyCapsule_IsValid(it, "dltensor") == 0) return;
    auto* managed = static_cast<DlManaged*>(PyCapsule_GetPointer(it, "dltensor"));
    managed->deleter(managed);
  });
  if (capsule == nullptr) throw py::error_already_set();
  (void)lent.release();
  return py::reinterpret_steal<py::object>(capsule);
}

}  // namespace hone::python
