#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/npz.h"
#include "tensor/tensor.h"

// Arrays that users keep in files: of numpy, of safetensors, and of ONNX. The content of a file
// tells its format. A file that begins like none of them goes to the reader that its name tells,
// which says what is wrong.

namespace hone {

// One array: a .npy file, or a TensorProto (.pb).
Result<Tensor> read_tensor(const std::filesystem::path& path);

// Tells whether a file has arrays by name: a .npz or a .safetensors file.
bool has_named_tensors(const std::filesystem::path& path);
// In the order of the file, of those that the filter wants.
Result<std::vector<NamedTensor>> read_named_tensors(const std::filesystem::path& path,
                                                    const NpzFilter& filter = {});

}  // namespace hone
