#include "runtime/cuda/cubins.h"

#include <array>
#include <atomic>

#include "base/text.h"
#include "base/thread_pool.h"
#include "cache/compile_cache.h"

namespace hone {

namespace {

// A run of the driver's compiler; the machine code belongs to it.
class Linking {
 public:
  explicit Linking(const CudaDevice& device) : device_(device) {}
  ~Linking() {
    if (link_ != nullptr) (void)device_.call().cuLinkDestroy(link_);
  }
  Linking(const Linking&) = delete;

  // Code for one chip needs to say so: else the target is one that later chips have, too.
  Result<std::string> cubin(const PtxText& ptx) {
    std::string text(ptx.text);  // the driver wants a zero behind it
    int names[] = {cuda::kErrorLog, cuda::kErrorLogBytes, cuda::kTarget};
    void* values[] = {log_.data(), reinterpret_cast<void*>(log_.size() - 1),
                      reinterpret_cast<void*>(cuda::kExactTarget + device_.capability())};
    const cuda::Functions& call = device_.call();
    HONE_TRY(device_.check(call.cuLinkCreate_v2(ptx.is_exact ? 3 : 2, names, values, &link_),
                           "began to compile"));
    HONE_TRY(with_log(call.cuLinkAddData_v2(link_, cuda::kLinkPtx, text.data(), text.size() + 1,
                                            "kernel", 0, nullptr, nullptr)));
    void* code = nullptr;
    size_t bytes = 0;
    HONE_TRY(with_log(call.cuLinkComplete(link_, &code, &bytes)));
    return std::string(static_cast<const char*>(code), bytes);
  }

 private:
  Status with_log(cuda::Code code) const {
    Status good = device_.check(code, "compiled a kernel for it");
    const std::string_view log = trim(std::string_view(log_.data()));
    if (good.ok() || log.empty()) return good;
    return std::move(good).error().with_hint(
        fmt::format("its compiler says: {}; {}", excerpt(log), kCpuRunsIt));
  }

  const CudaDevice& device_;
  cuda::Link link_ = nullptr;
  std::array<char, 8192> log_ = {};
};

}  // namespace

CubinStore cubin_store(CompileCache* cache) {
  return cubin_store(std::shared_ptr<CompileCache>(std::shared_ptr<void>(), cache));
}

CubinStore cubin_store(std::shared_ptr<CompileCache> cache) {
  if (cache == nullptr) return {};
  // A cache that cannot be written to costs time, nothing else.
  return {.find = [cache](std::string_view key) { return cache->find(key); },
          .put = [cache](std::string_view key,
                         std::string_view cubin) { (void)cache->put(key, cubin).ok(); }};
}

bool may_be_cubin(std::string_view bytes) {
  constexpr size_t kHeader = 64;
  return bytes.size() >= kHeader && bytes.starts_with(
                                        "\x7f"
                                        "ELF");
}

std::string cubin_key(const CudaDevice& device, std::string_view ptx) {
  return fmt::format("cubin of a kernel\nsm_{}, driver {}\n{}", device.capability(),
                     device.driver().version(), ptx);
}

Result<std::string> make_cubin(const CudaDevice& device, const PtxText& ptx,
                               const CubinStore& store) {
  const std::string key = cubin_key(device, ptx.text);
  if (store.find)
    if (std::optional<std::string> kept = store.find(key); kept && may_be_cubin(*kept))
      return *std::move(kept);
  const CudaEntry entered = HONE_TRY(device.enter());
  std::string cubin = HONE_TRY(Linking(device).cubin(ptx));
  if (store.put) store.put(key, cubin);
  return cubin;
}

Result<std::vector<std::string>> make_cubins(const CudaDevice& device,
                                             std::span<const PtxText> texts,
                                             const CubinStore& store) {
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<std::optional<Result<std::string>>> made(texts.size());
  std::atomic<bool> has_failed = false;
  default_pool().parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to && !has_failed; ++i) {
      auto& one = made[static_cast<size_t>(i)];
      one = make_cubin(device, texts[static_cast<size_t>(i)], store);
      if (!one->ok()) has_failed = true;
    }
  });
  std::vector<std::string> cubins;
  for (auto& one : made)
    if (one && !one->ok()) return std::move(*one).error();
  for (auto& one : made) cubins.push_back(**std::move(one));
  return cubins;
}

Result<std::unique_ptr<CudaModule>> CudaModule::load(std::shared_ptr<const CudaDevice> device,
                                                     const std::string& cubin) {
  std::unique_ptr<CudaModule> made(new CudaModule(std::move(device)));
  const CudaDevice& on = *made->device_;
  const CudaEntry entered = HONE_TRY(on.enter());
  HONE_TRY(on.check(on.call().cuModuleLoadDataEx(&made->module_, cubin.data(), 0, nullptr, nullptr),
                    "loaded machine code"));
  return made;
}

CudaModule::~CudaModule() {
  if (module_ == nullptr) return;
  const CudaEntry entered = device_->enter_to_give_back();
  (void)device_->call().cuModuleUnload(module_);
}

Result<cuda::Function> CudaModule::function(const std::string& name, int64_t shared_bytes) const {
  cuda::Function function = nullptr;
  HONE_TRY(device_->check(device_->call().cuModuleGetFunction(&function, module_, name.c_str()),
                          fmt::format("looked for the function '{}'", excerpt(name))));
  if (shared_bytes > cuda::kFreeShared)
    HONE_TRY(
        device_->check(device_->call().cuFuncSetAttribute(function, cuda::kMaxDynamicShared,
                                                          static_cast<int>(shared_bytes)),
                       fmt::format("asked for {} of shared memory", format_bytes(shared_bytes))));
  return function;
}

}  // namespace hone
