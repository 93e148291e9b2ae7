#include "formats/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/checked_math.h"
#include "base/file.h"
#include "base/text.h"

namespace hone {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // to write: adding to it takes time by its size

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the format says
// Limits tensors, texts of metadata, and all their parts.
constexpr size_t kMaxKeys = 1 << 17, kMaxParts = kMaxKeys * 32;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<DType, std::string_view> kDTypes[] = {
    {DType::f64, "F64"},
    {DType::f32, "F32"},
    {DType::f16, "F16"},
    {DType::bf16, "BF16"},
    {DType::f8e4m3fn, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"},
    {DType::f8e8m0, "F8_E8M0"},
    {DType::i64, "I64"},
    {DType::i32, "I32"},
    {DType::i16, "I16"},
    {DType::i8, "I8"},
    {DType::u64, "U64"},
    {DType::u32, "U32"},
    {DType::u16, "U16"},
    {DType::u8, "U8"},
    {DType::boolean, "BOOL"},
};

Result<DType> dtype_named(std::string_view text) {
  for (const auto& [dtype, word] : kDTypes)
    if (word == text) return dtype;
  return bad_input("the element type is {}, which the format does not have",
                   hone::quoted(excerpt(text)));
}

// ---- Reading ------------------------------------------------------------------------------------

// A tensor as the header describes it; its bytes are [begin, end) of the data.
struct Entry {
  std::string name;
  Type type;
  int64_t begin = 0;
  int64_t end = 0;
};

Result<int64_t> natural(const Json& value, std::string_view what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return bad_input("{} is {}, not a natural number", what, excerpt(value.dump()));
  return value.get<int64_t>();
}

Result<const Json*> field(const Json& object, const char* name, Json::value_t kind) {
  const auto found = object.find(name);
  if (found == object.end()) return bad_input("'{}' is missing", name);
  if (found->type() != kind) return bad_input("'{}' is a {}", name, found->type_name());
  return &*found;
}

Result<Type> type_of(const Json& object) {
  const Json* word = HONE_TRY(field(object, "dtype", Json::value_t::string));
  const DType dtype = HONE_TRY(dtype_named(word->get_ref<const std::string&>()));
  const Json* shape = HONE_TRY(field(object, "shape", Json::value_t::array));
  if (shape->size() > static_cast<size_t>(kMaxRank))
    return bad_input("the shape has {} dims; at most {} are possible", shape->size(), kMaxRank);
  Dims dims;
  for (const Json& dim : *shape) dims.emplace_back(HONE_TRY(natural(dim, "a dim")));
  return Type::make(dtype, dims);
}

Result<Entry> entry_of(const std::string& name, const Json& object) {
  if (!object.is_object()) return bad_input("it is a {}, not an object", object.type_name());
  Entry entry = {name, HONE_TRY(type_of(object))};
  const Json* offsets = HONE_TRY(field(object, "data_offsets", Json::value_t::array));
  if (offsets->size() != 2)
    return bad_input("'data_offsets' has {} numbers, not 2", offsets->size());
  entry.begin = HONE_TRY(natural((*offsets)[0], "the first offset"));
  entry.end = HONE_TRY(natural((*offsets)[1], "the second offset"));
  const int64_t bytes = entry.type.static_bytes();
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    return bad_input("{} has {} bytes, but the offsets are {} and {}", entry.type.to_string(),
                     bytes, entry.begin, entry.end);
  return entry;
}

Status read_metadata(const Json& object, std::map<std::string, std::string>& metadata) {
  if (!object.is_object())
    return bad_input("'{}' is a {}, not an object", kMetadata, object.type_name());
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      return bad_input("{} of '{}' is a {}, not a text", hone::quoted(excerpt(key)), kMetadata,
                       value.type_name());
    metadata[key] = value.get<std::string>();
  }
  return {};
}

// The header as JSON. Keys that repeat would hide tensors, so they are looked for while parsing.
// Entries beyond the limits are not kept.
Result<Json> parse_header(std::string_view text) {
  std::set<std::string> names;
  std::string repeated;
  bool is_repeated = false;
  size_t keys = 0, parts = 0;
  size_t metadata_keys = 0;
  bool in_metadata = false;
  const auto watch = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > 4 || ++parts > kMaxParts) return false;
    if (event != Json::parse_event_t::key) return true;
    if (depth == 1) in_metadata = parsed.get_ref<const std::string&>() == kMetadata;
    if (depth == 2 && in_metadata) return ++metadata_keys <= kMaxKeys;
    if (depth != 1) return true;
    if (++keys > kMaxKeys) return false;
    const std::string& name = parsed.get_ref<const std::string&>();
    if (!names.insert(name).second) repeated = name, is_repeated = true;
    return true;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (keys > kMaxKeys) return over_limit("the header has {} tensors, more than {}", keys, kMaxKeys);
  if (metadata_keys > kMaxKeys)
    return over_limit("'{}' has {} texts, more than {}", kMetadata, metadata_keys, kMaxKeys);
  if (parts > kMaxParts)
    return over_limit("the header has {} parts, more than {}", parts, kMaxParts);
  if (!header.is_object()) return bad_input("the header is not a JSON object");
  if (is_repeated) return bad_input("two tensors are called {}", hone::quoted(excerpt(repeated)));
  return header;
}

