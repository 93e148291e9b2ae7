#include "python/array.h"

#include <cstring>
#include <utility>

#include "base/text.h"
#include "python/error.h"

namespace hone::python {

namespace py = pybind11;

// ---- DLPack, as its specification says (version 0.x, the capsule "dltensor") --------------------

struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // elements; null: row by row
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};

namespace {

constexpr int32_t kCpu = 1, kPinnedCpu = 3;  // device types whose memory is that of the machine

std::optional<DType> sized(DTypeKind kind, int64_t bits) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!is_storage_only(dtype) && dtype != DType::bf16 && hone::kind(dtype) == kind &&
        hone::bits(dtype) == bits)
      return dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_dlpack(const DlTensor& tensor) {
  if (tensor.lanes != 1) return std::nullopt;
  switch (tensor.code) {
    case 0: return sized(DTypeKind::sint, tensor.bits);
    case 1: return sized(DTypeKind::uint, tensor.bits);
    case 2: return sized(DTypeKind::real, tensor.bits);
    case 4: return tensor.bits == 16 ? std::optional(DType::bf16) : std::nullopt;
    case 6: return tensor.bits == 8 ? std::optional(DType::boolean) : std::nullopt;
    default: return std::nullopt;
  }
}

// Of the struct module: "<f".
std::optional<DType> dtype_of_format(std::string_view format, int64_t bytes) {
  if (!format.empty() && std::string_view("@=<|").find(format[0]) != std::string_view::npos)
    format.remove_prefix(1);
  if (format.size() != 1) return std::nullopt;
  if (format == "?") return DType::boolean;
  if (std::string_view("efd").find(format[0]) != std::string_view::npos)
    return sized(DTypeKind::real, 8 * bytes);
  if (std::string_view("bhilqn").find(format[0]) != std::string_view::npos)
    return sized(DTypeKind::sint, 8 * bytes);
  if (std::string_view("BHILQN").find(format[0]) != std::string_view::npos)
    return sized(DTypeKind::uint, 8 * bytes);
  return std::nullopt;
}

// What an array holds for a port of this type.
DType held_for(DType dtype) {
  if (bits(dtype) < 8) return DType::u8;
  const bool is_bits = dtype == DType::bf16 || is_storage_only(dtype);
  return is_bits ? pattern_type(dtype) : dtype;
}

int64_t element_bytes(DType dtype) { return std::max(bits(dtype) / 8, 1); }

void copy_rows(std::byte*& to, const std::byte* from, std::span<const int64_t> dims,
               std::span<const int64_t> strides, int64_t element) {
  if (dims.empty()) {
    std::memcpy(to, from, static_cast<size_t>(element));
    to += element;
    return;
  }
  for (int64_t i = 0; i < dims[0]; ++i)
    copy_rows(to, from + i * strides[0], dims.subspan(1), strides.subspan(1), element);
}

// numpy's description of what arrays for the type hold; made once.
py::dtype numpy_dtype(DType dtype) {
  static py::handle known[kDTypeCount] = {};  // kept for ever: Python may end before
  py::handle& one = known[static_cast<size_t>(dtype)];
  if (!one) one = py::dtype(numpy_name(dtype)).release();
  return py::reinterpret_borrow<py::dtype>(one);
}

Ints array_dims(Type type) {
  return bits(type.dtype()) < 8 ? Ints{type.static_bytes()} : type.static_dims();
}

}  // namespace

std::string numpy_name(DType dtype) {
  const DType held = held_for(dtype);
  if (is_bool(held)) return "bool";
  const std::string_view stem = is_real(held) ? "float" : is_signed(held) ? "int" : "uint";
  return fmt::format("{}{}", stem, bits(held));
}

