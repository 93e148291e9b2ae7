#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "front/onnx/external.h"
#include "front/onnx/proto.h"
#include "front/onnx/skeleton.h"

namespace hone::onnx_io {

// Turns the tensor messages of one file into tensors.
class TensorSource {
 public:
  // The payloads are ranges of the bytes, which `owner` keeps.
  TensorSource(std::span<const std::byte> file, std::shared_ptr<const void> owner,
               std::vector<Payload> payloads, const std::filesystem::path& folder,
               const OnnxLimits& limits)
      : file_(file),
        owner_(std::move(owner)),
        payloads_(std::move(payloads)),
        external_(folder),
        limits_(limits) {}

  // Errors name the tensor, not the file.
  Result<Tensor> dense(const onnx::TensorProto& proto) const;
  Result<Tensor> sparse(const onnx::SparseTensorProto& proto) const;

 private:
  struct Stored;  // where the data of one tensor is

  Result<Tensor> unnamed(const onnx::TensorProto& proto) const;
  Result<Tensor> scattered(const onnx::SparseTensorProto& proto) const;
  Result<Stored> stored(const onnx::TensorProto& proto) const;
  Result<Tensor> from_stored(Type type, const onnx::TensorProto& proto, const Stored& data) const;
  Result<Tensor> from_external(Type type, const onnx::TensorProto& proto) const;
  Result<Tensor> from_raw(Type type, const onnx::TensorProto& proto, const Payload* payload) const;
  Result<Tensor> from_pieces(Type type, const Payload& payload) const;
  template <class T>
  Result<Tensor> from_reals(Type type, const Payload* payload, std::span<const T> values) const;
  template <class T>
  Result<Tensor> from_integers(Type type, const Payload* payload, std::span<const T> values) const;

  std::span<const std::byte> file_;
  std::shared_ptr<const void> owner_;
  std::vector<Payload> payloads_;
  mutable ExternalFiles external_;
  const OnnxLimits limits_;
};

// The type that the message claims; its bytes are within the limit.
Result<Type> claimed_type(int32_t data_type, const google::protobuf::RepeatedField<int64_t>& dims,
                          const OnnxLimits& limits);

}  // namespace hone::onnx_io
