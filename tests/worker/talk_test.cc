#include "worker/talk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/worker/hostile_talk.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::vector<Type> some_types(Rng& rng) {
  std::vector<Type> types;
  for (int64_t i = rng.between(0, 5); i > 0; --i) {
    Dims dims;
    for (int64_t k = rng.between(0, kMaxRank); k > 0; --k) dims.emplace_back(rng.between(0, 3));
    types.push_back(Type::get(static_cast<DType>(rng.below(kDTypeCount)), dims));
  }
  return types;
}

TEST(Talk, ReadsTheTypesThatItWrites) {
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const std::vector<Type> types = some_types(rng);
    const auto count = static_cast<uint32_t>(types.size());
    std::vector<std::byte> bytes = encode_types(types);
    EXPECT_LE(bytes.size(), most_type_bytes(count));
    EXPECT_EQ(*decode_types(bytes, count), types);
    EXPECT_THAT(decode_types(bytes, count + 1), refuses(ErrorCode::bad_input, "cut off"));
    if (count > 0)
      EXPECT_THAT(decode_types(bytes, count - 1), refuses(ErrorCode::bad_input, "behind"));
  }
}

TEST(Talk, RefusesTypesThatCannotBe) {
  const auto with = [](uint8_t dtype, uint8_t rank, std::vector<int64_t> sizes) {
    std::vector<std::byte> bytes = {std::byte{dtype}, std::byte{rank}};
    const auto more = std::as_bytes(std::span(sizes));
    bytes.insert(bytes.end(), more.begin(), more.end());
    return decode_types(bytes, 1);
  };
  EXPECT_TRUE(with(0, 1, {5}).ok());
  EXPECT_THAT(with(kDTypeCount, 1, {5}), refuses(ErrorCode::bad_input, "element type"));
  EXPECT_THAT(with(0, kMaxRank + 1, std::vector<int64_t>(kMaxRank + 1, 1)),
              refuses(ErrorCode::bad_input, "rank 17"));
  EXPECT_THAT(with(0, 1, {-1}), refuses(ErrorCode::bad_input, "a dim of -1"));
  EXPECT_FALSE(with(0, 2, {kMaxElements, kMaxElements}).ok());
}

// Both ends over threads: what arrives is what was sent.
TEST(Talk, CarriesTensors) {
  const std::unique_ptr<Transport> transport = *make_thread_transport(2);
  const std::vector<Tensor> sent = {
      Tensor::from_reals(Type::get(DType::f32, {2, 3}), std::vector<double>{1, -2, 3, 4, 5, 6}),
      Tensor::zeros(Type::get(DType::f32, {0, 7})), Tensor::scalar(DType::i64, -9)};
  std::vector<Type> types;
  for (const Tensor& each : sent) types.push_back(each.type());
  std::thread sender(
      [&] { EXPECT_TRUE(Talk(*transport, kCallerDevice).send_tensors(sent, "sends").ok()); });
  const auto got = Talk(*transport, kWorkerDevice)
                       .receive_tensors(
                           3, encode_types(types).size(),
                           [](std::span<const Type>) { return Status(); }, "receives");
  sender.join();
  ASSERT_TRUE(got.ok());
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_TRUE((*got)[i].same_bytes(sent[i]));
}

std::vector<std::byte> tensor_bytes(const Type& type, std::vector<uint8_t> content) {
  std::vector<std::byte> bytes = encode_types(std::span(&type, 1));
  for (const uint8_t each : content) bytes.push_back(std::byte{each});
  return bytes;
}

TEST(Talk, RefusesBitsWithoutAMeaning) {
  const auto received = [](const Type& type, std::vector<uint8_t> content) {
    tested::ScriptedTransport transport(tensor_bytes(type, std::move(content)));
    return Talk(transport, kWorkerDevice)
        .receive_tensors(
            1, encode_types(std::span(&type, 1)).size(),
            [](std::span<const Type>) { return Status(); }, "receives");
  };
  EXPECT_TRUE(received(Type::get(DType::boolean, {3}), {0, 1, 1}).ok());
  EXPECT_THAT(received(Type::get(DType::boolean, {3}), {0, 2, 1}),
              refuses(ErrorCode::bad_input, "neither 0 nor 1"));
  EXPECT_TRUE(received(Type::get(DType::u4, {3}), {0x21, 0x03}).ok());
  EXPECT_THAT(received(Type::get(DType::u4, {3}), {0x21, 0x13}),
              refuses(ErrorCode::bad_input, "no element"));
}

// Nothing is taken for what is announced before it is checked.
TEST(Talk, ChecksBeforeItTakesMemory) {
  const Type large = Type::get(DType::f32, {int64_t{1} << 30});
  tested::ScriptedTransport transport(encode_types(std::span(&large, 1)));
  Talk talk(transport, kWorkerDevice);
  const std::vector<image::Port> ports = {{"x", Type::get(DType::f32, {4})}};
  const auto check = [&](std::span<const Type> types) {
    return check_types(types, ports, "input", 1 << 20);
  };
  EXPECT_THAT(talk.receive_tensors(1, encode_types(std::span(&large, 1)).size(), check, "receives"),
              refuses(ErrorCode::bad_input, "input 'x' is f32[1073741824] ... f32[4]"));
  EXPECT_LT(transport.most_room(), 100U);
  EXPECT_THAT(talk.receive_tensors(kMaxTalkTensors + 1, 0, check, "receives"),
              refuses(ErrorCode::bad_input, "4097 tensors"));
  EXPECT_THAT(talk.receive_tensors(1, 1 << 20, check, "receives"),
              refuses(ErrorCode::bad_input, "1048576 bytes"));
}

TEST(Talk, ChecksTypesAgainstPorts) {
  const std::vector<image::Port> ports = tested::hostile_ports();
  const auto checked = [&](std::vector<Type> types, int64_t limit) {
    return check_types(types, ports, "input", limit);
  };
  const Type flag = Type::get(DType::boolean, {3});
  EXPECT_TRUE(checked({Type::get(DType::f32, {4, 9}), flag}, 1000).ok());
  EXPECT_THAT(checked({Type::get(DType::f32, {4, 9})}, 1000),
              refuses(ErrorCode::bad_input, "1 inputs; the model has 2"));
  EXPECT_THAT(checked({Type::get(DType::f32, {5, 9}), flag}, 1000),
              refuses(ErrorCode::bad_input, "'x'"));
  EXPECT_THAT(checked({Type::get(DType::f32, {4}), flag}, 1000),
              refuses(ErrorCode::bad_input, "'x'"));
  EXPECT_THAT(checked({Type::get(DType::f64, {4, 9}), flag}, 1000),
              refuses(ErrorCode::bad_input, "'x'"));
  EXPECT_THAT(checked({Type::get(DType::f32, {4, 9}), flag}, 100),
              refuses(ErrorCode::limit, "147 bytes ... 100"));
}

TEST(Talk, SurvivesHostilePeers) {
  Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> bytes(rng.below(300));
    for (std::byte& each : bytes)
      each = std::byte{static_cast<uint8_t>(rng.below(4) == 0 ? rng.below(256) : rng.below(4))};
    tested::meet_hostile_tensors(bytes);
    tested::meet_hostile_worker(bytes);
    if (i % 10 == 0) tested::meet_hostile_caller(bytes);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
