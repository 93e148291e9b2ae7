#include "front/onnx/tensor_source.h"
#include "formats/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace hone::onnx_io {

namespace {

enum Form : int {  // field numbers in TensorProto
  kFloat = 4,
  kInt32 = 5,
  kInt64 = 7,
  kRaw = 9,
  kDouble = 10,
  kUint64 = 11,
  kExternal = 13
};

std::string form_name(int form) {
  return onnx::TensorProto::descriptor()->FindFieldByNumber(form)->name();
}

// The field that holds the numbers of a type if they are not raw.
int typed_form(DType dtype) {
  switch (dtype) {
    case DType::f32: return kFloat;
    case DType::f64: return kDouble;
    case DType::i64: return kInt64;
    case DType::u32:
    case DType::u64: return kUint64;
    default: return kInt32;
  }
}

// The meaning of one number in a typed field: an element, or a byte of them.
struct Unit {
  int64_t count = 0;  // in the tensor
  size_t bytes = 0;
  int64_t lowest = 0;
  uint64_t highest = 0;
};

Unit unit_of(Type type) {
  const int width = bits(type.dtype());
  Unit unit;
  unit.count = width < 8 ? type.static_bytes() : type.static_elements();
  unit.bytes = static_cast<size_t>(std::max(width, 8)) / 8;
  const int unit_bits = std::max(width, 8);
  const bool is_signed = kind(type.dtype()) == DTypeKind::sint && width >= 8;
  unit.highest = ~uint64_t{0} >> (64 - unit_bits + (is_signed ? 1 : 0));
  if (is_signed) unit.lowest = -static_cast<int64_t>(unit.highest) - 1;
  return unit;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Equal tensors have equal bytes: a true is a 1, and unused bits are 0.
bool is_canonical(Type type, std::span<const std::byte> bytes) {
  if (is_bool(type.dtype())) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b <= std::byte{1}; });
  }
  return (bytes.back() & ~type.bits_of_last_byte()) == std::byte{0};
}

Tensor canonical_copy(Type type, std::span<const std::byte> bytes) {
  Tensor tensor = Tensor::copy_of(type, bytes);
  if (is_bool(type.dtype())) {
    for (std::byte& b : tensor.mutable_bytes()) b = std::byte{b != std::byte{0}};
  }
  return tensor;
}

// Without an owner the bytes are copied. Their count has been checked.
Result<Tensor> from_bytes(Type type, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> owner) {
  if (bytes.empty()) return Tensor::zeros(type);
  if (owner == nullptr || !is_canonical(type, bytes)) return canonical_copy(type, bytes);
  return Tensor::shared(type, std::move(owner), bytes);
}

Status check_size(Type type, std::string_view what, size_t bytes) {
  if (std::cmp_equal(bytes, type.static_bytes())) return {};
  return bad_input("{} holds {} bytes, but {} needs {}", what, bytes, type.to_string(),
                   type.static_bytes());
}

Status check_count(Type type, std::string_view what, int64_t count, int64_t needed) {
  if (count == needed) return {};
  return bad_input("{} holds {} numbers, but {} needs {}", what, count, type.to_string(), needed);
}

std::string tensor_label(const std::string& name) {
  return name.empty() ? "tensor without a name" : fmt::format("tensor '{}'", escape(name));
}

// Bytes at the place in the file that the tensor owns.
Result<std::span<const std::byte>> external_bytes(Type type, const ExternalPlace& place,
                                                  std::span<const std::byte> file) {
  const int64_t needed = type.static_bytes();
  const auto size = static_cast<int64_t>(file.size());
  if (place.length && *place.length != needed) {
    return bad_input("external_data: length is {} bytes, but {} needs {}", *place.length,
                     type.to_string(), needed);
  }
  if (place.offset > size || needed > size - place.offset) {
    return bad_input("external_data: {} needs {} bytes at offset {} of {}, which has {}",
                     type.to_string(), needed, place.offset, hone::quoted(place.location), size);
  }
  return file.subspan(static_cast<size_t>(place.offset), static_cast<size_t>(needed));
}

}  // namespace

