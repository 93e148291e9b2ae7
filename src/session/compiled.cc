#include "session/compiled.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/memory.h"

namespace hone {
namespace {

// A graph with these inputs.
Graph signature_of(const HonecFile& file, std::span<const image::Port> inputs) {
  Graph signature(file.name());
  for (const image::Port& input : inputs) signature.add_parameter(input.type, input.name);
  return signature;
}

// The first sizes that what is given does not contradict; of a file for one choice, that one, and
// whoever resolves inputs says what is wrong.
Result<size_t> choose_sizes(const HonecFile& file, const Given& given) {
  if (file.sizes().size() == 1 || file.division() != nullptr) return 0;
  const Sizes wanted = all_sizes(given);
  const auto fits = [&](const image::Port& input) {
    const auto shape = wanted.shapes.find(input.name);
    return shape == wanted.shapes.end() || shape->second == input.type.static_dims();
  };
  for (size_t i = 0; i < file.sizes().size(); ++i)
    if (std::ranges::all_of(file.programs()[file.sizes()[i]].inputs, fits)) return i;
  return usage_error("the model was not compiled for these sizes")
      .with_hint(fmt::format("it has code for {}", choices_text(file)));
}

// The memory left for arenas beside the file and such outputs; those whose sizes are open are none.
Result<int64_t> less_held(const CompiledModel& model, std::span<const image::Port> outputs,
                          const Face& face) {
  const int64_t left = model.inputs.memory_left.native;
  auto held = static_cast<double>(model.file.bytes());
  for (const image::Port& output : outputs)
    if (output.type.is_static()) held += static_cast<double>(output.type.static_bytes());
  if (held <= static_cast<double>(left)) return left - static_cast<int64_t>(held);
  return too_large(static_cast<double>(memory_limit(face) - left) + held, face);
}

Instructions machine_of(const CompiledOptions& options, const Instructions& host) {
  return options.isa && *options.isa < host.isa ? Instructions{*options.isa, {}} : host;
}

// For a file that this machine could run if it were asked for more instructions.
Error has_no_code(const HonecFile& file, size_t sizes, const Instructions& asked,
                  const Instructions& host, const Labels& labels) {
  std::vector<std::string> levels;
  for (const HonecFile::Program& program : file.programs())
    if (program.sizes == sizes) levels.push_back(needs_text(program));
  return unsupported("'{}' has code for {}; {} {} asks for no more than {}", excerpt(file.path()),
                     join(levels, " and for "), labels.isa, name(asked.isa), name(asked.isa))
      .with_hint(fmt::format("without {} it runs here: this machine has {}; {} {} {} makes code "
                             "for that",
                             labels.isa, instructions_text(host), labels.compile, labels.isa,
                             name(asked.isa)));
}

// With the program that is to run, if its sizes are numbers.
Result<CompiledModel> opened(const std::string& path, const Given& given,
                             const CompiledOptions& options, const Labels& labels) {
  CompiledModel model = {.file = HONE_TRY(HonecFile::open(path)), .inputs = {}, .runnable = {}};
  const Instructions host = HONE_TRY(host_instructions());
  model.machine = machine_of(options, host);
  if (!model.is_open()) model.sizes = HONE_TRY(choose_sizes(model.file, given));
  Result<size_t> program =
      options.device == nullptr
          ? model.file.choose(model.machine, model.sizes)
          : model.file.choose_for_gpu(options.device->capability(), model.machine, model.sizes);
  if (!program.ok() && options.device == nullptr && model.file.choose(host, model.sizes).ok())
    return has_no_code(model.file, model.sizes, model.machine, host, labels);
  model.program = HONE_TRY(std::move(program));
  if (options.verifies) HONE_TRY(model.file.verify());
  return model;
}

// From its file, or from a copy of that.
Status load_from(const HonecFile& file, CompiledModel& model) {
  const bool is_divided = file.division() != nullptr;
  if (!model.is_open() && !is_divided) {
    if (model.loading.device != nullptr)
      model.runnable = HONE_TRY(load_honec_on_gpu(file, model.loading));
    else
      model.runnable = HONE_TRY(load_honec(file, model.loading));
    return {};
  }
  auto loaded = HONE_TRY(LoadedModel::load(file, model.loading));
  if (file.segments() != nullptr || is_divided)
    model.runnable = std::move(loaded);
  else
    model.runnable = HONE_TRY(loaded->executable(0, types_of(model.inputs.tensors)));
  return {};
}

// In a contest, the memory that is left is beside weights and outputs.
Status load(CompiledModel& model, Engine engine, const CompiledOptions& options, const Face& face) {
  const bool is_contest = engine == Engine::contest;
  model.loading = {.threads = options.threads,
                   .machine = model.machine,
                   .sizes = model.sizes,
                   .device = options.device,
                   .cubins = options.cubins};
  model.loading.memory_limit = model.inputs.memory_left.native;
  if (!is_contest) {
    model.loading.memory_limit = HONE_TRY(less_held(model, model.output_ports(), face));
  }
  HONE_TRY(load_from(model.file, model));
  // Sizes of outputs that were open are known now.
  if (!is_contest && model.is_open() && model.runnable->single() != nullptr)
    HONE_TRY(less_held(model, model.runnable->outputs(), face));
  return {};
}

// The model with the sizes that are given for it; inputs and outputs keep their names.
Result<Model> with_sizes_of(const Source& source, const Face& face) {
  const Bindings sizes =
      HONE_TRY(size_bindings(signature_of(source.model), all_sizes(source.open), face));
  Model bound = HONE_TRY(with_sizes(source.model, sizes));
  for (size_t i = 0; i < bound.inputs.size(); ++i)
    bound.inputs[i].name = source.model.inputs[i].name;
  for (size_t i = 0; i < bound.outputs.size(); ++i)
    bound.outputs[i].name = source.model.outputs[i].name;
  return bound;
}

// Sizes that are open may be any.
bool may_be_same(Type a, Type b) {
  const auto same = [](Dim one, Dim other) {
    return one == other || !one.is_static() || !other.is_static();
  };
  return a.dtype() == b.dtype() && std::ranges::equal(a.dims(), b.dims(), same);
}

Status check_same(std::string_view sort, std::span<const image::Port> ports,
                  std::span<const ModelValue> values, const std::string& path) {
  const auto differ = [&](std::string what) {
    return bad_input("{}; '{}' was made of another model", what, excerpt(path));
  };
  if (ports.size() != values.size())
    return differ(fmt::format("the model has {} {}s, but the file has {}", values.size(), sort,
                              ports.size()));
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].name != values[i].name || !may_be_same(ports[i].type, values[i].type))
      return differ(fmt::format("{} {} of the model is '{}' {}, but that of the file is '{}' {}",
                                sort, i, excerpt(values[i].name), values[i].type.to_string(),
                                excerpt(ports[i].name), ports[i].type.to_string()));
  return {};
}

