#include "python/array.h"

#include <cstring>
#include <utility>

#include "base/planted.h"
#include "base/text.h"
#include "python/dlpack.h"
#include "python/error.h"

namespace hone::python {

namespace py = pybind11;

namespace {

// A format of the struct module: "<f".
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

// The elements of an array for a port of this type.
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

// The functions of numpy, as Python would call them; made once, and kept for ever: Python may end
// before.
struct Numpy {
  py::object module = py::module_::import("numpy");
  py::object empty = module.attr("empty"), ndarray = module.attr("ndarray");
  py::object dtypes[kDTypeCount];

  py::handle dtype(DType dtype) {
    py::object& one = dtypes[static_cast<size_t>(dtype)];
    if (!one) one = module.attr("dtype")(numpy_name(dtype));
    return one;
  }
};
// Its module is imported without the GIL now and then, so nothing that a thread waits for is held.
Numpy& numpy() {
  static Numpy* one = nullptr;  // guarded by the GIL
  if (one == nullptr) {
    auto made = std::make_unique<Numpy>();
    if (one == nullptr) one = made.release();
  }
  return *one;
}

Ints array_dims(Type type) {
  return bits(type.dtype()) < 8 ? Ints{type.static_bytes()} : type.static_dims();
}

py::tuple array_shape(Type type) {
  const Ints dims = array_dims(type);
  py::tuple shape(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) shape[i] = py::int_(dims[i]);
  return shape;
}

// A tensor's memory, which it keeps, as numpy asks for it: by the buffer protocol.
struct LentTensor {
  Tensor tensor;
};

}  // namespace

std::optional<DType> sized(DTypeKind kind, int64_t bits) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!is_storage_only(dtype) && dtype != DType::bf16 && hone::kind(dtype) == kind &&
        hone::bits(dtype) == bits)
      return dtype;
  }
  return std::nullopt;
}

Error unreadable(const std::string& label, std::string_view why) {
  return unsupported("{}: its memory cannot be read: {}", label, why)
      .with_hint("for types that numpy lacks, give the bits: array.view(numpy.uint16)");
}

std::string numpy_name(DType dtype) {
  const DType held = held_for(dtype);
  if (is_bool(held)) return "bool";
  const std::string_view stem = is_real(held) ? "float" : is_signed(held) ? "int" : "uint";
  return fmt::format("{}{}", stem, bits(held));
}

// If it throws, it releases what it holds by then.
GivenArray::GivenArray(py::handle array, const std::string& label, Use use) : GivenArray() {
  const bool has_buffer = PyObject_CheckBuffer(array.ptr()) != 0;
  if (!has_buffer || !take_buffer(array, label)) {
    std::optional<py::error_already_set> why;  // it takes the error of Python
    if (has_buffer) why.emplace();
    if (py::hasattr(array, "__dlpack__")) {
      take_dlpack(borrow_dlpack(array, label), label);
    } else if (why) {
      raise(unreadable(label, why->what()));
    } else if (use == Use::read && py::hasattr(array, "__array__")) {
      take_made(array.attr("__array__")(), label);
    } else {
      raise(bad_input("{} is not an array, but of type '{}'", label, Py_TYPE(array.ptr())->tp_name)
                .with_hint("numpy.asarray(value, dtype) makes an array of numbers and lists"));
    }
  }
  check_use(use, label);
}

GivenArray::GivenArray(DlpackArray lent, const std::string& label, Use use) : GivenArray() {
  take_dlpack(std::move(lent), label);
  check_use(use, label);
}

GivenArray::GivenArray(GivenArray&& other) noexcept
    : buffer_(std::exchange(other.buffer_, {})),
      managed_(std::move(other.managed_)),
      data_(other.data_),
      dtype_(other.dtype_),
      format_(std::move(other.format_)),
      is_read_only_(other.is_read_only_),
      is_copy_(other.is_copy_),
      rank_(other.rank_),
      copy_(std::move(other.copy_)) {
  std::copy_n(other.dims_, rank_, dims_);
  std::copy_n(other.strides_, rank_, strides_);
}

GivenArray::~GivenArray() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

void GivenArray::check_use(Use use, const std::string& label) const {
  if (use == Use::read) return;
  if (use == Use::write && is_read_only_)
    raise(bad_input("{}: the array is read-only", label).with_hint("a copy can be written"));
  if (is_copy_)
    raise(bad_input("{}: DLPack lends a copy of the array", label)
              .with_hint("numpy.empty(shape, dtype) makes an array whose memory is lent itself"));
}

