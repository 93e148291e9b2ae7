#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/pages.h"
#include "base/rng.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span(out));
  return out;
}

Tensor from(DType dtype, const std::vector<double>& values) {
  return Tensor::from_reals(Type::get(dtype, {static_cast<int64_t>(values.size())}), values);
}

Tensor counting(Type type) {
  std::vector<int64_t> values(static_cast<size_t>(type.static_elements()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from_integers(type, values);
}

TEST(Tensor, HoldsNumbersOfEveryType) {
  const std::vector<double> values = {0, 1, 2, 3, 7, 1, 0};
  for (int i = 0; i < kDTypeCount; ++i) {
    DType dtype = static_cast<DType>(i);
    Tensor tensor = from(dtype, values);
    std::vector<double> expected = values;
    for (double& v : expected)
      v = is_real(dtype) ? round_to(dtype, v) : static_cast<double>(real_to_integer(dtype, v));
    EXPECT_EQ(reals(tensor), expected) << name(dtype);
    EXPECT_EQ(tensor.real_at(4), expected[4]) << name(dtype);
    EXPECT_EQ(tensor.byte_size(), (7 * bits(dtype) + 7) / 8) << name(dtype);
    if (!is_real(dtype)) EXPECT_EQ(tensor.integer_at(3), expected[3]) << name(dtype);
  }
}

TEST(Tensor, EveryPatternReadsAsItDecodes) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                      DType::f8e5m2fnuz, DType::f8e8m0, DType::f4e2m1}) {
    int64_t count = int64_t{1} << bits(dtype);
    Tensor tensor =
        counting(Type::get(pattern_type(dtype), {count})).viewed_as(Type::get(dtype, {count}));
    std::vector<double> wide = reals(tensor);
    std::vector<float> narrow(wide.size());
    tensor.read_reals(0, std::span(narrow));
    for (size_t i = 0; i < wide.size(); ++i) {
      double expected = decode_real(dtype, i);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(wide[i]) && std::isnan(narrow[i])) << name(dtype) << " " << i;
      } else {
        EXPECT_EQ(std::bit_cast<uint64_t>(wide[i]), std::bit_cast<uint64_t>(expected)) << i;
        EXPECT_EQ(narrow[i], static_cast<float>(expected)) << name(dtype) << " " << i;
      }
    }
  }
}

TEST(Tensor, IntegersAreCanonicalImages) {
  const int64_t values[] = {-1, 300, 8};
  EXPECT_EQ(Tensor::from_integers(Type::get(DType::u8, {3}), values).integer_at(1), 44);
  EXPECT_EQ(Tensor::from_integers(Type::get(DType::i4, {3}), values).integer_at(2), -8);
  Tensor large = Tensor::from_integers(Type::get(DType::u64, {3}), values);
  EXPECT_EQ(large.integer_at(0), -1);
  EXPECT_EQ(large.real_at(0), 0x1p64);
  EXPECT_THROW(from(DType::f32, {1}).integer_at(0), InternalError);
  EXPECT_THROW(large.integer_at(3), InternalError);
}

TEST(Tensor, IntegersRoundOnceToReals) {
  // Halfway between two floats and one more: rounding to double first would lose the one.
  const int64_t value[] = {(int64_t{1} << 62) + (int64_t{1} << 38) + 1};
  EXPECT_EQ(Tensor::from_integers(Type::get(DType::f32, {1}), value).real_at(0), 0x1.000002p62);
  EXPECT_EQ(Tensor::from_integers(Type::get(DType::bf16, {1}), value).real_at(0), 0x1p62);
}

TEST(Tensor, SubBytesArePackedLowHalfFirst) {
  Tensor tensor = from(DType::u4, {1, 2, 3});
  EXPECT_EQ(tensor.bytes()[0], std::byte{0x21});
  EXPECT_EQ(tensor.bytes()[1], std::byte{0x03});
  const uint8_t dirty[] = {0x21, 0xf3};
  EXPECT_TRUE(tensor.same_bytes(Tensor::of(tensor.type(), std::span<const uint8_t>(dirty))));
}

TEST(Tensor, FourElementsOfTwoBitsShareAByte) {
  Tensor tensor = from(DType::i2, {1, -2, -1, 0, 1});
  EXPECT_EQ(tensor.bytes()[0], std::byte{0x39});
  EXPECT_EQ(tensor.bytes()[1], std::byte{0x01});
  EXPECT_EQ(tensor.integer_at(1), -2);
  EXPECT_EQ(tensor.type().bits_of_last_byte(), std::byte{0x03});
}

TEST(Tensor, RealsOfFourBitsShareAByte) {
  Tensor tensor = from(DType::f4e2m1, {0.5, -6, 1});
  EXPECT_EQ(tensor.bytes()[0], std::byte{0xf1});
  EXPECT_EQ(tensor.bytes()[1], std::byte{0x02});
  EXPECT_EQ(tensor.real_at(1), -6);
}

