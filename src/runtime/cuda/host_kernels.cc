#include "runtime/cuda/host_kernels.h"

#include <algorithm>
#include <thread>

#include "base/checked_math.h"

namespace hone {

Result<std::unique_ptr<CudaHostKernels>> CudaHostKernels::make(const Script& script,
                                                               int64_t threads,
                                                               std::shared_ptr<Team> team) {
  std::unique_ptr<CudaHostKernels> made(new CudaHostKernels);
  made->team_ = std::move(team);
  // A plan for a GPU counts its SMs.
  threads = std::min<int64_t>(threads, std::max(1U, std::thread::hardware_concurrency()));
  if (!made->team_) made->team_ = HONE_TRY(Team::create({.threads = threads}));
  made->threads_ = std::min(threads, made->team_->threads());
  const std::optional<int64_t> scratch = checked_round_up(script.scratch_bytes, kBufferAlignment);
  const std::optional<int64_t> all = scratch ? checked_mul(*scratch, made->threads_) : std::nullopt;
  if (!all) return over_limit("scratch of {} bytes a thread is too much", script.scratch_bytes);
  made->scratch_bytes_ = *scratch;
  made->scratch_ = AlignedBytes(static_cast<size_t>(*all), false);
  return made;
}

Status CudaHostKernels::run(const CudaDevice& device, cuda::Stream stream,
                            std::span<const Script::Phase> phases, std::span<const Buffer> buffers,
                            const int64_t* symbols) {
  std::vector<AlignedBytes> copies;
  std::vector<void*> pointers;
  const cuda::Functions& call = device.call();
  for (const Buffer& buffer : buffers) {
    const auto bytes = static_cast<size_t>(buffer.bytes);
    copies.emplace_back(bytes, false);
    pointers.push_back(copies.back().data());
    if (bytes > 0)
      HONE_TRY(device.check(
          call.cuMemcpyDtoHAsync_v2(copies.back().data(), buffer.address, bytes, stream),
          "copied data of a kernel on the CPU"));
  }
  HONE_TRY(
      device.check(call.cuStreamSynchronize(stream), "waited for data of a kernel on the CPU"));
  for (const Script::Phase& phase : phases)
    team_->run(phase.trips, phase.is_parallel ? threads_ : 1,
               [&](int64_t begin, int64_t end, int64_t thread) noexcept {
                 phase.function(pointers.data(), symbols, scratch_.data() + thread * scratch_bytes_,
                                begin, end);
               });
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].is_written && buffers[i].bytes > 0)
      HONE_TRY(
          device.check(call.cuMemcpyHtoDAsync_v2(buffers[i].address, copies[i].data(),
                                                 static_cast<size_t>(buffers[i].bytes), stream),
                       "copied results of a kernel on the CPU"));
  return device.check(call.cuStreamSynchronize(stream),
                      "waited for results of a kernel on the CPU");
}

}  // namespace hone
