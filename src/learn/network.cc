#include "learn/network.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"

namespace hone {

BatchTypes types_of(const Batch& batch) {
  BatchTypes types;
  for (const auto& [name, tensor] : batch) types.emplace_back(name, tensor.type());
  return types;
}

Initializer Initializer::he(int64_t inputs) {
  return normal(std::sqrt(2.0 / static_cast<double>(std::max<int64_t>(inputs, 1))));
}

Initializer Initializer::glorot(int64_t inputs, int64_t outputs) {
  const auto sum = static_cast<double>(inputs) + static_cast<double>(outputs);
  return uniform(std::sqrt(6.0 / std::max(sum, 1.0)));
}

Tensor initial_tensor(const Initializer& initializer, Type type, std::string_view name,
                      uint64_t seed) {
  using Kind = Initializer::Kind;
  const uint64_t own_seed = hash_string(name, seed);
  if (type.dtype() == DType::f32 && initializer.kind != Kind::constant) {
    Tensor tensor = Tensor::zeros(type);
    const std::span<std::byte> bytes = tensor.mutable_bytes();
    const std::span<float> numbers(reinterpret_cast<float*>(bytes.data()),
                                   bytes.size() / sizeof(float));
    const auto scale = static_cast<float>(initializer.scale);
    if (initializer.kind == Kind::normal)
      fill_normal(numbers, own_seed, scale);
    else
      fill_uniform(numbers, own_seed, -scale, scale);
    return tensor;
  }
  Rng rng(own_seed);
  std::vector<double> values(static_cast<size_t>(type.static_elements()), initializer.scale);
  for (double& value : values) {
    if (initializer.kind == Kind::uniform)
      value = rng.uniform(-initializer.scale, initializer.scale);
    if (initializer.kind == Kind::normal) value = initializer.scale * rng.normal();
  }
  return Tensor::from_reals(type, values);
}

Value Network::port(Role role, std::string_view name, Type type, const Initializer& initializer) {
  for (size_t i = 0; i < ports_.size(); ++i)
    if (ports_[i].role == role && ports_[i].name == name) return values_[i];
  const Value value = b.parameter("", type);  // trace() names it, without the scope
  ports_.push_back({role, std::string(name), type, initializer});
  values_.push_back(value);
  return value;
}

Value Network::input(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [key, type] : batch_) {
    if (key == name) return port(Role::input, name, type);
    names.push_back(key);
  }
  b.fail(bad_input("the batch has no tensor '{}'; it has {}", name, join(names, ", "))
             .with_hint(did_you_mean(name, names)));
  return b.scalar(DType::f32, 0);
}

Value Network::weight(std::string_view name, const Dims& dims, const Initializer& initializer,
                      DType dtype) {
  const std::string full = fmt::format("{}{}", b.prefix(), name);
  const Result<Type> type = Type::make(dtype, dims);
  if (!b.ok()) return b.scalar(dtype, 0);
  Status wrong;
  if (!type.ok()) {
    wrong = type.error();
  } else if (!type->is_static() || (dtype != DType::f32 && dtype != DType::f64)) {
    wrong =
        bad_input("a weight is f32 or f64 with sizes that are numbers, not {}", type->to_string());
  }
  Value value;
  if (wrong.ok() && weights_ != nullptr) {
    const auto found = std::ranges::find(*weights_, full, &NamedTensor::name);
    if (found == weights_->end())
      wrong = bad_input("none of the trained weights has this name");
    else
      value = b.constant(found->tensor);
  } else if (wrong.ok()) {
    value = port(Role::weight, full, *type, initializer);
  }
  if (wrong.ok() && value.type() != *type)
    wrong = bad_input("it is {}, but the network asks for {}", value.type().to_string(),
                      type->to_string());
  if (wrong.ok()) return value;
  b.fail(Error(wrong.error()).about(fmt::format("weight '{}'", full)));
  return b.scalar(DType::f32, 0);
}

Value Network::named(Value value, std::string_view name) {
  std::string unique(name);
  for (int i = 2; !names_.insert(fmt::format("{}{}", b.prefix(), unique)).second; ++i)
    unique = fmt::format("{}_{}", name, i);
  return value.named(unique);
}

Value Network::random_bits(const Dims& dims) {
  const Type word = Type::scalar(DType::u64);
  const Value seed = port(Role::seed, "seed", word);
  const Value step = port(Role::step, "step", Type::scalar(DType::i64));
  const Value place = b.constant(Tensor::from_integers(
      word, std::vector{static_cast<int64_t>(hash_mix(random_places_++ + 1))}));
  // A step has 2^32 blocks for itself.
  const Value shift = b.constant(Tensor::from_integers(word, std::vector<int64_t>{32}));
  const Value counter = binary(Opcode::shift_left, cast(step, DType::u64), shift);
  return b.op(Opcode::rng_bits, {binary(Opcode::xor_, seed, place), counter},
              {{"dtype", DType::u32}, {"dims", dims}});
}

}  // namespace hone
