#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/temporary_files.h"
#include "front/onnx/metadata.h"
#include "front/onnx/onnx.h"
#include "front/onnx/write/graph_writer.h"

namespace hone::onnx_io {
namespace {

// The most bytes of a message of protobuf, less some room for what stands around the tensors.
constexpr int64_t kMaxMessage = (int64_t{1} << 31) - (int64_t{1} << 20);
// Smaller tensors stay in the file, where they can be read with it.
constexpr int64_t kMinExternal = 1024;
// So that a reader can map each tensor on its own.
constexpr int64_t kDataAlignment = 4096;

int ir_version(int opset) { return opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7; }

using UsedNames = std::set<std::string, std::less<>>;

// Removes nodes that nothing is read from, in subgraphs too, and says what is read from outside.
void drop_unused(onnx::GraphProto& graph, UsedNames& used) {
  for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
  std::vector<bool> is_kept(static_cast<size_t>(graph.node_size()));
  for (int i = graph.node_size(); i-- > 0;) {
    onnx::NodeProto& node = *graph.mutable_node(i);
    const auto& outputs = node.output();
    const bool is_used = std::any_of(outputs.begin(), outputs.end(),
                                     [&](const std::string& name) { return used.contains(name); });
    is_kept[static_cast<size_t>(i)] = is_used;
    if (!is_used) continue;
    used.insert(node.input().begin(), node.input().end());
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) drop_unused(*attribute.mutable_g(), used);
  }
  int count = 0;
  for (int i = 0; i < graph.node_size(); ++i)
    if (is_kept[static_cast<size_t>(i)]) graph.mutable_node()->SwapElements(i, count++);
  graph.mutable_node()->DeleteSubrange(count, graph.node_size() - count);
}

void drop_unused(FileWriter& file) {
  UsedNames used;
  drop_unused(*file.root, used);
  auto is_unused = [&](const auto& constant) { return !used.contains(constant.first->name()); };
  std::erase_if(file.large, is_unused);
  auto& constants = *file.root->mutable_initializer();
  int count = 0;
  for (int i = 0; i < constants.size(); ++i)
    if (used.contains(constants.Get(i).name())) constants.SwapElements(i, count++);
  constants.DeleteSubrange(count, constants.size() - count);
}

void write_model(const Model& model, FileWriter& file, onnx::ModelProto& proto) {
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(model.name);
  file.root = &graph;
  GraphWriter writer(file, graph);
  GraphWriter::Values values;
  for (const ModelValue& input : model.inputs) {
    std::string name = file.fresh_name(input.name);
    fill_value_info(*graph.add_input(), name, input.type);
    values[input.name] = name;
  }
  for (const ModelValue& output : model.outputs)
    if (file.names.insert(output.name).second) file.reserved.insert(output.name);
  writer.segments(model.segments, values);
  for (const ModelValue& output : model.outputs) {
    std::string name = values.at(output.name);
    if (name != output.name) {
      std::string wanted = file.claim(output.name);
      writer.node("Identity", {name}, {wanted}, {}, wanted);
      name = wanted;
    }
    fill_value_info(*graph.add_output(), name, output.type);
  }
  onnx::OperatorSetIdProto& opset = *proto.add_opset_import();
  opset.set_version(file.opset);
  for (const auto& [domain, version] : file.domains) {
    onnx::OperatorSetIdProto& import = *proto.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
}

// Weights in a file of their own, one after the other.
class DataFile {
 public:
  explicit DataFile(std::string location) : location_(std::move(location)) {}

  void add(onnx::TensorProto& proto, const Tensor& tensor) {
    const int64_t offset = aligned(size_);
    proto.set_data_type(data_type_of(tensor.dtype()));
    for (Dim dim : tensor.type().dims()) proto.add_dims(dim.value());
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    auto set = [&](const char* key, std::string value) {
      onnx::StringStringEntryProto& entry = *proto.add_external_data();
      entry.set_key(key);
      entry.set_value(std::move(value));
    };
    set("location", location_);
    set("offset", fmt::format("{}", offset));
    set("length", fmt::format("{}", tensor.byte_size()));
    tensors_.push_back(tensor);
    size_ = offset + tensor.byte_size();
  }

  // One tensor at a time is in memory, of those that nobody has read.
  Status write(const std::filesystem::path& path) const {
    if (!path.has_filename())
      return bad_input("cannot write '{}': it names no file", path.native());
    const std::filesystem::path temporary = temporary_name(path);
    if (write_all(temporary)) return publish_file(temporary, path);
    const int reason = errno;
    discard_file(temporary);
    return os_error("write", path.native(), reason);
  }
  bool empty() const { return tensors_.empty(); }

 private:
  static int64_t aligned(int64_t size) {
    return (size + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  }

  bool write_all(const std::filesystem::path& path) const {
    static constexpr char kZeros[kDataAlignment] = {};
    std::ofstream out(path, std::ios::binary);
    int64_t size = 0;
    for (const Tensor& tensor : tensors_) {
      out.write(kZeros, aligned(size) - size);
      std::vector<std::byte> scratch;
      const std::span<const std::byte> bytes = tensor.bytes_once(scratch);
      out.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
      size = aligned(size) + tensor.byte_size();
    }
    out.close();
    return out.good();
  }

  std::string location_;
  std::vector<Tensor> tensors_;
  int64_t size_ = 0;
};

Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& path,
                                                const Model& model, const ExportOptions& options) {
  onnx::ModelProto proto;
  FileWriter file;
  file.opset = options.opset;
  file.primitives = options.primitives;
  proto.set_ir_version(ir_version(options.opset));
  proto.set_producer_name("hone");
  write_metadata(model, proto);
  write_model(model, file, proto);
  drop_unused(file);

  int64_t bytes = static_cast<int64_t>(proto.ByteSizeLong());
  for (const auto& [tensor, value] : file.large) bytes += value.byte_size() + 64;
  bool is_apart = options.external_data || bytes >= kMaxMessage;
  std::filesystem::path data_path = path;
  data_path += ".data";
  DataFile data(data_path.filename().string());
  for (auto& [tensor, value] : file.large) {
    if (is_apart && value.byte_size() >= kMinExternal)
      data.add(*tensor, value);
    else
      fill_tensor(value, *tensor);
  }
  std::vector<std::filesystem::path> written;
  if (!data.empty()) {
    HONE_TRY(data.write(data_path));
    written.push_back(data_path);
  }
  std::string text;
  if (!proto.SerializeToString(&text))
    return over_limit("the model does not fit into one ONNX file of 2 GB");
  HONE_TRY(write_file_atomic(path, text));
  written.push_back(path);
  return written;
}

}  // namespace
}  // namespace hone::onnx_io

namespace hone {

Result<std::vector<std::filesystem::path>> save_onnx(const std::filesystem::path& path,
                                                     const Model& model,
                                                     const ExportOptions& options) {
  int least = options.primitives ? 13 : 17;
  if (options.opset < least || options.opset > 21)
    return usage_error("opset {} is not one of {} to 21", options.opset, least);
  try {
    return onnx_io::save(path, model, options);
  } catch (onnx_io::Failure& failure) {
    return std::move(failure.error);
  }
}

}  // namespace hone
