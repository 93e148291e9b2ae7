#include "formats/gguf.h"

#include <gtest/gtest.h>

#include "tests/base/says_testing.h"
#include "tests/front/gguf_file.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Result<Gguf> parsed(const std::string& file) {
  return parse_gguf(std::as_bytes(std::span(file)), "a.gguf");
}

std::string u32(uint32_t value) { return GgufWriter::bytes_of(value); }
std::string u64(uint64_t value) { return GgufWriter::bytes_of(value); }

TEST(Gguf, ReadsWhatTheFileSays) {
  GgufWriter writer;
  writer.text("general.architecture", "llama");
  writer.integer("count", 7);
  writer.real("rate", 0.5F);
  writer.flag("flag", true);
  writer.texts("words", {"a", "", "bc"});
  writer.integers("numbers", {-1, 2});
  writer.reals("scores", {1.5F, -2});
  writer.raw("long", 11, u64(static_cast<uint64_t>(-5)));
  writer.tensor("w", {2, 3}, gguf::kF32, std::string(24, '\1'));
  writer.tensor("q", {2, 64}, gguf::kQ8_0, std::string(136, '\2'));
  const std::string file = writer.bytes();
  const Result<Gguf> read = parsed(file);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(**read->get<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(**read->get<int64_t>("count"), 7);
  EXPECT_EQ(**read->get<double>("rate"), 0.5);
  EXPECT_TRUE(**read->get<bool>("flag"));
  EXPECT_EQ(**read->get<int64_t>("long"), -5);
  EXPECT_EQ(**read->get<std::vector<std::string_view>>("words"),
            (std::vector<std::string_view>{"a", "", "bc"}));
  EXPECT_EQ(**read->get<std::vector<int64_t>>("numbers"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(**read->get<std::vector<double>>("scores"), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(*read->get<int64_t>("none"), nullptr);
  EXPECT_THAT(read->get<bool>("count"), refuses(ErrorCode::bad_input, "count ... integer"));
  ASSERT_EQ(read->tensors.size(), 2U);
  const GgufTensor& q = *read->find("q");
  EXPECT_EQ(q.dims, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(q.type->name, "Q8_0");
  EXPECT_EQ(q.row_bytes(), 68);
  EXPECT_EQ(q.rows(), 2);
  EXPECT_EQ(q.bytes.size(), 136U);
  EXPECT_EQ(q.bytes[0], std::byte{2});
  EXPECT_EQ(read->find("none"), nullptr);
}

TEST(Gguf, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(parsed("GGML1234"), refuses(ErrorCode::bad_input, "a.gguf: ... GGUF"));
  EXPECT_THAT(parsed("GG"), refuses(ErrorCode::bad_input, "ends ... 8"));
  EXPECT_THAT(parsed("GGUF" + u32(1) + u64(0) + u64(0)),
              refuses(ErrorCode::unsupported, "version 1 ... 2 to 3"));
  EXPECT_THAT(parsed(std::string("GGUF\0\0\0\3", 8)),
              refuses(ErrorCode::unsupported, "big-endian"));
  EXPECT_TRUE(parsed(GgufWriter(2).bytes()).ok());
}

// A file that is cut anywhere is refused, and none of its bytes decides how much memory is taken.
TEST(Gguf, RefusesEachPartOfAFile) {
  GgufWriter writer;
  writer.text("general.architecture", "llama");
  writer.texts("words", {"a", "bc"});
  writer.integers("numbers", {1, 2});
  writer.tensor("w", {2, 3}, gguf::kF32, std::string(24, '\1'));
  const std::string file = writer.bytes();
  // The last tensor ends at 24 of its 32 bytes.
  for (size_t size = 0; size < file.size() - 8; ++size)
    EXPECT_FALSE(parsed(file.substr(0, size)).ok()) << size;
  EXPECT_TRUE(parsed(file.substr(0, file.size() - 8)).ok());
}

TEST(Gguf, RefusesMetadataThatContradictsTheFormat) {
  const auto with = [](const auto& write) {
    GgufWriter writer;
    write(writer);
    return parsed(writer.bytes());
  };
  EXPECT_THAT(with([](GgufWriter& w) { w.integer("a", 1), w.integer("a", 2); }),
              refuses(ErrorCode::bad_input, "two keys ... \"a\""));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 13, u32(0)); }),
              refuses(ErrorCode::bad_input, "type 13"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 7, "\2"); }),
              refuses(ErrorCode::bad_input, "\"a\" ... bool ... 2"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 10, u64(UINT64_MAX)); }),
              refuses(ErrorCode::limit, "\"a\" ... 18446744073709551615"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 9, u32(9) + u64(0)); }),
              refuses(ErrorCode::unsupported, "array of arrays"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 9, u32(8) + u64(uint64_t{1} << 60)); }),
              refuses(ErrorCode::limit, "array ... 1152921504606846976"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 9, u32(8) + u64(1 << 20)); }),
              refuses(ErrorCode::bad_input, "ends within an array"));
  EXPECT_THAT(with([](GgufWriter& w) { w.raw("a", 8, u64(UINT64_MAX)); }),
              refuses(ErrorCode::bad_input, "ends within a text"));
  EXPECT_THAT(with([](GgufWriter& w) { w.integer("general.alignment", 48); }),
              refuses(ErrorCode::bad_input, "general.alignment ... 48 ... power of two"));
  EXPECT_THAT(parsed("GGUF" + u32(3) + u64(0) + u64(UINT64_MAX)),
              refuses(ErrorCode::limit, "18446744073709551615 keys"));
  EXPECT_THAT(parsed("GGUF" + u32(3) + u64(UINT64_MAX) + u64(0)),
              refuses(ErrorCode::limit, "18446744073709551615 tensors"));
}

