#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "codegen/kernels.h"
#include "runtime/executable.h"
#include "runtime/runnable.h"

namespace hone {

// All that EarlyCode needs to go on alone.
struct EarlyParts {
  Image image;                           // of quick code
  std::vector<program::Kernel> kernels;  // of the image, in its order
  Target target;
  LoadOptions load;
  CompileCache* cache = nullptr;  // outlives it, or stop() comes before
  KernelObserver observer = {};   // the same
  // Gets the image of the real code, once.
  std::function<void(const Image&)> keep = {};
};

// A graph that runs at once on quick code (CodeEffort), and on its real code from the first run on
// that begins when that is made. Both compute the same bits. A run stays on the code that it began
// with. Weights are in memory once.
//
// Nobody makes the real code until begin() or finish().
class EarlyCode final : public Runnable {
 public:
  static Result<std::shared_ptr<const EarlyCode>> load(EarlyParts parts);
  ~EarlyCode() override;  // stop(); not while it runs

  std::span<const image::Port> inputs() const override { return quick_->inputs(); }
  std::span<const image::Port> outputs() const override { return quick_->outputs(); }
  int64_t threads() const override { return quick_->threads(); }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;
  // The code for a run that begins now. It stays where it is as long as this lives.
  const Executable* single() const override { return code_.load(std::memory_order_acquire); }

  size_t kernels() const { return parts_.kernels.size(); }
  bool is_real() const { return single() != quick_.get(); }  // so is each run from now on
  // Makes the real code on a thread of its own, with half of the cores. Once.
  void begin() const;
  // Makes the real code here, with all cores, or waits for the thread that does. An error leaves
  // the quick code; the next call tells it, too, unless it was the caller's token.
  Status finish(Progress* progress = nullptr, const CancelToken* cancel = nullptr) const;
  // The real code, after finish().
  Result<std::vector<KernelCode>> code(Progress* progress, const CancelToken* cancel) const;
  Result<Image> image() const;
  // Ends the thread, whether it is done or not. Then it never makes the rest.
  void stop() const;

 private:
  EarlyCode(EarlyParts parts, std::shared_ptr<const Executable> quick);
  Status make(ThreadPool& pool, Progress* progress, const CancelToken* cancel) const;
  void work() const;

  const EarlyParts parts_;
  const std::shared_ptr<const Executable> quick_;
  mutable std::atomic<const Executable*> code_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::thread thread_;
  mutable CancelToken stop_;
  mutable std::condition_variable ended_;
  mutable bool is_making_ = false;  // somebody does
  mutable std::optional<Status> made_;
  mutable std::vector<KernelCode> code_of_kernels_;
  mutable std::shared_ptr<const Executable> real_;
};

}  // namespace hone
