#include "runtime/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/pages.h"

namespace hone::HONE_FILE {
namespace {

TEST(Memory, IsZeroWritableAndAligned) {
  constexpr auto kLarge = static_cast<int64_t>(kLargePage);
  for (int64_t bytes :
       {int64_t{1}, Memory::kPage, kLarge - 1, kLarge, kLarge + 1, 2 * kLarge + 5}) {
    const Memory memory = Memory::map(bytes).value();
    ASSERT_EQ(memory.size(), bytes);
    const auto size = static_cast<size_t>(bytes);
    const size_t alignment = size > kLargePage - Memory::kPage ? kLargePage : Memory::kPage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % alignment, 0u) << bytes;
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + size,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::fill_n(memory.data(), size, std::byte{1});
  }
}

TEST(Memory, OfNoBytesIsNone) { EXPECT_EQ(Memory::map(0).value().data(), nullptr); }

TEST(Memory, IsRefusedWhereThereIsNotAsMuch) {
  const Result<Memory> memory = Memory::map(int64_t{1} << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code(), ErrorCode::limit);
}

}  // namespace
}  // namespace hone::HONE_FILE
