#include "bench/onnx_runtime.h"

#include "session/rivals.h"

namespace hone::bench {

namespace fs = std::filesystem;

fs::path root() { return fs::read_symlink("/proc/self/exe").parent_path() / "../.."; }

namespace {

const Result<RivalEngine>& installed() {
  static const Result<RivalEngine> runtime =
      find_rival(Rival::onnxruntime, {.modules = root() / "build/bench/onnxruntime/node_modules"});
  return runtime;
}

}  // namespace

bool has_onnx_runtime() { return installed().ok(); }

Result<std::vector<double>> run_onnx_runtime(const fs::path& model, const fs::path& folder,
                                             const OnnxRuntimeOptions& options) {
  return run_rival(
      HONE_TRY(installed()), model, folder,
      {.threads = options.threads, .seconds = options.seconds, .writes_outputs = true});
}

}  // namespace hone::bench
