#include "front/onnx/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "front/onnx/newer.h"
#include "tests/base/says_testing.h"

namespace hone::onnx_io::HONE_FILE {
namespace {

using namespace std::string_literals;
using onnx::TensorProto;
using tested::says;
using testing::HasSubstr;

constexpr auto kBytes = google::protobuf::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string field(int number, const std::string& content) {
  return varint(static_cast<uint64_t>(number) << 3 | kBytes) + varint(content.size()) + content;
}

onnx::ModelProto empty_model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("g");
  return model;
}

struct TensorFields {
  int32_t type = TensorProto::FLOAT;
  Ints dims;
  std::function<void(TensorProto&)> fill = [](TensorProto&) {};
};

TensorProto make_tensor(const TensorFields& fields) {
  TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(fields.type);
  for (int64_t dim : fields.dims) tensor.add_dims(dim);
  fields.fill(tensor);
  return tensor;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Result<std::shared_ptr<const ModelFile>> parse(const std::string& bytes,
                                               const OnnxLimits& limits = {},
                                               const std::filesystem::path& folder = {}) {
  return ModelFile::parse(bytes_of(bytes), "m.onnx", folder, nullptr, limits);
}

std::string parse_error(const std::string& bytes, const OnnxLimits& limits = {}) {
  Result<std::shared_ptr<const ModelFile>> file = parse(bytes, limits);
  return file.ok() ? "no error" : file.error().to_string();
}

// As the first initializer of a model that went through a file.
Result<Tensor> load(const TensorProto& proto, const OnnxLimits& limits = {},
                    const std::filesystem::path& folder = {}) {
  onnx::ModelProto model = empty_model();
  *model.mutable_graph()->add_initializer() = proto;
  auto file = HONE_TRY(parse(model.SerializeAsString(), limits, folder));
  return file->tensor(file->model().graph().initializer(0));
}

Result<Tensor> load(const TensorFields& fields) { return load(make_tensor(fields)); }

std::string error_of(const TensorFields& fields) {
  Result<Tensor> tensor = load(fields);
  return tensor.ok() ? "no error" : tensor.error().to_string();
}

std::vector<double> numbers(const Result<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << (tensor.ok() ? "" : tensor.error().to_string());
  std::vector<double> out;
  if (!tensor.ok()) return out;
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    out.push_back(is_real(tensor->dtype())
                      ? tensor->real_at(i)
                      : integer_to_real(tensor->dtype(), tensor->integer_at(i)));
  }
  return out;
}

using Numbers = std::vector<double>;

TEST(OnnxTensor, ReadsRawBytes) {
  Result<Tensor> small = load({TensorProto::INT16, {2, 2}, [](TensorProto& t) {
                                 t.set_raw_data(raw<int16_t>({1, -2, 3, -4}));
                               }});
  EXPECT_EQ(numbers(small), (Numbers{1, -2, 3, -4}));
  EXPECT_EQ(small->type().to_string(), "i16[2, 2]");
}

TEST(OnnxTensor, ReadsEachTypedField) {
  EXPECT_EQ(numbers(load({TensorProto::FLOAT,
                          {2},
                          [](TensorProto& t) {
                            t.add_float_data(0.5f);
                            t.add_float_data(-8);
                          }})),
            (Numbers{0.5, -8}));
  EXPECT_EQ(numbers(load({TensorProto::DOUBLE, {1}, [](TensorProto& t) { t.add_double_data(3); }})),
            (Numbers{3}));
  EXPECT_EQ(numbers(load({TensorProto::INT64, {1}, [](TensorProto& t) { t.add_int64_data(-7); }})),
            (Numbers{-7}));
  for (int type : {TensorProto::UINT32, TensorProto::UINT64}) {
    EXPECT_EQ(numbers(load({type, {1}, [](TensorProto& t) { t.add_uint64_data(4294967295); }})),
              (Numbers{4294967295.0}));
  }
}

// The numbers, or half-byte pairs, of int32_data, and what they mean.
struct Int32Case {
  int32_t type;
  std::vector<int32_t> stored;
  Numbers meant;
};

TEST(OnnxTensor, ReadsWhatInt32DataCarries) {
  const Int32Case cases[] = {
      {TensorProto::INT32, {-5, 2147483647}, {-5, 2147483647}},
      {TensorProto::INT16, {-32768, 32767}, {-32768, 32767}},
      {TensorProto::UINT16, {0, 65535}, {0, 65535}},
      {TensorProto::INT8, {-128, 127}, {-128, 127}},
      {TensorProto::UINT8, {0, 255}, {0, 255}},
      {TensorProto::BOOL, {0, 7}, {0, 1}},
      {TensorProto::FLOAT16, {0x3c00, 0xc000}, {1, -2}},
      {TensorProto::BFLOAT16, {0x3f80, 0xc000}, {1, -2}},
      {17, {0x38, 0xc0}, {1, -2}},      // FLOAT8E4M3FN: bias 7
      {18, {0x40, 0xc8}, {1, -2}},      // FLOAT8E4M3FNUZ: bias 8
      {19, {0x3c, 0xc0}, {1, -2}},      // FLOAT8E5M2: bias 15
      {20, {0x40, 0xc4}, {1, -2}},      // FLOAT8E5M2FNUZ: bias 16
      {21, {0xf1, 0x02}, {1, 15, 2}},   // UINT4
      {22, {0xf1, 0x08}, {1, -1, -8}},  // INT4
  };
  for (const Int32Case& c : cases) {
    for (int repeat : {1, 300}) {  // in the message, and left in the file
      Numbers meant;
      const bool halves = c.type == 21 || c.type == 22;
      if (halves && repeat > 1) continue;
      for (int i = 0; i < repeat; ++i) meant.insert(meant.end(), c.meant.begin(), c.meant.end());
      Result<Tensor> tensor =
          load({c.type, {static_cast<int64_t>(meant.size())}, [&](TensorProto& t) {
                  for (int i = 0; i < repeat; ++i) {
                    for (int32_t value : c.stored) t.add_int32_data(value);
                  }
                }});
      EXPECT_EQ(numbers(tensor), meant) << data_type_name(c.type);
    }
  }
}

TEST(OnnxTensor, ReadsPackedHalvesFromTheFile) {
  Result<Tensor> tensor = load({22, {601}, [](TensorProto& t) {
                                  for (int i = 0; i < 301; ++i) t.add_int32_data(0xf1);
                                }});
  Numbers meant;
  for (int i = 0; i < 601; ++i) meant.push_back(i % 2 == 0 ? 1 : -1);
  EXPECT_EQ(numbers(tensor), meant);
  // The half after the last element does not count.
  EXPECT_EQ(tensor->bytes().back(), std::byte{0x01});
}

TEST(OnnxTensor, MakesUnusedBitsOfRawBytesZero) {
  Result<Tensor> half = load({21, {3}, [](TensorProto& t) { t.set_raw_data("\x21\xf3"); }});
  EXPECT_EQ(numbers(half), (Numbers{1, 2, 3}));
  EXPECT_EQ(half->bytes().back(), std::byte{0x03});
  Result<Tensor> truth =
      load({TensorProto::BOOL, {400}, [](TensorProto& t) { t.set_raw_data(std::string(400, 2)); }});
  ASSERT_TRUE(truth.ok());
  EXPECT_EQ(truth->bytes()[399], std::byte{1});
}

TEST(OnnxTensor, EmptyTensorsNeedNoData) {
  EXPECT_EQ(numbers(load({TensorProto::FLOAT, {3, 0}})), Numbers{});
  EXPECT_THAT(error_of({TensorProto::FLOAT, {3}}),
              says("data ... 12 bytes ... f32[3] ... tensor 'w'"));
}

TEST(OnnxTensor, LargeDataStaysWhereItIs) {
  onnx::ModelProto model = empty_model();
  auto* graph = model.mutable_graph();
  std::vector<float> floats(1000);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i);
  *graph->add_initializer() = make_tensor(
      {TensorProto::FLOAT, {1000}, [&](TensorProto& t) { t.set_raw_data(raw(floats)); }});
  *graph->add_initializer() = make_tensor({TensorProto::FLOAT, {10, 100}, [&](TensorProto& t) {
                                             for (float f : floats) t.add_float_data(f);
                                           }});
  *graph->add_initializer() = make_tensor({TensorProto::DOUBLE, {1000}, [&](TensorProto& t) {
                                             for (float f : floats) t.add_double_data(f);
                                           }});
  TensorProto* inner = graph->add_node()->add_attribute()->mutable_t();
  *inner = graph->initializer(0);
  // At each alignment.
  for (size_t shift = 0; shift < 8; ++shift) {
    model.set_producer_name(std::string(shift, 'x'));
    auto bytes = std::make_shared<const std::string>(model.SerializeAsString());
    auto file = ModelFile::parse(bytes_of(*bytes), "m", "", bytes, {});
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    const onnx::GraphProto& read = (*file)->model().graph();
    EXPECT_LT(read.ByteSizeLong(), 200u);
    std::vector<Tensor> tensors;
    for (const auto& proto : read.initializer()) tensors.push_back(*(*file)->tensor(proto));
    tensors.push_back(*(*file)->tensor(read.node(0).attribute(0).t()));
    for (const Tensor& tensor : tensors) {
      const auto* data = reinterpret_cast<const char*>(tensor.bytes().data());
      EXPECT_TRUE(data >= bytes->data() && data < bytes->data() + bytes->size());
      EXPECT_EQ(tensor.real_at(999), 999);
      EXPECT_EQ(tensor.as<std::byte>().size(), tensor.bytes().size());
    }
  }
}

