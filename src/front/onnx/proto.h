#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The schema library's classes; they are seen in src/front/onnx alone.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#ifndef ONNX_ML
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>
#pragma clang diagnostic pop

#include "base/error.h"
#include "base/file.h"
#include "formats/npz.h"
#include "front/onnx/limits.h"
#include "front/onnx/tensor_file.h"
#include "tensor/tensor.h"

// ONNX files as messages. The bytes of large tensors never go through protobuf: they stay where
// they are in the mapped file, and tensors share them.

namespace hone::onnx_io {

// The element type of TensorProto.data_type; unsupported (by name) for strings and complex numbers.
Result<DType> dtype_of(int32_t data_type);
int32_t data_type_of(DType dtype);
// "FLOAT", "INT2"; "type 99" for one that no version knows.
std::string data_type_name(int32_t data_type);

class Strings;       // strings.h
class TensorSource;  // tensor_source.h

// A message and the file that it came from. All its fields are known: those that the schema library
// lacks are refused unless newer.h reads them.
class ModelFile {
 public:
  // `folder` is where external data is looked for.
  static Result<std::shared_ptr<const ModelFile>> open(const std::filesystem::path& path,
                                                       const OnnxLimits& limits);
  // Parses bytes in memory, which `owner` keeps; without an owner they are copied.
  static Result<std::shared_ptr<const ModelFile>> parse(std::span<const std::byte> bytes,
                                                        std::string_view where,
                                                        const std::filesystem::path& folder,
                                                        std::shared_ptr<const void> owner,
                                                        const OnnxLimits& limits);

  const onnx::ModelProto& model() const { return model_; }
  const std::string& where() const { return where_; }  // the file's name, for errors
  const Strings& strings() const { return *strings_; }

  // Raw, typed and external data; the count of elements is checked against the dims before anything
  // is allocated. Raw and external data stay mapped. A tensor of strings has their places in
  // strings(); complex numbers are unsupported. A bool is true if any bit of its byte is set. The
  // message is one of this file (a copy will do) or was made by hand. Errors name the tensor, not
  // the file. Thread-safe.
  Result<Tensor> tensor(const onnx::TensorProto& proto) const;
  // Lazy, so that a small file cannot make a large tensor that nobody reads.
  Result<Tensor> tensor(const onnx::SparseTensorProto& proto) const;

 private:
  ModelFile() = default;

  onnx::ModelProto model_;
  std::string where_;
  std::shared_ptr<const TensorSource> source_;
  std::shared_ptr<const Strings> strings_;
};

// One TensorProto in memory; see ModelFile::parse, and tensor_file.h for files.
Result<NamedTensor> parse_tensor(std::span<const std::byte> bytes, std::string_view where,
                                 const std::filesystem::path& folder,
                                 std::shared_ptr<const void> owner, const OnnxLimits& limits);
// Dims, type and raw data of a new message; for export. At most 2 GiB.
void fill_tensor(const Tensor& tensor, onnx::TensorProto& proto);

}  // namespace hone::onnx_io
