#include "bench/onnx_runtime.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/subprocess.h"

namespace hone::bench {

namespace fs = std::filesystem;

fs::path root() { return fs::read_symlink("/proc/self/exe").parent_path() / "../.."; }

Result<std::vector<double>> run_onnx_runtime(const fs::path& model, const fs::path& folder,
                                             const OnnxRuntimeOptions& options) {
  const fs::path modules = root() / "build/bench/onnxruntime/node_modules";
  const ProcessResult result =
      HONE_TRY(run_process("/usr/bin/env",
                           {"node", root() / "bench/compat/run.js", modules, model, folder,
                            fmt::format("{}", options.threads), fmt::format("{}", options.seconds)},
                           {.wall_seconds = 120 + 10 * options.seconds}));
  if (result.exit_code != 0 || result.signal != 0)
    return bad_input("ONNX Runtime: {}{}", result.err,
                     result.signal != 0 ? signal_name(result.signal) : "");
  const nlohmann::json seconds = nlohmann::json::parse(result.out, nullptr, false);
  if (!seconds.is_array()) return bad_input("ONNX Runtime printed {}", result.out);
  return seconds.get<std::vector<double>>();
}

}  // namespace hone::bench
