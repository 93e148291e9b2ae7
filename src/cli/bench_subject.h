#pragma once

#include <memory>
#include <vector>

#include "report/bench_text.h"
#include "report/profile.h"
#include "report/trace.h"
#include "session/compiled.h"
#include "session/devices.h"
#include "session/native.h"
#include "session/source.h"

// The subject of `hone bench`: a model for one set of inputs.

namespace hone::cli {

// All of it outlives the subject.
struct BenchModel {
  const Source& source;
  const RunInputs& inputs;
  const NativeOptions& options;
  Face face;
  bool is_profiled = false;  // keeps what profile() and add_runs() need
  bool is_compared = false;  // keeps what load_elsewhere() needs
};

class BenchSubject {
 public:
  virtual ~BenchSubject() = default;
  // The first run compiles.
  virtual Status run() = 0;
  // The results of a run; subjects that rivals are compared with have them.
  virtual Result<std::vector<Tensor>> outputs() { return unsupported("outputs are not kept"); }
  // For a comparison: gives up its memory, and lies at other places then. A subject that changes
  // its inputs is not compared, and stays.
  virtual void unload() {}
  virtual Status load_elsewhere() { return {}; }
  // From then on, runs are timed command by command.
  virtual void start_profile() = 0;
  // The same, and when; the trace outlives the subject.
  virtual void start_trace(RunTrace& runs) = 0;
  virtual Status add_runs(Trace& trace, const RunTrace& runs) = 0;
  virtual Result<std::vector<SegmentProfile>> profile(int64_t runs) = 0;
};

// The runs of a model on several devices, which it times. It keeps no profile.
class DividedSubject : public BenchSubject {
 public:
  DividedSubject(std::shared_ptr<const ManyDevices> devices, bool divides_batch,
                 std::span<const Tensor> inputs, const CancelToken* cancel)
      : devices_(std::move(devices)),
        divides_batch_(divides_batch),
        inputs_(inputs),
        cancel_(cancel) {}

  Status run() override;
  void start_profile() override {}
  void start_trace(RunTrace&) override {}
  Status add_runs(Trace&, const RunTrace&) override { return {}; }
  Result<std::vector<SegmentProfile>> profile(int64_t) override {
    return std::vector<SegmentProfile>();
  }

  // From then on, runs count.
  void start_times() { times_.assign(devices_->devices().size(), {}), runs_ = 0; }
  std::vector<BenchReport::Device> mean_times() const;

 private:
  const std::shared_ptr<const ManyDevices> devices_;
  const bool divides_batch_;  // else values, and no device has rows
  const std::span<const Tensor> inputs_;
  const CancelToken* const cancel_;
  std::vector<DeviceTimes> times_ = std::vector<DeviceTimes>(devices_->devices().size());
  int64_t runs_ = 0;
};

Result<std::unique_ptr<BenchSubject>> plain_subject(const BenchModel& model);
// The runs of a compiled model, which outlives the subject; load_elsewhere() loads it once more.
struct CompiledRuns {
  bool donates = false;
  bool flushes_denormals = false;
  const CancelToken* cancel = nullptr;
};
Result<std::unique_ptr<BenchSubject>> compiled_subject(CompiledModel& model,
                                                       const CompiledRuns& how);
// A subject of one graph, whose caller gives up the inputs that outputs may lie in; these outputs
// are the next run's inputs. An error if there are none.
Result<std::unique_ptr<BenchSubject>> donating_subject(const BenchModel& model);

}  // namespace hone::cli
