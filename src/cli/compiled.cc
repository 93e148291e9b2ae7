#include "cli/compiled.h"

#include <algorithm>

#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/inputs.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/quantizing.h"
#include "compile/honec.h"
#include "front/front_end.h"

#include <nlohmann/json.hpp>

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

// Options that do not apply to a compiled model.
constexpr std::string_view kOfModels[] = {
    "log",      "no-log",       "target",      "prices",  "cost",  "sure",    "no-measure", "plan",
    "pipeline", "plan-lenient", "plan-seed",   "without", "cache", "backend", "numerics",   "dim",
    "dot",      "checked",      "quick-start", "repeat",  "error", "drop",    "to"};

// The cache keeps what a GPU's driver makes of a file.
Status refuse_options_of_models(const Arguments& arguments, bool is_on_gpu = false) {
  for (std::string_view option : kOfModels)
    if (arguments.given(option) && !(is_on_gpu && option == "cache"))
      return usage_error("--{} is for models that are not compiled yet; {} is", option,
                         excerpt(arguments.text("MODEL")));
  return {};
}

// Sizes that are open are texts.
Json dims_json(Type type) {
  Json json = Json::array();
  for (Dim dim : type.dims())
    json.push_back(dim.is_static() ? Json(dim.value()) : Json(dim.to_string()));
  return json;
}

Json ports_json(std::span<const image::Port> ports) {
  Json json = Json::array();
  for (const image::Port& port : ports)
    json.push_back(
        {{"name", port.name}, {"type", name(port.type.dtype())}, {"dims", dims_json(port.type)}});
  return json;
}

Result<std::string> file_json(const HonecFile& file, bool is_verified) {
  Json json = {{"name", file.name()},
               {"format", file.version()},
               {"hone", file.hone()},
               {"inputs", ports_json(file.inputs())},
               {"outputs", ports_json(file.outputs())},
               {"code_bytes", file.code_bytes()},
               {"weight_bytes", file.weight_bytes()},
               {"verified", is_verified}};
  if (const MeshDivision* mesh = file.mesh()) {
    json["mesh"] = mesh->mesh_text();
    for (const MeshPort& port : mesh->inputs)
      json["parts"].push_back(
          ports_json(std::vector{image::Port{port.whole.name, port.part()}})[0]);
  }
  if (const BatchDivision* division = file.division()) {
    for (const BatchDivision::Share& share : division->shares)
      json["devices"].push_back(
          {{"first_row", share.first}, {"rows", share.count}, {"program", share.code}});
  }
  for (size_t i = 0; i < file.programs().size(); ++i) {
    const HonecFile::Program& program = file.programs()[i];
    const Image image = HONE_TRY(file.open_image(i)).image;
    std::vector<std::string_view> extensions;
    for (Extension extension : kExtensions)
      if (program.needs.extensions.contains(extension)) extensions.push_back(name(extension));
    json["programs"].push_back({{"segment", program.unit},
                                {"inputs", ports_json(program.inputs)},
                                {"outputs", ports_json(program.outputs)},
                                {"gpu", program.capability},
                                {"isa", name(program.needs.isa)},
                                {"extensions", extensions},
                                {"threads", program.threads},
                                {"all_sizes", program.is_open},
                                {"arena_bytes", program.arena_bytes},
                                {"kernels", image.kernels.size()},
                                {"commands", image.commands.size()},
                                {"weights", image.constants.size()},
                                {"flushes_denormals", program.flushes_denormals},
                                {"levels", levels_of_plan(program.plan).value_or("")},
                                {"prices", program.prices},
                                {"plan", program.plan}});
  }
  for (const HonecCubin& one : file.cubins())
    json["cubins"].push_back(
        {{"gpu", one.capability}, {"cuda", one.maker}, {"bytes", one.bytes.size()}});
  // Names are any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string unit_text(const HonecFile& file, const HonecFile::Program& program) {
  if (file.segments() == nullptr) return "";
  return fmt::format("segment '{}', ", excerpt(file.segments()->units[program.unit]));
}

