#include <cstdint>

#include "front/onnx/newer.h"
#include "front/onnx/proto.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// Larger tensors come from sparse ones that claim much; nobody reads them here.
constexpr int64_t kReadBytes = int64_t{1} << 20;

void read(const hone::Result<hone::Tensor>& tensor) {
  if (tensor.ok() && tensor->byte_size() <= kReadBytes) (void)tensor->bytes().size();
}

}  // namespace

// Bytes as a model, and as a tensor alone: every tensor in them is an error or can be read.
HONE_FUZZ(onnx_proto) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  hone::OnnxLimits limits;
  limits.tensor_bytes = int64_t{1} << 28;
  auto alone = hone::onnx_io::parse_tensor(bytes, "fuzz", "/nowhere", nullptr, limits);
  if (alone.ok()) (void)alone->tensor.content_hash();
  auto file = hone::onnx_io::ModelFile::parse(bytes, "fuzz", "/nowhere", nullptr, limits);
  if (!file.ok()) return;
  (void)hone::onnx_io::for_each_message(
      (*file)->model(), [&](const google::protobuf::Message& message) -> hone::Status {
        if (message.GetDescriptor() == onnx::TensorProto::descriptor()) {
          read((*file)->tensor(static_cast<const onnx::TensorProto&>(message)));
        }
        if (message.GetDescriptor() == onnx::SparseTensorProto::descriptor()) {
          read((*file)->tensor(static_cast<const onnx::SparseTensorProto&>(message)));
        }
        return {};
      });
}

}  // namespace hone::HONE_FILE
