#include "formats/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "base/file.h"
#include "base/rng.h"
#include "formats/zip_layout.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using namespace std::string_literals;

std::string number(uint64_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

// u8[3] = 1, 2, 3 as a .npy file, its CRC, and what zlib's deflate makes of it.
const std::string kNpy =
    "\x93NUMPY\1\0\x33\0{'descr':'|u1','fortran_order':False,'shape':(3,)}\n\1\2\3"s;
constexpr uint32_t kCrc = 0x4544fa83;
const std::string kDeflated =
    "\x9b\xec\x17\xea\x1b\x10\xc9\xc8\x60\xcc\x50\xad\x9e\x92\x5a\x9c\x5c\xa4\x6e\xa5\x5e\x53"
    "\x6a\xa8\xae\xa3\x9e\x96\x5f\x54\x52\x94\x98\x17\x9f\x5f\x94\x92\x0a\x14\x75\x4b\xcc\x29"
    "\x4e\xd5\x51\x2f\xce\x48\x2c\x48\x55\xb7\xd2\x30\xd6\xd1\xac\xe5\x62\x64\x62\x06\x00"s;

// A member, and what its headers say about it.
struct Member {
  std::string name = "a.npy";
  std::string packed = kNpy;
  uint64_t size = 64;
  uint32_t crc = kCrc;
  int method = 0;
  int flags = 0;
  bool zip64 = false;  // sizes in 64 bits, as numpy always writes them into the local header

  std::string header(std::string_view signature, std::string_view version) const {
    uint64_t marker = 0xffffffff;
    return "PK"s + std::string(signature) + std::string(version) + number(flags, 2) +
           number(method, 2) + number(0x210000, 4) + number(crc, 4) +
           number(zip64 ? marker : packed.size(), 4) + number(zip64 ? marker : size, 4) +
           number(name.size(), 2) + number(extra().size(), 2);
  }
  std::string extra() const {
    return zip64 ? number(1, 2) + number(16, 2) + number(size, 8) + number(packed.size(), 8) : "";
  }
};

constexpr int kDeflate = 8;

std::string zip(const std::vector<Member>& members) {
  std::string file, directory;
  for (const Member& member : members) {
    directory += member.header("\1\2", "\x2d\0\x2d\0"s) + number(0, 10) + number(file.size(), 4) +
                 member.name + member.extra();
    file += member.header("\3\4", "\x2d\0"s) + member.name + member.extra() + member.packed;
  }
  std::string end = "PK\5\6"s + number(0, 4) + number(members.size(), 2) +
                    number(members.size(), 2) + number(directory.size(), 4) +
                    number(file.size(), 4) + number(0, 2);
  return file + directory + end;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string error(std::string_view file) {
  Result<std::vector<NamedTensor>> tensors = parse_npz(bytes_of(file), "a.npz");
  return tensors.ok() ? "parsed" : tensors.error().to_string();
}

class NpzTest : public testing::Test {
 protected:
  std::vector<NamedTensor> round_trip(const std::vector<NamedTensor>& tensors) {
    Status status = write_npz(path, tensors);
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    Result<std::vector<NamedTensor>> back = read_npz(path);
    EXPECT_TRUE(back.ok()) << back.error().to_string();
    return *back;
  }

  TempDir folder = TempDir::create(testing::TempDir()).value();
  std::filesystem::path path = folder.path() / "t.npz";
};

Tensor counting(Type type) {
  std::vector<int64_t> values(static_cast<size_t>(type.static_elements()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from_integers(type, values);
}

TEST_F(NpzTest, RoundTrip) {
  std::vector<NamedTensor> tensors = {{"b", counting(Type::get(DType::f32, {3, 5}))},
                                      {"a/w.0", counting(Type::get(DType::i64, {}))},
                                      {"\xce\xb1", counting(Type::get(DType::u8, {0}))},
                                      {"bool", counting(Type::get(DType::boolean, {2}))}};
  std::vector<NamedTensor> back = round_trip(tensors);
  ASSERT_EQ(back.size(), tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].name, tensors[i].name);
    EXPECT_EQ(back[i].tensor.content_hash(), tensors[i].tensor.content_hash());
  }
  EXPECT_TRUE(round_trip({}).empty());
}

TEST_F(NpzTest, DataIsAlignedAndStaysMapped) {
  std::vector<NamedTensor> tensors;
  for (int i = 1; i < 40; ++i) {
    tensors.push_back({std::string(i, 'x'), counting(Type::get(DType::u8, {i}))});
  }
  for (const NamedTensor& named : round_trip(tensors)) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(named.tensor.bytes().data()) % 64, 0u) << named.name;
  }
  auto file = std::make_shared<const MappedFile>(MappedFile::open(path).value());
  std::vector<NamedTensor> shared = *parse_npz(file->bytes(), "t", file);
  const std::byte* begin = file->bytes().data();
  for (const NamedTensor& named : shared) {
    EXPECT_GE(named.tensor.bytes().data(), begin);
    EXPECT_LT(named.tensor.bytes().data(), begin + file->bytes().size());
  }
}

