#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "front/onnx/proto.h"

namespace hone::onnx_io {

// TensorProto.external_data: where the bytes are, relative to the model's folder.
struct ExternalPlace {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;  // the rest of the file is not the tensor's, even without one
};
// `checksum`, which is of the whole file, is accepted and not verified: that would read it all.
Result<ExternalPlace> external_place(const onnx::TensorProto& proto);

// The files that the tensors of one model name; each is mapped once. Thread-safe.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<std::shared_ptr<const MappedFile>> map(const std::string& location);

 private:
  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace hone::onnx_io
