#include "cli/outputs.h"

#include "base/file.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/writable.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "front/arrays.h"
#include "ir/summary.h"
#include "session/echo.h"

#include <algorithm>
#include <filesystem>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

// Trailing slashes are for folders; path::extension() of "a.txt/" is empty.
bool is_tensor_file(const fs::path& path) {
  return path.extension() == ".npy" || path.extension() == ".npz";
}

constexpr int64_t kShown = 4;  // elements of an output

// A place that the table lacks is shown as a number.
std::string first_strings(const Tensor& places, std::span<const std::string> table) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(kShown, places.elements()); ++i) {
    const int64_t place = places.integer_at(i);
    const bool is_there = place >= 0 && std::cmp_less(place, table.size());
    texts.push_back(is_there ? excerpt(table[static_cast<size_t>(place)]) : std::to_string(place));
  }
  if (places.elements() > kShown) texts.emplace_back("...");
  return join(texts, ", ");
}

// At most so many, with "..." for the others.
std::string some_of(std::span<const std::string> texts, size_t most, bool are_numbered) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(most, texts.size()); ++i)
    shown.push_back((are_numbered ? fmt::format("{} ", i) : "") + excerpt(texts[i]));
  if (texts.size() > most) shown.emplace_back("...");
  return join(shown, ", ");
}

std::string columns_line(std::string_view name, const OnnxLabels::Columns& columns) {
  return fmt::format("columns of {}: {}\n", excerpt(name), some_of(columns.names, 16, false));
}

}  // namespace