TEST_F(NpzTest, TheSameTensorsGiveTheSameBytes) {
  std::vector<NamedTensor> tensors = {{"a", counting(Type::get(DType::f32, {7}))}};
  round_trip(tensors);
  std::string first = *read_file(path, 10000);
  round_trip(tensors);
  EXPECT_EQ(*read_file(path, 10000), first);
}

TEST_F(NpzTest, LazyTensorsStayUnreadWhenWritten) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 3; ++i) {
    auto fill = [i](std::span<std::byte> out) { std::fill(out.begin(), out.end(), std::byte(i)); };
    tensors.push_back({fmt::format("t{}", i), Tensor::lazy(Type::get(DType::i8, {1000}), i, fill)});
  }
  std::vector<NamedTensor> back = round_trip(tensors);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(tensors[i].tensor.is_materialized());
    EXPECT_EQ(back[i].tensor.integer_at(999), i);
  }
}

TEST_F(NpzTest, AFaultWhileFillingLeavesNoFile) {
  auto fill = [](std::span<std::byte>) { HONE_CHECK(false, "cannot fill"); };
  std::vector<NamedTensor> tensors = {{"t", Tensor::lazy(Type::get(DType::i8, {9}), 0, fill)}};
  EXPECT_THROW((void)write_npz(path, tensors), InternalError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(NpzTest, WritingRefusesNamesThatReadingWould) {
  Tensor tensor = counting(Type::get(DType::u8, {1}));
  for (std::string name : {"", "/a", "../a", "a/./b", "a\nb", "a\\b"}) {
    std::vector<NamedTensor> tensors = {{name, tensor}};
    EXPECT_THAT(write_npz(path, tensors).error().what(), says("tensor ... very long"));
  }
  std::vector<NamedTensor> twice = {{"a", tensor}, {"a", tensor}};
  EXPECT_EQ(write_npz(path, twice).error().what(), "two tensors are named 'a'");
  std::vector<NamedTensor> good = {{"a", tensor}};
  EXPECT_THAT(write_npz(folder.path() / "no" / "t", good).error().what(),
              testing::StartsWith("cannot write '"));
}

TEST(NpzParse, StoredAndDeflatedMembers) {
  for (const Member& member :
       {Member{}, Member{.zip64 = true}, Member{.packed = kDeflated, .method = kDeflate}}) {
    std::string file = zip({member, {.name = "b.npy"}});
    std::shared_ptr<const void> owner(file.data(), [](const void*) {});
    for (const auto& keep : {owner, std::shared_ptr<const void>()}) {
      std::vector<NamedTensor> tensors = parse_npz(bytes_of(file), "a.npz", keep).value();
      ASSERT_EQ(tensors.size(), 2u);
      EXPECT_EQ(tensors[0].name, "a");
      EXPECT_EQ(tensors[0].tensor.integer_at(2), 3);
      EXPECT_EQ(tensors[1].name, "b");
    }
  }
}

TEST_F(NpzTest, AFilterSeesHeadersBeforeData) {
  const std::filesystem::path path = folder.path() / "a.npz";
  for (const Member& member : {Member{}, Member{.packed = kDeflated, .method = kDeflate}}) {
    ASSERT_TRUE(write_file_atomic(path, zip({member})).ok());
    std::vector<std::string> seen;
    bool is_wanted = true;
    const auto take = [&](std::string_view name, Type type) -> Result<bool> {
      seen.push_back(fmt::format("{} {}", name, type.to_string()));
      return is_wanted;
    };
    EXPECT_EQ(read_npz(path, take)->size(), 1u);
    EXPECT_EQ(seen.size(), 1u);
    is_wanted = false;
    EXPECT_EQ(read_npz(path, take)->size(), 0u);
    EXPECT_THAT(seen[0], testing::HasSubstr("a "));
    const auto refuse = [](std::string_view, Type) -> Result<bool> {
      return bad_input("unwanted");
    };
    const Error error = read_npz(path, refuse).error();
    EXPECT_EQ(error.what(), "unwanted");
    EXPECT_THAT(error.where(), testing::HasSubstr("a.npz, member 'a.npy'"));
  }
}

TEST_F(NpzTest, AFilterLetsNoMoreBytesBeInflatedThanItSaw) {
  const Member member = {.packed = kDeflated, .size = 1 << 16, .method = kDeflate};
  ASSERT_TRUE(write_file_atomic(path, zip({member})).ok());
  EXPECT_THAT(read_npz(path).error().what(), testing::HasSubstr("it holds 64 bytes, not 65536"));
  const auto all = [](std::string_view, Type) -> Result<bool> { return true; };
  EXPECT_THAT(read_npz(path, all).error().what(), says("65472 bytes ... u8[3]"));
}

TEST_F(NpzTest, DamageOfStoredMembersIsFound) {
  round_trip({{"a", counting(Type::get(DType::f32, {7}))},
              {"large", counting(Type::get(DType::u8, {200000}))}});
  const std::string file = *read_file(path, 1 << 20);
  const ZipMember large = zip_layout(bytes_of(file))[1];
  std::string damaged = file;
  damaged[static_cast<size_t>(large.data.data() + large.data.size() - bytes_of(file).data()) - 1] ^=
      1;
  ASSERT_TRUE(write_file_atomic(path, damaged).ok());
  const Error error = read_npz(path).error();
  EXPECT_EQ(error.what(), "its bytes are damaged: CRC error");
  EXPECT_THAT(error.where(), testing::EndsWith("t.npz, member 'large.npy'"));
  // An array that is not wanted is not read.
  const auto is_small = [](std::string_view name, Type) -> Result<bool> { return name == "a"; };
  EXPECT_EQ(read_npz(path, is_small)->size(), 1u);
  // Weights are read when they are needed.
  EXPECT_TRUE(parse_npz(bytes_of(damaged), "t.npz").ok());
}

TEST_F(NpzTest, StoredMembersThatOverlapAreReadOnce) {
  Member entry;
  const std::string member = entry.header("\3\4", "\x2d\0"s) + entry.name + kNpy;
  std::string directory;
  const int count = 200;
  std::string file = member;
  for (int i = 0; i < count; ++i) {
    entry.name = fmt::format("{}.npy", i);
    directory += entry.header("\1\2", "\x2d\0\x2d\0"s) + number(0, 14) + entry.name;
  }
  file += directory + "PK\5\6"s + number(0, 4) + number(count, 2) + number(count, 2) +
          number(directory.size(), 4) + number(member.size(), 4) + number(0, 2);
  ASSERT_TRUE(write_file_atomic(path, file).ok());
  EXPECT_THAT(read_npz(path).error().to_string(), says("members ... bytes ... file"));
}

TEST(NpzParse, TheLayoutFindsStoredData) {
  std::string file = zip({{.zip64 = true}, {.packed = kDeflated, .method = kDeflate}, {}});
  std::vector<ZipMember> layout = zip_layout(bytes_of(file));
  ASSERT_EQ(layout.size(), 3u);
  EXPECT_TRUE(layout[0].stored);
  EXPECT_FALSE(layout[1].stored);
  for (size_t i : {0, 2}) {
    EXPECT_EQ(layout[i].name, "a.npy");
    EXPECT_EQ(layout[i].data.data() - bytes_of(file).data(), file.find(kNpy, i * 100));
    EXPECT_EQ(layout[i].data.size(), kNpy.size());
  }
  EXPECT_TRUE(zip_layout({}).empty());
}

TEST(NpzHostile, EachFaultIsNamed) {
  const std::string bomb(2000, '\0');
  struct Case {
    Member member;
    std::string_view what;
  };
  const Case cases[] = {
      {{.name = "a.txt"}, ".npy file"},
      {{.flags = 1}, "it is encrypted"},
      {{.method = 12}, "its compression method, number 12"},
      {{.packed = kDeflated, .size = 1 << 30, .method = kDeflate}, "1073741824 bytes in 65"},
      {{.packed = kDeflated, .size = 63, .method = kDeflate}, "63 bytes"},
      {{.packed = kDeflated, .size = 65, .method = kDeflate}, "it holds 64 bytes, not 65"},
      {{.packed = kDeflated, .crc = 1, .method = kDeflate}, "CRC error"},
      {{.packed = "\xff\xff", .method = kDeflate}, "Zlib error: data error"},
      {{.packed = kNpy + "x", .size = 65}, "1 bytes ... u8[3]"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(error(zip({c.member})),
                says(fmt::format("{} ... a.npz, member '{}'", c.what, c.member.name)));
  }
}

TEST(NpzHostile, Names) {
  EXPECT_EQ(error(zip({{}, {}})), "error: two members are named 'a.npy' (a.npz)");
  for (std::string_view name : {"../a.npy", "/a.npy", ".npy", "a\\b.npy", "\x1b[2J.npy"}) {
    EXPECT_THAT(error(zip({{.name = std::string(name)}})), says("tensor ... very long"));
  }
}

TEST(NpzHostile, MembersThatOverlapCannotHoldMoreThanTheFileAllows) {
  // A .npy file of 70000 zeros.
  const std::string packed =
      "\xed\xc8\x31\x0e\xc1\x50\x18\x00\xe0\x5a\x5d\xe4\x27\xe9\xc0\xd4\xa4\x07\xb0\x11\x4b\x07"
      "\x93\x34\xfa\xc4\x20\x2a\xef\x31\xe1\x14\x2e\xac\x87\x30\x7e\xdf\xf8\x7d\x77\xdd\x76\x7f"
      "\x98\x55\x4d\xf5\x8a\x21\x95\x53\x8e\x36\xde\xcf\x75\xd4\x71\x1e\xf3\x23\xf7\xb7\xe3\x98"
      "\x87\x34\xed\xa6\xbf\x96\x54\x47\xb9\xf4\xf7\x14\xed\xa2\x59\x4d\xea\xe5\x67\x5e\x01"
      ""s +
      std::string(67, '\0') + "\x7f\xf7\x03"s;
  Member entry = {.packed = packed, .size = 70065, .crc = 0x835c9b4a, .method = kDeflate};
  ASSERT_EQ(error(zip({entry})), "parsed");
  // Many entries of the directory that share it.
  std::string member = entry.header("\3\4", "\x2d\0"s) + entry.name + packed, directory;
  for (int i = 0; i < 200; ++i) {
    entry.name = fmt::format("{}.npy", i);
    directory += entry.header("\1\2", "\x2d\0\x2d\0"s) + number(0, 14) + entry.name;
  }
  std::string end = "PK\5\6"s + number(0, 4) + number(200, 2) + number(200, 2) +
                    number(directory.size(), 4) + number(member.size(), 4) + number(0, 2);
  EXPECT_THAT(error(member + directory + end), testing::HasSubstr("more than 1100 times"));
}

TEST(NpzHostile, DamagedArchivesAreErrors) {
  EXPECT_THAT(error(""), testing::StartsWith("error: not a .npz file: "));
  std::string file =
      zip({{.zip64 = true}, {.name = "b.npy", .packed = kDeflated, .method = kDeflate}});
  ASSERT_EQ(error(file), "parsed");
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(error(file.substr(0, size)), "parsed");
  Rng rng(3);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = file;
    for (int k = 0; k < 2; ++k) damaged[rng.below(file.size())] = static_cast<char>(rng.next());
    (void)error(damaged);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
