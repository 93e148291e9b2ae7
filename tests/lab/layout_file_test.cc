#include "lab/data/layout_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "tests/base/says_testing.h"
#include "tests/lab/layout_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

TEST(LayoutFile, IsReadAsItWasWritten) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "a.npz";
  const LayoutFile file = small_layouts();
  ASSERT_TRUE(write_npz(path, arrays_of(file)).ok());
  const LayoutFile read = read_layout_file(path).value();
  EXPECT_EQ(read.layout, file.layout);
  EXPECT_EQ(read.times, file.times);
  EXPECT_EQ(read.program, file.program);
  EXPECT_EQ(read.priced_by, file.priced_by);
  EXPECT_EQ(read.target, file.target);
  EXPECT_EQ(read.progress, file.progress);
  EXPECT_EQ(read_progress(path).value(), file.progress);
  EXPECT_FALSE(read_progress(folder.path() / "none.npz").value());
  // A file of TpuGraphs has nothing besides.
  const LayoutFile published = layout_file_of(arrays_of(file.layout)).value();
  EXPECT_EQ(published.times, LayoutTimes());
  EXPECT_EQ(published.target, 0u);
  EXPECT_FALSE(published.progress);
}

TEST(LayoutFile, RefusesNumbersThatCannotBe) {
  const auto said = [](const std::function<void(LayoutFile&)>& change) {
    LayoutFile file = small_layouts();
    change(file);
    return layout_file_of(arrays_of(file)).error().to_string();
  };
  EXPECT_THAT(said([](LayoutFile& f) { f.times.priced.push_back(1); }),
              HasSubstr("the array 'config_runtime_priced' is f32[3], not f32[2]"));
  EXPECT_THAT(said([](LayoutFile& f) { f.times.priced[1] = 0; }),
              HasSubstr("the array 'config_runtime_priced' has 0 at 1"));
  EXPECT_THAT(said([](LayoutFile& f) { f.times.whole[0] = NAN; }),
              HasSubstr("the array 'config_runtime_whole' has nan at 0"));
  EXPECT_THAT(said([](LayoutFile& f) { f.times.noise[1] = -1; }),
              HasSubstr("'config_runtime_noise' has -1 at 1"));
  EXPECT_THAT(said([](LayoutFile& f) { f.times.known[1] = 2; }),
              HasSubstr("'config_known' has 2 at 1"));
  EXPECT_THAT(said([](LayoutFile& f) { f.layout.runtimes[1] = 0; }),
              HasSubstr("'config_runtime' has a time of 0 ns"));
  EXPECT_THAT(said([](LayoutFile& f) { f.program = "a\nb"; }), says("line of printable"));
  EXPECT_THAT(said([](LayoutFile& f) { f.program = "a#b"; }), says("'a#b' ... program"));
}

TEST(LayoutFile, RefusesArraysOfOtherTypes) {
  const auto said = [](const std::string& name, const Tensor& tensor) {
    std::vector<NamedTensor> arrays = arrays_of(small_layouts());
    std::ranges::find(arrays, name, &NamedTensor::name)->tensor = tensor;
    return layout_file_of(arrays).error().to_string();
  };
  const int64_t numbers[] = {1, 2};
  const Tensor two = Tensor::of(Type::get(DType::i64, {2}), std::span<const int64_t>(numbers));
  EXPECT_THAT(said("collected", two), HasSubstr("the array 'collected' is i64[2], not i64[4]"));
  EXPECT_THAT(said("program", two), HasSubstr("the array 'program' is i64[2], not a text"));
  EXPECT_THAT(said("config_known", two), HasSubstr("'config_known' is i64[2], not f32[2]"));
  const uint8_t letters[] = {'a', 'b'};
  const Tensor ab = Tensor::of(Type::get(DType::u8, {2}), std::span<const uint8_t>(letters));
  EXPECT_THAT(said("target", ab), says("'target' ... 'ab' ... fingerprint"));
}

TEST(LayoutFile, IsNamedByItsProgram) {
  EXPECT_EQ(layout_path("set", "zoo:mlp,size=tiny", true).native(),
            "set/layout/zoo_mlp_size=tiny-random.npz");
  EXPECT_EQ(layout_path("set", "my/model.onnx", false).native(),
            "set/layout/my_model.onnx-default.npz");
  EXPECT_EQ(program_of_file("set/layout/zoo_resnet50-default.npz"), "zoo:resnet50");
  EXPECT_EQ(program_of_file("set/layout/random_1000003-random.npz"), "random:1000003");
  EXPECT_EQ(program_of_file("random_net.npz"), "random_net");
  EXPECT_EQ(program_of_file("unet.2x2.npz"), "unet.2x2");
  EXPECT_EQ(sort_of_file("set/layout/a-random.npz"), "random");
  EXPECT_EQ(sort_of_file("a.npz"), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
