#include "cli/compiled.h"

#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "compile/honec.h"
#include "runtime/honec_layout.h"

#include <nlohmann/json.hpp>

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

// What a compiled model has no part in.
constexpr std::string_view kOfModels[] = {
    "log",          "no-log",    "target",  "isa",    "prices",  "cost",           "plan",
    "plan-lenient", "plan-seed", "without", "cache",  "backend", "numerics",       "dim",
    "dot",          "vs",        "profile", "donate", "checked", "flush-denormals"};

Status refuse_options_of_models(const Arguments& arguments) {
  for (std::string_view option : kOfModels)
    if (arguments.given(option))
      return usage_error("--{} is for models that are not compiled yet; {} is", option,
                         excerpt(arguments.text("MODEL")));
  return {};
}

Json ports_json(std::span<const image::Port> ports) {
  Json json = Json::array();
  for (const image::Port& port : ports)
    json.push_back({{"name", port.name},
                    {"type", name(port.type.dtype())},
                    {"dims", port.type.static_dims()}});
  return json;
}

Result<std::string> file_json(const HonecFile& file, bool is_verified) {
  Json json = {{"name", file.name()},
               {"format", honec::kVersion},
               {"hone", file.hone()},
               {"inputs", ports_json(file.inputs())},
               {"outputs", ports_json(file.outputs())},
               {"code_bytes", file.code_bytes()},
               {"weight_bytes", file.weight_bytes()},
               {"verified", is_verified}};
  for (size_t i = 0; i < file.programs().size(); ++i) {
    const HonecFile::Program& program = file.programs()[i];
    const Image image = HONE_TRY(file.image(i));
    std::vector<std::string_view> extensions;
    for (Extension extension : kExtensions)
      if (program.needs.extensions.contains(extension)) extensions.push_back(name(extension));
    json["programs"].push_back({{"isa", name(program.needs.isa)},
                                {"extensions", extensions},
                                {"threads", program.threads},
                                {"arena_bytes", program.arena_bytes},
                                {"kernels", image.kernels.size()},
                                {"commands", image.commands.size()},
                                {"weights", image.constants.size()},
                                {"plan", program.plan}});
  }
  // Names are any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> file_text(const HonecFile& file, bool is_verified) {
  TextTable table("ll");
  table.add_row(
      {"compiled", fmt::format("{}, by hone {}, version {} of the format", excerpt(file.name()),
                               excerpt(file.hone()), honec::kVersion)});
  for (const auto& [what, ports] :
       {std::pair("input", file.inputs()), std::pair("output", file.outputs())})
    for (const image::Port& port : ports)
      table.add_row({what, fmt::format("{} {}", excerpt(port.name), port.type.to_string())});
  for (size_t i = 0; i < file.programs().size(); ++i) {
    const HonecFile::Program& program = file.programs()[i];
    const Image image = HONE_TRY(file.image(i));
    table.add_row({"program", fmt::format("{}, threads {}, {} kernels, {} commands, an arena of {}",
                                          instructions_text(program.needs), program.threads,
                                          image.kernels.size(), image.commands.size(),
                                          format_bytes(program.arena_bytes))});
  }
  table.add_row({"code", format_bytes(file.code_bytes())});
  table.add_row({"weights", fmt::format("{}, {}", format_bytes(file.weight_bytes()),
                                        is_verified ? "as they were written"
                                                    : "not read (--verify: checked)")});
  return table.to_string();
}

}  // namespace

bool names_compiled(const Arguments& arguments) { return is_honec_path(arguments.text("MODEL")); }

Status refuse_verify(const Arguments& arguments) {
  if (!arguments.given("verify")) return {};
  return usage_error("--verify is for compiled models; {} is none",
                     excerpt(arguments.text("MODEL")));
}

Result<CompiledModel> given_compiled(const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_options_of_models(arguments));
  CompiledOptions options;
  options.verifies = arguments.given("verify");
  if (arguments.given("threads")) options.threads = arguments.integer("threads");
  return load_compiled(arguments.text("MODEL"), HONE_TRY(given_values(arguments, console)),
                       arguments.integer("seed"), options, console.face());
}

Status write_compiled(Compilation& compilation, const Model& model, const std::string& path,
                      Console& console) {
  Image image = *HONE_TRY(compilation.image());
  for (size_t i = 0; i < image.inputs.size(); ++i) image.inputs[i].name = model.inputs[i].name;
  for (size_t i = 0; i < image.outputs.size(); ++i) image.outputs[i].name = model.outputs[i].name;
  const HonecProgram program = {&image, print(*HONE_TRY(compilation.plan()))};
  HONE_TRY(write_honec(path, {&program, 1}, HONE_VERSION));
  const HonecFile file = HONE_TRY(HonecFile::open(path));
  console.note("wrote {}: {} of code, {} of weights, for {}", path, format_bytes(file.code_bytes()),
               format_bytes(file.weight_bytes()), instructions_text(file.programs()[0].needs));
  return {};
}

Status inspect_compiled(const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_options_of_models(arguments));
  for (std::string_view option : {"shape", "input", "inputs"})
    if (arguments.given(option))
      return usage_error("--{}: a compiled model has no open sizes", option);
  const HonecFile file = HONE_TRY(HonecFile::open(arguments.text("MODEL")));
  const bool verifies = arguments.given("verify");
  if (verifies) HONE_TRY(file.verify());
  console.write(HONE_TRY(arguments.text("format") == "json" ? file_json(file, verifies)
                                                            : file_text(file, verifies)));
  return {};
}

}  // namespace hone::cli