Result<Type> claimed_type(int32_t data_type, const google::protobuf::RepeatedField<int64_t>& dims,
                          const OnnxLimits& limits) {
  const DType dtype = HONE_TRY(dtype_of(data_type));
  if (dims.size() > kMaxRank) {  // before the dims are copied
    return over_limit("rank {} is above the limit of {}", dims.size(), kMaxRank);
  }
  const Type type = HONE_TRY(Type::make(dtype, Dims(dims.begin(), dims.end())));
  if (type.static_bytes() > limits.tensor_bytes) {
    return over_limit("{} takes {} bytes, the limit is {}", type.to_string(), type.static_bytes(),
                      limits.tensor_bytes);
  }
  return type;
}

struct TensorSource::Stored {
  int form = 0;  // 0: no data
  const Payload* payload = nullptr;
};

Result<TensorSource::Stored> TensorSource::stored(const onnx::TensorProto& proto) const {
  std::vector<Stored> found;
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) found.push_back({kExternal});
  if (!proto.raw_data().empty()) found.push_back({kRaw});
  if (proto.float_data_size() > 0) found.push_back({kFloat});
  if (proto.int32_data_size() > 0) found.push_back({kInt32});
  if (proto.int64_data_size() > 0) found.push_back({kInt64});
  if (proto.double_data_size() > 0) found.push_back({kDouble});
  if (proto.uint64_data_size() > 0) found.push_back({kUint64});
  const google::protobuf::UnknownFieldSet& fields = proto.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() != kPayloadField) continue;
    const uint64_t index = fields.field(i).varint();
    HONE_CHECK(index < payloads_.size(), "payload {} of {}", index, payloads_.size());
    found.push_back({payloads_[index].field, &payloads_[index]});
  }
  if (proto.string_data_size() > 0) return bad_input("string_data is given for numbers");
  if (found.size() > 1) {
    return bad_input("the data is given twice: in {} and in {}", form_name(found[0].form),
                     form_name(found[1].form));
  }
  if (proto.data_location() != onnx::TensorProto::EXTERNAL && proto.external_data_size() > 0) {
    return bad_input("external_data is given, but data_location is not EXTERNAL");
  }
  return found.empty() ? Stored{} : found.front();
}

Result<Tensor> TensorSource::dense(const onnx::TensorProto& proto) const {
  Result<Tensor> tensor = unnamed(proto);
  if (!tensor.ok()) return std::move(tensor).error().within(tensor_label(proto.name()));
  return tensor;
}

Result<Tensor> TensorSource::unnamed(const onnx::TensorProto& proto) const {
  if (proto.has_segment()) return unsupported("tensors in segments are not supported");
  const Type type = HONE_TRY(claimed_type(proto.data_type(), proto.dims(), limits_));
  const Stored data = HONE_TRY(stored(proto));
  if (data.form == 0) {
    if (type.static_elements() == 0) return Tensor::zeros(type);
    return bad_input("no data is given for the {} bytes of {}", type.static_bytes(),
                     type.to_string());
  }
  const int typed = typed_form(type.dtype());
  if (data.form != kRaw && data.form != kExternal && data.form != typed) {
    return bad_input("the data is in {}, but that of {} belongs in {} or raw_data",
                     form_name(data.form), data_type_name(proto.data_type()), form_name(typed));
  }
  return from_stored(type, proto, data);
}

namespace {
template <class T>
std::span<const T> span_of(const google::protobuf::RepeatedField<T>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}
}  // namespace

Result<Tensor> TensorSource::from_stored(Type type, const onnx::TensorProto& proto,
                                         const Stored& data) const {
  switch (data.form) {
    case kExternal: return from_external(type, proto);
    case kRaw: return from_raw(type, proto, data.payload);
    case kFloat: return from_reals(type, data.payload, span_of(proto.float_data()));
    case kDouble: return from_reals(type, data.payload, span_of(proto.double_data()));
    case kInt64: return from_integers(type, data.payload, span_of(proto.int64_data()));
    case kUint64: return from_integers(type, data.payload, span_of(proto.uint64_data()));
    default: return from_integers(type, data.payload, span_of(proto.int32_data()));
  }
}

