#include "learn/data.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/hash.h"
#include "base/rng.h"

namespace hone {

Result<TensorDataset> TensorDataset::make(Batch rows) {
  if (rows.empty()) return bad_input("a dataset needs at least one tensor");
  int64_t size = -1;
  for (const auto& [name, tensor] : rows) {
    if (tensor.type().rank() == 0 || bits(tensor.dtype()) % 8 != 0)
      return bad_input("the samples of '{}' must be rows of whole bytes, but are {}", name,
                       tensor.type().to_string());
    const int64_t count = tensor.type().dim(0).value();
    if (size >= 0 && count != size)
      return bad_input("'{}' has {} samples, '{}' has {}", name, count, rows.begin()->first, size);
    size = count;
  }
  return TensorDataset(std::move(rows), size);
}

Result<Batch> TensorDataset::batch(std::span<const int64_t> samples, int64_t) const {
  Batch batch;
  for (const auto& [name, tensor] : rows_) {
    Dims dims(tensor.type().dims().begin(), tensor.type().dims().end());
    dims[0] = static_cast<int64_t>(samples.size());
    Tensor picked = Tensor::zeros(tensor.type().with_dims(dims));
    const size_t row = size_ > 0 ? tensor.bytes().size() / static_cast<size_t>(size_) : 0;
    const std::span<std::byte> to = picked.mutable_bytes();
    for (size_t i = 0; i < samples.size() && row > 0; ++i)
      std::memcpy(to.data() + i * row,
                  tensor.bytes().data() + static_cast<size_t>(samples[i]) * row, row);
    batch.emplace(name, std::move(picked));
  }
  return batch;
}

Result<Loader> Loader::make(const Dataset& data, LoaderOptions options) {
  if (options.batch_size < 1)
    return usage_error("the batch size is {}; it is at least 1", options.batch_size);
  if (options.buckets.empty()) options.buckets = {INT64_MAX};
  if (std::ranges::adjacent_find(options.buckets, std::greater_equal()) != options.buckets.end())
    return usage_error("the lengths of buckets do not increase");
  Loader loader(data, std::move(options));
  std::vector<int64_t> counts(loader.options_.buckets.size());
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto at = std::ranges::lower_bound(loader.options_.buckets, data.length(i));
    if (at == loader.options_.buckets.end())
      return bad_input("sample {} has length {}, more than the largest bucket, {}", i,
                       data.length(i), loader.options_.buckets.back())
          .with_hint("add a larger bucket, or leave the sample out");
    loader.bucket_of_.push_back(static_cast<size_t>(at - loader.options_.buckets.begin()));
    ++counts[loader.bucket_of_.back()];
  }
  const int64_t size = loader.options_.batch_size;
  for (const int64_t count : counts)
    loader.batches_ += (loader.options_.shuffles ? count : count + size - 1) / size;
  if (loader.batches_ == 0)
    return bad_input("no bucket has the {} samples of a batch; there are {} samples in all", size,
                     data.size())
        .with_hint("use smaller batches");
  return loader;
}

const Loader::Cut& Loader::cut(int64_t epoch, int64_t index) {
  HONE_CHECK(index >= 0 && index < batches_, "batch {} of {}", index, batches_);
  if (epoch != epoch_) {
    Rng rng(hash_combine(options_.seed, static_cast<uint64_t>(epoch)));
    std::vector<int64_t> order(bucket_of_.size());
    std::iota(order.begin(), order.end(), 0);
    if (options_.shuffles) rng.shuffle(order);
    std::vector<Cut> open(options_.buckets.size());
    cuts_.clear();
    for (const int64_t sample : order) {
      const size_t bucket = bucket_of_[static_cast<size_t>(sample)];
      open[bucket].bucket = options_.buckets[bucket];
      open[bucket].samples.push_back(sample);
      if (std::ssize(open[bucket].samples) == options_.batch_size)
        cuts_.push_back(std::exchange(open[bucket], {}));
    }
    if (options_.shuffles) {
      rng.shuffle(cuts_);
    } else {
      for (Cut& rest : open)
        if (!rest.samples.empty()) cuts_.push_back(std::move(rest));
    }
    epoch_ = epoch;
  }
  return cuts_[static_cast<size_t>(index)];
}

std::vector<int64_t> Loader::samples(int64_t epoch, int64_t index) {
  return cut(epoch, index).samples;
}

Result<Batch> Loader::batch(int64_t epoch, int64_t index) {
  const Cut& one = cut(epoch, index);
  return data_->batch(one.samples, one.bucket);
}

}  // namespace hone
