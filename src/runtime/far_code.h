#pragma once

#include <span>

#include "runtime/runnable.h"

namespace hone {

// Code for one choice of sizes that another process runs, or a GPU. One run at a time.
class FarCode {
 public:
  virtual ~FarCode() = default;

  virtual std::span<const image::Port> inputs() const = 0;
  virtual std::span<const image::Port> outputs() const = 0;
  virtual int64_t threads() const = 0;  // that work on a kernel
  // Reads and writes the caller's memory, of the ports' sizes. After an error the contents of the
  // outputs are undefined.
  virtual Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     const RunOptions& options) const = 0;
};

}  // namespace hone
