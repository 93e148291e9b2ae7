#include "session/build_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "compile/c_names.h"
#include "compile/compilation.h"
#include "ir/text.h"
#include "runtime/executable.h"
#include "target/levels.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kOk = 0, kBadArgument = 2, kUnsupported = 4;

// A library, loaded. Structs of pointers lie like arrays of pointers.
class Library {
 public:
  Library(const fs::path& path, const std::string& name)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    HONE_CHECK(handle_ != nullptr, "{}", dlerror());
    find(run_, name + "_run");
    find(supported_, name + "_supported");
    find(workspace_bytes_, name + "_workspace_bytes");
  }
  Library(const Library&) = delete;
  ~Library() { dlclose(handle_); }

  int supported() const { return supported_(); }
  size_t workspace_bytes() const { return workspace_bytes_(); }
  int run(const void* const* inputs, void* const* outputs, void* workspace) const {
    return run_(inputs, outputs, workspace);
  }
  bool has(const char* symbol) const { return dlsym(handle_, symbol) != nullptr; }

  std::vector<Tensor> run(std::span<const Tensor> inputs, const Executable& like,
                          void* workspace = nullptr) const {
    std::vector<const void*> from;
    std::vector<Tensor> outputs;
    std::vector<void*> to;
    for (const Tensor& input : inputs) from.push_back(input.bytes().data());
    for (const image::Port& port : like.outputs())
      to.push_back(outputs.emplace_back(Tensor::zeros(port.type)).mutable_bytes().data());
    EXPECT_EQ(run(from.data(), to.data(), workspace), kOk);
    return outputs;
  }

 private:
  template <class Function>
  void find(Function& function, const std::string& symbol) {
    void* const address = dlsym(handle_, symbol.c_str());
    HONE_CHECK(address != nullptr, "{}", symbol);
    std::memcpy(&function, &address, sizeof address);
  }

  void* const handle_;
  int (*run_)(const void* const*, void* const*, void*) = nullptr;
  int (*supported_)() = nullptr;
  size_t (*workspace_bytes_)() = nullptr;
};

class BuildLibrary : public ::testing::Test {
 protected:
  Status build(std::span<const HonecProgram> programs, const std::string& file) {
    const fs::path path = folder_.path() / file;
    const LibrarySources sources = HONE_TRY(library_sources(programs, library_name(path), "1.2"));
    return build_library(sources, path, {.scratch = folder_.path()});
  }
  // The error; "": nothing, or there is no compiler.
  std::string error_of(const Status& status) {
    if (status.ok()) return "";
    if (status.error().code() != ErrorCode::unsupported) return status.error().to_string();
    has_compiler_ = false;
    return "";
  }
  fs::path path(std::string_view file) const { return folder_.path() / file; }
  void expect_same_bits(const Graph& graph, const std::vector<Tensor>& inputs, const Target& target,
                        std::optional<uint64_t> plan_seed = {});

  const TempDir folder_ = TempDir::create(fs::temp_directory_path()).value();
  bool has_compiler_ = true;
  int libraries_ = 0;
};

Compilation compilation_of(const Graph& graph, const Target& target,
                           std::optional<uint64_t> plan_seed = {}) {
  CompileOptions options = {.plan_seed = plan_seed};
  if (!plan_seed) options.plan.threads = 1;
  return Compilation(graph, target, std::move(options));
}

// A library of its own for each graph; one that does not compile is for other tests to say.
void BuildLibrary::expect_same_bits(const Graph& graph, const std::vector<Tensor>& inputs,
                                    const Target& target, std::optional<uint64_t> plan_seed) {
  Compilation compilation = compilation_of(graph, target, plan_seed);
  const auto image = compilation.image();
  if (!image.ok()) return;
  const HonecProgram program = {*image, ""};
  ASSERT_EQ(error_of(build({&program, 1}, fmt::format("libm{}.so", libraries_))), "");
  if (!has_compiler_) return;
  const std::string name = fmt::format("m{}", libraries_++);
  const Library library(path(fmt::format("lib{}.so", name)), name);
  const auto direct = compilation.executable().value();
  const std::vector<Tensor> expected = direct->run(inputs).value();
  for (int time = 0; time < 2; ++time) {
    const std::vector<Tensor> actual = library.run(inputs, *direct);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_TRUE(actual[i].same_bytes(expected[i])) << "output " << i;
  }
}

