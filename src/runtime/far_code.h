#pragma once

#include <memory>
#include <span>

#include "runtime/runnable.h"

namespace hone {

class CudaDevice;

// Code for one choice of sizes that another process runs, or a GPU. One run at a time.
class FarCode {
 public:
  virtual ~FarCode() = default;

  virtual std::span<const image::Port> inputs() const = 0;
  virtual std::span<const image::Port> outputs() const = 0;
  virtual int64_t threads() const = 0;  // that work on a kernel
  // A GPU of this process, whose addresses a transport has to take; null: it is none.
  virtual std::shared_ptr<const CudaDevice> gpu() const { return nullptr; }
  // Reads and writes the caller's memory, of the ports' sizes. After an error the contents of the
  // outputs are undefined.
  virtual Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     const RunOptions& options) const = 0;
};

}  // namespace hone
