#include "formats/gguf.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/checked_math.h"
#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr uint32_t kNewest = 3, kOldest = 2;
constexpr int64_t kDefaultAlignment = 32, kMostAlignment = int64_t{1} << 20;
constexpr uint64_t kMostKeys = 1 << 16, kMostTensors = 1 << 17;
constexpr uint64_t kMostItems = 1 << 24;  // of an array: 256 times those of large vocabularies
constexpr size_t kMostKeyBytes = 65535, kMostNameBytes = 64;
constexpr uint32_t kMostDims = 4;

constexpr GgufType kTypes[] = {
    {0, "F32", 4, 1},         {1, "F16", 2, 1},       {2, "Q4_0", 18, 32},
    {3, "Q4_1", 20, 32},      {6, "Q5_0", 22, 32},    {7, "Q5_1", 24, 32},
    {8, "Q8_0", 34, 32},      {9, "Q8_1", 36, 32},    {10, "Q2_K", 84, 256},
    {11, "Q3_K", 110, 256},   {12, "Q4_K", 144, 256}, {13, "Q5_K", 176, 256},
    {14, "Q6_K", 210, 256},   {15, "Q8_K", 292, 256}, {16, "IQ2_XXS", 0, 1},
    {17, "IQ2_XS", 0, 1},     {18, "IQ3_XXS", 0, 1},  {19, "IQ1_S", 0, 1},
    {20, "IQ4_NL", 18, 32},   {21, "IQ3_S", 0, 1},    {22, "IQ2_S", 0, 1},
    {23, "IQ4_XS", 136, 256}, {24, "I8", 1, 1},       {25, "I16", 2, 1},
    {26, "I32", 4, 1},        {27, "I64", 8, 1},      {28, "F64", 8, 1},
    {29, "IQ1_M", 0, 1},      {30, "BF16", 2, 1},     {34, "TQ1_0", 0, 1},
    {35, "TQ2_0", 0, 1},      {39, "MXFP4", 17, 32},  {40, "NVFP4", 0, 1},
    {41, "Q1_0", 0, 1},       {42, "Q2_0", 0, 1},
};

// The types of metadata, by their numbers.
enum class GgufKind : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};
constexpr uint32_t kGgufKinds = 13;
constexpr size_t kKindBytes[kGgufKinds] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least

bool is_real(GgufKind kind) { return kind == GgufKind::f32 || kind == GgufKind::f64; }

class GgufParser {
 public:
  explicit GgufParser(std::span<const std::byte> file) : file_(file) {}

  Result<Gguf> parse() {
    HONE_TRY(begin());
    const uint64_t tensors = HONE_TRY(number<uint64_t>("the number of tensors"));
    const uint64_t keys = HONE_TRY(number<uint64_t>("the number of keys"));
    if (tensors > kMostTensors)
      return over_limit("the file has {} tensors, more than {}", tensors, kMostTensors);
    if (keys > kMostKeys) return over_limit("the file has {} keys, more than {}", keys, kMostKeys);
    for (uint64_t i = 0; i < keys; ++i) HONE_TRY(add_key());
    for (uint64_t i = 0; i < tensors; ++i) HONE_TRY(add_tensor());
    HONE_TRY(place_tensors());
    return std::move(gguf_);
  }

 private:
  size_t left() const { return file_.size() - at_; }

  Status need(uint64_t bytes, std::string_view what) const {
    if (bytes <= left()) return {};
    return bad_input("the file ends within {}: {} bytes are needed at byte {}, {} are there", what,
                     bytes, at_, left());
  }

