#include "cli/inputs.h"

#include "base/text.h"
#include "cli/console.h"
#include "cli/memory_limit.h"
#include "front/arrays.h"
#include "session/literal.h"

namespace hone::cli {
namespace {

// For who forgot the sign of a file; "" for other values.
std::string file_hint(std::string_view name, std::string_view value) {
  if (value.ends_with(".npy") || value.ends_with(".pb"))
    return fmt::format("to read a file, write {}=@{}", excerpt(name), excerpt(value));
  return value.ends_with(".npz") ? fmt::format("to read all inputs: --inputs {}", excerpt(value))
                                 : "";
}

Error with_file_hint(Error error, std::string_view name, std::string_view value) {
  const std::string hint = file_hint(name, value);
  return hint.empty() ? error : std::move(error).with_hint(hint);
}

// --input NAME=VALUE
Result<GivenInput> read_input(const std::string& text) {
  auto pair = split_pair("--input", text);
  if (!pair.ok()) return with_file_hint(std::move(pair).error(), "NAME", text);
  const auto& [name, value] = *pair;
  if (value.starts_with('@')) {
    const std::string path = value.substr(1);
    return GivenInput{name, HONE_TRY(read_tensor(path)), path, "--input"};
  }
  Result<Tensor> tensor = parse_literal(value);
  if (!tensor.ok()) {
    return with_file_hint(
        std::move(tensor).error().within(fmt::format("--input {}", excerpt(name))), name, value);
  }
  return GivenInput{name, std::move(*tensor), "the literal", "--input"};
}

Result<Tensor> read_member(const std::string& path, const std::string& name) {
  const auto is_it = [&](std::string_view member, Type) -> Result<bool> { return member == name; };
  std::vector<NamedTensor> found = HONE_TRY(read_named_tensors(path, is_it));
  if (found.empty()) return bad_input("{} has lost '{}'", path, escape(name));
  return std::move(found.front().tensor);
}

// The members by their headers alone.
Status announce_members(const std::string& path, std::vector<GivenInput>& inputs) {
  const auto announce = [&](std::string_view member, Type type) -> Result<bool> {
    const std::string name(member);
    inputs.push_back({.name = name,
                      .tensor = {},
                      .from = fmt::format("{}:{}", path, name),
                      .label = "--inputs",
                      .header = type,
                      .read = [path, name] { return read_member(path, name); }});
    return false;
  };
  HONE_TRY(read_named_tensors(path, announce));
  return {};
}

}  // namespace

Result<Given> given_values(const Arguments& arguments, const Console& console) {
  Given given;
  given.sizes =
      HONE_TRY(parse_sizes(arguments.list("dim"), arguments.list("shape"), console.labels()));
  if (arguments.given("inputs")) {
    HONE_TRY(announce_members(arguments.text("inputs"), given.inputs));
  }
  for (const std::string& text : arguments.list("input")) {
    given.inputs.push_back(HONE_TRY(read_input(text)));
  }
  return given;
}

Result<RunInputs> given_inputs(const Graph& signature, const Given& open,
                               const Arguments& arguments, Engine engine, Console& console) {
  return resolve_inputs(signature, open, arguments.integer("seed"), engine,
                        limited_face(arguments, console));
}

Status check_all_chosen(const RunInputs& inputs) {
  if (inputs.guessed.empty()) return {};
  std::vector<std::string> names;
  for (const auto& [name, size] : inputs.guessed) names.push_back(name);
  return usage_error("the time of a run depends on the open {} {}",
                     names.size() == 1 ? "size" : "sizes", join(names, ", "))
      .with_hint(fmt::format("{} chooses, and so does an array: --input NAME=@FILE.npy",
                             size_text(inputs.guessed, Console::labels())));
}

}  // namespace hone::cli