bool GivenArray::take_buffer(py::handle array, const std::string& label) {
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) return false;
  is_read_only_ = buffer_.readonly != 0;
  data_ = static_cast<std::byte*>(buffer_.buf);
  format_ = buffer_.format != nullptr ? buffer_.format : "B";
  dtype_ = dtype_of_format(format_, buffer_.itemsize);
  set_rank(buffer_.ndim, label);
  int64_t row = buffer_.itemsize;
  for (int i = rank_ - 1; i >= 0; --i) {
    dims_[i] = buffer_.shape[i];
    strides_[i] =
        buffer_.strides != nullptr ? buffer_.strides[i] : row;  // null: an array of ctypes
    row *= dims_[i];
  }
  return true;
}

// Takes the result of __array__(). It may be a copy, so this is for arrays that are only read.
void GivenArray::take_made(const py::object& array, const std::string& label) {
  if (PyObject_CheckBuffer(array.ptr()) != 0 && take_buffer(array, label)) return;
  PyErr_Clear();
  raise(unreadable(label, "__array__() gives no array"));
}

void GivenArray::take_dlpack(DlpackArray lent, const std::string& label) {
  managed_ = std::move(lent.managed);
  is_read_only_ = lent.is_read_only;
  is_copy_ = lent.is_copy;
  data_ = lent.data;
  dtype_ = lent.dtype;
  format_ = std::move(lent.format);
  set_rank(lent.rank, label);
  int64_t row = lent.element;
  for (int i = rank_ - 1; i >= 0; --i) {
    dims_[i] = lent.shape[i];
    const bool has_strides = HONE_PLANT(dlpack_rows, lent.strides != nullptr, false);
    strides_[i] = has_strides ? lent.strides[i] * lent.element : row;
    row *= dims_[i];
  }
}

void GivenArray::set_rank(int rank, const std::string& label) {
  if (rank < 0 || rank > kMaxRank)
    raise(bad_input("{}: the array has {} dims, but {} are the most", label, rank, kMaxRank));
  rank_ = rank;
}

std::string GivenArray::text() const {
  const std::string element = !dtype_                        ? format_
                              : held_for(*dtype_) != *dtype_ ? std::string(name(*dtype_))
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
  if (!dtype_) raise(bad_input("{}: hone has no element type like {}", label, text()));
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
  if (type.static_bytes() == 0) return true;
  const int64_t element = element_bytes(type.dtype());
  if (reinterpret_cast<uintptr_t>(data_) % static_cast<size_t>(element) != 0) return false;
  int64_t row = element;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (dims_[i] != 1 && strides_[i] != row) return false;
    row *= dims_[i];
  }
  return true;
}

const std::byte* GivenArray::elements(Type type) {
  if (HONE_PLANT(given_rows, lies_well(type), true)) return data_;
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

NewArray new_array(Type type) {
  Numpy& np = numpy();
  const py::tuple shape = array_shape(type);
  const py::handle dtype = np.dtype(type.dtype());
  py::object array = np.empty(shape, dtype);
  Py_buffer lent;
  if (PyObject_GetBuffer(array.ptr(), &lent, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0)
    throw py::error_already_set();
  auto* const data = static_cast<std::byte*>(lent.buf);
  const int64_t bytes = lent.len;
  PyBuffer_Release(&lent);  // the array keeps its memory
  HONE_CHECK(bytes == type.static_bytes(), "numpy made {} bytes of {}", bytes, type.to_string());
  return {
      HONE_PLANT(array_stuck, array,
                 np.ndarray(shape, dtype, array, 0, py::make_tuple(0) * py::int_(shape.size()))),
      data};
}

NewArray new_array(Type type, const std::shared_ptr<MemoryPool>& pool) {
  if (static_cast<size_t>(type.static_bytes()) < MemoryPool::kLeast) return new_array(type);
  Tensor tensor = Tensor::uninitialized(type, pool);
  std::byte* const data = tensor.mutable_bytes().data();
  return {array_of(std::move(tensor)), data};
}

py::object array_of(Tensor tensor) {
  const Type type = tensor.type();
  if (!tensor.is_writable() || tensor.byte_size() == 0) {
    NewArray copy = new_array(type);
    const std::span<const std::byte> bytes = tensor.bytes();
    if (!bytes.empty()) std::memcpy(copy.data, bytes.data(), bytes.size());
    return std::move(copy.array);
  }
  Numpy& np = numpy();
  return np.ndarray(array_shape(type), np.dtype(type.dtype()),
                    py::cast(LentTensor{std::move(tensor)}), 0, py::none(),
                    HONE_PLANT(array_columns, "C", "F"));
}

void define_arrays() {
  py::class_<LentTensor>(py::handle(), "Memory", py::module_local(), py::buffer_protocol())
      .def_buffer([](LentTensor& it) {
        const std::span<std::byte> bytes = it.tensor.mutable_bytes();
        return py::buffer_info(bytes.data(), 1, "B", static_cast<py::ssize_t>(bytes.size()));
      });
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