// Devices that have as many rows have one program.
std::string share_text(const HonecFile& file, const HonecFile::Program& program) {
  if (file.division() == nullptr) return "";
  std::vector<std::string> devices;
  for (size_t i = 0; i < file.division()->shares.size(); ++i)
    if (file.division()->shares[i].code == program.unit) devices.push_back(std::to_string(i));
  return fmt::format("device {}, ", join(devices, " and "));
}

std::string arena_text(const HonecFile::Program& program) {
  if (!program.is_open) return fmt::format("an arena of {}", format_bytes(program.arena_bytes));
  // Sizes may have no bound that says anything.
  constexpr int64_t kMost = int64_t{1} << 48;
  if (program.arena_bytes >= kMost) return "for all sizes";
  return fmt::format("for all sizes, an arena of at most {}", format_bytes(program.arena_bytes));
}

// "sm_90, by CUDA 12.4", and the number of kernels.
std::map<std::string, int64_t> cubins_of(const HonecFile& file) {
  std::map<std::string, int64_t> counts;
  for (const HonecCubin& one : file.cubins())
    ++counts[fmt::format("sm_{}, by {}", one.capability,
                         cuda_version_text(static_cast<int>(one.maker)))];
  return counts;
}

Result<std::string> file_text(const HonecFile& file, bool is_verified) {
  TextTable table("ll");
  table.add_row(
      {"compiled", fmt::format("{}, by hone {}, version {} of the format", excerpt(file.name()),
                               excerpt(file.hone()), file.version())});
  for (const auto& [what, ports] :
       {std::pair("input", file.inputs()), std::pair("output", file.outputs())})
    for (const image::Port& port : ports)
      table.add_row({what, fmt::format("{} {}", excerpt(port.name), port.type.to_string())});
  if (file.segments() != nullptr)
    table.add_row({"segments", fmt::format("{}", file.segments()->units.size())});
  else if (file.division() != nullptr)
    table.add_row({"devices", fmt::format("{}", file.division()->shares.size())});
  else if (file.sizes().size() > 1)
    table.add_row({"sizes", choices_text(file)});
  if (const MeshDivision* mesh = file.mesh()) {
    table.add_row({"mesh", mesh->mesh_text()});
    for (const MeshPort& port : mesh->inputs)
      table.add_row(
          {"a device", fmt::format("{} {}", excerpt(port.whole.name), port.part().to_string())});
  }
  for (size_t i = 0; i < file.programs().size(); ++i) {
    const HonecFile::Program& program = file.programs()[i];
    const Image image = HONE_TRY(file.open_image(i)).image;
    table.add_row(
        {"program",
         fmt::format("{}{}{}, {} {}, {} kernels, {} commands, {}", unit_text(file, program),
                     share_text(file, program), needs_text(program),
                     program.capability != 0 ? "SMs" : "threads", program.threads,
                     image.kernels.size(), image.commands.size(), arena_text(program))});
    if (const std::optional<std::string> levels = levels_of_plan(program.plan))
      table.add_row({"levels", escape(*levels)});
    if (program.flushes_denormals) table.add_row({"denormals", "taken for 0"});
    if (!program.prices.empty()) table.add_row({"prices", escape(program.prices)});
  }
  for (const auto& [gpus, count] : cubins_of(file))
    table.add_row({"machine code", fmt::format("{} kernels for {}", count, gpus)});
  table.add_row({"code", format_bytes(file.code_bytes())});
  table.add_row({"weights", fmt::format("{}, {}", format_bytes(file.weight_bytes()),
                                        is_verified ? "as they were written"
                                                    : "not read (--verify: checked)")});
  return table.to_string();
}

}  // namespace

bool is_compiled_file(const std::string& path) {
  return is_honec_path(path) || begins_like_honec(file_beginning(path));
}

bool names_compiled(const Arguments& arguments) {
  return arguments.takes("MODEL") && is_compiled_file(arguments.text("MODEL"));
}

