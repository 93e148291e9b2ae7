#include "tensor/type.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/hash.h"
#include "base/interner.h"
#include "tensor/demand.h"

namespace hone {

struct TypeData {
  DType dtype;
  Dims dims;
  bool is_static;
  int64_t elements;  // 0 if symbolic
  size_t hash_;

  size_t hash() const { return hash_; }
  bool operator==(const TypeData& other) const {
    return dtype == other.dtype && dims == other.dims;
  }
};

namespace {

// Bounds the work of multiplying the dims out, for types that come from files.
constexpr int64_t kMaxProductTerms = 4096;

std::string type_text(DType dtype, std::span<const Dim> dims) {
  std::string text = fmt::format("{}[", name(dtype));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += dims[i].to_string();
  }
  return text + "]";
}

bool is_static(std::span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_static(); });
}

std::string first_symbol(std::span<const Dim> dims) {
  for (const Dim& dim : dims)
    if (!dim.is_static()) return dim.symbols().front().name();
  return "";
}

Status check(DType dtype, std::span<const Dim> dims) {
  if (dims.size() > kMaxRank) {
    return over_limit("type {}: rank {} is above the limit of {}", name(dtype), dims.size(),
                      kMaxRank);
  }
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    int64_t low = dims[axis].range().low;
    if (low < 0) {
      demand(Demand::Kind::at_least, dims[axis], 0);
      return bad_input("type {}: the size of axis {}{} {}, below 0", type_text(dtype, dims), axis,
                       dims[axis].is_static() ? " is" : " can be", low);
    }
  }
  // An axis of size 0 counts as 1, so that strides cannot overflow either.
  int64_t most = 1, most_static = 1, terms = 1;
  for (const Dim& dim : dims) {
    const int64_t high = std::max<int64_t>(dim.range().high, 1);
    most = (Dim(most) * high).value();
    if (dim.is_static()) most_static = (Dim(most_static) * high).value();
    terms = std::min(terms * static_cast<int64_t>(dim.term_count()), kMaxProductTerms + 1);
  }
  if (most_static > kMaxElements) {
    return over_limit("type {}: {}{}{} elements, above the limit of 2^40", type_text(dtype, dims),
                      is_static(dims) ? "up to " : "its static dims alone make ", most_static,
                      most_static == kDimLimit ? " or more" : "");
  }
  if (most > kMaxSymbolicElements) {
    demand({Demand::Kind::elements, Dims(dims.begin(), dims.end())});
    return over_limit("type {}: up to {}{} elements, above the limit of 2^60 for symbolic types",
                      type_text(dtype, dims), most, most == kDimLimit ? " or more" : "")
        .with_hint(fmt::format("give its symbols smaller ranges, as in 'where {} in 1..64'",
                               first_symbol(dims)));
  }
  if (terms > kMaxProductTerms) {
    return over_limit("type {}: its dims are too complex to multiply", type_text(dtype, dims));
  }
  return {};
}

TypeData make_data(DType dtype, std::span<const Dim> dims) {
  TypeData data = {dtype, Dims(dims.begin(), dims.end()), true, 1, 0};
  Hasher hasher;
  hasher.add(dtype);
  for (const Dim& dim : dims) hasher.add(dim.hash());
  data.is_static = is_static(dims);
  data.hash_ = hasher.value();
  if (!data.is_static) {
    data.elements = 0;
    return data;
  }
  for (const Dim& dim : dims) data.elements *= dim.value();
  return data;
}

Interner<TypeData>& interner() {
  static auto* instance = new Interner<TypeData>;  // never destroyed: types are immortal
  return *instance;
}

}  // namespace

Result<Type> Type::make(DType dtype, std::span<const Dim> dims) {
  HONE_TRY(check(dtype, dims));
  return Type(interner().intern(make_data(dtype, dims)));
}

Type Type::get(DType dtype, std::span<const Dim> dims) {
  Result<Type> type = make(dtype, dims);
  HONE_CHECK(type.ok(), "{}", type.error().what());
  return *type;
}

DType Type::dtype() const {
  HONE_CHECK(data_ != nullptr, "an absent type");
  return data_->dtype;
}

std::span<const Dim> Type::dims() const {
  HONE_CHECK(data_ != nullptr, "an absent type");
  return data_->dims;
}

bool Type::is_static() const {
  HONE_CHECK(data_ != nullptr, "an absent type");
  return data_->is_static;
}

Dim Type::elements() const {
  if (is_static()) return data_->elements;
  Dim product = 1;
  for (const Dim& dim : dims()) product *= dim;
  return product;
}

int64_t Type::static_elements() const {
  HONE_CHECK(is_static(), "{}", to_string());
  return data_->elements;
}

Ints Type::static_dims() const {
  HONE_CHECK(is_static(), "{}", to_string());
  Ints sizes;
  sizes.reserve(data_->dims.size());
  for (const Dim& dim : data_->dims) sizes.push_back(dim.value());
  return sizes;
}

int64_t Type::static_bytes() const { return (static_elements() * bits(dtype()) + 7) / 8; }

std::byte Type::bits_of_last_byte() const {
  const int rest = bits(dtype()) < 8 ? static_cast<int>(static_elements() * bits(dtype()) % 8) : 0;
  return rest == 0 ? std::byte{0xff} : static_cast<std::byte>((1 << rest) - 1);
}

Type Type::with_dtype(DType dtype) const { return get(dtype, dims()); }
Type Type::with_dims(std::span<const Dim> dims) const { return get(dtype(), dims); }

Result<Type> Type::bind(const Bindings& bindings) const {
  if (is_static() || bindings.empty()) return *this;
  Dims bound(dims().begin(), dims().end());
  for (Dim& dim : bound) dim = dim.bind(bindings);
  return make(dtype(), bound);
}

std::string Type::to_string() const {
  return data_ == nullptr ? "absent" : type_text(data_->dtype, data_->dims);
}

size_t Type::hash() const { return data_ == nullptr ? 0 : data_->hash(); }

Ints row_major_strides(std::span<const int64_t> dims) {
  Ints strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace hone