TEST(Tensor, OwnedBytesAreAlignedAndWritableByTheOnlyOwner) {
  Tensor tensor = Tensor::zeros(Type::get(DType::f32, {4}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % 64, 0u);
  uint64_t before = tensor.content_hash();
  tensor.mutable_bytes()[0] = std::byte{1};
  EXPECT_NE(tensor.content_hash(), before);
  Tensor other = tensor;
  EXPECT_THROW(tensor.mutable_bytes(), InternalError);
}

TEST(Tensor, ManyBytesBeginAtALargePage) {
  constexpr auto kCount = static_cast<int64_t>(kLargePage / sizeof(float));
  for (int64_t count : {kCount - 1, kCount, kCount + 1, 3 * kCount + 5}) {
    const Tensor tensor = Tensor::zeros(Type::get(DType::f32, {count}));
    const std::span<const std::byte> all = tensor.bytes();
    const size_t alignment = count < kCount ? 64 : kLargePage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % alignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(all, [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(Tensor, SharedBytesLiveAsLongAsTheTensorAndMayBeUnaligned) {
  auto owner = std::make_shared<std::vector<std::byte>>(9);
  const float values[] = {1.5f, -2};
  std::memcpy(owner->data() + 1, values, 8);
  Type type = Type::get(DType::f32, {2});
  Tensor tensor = *Tensor::shared(type, owner, std::span(*owner).subspan(1));
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(tensor.bytes().data(), owner->data() + 1);
  EXPECT_EQ(tensor.as<float>()[1], -2);
  EXPECT_EQ(reals(tensor), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(tensor.content_hash(), from(DType::f32, {1.5, -2}).content_hash());
  EXPECT_THROW(tensor.mutable_bytes(), InternalError);
  EXPECT_THAT(Tensor::shared(type, owner, *owner).error().what(), says("f32[2] ... 9 bytes ... 8"));
}

TEST(Tensor, MappedFilesAreCheckedForLength) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  std::filesystem::path path = folder.path() / "data";
  std::ofstream(path) << "0123456789";
  auto file = std::make_shared<const MappedFile>(std::move(*MappedFile::open(path)));
  Type type = Type::get(DType::u8, {4});
  EXPECT_EQ(Tensor::mapped(type, file, 6)->integer_at(3), '9');
  for (int64_t offset : {int64_t{7}, int64_t{-1}, INT64_MAX}) {
    EXPECT_THAT(Tensor::mapped(type, file, offset).error().what(),
                says(fmt::format("u8[4] ... 4 bytes ... offset {} ... 10 bytes", offset)));
  }
}

TEST(Tensor, LazyBytesAreMadeOnceWhenRead) {
  std::atomic<int> calls = 0;
  auto fill = [&calls](std::span<std::byte> out) {
    ++calls;
    std::fill(out.begin(), out.end(), std::byte{7});
  };
  Tensor tensor = Tensor::lazy(Type::get(DType::u8, {1000}), 42, fill);
  uint64_t hash = tensor.content_hash();
  EXPECT_FALSE(tensor.is_materialized());
  std::vector<std::byte> scratch;
  EXPECT_EQ(tensor.bytes_once(scratch)[999], std::byte{7});
  EXPECT_FALSE(tensor.is_materialized());
  calls = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(tensor.integer_at(999), 7); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(tensor.is_materialized());
  EXPECT_EQ(tensor.content_hash(), hash);
  EXPECT_TRUE(tensor.same_bytes(Tensor::lazy(tensor.type(), 42, fill)));
  EXPECT_EQ(calls, 1);
}

TEST(Tensor, ViewsShareBytesButNotTheHash) {
  Tensor tensor = counting(Type::get(DType::i32, {2, 3}));
  Tensor flat = tensor.viewed_as(Type::get(DType::i32, {6}));
  EXPECT_EQ(flat.bytes().data(), tensor.bytes().data());
  EXPECT_TRUE(flat.same_bytes(tensor));
  EXPECT_NE(flat.content_hash(), tensor.content_hash());
  EXPECT_THROW(tensor.viewed_as(Type::get(DType::i32, {5})), InternalError);
}

TEST(Tensor, EmptyTensors) {
  Tensor tensor = Tensor::zeros(Type::get(DType::f32, {0, 3}));
  EXPECT_TRUE(tensor.bytes().empty());
  EXPECT_TRUE(tensor.as<float>().empty());
  EXPECT_TRUE(Tensor::shared(tensor.type(), nullptr, {})->same_bytes(tensor));
  EXPECT_FALSE(Tensor());
  EXPECT_THROW(Tensor().bytes(), InternalError);
}

}  // namespace
}  // namespace hone::HONE_FILE
