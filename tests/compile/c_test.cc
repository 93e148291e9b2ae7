#include "runtime/hone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "compile/compilation.h"
#include "compile/honec.h"
#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/codegen/native.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

// The error of a call, freed with it.
struct Said {
  hone_error* error = nullptr;
  ~Said() { hone_error_free(error); }
  std::string text() const { return hone_error_text(error); }
};

class CInterface : public ::testing::Test {
 protected:
  CInterface() {
    const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
    Compilation compilation(graph, host_target().value());
    const HonecProgram program = {compilation.image().value(), "plan"};
    HONE_CHECK(write_honec(path_, {&program, 1}, "1").ok(), "{}", path_);
    input_ = random_inputs(graph, 1).value()[0];
    expected_ = compilation.executable().value()->run({&input_, 1}).value()[0];
  }
  ~CInterface() override { hone_free(model_); }

  hone_code load(const hone_load_options* options = nullptr) {
    return hone_load(path_.c_str(), options, &model_, &said_.error);
  }
  hone_code run(void* output, hone_error** error = nullptr) const {
    const void* const inputs[] = {input_.bytes().data()};
    return hone_run(model_, inputs, 1, &output, 1, error);
  }

  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::string path_ = (folder_.path() / "mlp.honec").string();
  Tensor input_, expected_;
  hone_model* model_ = nullptr;
  Said said_;
};

TEST_F(CInterface, LoadsTellsAndRuns) {
  EXPECT_GE(hone_api_version(), HONE_API_VERSION);
  ASSERT_EQ(load(), HONE_OK) << said_.text();
  EXPECT_EQ(said_.error, nullptr);
  EXPECT_STREQ(hone_model_name(model_), "mlp");
  ASSERT_EQ(hone_input_count(model_), 1);
  ASSERT_EQ(hone_output_count(model_), 1);
  const hone_port* x = hone_input(model_, 0);
  EXPECT_STREQ(x->name, "x");
  EXPECT_STREQ(x->type_name, "f32");
  EXPECT_EQ(x->type, HONE_F32);
  ASSERT_EQ(x->rank, 2);
  EXPECT_EQ(x->dims[0], 2);
  EXPECT_EQ(x->dims[1], 16);
  EXPECT_EQ(x->bytes, 128);
  EXPECT_EQ(hone_input(model_, 1), nullptr);
  EXPECT_EQ(hone_output(model_, 1), nullptr);
  EXPECT_EQ(hone_find_input(model_, "x"), 0);
  EXPECT_EQ(hone_find_output(model_, hone_output(model_, 0)->name), 0);
  EXPECT_EQ(hone_find_input(model_, "nothing"), -1);
  EXPECT_EQ(hone_find_output(model_, nullptr), -1);
  std::vector<float> output(hone_output(model_, 0)->bytes / sizeof(float));
  ASSERT_EQ(run(output.data()), HONE_OK);
  EXPECT_TRUE(Tensor::of<float>(expected_.type(), output).same_bytes(expected_));
}

