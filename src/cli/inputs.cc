#include "cli/inputs.h"

#include "base/text.h"
#include "cli/console.h"
#include "io/npz.h"
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

Result<size_t> index_of(const Graph& signature, std::string_view option, std::string_view name) {
  Result<size_t> index = input_index(signature, name);
  if (!index.ok()) return std::move(index).error().about(option);
  return index;
}

// --input NAME=VALUE
Result<GivenInput> read_input(const Graph& signature, const std::string& text) {
  auto pair = split_pair("--input", text);
  if (!pair.ok()) return with_file_hint(std::move(pair).error(), "NAME", text);
  const auto& [name, value] = *pair;
  const size_t index = HONE_TRY(index_of(signature, "--input", name));
  if (value.starts_with('@')) {
    const std::string path = value.substr(1);
    return GivenInput{index, HONE_TRY(read_tensor(path)), path};
  }
  Result<Tensor> tensor = parse_literal(value);
  if (!tensor.ok()) {
    return with_file_hint(
        std::move(tensor).error().within(fmt::format("--input {}", excerpt(name))), name, value);
  }
  return GivenInput{index, std::move(*tensor), "the literal"};
}

}  // namespace

Result<Sizes> given_sizes(const Arguments& arguments, const Console& console) {
  return parse_sizes(arguments.list("dim"), arguments.list("shape"), console.labels());
}

Result<RunInputs> given_inputs(const Graph& signature, const Sizes& open,
                               const Arguments& arguments, Engine engine, Console& console) {
  std::vector<GivenInput> given;
  if (arguments.given("inputs")) {
    const std::string path = arguments.text("inputs");
    for (NamedTensor& member : HONE_TRY(read_npz(path))) {
      const size_t index = HONE_TRY(index_of(signature, "--inputs", member.name));
      std::string from = fmt::format("{}:{}", path, member.name);
      given.push_back({index, std::move(member.tensor), std::move(from)});
    }
  }
  for (const std::string& text : arguments.list("input"))
    given.push_back(HONE_TRY(read_input(signature, text)));
  return resolve_inputs(signature, open, std::move(given), arguments.integer("seed"), engine,
                        console.face());
}

}  // namespace hone::cli
