#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The source of the features of TpuGraphs: a program of XLA, as far as they say anything of it.
// Names and numbers are those of XLA's messages.

namespace hone::tpu {

using Integers = std::vector<int64_t>;

struct HloShape {
  int64_t element_type = 0;  // PrimitiveType: 1 pred, 4 s32, 11 f32, 16 bf16, ...
  Integers dims = {};
  int64_t tuple_size = 0;
  Integers minor_to_major = {};
};

struct HloWindowDim {
  int64_t size = 0, stride = 0, padding_low = 0, padding_high = 0;
  int64_t window_dilation = 0, base_dilation = 0;
  bool is_reversed = false;
};

struct HloConvDims {
  int64_t input_batch = 0, input_feature = 0;
  int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  int64_t output_batch = 0, output_feature = 0;
  Integers input_spatial = {}, kernel_spatial = {};
};

struct HloDotDims {
  Integers lhs_contract = {}, rhs_contract = {}, lhs_batch = {}, rhs_batch = {};
};

struct HloSliceDim {
  int64_t start = 0, limit = 0, stride = 0;
};

struct HloPadDim {
  int64_t low = 0, high = 0;
};

struct HloInstruction {
  int64_t id = 0;
  std::string opcode = {};
  HloShape shape = {};
  int64_t parameter_number = 0;
  Integers dimensions = {};
  std::vector<HloWindowDim> window = {};
  HloConvDims conv = {};
  HloDotDims dot = {};
  int64_t feature_groups = 0, batch_groups = 0;
  std::vector<HloSliceDim> slice = {};
  Integers dynamic_slice_sizes = {};
  std::vector<HloPadDim> padding = {};
  bool is_stable = false;
  Integers operands = {};  // ids
  Integers called = {};    // ids of computations
};

struct HloComputation {
  int64_t id = 0;
  int64_t root = 0;  // id of an instruction
  std::string name = {};
  std::vector<HloInstruction> instructions = {};
};

struct HloModule {
  std::string name = {};
  std::vector<HloComputation> computations = {};  // a computation stands before its callers
};

}  // namespace hone::tpu
