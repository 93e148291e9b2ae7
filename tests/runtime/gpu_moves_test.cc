#include "runtime/cuda/gpu_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "tests/fake_cuda/library_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::FakeCuda;

constexpr size_t kBytes = 1000;

class GpuMoves : public testing::Test {
 protected:
  std::unique_ptr<CudaMemory> memory(size_t gpu) const {
    return CudaMemory::make(gpus_[gpu], kBytes).value();
  }
  static std::byte* at(const CudaMemory& memory) {
    return reinterpret_cast<std::byte*>(memory.address());
  }
  static std::vector<std::byte> numbers(int first) {
    std::vector<std::byte> made(kBytes);
    for (size_t i = 0; i < kBytes; ++i) made[i] = static_cast<std::byte>(first + int(i));
    return made;
  }

  const FakeCuda cuda_ = FakeCuda({.devices = 2});
  const std::vector<std::shared_ptr<const CudaDevice>> gpus_ = {cuda_.device(0).value(),
                                                                cuda_.device(1).value()};
};

// Other code of the process, such as torch, has the null stream.
TEST_F(GpuMoves, LeaveTheNullStreamAlone) {
  const auto move = moves_among(gpus_);
  for (const bool refuses : {false, true}) {
    cuda_.reset({.devices = 2, .refuses_peers = refuses});
    const auto first = memory(0), second = memory(1);
    const std::vector<std::byte> from = numbers(7);
    std::vector<std::byte> to(kBytes);
    ASSERT_TRUE(move(at(*first), from.data(), kBytes).ok());
    ASSERT_TRUE(move(at(*second), at(*first), kBytes).ok());
    ASSERT_TRUE(move(to.data(), at(*second), kBytes).ok());
    EXPECT_EQ(to, from);
    EXPECT_EQ(cuda_.counts().copied_to_peers, refuses ? 0 : int64_t{kBytes});
    EXPECT_EQ(cuda_.counts().of_null_stream, 0);
  }
}

TEST_F(GpuMoves, AreForAnyNumberOfThreads) {
  const auto move = moves_among(gpus_);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      const auto first = memory(t % 2), second = memory(1 - t % 2);
      for (int i = 0; i < 20; ++i) {
        const std::vector<std::byte> from = numbers(int(t) + i);
        std::vector<std::byte> to(kBytes);
        const bool good = move(at(*first), from.data(), kBytes).ok() &&
                          move(at(*second), at(*first), kBytes).ok() &&
                          move(to.data(), at(*second), kBytes).ok() && to == from;
        wrong[t] += good ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

// The fake tells GPUs apart: else no test of two of them could fail.
TEST_F(GpuMoves, AreHeldAgainstTheContextsOfTheirEnds) {
  const auto first = memory(0), second = memory(1);
  const cuda::Functions& call = gpus_[1]->call();
  const cuda::Context zero = gpus_[0]->context(), one = gpus_[1]->context();
  ASSERT_NE(zero, one);
  const std::vector<std::byte> from = numbers(1);
  {
    const CudaEntry entered = gpus_[1]->enter().value();
    EXPECT_NE(call.cuMemcpyPeerAsync(second->address(), zero, first->address(), one, kBytes, {}),
              cuda::kGood);
    EXPECT_NE(call.cuMemcpyHtoDAsync_v2(first->address(), from.data(), kBytes, {}), cuda::kGood);
    EXPECT_EQ(call.cuMemcpyPeerAsync(second->address(), one, first->address(), zero, kBytes, {}),
              cuda::kGood);
    EXPECT_EQ(call.cuStreamSynchronize(nullptr), cuda::kGood);
    cuda::Stream stream = nullptr;
    ASSERT_EQ(call.cuStreamCreate(&stream, cuda::kNotWithNull), cuda::kGood);
    {
      const CudaEntry other = gpus_[0]->enter().value();
      EXPECT_NE(call.cuStreamSynchronize(stream), cuda::kGood);
    }
    EXPECT_EQ(call.cuStreamDestroy_v2(stream), cuda::kGood) << "the thread went back";
  }
  EXPECT_NE(cuda_.faults(), "");
  cuda_.reset({.devices = 2});
}

}  // namespace
}  // namespace hone::HONE_FILE
