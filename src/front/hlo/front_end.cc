#include <exception>

#include "base/file.h"
#include "base/text.h"
#include "front/hlo/hlo.h"
#include "front/hlo/hlo_text.h"
#include "front/hlo/importer.h"
#include "front/hlo/read_program.h"
#include "front/hlo/write/write.h"

namespace hone {
namespace {

bool begins_like_mlir(std::string_view beginning) {
  return hlo::begins_like_bytecode(beginning) || hlo::begins_like_stablehlo(beginning);
}

Result<std::vector<std::filesystem::path>> save_text_of(
    const std::filesystem::path& path, const Model& model,
    Result<std::string> (*print_model)(const Model&)) {
  HONE_TRY(write_file_atomic(path, HONE_TRY(print_model(model))));
  return std::vector<std::filesystem::path>{path};
}

Result<std::vector<std::filesystem::path>> save_stablehlo(const std::filesystem::path& path,
                                                          const Model& model,
                                                          const ExportOptions&) {
  return save_text_of(path, model, print_stablehlo);
}

Result<std::vector<std::filesystem::path>> save_hlo(const std::filesystem::path& path,
                                                    const Model& model, const ExportOptions&) {
  return save_text_of(path, model, print_hlo);
}

Model import_program(std::string_view text, std::string_view where, const ImportOptions& options) {
  const hlo::Program program = hlo::read_program(text, where);
  if (program.modules.size() > 1)
    throw hlo::Refusal{
        bad_input("the file holds {} modules, but a model is one", program.modules.size())
            .at(program.place(program.modules[1].functions.front().offset))
            .with_hint("'hone conformance FILE' runs those that contain their "
                       "answers")};
  const hlo::Module& module = program.modules.front();
  hlo::Importer importer(program, module);
  importer.given = &options;
  Graph graph = importer.import(hlo::entry_of(program, module));
  if (importer.checks_left_out > 0 && options.notice)
    options.notice(fmt::format("{} checks of {} are left out; 'hone conformance' runs them",
                               importer.checks_left_out, where));
  if (options.notice)
    for (const std::string& one : importer.missing)
      options.notice(fmt::format("the model cannot run: {} does not hold {}", where, one));
  return model_of(std::move(graph));
}

}  // namespace

Result<Model> parse_hlo(std::string_view text, std::string_view where,
                        const ImportOptions& options) {
  try {
    return import_program(text, where, options);
  } catch (hlo::Refusal& refusal) {
    return std::move(refusal.error);
  }
}

Result<Model> load_hlo(const std::filesystem::path& path, const ImportOptions& options) {
  const MappedFile file = HONE_TRY(MappedFile::open(path));
  return parse_hlo(file.text(), path.string(), options);
}

FrontEnd stablehlo_front_end() {
  return {.name = "a text of StableHLO",
          .extension = ".mlir",
          .recognizes = begins_like_mlir,
          .load = load_hlo,
          .parse = parse_hlo,
          .save = save_stablehlo};
}

FrontEnd hlo_front_end() {
  return {.name = "a text of HLO",
          .extension = ".hlo",
          .recognizes = hlo::begins_like_hlo_text,
          .load = load_hlo,
          .parse = parse_hlo,
          .save = save_hlo};
}

std::vector<HloOp> hlo_ops() {
  std::vector<HloOp> ops;
  for (const hlo::OpRow& row : hlo::op_rows()) ops.push_back({row.name, row.hlo});
  return ops;
}

}  // namespace hone
