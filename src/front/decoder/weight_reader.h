#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "front/decoder/decoder.h"
#include "ir/builder.h"

namespace hone {

// A graph reads the weights of a language model by this. A tensor is one constant, however often
// it is read. The builder gets the first error: a tensor that is missing or has other dims.
class WeightReader {
 public:
  // They outlive it. The family is named in errors.
  WeightReader(Builder& builder, const DecoderWeights& weights, std::string family)
      : b_(builder), weights_(weights), family_(std::move(family)) {}

  bool has(const std::string& name) const { return weights_.has(name); }
  Value vector(const std::string& name, int64_t size);  // f32[size]
  // x [rows, inputs] times the transposed NAME.weight [outputs, inputs], and NAME.bias if it is
  // there.
  Value linear(const std::string& name, Value x, int64_t outputs);
  // Over the last dim, by NAME.weight and NAME.bias.
  Value rms_norm(const std::string& name, Value x, double epsilon);
  Value layer_norm(const std::string& name, Value x, double epsilon);
  // Some rows of a table, in f32. Blocks are taken as bytes, so only those of the rows are
  // unpacked.
  Value rows_of(const std::string& name, int64_t rows, int64_t width, Value indices);

 private:
  std::optional<Weight> weight(const std::string& name, const std::vector<int64_t>& dims);
  Value constant(const std::string& name, const Weight& weight);
  Value numbers(const std::string& name, const Weight& weight);

  Builder& b_;
  const DecoderWeights& weights_;
  const std::string family_;
  std::map<std::string, Value> constants_;
};

}  // namespace hone
