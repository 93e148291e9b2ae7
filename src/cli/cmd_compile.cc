#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"

#include <filesystem>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

struct StageTime {
  Stage stage;
  double seconds;
};

// The kernels' code in a form that is text, one after another.
Result<std::string> text_of_kernels(const Program& program, const Target& target, CodeForm form) {
  std::string text;
  for (const program::Kernel& kernel : program.kernels) {
    const std::string code = HONE_TRY(compile_tiles(kernel.tiles, target, "kernel", form));
    text += fmt::format("{}// {}\n{}\n", text.empty() ? "" : "\n", kernel.tiles.name, code);
  }
  return text;
}

// What --emit asks for; objects have a folder of their own.
Result<std::string> emitted(Compilation& compilation, const Target& target, std::string_view form) {
  if (form == "graph") return print(*HONE_TRY(compilation.graph()));
  if (form == "plan") return print(*HONE_TRY(compilation.plan()));
  const Program& program = *HONE_TRY(compilation.program());
  if (form == "program") return print(program);
  if (form == "tiles") {
    std::string text;
    for (const program::Kernel& kernel : program.kernels) text += print(kernel.tiles);
    return text;
  }
  if (form == "mlir") return text_of_kernels(program, target, CodeForm::mlir);
  if (form == "llvm") return text_of_kernels(program, target, CodeForm::llvm);
  return text_of_kernels(program, target, CodeForm::assembly);
}

Status write_objects(Compilation& compilation, const std::string& folder, Console& console) {
  const std::span<const KernelCode> kernels = HONE_TRY(compilation.kernels());
  const Program& program = *HONE_TRY(compilation.program());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return bad_input("cannot make the folder {}: {}", folder, error.message());
  for (size_t i = 0; i < kernels.size(); ++i) {
    // The names of kernels are names of values, which may have any character.
    const std::string path = fmt::format("{}/kernel{}.o", folder, i);
    HONE_TRY(write_file_atomic(path, *kernels[i].object));
    console.note("wrote {}, {}", path, program.kernels[i].tiles.name);
  }
  return {};
}

Status run_until(Compilation& compilation, std::string_view last) {
  if (last == "graph") return compilation.graph().ok() ? Status() : compilation.graph().error();
  if (last == "plan") HONE_TRY(compilation.plan());
  if (last == "program") HONE_TRY(compilation.program());
  if (last == "kernels") HONE_TRY(compilation.kernels());
  if (last == "image") HONE_TRY(compilation.image());
  return {};
}

Result<std::string> summary(Compilation& compilation, std::string_view last) {
  std::string text;
  const Graph& graph = *HONE_TRY(compilation.graph());
  text += fmt::format("graph    {} nodes of primitive ops\n", graph.node_count());
  if (last == "graph") return text;
  const Plan& plan = *HONE_TRY(compilation.plan());
  text += fmt::format("plan     {} kernels to run, {} threads\n", plan.fuse.size(),
                      plan.threads.value_or(1));
  if (last == "plan") return text;
  const Program& program = *HONE_TRY(compilation.program());
  text += fmt::format("program  {} distinct kernels, {} commands\n", program.kernels.size(),
                      program.main->commands.size());
  if (last == "program") return text;
  size_t bytes = 0;
  for (const KernelCode& kernel : HONE_TRY(compilation.kernels())) bytes += kernel.object->size();
  text += fmt::format("kernels  {} of objects\n", format_bytes(static_cast<int64_t>(bytes)));
  if (last == "kernels") return text;
  const Image& image = *HONE_TRY(compilation.image());
  text += fmt::format("image    arena of {}\n", format_bytes(image.arena_bytes));
  return text;
}

}  // namespace

Status cmd_compile(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  const Source source =
      HONE_TRY(load_model_source(arguments.text("MODEL"), sizes_of(arguments), console));
  const Graph* graph = single_graph(source.model);
  if (graph == nullptr)
    return unsupported("the model has several segments; what each becomes depends on data")
        .with_hint("'hone run' compiles them as it meets them");
  const Bindings bindings = HONE_TRY(size_bindings(*graph, source.open, console));
  const Graph bound = HONE_TRY(specialize(*graph, bindings));
  if (!bound.is_static())
    return usage_error("the size {} is open", bound.symbols()[0].name())
        .with_hint(fmt::format("--dim {}=N", bound.symbols()[0].name()));

  std::vector<StageTime> times;
  const std::unique_ptr<Progress> progress = console.progress();
  CompileOptions compile = compile_options(options);
  compile.progress = progress.get();
  compile.cancel = &console.cancel();
  compile.observer = [&](Stage stage, double seconds) { times.push_back({stage, seconds}); };
  Compilation compilation(bound, options.target, compile);

  const std::string form = arguments.text("emit"), output = arguments.text("output");
  if (form == "object") {
    if (output == "-") return usage_error("--emit object needs a folder: -o DIR");
    HONE_TRY(write_objects(compilation, output, console));
  } else {
    const std::string last = arguments.text("stop-after");
    if (form.empty()) HONE_TRY(run_until(compilation, last));
    Result<std::string> result =
        form.empty() ? summary(compilation, last) : emitted(compilation, options.target, form);
    const std::string text = HONE_TRY(std::move(result));
    if (output == "-")
      console.write(text);
    else
      HONE_TRY(write_file_atomic(output, text));
  }
  if (arguments.given("time-passes"))
    for (const StageTime& time : times)
      console.note("{:8} {}", name(time.stage), format_seconds(time.seconds));
  return {};
}

}  // namespace hone::cli
