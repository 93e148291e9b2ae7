#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "front/onnx/proto.h"

namespace hone::onnx_io {

namespace {

constexpr int64_t kMessageBytes = int64_t{1} << 31;  // that readers of messages accept, not quite
constexpr int64_t kFrameBytes = int64_t{1} << 20;    // more than names and dims take

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void fill_header(const Tensor& tensor, onnx::TensorProto& proto) {
  for (int64_t dim : tensor.type().static_dims()) proto.add_dims(dim);
  proto.set_data_type(data_type_of(tensor.dtype()));
}

// The field raw_data up to its content.
std::string raw_frame(int64_t size) {
  std::string frame;
  google::protobuf::io::StringOutputStream stream(&frame);
  google::protobuf::io::CodedOutputStream out(&stream);
  constexpr uint32_t kLengthDelimited = 2;
  out.WriteTag(uint32_t{onnx::TensorProto::kRawDataFieldNumber} << 3 | kLengthDelimited);
  out.WriteVarint64(static_cast<uint64_t>(size));
  out.Trim();
  return frame;
}

}  // namespace

void fill_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  HONE_CHECK(tensor.byte_size() < kMessageBytes - kFrameBytes, "{}", tensor.type().to_string());
  fill_header(tensor, proto);
  std::vector<std::byte> scratch;
  const std::string_view data = text_of(tensor.bytes_once(scratch));
  proto.set_raw_data(data.data(), data.size());
}

Status write_tensor_file(const std::filesystem::path& path, std::string_view name,
                         const Tensor& tensor) {
  if (tensor.byte_size() + static_cast<int64_t>(name.size()) >= kMessageBytes - kFrameBytes) {
    return over_limit("{} takes {} bytes, more than a message holds ({})",
                      tensor.type().to_string(), tensor.byte_size(), kMessageBytes)
        .within(path.native());
  }
  onnx::TensorProto proto;
  fill_header(tensor, proto);
  proto.set_name(name.data(), name.size());
  const std::string header = proto.SerializeAsString() + raw_frame(tensor.byte_size());
  std::vector<std::byte> scratch;
  const std::string_view pieces[] = {header, text_of(tensor.bytes_once(scratch))};
  return write_file_atomic(path, pieces);
}

}  // namespace hone::onnx_io