// The info of a tensor, innermost dim first.
std::string with_info(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset,
                      size_t data, int copies = 1) {
  std::string file = "GGUF" + u32(3) + u64(static_cast<uint64_t>(copies)) + u64(0);
  for (int i = 0; i < copies; ++i) {
    file += GgufWriter::counted(copies == 1 ? "w" : std::string("w") + std::to_string(i));
    file += u32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) file += u64(dim);
    file += u32(type) + u64(offset);
  }
  file.resize((file.size() + 31) / 32 * 32 + data);
  return file;
}

TEST(Gguf, RefusesTensorsThatDoNotFit) {
  const auto refused = [](const std::string& file, ErrorCode code, std::string says) {
    EXPECT_THAT(parsed(file), refuses(code, std::move(says)));
  };
  EXPECT_TRUE(parsed(with_info({4}, gguf::kF32, 0, 32)).ok());
  refused(with_info({}, gguf::kF32, 0, 32), ErrorCode::bad_input, "\"w\" ... 0 dims");
  refused(with_info({1, 1, 1, 1, 1}, gguf::kF32, 0, 32), ErrorCode::bad_input, "5 dims");
  refused(with_info({0}, gguf::kF32, 0, 32), ErrorCode::bad_input, "\"w\" ... dim 0 is 0");
  refused(with_info({uint64_t{1} << 32, uint64_t{1} << 32}, gguf::kF32, 0, 32), ErrorCode::limit,
          "64 bits");
  refused(with_info({uint64_t{1} << 62}, gguf::kF32, 0, 32), ErrorCode::limit, "64 bits");
  refused(with_info({48}, gguf::kQ4_0, 0, 64), ErrorCode::bad_input, "48 ... Q4_0 ... 32");
  refused(with_info({4}, 5, 0, 32), ErrorCode::bad_input, "type is 5");
  refused(with_info({256}, 16, 0, 512), ErrorCode::unsupported, "\"w\" ... IQ2_XXS");
  refused(with_info({4}, gguf::kF32, 8, 64), ErrorCode::bad_input, "begins at 8 ... 32");
  refused(with_info({4}, gguf::kF32, 64, 64), ErrorCode::bad_input, "16 bytes at 64 ... 64");
  refused(with_info({4}, gguf::kF32, UINT64_MAX - 31, 64), ErrorCode::bad_input, "\"w\" ... 16");
  refused(with_info({9}, gguf::kF32, 0, 32), ErrorCode::bad_input, "36 bytes at 0 ... 32");
  refused(with_info({4}, gguf::kF32, 0, 32, 2), ErrorCode::bad_input, "\"w0\" ... \"w1\" overlap");
  GgufWriter twice;
  twice.tensor("w", {1}, gguf::kF32, "1234");
  twice.tensor("w", {1}, gguf::kF32, "1234");
  refused(twice.bytes(), ErrorCode::bad_input, "two tensors ... \"w\"");
  GgufWriter named;
  named.tensor(std::string(65, 'x'), {1}, gguf::kF32, "1234");
  refused(named.bytes(), ErrorCode::limit, "65 ... 64");
}

}  // namespace
}  // namespace hone::HONE_FILE
