#include "runtime/cuda/driver.h"

#include <dlfcn.h>

namespace hone {

namespace {

// After such a code the driver answers all calls of the process with it.
bool loses_the_gpu(cuda::Code code) {
  constexpr cuda::Code kUnavailable = 46, kBadMemory = 214, kFirstOfRuns = 700, kLastOfRuns = 799,
                       kUnknown = 999;
  return code == kUnavailable || code == kBadMemory || code == kUnknown ||
         (code >= kFirstOfRuns && code <= kLastOfRuns);
}

// The reason that the loader gives.
std::string loader_reason() {
  const char* text = dlerror();
  return text == nullptr ? "the loader does not say why" : text;
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

Result<std::shared_ptr<const CudaDriver>> CudaDriver::open(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return unsupported("there is no NVIDIA driver: {}", loader_reason()).with_hint(kCpuRunsIt);
  std::shared_ptr<CudaDriver> driver(new CudaDriver);
  Status good = driver->find_functions(opened, library);
  if (good.ok()) good = driver->start();
  if (!good.ok()) return std::move(good).error().with_hint(kCpuRunsIt);
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

Status CudaDriver::find_functions(void* library, const std::string& name) {
#define HONE_CUDA_FIND(function, parameters)                                      \
  functions_.function =                                                           \
      reinterpret_cast<decltype(functions_.function)>(dlsym(library, #function)); \
  if (functions_.function == nullptr)                                             \
    return unsupported("the NVIDIA driver is too old: {} has no function {}", name, #function);
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FIND)
#undef HONE_CUDA_FIND
  has_conditions_ = true;
#define HONE_CUDA_FIND(function, parameters)                                      \
  functions_.function =                                                           \
      reinterpret_cast<decltype(functions_.function)>(dlsym(library, #function)); \
  has_conditions_ = has_conditions_ && functions_.function != nullptr;
  HONE_CUDA_CONDITION_FUNCTIONS(HONE_CUDA_FIND)
#undef HONE_CUDA_FIND
  return {};
}

Status CudaDriver::start() {
  const cuda::Code started = functions_.cuInit(0);
  if (started == cuda::kNoDevice)
    return unsupported("the NVIDIA driver finds no GPU in this machine");
  HONE_TRY(check(started, "started the driver"));
  HONE_TRY(check(functions_.cuDriverGetVersion(&version_), "asked for the driver's version"));
  if (version_ < kMinCudaVersion)
    return unsupported("the NVIDIA driver is too old: it is for {}; hone needs {} or later",
                       cuda_version_text(version_), cuda_version_text(kMinCudaVersion));
  has_conditions_ = has_conditions_ && version_ >= kConditionsVersion;
  HONE_TRY(check(functions_.cuDeviceGetCount(&devices_), "counted the GPUs"));
  if (devices_ < 1) return unsupported("the NVIDIA driver finds no GPU in this machine");
  return {};
}

Error CudaDriver::failed(cuda::Code code, std::string_view doing) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (functions_.cuGetErrorName(code, &name) != cuda::kGood || name == nullptr) name = "unknown";
  if (functions_.cuGetErrorString(code, &text) != cuda::kGood || text == nullptr)
    text = "the driver knows no reason";
  const std::string_view lost = loses_the_gpu(code) ? "; it is lost to this process" : "";
  return over_limit("the GPU failed while hone {}: {} ({}, error {}){}", doing, text, name, code,
                    lost)
      .with_hint(kCpuRunsIt);
}

}  // namespace hone
