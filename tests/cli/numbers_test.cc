#include <regex>

#include "base/text.h"
#include "target/target.h"
#include "tests/cli/command_testing.h"

// Files that people write or edit. Each number in them is in turn at the limits of what a text can
// say. The command takes it or refuses it with a reason, and never fails by itself.

namespace hone::cli::HONE_FILE {
namespace {

const char* const kNumbers[] = {"0",
                                "-1",
                                "2147483648",
                                "4294967296",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "18446744073709551615",
                                "1e308",
                                "1e-320",
                                "1e400"};

struct Sample {
  std::string name;  // of the file
  std::string text;
  Words words;  // of the command that reads it
};

class Numbers : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) const {
    ASSERT_TRUE(write_file_atomic(folder() / name, text).ok());
  }
  // The text that a command prints into a file.
  std::string printed(Words words, const std::string& name) const {
    words.insert(words.end(), {"-o", name});
    run_each(folder(), {words}, 60, [](const Words& line, const Ended& ended) {
      EXPECT_EQ(ended.code, 0) << join(line, " ") << ": " << ended.said;
    });
    return read_file(folder() / name, 1 << 20).value();
  }

  // One number after another, in a file of its own each.
  void try_each(const Sample& sample) const {
    static const std::regex kNumber("[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?");
    std::vector<Words> all;
    const std::sregex_iterator begin(sample.text.begin(), sample.text.end(), kNumber), end;
    for (std::sregex_iterator at = begin; at != end; ++at)
      for (const char* number : kNumbers) {
        const std::string name = fmt::format("{}.{}", all.size(), sample.name);
        put(name, at->prefix().str() + number + at->suffix().str());
        Words words = sample.words;
        std::ranges::replace(words, std::string("FILE"), name);
        all.push_back(std::move(words));
      }
    EXPECT_FALSE(all.empty()) << sample.name;
    run_each(folder(), all, 5, [&](const Words& words, const Ended& ended) {
      EXPECT_FALSE(ended.is_fault()) << "hone " << join(words, " ") << ": exit code " << ended.code
                                     << ", signal " << ended.signal << "\n"
                                     << ended.said << "\n"
                                     << read_file(folder() / words_file(words), 1 << 20).value();
    });
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  static std::string words_file(const Words& words) {
    for (const std::string& word : words)
      if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.find('.') != word.npos)
        return word;
    return words.back();
  }

  TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

constexpr std::string_view kGraph = R"(graph @small(%x: f32[4, 8]) -> f32[4, 6] {
  %w = constant 0.5 : f32[8, 6]
  %z = constant 0 : f32[]
  %p = pad %x, %z {low = [0, 0], high = [0, 2]}
  %s = slice %p {start = [0, 1], limit = [4, 9], stride = [1, 1]}
  %d = dot %s, %w {lhs_contract = [1], rhs_contract = [0]}
  return %d
}
)";

TEST_F(Numbers, OfGraphs) {
  put("graph.hone", kGraph);
  try_each({"hone", std::string(kGraph), {"run", "FILE", "--cache", "none"}});
}

TEST_F(Numbers, OfPrices) {
  put("graph.hone", kGraph);
  const std::string text = printed({"target", "prices"}, "prices");
  try_each({"prices",
            text,
            {"compile", "graph.hone", "--cache", "none", "--emit", "plan", "--prices", "FILE"}});
}

TEST_F(Numbers, OfTargets) {
  put("graph.hone", kGraph);
  const std::string text = print(host_target().value());
  try_each({"target",
            text,
            {"compile", "graph.hone", "--cache", "none", "--emit", "plan", "--target", "FILE"}});
}

TEST_F(Numbers, OfPlans) {
  put("graph.hone", kGraph);
  const std::string text =
      printed({"compile", "graph.hone", "--cache", "none", "--emit", "plan"}, "plan");
  try_each({"plan", text, {"run", "graph.hone", "--cache", "none", "--plan", "FILE"}});
}

TEST_F(Numbers, OfBuffers) {
  try_each({"csv", "id,lower,upper,size,alignment\n1,0,2,16,8\n2,1,3,16,4\n", {"alloc", "FILE"}});
}

TEST_F(Numbers, OfRules) {
  try_each({"rules", "rule twice: mul(?a, 2) => add(?a, ?a)\n", {"rules", "verify", "FILE"}});
}

TEST_F(Numbers, OfLogs) {
  try_each({"jsonl",
            R"({"record":{"kind":"kernel","subject":"0x9c2b5e3f00d1a764","choice":"x","code":)"
            R"("0x1100000000000000","target":"0xfedcba9876543210","conditions":"threads=1",)"
            R"("outcome":"measured","detail":"","seconds":[2.1e-06,2e-06],"version":"0.1.0",)"
            R"("time":1700000000,"noise":0.01}})"
            "\n",
            {"log", "import", "FILE", "--log", "log.db"}});
}

TEST_F(Numbers, OfTraining) {
  try_each({"train",
            "data none.npz\ninput x\ntarget y\nloss mse\nlayer linear 4\nrate 0.02\nepochs 2\n"
            "batch 8\nseed 1\n",
            {"train", "FILE"}});
}

// Numbers in words of the command line.
TEST_F(Numbers, OfValues) {
  put("graph.hone", "graph @open(%x: f32[N, 8]) {\n  %y = exp %x\n  return %y\n}\n");
  std::vector<Words> all;
  for (const char* number : kNumbers)
    for (const Words& words :
         {Words{"run", "graph.hone", "--dim", fmt::format("N={}", number)},
          Words{"run", "graph.hone", "--shape", fmt::format("x={}x8", number)},
          Words{"run", "graph.hone", "--input", fmt::format("x={}x8xf32=1", number)},
          Words{"run", "graph.hone", "--input", fmt::format("x=1x8xf32={}", number)},
          Words{"tune", "graph.hone", "--dim", "N=2", "--no-log", "--budget",
                fmt::format("{}s", number)},
          Words{"optimize", "graph.hone", "-o", "-", "--budget", fmt::format("{}h", number)},
          Words{"grad", "graph.hone", "-o", "-", "--memory", number},
          Words{"alloc", "none.csv", "--capacity", number},
          Words{"inspect", fmt::format("zoo:mlp,seed={}", number)},
          Words{"log", "show", number, "--log", "none.db"}})
      all.push_back(words);
  run_each(folder(), all, 5, [](const Words& words, const Ended& ended) {
    EXPECT_FALSE(ended.is_fault()) << "hone " << join(words, " ") << ": exit code " << ended.code
                                   << ", signal " << ended.signal << "\n"
                                   << ended.said;
  });
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
