#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/instructions.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/gpu_image.h"
#include "runtime/division.h"
#include "runtime/executable.h"
#include "runtime/mesh_model.h"
#include "runtime/open_image.h"
#include "runtime/segments.h"

// A compiled model as one file, model.honec (docs/formats/honec.md). compile/honec.h writes it.

namespace hone {

class CudaExecutable;

namespace honec {
class Cursor;
enum class Kind : uint32_t;
enum class ProgramFor : uint8_t;
struct ProgramContent;
struct Section;
}  // namespace honec

bool is_honec_path(const std::filesystem::path& path);  // ends in .honec
// True if bytes begin as those of a compiled model do.
bool begins_like_honec(std::string_view bytes);

// Machine code that a compiler made of a text of PTX.
struct HonecCubin {
  uint32_t object = 0;     // the text, by its number in the file
  int64_t capability = 0;  // of the GPUs that it is for
  int64_t maker = 0;       // the version of CUDA of its compiler: older drivers do not take it
  std::string_view bytes = {};
};

// The file, mapped. Opening it checks the format, and by checksums all but the weights, which are
// read when a run needs them. Safe for any bytes; to run its code needs trust in who made it.
class HonecFile {
 public:
  // Code of one unit, for one choice of sizes or for all, and one level of instructions.
  struct Program {
    // A graph of the model: 0, unless it has segments. Or a code of its division.
    uint32_t unit = 0;
    int64_t capability = 0;          // of the least GPU that runs it; 0: it is for a CPU
    bool is_exact = false;           // no later GPU runs it
    Instructions needs;              // of the CPU, also of one beside a GPU
    int64_t threads = 1;             // that it was planned for; of a GPU: its SMs
    int64_t arena_bytes = 0;         // if sizes are open: for the largest; at most kDimLimit
    std::string plan;                // text (docs/plan.md)
    std::string prices;              // that it was made by; "" if they have no name
    bool flushes_denormals = false;  // it was made with leave to take denormal numbers for 0
    std::vector<image::Port> inputs;
    std::vector<image::Port> outputs;
    size_t sizes = 0;  // an index of sizes(): programs of a unit with equal inputs have the same
    bool is_open = false;  // it is for all sizes
  };

  // Errors: ErrorCode::bad_input, and unsupported for another version of the format. They name the
  // path.
  static Result<HonecFile> open(const std::filesystem::path& path);
  // Bytes that live as long as their owner. They begin on a page, or weights are copied when they
  // are used.
  static Result<HonecFile> parse(std::shared_ptr<const void> owner,
                                 std::span<const std::byte> bytes);

  const std::string& path() const { return path_; }  // "" of bytes
  const std::string& name() const { return name_; }  // of the model
  const std::string& hone() const { return hone_; }  // the version that compiled it
  uint32_t version() const { return version_; }      // of the format
  // The ports of the model: sizes that programs have different numbers for, and those that are
  // open, have symbols.
  std::span<const image::Port> inputs() const { return inputs_; }
  std::span<const image::Port> outputs() const { return outputs_; }
  // Sorted by sizes, and for each the best first.
  std::span<const Program> programs() const { return programs_; }
  // The first program of each choice of sizes, of all units.
  std::span<const size_t> sizes() const { return sizes_; }
  // Null: the model is one graph, unit 0.
  const SegmentTree* segments() const { return segments_ ? &*segments_ : nullptr; }
  // Null: one device runs the model. Else it is one graph, for sizes that are numbers.
  const BatchDivision* division() const { return division_ ? &*division_ : nullptr; }
  // Null: the devices divide the batch of the model alone. Else how they divide its tensors, and
  // behind them constants; the division is of what all devices have together, a row for each.
  const MeshDivision* mesh() const { return mesh_ ? &*mesh_ : nullptr; }
  // The last inputs of the mesh: the file's bytes.
  Result<std::vector<Tensor>> mesh_constants() const;
  // The ports that the division is of; without a mesh those of the model.
  std::span<const image::Port> divided_inputs() const {
    return mesh_ ? std::span(mesh_inputs_) : inputs();
  }
  std::span<const image::Port> divided_outputs() const {
    return mesh_ ? std::span(mesh_outputs_) : outputs();
  }
  // True if it is one graph for one choice of sizes, and for one device.
  bool is_single() const {
    return !segments_ && !division_ && sizes_.size() == 1 && !programs_[0].is_open;
  }
  // Machine code of PTX in the file.
  std::span<const HonecCubin> cubins() const { return cubins_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }
  int64_t code_bytes() const { return static_cast<int64_t>(code_.size()); }
  int64_t weight_bytes() const { return static_cast<int64_t>(weights_.size()); }

