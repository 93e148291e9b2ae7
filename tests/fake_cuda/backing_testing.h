#pragma once

#include <memory>
#include <vector>

#include "program/program.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/object_code.h"
#include "target/target.h"
#include "tests/fake_cuda/library_testing.h"

namespace hone::tested {

// Code for the fake GPU: kernels of programs as the second oracle compiles them for this machine's
// CPU. Outlives what runs it.
class GpuBacking {
 public:
  // Leaves out kernels that are for the CPU beside it. A launch takes `works` microseconds.
  Status add(const FakeCuda& cuda, const Program& program, const Target& gpu, int64_t works = 1);
  // The kernel `shown`, as which `run` runs; their buffers are equal.
  Status add(const FakeCuda& cuda, const TileProgram& shown, const TileProgram& run,
             const Target& gpu, int64_t works = 1, const fake::Fate& fate = {});
  // The same for each kernel that is not added: all have these buffers, and one phase.
  Status add_any(const FakeCuda& cuda, const TileProgram& run, int64_t works = 1,
                 const fake::Fate& fate = {});
  size_t kernels() const { return objects_.size(); }

 private:
  Status add_code(const FakeCuda& cuda, const GpuKernel& shown, const TileProgram& run,
                  fake::Backing backing);

  std::vector<std::shared_ptr<const ObjectCode>> objects_;
};

}  // namespace hone::tested
