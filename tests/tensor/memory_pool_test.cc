#include "tensor/memory_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tensor/tensor.h"

namespace hone::HONE_FILE {
namespace {

constexpr size_t kSize = MemoryPool::kLeast;

TEST(MemoryPool, GivesWhatWasGivenBack) {
  MemoryPool pool(2 * kSize);
  AlignedBytes memory = pool.take(kSize);
  const std::byte* const where = memory.data();
  pool.give(std::move(memory), kSize);
  EXPECT_NE(pool.take(2 * kSize).data(), where);
  const AlignedBytes again = pool.take(kSize), other = pool.take(kSize);
  EXPECT_EQ(again.data(), where);
  EXPECT_NE(other.data(), where);
}

TEST(MemoryPool, KeepsNoMoreThanItMay) {
  MemoryPool pool(kSize);
  AlignedBytes first = pool.take(kSize), second = pool.take(kSize);
  const std::byte* const where = first.data();
  pool.give(std::move(first), kSize);
  pool.give(std::move(second), kSize);  // the heap's again
  EXPECT_EQ(pool.take(kSize).data(), where);
}

TEST(MemoryPool, TensorsGiveTheirMemoryBackWithTheLastHandle) {
  auto pool = std::make_shared<MemoryPool>(2 * kSize);
  const Type type = Type::get(DType::f32, {static_cast<int64_t>(kSize) / 4});
  Tensor tensor = Tensor::uninitialized(type, pool);
  std::ranges::fill(tensor.mutable_bytes(), std::byte{7});
  const std::byte* const where = tensor.bytes().data();
  Tensor view = tensor.viewed_as(Type::get(DType::u8, {static_cast<int64_t>(kSize)}));
  tensor = {};
  const Tensor other = Tensor::uninitialized(type, pool);
  EXPECT_NE(other.bytes().data(), where);
  view = {};
  tensor = Tensor::uninitialized(type, pool);
  EXPECT_EQ(tensor.bytes().data(), where);
  pool = nullptr;  // the tensor keeps it
  EXPECT_TRUE(tensor.is_writable());
}

TEST(MemoryPool, ServesManyThreadsAtOnce) {
  MemoryPool pool(4 * kSize);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 200; ++i) {
        AlignedBytes memory = pool.take(kSize);
        std::fill_n(memory.data(), kSize, static_cast<std::byte>(t));
        EXPECT_EQ(std::count(memory.data(), memory.data() + kSize, static_cast<std::byte>(t)),
                  static_cast<int64_t>(kSize));
        pool.give(std::move(memory), kSize);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hone::HONE_FILE
