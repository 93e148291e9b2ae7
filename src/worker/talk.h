#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/instructions.h"
#include "runtime/image.h"
#include "tensor/tensor.h"
#include "transport/proof.h"
#include "transport/transport.h"

// The messages of a caller and a worker. They have a fixed size, and say the size of what follows.
// Whoever hears them checks each number before it takes memory for that.
//
// A worker of a hosts file and its caller are the two devices of a transport. A rank of a group and
// rank 0, which calls it, speak over the group's own transport. Their tags are below those of
// messages (tag_of() in spmd.h); the collectives of a run count theirs from 0 on.
// Each device of a worker has a conversation of its own: the k-th one has the k-th tag.

namespace hone {

inline constexpr int32_t kWorkerDevice = 0, kCallerDevice = 1;
// TcpGroup::run of both: which version of these messages they speak.
inline constexpr uint64_t kWorkerProtocol = 0x32'72656b'726f77;  // "worker2"
inline constexpr int32_t kMaxWorkerDevices = 256;
// The tag of the first device of a rank.
inline constexpr uint32_t kRankTag = (uint32_t{1} << 31) - uint32_t{kMaxWorkerDevices};

// The worker begins.
struct WorkerGreeting {
  char hone[32] = {};       // its version, ended by a 0
  uint32_t isa = 0;         // Isa
  uint32_t extensions = 0;  // a bit for each of kExtensions
  int64_t threads = 0;      // that work on a kernel
  uint64_t work = 0;        // of a rank: the hash of its command line
};
static_assert(sizeof(WorkerGreeting) == 56);
WorkerGreeting greeting_of(std::string_view version, const Instructions& machine, int64_t threads,
                           uint64_t work = 0);
Result<Instructions> instructions_of(const WorkerGreeting& greeting);
std::string version_of(const WorkerGreeting& greeting);

// Then the caller asks, and the worker answers, again and again.
enum class WorkerTask : uint32_t {
  load = 1,   // a compiled file of `bytes`; the answer says whether it is to be sent
  run = 2,    // it, on `count` tensors; their types follow, and then they
  close = 3,  // the last one: there is no answer
  // Asked of the first device, before all else, if there are `count` devices and not just one. The
  // others take part from the answer on. With `bytes` of text, a hosts file: the worker joins these
  // hosts as process `number` of a group, whose TcpGroup::run is the beginning of `program`.
  start = 4
};
struct WorkerRequest {
  WorkerTask task = WorkerTask::close;
  uint32_t count = 0;
  uint64_t bytes = 0;   // of the file, of the text of types, or of a hosts file
  Digest program = {};  // the SHA-256 of the file
  uint32_t flushes_denormals = 0;
  uint32_t number = 0;  // of start: the process; of run: 1 if it takes part in collectives
};
static_assert(sizeof(WorkerRequest) == 56);

struct WorkerAnswer {
  uint32_t code = 0;   // an ErrorCode, whose text of `bytes` follows; 0: it went well
  uint32_t count = 0;  // of load: 1 if the file is to be sent; of run: tensors that follow
  uint64_t bytes = 0;  // of the text of types
};
static_assert(sizeof(WorkerAnswer) == 16);

inline constexpr uint64_t kMaxAnswerText = 4096;  // bytes of an error
inline constexpr uint32_t kMaxTalkTensors = 4096;

// Types as bytes, in order.
std::vector<std::byte> encode_types(std::span<const Type> types);
uint64_t most_type_bytes(uint32_t count);
// Error: other than `count` types that can be.
Result<std::vector<Type>> decode_types(std::span<const std::byte> bytes, uint32_t count);

// One end of the conversation. Each call returns when its message was taken, or has come.
class Talk {
 public:
  Talk(Transport& transport, int32_t own)
      : Talk(transport, own, own == kWorkerDevice ? kCallerDevice : kWorkerDevice, 0) {}
  Talk(Transport& transport, int32_t own, int32_t other, uint32_t tag)
      : transport_(transport), own_(own), other_(other), tag_(tag) {}

  Transport& transport() const { return transport_; }
  std::string peer() const;  // for people: "10.0.0.2:5000"

  Status send(std::span<const std::byte> bytes, std::string_view command);
  Status receive(std::span<std::byte> bytes, std::string_view command);
  // Begins to receive: what comes is waited for later.
  Result<Ticket> await(std::span<std::byte> bytes, std::string_view command);

  template <class T>
  Status say(const T& message, std::string_view command) {
    static_assert(std::is_trivially_copyable_v<T>);
    return send(std::as_bytes(std::span(&message, 1)), command);
  }
  template <class T>
  Status hear(T& message, std::string_view command) {
    static_assert(std::is_trivially_copyable_v<T>);
    return receive(std::as_writable_bytes(std::span(&message, 1)), command);
  }

  // The types, which were announced as `bytes` of `count`, and then the tensors.
  Status send_tensors(std::span<const Tensor> tensors, std::string_view command);
  // `check` looks at the types before there is memory for the tensors. Error: a tensor has bits
  // that its type has no meaning for.
  Result<std::vector<Tensor>> receive_tensors(
      uint32_t count, uint64_t bytes, const std::function<Status(std::span<const Type>)>& check,
      std::string_view command);

 private:
  Transport& transport_;
  const int32_t own_, other_;
  const uint32_t tag_;
};

// Error: the tensor has bits that its type has no meaning for.
Status check_bits(Type type, std::span<const std::byte> bytes);

// An error unless the types are those of the ports, which are "input"s or "output"s. Element types
// and ranks are equal, and so are sizes that are numbers. All of them have at most `limit` bytes
// together.
Status check_types(std::span<const Type> types, std::span<const image::Port> ports,
                   std::string_view what, int64_t limit);

}  // namespace hone
