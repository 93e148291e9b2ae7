#pragma once

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

// The caller's end: compiled models that run on a worker (serve.h).

namespace hone {

// A worker that is there answers at once. One that is busy answers when its caller is done.
inline constexpr double kCallSeconds = 4;

// A worker that has answered. One program and one run at a time, by any thread.
class Worker {
 public:
  // The worker at the address is there, knows the secret and has the same version of hone. Error:
  // it is named.
  static Result<std::shared_ptr<Worker>> call(const HostPort& address, std::string_view secret,
                                              std::string_view version,
                                              const StreamOptions& options = {
                                                  .join_seconds = kCallSeconds});
  // Over a transport that is there already; it is named in errors.
  static Result<std::shared_ptr<Worker>> greet(std::unique_ptr<Transport> transport,
                                               std::string_view version);
  ~Worker();

  const std::string& name() const { return name_; }
  const Instructions& machine() const { return machine_; }
  int64_t threads() const { return threads_; }

  // Sends the file, unless the worker has it.
  Status load(std::span<const std::byte> file, const Digest& hash);
  // A program that was loaded, on tensors that fit its inputs. The outputs fit `ports`, and have at
  // most `limit` bytes.
  Result<std::vector<Tensor>> run(const Digest& program, std::span<const Tensor> inputs,
                                  std::span<const image::Port> ports, int64_t limit,
                                  const RunOptions& options);

 private:
  explicit Worker(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), talk_(*transport_, kCallerDevice) {}
  Status hear_greeting(std::string_view version);
  Result<WorkerAnswer> ask(const WorkerRequest& request);
  Result<WorkerAnswer> hear_answer();

  const std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  Talk talk_;
  std::string name_;
  Instructions machine_;
  int64_t threads_ = 0;
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
