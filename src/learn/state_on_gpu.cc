#include "learn/state_on_gpu.h"

namespace hone {

Status StateOnGpu::put(std::span<const NamedTensor> state) {
  if (is_there_) return {};
  std::vector<Type> types;
  std::vector<Tensor> tensors;
  for (const NamedTensor& each : state) {
    types.push_back(each.tensor.type());
    tensors.push_back(each.tensor);
  }
  if (arrays_ == nullptr)
    arrays_ = HONE_TRY(CudaArrays::make(device_, std::move(types), "the state of the training"));
  HONE_TRY(arrays_->write(tensors));
  is_there_ = true;
  return {};
}

Status StateOnGpu::read_back(std::vector<NamedTensor>& state) {
  if (!is_ahead_) return {};
  std::vector<Tensor> tensors = HONE_TRY(arrays_->read());
  for (size_t i = 0; i < state.size(); ++i) state[i].tensor = std::move(tensors[i]);
  is_ahead_ = false;
  return {};
}

std::vector<CudaArray> StateOnGpu::arrays(size_t first, size_t stride) const {
  std::vector<CudaArray> chosen;
  for (size_t i = first; i < arrays_->size(); i += stride) chosen.push_back(arrays_->at(i));
  return chosen;
}

}  // namespace hone
