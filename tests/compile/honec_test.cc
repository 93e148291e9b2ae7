#include "compile/honec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/checked_math.h"
#include "base/file.h"
#include "base/rng.h"
#include "compile/compilation.h"
#include "ir/text.h"
#include "runtime/executable.h"
#include "runtime/honec_layout.h"
#include "runtime/loaded_model.h"
#include "target/levels.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using ::testing::HasSubstr;

// Bytes on a page, as those of a mapped file are, and their owner.
class PagedBytes {
 public:
  explicit PagedBytes(std::string_view bytes)
      : memory_(std::make_shared<Memory>(
            Memory::map(round_up(static_cast<int64_t>(bytes.size()), Memory::kPage)).value())),
        size_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(memory_->data(), bytes.data(), bytes.size());
  }
  Result<HonecFile> parse() const { return HonecFile::parse(memory_, {memory_->data(), size_}); }

 private:
  std::shared_ptr<Memory> memory_;
  size_t size_;
};

Result<HonecFile> parse(std::string_view bytes) { return PagedBytes(bytes).parse(); }

std::string error_of(std::string_view bytes) {
  const Result<HonecFile> file = parse(bytes);
  return file.ok() ? "" : file.error().to_string();
}

std::string bytes_of(Compilation& compilation) {
  const HonecProgram program = {compilation.image().value(), print(*compilation.plan().value()),
                                compilation.cost().version()};
  return honec_bytes({&program, 1}, "1.2.3").value().joined();
}

Graph tiny(std::string_view name) { return build_zoo_model(name, {.size = ZooSize::tiny}).value(); }

// A weight, a loop and a donation.
constexpr std::string_view kText = R"(
  graph @g(%x: f32[40, 8] donate 0) -> (f32[40, 8], f32[]) {
    %w = constant @w : f32[40, 8]
    %y = mul %x, %w
    %s = reduce %y {kind = sum, axes = [0, 1]}
    return %y, %s
  })";

Graph small_graph() {
  std::vector<double> numbers(320);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) / 7;
  WeightTable weights;
  weights.add("w", Tensor::from_reals(Type::get(DType::f32, {40, 8}), numbers));
  return parse_graph(kText, {.weights = &weights}).value();
}

// A file and what it computes.
struct Sample {
  std::string bytes;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;

  explicit Sample(const Graph& graph) : inputs(random_inputs(graph, 1).value()) {
    Compilation compilation(graph, host_target().value());
    bytes = bytes_of(compilation);
    outputs = compilation.executable().value()->run(inputs).value();
  }
};

// The same bits from the file as from memory, and the same ports.
void expect_round_trip(const Graph& graph, const std::vector<Tensor>& inputs, const Target& target,
                       std::optional<uint64_t> plan_seed = {}) {
  Compilation compilation(graph, target, {.plan_seed = plan_seed});
  const auto image = compilation.image();
  if (!image.ok()) return;  // for other tests to say
  const Result<HonecFile> file = parse(bytes_of(compilation));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_TRUE(file->verify().ok());
  EXPECT_EQ(file->name(), graph.name());
  EXPECT_EQ(file->hone(), "1.2.3");
  ASSERT_EQ(file->programs().size(), 1);
  EXPECT_EQ(file->programs()[0].plan, print(*compilation.plan().value()));
  EXPECT_EQ(file->programs()[0].prices, compilation.cost().version());
  const auto loaded = load_honec(*file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  const auto direct = compilation.executable().value();
  EXPECT_TRUE(std::ranges::equal((*loaded)->donors(), direct->donors()));
  const std::vector<Tensor> expected = direct->run(inputs).value();
  const std::vector<Tensor> actual = (*loaded)->run(inputs).value();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ((*loaded)->outputs()[i].name, direct->outputs()[i].name);
    EXPECT_EQ(actual[i].type(), expected[i].type());
    EXPECT_TRUE(actual[i].same_bytes(expected[i])) << "output " << i;
  }
}

// ---- What is written is read -------------------------------------------------------------------

