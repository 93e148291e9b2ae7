#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "front/hugging_face/hf_model.h"

namespace hone {

// The tensors of the files of a folder. A family of models says which name of theirs a name of GGUF
// files stands for.
class HfTensors : public DecoderWeights {
 public:
  explicit HfTensors(std::vector<Safetensors> files) : files_(std::move(files)) {
    for (const Safetensors& file : files_)
      for (const NamedTensor& one : file.tensors) tensors_.emplace(one.name, &one.tensor);
  }

  bool has(const std::string& name) const final { return tensor(name) != nullptr; }

 protected:
  // The tensor that a name of GGUF files stands for. Null: there is none.
  virtual const Tensor* tensor(std::string_view gguf) const = 0;

  const Tensor* of_files(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }
  // One that has() knows. An error if its elements are not those of weights.
  Result<const Tensor*> real(const std::string& gguf) const {
    const Tensor* const found = tensor(gguf);
    const DType dtype = found->dtype();
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      return unsupported("its elements are {}; hone reads f32, f16 and bf16", name(dtype));
    return found;
  }

 private:
  const std::vector<Safetensors> files_;
  std::map<std::string, const Tensor*, std::less<>> tensors_;
};

}  // namespace hone
