#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "front/front_end.h"
#include "front/onnx/labels.h"
#include "front/options.h"
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
  int64_t made = 0;           // how many of those look at the values of a run; 0: no output
  std::vector<Check> unseen;  // in parts that a run alone can type

  // An error for a value that is not allowed; removes the output of the checks.
  Status take(std::vector<Tensor>& outputs) const;
};

// Verified. Dims without a number are symbols, named as in the file. Weights stay mapped.
Result<Model> load_onnx(const std::filesystem::path& path, const ImportOptions& options = {});
// Reads bytes in memory; `where` names them in errors. External data is looked for in `folder`.
Result<Model> parse_onnx(std::span<const std::byte> bytes, std::string_view where,
                         const std::filesystem::path& folder, const ImportOptions& options = {});

// Names are kept where they are unique. Returns the files written: the model, and its data if that
// is apart. Atomic for each; the data comes first.
Result<std::vector<std::filesystem::path>> save_onnx(const std::filesystem::path& path,
                                                     const Model& model,
                                                     const ExportOptions& options = {});

// Its row of front_end.cc.
FrontEnd onnx_front_end();

// A row of the coverage table.
struct OnnxOp {
  std::string_view domain;  // "" is the default one
  std::string_view name;
  int since;  // the first version that the mapping holds for, up to the next row of the name
};
std::span<const OnnxOp> onnx_ops();

}  // namespace hone
