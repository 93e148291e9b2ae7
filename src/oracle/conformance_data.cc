#include "oracle/conformance_data.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "front/arrays.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSetPrefix = "test_data_set_";
constexpr int64_t kMaxNamesBytes = int64_t{1} << 20;

// N of "PREFIX_N.EXTENSION".
std::optional<int64_t> number_of(std::string_view file, std::string_view prefix,
                                 std::string_view extension) {
  if (!consume_prefix(file, prefix) || !file.ends_with(extension)) return std::nullopt;
  file.remove_suffix(extension.size());
  const Result<int64_t> number = parse_int(file);
  return number.ok() && *number >= 0 ? std::optional(*number) : std::nullopt;
}

using Numbered = std::map<int64_t, fs::path>;

struct Files {
  Numbered inputs;
  Numbered outputs;
};

Files files_of(const fs::path& folder, std::string_view extension) {
  Files files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (const auto number = number_of(name, "input_", extension))
      files.inputs[*number] = entry.path();
    if (const auto number = number_of(name, "output_", extension))
      files.outputs[*number] = entry.path();
  }
  return files;
}

// A set without an expected output is none.
std::optional<Files> files_of_set(const fs::path& folder, bool beside_model) {
  for (std::string_view extension : {".pb", ".npy"}) {
    if (beside_model && extension == ".pb") continue;
    Files files = files_of(folder, extension);
    if (!files.outputs.empty()) return files;
  }
  return std::nullopt;
}

std::vector<fs::path> set_folders(const fs::path& folder) {
  std::map<int64_t, fs::path> numbered;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto number = number_of(name, kSetPrefix, "");
    if (number && entry.is_directory(ignored)) numbered[*number] = entry.path();
  }
  std::vector<fs::path> folders;
  for (const auto& [number, path] : numbered) folders.push_back(path);
  return folders;
}

Result<std::vector<fs::path>> without_gaps(const Numbered& files, std::string_view kind) {
  std::vector<fs::path> paths;
  for (const auto& [number, path] : files) {
    if (number != static_cast<int64_t>(paths.size()))
      return bad_input("the data set has {}, but no {}_{}", path.filename().string(), kind,
                       paths.size());
    paths.push_back(path);
  }
  return paths;
}

Result<std::vector<std::string>> name_list(const nlohmann::json& names, std::string_view key,
                                           size_t files, const fs::path& path) {
  const auto list = names.find(key);
  if (list == names.end()) return std::vector<std::string>();
  std::vector<std::string> texts;
  if (list->is_array())
    for (const nlohmann::json& one : *list)
      if (one.is_string()) texts.push_back(one.get<std::string>());
  if (!list->is_array() || texts.size() != list->size())
    return bad_input("{}: '{}' is not a list of names", path.string(), key);
  if (texts.size() < files)
    return bad_input("{}: '{}' has {} names for {} files", path.string(), key, texts.size(), files);
  return texts;
}

Status read_names(const fs::path& path, CaseFiles& set) {
  const std::string text = HONE_TRY(read_file(path, kMaxNamesBytes));
  const nlohmann::json names = nlohmann::json::parse(text, nullptr, false);
  if (!names.is_object()) return bad_input("{} is not a JSON object", path.string());
  set.input_names = HONE_TRY(name_list(names, "inputs", set.inputs.size(), path));
  set.output_names = HONE_TRY(name_list(names, "outputs", set.outputs.size(), path));
  return {};
}

Result<CaseFiles> data_set(const fs::path& folder, const Files& files,
                           const fs::path& case_folder) {
  CaseFiles set;
  set.folder = folder;
  set.inputs = HONE_TRY(without_gaps(files.inputs, "input"));
  set.outputs = HONE_TRY(without_gaps(files.outputs, "output"));
  for (const fs::path& place : {folder, case_folder}) {
    std::error_code ignored;
    if (!fs::exists(place / "names.json", ignored)) continue;
    HONE_TRY(read_names(place / "names.json", set));
    break;
  }
  return set;
}

// The place of a file's tensor among the model's values.
Result<size_t> place_of(size_t file, std::span<const std::string> names,
                        std::span<const ModelValue> values, std::string_view kind) {
  if (names.empty()) {
    if (file < values.size()) return file;
    return bad_input("the data set has {}_{}, but the model has {} {}s", kind, file, values.size(),
                     kind);
  }
  const auto found = std::find_if(values.begin(), values.end(), [&](const ModelValue& value) {
    return value.name == names[file];
  });
  if (found == values.end()) return bad_input("the model has no {} '{}'", kind, names[file]);
  return static_cast<size_t>(found - values.begin());
}

}  // namespace

bool is_conformance_case(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "model.onnx", ignored)) return false;
  if (files_of_set(folder, true)) return true;
  const std::vector<fs::path> folders = set_folders(folder);
  return std::any_of(folders.begin(), folders.end(),
                     [](const fs::path& one) { return files_of_set(one, false).has_value(); });
}

Result<std::vector<CaseFiles>> data_sets_of(const fs::path& folder) {
  std::vector<CaseFiles> sets;
  if (const std::optional<Files> files = files_of_set(folder, true))
    sets.push_back(HONE_TRY(data_set(folder, *files, folder)));
  for (const fs::path& one : set_folders(folder))
    if (const std::optional<Files> files = files_of_set(one, false))
      sets.push_back(HONE_TRY(data_set(one, *files, folder)));
  if (sets.empty()) return bad_input("{} has no data set", folder.string());
  return sets;
}

Tensor with_lacking_type(const Tensor& tensor, DType wanted) {
  const bool stands_in = kind(tensor.dtype()) == DTypeKind::uint && is_real(wanted) &&
                         bits(wanted) == bits(tensor.dtype()) && bits(wanted) <= 16 &&
                         wanted != DType::f16;
  return stands_in ? tensor.viewed_as(tensor.type().with_dtype(wanted)) : tensor;
}

Result<CaseData> read_data_set(const CaseFiles& set, const Model& model) {
  CaseData data;
  data.inputs.resize(model.inputs.size());
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const size_t place = HONE_TRY(place_of(i, set.input_names, model.inputs, "input"));
    const Tensor tensor = HONE_TRY(read_tensor(set.inputs[i]));
    data.inputs[place] = with_lacking_type(tensor, model.inputs[place].type.dtype());
  }
  for (size_t i = 0; i < data.inputs.size(); ++i)
    if (!data.inputs[i])
      return bad_input("the data set has nothing for the input '{}'", model.inputs[i].name);
  for (size_t i = 0; i < set.outputs.size(); ++i) {
    const size_t place = HONE_TRY(place_of(i, set.output_names, model.outputs, "output"));
    data.outputs.push_back({place, HONE_TRY(read_tensor(set.outputs[i]))});
  }
  return data;
}

}  // namespace hone
