#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/instructions.h"
#include "runtime/honec.h"
#include "runtime/runnable.h"
#include "transport/hosts.h"
#include "worker/talk.h"
#include "worker/watch.h"

// The caller's end: compiled models that run on a worker (serve.h).

namespace hone {

// A program that a worker's devices run, whose sizes are numbers.
struct RemoteProgram {
  Digest hash = {};
  std::vector<image::Port> inputs = {}, outputs = {};
  int64_t threads = 1;        // that it was planned for
  bool meets_others = false;  // it has collectives
};

// A worker that is there answers at once. One that is busy answers when its caller is done.
inline constexpr double kCallSeconds = 4;

// Where a caller sits in a transport, and the worker that it calls.
struct CallerSeat {
  int32_t own = kCallerDevice, worker = kWorkerDevice;  // devices of the transport
  uint32_t tag = 0;                                     // of the worker's first device
  uint64_t work = 0;                                    // WorkerGreeting::work
};

// The devices of several workers, which collectives join.
struct WorkerGroup {
  std::vector<Host> hosts;  // whose devices are counted on
  int32_t process = 0;      // the worker's number among them
  Digest work = {};         // by which all of them know that they belong together
};

// A worker that has answered. One program at a time, and one run of each of its devices; by any
// thread.
class Worker {
 public:
  // The worker at the address is there, knows the secret and has the same version of hone. Error:
  // it is named.
  static Result<std::shared_ptr<Worker>> call(const HostPort& address, std::string_view secret,
                                              std::string_view version,
                                              const StreamOptions& options = {
                                                  .join_seconds = kCallSeconds});
  // Over a transport that is there already; it is named in errors.
  static Result<std::shared_ptr<Worker>> greet(std::shared_ptr<Transport> transport,
                                               std::string_view version,
                                               const CallerSeat& seat = {});
  ~Worker();

  const std::string& name() const { return name_; }
  const Instructions& machine() const { return machine_; }
  int64_t threads() const { return threads_; }
  int32_t devices() const { return static_cast<int32_t>(lines_.size()); }

  // It is as many devices from now on: before all else, and once. With a group, the others are told
  // at the same time.
  Status start(int32_t devices, const WorkerGroup* group = nullptr);
  // Sends the file, unless the worker has it.
  Status load(std::span<const std::byte> file, const Digest& hash);
  int64_t sent_bytes() const { return sent_bytes_; }  // of programs

  // The worker is told why, and all that wait for it return.
  void give_up(const Error& reason) { transport_->cancel(reason); }

  // A program that was loaded, on tensors that fit its inputs. The outputs fit `ports`, and have at
  // most `limit` bytes.
  Result<std::vector<Tensor>> run(const Digest& program, std::span<const Tensor> inputs,
                                  std::span<const image::Port> ports, int64_t limit,
                                  const RunOptions& options);
  // The same from and to memory of the caller, by one of its devices. All sizes are numbers. It may
  // take part in collectives.
  Status run(int32_t device, const RemoteProgram& program, std::span<const void* const> inputs,
             std::span<void* const> outputs, const RunOptions& options);

 private:
  // A conversation with one device.
  struct Line {
    Line(Transport& transport, const CallerSeat& seat, int32_t device)
        : talk(transport, seat.own, seat.worker, seat.tag + static_cast<uint32_t>(device)) {}
    std::mutex mutex;
    Talk talk;
  };

  Worker(std::shared_ptr<Transport> transport, const CallerSeat& seat)
      : transport_(std::move(transport)), seat_(seat) {
    lines_.emplace_back(*transport_, seat_, 0);
  }
  Status hear_greeting(std::string_view version);
  Result<WorkerAnswer> ask(Line& line, const WorkerRequest& request);
  Result<WorkerAnswer> hear_answer(Line& line);
  Result<std::unique_ptr<Watch>> watch(const RunOptions& options);

  const std::shared_ptr<Transport> transport_;
  const CallerSeat seat_;
  std::deque<Line> lines_;  // by device
  std::string name_;
  Instructions machine_;
  int64_t threads_ = 0;
  std::atomic<int64_t> sent_bytes_ = 0;
};

// A compiled file on a worker.
class RemoteModel final : public Runnable {
 public:
  // Reads the file and sends it. `file` is the same one.
  static Result<std::shared_ptr<const RemoteModel>> make(std::shared_ptr<Worker> worker,
                                                         const HonecFile& file,
                                                         int64_t memory_limit);

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return worker_->threads(); }
  const Executable* single() const override { return nullptr; }
  // The times are not known: they stay as they are.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

 private:
  RemoteModel(std::shared_ptr<Worker> worker, const HonecFile& file, int64_t memory_limit)
      : worker_(std::move(worker)),
        inputs_(file.inputs().begin(), file.inputs().end()),
        outputs_(file.outputs().begin(), file.outputs().end()),
        memory_limit_(memory_limit) {}

  const std::shared_ptr<Worker> worker_;
  const std::vector<image::Port> inputs_, outputs_;
  const int64_t memory_limit_;
  Digest program_ = {};
};

}  // namespace hone
