#include "session/rivals.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/subprocess.h"
#include "base/text.h"
#include "formats/npy.h"
#include "session/rival_scripts.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using Host = RivalEngine::Host;

constexpr RivalRow kRows[] = {
    {Rival::onnxruntime, "onnxruntime", "ONNX Runtime", "onnxruntime"},
    {Rival::openvino, "openvino", "OpenVINO", "openvino"},
    {Rival::torch, "torch", "PyTorch", "torch onnx2torch"},
    {Rival::inductor, "inductor", "PyTorch Inductor", "torch onnx2torch"},
};

constexpr int kIsMissing = 77;
constexpr double kPatience = 600;  // seconds to load a model and to run it for the first time

struct Answer {
  std::string version;
  std::vector<double> seconds;
};

// The last line says what is wrong, where a program says much.
std::string last_line(std::string_view text) {
  const std::string_view all = trim(text);
  const size_t end = all.rfind('\n');
  return excerpt(end == std::string_view::npos ? all : trim(all.substr(end + 1)));
}

std::vector<std::string> words_of(const RivalEngine& engine, const std::string& model,
                                  const std::string& folder, const RivalBlock& block) {
  const bool is_node = engine.host == Host::node;
  std::vector<std::string> words = {
      // Libraries read it when they are loaded, before anybody can tell them.
      fmt::format("OMP_NUM_THREADS={}", block.threads)};
  if (is_node)
    words.insert(words.end(), {"node", "-e", std::string(kNodeScript), engine.hosts.modules});
  else
    words.insert(words.end(), {engine.hosts.python, "-c", std::string(kPythonScript),
                               std::string(row_of(engine.rival).word)});
  words.insert(words.end(), {model, folder, fmt::format("{}", block.threads),
                             fmt::format("{}", block.seconds), block.writes_outputs ? "1" : "0"});
  return words;
}

// nullopt: the host, or what it should have, is not there.
Result<std::optional<Answer>> ask(const RivalEngine& engine, const std::string& model,
                                  const std::string& folder, const RivalBlock& block,
                                  const CancelToken* cancel) {
  const std::string_view name = row_of(engine.rival).name;
  const ProcessResult process = HONE_TRY(run_process(
      "/usr/bin/env", words_of(engine, model, folder, block),
      {.wall_seconds = kPatience + 10 * block.seconds, .output_bytes = int64_t{1} << 26}, cancel));
  constexpr int kNoProgram = 127;  // env(1)
  if (process.signal == 0 && (process.exit_code == kIsMissing || process.exit_code == kNoProgram))
    return std::optional<Answer>();
  if (process.timed_out) return over_limit("{} gave no result within its time", name);
  if (process.signal != 0) return bad_input("{} ended by {}", name, signal_name(process.signal));
  if (process.exit_code != 0) return bad_input("{}: {}", name, last_line(process.err));
  // Libraries may print before it.
  const std::string_view out = trim(process.out);
  const nlohmann::json json =
      nlohmann::json::parse(out.substr(out.rfind('\n') + 1), nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_string() ||
      !json.contains("seconds") || !json["seconds"].is_array())
    return bad_input("{} printed {}", name, excerpt(process.out));
  Answer answer = {.version = json["version"], .seconds = {}};
  for (const nlohmann::json& one : json["seconds"])
    if (one.is_number()) answer.seconds.push_back(one);
  return std::optional(std::move(answer));
}

}  // namespace

std::span<const RivalRow> rival_rows() { return kRows; }

const RivalRow& row_of(Rival rival) { return *std::ranges::find(kRows, rival, &RivalRow::rival); }

std::string RivalEngine::name() const {
  return fmt::format("{} {} ({})", row_of(rival).name, version,
                     host == Host::node ? "node" : "Python");
}

Result<RivalEngine> find_rival(Rival rival, const RivalHosts& hosts, const CancelToken* cancel) {
  const bool asks_node = rival == Rival::onnxruntime && hosts.asks_node;
  for (const Host host : {Host::node, Host::python}) {
    if (host == Host::node && !asks_node) continue;
    RivalEngine engine = {.rival = rival, .host = host, .hosts = hosts};
    const std::optional<Answer> answer = HONE_TRY(ask(engine, "", "", {}, cancel));
    if (!answer) continue;
    engine.version = answer->version;
    return engine;
  }
  const RivalRow& row = row_of(rival);
  const std::string pip = fmt::format("'{} -m pip install {}'", hosts.python, row.packages);
  if (!asks_node)
    return unsupported("{} does not have {}", excerpt(hosts.python), row.name)
        .with_hint(fmt::format("{}; --python names another interpreter", pip));
  return unsupported("neither node nor {} has {}", excerpt(hosts.python), row.name)
      .with_hint(fmt::format("'npm install onnxruntime-node' in this folder (or NODE_PATH says "
                             "where it is), or {}",
                             pip));
}

Status write_rival_inputs(const fs::path& folder, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    HONE_TRY(write_npy(folder / fmt::format("in{}.npy", i), inputs[i]));
  return {};
}

Result<std::vector<double>> run_rival(const RivalEngine& engine, const fs::path& model,
                                      const fs::path& folder, const RivalBlock& block,
                                      const CancelToken* cancel) {
  const fs::path file = fs::absolute(model);
  std::optional<Answer> answer =
      HONE_TRY(ask(engine, file.string(), folder.string(), block, cancel));
  if (!answer) return unsupported("{} is gone", engine.name());
  return std::move(answer->seconds);
}

}  // namespace hone