TEST(OnnxTensor, OutlivesItsFile) {
  Result<Tensor> tensor = load(
      {TensorProto::UINT8, {5000}, [](TensorProto& t) { t.set_raw_data(std::string(5000, 9)); }});
  EXPECT_EQ(tensor->integer_at(4999), 9);
}

TEST(OnnxTensor, TheLastRawDataHolds) {
  const std::string large(300, 1), small = "abc";
  const std::string head = field(8, "w") + "\x10\x02"s;  // data_type UINT8
  const std::vector<std::pair<std::string, std::string>> orders = {{large, small}, {small, large}};
  for (const auto& [first, last] : orders) {
    const std::string dims = "\x08"s + varint(last.size());
    auto tensor = parse_tensor(bytes_of(head + dims + field(9, first) + field(9, last)), "t.pb", "",
                               nullptr, {});
    ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
    EXPECT_EQ(tensor->name, "w");
    EXPECT_EQ(std::memcmp(tensor->tensor.bytes().data(), last.data(), last.size()), 0);
  }
}

TEST(OnnxTensor, JoinsPiecesOfPackedData) {
  const std::string head = "\x08\xac\x02\x10\x07"s;  // 300 numbers, INT64
  std::string first, second;
  for (int i = 0; i < 150; ++i) first += varint(7), second += varint(300);
  auto tensor =
      parse_tensor(bytes_of(head + field(7, first) + field(7, second)), "t", "", nullptr, {});
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  EXPECT_EQ(tensor->tensor.integer_at(149), 7);
  EXPECT_EQ(tensor->tensor.integer_at(150), 300);

  const std::string floats_head = "\x08\x64\x10\x01"s;  // 100 floats
  auto floats = parse_tensor(bytes_of(floats_head + field(4, raw(std::vector<float>(99, 2))) +
                                      field(4, raw(std::vector<float>{5}))),
                             "t", "", nullptr, {});
  ASSERT_TRUE(floats.ok()) << floats.error().to_string();
  EXPECT_EQ(floats->tensor.real_at(98), 2);
  EXPECT_EQ(floats->tensor.real_at(99), 5);
}