TEST(Honec, ZooModelsComputeTheSameBits) {
  for (std::string_view name : {"mlp", "resnet18", "bert_base", "lstm", "gpt2_decode"}) {
    SCOPED_TRACE(name);
    const Graph graph = tiny(name);
    expect_round_trip(graph, random_inputs(graph, 1).value(), host_target().value());
  }
}

TEST(Honec, RandomGraphsComputeTheSameBits) {
  for (uint64_t seed = 0; seed < tested::share_of(24, 2); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .max_steps = 10, .repeats_outputs = true});
    const std::vector<Target> targets = host_targets();
    expect_round_trip(graph, random_graph_inputs(graph, seed), targets[seed % targets.size()],
                      seed % 3 == 0 ? std::nullopt : std::optional(seed));
  }
}

TEST(Honec, WeightsAreUsedWhereTheyLie) {
  const Sample sample(small_graph());
  const PagedBytes bytes(sample.bytes);
  const HonecFile file = bytes.parse().value();
  const Image image = file.image(0).value();
  ASSERT_FALSE(image.constants.empty());
  for (const Tensor& constant : image.constants) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(constant.bytes().data()) % 64, 0);
    EXPECT_GT(file.weight_bytes(), 0);
  }
}

// Whoever replaced them after the file was opened is seen by a run: loading did not read them.
TEST(Honec, LoadingReadsNoWeights) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::filesystem::path path = folder.path() / "m.honec";
  const Sample sample(small_graph());
  std::string damaged = sample.bytes;
  damaged[damaged.size() - 1] = static_cast<char>(damaged.back() ^ 1);
  std::ofstream(path, std::ios::binary) << damaged;
  const HonecFile file = HonecFile::open(path).value();
  EXPECT_TRUE(load_honec(file).value()->run(sample.inputs).ok());
  const Status bad = file.verify();
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().to_string(), HasSubstr("m.honec"));
  EXPECT_THAT(bad.error().what(), says("weight 0 of 1 ... 1280 bytes ... damaged"));
}

TEST(Honec, IsWrittenAsAFile) {
  const TempDir folder = TempDir::create(std::filesystem::temp_directory_path()).value();
  Compilation compilation(small_graph(), host_target().value());
  const HonecProgram program = {compilation.image().value(), "plan"};
  for (int time = 0; time < 2; ++time)
    ASSERT_TRUE(write_honec(folder.path() / "m.honec", {&program, 1}, "1").ok());
  const HonecFile file = HonecFile::open(folder.path() / "m.honec").value();
  EXPECT_TRUE(is_honec_path(file.path()));
  EXPECT_EQ(file.programs()[0].plan, "plan");
  EXPECT_FALSE(HonecFile::open(folder.path() / "none.honec").ok());
}

// ---- Several levels of instructions ------------------------------------------------------------

TEST(Honec, TheBestProgramForTheMachineIsTaken) {
  const Graph graph = tiny("mlp");
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<HonecProgram> programs;
  std::vector<Target> targets = host_targets();
  std::ranges::reverse(targets);
  for (const Target& target : targets) {
    compilations.push_back(std::make_unique<Compilation>(graph, target));
    programs.push_back({compilations.back()->image().value(), std::string(name(target.isa))});
  }
  const HonecFile file = parse(honec_bytes(programs, "1").value().joined()).value();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  for (size_t i = 0; i < targets.size(); ++i) {
    const Instructions machine = targets[i].instructions();
    ASSERT_EQ(file.choose(machine).value(), i);
    EXPECT_EQ(file.programs()[i].plan, name(targets[i].isa));
    const std::vector<Tensor> expected = compilations[i]->executable().value()->run(inputs).value();
    const std::vector<Tensor> actual =
        load_honec(file, {.machine = machine}).value()->run(inputs).value();
    EXPECT_TRUE(actual[0].same_bytes(expected[0]));
  }
}

