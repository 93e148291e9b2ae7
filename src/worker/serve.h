#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "runtime/loaded_model.h"
#include "transport/tcp.h"
#include "worker/talk.h"

// A worker runs compiled models for callers on other hosts, one caller after another. It is as many
// devices as its caller says, each with a thread of its own. Whoever knows its secret can run any
// code on it: a compiled model is machine code.

namespace hone {

struct WorkerOptions {
  std::string version;                          // of hone: callers have the same
  std::optional<int64_t> threads = {};          // HonecOptions
  int64_t memory_limit = int64_t{4} << 30;      // bytes: a half for programs, the rest for a run
  StreamOptions streams = {.join_seconds = 3};  // for a caller to prove that it knows the secret
  const CancelToken* cancel = nullptr;          // ends it
  std::function<void(std::string_view)> told = {};  // a line for each caller and each program
};

// The programs that callers have sent, by hash. The ones used last are kept.
class KeptPrograms {
 public:
  explicit KeptPrograms(int64_t most_bytes) : most_bytes_(most_bytes) {}

  int64_t most_bytes() const { return most_bytes_; }
  std::shared_ptr<const LoadedModel> find(const Digest& hash);  // null: it has none
  // Makes room, for a program of at most as many bytes as it keeps.
  void make_room(int64_t bytes);
  void add(const Digest& hash, std::shared_ptr<const LoadedModel> program);

 private:
  struct Kept {
    Digest hash;
    std::shared_ptr<const LoadedModel> program;
  };
  const int64_t most_bytes_;
  int64_t bytes_ = 0;
  std::list<Kept> kept_;  // the one used last comes first
};

// Where a worker sits in the transport to its caller. The default is a worker of a hosts file.
struct WorkerSeat {
  int32_t own = kWorkerDevice, caller = kCallerDevice;
  uint32_t tag = 0;  // of the first device's conversation
  // A rank has these: how many devices it is, the transport that joins those of all ranks, and its
  // first device there.
  int32_t devices = 0;
  Transport* group = nullptr;
  int32_t first = 0;
  uint64_t work = 0;  // WorkerGreeting::work
  // A worker of a hosts file has these: where other workers reach it, and the secret of all of
  // them. Null: it joins no group.
  const TcpListener* listener = nullptr;
  std::string_view secret = {};
};

// One caller, until it says that it is done. Error: it is lost, or does not keep to the protocol;
// the transport has ended then, and the caller knows why.
Status serve_caller(Transport& transport, KeptPrograms& programs, const WorkerOptions& options,
                    const WorkerSeat& seat = {});

// Callers, until it is cancelled, which is its error. A caller that fails is told, and ends
// nothing.
Status run_worker(const TcpListener& listener, std::string_view secret,
                  const WorkerOptions& options);

}  // namespace hone
