#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

std::string file_of(std::string_view header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + std::string(header) + std::string(data);
}

Result<Safetensors> parsed(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "a.safetensors");
}

std::string error(std::string_view header, std::string_view data) {
  const Result<Safetensors> content = parsed(file_of(header, data));
  if (content.ok()) return "parsed";
  EXPECT_EQ(content.error().where(), "a.safetensors");
  return content.error().what();
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  Safetensors content;
  content.metadata = {{"step", "7"}, {"note", "\"quoted\"\n"}};
  content.tensors = {
      {"w", Tensor::from_reals(Type::get(DType::f32, {2, 3}), std::vector{1., 2., 3., 4., 5., 6.})},
      {"flags",
       Tensor::from_integers(Type::get(DType::boolean, {3}), std::vector<int64_t>{1, 0, 1})},
      {"none", Tensor::zeros(Type::get(DType::i64, {0, 4}))},
      {"count", Tensor::scalar(DType::u64, 9)},
      {"half", Tensor::from_reals(Type::get(DType::bf16, {1}), std::vector{0.5})}};
  ASSERT_TRUE(write_safetensors(path, content).ok());
  const Result<Safetensors> read = read_safetensors(path);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->metadata, content.metadata);
  ASSERT_EQ(read->tensors.size(), content.tensors.size());
  for (const auto& [name, tensor] : content.tensors) {
    ASSERT_NE(read->find(name), nullptr) << name;
    EXPECT_EQ(read->find(name)->type(), tensor.type());
    EXPECT_TRUE(read->find(name)->same_bytes(tensor)) << name;
  }
  EXPECT_EQ(read->find("other"), nullptr);
}

TEST(Safetensors, ReadsPaddedHeadersInAnyOrder) {
  const Result<Safetensors> content =
      parsed(file_of(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                     R"("a":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}    )",
                     "\xff\x01\x02"));
  ASSERT_TRUE(content.ok()) << content.error().to_string();
  EXPECT_EQ(content->find("a")->integer_at(0), -1);
  EXPECT_EQ(content->find("b")->integer_at(1), 2);
}

TEST(Safetensors, RefusesDamage) {
  EXPECT_THAT(parsed("short").error().what(), HasSubstr("5 bytes"));
  EXPECT_THAT(parsed(std::string(8, '\xff')).error().what(), HasSubstr("at most 100000000"));
  EXPECT_THAT(parsed(file_of("{}", "").substr(0, 9)).error().what(), HasSubstr("only 1 are there"));
  EXPECT_THAT(error("[1]", ""), says("JSON object"));
  EXPECT_THAT(error(std::string(100000, '['), ""), says("JSON object"));
  EXPECT_THAT(error(R"({"w":3})", ""), HasSubstr(R"(tensor "w": it is a number)"));
  EXPECT_THAT(error(R"({"w":{"dtype":"F31","shape":[],"data_offsets":[0,4]}})", "abcd"),
              HasSubstr("F31"));
  EXPECT_THAT(error(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "abcd"),
              HasSubstr("not a natural number"));
  EXPECT_THAT(error(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", "abcd"), HasSubstr("'shape'"));
  EXPECT_THAT(error(R"({"w":{"dtype":"U8","shape":[1099511627776,1099511627776],)"
                    R"("data_offsets":[0,0]}})",
                    ""),
              HasSubstr("elements"));
  EXPECT_THAT(error(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd"),
              says("f32[2] ... 8 bytes ... offsets ... 0 and 4"));
  EXPECT_THAT(error(R"({"w":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"),
              HasSubstr("other than 0 and 1"));
  EXPECT_THAT(error(R"({"__metadata__":{"a":1}})", ""), HasSubstr("not a text"));
}

TEST(Safetensors, RefusesHolesOverlapsAndRests) {
  constexpr std::string_view kTwo = R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},)"
                                    R"("{}":{{"dtype":"U8","shape":[2],"data_offsets":[{},{}]}}}})";
  EXPECT_THAT(error(fmt::format(kTwo, "b", 1, 3), "abc"), HasSubstr("within the one before"));
  EXPECT_THAT(error(fmt::format(kTwo, "b", 3, 5), "abcde"), says("apart"));
  EXPECT_THAT(error(fmt::format(kTwo, "b", 2, 4), "abcde"), HasSubstr("but 5"));
  EXPECT_THAT(error(fmt::format(kTwo, "b", 2, 4), "abc"), HasSubstr("but 3"));
  EXPECT_THAT(error(fmt::format(kTwo, "a", 2, 4), "abcd"),
              HasSubstr(R"(two tensors are called "a")"));
}

// In less time than it would take to look for each key among those before it.
TEST(Safetensors, RefusesMoreThanItsLimits) {
  const auto texts = [](int count) {
    std::string header = R"({"__metadata__":{"k":"v")";
    for (int i = 1; i < count; ++i) header += fmt::format(R"(,"{}":"")", i);
    return header + "}}";
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(error(texts(100000), ""), "parsed");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(error(texts(500000), ""), "'__metadata__' has 500000 texts, more than 131072");
  std::string tensors = "{";
  for (int i = 0; i < 200000; ++i) tensors += fmt::format(R"("{}":0,)", i);
  tensors.back() = '}';
  EXPECT_THAT(error(tensors, ""), says("header ... 200000 tensors ... 131072"));
  std::string shape = R"({"a":{"shape":[0)";
  for (int i = 0; i < 5000000; ++i) shape += ",0";
  EXPECT_THAT(error(shape + "]}}", ""), HasSubstr("parts, more than 4194304"));
}

TEST(Safetensors, RefusesToWriteWhatItCannotHold) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::filesystem::path path = folder.path() / "a.safetensors";
  const Tensor one = Tensor::scalar(DType::f32, 1);
  EXPECT_THAT(write_safetensors(path, {{}, {{"a", one}, {"a", one}}}).error().what(),
              HasSubstr("another tensor"));
  EXPECT_EQ(write_safetensors(path, {{}, {{"a", Tensor::zeros(Type::get(DType::i4, {2}))}}})
                .error()
                .code(),
            ErrorCode::unsupported);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace hone::HONE_FILE