Result<Tensor> TensorSource::from_external(Type type, const onnx::TensorProto& proto) const {
  const ExternalPlace place = HONE_TRY(external_place(proto));
  std::shared_ptr<const MappedFile> file = HONE_TRY(external_.map(place.location));
  const std::span<const std::byte> bytes = HONE_TRY(external_bytes(type, place, file->bytes()));
  return from_bytes(type, bytes, std::move(file));
}

Result<Tensor> TensorSource::from_pieces(Type type, const Payload& payload) const {
  size_t size = 0;
  for (const FileRange& piece : payload.pieces) size += piece.size();
  HONE_TRY(check_size(type, form_name(payload.field), size));
  if (payload.pieces.size() == 1) {
    return from_bytes(type, file_.subspan(payload.pieces.front().begin, size), owner_);
  }
  Tensor tensor = Tensor::zeros(type);
  std::byte* out = tensor.mutable_bytes().data();
  for (const FileRange& piece : payload.pieces) {
    if (piece.size() > 0) std::memcpy(out, file_.data() + piece.begin, piece.size());
    out += piece.size();
  }
  return tensor;
}

Result<Tensor> TensorSource::from_raw(Type type, const onnx::TensorProto& proto,
                                      const Payload* payload) const {
  if (payload != nullptr) return from_pieces(type, *payload);
  HONE_TRY(check_size(type, "raw_data", proto.raw_data().size()));
  return from_bytes(type, bytes_of(proto.raw_data()), nullptr);
}

template <class T>
Result<Tensor> TensorSource::from_reals(Type type, const Payload* payload,
                                        std::span<const T> values) const {
  const std::string_view what = sizeof(T) == 4 ? "float_data" : "double_data";
  if (payload == nullptr) {
    HONE_TRY(check_count(type, what, std::ssize(values), type.static_elements()));
    return Tensor::copy_of(type, std::as_bytes(values));
  }
  return from_pieces(type, *payload);
}

template <class T>
Result<Tensor> TensorSource::from_integers(Type type, const Payload* payload,
                                           std::span<const T> values) const {
  const std::string what = form_name(typed_form(type.dtype()));
  const Unit unit = unit_of(type);
  int64_t count = std::ssize(values);
  if (payload != nullptr) {
    count = 0;
    for (const FileRange& piece : payload->pieces) {
      count += HONE_TRY(count_varints(file_.subspan(piece.begin, piece.size())));
    }
  }
  HONE_TRY(check_count(type, what, count, unit.count));

  Tensor tensor = Tensor::zeros(type);
  std::byte* out = tensor.mutable_bytes().data();
  const bool truth = is_bool(type.dtype());
  std::optional<std::pair<int64_t, T>> outside;
  int64_t index = 0;
  const auto take = [&](T value) {
    if (truth) value = value != 0;
    if (std::cmp_less(value, unit.lowest) || std::cmp_greater(value, unit.highest)) {
      if (!outside) outside = {index, value};
    }
    std::memcpy(out + static_cast<size_t>(index++) * unit.bytes, &value, unit.bytes);
  };
  if (payload == nullptr) {
    std::ranges::for_each(values, take);
  } else {
    for (const FileRange& piece : payload->pieces) {
      for_each_varint(file_.subspan(piece.begin, piece.size()),
                      [&](uint64_t value) { take(static_cast<T>(value)); });
    }
  }
  if (outside) {
    return bad_input("number {} of {} is {}, outside of [{}, {}] of {}", outside->first, what,
                     outside->second, unit.lowest, unit.highest, name(type.dtype()));
  }
  std::span<std::byte> bytes = tensor.mutable_bytes();
  if (!bytes.empty() && !is_canonical(type, bytes)) bytes.back() &= std::byte{0x0f};
  return tensor;
}

}  // namespace hone::onnx_io
