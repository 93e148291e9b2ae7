#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "formats/npz.h"
#include "tensor/tensor.h"

namespace hone::onnx_io {

// One TensorProto in a file of its own (.pb).
Result<Tensor> read_tensor_file(const std::filesystem::path& path);
Result<NamedTensor> read_named_tensor_file(const std::filesystem::path& path);
// At most 2 GiB, which is what a message holds.
Status write_tensor_file(const std::filesystem::path& path, std::string_view name,
                         const Tensor& tensor);

}  // namespace hone::onnx_io
