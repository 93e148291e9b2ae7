#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learn/network.h"

// The data that a network learns from, and their order.

namespace hone {

// Samples by number. A batch of samples is made when it is needed.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // How long a sample is: it decides its bucket.
  virtual int64_t length(int64_t sample) const {
    (void)sample;
    return 0;
  }
  // The samples as tensors, each padded to the bucket's length. Tensors of the same number of
  // samples and the same bucket have the same types: so one compiled step takes them all.
  virtual Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const = 0;
};

// Sample i is row i of each tensor.
class TensorDataset : public Dataset {
 public:
  static Result<TensorDataset> make(Batch rows);

  int64_t size() const override { return size_; }
  Result<Batch> batch(std::span<const int64_t> samples, int64_t bucket) const override;

 private:
  TensorDataset(Batch rows, int64_t size) : rows_(std::move(rows)), size_(size) {}

  Batch rows_;
  int64_t size_;
};

struct LoaderOptions {
  int64_t batch_size = 32;
  // Lengths in increasing order. A sample belongs to the first one that is not below its own
  // length; a batch has samples of one bucket. Empty: one bucket for all.
  std::vector<int64_t> buckets = {};
  uint64_t seed = 0;
  // Without, samples come in their order, and each bucket's last batch may be smaller; with it,
  // what does not fill a batch is left out of the epoch.
  bool shuffles = true;
};

// Cuts a dataset into batches. The batches of an epoch are a pure function of the seed and the
// epoch's number, so a position is two numbers.
class Loader {
 public:
  static Result<Loader> make(const Dataset& data, LoaderOptions options);  // data outlives it

  int64_t batches() const { return batches_; }  // of an epoch
  const LoaderOptions& options() const { return options_; }
  std::vector<int64_t> samples(int64_t epoch, int64_t index);  // of a batch
  Result<Batch> batch(int64_t epoch, int64_t index);

 private:
  struct Cut {  // of a batch
    int64_t bucket = 0;
    std::vector<int64_t> samples;
  };
  Loader(const Dataset& data, LoaderOptions options) : data_(&data), options_(std::move(options)) {}
  const Cut& cut(int64_t epoch, int64_t index);

  const Dataset* data_;
  LoaderOptions options_;
  std::vector<size_t> bucket_of_;  // per sample, an index into buckets
  int64_t batches_ = 0;
  int64_t epoch_ = -1;  // whose batches these are
  std::vector<Cut> cuts_;
};

}  // namespace hone
