#include "front/hone/graph_file.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "formats/npy_header.h"
#include "formats/npz.h"
#include "ir/model_text.h"

namespace hone {
namespace {

// Bytes, for element types that numpy lacks; parsing takes them for what the text says.
Tensor as_numpy_holds(const Tensor& tensor) {
  if (npy_descr(tensor.dtype())) return tensor;
  return tensor.viewed_as(Type::get(DType::u8, {tensor.byte_size()}));
}

Result<WeightTable> load_weights(const std::filesystem::path& folder, std::string_view name) {
  if (name.find('/') != std::string_view::npos)
    return bad_input("weights \"{}\": must name a file in the same folder", escape(name));
  auto file = std::make_shared<const MappedFile>(HONE_TRY(map_contained(folder, name)));
  std::span<const std::byte> bytes = file->bytes();
  WeightTable table;
  for (NamedTensor& named : HONE_TRY(parse_npz(bytes, name, std::move(file))))
    table.add(named.name, std::move(named.tensor));
  return table;
}

// A model that is nothing but a graph is written as one.
Result<std::string> text_of(const Model& model, const PrintOptions& options) {
  const Graph* graph = plain_graph(model);
  return graph != nullptr ? print(*graph, options) : print(model, options);
}

// Behind blanks and comments, a text begins with one of three words.
bool begins_like_text(std::string_view beginning) {
  while (!beginning.empty()) {
    if (beginning[0] == '#')
      beginning.remove_prefix(std::min(beginning.find('\n'), beginning.size()));
    else if (std::string_view(" \t\r\n").find(beginning[0]) != std::string_view::npos)
      beginning.remove_prefix(1);
    else
      break;
  }
  return consume_prefix(beginning, "graph ") || consume_prefix(beginning, "model ") ||
         consume_prefix(beginning, "weights ");
}

Result<Model> load_text(const std::filesystem::path& path, const ImportOptions&) {
  return load_model(path);
}

Result<Model> parse_text(std::string_view bytes, std::string_view where, const ImportOptions&) {
  return parse_model(bytes, {.file = std::string(where)});
}

Result<std::vector<std::filesystem::path>> save_text(const std::filesystem::path& path,
                                                     const Model& model, const ExportOptions&) {
  return save_model(path, model);
}

}  // namespace

FrontEnd text_front_end() {
  return {.name = "a graph file",
          .extension = ".hone",
          .recognizes = begins_like_text,
          .load = load_text,
          .parse = parse_text,
          .save = save_text};
}

Result<Model> load_model(const std::filesystem::path& path) {
  MappedFile file = HONE_TRY(MappedFile::open(path));
  std::string shown = path.string();
  std::string weights_file = HONE_TRY(weights_file_of(file.text(), {.file = shown}));
  ParseOptions options = {.file = shown};
  WeightTable table;
  if (!weights_file.empty()) {
    std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    Result<WeightTable> loaded = load_weights(folder, weights_file);
    if (!loaded.ok()) return std::move(loaded).error().within(shown);
    table = std::move(*loaded);
    options.weights = &table;
  }
  Model model = HONE_TRY(parse_model(file.text(), options));
  if (Status good = verify(model); !good.ok()) return std::move(good).error().within(shown);
  return model;
}

Result<std::vector<std::filesystem::path>> save_model(const std::filesystem::path& path,
                                                      const Model& model) {
  if (path.extension() == ".npz") {
    return usage_error("{} is a name for weights", path.string())
        .with_hint("models are .hone files");
  }
  std::vector<std::filesystem::path> files = {path};
  WeightTable table;
  std::string text = HONE_TRY(text_of(model, {.weights = &table}));
  if (!table.entries().empty()) {
    std::filesystem::path weights_path = path;
    weights_path.replace_extension(".npz");
    std::vector<NamedTensor> tensors;
    for (const WeightTable::Entry& entry : table.entries())
      tensors.push_back({entry.name, as_numpy_holds(entry.tensor)});
    HONE_TRY(write_npz(weights_path, tensors));
    files.push_back(weights_path);
    text = fmt::format("weights {}\n\n{}", hone::quoted(weights_path.filename().string()), text);
  }
  HONE_TRY(write_file_atomic(path, text));
  return files;
}

}  // namespace hone
