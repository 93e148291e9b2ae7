#include "python/gpu_array.h"

#include <cstdlib>

#include "python/array.h"
#include "python/dlpack.h"
#include "python/error.h"
#include "runtime/cuda/device.h"

namespace hone::python {

namespace py = pybind11;

Result<std::shared_ptr<const CudaDevice>> gpu_of(const std::optional<std::string>& devices,
                                                 std::string_view option) {
  if (!devices) return std::shared_ptr<const CudaDevice>();
  const std::optional<int> number = HONE_TRY(named_gpu_number(*devices, option));
  if (!number) return std::shared_ptr<const CudaDevice>();
  return open_cuda_device(cuda_library(), *number);
}

std::string cuda_library() {
  const char* const named = std::getenv("HONE_CUDA_LIBRARY");
  return named != nullptr && *named != '\0' ? named : std::string(kCudaLibrary);
}

bool is_on_gpu(py::handle array) {
  if (!py::hasattr(array, "__dlpack_device__")) return false;
  return array.attr("__dlpack_device__")().cast<std::pair<int, int>>().first == kDlpackCuda;
}

Result<GpuArray> GpuArray::make(CudaMemoryPool& pool, int device, Type type, cuda::Stream stream) {
  return GpuArray(HONE_TRY(pool.take(type.static_bytes(), stream)), type, device);
}

py::object GpuArray::capsule(py::handle stream, py::handle copy) const {
  // DLPack has the number 1 for the stream whose handle is 0, and -1 for one that it does not name.
  const int64_t number = stream.is_none() ? 1 : stream.cast<int64_t>();
  memory_->use_in(number == 1 ? nullptr : reinterpret_cast<cuda::Stream>(number));
  if (!copy.is_none() && copy.cast<bool>())
    throw py::buffer_error("an array of hone on a GPU is lent as it is, never as a copy");
  return lend_dlpack(memory_, memory_->address(), type_, {kDlpackCuda, device_});
}

py::tuple GpuArray::dlpack_device() const { return py::make_tuple(kDlpackCuda, device_); }

void define_gpu_arrays(py::module_& module) {
  py::class_<GpuArray>(module, "GpuArray", py::module_local())
      .def_property_readonly("shape", [](const GpuArray& it) { return shape_of(it.type()); })
      .def_property_readonly("dtype",
                             [](const GpuArray& it) { return numpy_name(it.type().dtype()); })
      .def("__dlpack_device__", &GpuArray::dlpack_device)
      .def(
          "__dlpack__",
          [](const GpuArray& it, py::handle stream, py::handle, py::handle, py::handle copy) {
            return it.capsule(stream, copy);
          },
          py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
          py::arg("dl_device") = py::none(), py::arg("copy") = py::none());
}

}  // namespace hone::python
