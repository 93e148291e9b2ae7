#include "front/decoder/weight_reader.h"

#include "base/text.h"
#include "ir/functional.h"

namespace hone {

std::optional<Weight> WeightReader::weight(const std::string& name,
                                           const std::vector<int64_t>& dims) {
  if (!b_.ok()) return std::nullopt;
  if (!has(name)) {
    b_.fail(bad_input("the file has no tensor '{}', which a model of the family {} needs", name,
                      family_));
    return std::nullopt;
  }
  Result<Weight> found = weights_.get(name);
  if (!found.ok()) {
    b_.fail(std::move(found).error().about(fmt::format("tensor '{}'", name)));
    return std::nullopt;
  }
  if (found->dims != dims) {
    b_.fail(bad_input("tensor '{}' is [{}], but the model's numbers make it [{}]", name,
                      join(found->dims, ", "), join(dims, ", ")));
    return std::nullopt;
  }
  return *std::move(found);
}

Value WeightReader::constant(const std::string& name, const Weight& weight) {
  Value& known = constants_[name];
  if (!known) known = b_.constant(weight.data, name);
  return known;
}

// All of a weight as f32.
Value WeightReader::numbers(const std::string& name, const Weight& weight) {
  const Value data = constant(name, weight);
  if (weight.format) return unpacked(data, *weight.format);
  return weight.data.dtype() == DType::f32 ? data : cast(data, DType::f32);
}

Value WeightReader::vector(const std::string& name, int64_t size) {
  const std::optional<Weight> found = weight(name, {size});
  return found ? numbers(name, *found) : b_.scalar(DType::f32, 0);
}

Value WeightReader::linear(const std::string& name, Value x, int64_t outputs) {
  const std::string matrix = name + ".weight", bias = name + ".bias";
  if (!b_.ok()) return x;
  const std::optional<Weight> found = weight(matrix, {outputs, x.dim(1).value()});
  if (!found) return x;
  const Value y = found->format ? product_of_blocks(x, constant(matrix, *found), *found->format)
                                : dot_general(x, numbers(matrix, *found), {}, {}, {1}, {1});
  return has(bias) ? y + vector(bias, outputs) : y;
}

Value WeightReader::rms_norm(const std::string& name, Value x, double epsilon) {
  if (!b_.ok()) return x;
  return hone::rms_norm(x, vector(name + ".weight", x.dim(-1).value()), -1, epsilon);
}

Value WeightReader::layer_norm(const std::string& name, Value x, double epsilon) {
  if (!b_.ok()) return x;
  const int64_t size = x.dim(-1).value();
  const Value scale = vector(name + ".weight", size);
  return hone::layer_norm(x, scale, vector(name + ".bias", size), -1, epsilon);
}

Value WeightReader::rows_of(const std::string& name, int64_t rows, int64_t width, Value indices) {
  const std::optional<Weight> found = weight(name, {rows, width});
  if (!found) return indices;
  const Value taken = take(constant(name, *found), indices);
  if (found->format) return unpacked(taken, *found->format);
  return taken.dtype() == DType::f32 ? taken : cast(taken, DType::f32);
}

}  // namespace hone
