#pragma once

#include <memory>
#include <vector>

#include "program/program.h"
#include "runtime/object_code.h"
#include "target/target.h"
#include "tests/fake_cuda/library_testing.h"

namespace hone::tested {

// Code for the fake GPU: kernels of programs as the second oracle compiles them for this machine's
// CPU. Outlives what runs it.
class GpuBacking {
 public:
  // Fails, if a kernel has no code for a GPU of this target.
  Status add(const FakeCuda& cuda, const Program& program, const Target& gpu);
  size_t kernels() const { return objects_.size(); }

 private:
  std::vector<std::shared_ptr<const ObjectCode>> objects_;
};

}  // namespace hone::tested