TEST(OnnxTensor, SaysWhichCountsDisagree) {
  EXPECT_THAT(error_of({TensorProto::FLOAT, {2}, [](TensorProto& t) { t.set_raw_data("abc"); }}),
              HasSubstr("raw_data holds 3 bytes, but f32[2] needs 8"));
  EXPECT_THAT(
      error_of(
          {TensorProto::FLOAT, {2}, [](TensorProto& t) { t.set_raw_data(std::string(1000, 0)); }}),
      HasSubstr("raw_data holds 1000 bytes, but f32[2] needs 8"));
  EXPECT_THAT(error_of({TensorProto::FLOAT, {2}, [](TensorProto& t) { t.add_float_data(1); }}),
              HasSubstr("float_data holds 1 numbers, but f32[2] needs 2"));
  EXPECT_THAT(error_of({TensorProto::INT64,
                        {2},
                        [](TensorProto& t) {
                          for (int i = 0; i < 500; ++i) t.add_int64_data(i);
                        }}),
              HasSubstr("int64_data holds 500 numbers, but i64[2] needs 2"));
  EXPECT_THAT(error_of({22, {5}, [](TensorProto& t) { t.add_int32_data(1); }}),
              HasSubstr("int32_data holds 1 numbers, but i4[5] needs 3"));
  // A claim of 2 TB costs nothing.
  EXPECT_THAT(
      error_of(
          {TensorProto::INT8, {int64_t{1} << 33}, [](TensorProto& t) { t.add_int32_data(1); }}),
      HasSubstr("int32_data holds 1 numbers, but i8[8589934592] needs 8589934592"));
}

TEST(OnnxTensor, RefusesNumbersOutsideOfTheType) {
  const auto with = [](int32_t value) {
    return [value](TensorProto& t) { t.add_int32_data(value); };
  };
  EXPECT_THAT(error_of({TensorProto::INT8, {1}, with(128)}),
              HasSubstr("number 0 of int32_data is 128, outside of [-128, 127] of i8"));
  EXPECT_THAT(error_of({TensorProto::UINT8, {1}, with(-1)}),
              HasSubstr("number 0 of int32_data is -1, outside of [0, 255] of u8"));
  EXPECT_THAT(error_of({TensorProto::FLOAT16, {1}, with(65536)}),
              HasSubstr("number 0 of int32_data is 65536, outside of [0, 65535] of f16"));
  EXPECT_THAT(
      error_of(
          {TensorProto::UINT32, {1}, [](TensorProto& t) { t.add_uint64_data(uint64_t{1} << 32); }}),
      HasSubstr("number 0 of uint64_data is 4294967296, outside of [0, 4294967295] of u32"));
}

