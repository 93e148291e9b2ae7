#include "session/inputs.h"

#include <set>
#include <utility>

#include "base/text.h"
#include "front/front_end.h"
#include "session/echo.h"
#include "tensor/filled.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

class Resolver {
 public:
  Resolver(const Graph& signature, const Face& face)
      : signature_(signature),
        face_(face),
        binder_(signature, face),
        tensors_(signature.inputs().size()) {}

  Result<RunInputs> run(Given given, int64_t seed, Engine engine) {
    HONE_TRY(binder_.add(given.sizes));
    Bindings chosen = binder_.bindings();
    for (const GivenInput& one : given.inputs) HONE_TRY(check(one));
    HONE_TRY(check_missing());
    const Bindings told = binder_.bindings();
    HONE_TRY(binder_.add_smallest(given.smallest));
    Bindings guessed = binder_.bindings();
    std::erase_if(guessed, [&](const auto& size) { return told.contains(size.first); });
    const MemoryLeft left = HONE_TRY(memory_left(signature_, binder_.bindings(), engine, face_));
    for (const GivenInput& one : given.inputs) HONE_TRY(add(one));
    std::vector<bool> is_random;
    for (const Tensor& tensor : tensors_) is_random.push_back(!tensor);
    HONE_TRY(fill(seed));
    return RunInputs{.tensors = std::move(tensors_),
                     .bindings = binder_.bindings(),
                     .chosen = std::move(chosen),
                     .guessed = std::move(guessed),
                     .memory_left = left,
                     .is_random = std::move(is_random),
                     .seed = static_cast<uint64_t>(seed)};
  }

 private:
  std::string_view input_name(size_t i) const { return signature_.name(signature_.inputs()[i]); }
  Type input_type(size_t i) const { return signature_.type(signature_.inputs()[i]); }

  // True if the model takes a tensor of its name and type.
  Status check(const GivenInput& given) {
    const Result<size_t> index = input_index(signature_, given.name);
    if (!index.ok()) return Error(index.error()).about(given.label);
    const size_t i = *index;
    if (!taken_.insert(i).second)
      return usage_error("input '{}' is given twice", excerpt(input_name(i)));
    HONE_TRY(binder_.add_shape(i, given.type().static_dims()));
    const DType held = given.type().dtype(), wanted = input_type(i).dtype();
    // numpy has no bf16 and no f8; whoever has such an input gives wider reals.
    if (held == wanted || (is_real(wanted) && is_real(held))) return {};
    return bad_input("input '{}' holds {}, {} holds {}", excerpt(input_name(i)), name(wanted),
                     given.from, name(held));
  }

  // Nobody makes up what the file of the model does not hold.
  Status check_missing() const {
    HONE_TRY(refuse_missing_calls(signature_));
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string_view name = input_name(i);
      if (name.starts_with(kMissingConstant) && !taken_.contains(i))
        return unsupported("the model cannot run: its file leaves out the numbers of a constant")
            .at(std::string(name.substr(kMissingConstant.size())))
            .with_hint(fmt::format("give them: --input '{}=FILE'", name));
    }
    return {};
  }

  Status add(const GivenInput& given) {
    const size_t i = HONE_TRY(input_index(signature_, given.name));
    Tensor tensor = HONE_TRY(given.value());
    const DType wanted = input_type(i).dtype();
    if (tensor.dtype() != wanted) {
      tensor = rounded_to(tensor, wanted);
      face_.note(fmt::format("{}: rounded to {}", given.from, name(wanted)));
    }
    tensors_[i] = std::move(tensor);
    return {};
  }

  Status fill(int64_t seed) {
    std::vector<std::string> random;
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!tensors_[i]) random.emplace_back(input_name(i));
    if (random.empty()) return {};
    std::vector<Tensor> numbers =
        HONE_TRY(random_inputs(signature_, static_cast<uint64_t>(seed), binder_.bindings()));
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!tensors_[i]) tensors_[i] = std::move(numbers[i]);
    face_.note(fmt::format("random {} {}, seed {}", random.size() == 1 ? "input" : "inputs",
                           name_list(random), seed));
    return {};
  }

  const Graph& signature_;
  const Face& face_;
  SizeBinder binder_;
  std::set<size_t> taken_;       // inputs that are given
  std::vector<Tensor> tensors_;  // by input; empty: not given
};

}  // namespace

Sizes all_sizes(const Given& given) {
  Sizes sizes = given.sizes;
  for (const GivenInput& one : given.inputs)
    sizes.shapes.try_emplace(one.name, one.type().static_dims());
  return sizes;
}

Result<Tensor> GivenInput::value() const {
  if (tensor) return tensor;
  Tensor found = HONE_TRY(read());
  if (found.type() == header) return found;
  return bad_input("{} changed while it was read", from);
}

Status refuse_missing_calls(const Graph& signature) {
  for (const ValueId input : signature.inputs()) {
    const std::string_view name = signature.name(input);
    if (name.starts_with(kMissingCall))
      return unsupported("the model cannot run: it calls '{}', which is not part of its file",
                         excerpt(name.substr(kMissingCall.size())));
  }
  return {};
}

Result<RunInputs> resolve_inputs(const Graph& signature, Given given, int64_t seed, Engine engine,
                                 const Face& face) {
  return Resolver(signature, face).run(std::move(given), seed, engine);
}

}  // namespace hone
