#include "compile/early_code.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace hone {
namespace {

// All else of an image is the same for both.
Image with_code(Image image, std::span<const KernelCode> code) {
  for (size_t k = 0; k < code.size(); ++k) {
    image.kernels[k].object = code[k].object;
    image.kernels[k].needs = code[k].needs;
  }
  return image;
}

}  // namespace

EarlyCode::EarlyCode(EarlyParts parts, std::shared_ptr<const Executable> quick)
    : parts_(std::move(parts)), quick_(std::move(quick)), code_(quick_.get()) {}

EarlyCode::~EarlyCode() { stop(); }

Result<std::shared_ptr<const EarlyCode>> EarlyCode::load(EarlyParts parts) {
  if (parts.kernels.size() != parts.image.kernels.size())
    return fault("an image of {} kernels, of which {} are given", parts.image.kernels.size(),
                 parts.kernels.size());
  const int64_t threads = parts.image.threads;
  if (parts.load.team == nullptr) parts.load.team = HONE_TRY(Team::create({.threads = threads}));
  std::shared_ptr<const Executable> quick = HONE_TRY(Executable::load(parts.image, parts.load));
  // The image may have them where no kernel can use them; copies are made once.
  parts.image.constants.assign(quick->constants().begin(), quick->constants().end());
  return std::shared_ptr<const EarlyCode>(new EarlyCode(std::move(parts), std::move(quick)));
}

Result<std::vector<Tensor>> EarlyCode::run(std::span<const Tensor> inputs,
                                           const RunOptions& options,
                                           std::vector<UnitTimes>* times) const {
  return single()->run(inputs, options, times);
}

// ---- The real code ------------------------------------------------------------------------------

// One thread at a time calls it.
Status EarlyCode::make(ThreadPool& pool, Progress* progress, const CancelToken* cancel) const {
  std::vector<KernelCode> code = HONE_TRY(compile_kernels(parts_.kernels, parts_.target, pool,
                                                          {.cache = parts_.cache,
                                                           .progress = progress,
                                                           .cancel = cancel,
                                                           .observer = parts_.observer}));
  const Image image = with_code(parts_.image, code);
  const std::shared_ptr<const Executable> real = HONE_TRY(Executable::load(image, parts_.load));
  if (parts_.keep) parts_.keep(image);
  const std::scoped_lock lock(mutex_);
  code_of_kernels_ = std::move(code);
  real_ = real;
  code_.store(real_.get(), std::memory_order_release);
  quick_->give_up_frames();
  return {};
}

// No exception may leave the thread.
void EarlyCode::work() const {
  Status status;
  try {
    ThreadPool pool(std::max(1, default_pool().threads() / 2));
    status = make(pool, nullptr, &stop_);
  } catch (const std::bad_alloc&) {
    status = over_limit("out of memory");
  } catch (const std::exception& why) {
    status = fault("{}", why.what());
  }
  const std::scoped_lock lock(mutex_);
  made_ = std::move(status);
  is_making_ = false;
  ended_.notify_all();
}

void EarlyCode::begin() const {
  const std::scoped_lock lock(mutex_);
  if (is_making_ || made_ || stop_.cancelled()) return;
  try {
    thread_ = std::thread([this] { work(); });
    is_making_ = true;
  } catch (const std::system_error&) {
    // The system grants no thread: the quick code stays until finish().
  }
}

Status EarlyCode::finish(Progress* progress, const CancelToken* cancel) const {
  constexpr auto kLook = std::chrono::milliseconds(10);
  std::unique_lock lock(mutex_);
  while (is_making_) {
    if (cancel != nullptr) HONE_TRY(cancel->check());
    ended_.wait_for(lock, kLook);
  }
  if (made_) return *made_;
  HONE_TRY(stop_.check());
  is_making_ = true;
  lock.unlock();
  struct Done {
    const EarlyCode& of;
    ~Done() {
      const std::scoped_lock lock(of.mutex_);
      of.is_making_ = false;
      of.ended_.notify_all();
    }
  };
  const Done done{*this};
  Status status = make(default_pool(), progress, cancel);
  const bool is_given_up = cancel != nullptr && cancel->cancelled();
  const std::scoped_lock locked(mutex_);
  if (status.ok() || !is_given_up) made_ = status;
  return status;
}

Result<std::vector<KernelCode>> EarlyCode::code(Progress* progress,
                                                const CancelToken* cancel) const {
  HONE_TRY(finish(progress, cancel));
  const std::scoped_lock lock(mutex_);
  return code_of_kernels_;
}

Result<Image> EarlyCode::image() const {
  HONE_TRY(finish());
  const std::scoped_lock lock(mutex_);
  return with_code(parts_.image, code_of_kernels_);
}

void EarlyCode::stop() const {
  std::thread thread;
  {
    const std::scoped_lock lock(mutex_);
    stop_.cancel();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace hone
