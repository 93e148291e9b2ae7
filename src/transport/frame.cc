#include "transport/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/crc32c.h"

namespace hone {
namespace {

constexpr uint32_t kFrameMagic = 0x31466e68;  // "hnF1"
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// The places of a header. The last four bytes are its checksum.
constexpr size_t kCheckedBytes = Frame::kHeaderBytes - 4;

template <class T>
void put(std::byte*& at, T value) {
  std::memcpy(at, &value, sizeof value);
  at += sizeof value;
}
template <class T>
T get(const std::byte*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

size_t most_payload(FrameKind kind) {
  switch (kind) {
    case FrameKind::small: return Frame::kSmallBytes;
    case FrameKind::data: return Frame::kDataBytes;
    case FrameKind::end: return Frame::kReasonBytes;
    default: return 0;
  }
}

Status check(const Frame& frame) {
  if (frame.payload > most_payload(frame.kind))
    return bad_input("a frame of kind {} with {} bytes; it has at most {}",
                     static_cast<int>(frame.kind), frame.payload, most_payload(frame.kind));
  if (frame.size > Frame::kMaxBytes)
    return bad_input("a message of {} bytes; there are at most {}", frame.size, Frame::kMaxBytes);
  if (frame.kind == FrameKind::small && frame.size != frame.payload)
    return bad_input("a message of {} bytes comes with {}", frame.size, frame.payload);
  return {};
}

}  // namespace

void encode(const Frame& frame, std::span<std::byte, Frame::kHeaderBytes> bytes) {
  std::byte* at = bytes.data();
  put(at, kFrameMagic);
  put(at, static_cast<uint32_t>(frame.kind));
  put(at, frame.from);
  put(at, frame.to);
  put(at, frame.tag);
  put(at, frame.payload);
  put(at, frame.size);
  put(at, frame.number);
  put(at, frame.offset);
  put(at, frame.checksum);
  put(at, crc32c(std::span<const std::byte>(bytes).first(kCheckedBytes)));
}

Result<Frame> decode(std::span<const std::byte, Frame::kHeaderBytes> bytes) {
  const std::byte* at = bytes.data();
  if (const auto magic = get<uint32_t>(at); magic != kFrameMagic)
    return bad_input("the bytes {:08x} begin no frame", magic);
  const auto kind = get<uint32_t>(at);
  Frame frame;
  frame.from = get<int32_t>(at);
  frame.to = get<int32_t>(at);
  frame.tag = get<uint32_t>(at);
  frame.payload = get<uint32_t>(at);
  frame.size = get<uint64_t>(at);
  frame.number = get<uint64_t>(at);
  frame.offset = get<uint64_t>(at);
  frame.checksum = get<uint32_t>(at);
  const uint32_t expected = crc32c(bytes.first(kCheckedBytes));
  if (const auto checksum = get<uint32_t>(at); checksum != expected)
    return bad_input("a header is damaged: its checksum is {:08x}, and it says {:08x}", expected,
                     checksum);
  if (kind >= kFrameKinds) return bad_input("a frame of kind {}; there are {}", kind, kFrameKinds);
  frame.kind = static_cast<FrameKind>(kind);
  HONE_TRY(check(frame));
  return frame;
}

Result<bool> FrameReader::read(const Read& read, Sink& sink, size_t most) {
  for (size_t total = 0; total < most;) {
    const std::span<std::byte> rest =
        (in_payload_ ? room_ : std::span<std::byte>(header_)).subspan(got_);
    const size_t count = HONE_TRY(read(rest));
    if (count == 0) return false;
    got_ += count;
    total += count;
    if (count < rest.size()) continue;
    if (!in_payload_) HONE_TRY(end_header(sink));
    if (in_payload_ && got_ == room_.size()) HONE_TRY(end_frame(sink));
  }
  return true;
}

Status FrameReader::end_header(Sink& sink) {
  frame_ = HONE_TRY(decode(header_));
  room_ = HONE_TRY(sink.room(frame_));
  HONE_CHECK(room_.size() == frame_.payload, "a room of {} bytes for {}", room_.size(),
             frame_.payload);
  in_payload_ = true;
  got_ = 0;
  return {};
}

Status FrameReader::end_frame(Sink& sink) {
  if (checks_payload_)
    if (const uint32_t checksum = crc32c(room_); checksum != frame_.checksum)
      return bad_input("{} bytes are damaged: their checksum is {:08x}, and the header says {:08x}",
                       room_.size(), checksum, frame_.checksum);
  in_payload_ = false;
  got_ = 0;
  return sink.take(frame_, room_);
}

}  // namespace hone
