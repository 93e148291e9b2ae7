#include "formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "base/file.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using namespace std::string_literals;

// A file as numpy writes it, but without the padding.
std::string npy(std::string_view dict, std::string_view data, int version = 1) {
  std::string file = "\x93NUMPY"s + static_cast<char>(version) + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  }
  return file + std::string(dict) + std::string(data);
}

std::string dict(std::string_view descr, std::string_view shape, bool column_major = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                     column_major ? "True" : "False", shape);
}

Result<Tensor> parse(std::string_view file) {
  return parse_npy(std::as_bytes(std::span(file.data(), file.size())), "a.npy");
}

std::string error(std::string_view file) {
  Result<Tensor> tensor = parse(file);
  if (tensor.ok()) return "parsed as " + tensor->type().to_string();
  EXPECT_EQ(tensor.error().where(), "a.npy");
  return tensor.error().what();
}

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span(out));
  return out;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  Tensor tensor = *parse(npy(dict("<f4", "(2, 1)"), "\0\0\xc0\x3f\0\0\0\xc0"s));
  EXPECT_EQ(tensor.type().to_string(), "f32[2, 1]");
  EXPECT_EQ(reals(tensor), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(parse(npy(dict("<i8", "()"), "\x05\0\0\0\0\0\0\0"s))->integer_at(0), 5);
  EXPECT_EQ(parse(npy(dict("|u1", "(3,)"), "\1\2\xff"))->integer_at(2), 255);
  EXPECT_EQ(parse(npy(dict("<f2", "(1,)"), "\0\x3c"s))->real_at(0), 1);
  EXPECT_EQ(parse(npy(dict("<f8", "(0, 7)"), ""))->type().to_string(), "f64[0, 7]");
  EXPECT_EQ(parse(npy(dict("|i1", "(1,)"), "\xfe", 2))->integer_at(0), -2);
  EXPECT_EQ(parse(npy(dict("<u2", "(1L,)"), "\1\2", 3))->integer_at(0), 0x201);
}

TEST(Npy, KeysComeInAnyOrder) {
  std::string keys = "{\"shape\":(1,),'fortran_order':False, 'descr':'|u1'}";
  EXPECT_EQ(parse(npy(keys, "\7"))->integer_at(0), 7);
}

TEST(Npy, BigEndianIsSwapped) {
  EXPECT_EQ(parse(npy(dict(">i4", "(2,)"), "\0\0\1\0\xff\xff\xff\xfe"s))->integer_at(0), 256);
  EXPECT_EQ(parse(npy(dict(">f8", "()"), "\x3f\xf8\0\0\0\0\0\0"s))->real_at(0), 1.5);
}

TEST(Npy, ColumnMajorIsTransposed) {
  Tensor tensor = *parse(npy(dict("|u1", "(2, 3)", true), "\0\3\1\4\2\5"s));
  EXPECT_EQ(reals(tensor), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  // Element (i, j, k) of 2 x 3 x 2 is stored at i + 2*j + 6*k.
  std::string data(24, '\0');
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k)
        data[2 * (i + 2 * j + 6 * k)] = static_cast<char>(6 * i + 2 * j + k);
    }
  }
  std::vector<double> counting(12);
  std::iota(counting.begin(), counting.end(), 0);
  EXPECT_EQ(reals(*parse(npy(dict("<i2", "(2, 3, 2)", true), data))), counting);
}

TEST(Npy, BoolsBecomeZeroOrOne) {
  Tensor tensor = *parse(npy(dict("|b1", "(3,)"), "\0\1\2"s));
  EXPECT_EQ(tensor.as<uint8_t>()[2], 1);
}

TEST(Npy, RoundTripThroughAFile) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const Dims& dims : {Dims{}, Dims{5}, Dims{2, 3}, Dims{0, 3}}) {
      DType dtype = static_cast<DType>(i);
      Type type = Type::get(dtype, dims);
      std::vector<double> values(static_cast<size_t>(type.static_elements()));
      std::iota(values.begin(), values.end(), 1);
      Tensor tensor = Tensor::from_reals(type, values);
      ASSERT_TRUE(write_npy(folder.path() / "t.npy", tensor).ok());
      Tensor back = *read_npy(folder.path() / "t.npy");
      EXPECT_EQ(reals(back), reals(tensor)) << type.to_string();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(back.bytes().data()) % 64, 0u);
      bool in_numpy = !kStorageOnly.contains(dtype) && dtype != DType::bf16;
      if (in_numpy) EXPECT_TRUE(back.same_bytes(tensor) && back.type() == type) << name(dtype);
    }
  }
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  const float values[] = {1.5f};
  Tensor tensor = Tensor::of(Type::get(DType::f32, {1}), std::span<const float>(values));
  ASSERT_TRUE(write_npy(folder.path() / "t.npy", tensor).ok());
  std::string header = "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"s;
  header.resize(127, ' ');
  EXPECT_EQ(*read_file(folder.path() / "t.npy", 1000), header + "\n\0\0\xc0\x3f"s);
}

