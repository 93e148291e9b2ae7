#include "front/hlo/checks.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/file.h"
#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/read_program.h"

namespace hone {
namespace hlo {
namespace {

constexpr std::string_view kRunParallel = "interpreter.run_parallel";

// "check." may stand in the name of an op or of the function that it calls. To run programs on
// several devices is a check that they end.
bool has_checks(const Region& region) {
  return std::ranges::any_of(region.instructions, [](const Instruction& one) {
    if (one.name.starts_with("check.") || one.name == kRunParallel) return true;
    return std::ranges::any_of(one.attributes, [](const auto& attribute) {
      return attribute.first == "callee" && attribute.second.text.starts_with("check.");
    });
  });
}

constexpr bool mentions_checks(std::string_view text) {
  return text.find("check.expect") != text.npos || text.find(kRunParallel) != text.npos;
}

struct CheckedFunction {
  std::string name;
  const Module* module;
  const Function* function;
};

std::vector<CheckedFunction> with_checks(const Program& program) {
  std::vector<CheckedFunction> found;
  size_t number = 0;
  for (const Module& module : program.modules) {
    ++number;
    for (const Function& one : module.functions)
      if (has_checks(one.body))
        found.push_back({program.modules.size() == 1 ? std::string(one.name)
                                                     : fmt::format("{}:{}", number, one.name),
                         &module, &one});
  }
  return found;
}

// The number of a real in the order of all reals of its type: neighbours differ by 1.
int64_t rank_of(DType type, double value) {
  const auto pattern = static_cast<int64_t>(encode_real(type, std::abs(value)));
  return value < 0 ? -pattern : pattern;
}

bool agree(const Check& check, DType type, double got, double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  if (std::isinf(got) || std::isinf(want)) return false;
  switch (check.rule) {
    case CheckRule::equal: return false;
    case CheckRule::close:
      return std::abs(static_cast<double>(rank_of(type, got) - rank_of(type, want))) <= check.most;
    case CheckRule::almost: return std::abs(got - want) <= check.most;
  }
  return false;
}

CheckedProgram import_checked(std::string_view text, const std::string& where,
                              std::string_view name, bool constants) {
  const Program program = read_program(text, where);
  for (const CheckedFunction& one : with_checks(program)) {
    if (one.name != name) continue;
    CheckedProgram made;
    Importer importer(program, *one.module);
    importer.opens_constants = !constants;
    importer.checks = &made.checks;
    made.graph = importer.import(*one.function);
    made.inputs = std::move(importer.opened);
    made.devices = static_cast<int32_t>(importer.devices);
    if (made.inputs.size() != made.graph.inputs().size())
      throw Refusal{unsupported("the function has parameters, so nothing says what it is given")
                        .at(program.place(one.function->offset))};
    return made;
  }
  throw Refusal{bad_input("there is no function '{}' with checks", excerpt(name)).at(where)};
}

}  // namespace
}  // namespace hlo

std::vector<std::string> checked_programs(const std::filesystem::path& path) {
  std::vector<std::string> names;
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok() || !hlo::begins_like_stablehlo(file->text().substr(0, 4096))) return names;
  if (!hlo::mentions_checks(file->text())) return names;
  try {
    const hlo::Program program = hlo::read_program(file->text(), path.string());
    for (hlo::CheckedFunction& one : hlo::with_checks(program))
      names.push_back(std::move(one.name));
  } catch (const hlo::Refusal&) {
    names.emplace_back();  // running it says what is wrong
  }
  return names;
}

std::string reason_not_to_run(const std::filesystem::path& path) {
  constexpr std::string_view kMark = "// RUN-DISABLED(";
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return "";
  const std::string_view head = file->text().substr(0, 4096);
  const size_t at = head.find(kMark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = head.substr(at + kMark.size());
  return std::string(rest.substr(0, rest.find_first_of(")\n")));
}

Result<CheckedProgram> load_checked_program(const std::filesystem::path& path,
                                            std::string_view name, bool constants) {
  const MappedFile file = HONE_TRY(MappedFile::open(path));
  try {
    return hlo::import_checked(file.text(), path.string(), name, constants);
  } catch (hlo::Refusal& refusal) {
    return std::move(refusal.error);
  }
}

std::string disagreement(const hlo::Check& check, const Tensor& got, const Tensor& want,
                         const Tensor* exact) {
  if (got.type() != want.type())
    return fmt::format("the type is {}, expected {}", got.type().to_string(),
                       want.type().to_string());
  const DType type = got.dtype();
  int64_t bad = 0;
  std::string first;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const bool good = is_real(type)
                          ? hlo::agree(check, type, got.real_at(i), want.real_at(i))
                          : got.integer_at(i) == want.integer_at(i) ||
                                (check.rule == hlo::CheckRule::almost &&
                                 std::abs(got.real_at(i) - want.real_at(i)) <= check.most);
    const bool nearer = exact != nullptr && is_real(type) &&
                        std::abs(got.real_at(i) - exact->real_at(i)) <=
                            std::abs(want.real_at(i) - exact->real_at(i));
    if (good || nearer) continue;
    if (++bad == 1)
      first =
          fmt::format("element {} is {:.9g}, expected {:.9g}", i, got.real_at(i), want.real_at(i));
  }
  if (bad == 0) return "";
  return fmt::format("{} of {} elements differ; {}", bad, got.elements(), first);
}

}  // namespace hone