TEST_F(CInterface, ThreadsMayRunAtOnce) {
  ASSERT_EQ(load(), HONE_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      std::vector<float> output(hone_output(model_, 0)->bytes / sizeof(float));
      for (int time = 0; time < 50; ++time) {
        std::ranges::fill(output, -1.0f);
        const bool right = run(output.data()) == HONE_OK &&
                           Tensor::of<float>(expected_.type(), output).same_bytes(expected_);
        wrong += right ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// An output in the buffer of its donor: the step writes one row, and copies nothing.
TEST_F(CInterface, AnOutputMayLieInItsDonor) {
  const Graph graph = parse_graph(R"(
graph @append(%row: f32[1, 4], %cache: f32[8, 4] donate 1, %at: i64[]) -> (f32[1, 4], f32[8, 4]) {
  %next = dynamic_update %cache, %row, %at, 0
  %twice = add %row, %row
  return %twice, %next
})")
                          .value();
  Compilation compilation(graph, host_target().value());
  const HonecProgram program = {compilation.image().value(), ""};
  ASSERT_TRUE(write_honec(path_, {&program, 1}, "1").ok());
  ASSERT_EQ(load(), HONE_OK) << said_.text();
  EXPECT_EQ(hone_output_donor(model_, 0), -1);
  EXPECT_EQ(hone_output_donor(model_, 1), 1);
  EXPECT_EQ(hone_output_donor(model_, 2), -1);
  EXPECT_EQ(hone_output_donor(nullptr, 0), -1);
  std::vector<float> cache(32, 0), row = {1, 2, 3, 4}, twice(4);
  int64_t at = 0;
  const void* inputs[] = {row.data(), cache.data(), &at};
  void* outputs[] = {twice.data(), cache.data()};
  for (at = 0; at < 3; ++at)
    ASSERT_EQ(hone_run(model_, inputs, 3, outputs, 2, &said_.error), HONE_OK) << said_.text();
  EXPECT_EQ(cache[11], 4);
  EXPECT_EQ(cache[12], 0);
  EXPECT_EQ(twice[3], 8);
  // All of its donor, and nothing else.
  outputs[1] = cache.data() + 4;
  EXPECT_EQ(hone_run(model_, inputs, 3, outputs, 2, nullptr), HONE_BAD_INPUT);
  outputs[0] = cache.data();
  EXPECT_EQ(hone_run(model_, inputs, 3, outputs, 2, nullptr), HONE_BAD_INPUT);
}

TEST_F(CInterface, SizesAreChosenByIndex) {
  const Graph open =
      build_zoo_model("mlp", {.size = ZooSize::tiny, .symbolic_batch = true}).value();
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<HonecProgram> programs;
  for (int64_t size : {2, 7}) {
    const Graph graph = specialize(open, {{"N", Dim(size)}}).value();
    compilations.push_back(std::make_unique<Compilation>(graph, host_target().value()));
    programs.push_back({compilations.back()->image().value(), ""});
  }
  ASSERT_TRUE(write_honec(path_, programs, "1").ok());
  ASSERT_EQ(load(), HONE_OK) << said_.text();
  ASSERT_EQ(hone_size_count(model_), 2);
  EXPECT_EQ(hone_input(model_, 0)->dims[0], 2);
  EXPECT_EQ(hone_sized_input(model_, 1, 0)->dims[0], 7);
  EXPECT_EQ(hone_sized_output(model_, 1, 0)->dims[0], 7);
  EXPECT_EQ(hone_sized_input(model_, 2, 0), nullptr);
  EXPECT_EQ(hone_sized_output(model_, 1, 1), nullptr);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor x = random_inputs(*compilations[i]->graph().value(), 1).value()[0];
    const Tensor expected = compilations[i]->executable().value()->run({&x, 1}).value()[0];
    std::vector<float> y(hone_sized_output(model_, i, 0)->bytes / sizeof(float));
    const void* inputs[] = {x.bytes().data()};
    void* outputs[] = {y.data()};
    ASSERT_EQ(hone_run_sized(model_, i, inputs, 1, outputs, 1, nullptr), HONE_OK);
    EXPECT_TRUE(Tensor::of<float>(expected.type(), y).same_bytes(expected));
    // The same by what the sizes are.
    const Ints sizes = x.type().static_dims();
    const int64_t* dims[] = {sizes.data()};
    hone_outputs* made = nullptr;
    ASSERT_EQ(hone_call(model_, inputs, dims, 1, &made, nullptr), HONE_OK);
    EXPECT_EQ(hone_outputs_port(made, 0)->dims[0], sizes[0]);
    EXPECT_EQ(std::memcmp(hone_outputs_data(made, 0), y.data(), y.size() * sizeof(float)), 0);
    hone_outputs_free(made);
  }
  Said said;
  EXPECT_EQ(hone_run_sized(model_, 2, nullptr, 0, nullptr, 0, &said.error), HONE_USAGE);
  EXPECT_THAT(said.text(), HasSubstr("sizes 2 of 2"));
}

TEST_F(CInterface, OptionsAreChecked) {
  hone_load_options options = {.struct_size = sizeof options,
                               .threads = 1,
                               .memory_limit = 1 << 30,
                               .verify = 1,
                               .devices = 0,
                               .device = nullptr,
                               .driver = nullptr,
                               .cache = nullptr};
  ASSERT_EQ(load(&options), HONE_OK) << said_.text();
  hone_free(std::exchange(model_, nullptr));
  // Options that a later header adds are beyond what this library knows.
  options.struct_size += 100;
  ASSERT_EQ(load(&options), HONE_OK);
  hone_free(std::exchange(model_, nullptr));
  for (hone_load_options bad : {hone_load_options{.struct_size = 4,
                                                  .threads = 0,
                                                  .memory_limit = 0,
                                                  .verify = 0,
                                                  .devices = 0,
                                                  .device = nullptr,
                                                  .driver = nullptr,
                                                  .cache = nullptr},
                                hone_load_options{.struct_size = sizeof options,
                                                  .threads = -1,
                                                  .memory_limit = 0,
                                                  .verify = 0,
                                                  .devices = 0,
                                                  .device = nullptr,
                                                  .driver = nullptr,
                                                  .cache = nullptr},
                                hone_load_options{.struct_size = sizeof options,
                                                  .threads = 0,
                                                  .memory_limit = -1,
                                                  .verify = 0,
                                                  .devices = 0,
                                                  .device = nullptr,
                                                  .driver = nullptr,
                                                  .cache = nullptr}}) {
    Said said;
    EXPECT_EQ(hone_load(path_.c_str(), &bad, &model_, &said.error), HONE_USAGE);
    EXPECT_EQ(model_, nullptr);
  }
}

TEST_F(CInterface, ErrorsHaveCodeTextAndHint) {
  Said none, damaged, null, wrong, overlap;
  EXPECT_EQ(hone_load("none.honec", nullptr, &model_, &none.error), HONE_BAD_INPUT);
  EXPECT_EQ(hone_error_code(none.error), HONE_BAD_INPUT);
  EXPECT_THAT(none.text(), HasSubstr("none.honec"));
  EXPECT_EQ(hone_load(nullptr, nullptr, &model_, &null.error), HONE_USAGE);
  EXPECT_EQ(hone_load(path_.c_str(), nullptr, nullptr, nullptr), HONE_USAGE);
  const std::string cut = (folder_.path() / "cut.honec").string();
  ASSERT_TRUE(write_file_atomic(cut, read_file(path_, 1 << 20).value().substr(0, 999)).ok());
  EXPECT_EQ(hone_load(cut.c_str(), nullptr, &model_, &damaged.error), HONE_BAD_INPUT);
  EXPECT_THAT(damaged.text(), HasSubstr("999 bytes"));
  EXPECT_STRNE(hone_error_hint(damaged.error), "");

  ASSERT_EQ(load(), HONE_OK);
  std::vector<float> output(1000);
  void* outputs[] = {output.data()};
  const void* inputs[] = {input_.bytes().data()};
  EXPECT_EQ(hone_run(model_, inputs, 1, outputs, 0, &wrong.error), HONE_USAGE);
  EXPECT_THAT(wrong.text(), says("1 inputs ... 0 outputs ... 1 and 1"));
  EXPECT_EQ(hone_run(nullptr, inputs, 1, outputs, 1, nullptr), HONE_USAGE);
  EXPECT_EQ(hone_run(model_, nullptr, 1, outputs, 1, nullptr), HONE_USAGE);
  EXPECT_EQ(run(nullptr), HONE_BAD_INPUT);
  EXPECT_EQ(run(reinterpret_cast<char*>(output.data()) + 1), HONE_BAD_INPUT);
  inputs[0] = output.data();
  EXPECT_EQ(hone_run(model_, inputs, 1, outputs, 1, &overlap.error), HONE_BAD_INPUT);
  EXPECT_THAT(overlap.text(), HasSubstr("overlaps"));

  EXPECT_EQ(hone_error_code(nullptr), HONE_OK);
  EXPECT_STREQ(hone_error_text(nullptr), "");
  EXPECT_STREQ(hone_error_hint(nullptr), "");
  hone_free(nullptr);
}

}  // namespace
}  // namespace hone::HONE_FILE