// What it holds by then is given back if it throws.
GivenArray::GivenArray(py::handle array, const std::string& label, Use use) : GivenArray() {
  if (PyObject_CheckBuffer(array.ptr()))
    take_buffer(array, label, use);
  else if (py::hasattr(array, "__dlpack__"))
    take_dlpack(array, label);
  else
    raise(bad_input("{} is no array but of type '{}'", label, Py_TYPE(array.ptr())->tp_name)
              .with_hint("numpy.asarray(value, dtype) makes an array of numbers and lists"));
}

GivenArray::GivenArray(GivenArray&& other) noexcept
    : buffer_(std::exchange(other.buffer_, {})),
      managed_(std::exchange(other.managed_, nullptr)),
      data_(other.data_),
      dtype_(other.dtype_),
      format_(std::move(other.format_)),
      rank_(other.rank_),
      copy_(std::move(other.copy_)) {
  std::copy_n(other.dims_, rank_, dims_);
  std::copy_n(other.strides_, rank_, strides_);
}

GivenArray::~GivenArray() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
}

void GivenArray::take_buffer(py::handle array, const std::string& label, Use use) {
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) {
    const py::error_already_set why;
    raise(unsupported("{}: its memory cannot be read: {}", label, why.what())
              .with_hint("for types that numpy lacks, give the bits: array.view(numpy.uint16)"));
  }
  if (use == Use::write && buffer_.readonly != 0)
    raise(bad_input("{}: the array is read-only", label).with_hint("a copy can be written"));
  data_ = static_cast<std::byte*>(buffer_.buf);
  format_ = buffer_.format != nullptr ? buffer_.format : "B";
  dtype_ = dtype_of_format(format_, buffer_.itemsize);
  set_rank(buffer_.ndim, label);
  for (int i = 0; i < rank_; ++i) {
    dims_[i] = buffer_.shape[i];
    strides_[i] = buffer_.strides[i];
  }
}

void GivenArray::take_dlpack(py::handle array, const std::string& label) {
  const auto device = array.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (device.first != kCpu && device.first != kPinnedCpu)
    raise(unsupported("{} is on device {}:{} of DLPack; hone computes on the processor", label,
                      device.first, device.second)
              .with_hint("copy it to the CPU before: tensor.cpu()"));
  const py::capsule capsule = array.attr("__dlpack__")();
  managed_ = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed_ == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");  // it is this one's to delete

  const DlTensor& tensor = managed_->tensor;
  dtype_ = dtype_of_dlpack(tensor);
  format_ = fmt::format("DLPack {}:{}", tensor.code, tensor.bits);
  data_ = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  set_rank(tensor.ndim, label);
  int64_t row = tensor.bits / 8;
  for (int i = rank_ - 1; i >= 0; --i) {
    dims_[i] = tensor.shape[i];
    strides_[i] = tensor.strides != nullptr ? tensor.strides[i] * (tensor.bits / 8) : row;
    row *= dims_[i];
  }
}

void GivenArray::set_rank(int rank, const std::string& label) {
  if (rank < 0 || rank > kMaxRank)
    raise(bad_input("{}: the array has {} dims, {} are the most", label, rank, kMaxRank));
  rank_ = rank;
}

std::string GivenArray::text() const {
  const std::string element = !dtype_                  ? format_
                              : *dtype_ == DType::bf16 ? "bfloat16"
                                                       : numpy_name(*dtype_);
  return fmt::format("{} ({})", element, join(dims(), ", "));
}

std::string text(const Port& port) {
  const DType dtype = port.type.dtype();
  std::string sizes;
  if (port.is_packed() && port.type.is_static()) {
    sizes = fmt::format("{}", port.type.static_bytes());
  } else {
    for (const Dim dim : port.type.dims()) sizes += (sizes.empty() ? "" : ", ") + dim.to_string();
  }
  const std::string bits = held_for(dtype) == dtype ? "" : fmt::format(", bits of {}", name(dtype));
  return fmt::format("{} ({}){}", numpy_name(dtype), sizes, bits);
}