std::string outputs_table(std::span<const std::string> names, std::span<const Tensor> outputs,
                          const OnnxLabels& labels) {
  TextTable table("llrrrl", {"output", "type", "min", "mean", "max", "first elements"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorStatistics facts = statistics(outputs[i]);
    const bool has_strings = labels.values.contains(names[i]) && is_integer(outputs[i].dtype());
    std::string elements = has_strings ? first_strings(outputs[i], labels.strings)
                                       : first_elements(outputs[i], kShown);
    if (facts.nans > 0)
      elements += fmt::format("  ({} of {} are NaN)", facts.nans, outputs[i].elements());
    table.add_row({excerpt(names[i]), outputs[i].type().to_string(),
                   fmt::format("{:.4g}", facts.min), fmt::format("{:.4g}", facts.mean),
                   fmt::format("{:.4g}", facts.max), elements});
  }
  std::string text = table.to_string();
  for (const std::string& name : names)
    if (const auto columns = labels.columns.find(name); columns != labels.columns.end())
      text += columns_line(name, columns->second);
  return text;
}

std::string labels_text(const OnnxLabels& labels) {
  std::string text;
  for (const std::string& name : labels.values)
    text += fmt::format("strings of {}: {}\n", excerpt(name), some_of(labels.strings, 64, true));
  for (const auto& [name, columns] : labels.columns) text += columns_line(name, columns);
  return text;
}

std::string marked(const std::string& table, const Console& console) {
  std::string text;
  for (std::string_view line : split_lines(table)) {
    const bool is_wrong = line.find("  WRONG") != std::string_view::npos;
    text += is_wrong ? console.styled(Style::red, line) : std::string(line);
    text += '\n';
  }
  return text;
}

Status check_output_path(size_t outputs, const std::string& path) {
  const fs::path target(path);
  std::error_code ignored;
  if (target.extension() == ".npy" && outputs != 1) {
    return usage_error("{} holds one tensor, but the model has {} outputs", path, outputs)
        .with_hint("write them to a .npz file or into a folder");
  }
  if (is_tensor_file(target)) return check_writable(path);
  static constexpr std::string_view kPlaces =
      "outputs go to a .npz file, to a .npy file, or into a folder; a slash at the end says folder";
  if (fs::is_directory(target, ignored)) return {};
  if (fs::exists(target, ignored))
    return usage_error("{} is not a folder", path).with_hint(kPlaces);
  if (target.has_extension())
    return usage_error("{}: there is no format '{}' for outputs", path, target.extension().string())
        .with_hint(kPlaces);
  return {};
}

Status write_outputs(std::span<const std::string> names, std::span<const Tensor> outputs,
                     const std::string& path, Console& console) {
  const fs::path target(path);
  if (target.extension() == ".npy") {
    HONE_TRY(write_npy(target, outputs[0]));
  } else if (target.extension() == ".npz") {
    std::vector<NamedTensor> members;
    for (size_t i = 0; i < outputs.size(); ++i) members.push_back({names[i], outputs[i]});
    HONE_TRY(write_npz(target, members));
  } else {
    HONE_TRY(make_folders(target));
    const std::vector<std::string> stems = file_stems(names);
    for (size_t i = 0; i < outputs.size(); ++i)
      HONE_TRY(write_npy(target / (stems[i] + ".npy"), outputs[i]));
  }
  console.note("wrote {}", path);
  return {};
}

Result<std::vector<Expected>> read_expected(std::span<const std::string> names,
                                            std::string_view files) {
  std::vector<Expected> expected;
  if (has_named_tensors(files)) {
    const std::string path(files);
    const auto is_output = [&](std::string_view name, Type) -> Result<bool> {
      if (std::ranges::find(names, name) != names.end()) return true;
      const std::string hint = did_you_mean(name, names);
      return bad_input("the graph has no output '{}'", excerpt(name))
          .with_hint(hint.empty() ? fmt::format("it has {}", name_list(names)) : hint);
    };
    for (NamedTensor& member : HONE_TRY(read_named_tensors(path, is_output))) {
      const auto found = std::ranges::find(names, member.name);
      expected.push_back({static_cast<size_t>(found - names.begin()), std::move(member.tensor),
                          fmt::format("{}:{}", path, member.name)});
    }
    return expected;
  }
  const std::vector<std::string_view> paths = split(files, ',');
  if (paths.size() > names.size())
    return usage_error("--expect: {} files for {} outputs", paths.size(), names.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string path(paths[i]);
    expected.push_back({i, HONE_TRY(read_tensor(path)), path});
  }
  return expected;
}

GivenTolerance tolerance_of(const Arguments& arguments) {
  GivenTolerance tolerance;
  if (arguments.given("rtol")) tolerance.relative = arguments.real("rtol");
  if (arguments.given("atol")) tolerance.absolute = arguments.real("atol");
  return tolerance;
}

Status check_tolerance_options(const Arguments& arguments) {
  if (!arguments.given("expect") && (arguments.given("rtol") || arguments.given("atol")))
    return usage_error("--rtol and --atol need --expect");
  return {};
}

Status compare_outputs(std::span<const std::string> names, std::span<const Tensor> outputs,
                       std::span<const Expected> expected, const GivenTolerance& given,
                       Differing differing, Console& console) {
  const std::string bad =
      differing == Differing::fails ? console.styled(Style::red, "BAD") : "differs";
  size_t failed = 0;
  for (const Expected& one : expected) {
    const Tensor& actual = outputs[one.index];
    const Tolerance tolerance = expected_tolerance(actual.dtype(), one.tensor, given);
    const Result<Comparison> result = compare(actual, one.tensor, tolerance);
    const bool passed = result.ok() && result->passed();
    if (!passed) ++failed;
    console.print("{} {} against {}: {}\n", passed ? console.styled(Style::green, "ok") : bad,
                  escape(names[one.index]), escape(one.from),
                  result.ok() ? result->to_string() : result.error().what());
  }
  if (expected.size() < names.size())
    console.note("{} of {} outputs were not compared", names.size() - expected.size(),
                 names.size());
  if (failed == 0 || differing == Differing::is_told) return {};
  return check_failed("{} of {} comparisons failed", failed, expected.size());
}

}  // namespace hone::cli
