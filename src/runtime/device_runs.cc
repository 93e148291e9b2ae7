#include "runtime/device_runs.h"

#include <chrono>
#include <new>
#include <optional>
#include <vector>

#include "transport/transport.h"

namespace hone {
namespace {

class DeviceRuns {
 public:
  DeviceRuns(size_t devices, Transport* transport, const RunOptions& options,
             const RunOfDevice& run)
      : transport_(transport), user_(options.cancel), options_(options), run_(run) {
    options_.cancel = &cancel_;
    errors_.resize(devices);
  }

  // The device at fault.
  std::optional<size_t> run(JobThreads& threads) {
    const std::function<void(size_t)> one = [&](size_t i) { work(i); };
    threads.start(one);
    wait(threads);
    return cause();
  }
  const Error& error(size_t device) const { return *errors_[device]; }
  bool is_told(size_t device) const { return error(device).code() == ErrorCode::interrupted; }

 private:
  void work(size_t i) {
    RunOptions options = options_;
    options.place = {static_cast<int32_t>(i), transport_};
    Status status;
    try {
      status = run_(i, options);
    } catch (const std::bad_alloc&) {  // no exception may leave a thread
      status = over_limit("out of memory");
    }
    if (status.ok()) return;
    cancel_.cancel();
    if (transport_ != nullptr) transport_->cancel(status.error());
    errors_[i] = std::move(status).error();
  }

  // Until all are done; hands on that the user cancels.
  void wait(JobThreads& threads) {
    constexpr auto kLook = std::chrono::milliseconds(10);
    if (user_ == nullptr) return threads.wait();
    while (!threads.wait_for(kLook))
      if (user_->cancelled()) cancel_.cancel();
  }

  // Devices that wait for the one that failed give its error behind their own command, so it is the
  // shortest. Devices that were told to stop have none of their own.
  std::optional<size_t> cause() const {
    std::optional<size_t> cause;
    for (size_t i = 0; i < errors_.size(); ++i) {
      if (!errors_[i]) continue;
      const bool is_better =
          !cause || (is_told(i) != is_told(*cause)
                         ? is_told(*cause)
                         : errors_[i]->what().size() < errors_[*cause]->what().size());
      if (is_better) cause = i;
    }
    return cause;
  }

  Transport* const transport_;
  const CancelToken* const user_;
  RunOptions options_;
  const RunOfDevice& run_;
  CancelToken cancel_;
  std::vector<std::optional<Error>> errors_;  // of each device
};

}  // namespace

Status run_devices(std::span<const DeviceShare> devices, JobThreads& threads, Transport* transport,
                   const RunOptions& options, const RunOfDevice& run) {
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  DeviceRuns all(devices.size(), transport, options, run);
  const std::optional<size_t> cause = all.run(threads);
  if (!cause) return {};
  if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
  Error error = all.error(*cause);
  if (all.is_told(*cause)) return error;
  return std::move(error).within(fmt::format("device '{}'", devices[*cause].name));
}

}  // namespace hone
