#include "lab/data/layout_file.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "learn/data_set.h"
#include "log/hash_text.h"

namespace hone {
namespace {

constexpr std::string_view kProgram = "program", kTarget = "target", kPricedBy = "priced_by";
constexpr std::string_view kProgress = "collected";
constexpr int64_t kMostText = 4096;  // bytes

const Tensor* find(std::span<const NamedTensor> arrays, std::string_view name) {
  const auto at = std::ranges::find(arrays, name, &NamedTensor::name);
  return at == arrays.end() ? nullptr : &at->tensor;
}

Error misshapen(std::string_view name, const Tensor& tensor, std::string_view wanted) {
  return bad_input("the array '{}' is {}, not {}", name, tensor.type().to_string(), wanted);
}

Status read_column(std::span<const NamedTensor> arrays, const LayoutColumn& column, int64_t count,
                   std::vector<float>& to) {
  const Tensor* tensor = find(arrays, column.array);
  if (tensor == nullptr) return {};
  if (tensor->type() != Type::get(DType::f32, {count}))
    return misshapen(column.array, *tensor, fmt::format("f32[{}]", count));
  const std::span<const float> values = tensor->as<float>();
  for (size_t i = 0; i < values.size(); ++i)
    if (!(values[i] >= column.least && values[i] <= column.most))
      return bad_input("the array '{}' has {} at {}", column.array, values[i], i);
  to.assign(values.begin(), values.end());
  return {};
}

// As bytes; "" if there is none.
Result<std::string> read_text(std::span<const NamedTensor> arrays, std::string_view name) {
  const Tensor* tensor = find(arrays, name);
  if (tensor == nullptr) return std::string();
  if (tensor->dtype() != DType::u8 || tensor->type().rank() != 1 || tensor->elements() > kMostText)
    return misshapen(name, *tensor, "a text");
  const std::span<const std::byte> bytes = tensor->bytes();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
    return bad_input("the array '{}' is not one line of printable ASCII", name);
  return text;
}

Result<std::optional<LayoutProgress>> progress_of(std::span<const NamedTensor> arrays) {
  const Tensor* tensor = find(arrays, kProgress);
  if (tensor == nullptr) return std::optional<LayoutProgress>();
  if (tensor->type() != Type::get(DType::i64, {4})) return misshapen(kProgress, *tensor, "i64[4]");
  std::array<int64_t, 4> numbers = {};
  tensor->read_integers(0, numbers);
  return std::optional(LayoutProgress{.seed = numbers[0],
                                      .plans = numbers[1],
                                      .whole = numbers[2],
                                      .has_kernels = numbers[3] != 0});
}

NamedTensor text_array(std::string_view name, std::string_view text) {
  return {std::string(name),
          Tensor::copy_of(Type::get(DType::u8, {static_cast<int64_t>(text.size())}),
                          std::as_bytes(std::span(text)))};
}

void add_origin(std::vector<NamedTensor>& arrays, std::string_view program, uint64_t target) {
  if (!program.empty()) arrays.push_back(text_array(kProgram, program));
  if (target != 0) arrays.push_back(text_array(kTarget, hash_text(target)));
}

Status read_origin(std::span<const NamedTensor> arrays, std::string& program, uint64_t& target) {
  program = HONE_TRY(read_text(arrays, kProgram));
  if (!program.empty()) HONE_TRY(check_program_name(program));
  const std::string text = HONE_TRY(read_text(arrays, kTarget));
  if (text.empty()) return {};
  const std::optional<uint64_t> hash = parse_hash(text);
  if (!hash) return bad_input("the array '{}' is '{}', not a fingerprint", kTarget, excerpt(text));
  target = *hash;
  return {};
}

}  // namespace

std::vector<NamedTensor> arrays_of(const TileFile& file) {
  std::vector<NamedTensor> arrays = arrays_of(file.tile);
  add_origin(arrays, file.program, file.target);
  return arrays;
}

Result<TileFile> tile_file_of(std::span<const NamedTensor> arrays) {
  TileFile file = {.tile = HONE_TRY(tpu::tile_graph_of(arrays))};
  HONE_TRY(read_origin(arrays, file.program, file.target));
  return file;
}

std::vector<NamedTensor> arrays_of(const LayoutFile& file) {
  std::vector<NamedTensor> arrays = arrays_of(file.layout);
  for (const LayoutColumn& column : kLayoutColumns) {
    const std::vector<float>& values = file.times.*column.values;
    if (values.empty()) continue;
    arrays.push_back({std::string(column.array),
                      Tensor::of(Type::get(DType::f32, {static_cast<int64_t>(values.size())}),
                                 std::span<const float>(values))});
  }
  add_origin(arrays, file.program, file.target);
  if (!file.priced_by.empty()) arrays.push_back(text_array(kPricedBy, file.priced_by));
  if (const auto& progress = file.progress) {
    const std::array<int64_t, 4> numbers = {progress->seed, progress->plans, progress->whole,
                                            progress->has_kernels ? 1 : 0};
    arrays.push_back({std::string(kProgress),
                      Tensor::of(Type::get(DType::i64, {4}), std::span<const int64_t>(numbers))});
  }
  return arrays;
}

Result<LayoutFile> layout_file_of(std::span<const NamedTensor> arrays) {
  LayoutFile file = {.layout = HONE_TRY(tpu::layout_graph_of(arrays))};
  const auto count = static_cast<int64_t>(file.layout.runtimes.size());
  for (const LayoutColumn& column : kLayoutColumns)
    HONE_TRY(read_column(arrays, column, count, file.times.*column.values));
  HONE_TRY(read_origin(arrays, file.program, file.target));
  file.priced_by = HONE_TRY(read_text(arrays, kPricedBy));
  file.progress = HONE_TRY(progress_of(arrays));
  return file;
}

Result<LayoutFile> read_layout_file(const std::filesystem::path& path) {
  Result<LayoutFile> file = layout_file_of(HONE_TRY(tpu::read_arrays(path)));
  if (!file.ok()) return std::move(file).error().within(path.native());
  return file;
}

Result<std::optional<LayoutProgress>> read_progress(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return std::optional<LayoutProgress>();
  const auto is_progress = [](std::string_view name, Type) { return name == kProgress; };
  Result<std::optional<LayoutProgress>> progress = progress_of(
      HONE_TRY(read_npz(path, is_progress)));
  if (!progress.ok()) return std::move(progress).error().within(path.native());
  return progress;
}

// ---- Names --------------------------------------------------------------------------------------

std::filesystem::path layout_path(std::string_view set, std::string_view program, bool is_random) {
  return std::filesystem::path(set) / "layout" /
         fmt::format("{}-{}.npz", file_name_of(program), is_random ? "random" : "default");
}

std::string_view sort_of_file(const std::filesystem::path& file) {
  const std::string name = file.stem().native();
  for (std::string_view sort : {std::string_view("random"), std::string_view("default")})
    if (name.ends_with(fmt::format("-{}", sort))) return sort;
  return "";
}

std::string program_of_file(const std::filesystem::path& file) {
  std::string name = file.stem().native();
  if (const std::string_view sort = sort_of_file(file); !sort.empty())
    name.resize(name.size() - sort.size() - 1);
  // Random graphs are called by a number, so that each is a family of its own.
  std::string_view seed = name;
  if (name.starts_with("zoo_")) name[3] = ':';
  if (consume_prefix(seed, "random_") && parse_int(seed).ok()) name[6] = ':';
  return name;
}

}  // namespace hone
