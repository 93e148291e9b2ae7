#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"

namespace hone {

class CompileCache;

// Keeps machine code of kernels from process to process. Empty functions: nothing is kept.
struct CubinStore {
  std::function<std::optional<std::string>(std::string_view key)> find = {};
  std::function<void(std::string_view key, std::string_view cubin)> put = {};
};

// Keeps it in the cache; null: nowhere. In the second form the cache outlives it.
CubinStore cubin_store(std::shared_ptr<CompileCache> cache);
CubinStore cubin_store(CompileCache* cache);

// False: no driver takes the bytes, and it reads what lies behind them. They are those of ELF,
// whose header has 64 bytes.
bool may_be_cubin(std::string_view bytes);

// All that the machine code of a PTX text depends on. Its first line is for people.
std::string cubin_key(const CudaDevice& device, std::string_view ptx);

// A text of PTX, and whether it is for the GPU's capability alone.
struct PtxText {
  std::string_view text;
  bool is_exact = false;
};

// The machine code of a text, from the store, if that may be a cubin, or by the driver's compiler.
// The error of a text that the driver refuses has the driver's log.
Result<std::string> make_cubin(const CudaDevice& device, const PtxText& ptx,
                               const CubinStore& store);
// The same of each text, on several threads. The first error ends it.
Result<std::vector<std::string>> make_cubins(const CudaDevice& device,
                                             std::span<const PtxText> texts,
                                             const CubinStore& store);

// Machine code on a GPU, for as long as this lives.
class CudaModule {
 public:
  static Result<std::unique_ptr<CudaModule>> load(std::shared_ptr<const CudaDevice> device,
                                                  const std::string& cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;

  // A function that may have as many bytes of shared memory.
  Result<cuda::Function> function(const std::string& name, int64_t shared_bytes) const;

 private:
  explicit CudaModule(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {}

  const std::shared_ptr<const CudaDevice> device_;
  cuda::Module module_ = nullptr;
};

}  // namespace hone
