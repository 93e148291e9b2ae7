#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/division.h"
#include "runtime/mesh_model.h"
#include "runtime/open_image.h"
#include "runtime/segments.h"

// Compiled models as files: writing them. runtime/honec.h reads them.

namespace hone {

// The part of a model in its file: code for one choice of sizes, or for all, and one level of
// instructions.
struct HonecProgram {
  const Image* image = nullptr;
  std::string plan = {};            // as text, for people
  std::string prices = {};          // Cost::version() of what the plan was made by
  const OpenImage* open = nullptr;  // instead of the image: for all sizes
  uint32_t unit = 0;                // a graph of a model of segments; a code of a division
  // For a GPU of this capability or a later one, or for it alone, if a kernel is; 0: for a CPU. The
  // kernels are those of a GpuImage.
  int64_t capability = 0;
  std::span<const GpuKernel> gpu = {};

  const Image& pattern() const { return open != nullptr ? open->image : *image; }
};

// Machine code of a text of PTX, for GPUs of this capability; `maker` is that of a HonecCubin.
struct PtxCubin {
  std::string ptx;
  int64_t capability = 0;
  int64_t maker = 0;
  std::string bytes;
};

// The facts that all programs share.
struct HonecModel {
  std::string name;
  // Their types have symbols for sizes that are open, and for those that programs have different
  // numbers for.
  std::vector<image::Port> inputs;
  std::vector<image::Port> outputs;
  std::optional<SegmentTree> segments = {};
  std::optional<BatchDivision> division = {};  // of a model without segments, for static sizes
  // With a division of what all devices have together, a row for each. The constants are its last
  // inputs, and outlive the bytes.
  std::optional<MeshDivision> mesh = {};
  std::vector<Tensor> constants = {};
  std::vector<PtxCubin> cubins = {};  // of PTX of the programs
};
// The programs are of one graph. Names are those of the first.
HonecModel honec_model(std::span<const HonecProgram> programs);

// The needs of all kernels of the image.
Instructions needs_of(const Image& image);

// The bytes of a file, in pieces that follow one another. The pieces of weights are those of the
// images, which outlive it.
struct HonecBytes {
  std::deque<std::string> made;
  std::vector<std::string_view> pieces;

  std::string joined() const;
};

// The best of the programs for the same sizes is the first; all have the same element types and
// ranks. `version` is that of hone. Unsupported if branches and loops lie deeper in one another
// than the format has, or if there are more programs.
Result<HonecBytes> honec_bytes(const HonecModel& model, std::span<const HonecProgram> programs,
                               std::string_view version);
Result<HonecBytes> honec_bytes(std::span<const HonecProgram> programs, std::string_view version);

// Written at once or not at all (write_file_atomic).
Status write_honec(const std::filesystem::path& path, const HonecModel& model,
                   std::span<const HonecProgram> programs, std::string_view version);
Status write_honec(const std::filesystem::path& path, std::span<const HonecProgram> programs,
                   std::string_view version);

}  // namespace hone