TEST(OnnxTensor, RefusesFormsThatDoNotFit) {
  EXPECT_THAT(error_of({TensorProto::FLOAT, {1}, [](TensorProto& t) { t.add_int32_data(1); }}),
              HasSubstr("the data is in int32_data, but that of FLOAT belongs in float_data or "
                        "raw_data"));
  EXPECT_THAT(error_of({TensorProto::FLOAT,
                        {1},
                        [](TensorProto& t) {
                          t.add_float_data(1);
                          t.set_raw_data("abcd");
                        }}),
              says("data ... twice ... raw_data ... float_data"));
  EXPECT_THAT(error_of({TensorProto::FLOAT,
                        {100},
                        [](TensorProto& t) {
                          for (int i = 0; i < 100; ++i) t.add_float_data(1);
                          t.set_raw_data(std::string(400, 0));
                        }}),
              says("data ... twice ... float_data ... raw_data"));
  EXPECT_THAT(
      error_of(
          {TensorProto::FLOAT, {1}, [](TensorProto& t) { t.mutable_segment()->set_begin(0); }}),
      says("segments"));
  EXPECT_THAT(error_of({TensorProto::FLOAT, {1}, [](TensorProto& t) { t.add_string_data("a"); }}),
              says("string_data ... numbers"));
}

TEST(OnnxTensor, RefusesTypesByName) {
  const std::pair<int, std::string> unsupported_types[] = {
      {14, "COMPLEX64"}, {15, "COMPLEX128"}, {99, "type 99"}, {-1, "type -1"}};
  for (const auto& [type, text] : unsupported_types) {
    EXPECT_EQ(data_type_name(type), text);
    EXPECT_THAT(error_of({type, {1}}),
                HasSubstr("tensors of " + text + " are not supported (tensor 'w')"));
  }
  EXPECT_THAT(error_of({0, {1}}), says("element type"));
}

TEST(OnnxTensor, RefusesDims) {
  EXPECT_THAT(error_of({TensorProto::FLOAT, {2, -3}}), says("f32[2, -3] ... axis 1 ... -3"));
  EXPECT_THAT(error_of({TensorProto::FLOAT, Ints(17, 1)}), says("rank 17 ... 16"));
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(error_of({TensorProto::FLOAT, {huge, 4}}), HasSubstr("above the limit of 2^40"));
  EXPECT_THAT(error_of({TensorProto::FLOAT, {0, huge, huge}}),
              HasSubstr("above the limit of 2^40"));
  EXPECT_THAT(error_of({TensorProto::FLOAT, {int64_t{1} << 34}}),
              says("f32[17179869184] ... 68719476736 bytes ... 17179869184"));
}

TEST(OnnxTensor, LimitsWhatAllTensorsClaim) {
  onnx::ModelProto model = empty_model();
  for (int i = 0; i < 2; ++i) {
    TensorProto* tensor = model.mutable_graph()->add_initializer();
    *tensor = make_tensor({TensorProto::UINT8, {60}});
    tensor->set_name(i == 0 ? "a" : "b");
  }
  OnnxLimits limits;
  limits.tensor_bytes = 100;
  EXPECT_THAT(parse_error(model.SerializeAsString(), limits),
              says("tensors ... 120 bytes ... 100 ... m.onnx, graph 'g', initializer 'b'"));
}

// Everything that hone has, through a file.
TEST(OnnxTensorFile, RoundTripsEachType) {
  const TempDir folder = *TempDir::create(std::filesystem::temp_directory_path());
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (int64_t rows : {0, 1, 100}) {
      std::vector<int64_t> values;
      for (int64_t k = 0; k < rows * 3; ++k) values.push_back(k % 7);
      const Tensor tensor = is_real(dtype)
                                ? Tensor::from_reals(Type::get(dtype, {rows, 3}),
                                                     Numbers(values.begin(), values.end()))
                                : Tensor::from_integers(Type::get(dtype, {rows, 3}), values);
      EXPECT_EQ(*dtype_of(data_type_of(dtype)), dtype);
      const std::filesystem::path path = folder.path() / "t.pb";
      ASSERT_TRUE(write_tensor_file(path, "x", tensor).ok());
      Result<NamedTensor> read = read_named_tensor_file(path);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      EXPECT_EQ(read->name, "x");
      EXPECT_EQ(read->tensor.type(), tensor.type());
      EXPECT_TRUE(read->tensor.same_bytes(tensor)) << name(dtype);

      TensorProto proto;
      fill_tensor(tensor, proto);
      Result<Tensor> filled = load(proto);
      ASSERT_TRUE(filled.ok()) << filled.error().to_string();
      EXPECT_TRUE(filled->same_bytes(tensor)) << name(dtype);
    }
  }
}

TEST(OnnxTensorFile, WritesWhatTheLibraryReads) {
  const TempDir folder = *TempDir::create(std::filesystem::temp_directory_path());
  const std::filesystem::path path = folder.path() / "t.pb";
  const Tensor tensor = Tensor::from_integers(Type::get(DType::i32, {2}), Ints{5, -6});
  ASSERT_TRUE(write_tensor_file(path, "x", tensor).ok());
  TensorProto proto;
  ASSERT_TRUE(proto.ParseFromString(*read_file(path, 1000)));
  EXPECT_EQ(proto.name(), "x");
  EXPECT_EQ(proto.data_type(), TensorProto::INT32);
  EXPECT_EQ(proto.raw_data(), raw<int32_t>({5, -6}));
  EXPECT_EQ(proto.dims_size(), 1);
}

