#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "compile/divided_code.h"
#include "compile/honec.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "runtime/hone.h"
#include "runtime/loaded_model.h"
#include "tests/base/says_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/inputs.h"

// Compiled files that several devices run.

namespace hone::HONE_FILE {
namespace {

using tested::difference;
using tested::refuses;

constexpr std::string_view kText = R"(
graph @two(%x: f32[5, 4], %w: f32[4, 4]) -> (f32[4], f32[5, 4], f32[4, 5]) {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  %s = reduce %y {kind = sum, axes = [0]}
  %t = transpose %y {permutation = [1, 0]}
  return %s, %y, %t
}
)";

Graph two() { return parse_graph(kText).value(); }

struct Made {
  HonecModel model;
  DividedCode code;

  std::vector<HonecProgram> programs() const {
    std::vector<HonecProgram> all;
    for (size_t i = 0; i < code.images.size(); ++i)
      all.push_back({.image = &code.images[i], .unit = static_cast<uint32_t>(i)});
    return all;
  }
  std::string bytes() const { return honec_bytes(model, programs(), "1.2.3").value().joined(); }
};

Made made(int64_t devices) {
  Made one;
  one.code =
      divided_code(two(), {.rows = 5, .dims = {0, kWhole}}, devices, host_target().value(), {})
          .value();
  one.model = {.name = "two", .inputs = one.code.inputs, .outputs = one.code.outputs};
  one.model.division = one.code.division;
  return one;
}

Result<HonecFile> parsed(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return HonecFile::parse(owner, std::as_bytes(std::span(*owner)));
}

TEST(DividedFile, RunsOnItsDevices) {
  const std::vector<Tensor> inputs = random_inputs(two(), 1).value();
  const std::vector<Tensor> expected = evaluate(two(), inputs).value();
  for (int64_t devices : {1, 2, 3, 5}) {
    const HonecFile file = parsed(made(devices).bytes()).value();
    ASSERT_NE(file.division(), nullptr);
    EXPECT_EQ(std::ssize(file.division()->shares), devices);
    EXPECT_FALSE(file.is_single());
    const auto model = LoadedModel::load(file, {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    EXPECT_EQ((*model)->single(), nullptr);
    EXPECT_EQ(difference((*model)->run(inputs).value(), expected, 1e-5), "");
  }
}

TEST(DividedFile, RunsFromC) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string path = folder.path() / "two.honec";
  const Made one = made(2);
  ASSERT_TRUE(write_honec(path, one.model, one.programs(), "1.2.3").ok());
  hone_model* model = nullptr;
  ASSERT_EQ(hone_load(path.c_str(), nullptr, &model, nullptr), HONE_OK);
  const std::vector<Tensor> inputs = random_inputs(two(), 1).value();
  const void* from[] = {inputs[0].bytes().data(), inputs[1].bytes().data()};
  std::vector<Tensor> outputs;
  std::vector<void*> to;
  for (Type type : two().output_types())
    to.push_back(outputs.emplace_back(Tensor::zeros(type)).mutable_bytes().data());
  EXPECT_EQ(hone_size_count(model), 0U);
  EXPECT_EQ(hone_run(model, from, 2, to.data(), 3, nullptr), HONE_OK);
  hone_free(model);
  EXPECT_EQ(difference(outputs, evaluate(two(), inputs).value(), 1e-5), "");
}

// The number of devices is in the file: whoever counts on another one is told.
TEST(DividedFile, TellsCForHowManyDevicesItIs) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string path = folder.path() / "two.honec";
  const auto load = [&](hone_load_options options, std::string_view words = "") {
    hone_model* model = nullptr;
    hone_error* error = nullptr;
    const hone_code code = hone_load(path.c_str(), &options, &model, &error);
    EXPECT_EQ(hone_error_code(error), code);
    EXPECT_THAT(hone_error_text(error), testing::HasSubstr(words));
    const int64_t devices = hone_device_count(model);
    hone_error_free(error);
    hone_free(model);
    return code == HONE_OK ? devices : -code;
  };
  for (const int64_t devices : {1, 3}) {
    const Made one = made(devices);
    ASSERT_TRUE(write_honec(path, one.model, one.programs(), "1.2.3").ok());
    hone_load_options options = {};
    options.struct_size = sizeof options;
    options.threads = 1;
    EXPECT_EQ(load(options), devices);
    options.devices = devices;
    EXPECT_EQ(load(options), devices);
    options.devices = 2;
    EXPECT_EQ(load(options, fmt::format("for {} devices, and 2", devices)), -HONE_UNSUPPORTED);
    options.devices = -1;
    EXPECT_EQ(load(options, "-1 devices"), -HONE_USAGE);
    // A caller of an older header has no such field.
    options.struct_size = offsetof(hone_load_options, verify) + sizeof options.verify;
    EXPECT_EQ(load(options), devices);
  }
  EXPECT_EQ(hone_device_count(nullptr), 0);
}

TEST(DividedFile, RefusesWhatDoesNotFit) {
  struct Case {
    std::string_view says;
    std::function<void(BatchDivision&)> change;
  };
  const Case cases[] = {
      {"the devices have 4 of 5 rows", [](BatchDivision& d) { d.shares[1].count = 1; }},
      {"from row 2 on, but row 3", [](BatchDivision& d) { d.shares[1] = {2, 2, 1}; }},
      {"no device has rows", [](BatchDivision& d) { d.shares.clear(); }},
      {"there is no unit 1", [](BatchDivision& d) { d.shares[1].code = 0; }},
      {"is not for the 3 rows of device 0",
       [](BatchDivision& d) { std::swap(d.shares[0].code, d.shares[1].code); }},
      {"a code", [](BatchDivision& d) { d.shares[0].code = 7; }},
      {"'w' is f32[4, 4], which has no 5 rows", [](BatchDivision& d) { d.inputs[1] = 1; }},
      {"a dim", [](BatchDivision& d) { d.inputs[1] = 99; }},
      {"3 inputs or outputs", [](BatchDivision& d) { d.inputs.push_back(-1); }},
      {"is not for", [](BatchDivision& d) { d.outputs[1] = -1; }},
      {"rows", [](BatchDivision& d) { d.rows = -1; }},
  };
  for (const Case& one : cases) {
    Made changed = made(2);
    one.change(*changed.model.division);
    EXPECT_THAT(parsed(changed.bytes()), refuses(ErrorCode::bad_input, std::string(one.says)))
        << one.says;
  }
}

// Devices that add up other things would wait for each other.
TEST(DividedFile, RefusesDevicesThatDoNotMeet) {
  Made changed = made(2);
  for (image::Command& command : changed.code.images[1].commands)
    if (auto* start = std::get_if<image::Start>(&command.kind))
      start->collective.combine = Combine::max;
  EXPECT_THAT(LoadedModel::load(parsed(changed.bytes()).value()),
              refuses(ErrorCode::bad_input, "in another order"));
}

TEST(DividedFile, IsReadOrRefusedWhateverItsBytes) {
  const std::string bytes = made(2).bytes();
  int refused = 0;
  for (size_t i = 0; i < 4000 && i < bytes.size(); i += 7) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] + 1);
    refused += parsed(changed).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace hone::HONE_FILE
