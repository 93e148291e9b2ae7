#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "front/onnx/labels.h"
#include "front/onnx/limits.h"
#include "ir/model.h"

// ONNX models in and out: opsets 1 to 27 of the default domain, ai.onnx.ml, the training preview,
// and the contributed ops that exporters and quantizers write.

namespace hone {

// Operands for which ONNX has no result, such as an index out of range. If a node may meet one,
// import adds an output behind the model's own, which says what was found.
struct OnnxChecks {
  struct Check {
    std::string node;     // "node 'g' (Gather)"
    std::string allowed;  // "indices in -4..3"
  };
  std::vector<Check> all;     // by number, from 1 on; also of nodes that import gave up
  int64_t made = 0;           // of those, so many look at the values of a run; 0: no output
  std::vector<Check> unseen;  // in parts that a run alone can type

  // An error for a value that is not allowed; removes the output of the checks.
  Status take(std::vector<Tensor>& outputs) const;
};

struct OnnxImport {
  // Dims of the file by their names: batch -> 4. Those without one go by the name of the symbol
  // that stands for them.
  std::map<std::string, int64_t, std::less<>> dims = {};
  std::map<std::string, Ints, std::less<>> shapes = {};  // of inputs
  bool override_shapes = false;  // those given hold even if the file has other numbers
  // Inputs that become constants.
  std::map<std::string, Tensor, std::less<>> constants = {};
  // Elements that inputs will have in every run. They stay inputs, and what one integer or bool
  // decides is decided now: an If becomes the branch that it takes.
  std::map<std::string, Tensor, std::less<>> known = {};
  // Dims of inputs that become symbols even if the file has numbers there: a name for each dim, ""
  // for one that stays. Equal names are one symbol.
  std::map<std::string, std::vector<std::string>, std::less<>> symbols = {};
  OnnxLimits limits = {};
  // Gets a line for each thing that was read otherwise than the file says.
  std::function<void(std::string_view)> notice = {};
  // Gets the file's nodes by the values that they make: "conv1_output" -> "conv1". A node without a
  // name goes by its first value.
  std::map<std::string, std::string, std::less<>>* layers = nullptr;
  OnnxLabels* labels = nullptr;                  // gets what numbers of the file stand for
  std::shared_ptr<OnnxChecks> checks = nullptr;  // null: none are made
};

// Verified. Dims without a number are symbols, named as in the file. Weights stay mapped.
Result<Model> load_onnx(const std::filesystem::path& path, const OnnxImport& options = {});
// Of bytes in memory; `where` names them in errors. External data is looked for in `folder`.
Result<Model> parse_onnx(std::span<const std::byte> bytes, std::string_view where,
                         const std::filesystem::path& folder, const OnnxImport& options = {});

struct OnnxExport {
  int opset = 21;  // 17 to 21; with `primitives` from 13 on
  // Composites are spelled out in ops that are older than most of them, as exporters did.
  bool primitives = false;
  // Weights go to FILE.data beside the file; they do anyway where the file would exceed 2 GB.
  bool external_data = false;
};

// Names are kept where they are unique. Returns the files written: the model, and its data if that
// is apart. Atomic for each; the data comes first.
Result<std::vector<std::filesystem::path>> save_onnx(const std::filesystem::path& path,
                                                     const Model& model,
                                                     const OnnxExport& options = {});

// A row of the coverage table.
struct OnnxOp {
  std::string_view domain;  // "" is the default one
  std::string_view name;
  int since;  // the first version that the mapping holds for, up to the next row of the name
};
std::span<const OnnxOp> onnx_ops();

}  // namespace hone