TEST(OnnxTensorFile, NamesTheFile) {
  EXPECT_THAT(parse_tensor(bytes_of("\x0a\x05"), "t.pb", "", nullptr, {}).error().to_string(),
              says("field 1 at byte 0 ... 5 bytes ... 0 left ... t.pb"));
}

// ---- external data

class OnnxExternal : public testing::Test {
 protected:
  using Entries = std::vector<std::pair<std::string, std::string>>;

  void SetUp() override { write("w.bin", "0123456789abcdef"); }
  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(write_file_atomic(folder_.path() / name, content).ok());
  }
  Result<Tensor> load_entries(const Entries& entries, Ints dims = {4}) {
    TensorProto tensor = make_tensor({TensorProto::UINT8, dims, [&](TensorProto& t) {
                                        t.set_data_location(TensorProto::EXTERNAL);
                                        for (const auto& [key, value] : entries) {
                                          auto* entry = t.add_external_data();
                                          entry->set_key(key);
                                          entry->set_value(value);
                                        }
                                      }});
    return load(tensor, {}, folder_.path());
  }
  std::string error(const Entries& entries) {
    Result<Tensor> tensor = load_entries(entries);
    return tensor.ok() ? "no error" : tensor.error().to_string();
  }

  TempDir folder_ = *TempDir::create(std::filesystem::temp_directory_path());
};

TEST_F(OnnxExternal, ReadsPartsOfAFile) {
  EXPECT_EQ(numbers(load_entries({{"location", "w.bin"}})), (Numbers{'0', '1', '2', '3'}));
  EXPECT_EQ(numbers(load_entries(
                {{"location", "w.bin"}, {"offset", "12"}, {"length", "4"}, {"checksum", "x"}})),
            (Numbers{'c', 'd', 'e', 'f'}));
  EXPECT_EQ(numbers(load_entries({{"location", "w.bin"}, {"offset", "16"}}, {0})), Numbers{});
}

TEST_F(OnnxExternal, TensorsShareOneMapping) {
  onnx::ModelProto model = empty_model();
  for (const char* offset : {"0", "8"}) {
    *model.mutable_graph()->add_initializer() =
        make_tensor({TensorProto::UINT8, {8}, [&](TensorProto& t) {
                       t.set_data_location(TensorProto::EXTERNAL);
                       auto* location = t.add_external_data();
                       location->set_key("location");
                       location->set_value("w.bin");
                       auto* at = t.add_external_data();
                       at->set_key("offset");
                       at->set_value(offset);
                     }});
  }
  auto file = parse(model.SerializeAsString(), {}, folder_.path());
  ASSERT_TRUE(file.ok());
  const Tensor a = *(*file)->tensor((*file)->model().graph().initializer(0));
  const Tensor b = *(*file)->tensor((*file)->model().graph().initializer(1));
  EXPECT_EQ(a.bytes().data() + 8, b.bytes().data());
}

// Offsets beyond 32 bits; the file is a hole and takes no room.
TEST_F(OnnxExternal, ReadsBeyondFourGigabytes) {
  const std::filesystem::path path = folder_.path() / "large.bin";
  write("large.bin", "");
  const int64_t offset = (int64_t{5} << 30) + 3;
  ASSERT_EQ(::truncate(path.c_str(), offset + 4), 0);
  EXPECT_EQ(numbers(load_entries({{"location", "large.bin"}, {"offset", std::to_string(offset)}})),
            (Numbers{0, 0, 0, 0}));
}

TEST_F(OnnxExternal, RefusesLiesAboutTheFile) {
  EXPECT_THAT(
      error({{"location", "w.bin"}, {"offset", "13"}}),
      says("external_data ... u8[4] ... 4 bytes ... 13 ... \"w.bin\" ... 16 ... tensor 'w'"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "9223372036854775807"}}),
              HasSubstr("at offset 9223372036854775807 of \"w.bin\", which has 16"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"length", "5"}}),
              says("external_data ... length ... 5 bytes ... u8[4] ... 4"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"offset", "-1"}}),
              HasSubstr("external_data: offset -1 is below 0"));
  for (const char* text : {"", " 1", "0x10", "1e3", "99999999999999999999"}) {
    EXPECT_THAT(error({{"location", "w.bin"}, {"offset", text}}),
                HasSubstr("external_data: offset \""s + text + "\" is not a number"));
  }
}

TEST_F(OnnxExternal, RefusesKeys) {
  EXPECT_THAT(error({{"location", "w.bin"}, {"basepath", "/"}}),
              HasSubstr("external_data: key \"basepath\" is not known"));
  EXPECT_THAT(error({{"location", "w.bin"}, {"location", "w.bin"}}),
              HasSubstr("external_data: \"location\" is given twice"));
  EXPECT_THAT(error({{"offset", "0"}}), says("external_data ... location"));
}