// Tensors in the order of their bytes. They fill the data, without holes and without overlaps.
Status check_offsets(std::vector<Entry>& entries, int64_t data_bytes) {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tie(e.begin, e.end, e.name); });
  int64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != next)
      return bad_input(
          "tensor {} begins at byte {} of the data, {}, which ends at {}",
          hone::quoted(excerpt(entry.name)), entry.begin,
          entry.begin < next ? "within the one before it" : "apart from the one before it", next);
    next = entry.end;
  }
  if (next != data_bytes)
    return bad_input("the tensors have {} bytes, but {} come after the header", next, data_bytes);
  return {};
}

Result<Tensor> tensor_of(const Entry& entry, std::span<const std::byte> data,
                         const std::shared_ptr<const void>& owner) {
  if (entry.begin == entry.end) return Tensor::zeros(entry.type);
  const std::span<const std::byte> bytes =
      data.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin));
  if (is_bool(entry.type.dtype()) &&
      std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
    return bad_input("tensor {} is bool, but has bytes other than 0 and 1",
                     hone::quoted(excerpt(entry.name)));
  if (owner == nullptr) return Tensor::copy_of(entry.type, bytes);
  return Tensor::shared(entry.type, owner, bytes);
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> file,
                                      const std::shared_ptr<const void>& owner) {
  if (file.size() < kLengthBytes)
    return bad_input("the file has {} bytes; a safetensors file has at least {}", file.size(),
                     kLengthBytes);
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeaderBytes)
    return bad_input(
        "not a safetensors file: the header would have {} bytes; at most {} are allowed", length,
        kMaxHeaderBytes);
  if (length > file.size() - kLengthBytes)
    return bad_input("the header has {} bytes, but only {} are there", length,
                     file.size() - kLengthBytes);
  const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  const Json header = HONE_TRY(parse_header({text, static_cast<size_t>(length)}));
  const std::span<const std::byte> data = file.subspan(kLengthBytes + static_cast<size_t>(length));

  Safetensors content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata) {
      HONE_TRY(read_metadata(value, content.metadata));
      continue;
    }
    Result<Entry> entry = entry_of(name, value);
    if (!entry.ok())
      return std::move(entry).error().about(fmt::format("tensor {}", hone::quoted(excerpt(name))));
    entries.push_back(*std::move(entry));
  }
  HONE_TRY(check_offsets(entries, static_cast<int64_t>(data.size())));
  for (const Entry& entry : entries)
    content.tensors.push_back({entry.name, HONE_TRY(tensor_of(entry, data, owner))});
  return content;
}

// ---- Writing ------------------------------------------------------------------------------------

Result<OrderedJson> entry_json(const std::string& name, Type type, int64_t begin) {
  const auto* row =
      std::ranges::find(kDTypes, type.dtype(), &std::pair<DType, std::string_view>::first);
  if (row == std::end(kDTypes))
    return unsupported("tensor {} is {}, which safetensors files cannot hold",
                       hone::quoted(excerpt(name)), type.to_string());
  return OrderedJson{{"dtype", row->second},
                     {"shape", type.static_dims()},
                     {"data_offsets", {begin, begin + type.static_bytes()}}};
}

Result<std::string> header_text(const Safetensors& content) {
  OrderedJson header = OrderedJson::object();
  if (!content.metadata.empty()) header[std::string(kMetadata)] = content.metadata;
  int64_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    if (name == kMetadata || header.contains(name))
      return bad_input("tensor {}: {}", hone::quoted(excerpt(name)),
                       name == kMetadata ? "the format keeps this name for metadata"
                                         : "another tensor has this name");
    header[name] = HONE_TRY(entry_json(name, tensor.type(), offset));
    offset += tensor.byte_size();
  }
  // Names that are no UTF-8 are written with replacement characters instead of failing.
  std::string text = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  return text;
}

}  // namespace

const Tensor* Safetensors::find(std::string_view name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

bool begins_like_safetensors(std::string_view beginning) {
  if (beginning.size() < 9 || beginning[8] != '{') return false;
  uint64_t size = 0;
  for (size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(beginning[i]);
  return size <= kMaxHeaderBytes;
}

Result<Safetensors> read_safetensors(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  const std::span<const std::byte> bytes = file->bytes();
  return parse_safetensors(bytes, path.native(), std::move(file));
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> file, std::string_view where,
                                      std::shared_ptr<const void> owner) {
  Result<Safetensors> content = parse_safetensors(file, owner);
  if (!content.ok()) return std::move(content).error().within(where);
  return content;
}

Status write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  Result<std::string> header = header_text(content);
  if (!header.ok()) return std::move(header).error().within(path.native());
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length += static_cast<char>(static_cast<uint64_t>(header->size()) >> (8 * i));
  std::vector<std::string_view> pieces = {length, *header};
  for (const auto& [name, tensor] : content.tensors) {
    const std::span<const std::byte> bytes = tensor.bytes();
    pieces.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return write_file_atomic(path, pieces);
}

}  // namespace hone