TEST(Npy, LazyTensorsStayUnreadWhenWritten) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  Tensor tensor = Tensor::lazy(Type::get(DType::u8, {3}), 1, [](std::span<std::byte> out) {
    std::fill(out.begin(), out.end(), std::byte{9});
  });
  ASSERT_TRUE(write_npy(folder.path() / "t.npy", tensor).ok());
  EXPECT_FALSE(tensor.is_materialized());
  EXPECT_EQ(read_npy(folder.path() / "t.npy")->integer_at(2), 9);
}

TEST(Npy, ErrorsNameTheFile) {
  TempDir folder = TempDir::create(testing::TempDir()).value();
  std::string path = folder.path() / "bad.npy";
  std::ofstream(path) << "junk";
  EXPECT_THAT(read_npy(path).error().to_string(), says(".npy ... magic number ... " + path));
  EXPECT_EQ(read_npy(folder.path() / "none").error().code(), ErrorCode::bad_input);
}

TEST(NpyHostile, Frames) {
  EXPECT_THAT(error(""), says(".npy ... magic number"));
  EXPECT_THAT(error("\x93NUMPY\1"), says("header"));
  EXPECT_THAT(error("\x93NUMPY\2\0\1\0"s), says("header"));
  EXPECT_THAT(error("\x93NUMPY\4\0\1\0{"s), says("version 4.0 ... .npy"));
  EXPECT_THAT(error("\x93NUMPY\1\0\xff\xff{}"s), says("header ... 65535 bytes ... 2"));
  EXPECT_THAT(error("\x93NUMPY\2\0\xff\xff\xff\xff{}"s), says("header ... 4294967295 bytes ... 2"));
}

TEST(NpyHostile, Dictionaries) {
  EXPECT_EQ(error(npy("{}", "")), "the header has no 'descr'");
  EXPECT_EQ(error(npy("{'descr': '<f4', 'shape': ()}", "")), "the header has no 'fortran_order'");
  struct Case {
    std::string_view dict, what;
  };
  const Case cases[] = {
      {"", "expected '{' (byte 0 of the dictionary)"},
      {"{'descr' '<f4'}", "expected ':' (byte 9 of the dictionary)"},
      {"{'descr': 4}", "expected a string (byte 10 of the dictionary)"},
      {"{'descr': '<f4}", "string ... byte 10 of the dictionary"},
      {"{'descr': '<f4', 'descr': '<f4'}", "'descr' appears twice (byte 25 of the dictionary)"},
      {"{'fortran_order': 1}", "expected True or False (byte 18 of the dictionary)"},
      {"{'shape': (3)}", "',' ... size ... byte 12 of the dictionary"},
      {"{'shape': (a,)}", "expected a size (byte 11 of the dictionary)"},
      {"{'shape': (1, 2}", "expected ')' (byte 15 of the dictionary)"},
      {"{'x\n': 1}", "unknown key 'x\\n' (byte 6 of the dictionary)"},
      {"{} x", "dictionary ... byte 3 of the dictionary"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(error(npy(c.dict, "")), says(fmt::format("header ... {}", c.what)));
  }
}

TEST(NpyHostile, ElementTypes) {
  for (std::string_view descr : {"<c8", "|O", "<U5", "|f4", "<f16", "f4", "<f", "", "<b2"}) {
    EXPECT_THAT(error(npy(dict(descr, "(1,)"), "1234")),
                says(fmt::format("element type '{}'", descr)));
  }
  EXPECT_THAT(error(npy("{'descr': [('x', '<f4')], 'shape': ()}", "")),
              says("structured element types"));
  EXPECT_THAT(parse(npy(dict("|V2", "(1,)"), "12")).error().hint(), testing::HasSubstr("bf16"));
}

TEST(NpyHostile, Shapes) {
  EXPECT_THAT(error(npy(dict("<f4", "(-1, 2)"), "")), says("shape ... size -1"));
  EXPECT_THAT(error(npy(dict("<f4", "(99999999999999999999,)"), "")),
              says("size 99999999999999999999 ... shape"));
  EXPECT_THAT(error(npy(dict("<f4", "(4611686018427387904, 4)"), "")),
              says("f32[4611686018427387904, 4] ... 4611686018427387904 ... 2^40"));
  EXPECT_THAT(
      error(npy(dict("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "1234")),
      says("f32 ... rank 17 ... 16"));
  EXPECT_THAT(error(npy(dict("<f4", "(" + std::string(30000, '1') + ",)"), "")),
              says("shape ... 30000 digits"));
}

TEST(NpyHostile, DataOfTheWrongLength) {
  EXPECT_THAT(error(npy(dict("<f4", "(2, 3)"), "1234")), says("f32[2, 3] ... 24 bytes ... 4"));
  EXPECT_THAT(error(npy(dict("<f8", "(1099511627776,)"), "")),
              says("f64[1099511627776] ... 8796093022208 bytes ... 0"));
  EXPECT_THAT(error(npy(dict("<f4", "(1,)"), "12345")), says("1 bytes ... f32[1]"));
}

}  // namespace
}  // namespace hone::HONE_FILE