TEST_F(OnnxExternal, RefusesWaysOutOfTheFolder) {
  EXPECT_THAT(error({{"location", "../w.bin"}}), HasSubstr("\"..\" may leave the folder"));
  EXPECT_THAT(error({{"location", "/etc/passwd"}}), HasSubstr("it is absolute"));
  EXPECT_THAT(error({{"location", ""}}), HasSubstr("it is empty"));
  EXPECT_THAT(error({{"location", "missing.bin"}}), HasSubstr("cannot open \"missing.bin\""));
  std::filesystem::create_symlink("w.bin", folder_.path() / "link.bin");
  EXPECT_THAT(error({{"location", "link.bin"}}), HasSubstr("is a symbolic link"));
  std::filesystem::create_hard_link(folder_.path() / "w.bin", folder_.path() / "hard.bin");
  EXPECT_THAT(error({{"location", "hard.bin"}}), says("2 hard links"));
}

TEST_F(OnnxExternal, RefusesSecondForms) {
  TensorProto both = make_tensor({TensorProto::UINT8, {4}, [](TensorProto& t) {
                                    t.set_data_location(TensorProto::EXTERNAL);
                                    t.set_raw_data("abcd");
                                  }});
  EXPECT_THAT(load(both).error().to_string(),
              says("data ... twice ... external_data ... raw_data"));
  both.set_data_location(TensorProto::DEFAULT);
  both.add_external_data()->set_key("location");
  EXPECT_THAT(load(both).error().to_string(), says("external_data ... data_location ... EXTERNAL"));
}

// ---- sparse tensors

onnx::SparseTensorProto make_sparse(const Ints& dims, const Ints& indices, const Ints& shape,
                                    const std::vector<float>& values) {
  onnx::SparseTensorProto sparse;
  for (int64_t dim : dims) sparse.add_dims(dim);
  *sparse.mutable_values() =
      make_tensor({TensorProto::FLOAT, {std::ssize(values)}, [&](TensorProto& t) {
                     for (float value : values) t.add_float_data(value);
                   }});
  *sparse.mutable_indices() = make_tensor({TensorProto::INT64, shape, [&](TensorProto& t) {
                                             t.set_name("");
                                             for (int64_t index : indices) t.add_int64_data(index);
                                           }});
  return sparse;
}

Result<Tensor> load(const onnx::SparseTensorProto& sparse) {
  onnx::ModelProto model = empty_model();
  *model.mutable_graph()->add_sparse_initializer() = sparse;
  auto file = HONE_TRY(parse(model.SerializeAsString()));
  return file->tensor(file->model().graph().sparse_initializer(0));
}

TEST(OnnxSparse, ScattersByPositionOrByIndex) {
  const Numbers expected = {0, 5, 0, 0, 0, 7};
  EXPECT_EQ(numbers(load(make_sparse({2, 3}, {1, 5}, {2}, {5, 7}))), expected);
  EXPECT_EQ(numbers(load(make_sparse({2, 3}, {0, 1, 1, 2}, {2, 2}, {5, 7}))), expected);
  EXPECT_EQ(numbers(load(make_sparse({3}, {}, {0}, {}))), (Numbers{0, 0, 0}));
  EXPECT_EQ(numbers(load(make_sparse({3}, {2}, {1, 1}, {4}))), (Numbers{0, 0, 4}));
}

TEST(OnnxSparse, ScattersHalfBytes) {
  onnx::SparseTensorProto sparse = make_sparse({5}, {1, 2, 4}, {3}, {0, 0, 0});
  *sparse.mutable_values() =
      make_tensor({22, {3}, [](TensorProto& t) { t.set_raw_data("\xf1\x07"); }});
  EXPECT_EQ(numbers(load(sparse)), (Numbers{0, 1, -1, 0, 7}));
}

