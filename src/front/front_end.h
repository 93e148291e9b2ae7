#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "front/options.h"
#include "ir/model.h"

// A front end reads and writes models in one format. A new one is a folder of src/front with a
// function that returns it, and a row in front_end.cc.

namespace hone {

struct FrontEnd {
  std::string_view name;       // of a file, in messages: "an ONNX file"
  std::string_view extension;  // of its files: ".onnx"
  // Tells whether ImportOptions decide sizes and values while a file is read. If not, the model
  // keeps its sizes open, and gets no OnnxChecks.
  bool heeds_options = false;
  // Tells whether a file that begins so is one of its files; file_beginning() says how much it
  // sees.
  bool (*recognizes)(std::string_view beginning) = nullptr;
  // Verified. Weights stay mapped until they are read.
  Result<Model> (*load)(const std::filesystem::path& path, const ImportOptions& options) = nullptr;
  // Parses bytes in memory; `where` names them in errors.
  Result<Model> (*parse)(std::string_view bytes, std::string_view where,
                         const ImportOptions& options) = nullptr;
  // Returns the files written.
  Result<std::vector<std::filesystem::path>> (*save)(const std::filesystem::path& path,
                                                     const Model& model,
                                                     const ExportOptions& options) = nullptr;
};

// The names of inputs that stand for what a file does not hold begin like this. A run refuses to
// make up their numbers. A user may give the numbers of a constant. Nothing can be given for a call
// of another library.
inline constexpr std::string_view kMissingConstant = "missing constant at ";
inline constexpr std::string_view kMissingCall = "missing call of ";

// All of them; hone's text is the last.
std::span<const FrontEnd> front_ends();

// The first bytes of a regular file. Empty: there is no such file, or nothing in it.
std::string file_beginning(const std::filesystem::path& path);

// The one that recognizes what a file begins with. Null: none does.
const FrontEnd* recognized_front_end(std::string_view beginning);
// The one whose files end like the path. Null: there is none.
const FrontEnd* front_end_named(const std::filesystem::path& path);
// "an ONNX file (.onnx), a text of StableHLO (.mlir), a text of HLO (.hlo) or a graph file (.hone)"
std::string front_end_list();

}  // namespace hone
