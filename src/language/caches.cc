#include "language/caches.h"

#include <cstring>
#include <functional>

namespace hone {
namespace {

// The same rows in a cache [1, heads, places, width] with more places, and zeros behind them.
Tensor with_places(const Tensor& cache, Type longer) {
  Tensor made = Tensor::zeros(longer);
  const int64_t heads = longer.dim(1).value();
  const auto from = static_cast<size_t>(cache.byte_size() / heads);
  const auto to = static_cast<size_t>(made.byte_size() / heads);
  for (size_t head = 0; head < static_cast<size_t>(heads); ++head)
    std::memcpy(made.mutable_bytes().data() + head * to, cache.bytes().data() + head * from, from);
  return made;
}

// Calls with each cache of the texts, by layer, then by text.
void for_each_cache(std::span<Caches* const> texts, size_t layers,
                    const std::function<void(Caches& text, size_t cache)>& work) {
  const size_t each = texts[0]->size(), of_a_layer = each / layers;
  for (size_t first = 0; first < each; first += of_a_layer)
    for (Caches* text : texts)
      for (size_t i = 0; i < of_a_layer; ++i) work(*text, first + i);
}

}  // namespace

Result<Caches> Caches::make(std::vector<Type> types,
                            const std::shared_ptr<const CudaDevice>& device) {
  Caches made;
  if (device != nullptr) {
    made.on_gpu_ =
        HONE_TRY(CudaArrays::make(device, std::move(types), "the keys and values of a text"));
    return made;
  }
  for (const Type& type : types) made.here_.push_back(Tensor::zeros(type));
  return made;
}

// One cache after another, so that few are there twice.
void Caches::grow(std::span<const Type> longer) {
  HONE_CHECK(here_.size() == longer.size(), "{} caches for {} types", here_.size(), longer.size());
  for (size_t i = 0; i < here_.size(); ++i) here_[i] = with_places(here_[i], longer[i]);
}

Result<Tensor> StepCode::run(std::vector<Tensor> inputs, std::span<Caches* const> texts,
                             size_t layers, const RunOptions& options) const {
  if (on_gpu_ == nullptr) {
    std::vector<Tensor*> caches;
    for_each_cache(texts, layers,
                   [&](Caches& text, size_t i) { caches.push_back(&text.here_[i]); });
    Result<Tensor> logits = run_here(std::move(inputs), caches, options);
    if (!logits.ok())
      for (Caches* text : texts) *text = Caches();
    return logits;
  }
  std::vector<CudaArray> arrays;
  for_each_cache(texts, layers,
                 [&](Caches& text, size_t i) { arrays.push_back(text.on_gpu_->at(i)); });
  std::vector<Tensor> outputs = HONE_TRY(on_gpu_->run_beside(inputs, arrays, options));
  HONE_CHECK(outputs.size() == 1, "a step has {} outputs beside its caches", outputs.size());
  return std::move(outputs[0]);
}

// A CPU puts caches where those before them were.
Result<Tensor> StepCode::run_here(std::vector<Tensor> inputs, std::span<Tensor* const> caches,
                                  const RunOptions& options) const {
  for (Tensor* cache : caches) inputs.push_back(std::move(*cache));
  std::vector<Tensor> outputs = HONE_TRY(here_->run_donating(std::move(inputs), options));
  for (size_t i = 0; i < caches.size(); ++i) *caches[i] = std::move(outputs[1 + i]);
  return std::move(outputs[0]);
}

}  // namespace hone
