#include "place/weights_file.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr const char *kFormat = "format", *kChecksum = "content";

std::vector<NamedTensor> in_order(std::span<const NamedTensor> weights,
                                  const WeightsFormat& format) {
  std::vector<NamedTensor> sorted;
  for (const auto& [name, dims] : format.shapes)
    sorted.push_back(*std::ranges::find(weights, name, &NamedTensor::name));
  return sorted;
}

// Puts the weights in order, too.
Status check(Safetensors& file, const WeightsFormat& format) {
  if (const std::string& name = file.metadata[kFormat]; name != format.name)
    return bad_input("this is not a {} of this version: its format is '{}'", format.what,
                     excerpt(name))
        .with_hint(fmt::format("'{}' makes one", format.made_by));
  HONE_TRY(numbers_of(file.tensors, format));
  file.tensors = in_order(file.tensors, format);
  if (file.metadata[kChecksum] != checksum_of(file.tensors))
    return bad_input("its checksum does not fit: the file is damaged");
  return {};
}

}  // namespace

Result<std::vector<std::vector<float>>> numbers_of(std::span<const NamedTensor> weights,
                                                   const WeightsFormat& format) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, dims] : format.shapes) {
    const auto found = std::ranges::find(weights, name, &NamedTensor::name);
    if (found == weights.end())
      return bad_input("a {} has {} weights, and '{}' is missing", format.what,
                       format.shapes.size(), name);
    const Type type = Type::get(DType::f32, Dims(dims.begin(), dims.end()));
    if (found->tensor.type() != type)
      return bad_input("weight '{}' is {}, not {}", name, found->tensor.type().to_string(),
                       type.to_string());
    const Tensor own = Tensor::copy_of(type, found->tensor.bytes());
    const std::span<const float> numbers = own.as<float>();
    for (const float one : numbers)
      if (!std::isfinite(one)) return bad_input("weight '{}' has {}", name, one);
    all.emplace_back(numbers.begin(), numbers.end());
  }
  if (weights.size() != all.size())
    return bad_input("a {} has {} weights, not {}", format.what, all.size(), weights.size());
  return all;
}

std::string checksum_of(std::span<const NamedTensor> weights) {
  Hasher hasher;
  for (const NamedTensor& each : weights) hasher.add(each.name).add(each.tensor.bytes());
  return fmt::format("{:016x}", hasher.value());
}

Result<Safetensors> parse_weights(std::span<const std::byte> file, std::string_view where,
                                  const WeightsFormat& format) {
  Safetensors read = HONE_TRY(parse_safetensors(file, where));
  if (Status status = check(read, format); !status.ok())
    return std::move(status).error().within(std::string(where));
  return read;
}

Result<Safetensors> weights_file(std::span<const NamedTensor> weights,
                                 const WeightsFormat& format) {
  HONE_TRY(numbers_of(weights, format));
  Safetensors file;
  file.tensors = in_order(weights, format);
  file.metadata = {{kFormat, std::string(format.name)}, {kChecksum, checksum_of(file.tensors)}};
  return file;
}

}  // namespace hone
