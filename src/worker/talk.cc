#include "worker/talk.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace hone {
namespace {

struct TypeHead {
  uint8_t dtype = 0;
  uint8_t rank = 0;
};

template <class T>
void put(std::vector<std::byte>& bytes, const T& value) {
  const auto more = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// False: there are not as many bytes.
template <class T>
bool take(std::span<const std::byte>& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

Result<Type> take_type(std::span<const std::byte>& bytes) {
  TypeHead head;
  if (!take(bytes, head)) return bad_input("the text of types is cut off");
  if (head.dtype >= kDTypeCount || head.rank > kMaxRank)
    return bad_input("a tensor of element type {} and rank {}", head.dtype, head.rank);
  Dims dims;
  for (int i = 0; i < head.rank; ++i) {
    int64_t size = 0;
    if (!take(bytes, size)) return bad_input("the text of types is cut off");
    if (size < 0 || size > kMaxElements) return bad_input("a dim of {}", size);
    dims.emplace_back(size);
  }
  return Type::make(static_cast<DType>(head.dtype), dims);
}

}  // namespace

// ---- Messages ----------------------------------------------------------------------------------

WorkerGreeting greeting_of(std::string_view version, const Instructions& machine, int64_t threads,
                           uint64_t work) {
  WorkerGreeting greeting;
  std::memcpy(greeting.hone, version.data(), std::min(version.size(), sizeof greeting.hone - 1));
  greeting.isa = static_cast<uint32_t>(machine.isa);
  for (const Extension each : kExtensions)
    if (machine.extensions.contains(each)) greeting.extensions |= 1U << static_cast<int>(each);
  greeting.threads = threads;
  greeting.work = work;
  return greeting;
}

Result<Instructions> instructions_of(const WorkerGreeting& greeting) {
  if (greeting.isa >= kIsas.size()) return bad_input("instructions of level {}", greeting.isa);
  Instructions machine = {.isa = static_cast<Isa>(greeting.isa), .extensions = {}};
  for (const Extension each : kExtensions)
    if ((greeting.extensions >> static_cast<int>(each) & 1) != 0) machine.extensions.insert(each);
  return machine;
}

std::string version_of(const WorkerGreeting& greeting) {
  std::string text(greeting.hone, strnlen(greeting.hone, sizeof greeting.hone));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

// ---- Types -------------------------------------------------------------------------------------

std::vector<std::byte> encode_types(std::span<const Type> types) {
  std::vector<std::byte> bytes;
  for (const Type& type : types) {
    put(bytes, TypeHead{static_cast<uint8_t>(type.dtype()), static_cast<uint8_t>(type.rank())});
    for (const int64_t size : type.static_dims()) put(bytes, size);
  }
  return bytes;
}

uint64_t most_type_bytes(uint32_t count) {
  return uint64_t{count} * (sizeof(TypeHead) + kMaxRank * sizeof(int64_t));
}

Result<std::vector<Type>> decode_types(std::span<const std::byte> bytes, uint32_t count) {
  std::vector<Type> types;
  for (uint32_t i = 0; i < count; ++i) types.push_back(HONE_TRY(take_type(bytes)));
  if (!bytes.empty()) return bad_input("{} bytes stand behind {} types", bytes.size(), count);
  return types;
}

Status check_types(std::span<const Type> types, std::span<const image::Port> ports,
                   std::string_view what, int64_t limit) {
  if (types.size() != ports.size())
    return bad_input("{} {}s; the model has {}", types.size(), what, ports.size());
  double total = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const Type own = ports[i].type;
    const auto same = [](Dim size, Dim of_port) { return !of_port.is_static() || size == of_port; };
    if (types[i].dtype() != own.dtype() || !std::ranges::equal(types[i].dims(), own.dims(), same))
      return bad_input("{} '{}' is {}; that of the model is {}", what, excerpt(ports[i].name),
                       types[i].to_string(), own.to_string());
    total += static_cast<double>(types[i].static_bytes());
  }
  if (total > static_cast<double>(limit))
    return over_limit("{:.0f} bytes of {}s; there is room for {}", total, what, limit);
  return {};
}

Status check_bits(Type type, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  if (is_bool(type.dtype())) {
    if (std::ranges::any_of(bytes, [](std::byte each) { return std::to_integer<int>(each) > 1; }))
      return bad_input("a bool is neither 0 nor 1");
  } else if ((bytes.back() & ~type.bits_of_last_byte()) != std::byte{0}) {
    return bad_input("the last byte of {} has bits that belong to no element", type.to_string());
  }
  return {};
}

// ---- Talking -----------------------------------------------------------------------------------

std::string Talk::peer() const {
  for (const Peer& each : transport_.peers())
    if (!each.is_here && std::ranges::find(each.devices, other_) != each.devices.end())
      return each.name;
  return "this process";
}

Status Talk::send(std::span<const std::byte> bytes, std::string_view command) {
  return transport_.wait(HONE_TRY(transport_.send({own_, other_, tag_}, bytes, command)));
}

Result<Ticket> Talk::await(std::span<std::byte> bytes, std::string_view command) {
  return transport_.receive({other_, own_, tag_}, bytes, command);
}

Status Talk::receive(std::span<std::byte> bytes, std::string_view command) {
  return transport_.wait(HONE_TRY(await(bytes, command)));
}

Status Talk::send_tensors(std::span<const Tensor> tensors, std::string_view command) {
  std::vector<Type> types;
  for (const Tensor& each : tensors) types.push_back(each.type());
  const std::vector<std::byte> text = encode_types(types);
  if (!text.empty()) HONE_TRY(send(text, command));
  for (const Tensor& each : tensors)
    if (each.byte_size() > 0) HONE_TRY(send(each.bytes(), command));
  return {};
}

Result<std::vector<Tensor>> Talk::receive_tensors(
    uint32_t count, uint64_t bytes, const std::function<Status(std::span<const Type>)>& check,
    std::string_view command) {
  if (count > kMaxTalkTensors || bytes > most_type_bytes(count))
    return bad_input("{} tensors, whose types take {} bytes", count, bytes);
  std::vector<std::byte> text(bytes);
  if (!text.empty()) HONE_TRY(receive(text, command));
  const std::vector<Type> types = HONE_TRY(decode_types(text, count));
  HONE_TRY(check(types));
  std::vector<Tensor> tensors;
  for (const Type& type : types) {
    Tensor& tensor = tensors.emplace_back(Tensor::zeros(type));
    if (tensor.byte_size() > 0) HONE_TRY(receive(tensor.mutable_bytes(), command));
    HONE_TRY(check_bits(type, tensor.bytes()));
  }
  return tensors;
}

}  // namespace hone
