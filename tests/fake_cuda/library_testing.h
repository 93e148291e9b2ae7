#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/cubins.h"
#include "runtime/cuda/device.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace hone::tested {

// The fake driver in this process, for one test at a time. It begins anew. At the end it tells if
// something was not given back, or was used in a wrong way.
class FakeCuda {
 public:
  explicit FakeCuda(const fake::Gpu& gpu = {}) { reset(gpu); }
  ~FakeCuda();  // EXPECTs that nothing is left
  FakeCuda(const FakeCuda&) = delete;

  static std::string library();  // its path
  void reset(const fake::Gpu& gpu) const;
  Result<std::shared_ptr<const CudaDevice>> device(int number = 0) const;
  void add(const std::string& ptx, const std::string& function, const fake::Backing& backing) const;
  // The call behind this number of good ones fails with this code.
  void fail(int64_t good, int code) const;
  fake::Counts counts() const;
  int64_t calls() const { return counts().calls; }
  int64_t live() const;
  std::string faults() const;
};

// Machine code that stays in this process.
class KeptCubins {
 public:
  CubinStore store();

  std::map<std::string, std::string, std::less<>> kept;  // by key
  int found = 0;

 private:
  std::mutex mutex_;
};

}  // namespace hone::tested
