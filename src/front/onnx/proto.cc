#include "front/onnx/proto.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "base/checked_math.h"
#include "front/onnx/newer.h"
#include "front/onnx/node_order.h"
#include "front/onnx/skeleton.h"
#include "front/onnx/strings.h"
#include "front/onnx/tensor_source.h"

namespace hone::onnx_io {

namespace {

// Messages below those that the scan follows, such as types, nest further.
constexpr int64_t kFurtherNesting = 16;

Status parse_message(const Skeleton& skeleton, const OnnxLimits& limits,
                     google::protobuf::Message& message) {
  if (skeleton.bytes.size() > std::numeric_limits<int>::max()) {
    return over_limit("the messages take {} bytes, the limit is {}", skeleton.bytes.size(),
                      std::numeric_limits<int>::max());
  }
  const int size = static_cast<int>(skeleton.bytes.size());
  google::protobuf::io::ArrayInputStream bytes(skeleton.bytes.data(), size);
  google::protobuf::io::CodedInputStream stream(&bytes);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  stream.SetRecursionLimit(static_cast<int>(limits.nesting + kFurtherNesting));
  if (message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return {};
  return bad_input("the messages are malformed, or nest deeper than {}",
                   limits.nesting + kFurtherNesting);
}

// Without an owner the bytes are copied, so that they can have one.
struct OwnedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  OwnedBytes(std::span<const std::byte> given, std::shared_ptr<const void> keep)
      : bytes(given), owner(std::move(keep)) {
    if (owner != nullptr) return;
    auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    bytes = *copy;
    owner = std::move(copy);
  }
};

// Refuses unknown fields, and tensors that together claim too much.
class MessageCheck {
 public:
  explicit MessageCheck(const OnnxLimits& limits) : limits_(limits) {}

  Status operator()(const google::protobuf::Message& message) {
    HONE_TRY(check_unknown_fields(message));
    const google::protobuf::Descriptor* type = message.GetDescriptor();
    if (type == onnx::TensorProto::descriptor()) {
      const auto& tensor = static_cast<const onnx::TensorProto&>(message);
      return claim(tensor.data_type(), tensor.dims());
    }
    if (type == onnx::SparseTensorProto::descriptor()) {
      const auto& tensor = static_cast<const onnx::SparseTensorProto&>(message);
      return claim(tensor.values().data_type(), tensor.dims());
    }
    if (type == onnx::FunctionProto::descriptor()) {
      return defaults(static_cast<const onnx::FunctionProto&>(message));
    }
    return {};
  }

 private:
  // A tensor that is wrong in itself claims nothing; whoever wants it gets the error.
  Status claim(int32_t data_type, const google::protobuf::RepeatedField<int64_t>& dims) {
    const Result<Type> type = claimed_type(data_type, dims, limits_);
    if (!type.ok()) return {};
    claimed_ += type->static_bytes();  // at most two limits
    if (claimed_ <= limits_.tensor_bytes) return {};
    return over_limit("the tensors up to here claim {} bytes, the limit is {}", claimed_,
                      limits_.tensor_bytes);
  }

  Status defaults(const onnx::FunctionProto& function) {
    for (const onnx::AttributeProto& attribute : HONE_TRY(default_attributes(function))) {
      Status status = for_each_message(attribute, *this);
      if (!status.ok()) {
        return std::move(status).error().within(message_label(attribute, "attribute_proto", 0));
      }
    }
    return {};
  }

  const OnnxLimits& limits_;
  int64_t claimed_ = 0;
};

Status check_model(const onnx::ModelProto& model, const OnnxLimits& limits) {
  if (!model.has_ir_version()) return bad_input("it has no ir_version; is it an ONNX model?");
  const int64_t version = model.ir_version();
  if (version < kOldestIrVersion || version > kNewestIrVersion) {
    return unsupported("IR version {} is not supported, only {} to {}", version, kOldestIrVersion,
                       kNewestIrVersion);
  }
  if (!model.has_graph()) return bad_input("the model has no graph");
  MessageCheck check(limits);
  return for_each_message(model, check);
}

Result<NamedTensor> tensor_of(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                              std::shared_ptr<const void> owner, const OnnxLimits& limits) {
  OwnedBytes file(bytes, std::move(owner));
  Skeleton skeleton = HONE_TRY(scan(file.bytes, RootMessage::tensor, limits));
  onnx::TensorProto proto;
  HONE_TRY(parse_message(skeleton, limits, proto));
  HONE_TRY(for_each_message(proto, check_unknown_fields));
  const TensorSource source(file.bytes, file.owner, std::move(skeleton.payloads), folder, limits);
  return NamedTensor{proto.name(), HONE_TRY(source.dense(proto))};
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::filesystem::path& path,
                                                         const OnnxLimits& limits) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  const std::span<const std::byte> bytes = file->bytes();
  return parse(bytes, path.native(), path.parent_path(), std::move(file), limits);
}

Result<std::shared_ptr<const ModelFile>> ModelFile::parse(std::span<const std::byte> bytes,
                                                          std::string_view where,
                                                          const std::filesystem::path& folder,
                                                          std::shared_ptr<const void> owner,
                                                          const OnnxLimits& limits) {
  std::shared_ptr<ModelFile> model(new ModelFile);
  model->where_ = where;
  const auto fill = [&]() -> Status {
    OwnedBytes file(bytes, std::move(owner));
    Skeleton skeleton = HONE_TRY(scan(file.bytes, RootMessage::model, limits));
    HONE_TRY(parse_message(skeleton, limits, model->model_));
    HONE_TRY(check_model(model->model_, limits));
    sort_nodes(model->model_);
    model->source_ = std::make_shared<const TensorSource>(
        file.bytes, file.owner, std::move(skeleton.payloads), folder, limits);
    model->strings_ = std::make_shared<const Strings>(model->model_);
    return {};
  };
  Status status = fill();
  if (!status.ok()) return std::move(status).error().within(where);
  return std::shared_ptr<const ModelFile>(std::move(model));
}

Result<Tensor> ModelFile::tensor(const onnx::TensorProto& proto) const {
  if (proto.data_type() == onnx::TensorProto::STRING) return strings_->tensor(proto);
  return source_->dense(proto);
}

Result<Tensor> ModelFile::tensor(const onnx::SparseTensorProto& proto) const {
  return source_->sparse(proto);
}

Result<NamedTensor> parse_tensor(std::span<const std::byte> bytes, std::string_view where,
                                 const std::filesystem::path& folder,
                                 std::shared_ptr<const void> owner, const OnnxLimits& limits) {
  Result<NamedTensor> tensor = tensor_of(bytes, folder, std::move(owner), limits);
  if (!tensor.ok()) return std::move(tensor).error().within(where);
  return tensor;
}

Result<NamedTensor> read_named_tensor_file(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  const std::span<const std::byte> bytes = file->bytes();
  return parse_tensor(bytes, path.native(), path.parent_path(), std::move(file), {});
}

Result<Tensor> read_tensor_file(const std::filesystem::path& path) {
  return HONE_TRY(read_named_tensor_file(path)).tensor;
}

}  // namespace hone::onnx_io
