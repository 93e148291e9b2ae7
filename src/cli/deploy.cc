#include "cli/deploy.h"

#include "base/text.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "cli/tracer.h"
#include "ir/summary.h"
#include "report/pass_times.h"
#include "session/build_library.h"
#include "session/stages.h"

#include <cstdlib>
#include <filesystem>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// What a model becomes, for one choice of sizes and one level of instructions. Inputs and outputs
// are named as the model names them.
struct Deployed {
  Image image;
  std::string plan;
};

Result<Deployed> compiled_for(const NativeOptions& level, const Source& source,
                              const Arguments& arguments, Console& console) {
  const GivenGraphs given = HONE_TRY(given_graphs(source, level, console));
  const Graph& graph = *given.graphs[0];
  if (!graph.is_static())
    return unsupported("a compiled model is for sizes that are numbers; {} is open",
                       graph.symbols()[0].name())
        .with_hint(size_text(smallest_bindings(graph, {}), Console::labels()));
  const Face face = console.face();
  CompileOptions options = compile_options(level, given.plans[0], face);
  std::vector<StageTime> times;
  std::vector<PassReport> passes;
  options.observer = noting(times, level.observer);
  options.prepare.passes.observer = [&](const PassReport& pass, const Graph&) {
    passes.push_back(pass);
  };
  Compilation compilation(graph, level.target, std::move(options));
  Deployed made = {*HONE_TRY(compilation.image()), print(*HONE_TRY(compilation.plan()))};
  const auto name_ports = [](std::vector<image::Port>& ports, const auto& values) {
    for (size_t i = 0; i < ports.size(); ++i) ports[i].name = values[i].name;
  };
  name_ports(made.image.inputs, source.model.inputs);
  name_ports(made.image.outputs, source.model.outputs);
  if (arguments.given("time-passes")) {
    console.say(pass_times(passes));
    for (const StageTime& time : times)
      console.note("{:8} {}", name(time.stage), format_seconds(time.seconds));
  }
  return made;
}

Status write_library(std::span<const HonecProgram> programs, const std::string& path,
                     Console& console) {
  const LibrarySources sources =
      HONE_TRY(library_sources(programs, library_name(path), HONE_VERSION));
  const char* const compiler = std::getenv("CC");
  LibraryBuild build = {.scratch = fs::temp_directory_path(), .cancel = &console.cancel()};
  if (compiler != nullptr && *compiler != '\0') build.compiler = compiler;
  HONE_TRY(build_library(sources, path, build));
  std::vector<std::string> levels;
  for (const HonecProgram& program : programs)
    levels.push_back(instructions_text(needs_of(*program.image)));
  console.note("wrote {} and {}, for {}", path, header_path(path).string(), join(levels, "; "));
  return {};
}

// The model with the sizes of --sizes, each time that it is given.
Result<std::vector<Source>> choices_of(const Source& source, const Arguments& arguments) {
  std::vector<Source> choices;
  for (std::string_view text : arguments.list("sizes")) {
    std::vector<std::string> dims;
    for (std::string_view dim : split(text, ',')) dims.emplace_back(trim(dim));
    Result<Sizes> sizes = parse_sizes(dims, {}, {.size = "--sizes"});
    if (!sizes.ok()) return std::move(sizes).error();
    Source choice = source;
    for (const auto& [name, size] : sizes->dims)
      if (!choice.open.sizes.dims.emplace(name, size).second)
        return usage_error("--sizes: '{}' has a size by --dim", excerpt(name));
    choices.push_back(std::move(choice));
  }
  if (choices.empty()) choices.push_back(source);
  return choices;
}

}  // namespace

Status deploy(const Arguments& arguments, const std::string& path, Console& console) {
  const bool is_library = arguments.text("emit") == kLibraryForm;
  Tracer tracer(arguments);
  std::vector<NativeOptions> levels = HONE_TRY(native_levels(arguments, console));
  for (NativeOptions& level : levels) tracer.watch(level);
  // A library starts no threads.
  if (is_library)
    for (NativeOptions& level : levels) HONE_TRY(set_threads(level, 1, Console::labels()));
  const Source source = HONE_TRY(tracer.timed(
      "read", [&] { return given_source(arguments.text("MODEL"), arguments, console); }));
  if (single_graph(source.model) == nullptr)
    return no_single_graph(source.model, is_library ? "a library" : "a compiled model");
  std::vector<Deployed> made;
  for (const Source& choice : HONE_TRY(choices_of(source, arguments)))
    for (const NativeOptions& level : levels)
      made.push_back(HONE_TRY(compiled_for(level, choice, arguments, console)));
  std::vector<HonecProgram> programs;
  for (const Deployed& one : made) programs.push_back({&one.image, one.plan});
  HONE_TRY(console.cancel().check());
  HONE_TRY(tracer.timed(
      "write",
      [&] {
        return is_library ? write_library(programs, path, console)
                          : write_compiled(programs, path, console);
      }));
  return tracer.write(console);
}

}  // namespace hone::cli