// A weight that lies in memory alike for all levels is in the file once, and so is equal code.
TEST(Honec, LevelsShareWeights) {
  const std::vector<Target> targets = levels_of(host_target().value());
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<HonecProgram> programs;
  for (const Target& target : targets) {
    compilations.push_back(std::make_unique<Compilation>(small_graph(), target));
    programs.push_back({compilations.back()->image().value(), ""});
    programs.push_back(programs.back());
  }
  const HonecFile file = parse(honec_bytes(programs, "1").value().joined()).value();
  EXPECT_EQ(file.programs().size(), 2 * targets.size());
  EXPECT_EQ(file.weight_bytes(), 40 * 8 * 4);
  int64_t code = 0;
  for (const auto& compilation : compilations)
    for (const KernelCode& kernel : compilation->kernels().value())
      code += round_up(static_cast<int64_t>(kernel.object->size()), honec::kAlignment);
  EXPECT_LE(file.code_bytes(), code);
}

TEST(Honec, SizesHaveProgramsOfTheirOwnAndShareWeights) {
  const Graph open =
      build_zoo_model("mlp", {.size = ZooSize::tiny, .symbolic_batch = true}).value();
  const std::vector<Target> levels = levels_of(host_target().value());
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<HonecProgram> programs;
  int64_t apart = 0;  // weights of files for one program
  for (int64_t size : {3, 40})
    for (const Target& target : levels) {
      const Graph graph = specialize(open, {{"N", Dim(size)}}).value();
      compilations.push_back(std::make_unique<Compilation>(graph, target));
      programs.push_back({compilations.back()->image().value(), ""});
      apart += parse(bytes_of(*compilations.back())).value().weight_bytes();
    }
  const HonecFile file = parse(honec_bytes(programs, "1").value().joined()).value();
  ASSERT_EQ(file.sizes().size(), 2);
  EXPECT_EQ(file.sizes()[1], levels.size());
  EXPECT_LT(file.weight_bytes(), apart);
  const auto loaded = LoadedModel::load(file).value();
  EXPECT_EQ(loaded->single(), nullptr);
  for (size_t i = 0; i < 2; ++i) {
    Compilation& compilation = *compilations[i * levels.size()];
    EXPECT_EQ(file.choose(host_instructions().value(), i).value(), file.sizes()[i]);
    const std::vector<Tensor> inputs = random_inputs(*compilation.graph().value(), 1).value();
    EXPECT_EQ(file.programs()[file.sizes()[i]].inputs[0].type, inputs[0].type());
    const Tensor expected = compilation.executable().value()->run(inputs).value()[0];
    EXPECT_TRUE(loaded->for_sizes(i)->run(inputs).value()[0].same_bytes(expected));
    EXPECT_TRUE(loaded->run(inputs).value()[0].same_bytes(expected));  // found by its size
  }
  const Tensor other = Tensor::zeros(Type::get(DType::f32, {4, 16}));
  const auto refused = loaded->run({&other, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().what(), says("inputs of 4x16"));
  EXPECT_THAT(refused.error().hint(), HasSubstr("it has code for x 3x16; x 40x16"));
}

TEST(Honec, CodeThatTheMachineCannotRunIsRefused) {
  const Target host = host_target().value();
  if (host.isa == Isa::v2) GTEST_SKIP() << "no machine has less";
  Compilation compilation(tiny("mlp"), host);
  const HonecFile file = parse(bytes_of(compilation)).value();
  const auto loaded = load_honec(file, {.machine = Instructions{}});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(loaded.error().what(), HasSubstr("this machine has x86-64-v2"));
  EXPECT_THAT(loaded.error().hint(), HasSubstr("--isa x86-64-v2"));
}

TEST(Honec, RunsOnFewerThreads) {
  const Sample sample(small_graph());
  const HonecFile file = parse(sample.bytes).value();
  for (int64_t threads : {1, 2, 1000}) {
    const auto loaded = load_honec(file, {.threads = threads}).value();
    EXPECT_TRUE(loaded->run(sample.inputs).value()[0].same_bytes(sample.outputs[0]));
  }
  EXPECT_EQ(load_honec(file, {.memory_limit = 0}).value()->run(sample.inputs).ok(),
            file.programs()[0].arena_bytes == 0);
}

// ---- Damaged files -----------------------------------------------------------------------------

TEST(Honec, OtherFilesAreRefused) {
  EXPECT_THAT(error_of(""), says("0 bytes"));
  EXPECT_THAT(error_of(std::string(4096, 'x')), says("begin"));
  const Sample sample(small_graph());
  EXPECT_TRUE(begins_like_honec(sample.bytes));
  EXPECT_FALSE(begins_like_honec("graph"));
  std::string later = sample.bytes;
  later[8] = 100;
  const Result<HonecFile> file = parse(later);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(file.error().to_string(), says("version 100 ... 5"));
  EXPECT_THAT(error_of(sample.bytes + "x"), says("bytes ... header"));
}

// A byte is a weight's, or is found at once.
TEST(Honec, DamagedBytesAreFound) {
  const Sample sample(small_graph());
  const int64_t weights = parse(sample.bytes).value().weight_bytes();
  Rng rng(1);
  for (int time = 0; time < 1000; ++time) {
    std::string damaged = sample.bytes;
    const auto at = static_cast<size_t>(rng.below(damaged.size()));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + rng.below(255)));
    const Result<HonecFile> file = parse(damaged);
    const bool is_weight = at >= damaged.size() - static_cast<size_t>(weights);
    ASSERT_EQ(file.ok(), is_weight) << "byte " << at;
    if (is_weight) ASSERT_FALSE(file->verify().ok()) << "byte " << at;
    if (!file.ok()) ASSERT_FALSE(file.error().hint().empty()) << file.error().to_string();
  }
}

