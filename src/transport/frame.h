#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"

// Between processes, messages travel in frames: a header of 56 bytes and a payload, both with
// checksums. A small message is one frame. A large one is offered; its bytes come when the receiver
// asks for them, straight into the memory that waits for them. So nobody's memory fills with what
// others send.

namespace hone {

enum class FrameKind : uint8_t {
  small,   // a message: payload
  offer,   // a message whose bytes can be asked for by `number`
  ask,     // for the bytes of an offer
  data,    // bytes of an offer, from `offset` on: payload
  credit,  // `number` small messages were received
  beat,    // the sender lives
  end,     // the run has failed: the payload says why
  bye      // the sender has ended in peace
};
inline constexpr int kFrameKinds = 8;

struct Frame {
  static constexpr size_t kHeaderBytes = 56;
  static constexpr size_t kSmallBytes = 4096;               // the most of a small message
  static constexpr size_t kDataBytes = 256 << 10;           // the most of a `data` frame
  static constexpr size_t kReasonBytes = 4096;              // the most of an `end`
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 46;  // of a message

  FrameKind kind = FrameKind::beat;
  int32_t from = 0;  // the channel, of small and offer
  int32_t to = 0;
  uint32_t tag = 0;
  uint32_t payload = 0;   // bytes that follow
  uint64_t size = 0;      // of the whole message: small, offer
  uint64_t number = 0;    // offer, ask, data: the sender's number of the offer; credit
  uint64_t offset = 0;    // data
  uint32_t checksum = 0;  // CRC-32C of the payload

  bool operator==(const Frame&) const = default;
};

// The header, with a checksum of its own.
void encode(const Frame& frame, std::span<std::byte, Frame::kHeaderBytes> bytes);
// Error: it does not begin as a frame does, is damaged, or its lengths do not suit its kind.
Result<Frame> decode(std::span<const std::byte, Frame::kHeaderBytes> bytes);

// Takes a stream of bytes apart. It holds one header, and the payload of a frame that is not
// `data`.
class FrameReader {
 public:
  // Reads at most as many bytes as there is room for; 0: none are there now.
  using Read = std::function<Result<size_t>(std::span<std::byte>)>;
  struct Sink {
    virtual ~Sink() = default;
    // A header has come. The payload goes to the memory that this gives, which has its size.
    virtual Result<std::span<std::byte>> room(const Frame& frame) = 0;
    // The whole frame has come.
    virtual Status take(const Frame& frame, std::span<const std::byte> payload) = 0;
  };

  explicit FrameReader(bool checks_payload) : checks_payload_(checks_payload) {}

  // Reads what is there, but at most about `most` bytes. True: there may be more.
  Result<bool> read(const Read& read, Sink& sink, size_t most);

 private:
  Status end_header(Sink& sink);
  Status end_frame(Sink& sink);

  const bool checks_payload_;
  std::array<std::byte, Frame::kHeaderBytes> header_ = {};
  size_t got_ = 0;  // bytes of the header, or of the payload
  bool in_payload_ = false;
  Frame frame_;
  std::span<std::byte> room_;
};

}  // namespace hone