TEST_F(BuildLibrary, RandomGraphsComputeTheSameBits) {
  const std::vector<Target> levels = levels_of(host_target().value());
  for (uint64_t seed = 0; seed < 12 && has_compiler_; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .repeats_outputs = true});
    expect_same_bits(graph, random_graph_inputs(graph, seed), levels[seed % levels.size()],
                     seed % 3 == 0 ? std::nullopt : std::optional(seed));
  }
  if (!has_compiler_) GTEST_SKIP() << "there is no C compiler";
}

// Loops, donated inputs, convs.
TEST_F(BuildLibrary, ZooModelsComputeTheSameBits) {
  for (std::string_view name : {"lstm", "gpt2_decode", "resnet18"}) {
    SCOPED_TRACE(name);
    const Graph graph = build_zoo_model(name, {.size = ZooSize::tiny}).value();
    expect_same_bits(graph, random_inputs(graph, 1).value(), host_target().value());
  }
  if (!has_compiler_) GTEST_SKIP() << "there is no C compiler";
}

TEST_F(BuildLibrary, TakesTheBestLevelAndRunsOnThreadsAtOnce) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<HonecProgram> programs;
  for (const Target& level : levels_of(host_target().value())) {
    compilations.push_back(std::make_unique<Compilation>(compilation_of(graph, level)));
    programs.push_back({compilations.back()->image().value(), ""});
  }
  ASSERT_EQ(error_of(build(programs, "libmlp.so")), "");
  if (!has_compiler_) GTEST_SKIP() << "there is no C compiler";
  const Library library(path("libmlp.so"), "mlp");
  EXPECT_EQ(library.supported(), kOk);
  EXPECT_GT(library.workspace_bytes(), 0);
  EXPECT_FALSE(library.has("mlp__weights"));  // nothing else is seen
  EXPECT_FALSE(library.has("kernel_0"));
  const auto direct = compilations[0]->executable().value();
  const Tensor expected = direct->run(inputs).value()[0];
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      std::vector<std::byte> memory(library.workspace_bytes() + 64, std::byte{0xa5});
      const auto address = reinterpret_cast<uintptr_t>(memory.data());
      void* const workspace = memory.data() + (64 - address % 64) % 64;
      for (int time = 0; time < 20; ++time)
        EXPECT_TRUE(
            library.run(inputs, *direct, i % 2 == 0 ? workspace : nullptr)[0].same_bytes(expected));
    });
}

TEST_F(BuildLibrary, SaysWhatIsWrongWithACall) {
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  Compilation compilation = compilation_of(graph, host_target().value());
  const HonecProgram program = {compilation.image().value(), ""};
  ASSERT_EQ(error_of(build({&program, 1}, "libmlp.so")), "");
  if (!has_compiler_) GTEST_SKIP() << "there is no C compiler";
  const Library library(path("libmlp.so"), "mlp");
  alignas(64) float x[64] = {}, y[64] = {};
  const void* in[] = {x};
  void* out[] = {y};
  EXPECT_EQ(library.run(in, out, nullptr), kOk);
  EXPECT_EQ(library.run(nullptr, out, nullptr), kBadArgument);
  EXPECT_EQ(library.run(in, nullptr, nullptr), kBadArgument);
  EXPECT_EQ(library.run(in, out, x + 1), kBadArgument);  // no workspace begins there
  in[0] = nullptr;
  EXPECT_EQ(library.run(in, out, nullptr), kBadArgument);
  in[0] = reinterpret_cast<const char*>(x) + 1;
  EXPECT_EQ(library.run(in, out, nullptr), kBadArgument);
}

