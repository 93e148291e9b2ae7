#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/source.h"

#include <filesystem>

namespace hone::cli {
namespace {

Status check_target(const std::string& path) {
  if (path == "-") return {};
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".hone" && extension != ".onnx")
    return usage_error("{}: there is no format '{}' for models", excerpt(path), excerpt(extension))
        .with_hint("graph files end in .hone, ONNX files in .onnx");
  return check_writable(path);
}

}  // namespace

Status cmd_convert(const Arguments& arguments, Console& console) {
  if (!arguments.given("output"))
    return usage_error("'hone convert' needs --output").with_hint("-o model.hone, or -o -");
  const std::string path = arguments.text("output");
  HONE_TRY(check_target(path));
  const OnnxExport onnx = HONE_TRY(onnx_options(arguments, path));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Bindings bindings = HONE_TRY(given_sizes(source, console));
  return write_model(HONE_TRY(specialize(source.model, bindings)), path, console, onnx);
}

}  // namespace hone::cli