Status refuse_verify(const Arguments& arguments) {
  if (!arguments.given("verify")) return {};
  return usage_error("--verify is for compiled models; {} is not one",
                     excerpt(arguments.text("MODEL")));
}

namespace {

Result<CompiledOptions> options_of(const Arguments& arguments, Console& console) {
  CompiledOptions options;
  if (const std::optional<int> gpu = HONE_TRY(given_gpu(arguments))) {
    options.device = HONE_TRY(open_gpu(*gpu));
    options.cubins = cubin_store(
        std::shared_ptr<CompileCache>(HONE_TRY(cache_of(arguments, DefaultCache::user, console))));
  }
  HONE_TRY(refuse_options_of_models(arguments, options.device != nullptr));
  options.verifies = arguments.given("verify");
  if (arguments.given("threads")) options.threads = arguments.integer("threads");
  if (arguments.given("isa")) options.isa = isa_from_name(arguments.text("isa"));
  return options;
}

}  // namespace

Result<CompiledModel> given_compiled(const std::string& path, const Arguments& arguments,
                                     Console& console) {
  const CompiledOptions options = HONE_TRY(options_of(arguments, console));
  Given given = HONE_TRY(given_values(arguments, console));
  CompiledModel model = HONE_TRY(load_compiled(path, std::move(given), arguments.integer("seed"),
                                               options, limited_face(arguments, console)));
  // A processor can flush as it runs; code for GPUs is made so, or it is not.
  if (options.device != nullptr && arguments.given("flush-denormals") &&
      std::ranges::none_of(model.file.programs(), &HonecFile::Program::flushes_denormals))
    return unsupported("the code for GPUs in {} keeps denormal numbers", excerpt(path))
        .with_hint("'hone compile --flush-denormals' makes code that takes them for 0");
  return model;
}

Result<CompiledModel> given_elsewhere(const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_options_of_models(arguments));
  for (const std::string_view option : {"threads", "isa"})
    if (arguments.given(option))
      return usage_error("--{} is for this machine; a worker has its own", option);
  CompiledModel model =
      HONE_TRY(open_compiled(arguments.text("MODEL"), HONE_TRY(given_values(arguments, console)),
                             arguments.integer("seed"), limited_face(arguments, console)));
  if (arguments.given("verify")) HONE_TRY(model.file.verify());
  return model;
}

Result<CompiledOrigin> given_origin(const Arguments& arguments, Console& console) {
  const CompiledOptions options = HONE_TRY(options_of(arguments, console));
  if (!arguments.given("model"))
    return usage_error("a compiled model has no graph to compare with")
        .with_hint("name the model that it was made of: --model MODEL");
  return load_origin(arguments.text("MODEL"), arguments.text("model"),
                     HONE_TRY(given_values(arguments, console)), arguments.integer("seed"), options,
                     limited_face(arguments, console));
}

Status write_compiled(const HonecModel& model, std::span<const HonecProgram> programs,
                      const std::string& path, Console& console) {
  HONE_TRY(write_honec(path, model, programs, HONE_VERSION));
  const HonecFile file = HONE_TRY(HonecFile::open(path));
  std::vector<std::string> levels;
  for (const HonecFile::Program& program : file.programs())
    if (program.sizes == 0) levels.push_back(needs_text(program));
  std::string more;
  if (file.segments() != nullptr)
    more = fmt::format(", {} segments", file.segments()->units.size());
  else if (file.division() != nullptr)
    more = fmt::format(", for {} devices", file.division()->shares.size());
  else if (file.programs()[0].is_open)
    more = ", for all sizes";
  else if (file.sizes().size() > 1)
    more = fmt::format(", {} choices of sizes", file.sizes().size());
  console.note("wrote {}: {} of code, {} of weights, for {}{}", path,
               format_bytes(file.code_bytes()), format_bytes(file.weight_bytes()),
               join(levels, "; "), more);
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