TEST(Honec, FilesThatAreCutAreRefused) {
  const Sample sample(small_graph());
  honec::Header header;
  std::memcpy(&header, sample.bytes.data(), sizeof header);
  std::vector<size_t> ends = {0, 1, 7, 8, 31, 32, 33, sample.bytes.size() - 1};
  for (uint32_t i = 0; i < header.sections; ++i) {
    honec::Section section;
    std::memcpy(&section, sample.bytes.data() + sizeof header + i * sizeof section, sizeof section);
    for (uint64_t border : {section.offset, section.offset + section.bytes})
      for (int64_t by : {-1, 0, 1})
        if (const auto end = static_cast<int64_t>(border) + by;
            end < static_cast<int64_t>(sample.bytes.size()))
          ends.push_back(static_cast<size_t>(end));
  }
  for (size_t end : ends) {
    const Result<HonecFile> file = parse(std::string_view(sample.bytes).substr(0, end));
    ASSERT_FALSE(file.ok()) << end;
    EXPECT_EQ(file.error().code(), ErrorCode::bad_input);
  }
}

// With checksums that fit: whoever made the file means harm, or has a fault.
TEST(Honec, HostileProgramsAreRefusedOrCheckedWhenLoaded) {
  const Sample sample(small_graph());
  honec::Header header;
  honec::Section sections[4];
  std::memcpy(&header, sample.bytes.data(), sizeof header);
  ASSERT_EQ(header.sections, 4);
  std::memcpy(sections, sample.bytes.data() + sizeof header, sizeof sections);
  Rng rng(2);
  int loaded = 0;
  for (int time = 0; time < 3000; ++time) {
    std::string hostile = sample.bytes;
    honec::Section table[4];
    std::ranges::copy(sections, table);
    honec::Section& section = table[rng.below(2)];  // metadata or program
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      const size_t at = section.offset + rng.below(section.bytes);
      hostile[at] = rng.below(2) == 0 ? static_cast<char>(rng.below(256)) : '\xff';
    }
    section.checksum = hash_string(std::string_view(hostile).substr(section.offset, section.bytes));
    honec::Header sealed = header;
    sealed.checksum = honec::header_checksum(sealed, std::as_bytes(std::span(table)));
    std::memcpy(hostile.data(), &sealed, sizeof sealed);
    std::memcpy(hostile.data() + sizeof sealed, table, sizeof table);
    const Result<HonecFile> file = parse(hostile);
    if (!file.ok()) continue;
    for (size_t i = 0; i < file->programs().size(); ++i)
      if (const Result<Image> image = file->image(i); image.ok())
        loaded += check_image(*image).ok() ? 1 : 0;
  }
  EXPECT_GT(loaded, 0);  // names and plans are free
}

}  // namespace
}  // namespace hone::HONE_FILE