TEST_F(BuildLibrary, RefusesAProcessorThatLacksInstructions) {
  const Target host = host_target().value();
  const auto* const lacking =
      std::ranges::find_if(kExtensions, [&](Extension e) { return !host.extensions.contains(e); });
  if (lacking == kExtensions.end()) GTEST_SKIP() << "this processor has all instructions";
  const Graph graph = build_zoo_model("mlp", {.size = ZooSize::tiny}).value();
  Compilation compilation = compilation_of(graph, host);
  Image image = *compilation.image().value();
  for (image::Kernel& kernel : image.kernels) kernel.needs = {Isa::avx512, {*lacking}};
  const HonecProgram program = {&image, ""};
  ASSERT_EQ(error_of(build({&program, 1}, "libmlp.so")), "");
  if (!has_compiler_) GTEST_SKIP() << "there is no C compiler";
  const Library library(path("libmlp.so"), "mlp");
  EXPECT_EQ(library.supported(), kUnsupported);
  EXPECT_EQ(library.workspace_bytes(), 0);
  alignas(64) float x[64] = {}, y[64] = {};
  const void* in[] = {x};
  void* out[] = {y};
  EXPECT_EQ(library.run(in, out, nullptr), kUnsupported);
}

TEST_F(BuildLibrary, SaysWhatIsMissing) {
  const Graph graph = parse_graph("graph @g(%x: f32[4]) { %y = neg %x return %y }").value();
  Compilation compilation = compilation_of(graph, host_target().value());
  const HonecProgram program = {compilation.image().value(), ""};
  const LibrarySources sources = library_sources({&program, 1}, "g", "1").value();
  const auto made_by = [&](const std::string& compiler) {
    return build_library(sources, path("libg.so"),
                         {.compiler = compiler, .scratch = folder_.path()});
  };
  const Status none = made_by("no-such-compiler -x");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(none.error().what(), HasSubstr("no-such-compiler"));
  EXPECT_THAT(none.error().hint(), HasSubstr("apt-get install gcc"));
  EXPECT_EQ(made_by("false").error().code(), ErrorCode::bad_input);
  EXPECT_FALSE(fs::exists(path("g.h")));
  EXPECT_FALSE(fs::exists(path("libg.so")));
}

TEST(LibraryHeader, NamesAreThoseOfC) {
  const Graph graph = parse_graph(
                          "graph @g(%a: f32[4], %b: i4[3], %c: f32[]) -> (f32[4], i4[3]) {"
                          "  %y = neg %a"
                          "  return %y, %b }")
                          .value();
  Compilation compilation = compilation_of(graph, host_target().value());
  Image image = *compilation.image().value();
  image.name = "a */ model";
  image.inputs[0].name = "conv1/x:0";
  image.inputs[1].name = "class";
  image.inputs[2].name = "CONV1.x.0";
  image.outputs[0].name = "7";
  image.outputs[1].name = "";
  const HonecProgram program = {&image, ""};
  const std::string header = library_sources({&program, 1}, "my_lib", "1").value().header;
  EXPECT_THAT(header, HasSubstr("The model a * / model, compiled by hone 1."));
  EXPECT_THAT(header, HasSubstr("my_lib_inputs in = {.conv1_x_0 = conv1_x_0, ...};\n"));
  EXPECT_THAT(header, HasSubstr("const float* conv1_x_0; /* f32[4]: conv1/x:0 */"));
  EXPECT_THAT(header, HasSubstr("const uint8_t* class_; /* i4[3], several elements to a byte"));
  EXPECT_THAT(header, HasSubstr("const float* CONV1_x_0_2; /* f32[]: CONV1.x.0 */"));
  EXPECT_THAT(header, HasSubstr("float* v7; /* f32[4]: 7 */"));
  EXPECT_THAT(header, HasSubstr("#define MY_LIB_INPUT_CLASS_ 2\n"));
  EXPECT_EQ(library_name("dir/libmlp.so"), "mlp");
  EXPECT_EQ(library_name("9-lives.a"), "v9_lives");
  EXPECT_EQ(c_name("a__b"), "a_b");
}

}  // namespace
}  // namespace hone::HONE_FILE
