#include "front/onnx/skeleton.h"
#include "formats/wire_write.h"

#include <algorithm>
#include <array>

namespace hone::onnx_io {

namespace {

// The messages that lead to tensors.
enum class Kind : uint8_t { model, training, graph, function, node, attribute, sparse, tensor };

constexpr std::array<std::string_view, 8> kKindNames = {
    "ModelProto", "TrainingInfoProto", "GraphProto",        "FunctionProto",
    "NodeProto",  "AttributeProto",    "SparseTensorProto", "TensorProto"};

std::string_view name(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

struct ChildField {
  Kind parent;
  int number;
  std::string_view name;
  Kind child;
  // The schema library merges what is given twice. For a tensor that would put the data of two
  // tensors into one, so that is refused.
  bool once;
};

constexpr ChildField kChildren[] = {
    {Kind::model, 7, "graph", Kind::graph, false},
    {Kind::model, 20, "training_info", Kind::training, false},
    {Kind::model, 25, "functions", Kind::function, false},
    {Kind::training, 1, "initialization", Kind::graph, false},
    {Kind::training, 2, "algorithm", Kind::graph, false},
    {Kind::graph, 1, "node", Kind::node, false},
    {Kind::graph, 5, "initializer", Kind::tensor, false},
    {Kind::graph, 15, "sparse_initializer", Kind::sparse, false},
    {Kind::function, 7, "node", Kind::node, false},
    {Kind::function, 11, "attribute_proto", Kind::attribute, false},
    {Kind::node, 5, "attribute", Kind::attribute, false},
    {Kind::attribute, 5, "t", Kind::tensor, true},
    {Kind::attribute, 6, "g", Kind::graph, false},
    {Kind::attribute, 10, "tensors", Kind::tensor, false},
    {Kind::attribute, 11, "graphs", Kind::graph, false},
    {Kind::attribute, 22, "sparse_tensor", Kind::sparse, true},
    {Kind::attribute, 23, "sparse_tensors", Kind::sparse, false},
    {Kind::sparse, 1, "values", Kind::tensor, true},
    {Kind::sparse, 2, "indices", Kind::tensor, true},
};

struct StringField {
  Kind parent;
  int number;
  std::string_view name;
};

constexpr StringField kNames[] = {
    {Kind::graph, 2, "name"},      {Kind::node, 1, "input"},    {Kind::node, 2, "output"},
    {Kind::node, 3, "name"},       {Kind::node, 4, "op_type"},  {Kind::node, 7, "domain"},
    {Kind::attribute, 1, "name"},  {Kind::function, 1, "name"}, {Kind::function, 4, "input"},
    {Kind::function, 5, "output"}, {Kind::tensor, 8, "name"},
};

struct DataField {
  int number;
  std::string_view name;
  WireType element;  // of an element that is not packed
  size_t width;      // in bytes; 0 for varints, 1 for bytes
};

constexpr DataField kData[] = {
    {4, "float_data", WireType::fixed32, 4},   {5, "int32_data", WireType::varint, 0},
    {7, "int64_data", WireType::varint, 0},    {9, "raw_data", WireType::bytes, 1},
    {10, "double_data", WireType::fixed64, 8}, {11, "uint64_data", WireType::varint, 0},
};
constexpr size_t kDataCount = std::size(kData);
constexpr size_t kRawIndex = 3;

template <class Row, size_t n>
const Row* find(const Row (&rows)[n], Kind parent, int number) {
  for (const Row& row : rows) {
    if (row.parent == parent && row.number == number) return &row;
  }
  return nullptr;
}

std::optional<size_t> data_index(int number) {
  for (size_t i = 0; i < kDataCount; ++i) {
    if (kData[i].number == number) return i;
  }
  return std::nullopt;
}

// Messages per node that a file may have. Each costs its reader some hundred bytes, and the file
// two.
constexpr int64_t kMessagesPerNode = 16;

// The data of one field of one tensor.
struct TensorData {
  bool has_packed = false, has_single = false;
  std::vector<WireField> packed;
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const OnnxLimits& limits)
      : file_(file), limits_(limits) {}

  Status message(Kind kind, FileRange range, int64_t depth);
  Skeleton take() { return std::move(skeleton_); }

 private:
  Status child(const ChildField& row, const WireField& field, int64_t depth);
  Status tensor(FileRange range);
  Status check_name(Kind kind, const WireField& field);
  Status add_data(size_t index, const WireField& field, TensorData& data);
  Status emit_data(size_t index, const TensorData& data);
  Status count(Kind kind);
  Status copy(size_t begin, size_t end);

  std::span<const std::byte> file_;
  const OnnxLimits& limits_;
  Skeleton skeleton_;
  int64_t nodes_ = 0, messages_ = 0;
};

Error wrong_type(Kind parent, std::string_view field_name, const WireField& field) {
  return bad_input("{}.{} at byte {} has wire type {}", name(parent), field_name, field.begin,
                   static_cast<int>(field.type));
}

Status Scanner::copy(size_t begin, size_t end) {
  if (skeleton_.bytes.size() + (end - begin) > static_cast<size_t>(limits_.message_bytes)) {
    return over_limit("the messages take more than {} bytes without the data of large tensors",
                      limits_.message_bytes);
  }
  skeleton_.bytes.append(reinterpret_cast<const char*>(file_.data()) + begin, end - begin);
  return {};
}

Status Scanner::count(Kind kind) {
  if (kind == Kind::node && ++nodes_ > limits_.nodes) {
    return over_limit("more than {} nodes", limits_.nodes);
  }
  if (++messages_ > limits_.nodes * kMessagesPerNode) {
    return over_limit("more than {} messages for up to {} nodes", limits_.nodes * kMessagesPerNode,
                      limits_.nodes);
  }
  return {};
}

// Writes the length, which is not known before, as a varint of fixed size.
Status Scanner::child(const ChildField& row, const WireField& field, int64_t depth) {
  constexpr size_t kLengthBytes = 5;
  if (field.type != WireType::bytes) return wrong_type(row.parent, row.name, field);
  if (depth >= limits_.nesting) {
    return over_limit("{}.{} at byte {} is nested deeper than {} messages", name(row.parent),
                      row.name, field.begin, limits_.nesting);
  }
  HONE_TRY(count(row.child));
  wire::append_tag(skeleton_.bytes, static_cast<uint32_t>(row.number), WireType::bytes);
  const size_t length_at = skeleton_.bytes.size();
  HONE_TRY(copy(field.begin, field.begin));  // the limit holds for frames as well
  skeleton_.bytes.append(kLengthBytes, '\0');
  HONE_TRY(message(row.child, {field.value, field.end}, depth + 1));
  size_t length = skeleton_.bytes.size() - length_at - kLengthBytes;
  for (size_t i = 0; i < kLengthBytes; ++i, length >>= 7) {
    const size_t more = i + 1 < kLengthBytes ? 0x80 : 0;
    skeleton_.bytes[length_at + i] = static_cast<char>((length & 0x7f) | more);
  }
  return {};
}

Status Scanner::message(Kind kind, FileRange range, int64_t depth) {
  if (kind == Kind::tensor) return tensor(range);
  WireReader reader({file_, range.begin, range.end});
  size_t copied = range.begin;  // up to here the skeleton has what it needs
  uint32_t seen = 0;            // numbers of fields that come once; they are below 32
  while (!reader.done()) {
    const WireField field = HONE_TRY(reader.next());
    HONE_TRY(check_name(kind, field));
    const ChildField* row = find(kChildren, kind, field.number);
    if (row == nullptr) continue;
    const uint32_t bit = uint32_t{1} << row->number;
    if (row->once && (seen & bit) != 0) {
      return bad_input("{}.{} is given a second time at byte {}", name(kind), row->name,
                       field.begin);
    }
    seen |= bit;
    HONE_TRY(copy(copied, field.begin));
    HONE_TRY(child(*row, field, depth));
    copied = field.end;
  }
  return copy(copied, range.end);
}

Status Scanner::check_name(Kind kind, const WireField& field) {
  const StringField* row = find(kNames, kind, field.number);
  const size_t size = field.end - field.value;
  if (row == nullptr || size <= static_cast<size_t>(limits_.name_bytes)) return {};
  return over_limit("{}.{} at byte {} has {} bytes, the limit is {}", name(kind), row->name,
                    field.begin, size, limits_.name_bytes);
}

// Elements that are not packed stay where they are.
Status Scanner::add_data(size_t index, const WireField& field, TensorData& data) {
  const DataField& row = kData[index];
  const size_t size = field.end - field.value;
  const bool packed = field.type == WireType::bytes;
  if (!packed && field.type != row.element) return wrong_type(Kind::tensor, row.name, field);
  if (row.width > 1 && packed && size % row.width != 0) {
    return bad_input("TensorProto.{} at byte {} has {} bytes, which is not a multiple of {}",
                     row.name, field.begin, size, row.width);
  }
  if (index == kRawIndex) data.packed.clear();  // the last one holds
  (packed ? data.has_packed : data.has_single) = true;
  if (data.has_packed && data.has_single) {
    return bad_input("TensorProto.{} at byte {} is partly packed", row.name, field.begin);
  }
  HONE_TRY(count(Kind::tensor));
  if (packed) data.packed.push_back(field);
  return {};
}

Status Scanner::emit_data(size_t index, const TensorData& data) {
  size_t size = 0;
  for (const WireField& field : data.packed) size += field.end - field.value;
  if (size < kLargePayload) {
    for (const WireField& field : data.packed) HONE_TRY(copy(field.begin, field.end));
    return {};
  }
  Payload payload = {kData[index].number, {}};
  for (const WireField& field : data.packed) payload.pieces.push_back({field.value, field.end});
  wire::append_tag(skeleton_.bytes, kPayloadField, WireType::varint);
  wire::append_varint(skeleton_.bytes, skeleton_.payloads.size());
  skeleton_.payloads.push_back(std::move(payload));
  return {};
}

Status Scanner::tensor(FileRange range) {
  WireReader reader({file_, range.begin, range.end});
  std::array<TensorData, kDataCount> data;
  size_t copied = range.begin;
  while (!reader.done()) {
    const WireField field = HONE_TRY(reader.next());
    if (field.number == kPayloadField) {
      return unsupported("field {} of TensorProto at byte {} is not known", field.number,
                         field.begin);
    }
    HONE_TRY(check_name(Kind::tensor, field));
    const std::optional<size_t> index = data_index(field.number);
    if (!index) continue;
    HONE_TRY(add_data(*index, field, data[*index]));
    if (field.type != WireType::bytes) continue;
    HONE_TRY(copy(copied, field.begin));
    copied = field.end;
  }
  HONE_TRY(copy(copied, range.end));
  for (size_t i = 0; i < kDataCount; ++i) HONE_TRY(emit_data(i, data[i]));
  return {};
}

}  // namespace

Result<Skeleton> scan(std::span<const std::byte> file, RootMessage root, const OnnxLimits& limits) {
  Scanner scanner(file, limits);
  const Kind kind = root == RootMessage::model ? Kind::model : Kind::tensor;
  Status good = scanner.message(kind, {0, file.size()}, 1);
  if (good.ok()) return scanner.take();
  Error error = std::move(good).error();
  if (error.code() != ErrorCode::bad_input) return error;
  return std::move(error).with_hint("the file is damaged, or is not an ONNX file");
}

}  // namespace hone::onnx_io