  // The first program of these sizes that the machine has all instructions for; unsupported if
  // there is none.
  Result<size_t> choose(const Instructions& machine, size_t sizes = 0) const;
  // The same for a machine with a GPU of this capability, which runs it.
  Result<size_t> choose_for_gpu(int64_t capability, const Instructions& machine,
                                size_t sizes = 0) const;
  bool is_for_gpus() const;  // it has no program for a CPU
  // To be loaded as it is, or looked at. Its constants are the file's bytes. `sizes` are those of
  // the symbols of a program for all sizes. Kernels for a GPU have no objects.
  Result<Image> image(size_t program, const Bindings& sizes = {}) const;
  Result<GpuImage> gpu_image(size_t program) const;  // of a program for a GPU
  std::string_view object(uint32_t number) const;    // machine code, or a text of PTX
  // The open image of a program for all sizes; the image of others is whole.
  Result<OpenImage> open_image(size_t program) const;
  // Reads all weights: an error names one that is damaged.
  Status verify() const;

 private:
  // A piece of the code or of the weights.
  struct Piece {
    int64_t offset = 0;  // in its section
    int64_t bytes = 0;
    uint64_t checksum = 0;
  };

  HonecFile() = default;
  Status read();
  Status read_sections();
  Status read_section(const honec::Section& section, honec::Kind kind, int64_t& end);
  static Status check_end(std::span<const Piece> pieces, std::span<const std::byte> section,
                          std::string_view what);
  Result<std::vector<Piece>> read_pieces(honec::Cursor& in, std::string_view what);
  Status read_metadata(std::span<const std::byte> bytes);
  Status read_segments(std::span<const std::byte> bytes);
  Status read_division(std::span<const std::byte> bytes);
  Status read_cubins(std::span<const std::byte> bytes);
  Status read_mesh(honec::Cursor& in);
  static Status read_parts(honec::Cursor& in, MeshPort& port);
  Result<Tensor> weight(uint32_t number, Type type) const;
  Status read_head(std::span<const std::byte> bytes, honec::ProgramFor device);
  Result<honec::ProgramContent> content(size_t program) const;
  Status add_program(Program program);
  Status check_units() const;
  Status check_division() const;
  Error placed(Error error) const;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::string path_;
  std::string name_;
  std::string hone_;
  uint32_t version_ = 0;
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  std::optional<SegmentTree> segments_;
  std::optional<BatchDivision> division_;
  std::optional<MeshDivision> mesh_;
  std::vector<uint32_t> mesh_constants_;  // weights
  std::vector<image::Port> mesh_inputs_, mesh_outputs_;
  std::vector<Program> programs_;
  std::vector<size_t> sizes_;
  std::vector<std::span<const std::byte>> program_bytes_;
  std::span<const std::byte> code_;
  std::span<const std::byte> weights_;
  std::vector<Piece> objects_;
  std::vector<Piece> tensors_;
  std::vector<HonecCubin> cubins_;
};

struct HonecOptions {
  // The threads that work on a kernel: at most those that it was planned for, and by default at
  // most the processors of this machine.
  std::optional<int64_t> threads = std::nullopt;
  int64_t memory_limit = INT64_MAX;                    // LoadOptions
  std::optional<Instructions> machine = std::nullopt;  // LoadOptions
  size_t sizes = 0;                                    // of HonecFile::sizes()
  std::shared_ptr<Team> team = nullptr;                // LoadOptions
  std::shared_ptr<const CudaDevice> device = nullptr;  // null: the CPU runs it
  CubinStore cubins = {};                              // CudaLoadOptions
};

// The best program that this machine can run, ready to; its sizes are numbers. The executable keeps
// the file. loaded_model.h loads all of a file.
Result<std::shared_ptr<const Executable>> load_honec(const HonecFile& file,
                                                     const HonecOptions& options = {});
// The same on the device of the options.
Result<std::shared_ptr<const CudaExecutable>> load_honec_on_gpu(const HonecFile& file,
                                                                const HonecOptions& options);
// Threads for a program that was planned for `planned`.
int64_t threads_of(int64_t planned, const HonecOptions& options);

}  // namespace hone
