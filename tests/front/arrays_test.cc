#include "front/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "front/onnx/tensor_file.h"

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class ArraysTest : public testing::Test {
 protected:
  std::filesystem::path path(std::string_view name) const { return folder_.path() / name; }
  // The file by another name, which says nothing.
  std::filesystem::path renamed(std::string_view name) const {
    const std::filesystem::path other = path(fmt::format("{}.data", name));
    std::filesystem::rename(path(name), other);
    return other;
  }

  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  const Tensor x_ = Tensor::from_reals(Type::get(DType::f32, {2}), std::vector<double>{1, 2});
};

TEST_F(ArraysTest, OneArrayIsToldByWhatIsInTheFile) {
  ASSERT_TRUE(write_npy(path("npy"), x_).ok());
  EXPECT_TRUE(read_tensor(renamed("npy"))->same_bytes(x_));
  ASSERT_TRUE(onnx_io::write_tensor_file(path("pb"), "x", x_).ok());
  EXPECT_TRUE(read_tensor(renamed("pb"))->same_bytes(x_));
}

TEST_F(ArraysTest, NamedArraysAreToldByWhatIsInTheFile) {
  const NamedTensor both[] = {{"x", x_}, {"y", x_}};
  ASSERT_TRUE(write_npz(path("npz"), both).ok());
  ASSERT_TRUE(write_safetensors(path("st"), {.metadata = {}, .tensors = {both[0], both[1]}}).ok());
  for (const std::filesystem::path& file : {renamed("npz"), renamed("st")}) {
    EXPECT_TRUE(has_named_tensors(file));
    EXPECT_THAT(read_named_tensors(file).value(), SizeIs(2));
    const auto is_y = [](std::string_view name, Type) -> Result<bool> { return name == "y"; };
    const std::vector<NamedTensor> one = read_named_tensors(file, is_y).value();
    ASSERT_THAT(one, SizeIs(1));
    EXPECT_EQ(one[0].name, "y");
    const auto refuse = [](std::string_view, Type) -> Result<bool> { return bad_input("no"); };
    EXPECT_THAT(read_named_tensors(file, refuse).error().to_string(),
                HasSubstr(file.filename().native()));
    EXPECT_THAT(read_tensor(file).error().hint(), HasSubstr(".npy"));
  }
}

TEST_F(ArraysTest, ErrorsSayWhatWasExpected) {
  ASSERT_TRUE(write_npy(path("one.npz"), x_).ok());
  EXPECT_THAT(read_named_tensors(path("one.npz")).error().hint(), HasSubstr(".safetensors"));
  ASSERT_TRUE(write_file_atomic(path("x.pb"), "no tensor").ok());
  EXPECT_EQ(read_tensor(path("x.pb")).error().code(), ErrorCode::bad_input);
  EXPECT_THAT(read_tensor(path("nowhere")).error().to_string(), HasSubstr("nowhere"));
  EXPECT_FALSE(has_named_tensors(path("a.npy,b.npy")));
  EXPECT_TRUE(has_named_tensors(path("nowhere.npz")));
}

}  // namespace
}  // namespace hone::HONE_FILE