TEST(OnnxSparse, AFewBytesMakeNoLargeTensor) {
  Result<Tensor> tensor = load(make_sparse({1 << 16, 60'000}, {70'000}, {1}, {3}));
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  EXPECT_FALSE(tensor->is_materialized());
  EXPECT_EQ(tensor->byte_size(), 15'728'640'000);
  EXPECT_EQ(tensor->content_hash(),
            load(make_sparse({1 << 16, 60'000}, {70'000}, {1}, {3}))->content_hash());
  EXPECT_NE(tensor->content_hash(),
            load(make_sparse({1 << 16, 60'000}, {70'001}, {1}, {3}))->content_hash());
  EXPECT_FALSE(tensor->is_materialized());
}

TEST(OnnxSparse, Refuses) {
  const auto error = [](const onnx::SparseTensorProto& sparse) {
    Result<Tensor> tensor = load(sparse);
    return tensor.ok() ? "no error" : tensor.error().to_string();
  };
  EXPECT_THAT(error(make_sparse({2, 3}, {6}, {1}, {5})),
              says("entry 0 ... index 6 ... axis 0 ... size 6 ... sparse tensor 'w'"));
  EXPECT_THAT(error(make_sparse({2, 3}, {1, 3}, {1, 2}, {5})),
              says("entry 0 ... index 3 ... axis 1 ... size 3"));
  EXPECT_THAT(error(make_sparse({2, 3}, {-1}, {1}, {5})), HasSubstr("entry 0 has index -1"));
  for (int64_t second : {2, 1}) {
    EXPECT_THAT(error(make_sparse({2, 3}, {2, second}, {2}, {5, 6})),
                says(fmt::format("entry 1 ... element {} ... element 2", second)));
  }
  EXPECT_THAT(error(make_sparse({2, 3}, {1, 2, 3}, {3}, {5, 6})),
              says("indices ... i64[3] ... 2 values ... f32[2, 3] ... i64[2] ... i64[2, 2]"));
  EXPECT_THAT(error(make_sparse({1 << 20, 1 << 20}, {1}, {1}, {5})),
              says("4398046511104 bytes ... 17179869184"));
  onnx::SparseTensorProto sparse = make_sparse({6}, {1}, {1}, {5});
  sparse.mutable_indices()->set_data_type(TensorProto::INT32);
  EXPECT_THAT(error(sparse), HasSubstr("belongs in int32_data"));
  sparse = make_sparse({6}, {1}, {1}, {5});
  sparse.mutable_values()->add_dims(1);
  EXPECT_THAT(error(sparse), says("values ... f32[1, 1] ... list"));
  sparse.clear_values();
  EXPECT_THAT(error(sparse), says("element type"));
}

// ---- the wire

TEST(OnnxWire, RefusesBrokenFrames) {
  EXPECT_THAT(parse_error("\x08"), says("number at byte 1 ... m.onnx"));
  EXPECT_THAT(parse_error("\x88"), says("tag at byte 0"));
  EXPECT_THAT(parse_error("\x08" + std::string(11, '\x80')), says("number at byte 1 ... 10 bytes"));
  EXPECT_THAT(parse_error("\x3a\x05"
                          "abc"),
              says("field 7 at byte 0 ... 5 bytes ... 3 left"));
  EXPECT_THAT(parse_error("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
              says("18446744073709551615 bytes ... 0 left"));
  EXPECT_THAT(parse_error("\x3a\x02"
                          "\x0a\x01" +
                          std::string(20, 'x')),
              says("field 1 at byte 2 ... 1 bytes ... 0 left"));
  EXPECT_THAT(parse_error("\x09"
                          "abc"),
              says("8 bytes ... 3 left"));
  EXPECT_THAT(parse_error("\x01\x01"s), says("tag at byte 0 ... field 0"));
  EXPECT_THAT(parse_error("\x0b\x0c"), says("field 1 at byte 0 ... group"));
  EXPECT_THAT(parse_error("\x0f\x01"), says("field 1 at byte 0 ... wire type 7"));
  EXPECT_THAT(parse_error("\x38\x01"), says("ModelProto.graph at byte 0 ... wire type 0"));
  EXPECT_THAT(parse_error(""), says("ir_version ... ONNX model"));
}

std::string model_of(const std::string& graph) { return "\x08\x08" + field(7, graph); }

TEST(OnnxWire, RefusesBrokenTensors) {
  const auto error = [](const std::string& tensor) {
    return parse_error(model_of(field(5, tensor)));
  };
  EXPECT_THAT(error("\x48\x01"), says("TensorProto.raw_data at byte 6 ... wire type 0"));
  EXPECT_THAT(error(field(4, "abc")),
              says("TensorProto.float_data at byte 6 ... 3 bytes ... multiple of 4"));
  EXPECT_THAT(error(field(4, std::string(400, 0)) + "\x25"
                                                    "abcd"),
              says("TensorProto.float_data at byte 411 ... packed"));
  EXPECT_THAT(error(varint(20000 << 3) + "\1"), says("field 20000 of TensorProto at byte 6"));
  EXPECT_THAT(parse_tensor(bytes_of("\x08\x80\x04\x10\x07" + field(7, std::string(512, '\x80'))),
                           "t", "", nullptr, {})
                  .error()
                  .to_string(),
              says("number ... 10 bytes"));
  const std::string tensor = field(8, "w");
  EXPECT_THAT(parse_error(model_of(field(1, field(5, field(5, tensor) + field(5, tensor))))),
              HasSubstr("AttributeProto.t is given a second time"));
}

TEST(OnnxWire, LimitsNesting) {
  const auto nested = [](int graphs) {
    std::string graph;
    for (int i = 0; i < graphs; ++i) graph = field(1, field(5, field(6, graph)));
    return model_of(graph);
  };
  EXPECT_EQ(parse_error(nested(20)), "no error");  // 62 messages
  EXPECT_THAT(parse_error(nested(21)), says("64 messages"));
  EXPECT_THAT(parse_error(nested(2000)), says("64 messages"));
  // Types within types are read by the schema library.
  std::string type;
  for (int i = 0; i < 500; ++i) type = field(4, field(1, type));
  EXPECT_THAT(parse_error(model_of(field(11, field(2, type)))), says("messages ... 80"));
}

TEST(OnnxWire, LimitsSizes) {
  OnnxLimits limits;
  limits.nodes = 3;
  std::string nodes;
  for (int i = 0; i < 4; ++i) nodes += field(1, "");
  EXPECT_THAT(parse_error(model_of(nodes), limits), HasSubstr("more than 3 nodes"));
  std::string attributes;
  for (int i = 0; i < 50; ++i) attributes += field(5, "");
  EXPECT_THAT(parse_error(model_of(field(1, attributes)), limits), says("48 messages ... 3 nodes"));
  limits.name_bytes = 10;
  EXPECT_THAT(parse_error(model_of(field(1, field(3, "elevenbytes"))), limits),
              says("NodeProto.name at byte 6 ... 11 bytes ... 10"));
  limits.message_bytes = 5;
  EXPECT_THAT(parse_error(model_of(field(10, "abcdef")), limits), says("messages ... 5 bytes"));
}

// Whatever is cut off or changed, there is an answer.
TEST(OnnxWire, SurvivesEachTruncationAndFlip) {
  onnx::ModelProto model = empty_model();
  *model.mutable_graph()->add_initializer() = make_tensor(
      {TensorProto::UINT8, {300}, [](TensorProto& t) { t.set_raw_data(std::string(300, 1)); }});
  *model.mutable_graph()->add_sparse_initializer() = make_sparse({2, 3}, {1, 5}, {2}, {5, 7});
  const std::string bytes = model.SerializeAsString();
  const auto use = [](const std::string& text) {
    auto file = parse(text);
    if (!file.ok()) return;
    for (const auto& t : (*file)->model().graph().initializer()) (void)(*file)->tensor(t);
    for (const auto& t : (*file)->model().graph().sparse_initializer()) (void)(*file)->tensor(t);
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    use(bytes.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      use(flipped);
    }
  }
}

// ---- newer versions of the format

TEST(OnnxNewer, ChecksTheIrVersion) {
  onnx::ModelProto model = empty_model();
  for (int64_t version : {0, 2, 15}) {
    model.set_ir_version(version);
    EXPECT_THAT(parse_error(model.SerializeAsString()),
                says(fmt::format("IR version {} ... 3 to 14", version)));
  }
  model.set_ir_version(14);
  EXPECT_EQ(parse_error(model.SerializeAsString()), "no error");
  model.clear_graph();
  EXPECT_THAT(parse_error(model.SerializeAsString()), says("model ... graph"));
}

TEST(OnnxNewer, ReadsOverloadsAndDefaults) {
  onnx::AttributeProto attribute;
  attribute.set_name("alpha");
  *attribute.mutable_t() = make_tensor(
      {TensorProto::UINT8, {300}, [](TensorProto& t) { t.set_raw_data(std::string(300, 6)); }});
  const std::string function = field(1, "f") + field(11, attribute.SerializeAsString()) +
                               field(13, "second") + field(12, "") + field(14, "");
  const std::string node = field(4, "f") + field(8, "second") + field(9, "") + field(10, "");
  auto file = parse(model_of(field(1, node) + field(16, "")) + field(25, function) + field(26, ""));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const onnx::ModelProto& model = (*file)->model();
  EXPECT_EQ(overload_of(model.graph().node(0)), "second");
  EXPECT_EQ(overload_of(model.functions(0)), "second");
  EXPECT_EQ(overload_of(onnx::NodeProto()), "");
  auto defaults = default_attributes(model.functions(0));
  ASSERT_TRUE(defaults.ok());
  ASSERT_EQ(defaults->size(), 1u);
  EXPECT_EQ(defaults->front().name(), "alpha");
  EXPECT_EQ((*file)->tensor(defaults->front().t())->integer_at(299), 6);
}

TEST(OnnxNewer, RefusesWhatItDoesNotKnow) {
  const std::string name = field(3, "h");
  EXPECT_THAT(parse_error(model_of(field(1, name + field(11, "")))),
              HasSubstr("field 11 of NodeProto is not known (m.onnx, graph 0, node 'h')"));
  EXPECT_THAT(parse_error(model_of(field(1, field(8, "") + "\x40\x01"))),
              HasSubstr("field 8 of NodeProto is not known (m.onnx, graph 0, node 0)"));
  EXPECT_THAT(parse_error(model_of(field(1, "\x18\x01"))),
              says("NodeProto.name ... field 3 ... wire type"));
  EXPECT_THAT(parse_error(model_of(field(1, field(5, field(1, "k") + "\xa0\x01\x11")))),
              says("AttributeProto.type ... 17 ... m.onnx, graph 0, node 0, attribute 'k'"));
  EXPECT_THAT(parse_error(model_of(field(5, field(8, "w") + "\x70\x05"))),
              says("TensorProto.data_location ... 5"));
  EXPECT_THAT(parse_error(model_of("") + field(25, field(11, field(30, "")))),
              HasSubstr("field 30 of AttributeProto is not known"));
  EXPECT_THAT(parse_error(model_of("") + field(25, "\x5a\x02\x0a\x05")),
              says("field 1 at byte 9 ... 5 bytes ... 0 left"));
}

TEST(OnnxNewer, PrintsNothingAboutOddText) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse_error(model_of(field(1, field(3, "\xff\xfe")))), "no error");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hone::onnx_io::HONE_FILE