Result<Source> bound_source(Source source, const std::string& path, const Face& face) {
  Result<Model> bound = with_sizes_of(source, face);
  if (!bound.ok())
    return std::move(bound).error().with_hint(fmt::format(
        "the sizes are those of {}, which may be made of another model", excerpt(path)));
  source.model = *std::move(bound);
  source.open.sizes = {};
  return source;
}

}  // namespace

bool CompiledModel::is_open() const {
  return file.segments() != nullptr ||
         std::ranges::any_of(file.programs(), &HonecFile::Program::is_open);
}

std::span<const image::Port> CompiledModel::input_ports() const {
  return is_open() || file.division() != nullptr ? file.inputs() : std::span(chosen().inputs);
}

std::span<const image::Port> CompiledModel::output_ports() const {
  return is_open() || file.division() != nullptr ? file.outputs() : std::span(chosen().outputs);
}

namespace {

Status resolve(CompiledModel& model, Given given, int64_t seed, const Face& face) {
  model.inputs = HONE_TRY(resolve_inputs(signature_of(model.file, model.input_ports()),
                                         std::move(given), seed, Engine::native, face));
  return {};
}

}  // namespace

Result<CompiledModel> load_compiled(const std::string& path, Given given, int64_t seed,
                                    const CompiledOptions& options, const Face& face) {
  CompiledModel model = HONE_TRY(opened(path, given, options, face.labels));
  HONE_TRY(resolve(model, std::move(given), seed, face));
  HONE_TRY(load(model, Engine::native, options, face));
  return model;
}

Result<CompiledModel> open_compiled(const std::string& path, Given given, int64_t seed,
                                    const Face& face) {
  CompiledModel model = {.file = HONE_TRY(HonecFile::open(path)), .inputs = {}, .runnable = {}};
  if (!model.is_open()) model.sizes = HONE_TRY(choose_sizes(model.file, given));
  model.program = model.file.sizes()[model.sizes];
  HONE_TRY(resolve(model, std::move(given), seed, face));
  return model;
}

Result<CompiledOrigin> load_origin(const std::string& path, const std::string& model, Given given,
                                   int64_t seed, const CompiledOptions& options, const Face& face) {
  CompiledModel compiled = HONE_TRY(opened(path, given, options, face.labels));
  const bool is_open = compiled.is_open();
  const std::span<const image::Port> inputs = compiled.input_ports();
  const std::span<const image::Port> outputs = compiled.output_ports();
  for (const image::Port& input : inputs)
    if (input.type.is_static())
      given.sizes.shapes.try_emplace(input.name, input.type.static_dims());
  Source source =
      HONE_TRY(load_source(model, std::move(given), {.runs_inputs = true, .notice = face.notice}));
  if (!is_open) source = HONE_TRY(bound_source(std::move(source), path, face));
  HONE_TRY(check_same("input", inputs, source.model.inputs, path));
  HONE_TRY(check_same("output", outputs, source.model.outputs, path));
  compiled.inputs = HONE_TRY(
      resolve_inputs(signature_of(source.model), source.open, seed, Engine::contest, face));
  HONE_TRY(load(compiled, Engine::contest, options, face));
  return CompiledOrigin{std::move(compiled), std::move(source)};
}

void unload(CompiledModel& model) { model.runnable.reset(); }

Status load_elsewhere(CompiledModel& model) {
  unload(model);
  const std::string bytes = HONE_TRY(read_file(model.file.path(), model.file.bytes()));
  auto memory = std::make_shared<Memory>(HONE_TRY(Memory::map(static_cast<int64_t>(bytes.size()))));
  std::memcpy(memory->data(), bytes.data(), bytes.size());
  const std::span<const std::byte> copy(memory->data(), bytes.size());
  return load_from(HONE_TRY(HonecFile::parse(std::move(memory), copy)), model);
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

std::string needs_text(const HonecFile::Program& program) {
  if (program.capability == 0) return instructions_text(program.needs);
  const std::string gpu =
      fmt::format("sm_{}{}", program.capability, program.is_exact ? " alone" : "");
  return program.needs == Instructions()
             ? gpu
             : fmt::format("{}, beside a CPU with {}", gpu, instructions_text(program.needs));
}

Error is_compiled(std::string_view name) {
  return unsupported("'{}' is a compiled model: it has code, and no graph", excerpt(name))
      .with_hint(
          "'hone run', 'bench', 'inspect' and 'check' take it; other commands take the model that "
          "it was made of");
}

}  // namespace hone
