#include "session/compiled.h"

#include "base/text.h"

namespace hone {
namespace {

// A graph with the model's inputs.
Graph signature_of(const HonecFile& file) {
  Graph signature(file.name());
  for (const image::Port& input : file.inputs()) signature.add_parameter(input.type, input.name);
  return signature;
}

// What is left of it for arenas.
Result<int64_t> less_outputs(int64_t memory, const HonecFile& file, const Labels& labels) {
  auto held = static_cast<double>(file.bytes());
  for (const image::Port& output : file.outputs())
    held += static_cast<double>(output.type.static_bytes());
  if (held > static_cast<double>(memory)) return too_large(held, memory, labels);
  return memory - static_cast<int64_t>(held);
}

}  // namespace

Result<CompiledModel> load_compiled(const std::string& path, Given given, int64_t seed,
                                    const CompiledOptions& options, const Face& face) {
  CompiledModel model = {.file = HONE_TRY(HonecFile::open(path)), .inputs = {}, .executable = {}};
  model.program = HONE_TRY(model.file.choose(HONE_TRY(host_instructions())));
  if (options.verifies) HONE_TRY(model.file.verify());
  model.inputs = HONE_TRY(
      resolve_inputs(signature_of(model.file), std::move(given), seed, Engine::native, face));
  const int64_t left = HONE_TRY(less_outputs(model.inputs.memory_left, model.file, face.labels));
  model.executable =
      HONE_TRY(load_honec(model.file, {.threads = options.threads, .memory_limit = left}));
  return model;
}

std::vector<std::string> output_names(const HonecFile& file) {
  std::vector<std::string> names;
  for (const image::Port& output : file.outputs()) names.push_back(output.name);
  return names;
}

std::string instructions_text(const Instructions& instructions) {
  std::vector<std::string_view> extensions;
  for (Extension extension : kExtensions)
    if (instructions.extensions.contains(extension)) extensions.push_back(name(extension));
  return fmt::format("{}{}{}", name(instructions.isa), extensions.empty() ? "" : " with ",
                     join(extensions, ", "));
}

Error is_compiled(std::string_view name) {
  return unsupported("'{}' is a compiled model: it has code, and no graph", excerpt(name))
      .with_hint(
          "'hone run', 'bench' and 'inspect' take it; other commands take the model that it was "
          "made of");
}

}  // namespace hone
