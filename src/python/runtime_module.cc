#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "base/text.h"
#include "cache/compile_cache.h"
#include "python/core.h"
#include "python/error.h"
#include "python/gpu_array.h"
#include "runtime/loaded_model.h"

// hone._runtime: loads and runs compiled models. It has no compiler, so that `import hone` is
// quick.

namespace hone::python {
namespace {

namespace py = pybind11;

std::vector<Port> ports_of(std::span<const image::Port> ports) {
  std::vector<Port> all;
  for (const image::Port& port : ports) all.push_back({port.name, port.type});
  return all;
}

// Without the GIL.
Result<std::shared_ptr<const LoadedModel>> ready(HonecFile file, std::optional<int64_t> threads,
                                                 bool verify,
                                                 const std::optional<std::string>& device,
                                                 const std::optional<std::string>& cache) {
  if (verify) HONE_TRY(file.verify());
  HonecOptions options = {.threads = threads};
  options.device = HONE_TRY(gpu_of(device, "device"));
  if (device && options.device == nullptr && *device != "cpu")
    return usage_error("device: there is no '{}'", excerpt(*device))
        .with_hint("'cpu' is the processor, and 'cuda' or 'cuda:1' is a GPU");
  if (options.device != nullptr && cache) {
    // One that cannot be used costs time, nothing else.
    Result<std::unique_ptr<CompileCache>> opened = CompileCache::open(*cache);
    if (opened.ok())
      options.cubins = cubin_store(std::shared_ptr<CompileCache>(*std::move(opened)));
  }
  return LoadedModel::load(std::move(file), std::move(options));
}

// The code of a model of one graph on a GPU; else null. The model keeps it.
const CudaExecutable* gpu_code(const LoadedModel& model) {
  if (!model.file().is_single() || model.single() != nullptr) return nullptr;
  std::vector<Type> types;
  for (const image::Port& port : model.inputs()) types.push_back(port.type);
  return dynamic_cast<const CudaExecutable*>(take(model.executable(0, types)).get());
}

template <class Open>
py::tuple load_by(const Open& open, std::optional<int64_t> threads, bool verify,
                  const std::optional<std::string>& device,
                  const std::optional<std::string>& cache) {
  Result<std::shared_ptr<const LoadedModel>> result =
      [&]() -> Result<std::shared_ptr<const LoadedModel>> {
    const py::gil_scoped_release free;
    return ready(HONE_TRY(open()), threads, verify, device, cache);
  }();
  const std::shared_ptr<const LoadedModel> loaded = take(std::move(result));
  const HonecFile& file = loaded->file();
  auto core = std::make_shared<Core>(ports_of(file.inputs()), ports_of(file.outputs()), loaded,
                                     gpu_code(*loaded));
  return py::make_tuple(text_of(file.name()), std::move(core));
}

py::tuple load(const std::string& path, std::optional<int64_t> threads, bool verify,
               const std::optional<std::string>& device, const std::optional<std::string>& cache) {
  return load_by([&] { return HonecFile::open(path); }, threads, verify, device, cache);
}

py::tuple parse(const py::bytes& bytes, std::optional<int64_t> threads, bool verify,
                const std::optional<std::string>& device, const std::optional<std::string>& cache) {
  const std::string_view view = bytes;
  const std::shared_ptr<const void> owner(new py::bytes(bytes), [](py::bytes* it) {
    const py::gil_scoped_acquire gil;
    delete it;
  });
  const std::span<const std::byte> all = std::as_bytes(std::span(view.data(), view.size()));
  return load_by([&] { return HonecFile::parse(owner, all); }, threads, verify, device, cache);
}

}  // namespace
}  // namespace hone::python

PYBIND11_MODULE(_runtime, module) {
  using namespace hone::python;
  module.doc() = "Compiled models of hone: loading and running them.";
  module.attr("__version__") = HONE_VERSION;
  translate_faults();
  define_core(module);
  module.def("load", &load);
  module.def("parse", &parse);
  module.def("is_compiled", [](const pybind11::bytes& bytes) {
    return hone::begins_like_honec(std::string_view(bytes));
  });
}