  template <class T>
  T taken() {
    T value;
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  template <class T>
  Result<T> number(std::string_view what) {
    HONE_TRY(need(sizeof(T), what));
    return taken<T>();
  }

  Result<std::string_view> text(std::string_view what) {
    const uint64_t size = HONE_TRY(number<uint64_t>(what));
    HONE_TRY(need(size, what));
    const std::string_view found(reinterpret_cast<const char*>(file_.data()) + at_,
                                 static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return found;
  }

  Status begin() {
    HONE_TRY(need(8, "the beginning"));
    if (std::memcmp(file_.data(), kGgufMagic.data(), kGgufMagic.size()) != 0)
      return bad_input("not a GGUF file: it does not begin with '{}'", kGgufMagic);
    at_ = kGgufMagic.size();
    const auto version = taken<uint32_t>();
    if (version >= kOldest && version <= kNewest) return {};
    if (const uint32_t swapped = __builtin_bswap32(version); swapped <= kNewest)
      return unsupported("the file is big-endian").with_hint("convert it for this machine");
    return unsupported("the file has version {}; versions {} to {} are known", version, kOldest,
                       kNewest);
  }

  Result<GgufKind> kind(std::string_view what) {
    const uint32_t number = HONE_TRY(this->number<uint32_t>(what));
    if (number >= kGgufKinds)
      return bad_input("{} has type {}; the format has {}", what, number, kGgufKinds);
    return static_cast<GgufKind>(number);
  }

  // A number that is known to be there.
  Result<int64_t> integer(GgufKind kind) {
    switch (kind) {
      case GgufKind::u8: return taken<uint8_t>();
      case GgufKind::i8: return taken<int8_t>();
      case GgufKind::u16: return taken<uint16_t>();
      case GgufKind::i16: return taken<int16_t>();
      case GgufKind::u32: return taken<uint32_t>();
      case GgufKind::i32: return taken<int32_t>();
      case GgufKind::i64: return taken<int64_t>();
      case GgufKind::boolean: {
        const auto value = taken<uint8_t>();
        if (value > 1) return bad_input("a bool is {}", value);
        return value;
      }
      case GgufKind::u64: {
        const auto value = taken<uint64_t>();
        if (value > static_cast<uint64_t>(INT64_MAX))
          return over_limit("a number is {}, more than {}", value, INT64_MAX);
        return static_cast<int64_t>(value);
      }
      default: HONE_CHECK(false, "not an integer"); return 0;
    }
  }
  double real(GgufKind kind) {
    return kind == GgufKind::f32 ? static_cast<double>(taken<float>()) : taken<double>();
  }

  template <class T, class Take>
  Result<GgufValue> items(uint64_t count, const Take& take) {
    std::vector<T> found;
    found.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) found.push_back(HONE_TRY(take()));
    return GgufValue(std::move(found));
  }

  Result<GgufValue> array() {
    const GgufKind kind = HONE_TRY(this->kind("an array"));
    if (kind == GgufKind::array) return unsupported("an array of arrays");
    const uint64_t count = HONE_TRY(number<uint64_t>("the length of an array"));
    if (count > kMostItems)
      return over_limit("an array has {} items, more than {}", count, kMostItems);
    HONE_TRY(need(count * kKindBytes[static_cast<size_t>(kind)], "an array"));
    if (kind == GgufKind::text)
      return items<std::string_view>(count, [&] { return text("a text of an array"); });
    if (is_real(kind)) return items<double>(count, [&] { return Result<double>(real(kind)); });
    return items<int64_t>(count, [&] { return integer(kind); });
  }

  Result<GgufValue> value() {
    const GgufKind kind = HONE_TRY(this->kind("a value"));
    HONE_TRY(need(kKindBytes[static_cast<size_t>(kind)], "a value"));
    if (kind == GgufKind::text) return GgufValue(HONE_TRY(text("a text")));
    if (kind == GgufKind::array) return array();
    if (is_real(kind)) return GgufValue(real(kind));
    const int64_t number = HONE_TRY(integer(kind));
    if (kind == GgufKind::boolean) return GgufValue(number != 0);
    return GgufValue(number);
  }

  Status add_key() {
    const std::string_view key = HONE_TRY(text("a key"));
    if (key.size() > kMostKeyBytes)
      return over_limit("a key has {} bytes, more than {}", key.size(), kMostKeyBytes);
    Result<GgufValue> found = value();
    if (!found.ok()) return std::move(found).error().about(fmt::format("key {}", quote(key)));
    if (!gguf_.metadata.emplace(key, *std::move(found)).second)
      return bad_input("two keys are called {}", quote(key));
    return {};
  }

  static std::string quote(std::string_view name) { return hone::quoted(excerpt(name)); }

  Status add_tensor() {
    GgufTensor tensor;
    tensor.name = HONE_TRY(text("the name of a tensor"));
    if (tensor.name.size() > kMostNameBytes)
      return over_limit("the name of tensor {} has {} bytes, more than {}", quote(tensor.name),
                        tensor.name.size(), kMostNameBytes);
    if (!names_.insert(tensor.name).second)
      return bad_input("two tensors are called {}", quote(tensor.name));
    Status described = describe(tensor);
    if (!described.ok())
      return std::move(described).error().about(fmt::format("tensor {}", quote(tensor.name)));
    gguf_.tensors.push_back(std::move(tensor));
    return {};
  }

  Status describe(GgufTensor& tensor) {
    const uint32_t rank = HONE_TRY(number<uint32_t>("the rank"));
    if (rank == 0 || rank > kMostDims)
      return bad_input("it has {} dims; 1 to {} are possible", rank, kMostDims);
    for (uint32_t i = 0; i < rank; ++i) {
      const uint64_t dim = HONE_TRY(number<uint64_t>("a dim"));
      if (dim == 0 || dim > static_cast<uint64_t>(INT64_MAX))
        return bad_input("dim {} is {}", i, dim);
      tensor.dims.insert(tensor.dims.begin(), static_cast<int64_t>(dim));
    }
    const uint32_t id = HONE_TRY(number<uint32_t>("the type"));
    tensor.type = gguf_type(id);
    if (tensor.type == nullptr) return bad_input("its type is {}, which the format lacks", id);
    if (tensor.type->bytes == 0)
      return unsupported("its elements are {}, which hone does not read", tensor.type->name);
    if (tensor.dims.back() % tensor.type->elements != 0)
      return bad_input("its rows have {} elements, but a block of {} has {}", tensor.dims.back(),
                       tensor.type->name, tensor.type->elements);
    const std::optional<int64_t> elements = checked_product(tensor.dims);
    const std::optional<int64_t> bytes =
        elements ? checked_mul(*elements / tensor.type->elements, tensor.type->bytes)
                 : std::nullopt;
    if (!bytes) return over_limit("its size does not fit in 64 bits");
    const uint64_t offset = HONE_TRY(number<uint64_t>("the offset"));
    if (offset > file_.size() || static_cast<uint64_t>(*bytes) > file_.size())
      return bad_input("it has {} bytes at {} of the data, but the file has {}", *bytes, offset,
                       file_.size());
    places_.push_back({offset, static_cast<uint64_t>(*bytes)});
    return {};
  }

  Result<int64_t> alignment() const {
    const int64_t* const given = HONE_TRY(gguf_.get<int64_t>("general.alignment"));
    if (given == nullptr) return kDefaultAlignment;
    if (!is_power_of_two(*given) || *given > kMostAlignment)
      return bad_input("general.alignment is {}, not a power of two up to {}", *given,
                       kMostAlignment);
    return *given;
  }

  // All tensors lie in the data, aligned, and none overlaps another.
  Status place_tensors() {
    const auto alignment = static_cast<uint64_t>(HONE_TRY(this->alignment()));
    const size_t begin = (at_ + alignment - 1) / alignment * alignment;
    const std::span<const std::byte> data = gguf_.tensors.empty() || begin >= file_.size()
                                                ? std::span<const std::byte>()
                                                : file_.subspan(begin);
    for (size_t i = 0; i < gguf_.tensors.size(); ++i) {
      GgufTensor& tensor = gguf_.tensors[i];
      const auto [offset, bytes] = places_[i];
      if (offset % alignment != 0)
        return bad_input("tensor {} begins at {}, which {} does not divide", quote(tensor.name),
                         offset, alignment);
      if (offset > data.size() || bytes > data.size() - offset)
        return bad_input("tensor {} has {} bytes at {} of the data, which has {}",
                         quote(tensor.name), bytes, offset, data.size());
      tensor.bytes = data.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
    }
    std::ranges::sort(gguf_.tensors, {}, [](const GgufTensor& t) { return t.bytes.data(); });
    for (size_t i = 1; i < gguf_.tensors.size(); ++i) {
      const GgufTensor &one = gguf_.tensors[i - 1], &next = gguf_.tensors[i];
      if (one.bytes.data() + one.bytes.size() > next.bytes.data())
        return bad_input("tensors {} and {} overlap", quote(one.name), quote(next.name));
    }
    return {};
  }

  struct Place {
    uint64_t offset;
    uint64_t bytes;
  };

  std::span<const std::byte> file_;
  size_t at_ = 0;
  Gguf gguf_;
  std::set<std::string_view> names_;
  std::vector<Place> places_;  // of the tensors
};

}  // namespace

const GgufType* gguf_type(uint32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &GgufType::id);
  return found == std::end(kTypes) ? nullptr : found;
}

int64_t GgufTensor::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  return rows;
}

const GgufTensor* Gguf::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &GgufTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

Error Gguf::of_other_kind(std::string_view key, const GgufValue& value) {
  constexpr std::string_view kNames[] = {
      "an integer",        "a real",           "a bool", "a text", "an array of integers",
      "an array of reals", "an array of texts"};
  return bad_input("key {} is {}, which it must not be", hone::quoted(excerpt(key)),
                   kNames[value.index()]);
}

bool begins_like_gguf(std::string_view beginning) { return beginning.starts_with(kGgufMagic); }

Result<Gguf> parse_gguf(std::span<const std::byte> file, std::string_view where,
                        std::shared_ptr<const void> owner) {
  Result<Gguf> found = GgufParser(file).parse();
  if (!found.ok()) return std::move(found).error().within(where);
  found->owner = std::move(owner);
  return found;
}

Result<Gguf> read_gguf(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  const std::span<const std::byte> bytes = file->bytes();
  return parse_gguf(bytes, path.native(), std::move(file));
}

}  // namespace hone
