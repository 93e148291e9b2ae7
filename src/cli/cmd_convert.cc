#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/source.h"

namespace hone::cli {
Status cmd_convert(const Arguments& arguments, Console& console) {
  if (!arguments.given("output"))
    return usage_error("'hone convert' needs --output").with_hint("-o model.hone, or -o -");
  const std::string path = arguments.text("output");
  HONE_TRY(check_model_path(path));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Bindings bindings = HONE_TRY(given_sizes(source, console));
  return write_model(HONE_TRY(specialize(source.model, bindings)), path, console, onnx);
}

}  // namespace hone::cli
