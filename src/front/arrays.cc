#include "front/arrays.h"

#include "base/text.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "front/front_end.h"
#include "front/onnx/tensor_file.h"

namespace hone {
namespace {

enum class ArrayFormat : uint8_t { npy, npz, safetensors, proto };

// The first field of a TensorProto has its dims, its type, or its name.
bool begins_like_proto(std::string_view beginning) {
  constexpr std::string_view kTags("\x08\x0a\x10\x42");
  return !beginning.empty() && kTags.find(beginning[0]) != kTags.npos;
}

ArrayFormat format_of(const std::filesystem::path& path) {
  const std::string beginning = file_beginning(path);
  const std::filesystem::path extension = path.extension();
  if (begins_like_npy(beginning)) return ArrayFormat::npy;
  if (begins_like_npz(beginning)) return ArrayFormat::npz;
  if (begins_like_safetensors(beginning)) return ArrayFormat::safetensors;
  if (extension == ".pb") return ArrayFormat::proto;
  if (extension == ".npy") return ArrayFormat::npy;
  if (extension == ".npz") return ArrayFormat::npz;
  if (extension == ".safetensors") return ArrayFormat::safetensors;
  return begins_like_proto(beginning) ? ArrayFormat::proto : ArrayFormat::npy;
}

}  // namespace

Result<Tensor> read_tensor(const std::filesystem::path& path) {
  switch (format_of(path)) {
    case ArrayFormat::npy: return read_npy(path);
    case ArrayFormat::proto: return onnx_io::read_tensor_file(path);
    case ArrayFormat::npz: HONE_TRY(read_npz(path)); break;
    case ArrayFormat::safetensors: HONE_TRY(read_safetensors(path)); break;
  }
  return bad_input("'{}' has arrays by name, but one array is wanted", excerpt(path.native()))
      .with_hint("one array is a .npy file, or a TensorProto of ONNX (.pb)");
}

bool has_named_tensors(const std::filesystem::path& path) {
  const ArrayFormat format = format_of(path);
  return format == ArrayFormat::npz || format == ArrayFormat::safetensors;
}

Result<std::vector<NamedTensor>> read_named_tensors(const std::filesystem::path& path,
                                                    const NpzFilter& filter) {
  const ArrayFormat format = format_of(path);
  if (format == ArrayFormat::npy && begins_like_npy(file_beginning(path)))
    return bad_input("'{}' has one array without a name", excerpt(path.native()))
        .with_hint("arrays by name are a .npz or a .safetensors file");
  if (format != ArrayFormat::safetensors) return read_npz(path, filter);
  std::vector<NamedTensor> wanted;
  for (NamedTensor& each : HONE_TRY(read_safetensors(path)).tensors) {
    if (filter) {
      const Result<bool> is_wanted = filter(each.name, each.tensor.type());
      if (!is_wanted.ok()) return Error(is_wanted.error()).within(path.native());
      if (!*is_wanted) continue;
    }
    wanted.push_back(std::move(each));
  }
  return wanted;
}

}  // namespace hone
