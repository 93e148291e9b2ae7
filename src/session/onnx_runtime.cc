#include "session/onnx_runtime.h"

#include <nlohmann/json.hpp>

#include "base/subprocess.h"
#include "base/text.h"
#include "formats/npy.h"
#include "session/onnx_runtime_scripts.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Host = OnnxRuntime::Host;

constexpr int kIsMissing = 77;
constexpr double kPatience = 600;  // seconds to load a model and to run it for the first time

struct Answer {
  std::string version;
  std::vector<double> seconds;
};

// nullopt: the host, or what it should have, is not there.
Result<std::optional<Answer>> ask(const OnnxRuntime& runtime, const std::string& model,
                                  const std::string& folder, const OnnxRuntimeBlock& block,
                                  const CancelToken* cancel) {
  const bool is_node = runtime.host == Host::node;
  const std::vector<std::string> words = {is_node ? "node" : "python3",
                                          is_node ? "-e" : "-c",
                                          std::string(is_node ? kNodeScript : kPythonScript),
                                          runtime.modules,
                                          model,
                                          folder,
                                          fmt::format("{}", block.threads),
                                          fmt::format("{}", block.seconds),
                                          block.writes_outputs ? "1" : "0"};
  const ProcessResult process = HONE_TRY(run_process(
      "/usr/bin/env", words,
      {.wall_seconds = kPatience + 10 * block.seconds, .output_bytes = int64_t{1} << 26}, cancel));
  constexpr int kNoProgram = 127;  // env(1)
  if (process.signal == 0 && (process.exit_code == kIsMissing || process.exit_code == kNoProgram))
    return std::optional<Answer>();
  if (process.timed_out) return over_limit("ONNX Runtime gave no result within its time");
  if (process.signal != 0)
    return bad_input("ONNX Runtime ended by {}", signal_name(process.signal));
  if (process.exit_code != 0) return bad_input("ONNX Runtime: {}", excerpt(trim(process.err)));
  const nlohmann::json json = nlohmann::json::parse(process.out, nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_string() ||
      !json.contains("seconds") || !json["seconds"].is_array())
    return bad_input("ONNX Runtime printed {}", excerpt(process.out));
  Answer answer = {.version = json["version"], .seconds = {}};
  for (const nlohmann::json& one : json["seconds"])
    if (one.is_number()) answer.seconds.push_back(one);
  return std::optional(std::move(answer));
}

}  // namespace

std::string OnnxRuntime::name() const {
  return fmt::format("ONNX Runtime {} ({})", version, host == Host::node ? "node" : "Python");
}

Result<OnnxRuntime> find_onnx_runtime(const std::string& modules, const CancelToken* cancel) {
  for (const Host host : {Host::node, Host::python}) {
    OnnxRuntime runtime = {.host = host, .modules = modules, .version = {}};
    const std::optional<Answer> answer = HONE_TRY(ask(runtime, "", "", {}, cancel));
    if (!answer) continue;
    runtime.version = answer->version;
    return runtime;
  }
  return unsupported("neither node nor python3 has ONNX Runtime")
      .with_hint(
          "'npm install onnxruntime-node' in this folder (or NODE_PATH says where it is), or "
          "'pip install onnxruntime'");
}

Status write_onnx_runtime_inputs(const fs::path& folder, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(write_npy(folder / fmt::format("in{}.npy", i), inputs[i]));
  return {};
}

Result<std::vector<double>> run_onnx_runtime(const OnnxRuntime& runtime, const fs::path& model,
                                             const fs::path& folder, const OnnxRuntimeBlock& block,
                                             const CancelToken* cancel) {
  const fs::path file = fs::absolute(model);
  std::optional<Answer> answer =
      HONE_TRY(ask(runtime, file.string(), folder.string(), block, cancel));
  if (!answer) return unsupported("{} is gone", runtime.name());
  return std::move(answer->seconds);
}

}  // namespace hone