Type GivenArray::type(const std::string& label) const {
  if (!dtype_) raise(bad_input("{}: hone has no element type as that of {}", label, text()));
  const Dims sizes(dims_, dims_ + rank_);
  Result<Type> type = Type::make(*dtype_, sizes);
  if (!type.ok()) raise(std::move(type).error().about(label));
  return *type;
}

Type GivenArray::fit(const Port& port, const std::string& label) const {
  const DType wanted = port.type.dtype(), held = held_for(wanted);
  const auto misfit = [&] {
    return bad_input("{} takes {}, the array is {}", label, python::text(port), text());
  };
  if (dtype_ != held && dtype_ != wanted) {
    if (format_.starts_with('>') || format_.starts_with('!'))
      raise(
          misfit().with_hint("it has the other byte order: "
                             "array.astype(array.dtype.newbyteorder('='))"));
    raise(misfit().with_hint(fmt::format("array.astype('{}')", numpy_name(wanted))));
  }
  if (port.is_packed()) {
    if (!port.type.is_static()) raise(unsupported("{}: packed numbers of open size", label));
    if (rank_ != 1 || dims_[0] != port.type.static_bytes()) raise(misfit());
    return port.type;
  }
  if (rank_ != port.type.rank()) raise(misfit());
  bool is_open = false;
  for (int i = 0; i < rank_; ++i) {
    const Dim dim = port.type.dim(i);
    is_open = is_open || !dim.is_static();
    if (dim.is_static() && dim.value() != dims_[i]) raise(misfit());
  }
  return is_open ? type(label).with_dtype(wanted) : port.type;
}

bool GivenArray::lies_well(Type type) const {
  const int64_t element = element_bytes(type.dtype());
  if (reinterpret_cast<uintptr_t>(data_) % static_cast<size_t>(element) != 0) return false;
  int64_t row = element;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (dims_[i] == 0) return true;
    if (dims_[i] != 1 && strides_[i] != row) return false;
    row *= dims_[i];
  }
  return true;
}

const std::byte* GivenArray::elements(Type type) {
  if (lies_well(type)) return data_;
  const int64_t bytes = type.static_bytes();
  copy_.reset(new std::byte[static_cast<size_t>(bytes)]);
  std::byte* to = copy_.get();
  copy_rows(to, data_, dims(), {strides_, static_cast<size_t>(rank_)}, element_bytes(type.dtype()));
  return copy_.get();
}

std::byte* GivenArray::place(Type type, const std::string& label) const {
  if (lies_well(type)) return data_;
  raise(bad_input("{}: the array is not contiguous, or not aligned to its elements", label)
            .with_hint("numpy.empty(shape, dtype) makes one that is"));
}

py::tuple shape_of(Type type) {
  py::list sizes;
  for (const Dim dim : type.dims())
    sizes.append(dim.is_static() ? py::object(py::int_(dim.value()))
                                 : py::object(py::str(dim.to_string())));
  return py::tuple(sizes);
}

py::array new_array(Type type) { return py::array(numpy_dtype(type.dtype()), array_dims(type)); }

py::array array_of(Tensor tensor) {
  const Type type = tensor.type();
  if (!tensor.is_writable()) {
    py::array copy = new_array(type);
    const std::span<const std::byte> bytes = tensor.bytes();
    if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
    return copy;
  }
  auto* kept = new Tensor(std::move(tensor));
  const py::capsule owner(kept, [](void* it) { delete static_cast<Tensor*>(it); });
  return py::array(numpy_dtype(type.dtype()), array_dims(type), kept->mutable_bytes().data(),
                   owner);
}

Tensor tensor_of(GivenArray given, Type type) {
  const std::shared_ptr<GivenArray> kept(new GivenArray(std::move(given)), [](GivenArray* it) {
    const py::gil_scoped_acquire gil;
    delete it;
  });
  const std::byte* elements = kept->elements(type);
  return take(Tensor::shared(type, kept, {elements, static_cast<size_t>(type.static_bytes())}));
}

}  // namespace hone::python
