#include <map>
#include <set>

#include "base/text.h"
#include "tests/base/share_testing.h"
#include "tests/cli/command_testing.h"
#include "zoo/spec.h"

// The rules of all commands are tried on every row of the table of commands, with each option
// that it concerns. A new command needs a line here.

namespace hone::cli::HONE_FILE {
namespace {

namespace fs = std::filesystem;

// A line of each command that does little. Files are those of CommandLines::SetUpTestSuite.
const std::map<std::string_view, Words>& lines() {
  static const Words kTiny = {"zoo:mlp,size=tiny"};
  static const std::map<std::string_view, Words> all = {
      {"", {}},
      {"demo", {"zoo:mlp,size=tiny"}},
      {"zoo list", {}},
      {"zoo export", {"mlp", "--size", "tiny", "-o", "m.hone"}},
      {"zoo digits", {"-o", "drawn", "--samples", "10"}},
      {"doctor", {}},
      {"target show", {"host"}},
      {"target list", {}},
      {"target prices", {"host"}},
      {"target probe", {"--seconds", "0.01"}},
      {"cache ls", {"--cache", "kept"}},
      {"cache verify", {"--cache", "kept"}},
      {"cache gc", {"--cache", "kept"}},
      {"log ls", {"--log", "some.db"}},
      {"log show", {"1", "--log", "some.db"}},
      {"log export", {"--log", "some.db"}},
      {"log import", {"lines.jsonl", "--log", "into.db"}},
      {"log merge", {"some.db", "--log", "into.db"}},
      {"log verify", {"--log", "some.db"}},
      {"log gc", {"--log", "some.db", "--dry-run"}},
      {"inspect", {"small.hone"}},
      {"run", {"small.hone", "--cache", "none"}},
      {"worker", {"--listen", "0", "--secret", "some.secret"}},
      {"compile", {"small.hone", "--cache", "none", "--emit", "plan"}},
      {"space", {"small.hone"}},
      {"bench", {"small.hone", "--cache", "none"}},
      {"tune", {"small.hone", "--budget", "1s", "--log", "into.db"}},
      {"calibrate", {"--budget", "1s", "-o", "prices", "--log", "into.db"}},
      {"dataset build", {"small.hone", "-o", "made", "--kernels", "1", "--budget", "1s"}},
      {"dataset inspect", {"set"}},
      {"dataset merge", {"set", "-o", "merged"}},
      {"dataset export", {"set", "-o", "exported"}},
      {"dataset split", {"set"}},
      {"compare", {"small.hone", "default", "default", "--seconds", "0.1"}},
      {"explain", {"small.hone"}},
      {"report", {"small.hone", "--alone", "--seconds", "0.1"}},
      {"check", {"small.hone", "--cache", "none"}},
      {"convert", {"small.hone", "-o", "-"}},
      {"quantize", {"small.hone", "-o", "-"}},
      {"shrink", {"small.hone", "-o", "-"}},
      {"grad", {"small.hone", "-o", "-"}},
      {"train", {"small.train", "--cache", "none"}},
      {"train cost", {"set", "-o", "cost.model", "--epochs", "1"}},
      {"train placement", {"-o", "place.policy", "--steps", "1"}},
      {"eval placement", {"--graphs", "1", "--nodes", "16", "--trials", "20"}},
      {"eval price", {"--plans", "small.hone", "--seconds", "1", "--tuned", "0"}},
      {"train plans", {"set", "-o", "some.plans", "--epochs", "1"}},
      {"eval plans", {"set", "--epochs", "1"}},
      {"train layout", {"set", "-o", "layout.model", "--epochs", "1"}},
      {"eval", {"set", "--epochs", "1"}},
      {"conformance", {"set"}},
      {"fuzz", {"--count", "1"}},
      {"reduce", {"small.hone"}},
      {"opt", {"small.hone", "--pass", "fold"}},
      {"optimize", {"small.hone", "-o", "-", "--budget", "1s"}},
      {"system show", {"ring:2"}},
      {"system presets", {}},
      {"system calibrate", {"--transport", "threads", "--seconds", "0.1"}},
      {"rules list", {"some.rules"}},
      {"rules show", {"some.rules", "swap"}},
      {"rules explain", {"some.rules", "swap"}},
      {"rules generate", {"dot", "--ops", "1"}},
      {"rules verify", {"some.rules"}},
      {"rules check", {"some.rules", "some.proofs"}},
      {"rules import", {"lines.txt"}},
      {"rules export", {"some.rules"}},
      {"rules needed", {"some.rules"}},
      {"alloc", {"buffers.csv"}},
      {"assign", {"problem.json"}},
      {"generate", {"model.gguf", "-p", "the", "-n", "2"}},
      {"chat", {"model.gguf", "-n", "2"}},
      {"tokens", {"model.gguf", "-p", "the"}},
      {"evaluate", {"model.gguf", "--text", "small.hone", "--window", "8"}},
      {"embed", {"encoder.gguf", "-p", "the"}},
      {"place", {"tasks.txt", "--seconds", "0.1"}},
      {"shard", {"small.hone", "--mesh", "x=2", "--shard", "x=[x, -]"}},
      {"ops", {"add"}},
      {"completions", {"bash"}},
      {"man", {}},
      {"version", {}},
      {"help", {"run"}},
  };
  return all;
}

class CommandLines : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir(TempDir::create(testing::TempDir()).value());
    const auto put = [&](const char* name, std::string_view text) {
      ASSERT_TRUE(write_file_atomic(folder() / name, text).ok());
    };
    put("small.hone",
        "graph @small(%x: f32[4, 8]) -> f32[4, 8] {\n  %y = exp %x\n  return %y\n}\n");
    const fs::path files = fs::path(HONE_TEST_DIR) / "fuzz/corpus/gguf";
    fs::copy_file(files / "tiny.gguf", folder() / "model.gguf");
    fs::copy_file(files / "encoder.gguf", folder() / "encoder.gguf");
    put("some.rules", "rule swap: add(?a, ?b) => add(?b, ?a)\n");
    put("some.proofs", "");
    put("some.secret", "a secret of sixteen bytes and more");
    put("lines.txt", "(ewadd ?a ?b) => (ewadd ?b ?a)\n");
    put("buffers.csv", "id,lower,upper,size\n1,0,2,16\n2,1,3,16\n");
    put("tasks.txt", "3\n0,\n0,\n1,\n1000,8\n1000,8\n");
    put("problem.json",
        R"({"problem": {"nodes": {"intervals": [[0,1]], "costs": [[2,1]], "usages": [[0,0]]},
            "edges": {}}})");
    put("small.train", "data none.npz\ninput at\ntarget side\nloss mse\nlayer linear 2\n");
    put("lines.jsonl",
        "{\"text\":{\"kind\":\"kernel\",\"hash\":\"0x00000000000000aa\",\"text\":\"x\"}}\n");
    fs::create_directory(folder() / "kept");
    fs::permissions(folder() / "kept", fs::perms::owner_all);
    for (const Words& words :
         {Words{"log", "import", "lines.jsonl", "--log", "some.db"},
          Words{"dataset", "build", "small.hone", "-o", "set", "--kernels", "1", "--budget", "2s"}})
      expect_each({words}, 60, [](const Words& line, const Ended& ended) {
        EXPECT_EQ(ended.code, 0) << join(line, " ") << ": " << ended.said;
      });
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static const fs::path& folder() { return folder_->path(); }

  template <class Call>
  static void expect_each(const std::vector<Words>& all, double seconds, const Call& call) {
    run_each(folder(), all, seconds, call);
  }

  // The command's line with more words, without what the line says of the same option.
  static Words line_with(const Command& command, const Option& option, const std::string& value) {
    Words words = name_of(command);
    const Words& given = lines().at(command.name);
    for (size_t i = 0; i < given.size(); ++i) {
      const bool is_same = given[i] == fmt::format("--{}", option.name) ||
                           (option.letter != 0 && given[i] == fmt::format("-{}", option.letter));
      if (is_same)
        ++i;
      else
        words.push_back(given[i]);
    }
    words.push_back(fmt::format("--{}={}", option.name, value));
    return words;
  }
  static Words name_of(const Command& command) {
    Words words;
    if (!command.name.empty())
      for (std::string_view word : split(command.name, ' ')) words.emplace_back(word);
    return words;
  }

 private:
  static TempDir* folder_;
};
TempDir* CommandLines::folder_ = nullptr;

TEST_F(CommandLines, OfEachCommandIsHere) {
  for (const Command& command : commands())
    EXPECT_TRUE(lines().contains(command.name)) << "no line of 'hone " << command.name << "'";
  EXPECT_EQ(lines().size(), commands().size());
}

// ---- Names --------------------------------------------------------------------------------------

// Paths that are made if they do not exist, and arguments that may be any word.
bool may_name_nothing(const Command& command, std::string_view option) {
  static const std::set<std::string_view> kWriters = {"tune", "calibrate", "log import",
                                                      "log merge"};
  if (option == "cache") return !command.name.starts_with("cache ");
  if (option == "log") return kWriters.contains(command.name);
  return false;
}

std::vector<std::string> names_of_nothing(Take take) {
  switch (take) {
    case Take::file: return {"nosuch", "nosuch/nosuch.npz"};
    case Take::model: return {"nosuch.hone", "nosuch.onnx", "zoo:nosuch", "zoo:mlp,nosuch=1"};
    case Take::zoo_name:
    case Take::op:
    case Take::passes:
    case Take::command: return {"nosuch"};
    default: return {};
  }
}

TEST_F(CommandLines, FailForNamesOfNothing) {
  std::vector<Words> all;
  for (const Command& command : commands()) {
    const Words& given = lines().at(command.name);
    for (size_t i = 0; i < std::min(command.positionals.size(), given.size()); ++i)
      for (const std::string& name : names_of_nothing(command.positionals[i].take)) {
        Words words = name_of(command);
        words.insert(words.end(), given.begin(), given.end());
        words[words.size() - given.size() + i] = name;
        all.push_back(std::move(words));
      }
    for (const Option& option : command.options)
      for (const std::string& name : names_of_nothing(option.take))
        if (!may_name_nothing(command, option.name))
          all.push_back(line_with(command, option, name));
  }
  EXPECT_GT(all.size(), 150u);
  expect_each(all, 60, [](const Words& words, const Ended& ended) {
    const bool is_told = ended.code == static_cast<int>(ErrorCode::usage) ||
                         ended.code == static_cast<int>(ErrorCode::bad_input);
    EXPECT_TRUE(is_told) << "hone " << join(words, " ") << ": exit code " << ended.code
                         << ", signal " << ended.signal << "\n"
                         << ended.said;
    EXPECT_THAT(ended.said, testing::HasSubstr("hone: error: "));
  });
}

// ---- Outputs ------------------------------------------------------------------------------------

// Before anything else is said or done, by the name that was given. Nobody makes a file in /proc.
TEST_F(CommandLines, FailBeforeTheWorkIfTheirOutputCannotBeWritten) {
  std::vector<Words> all;
  for (const Command& command : commands())
    for (const Option& option : command.options)
      if (option.take == Take::output || option.take == Take::output_path)
        for (const char* name : {"/proc/out.npz", "small.hone/out.npz"})
          all.push_back(line_with(command, option, name));
  EXPECT_GT(all.size(), 60u);
  expect_each(all, 60, [](const Words& words, const Ended& ended) {
    const std::string line = join(words, " ");
    const bool is_told = ended.code == static_cast<int>(ErrorCode::usage) ||
                         ended.code == static_cast<int>(ErrorCode::bad_input);
    EXPECT_TRUE(is_told) << "hone " << line << ": exit code " << ended.code << "\n" << ended.said;
    EXPECT_TRUE(ended.said.starts_with("hone: error: ")) << line << ": " << ended.said;
    const std::string name = words.back().substr(words.back().find('=') + 1);
    EXPECT_THAT(ended.said, testing::HasSubstr(name.substr(0, name.find("/out")))) << line;
    EXPECT_THAT(ended.said, testing::Not(testing::HasSubstr(".tmp-"))) << line;
  });
}

// Whatever a command writes has a row that says so, and is checked like the others.
TEST(Commands, SayWhatTheyWrite) {
  for (const Command& command : commands())
    for (const Option& option : command.options) {
      if (option.name != "output" && option.name != "json") continue;
      if (option.take == Take::nothing) continue;  // a form of the standard output
      EXPECT_TRUE(option.take == Take::output || option.take == Take::output_path)
          << command.name << " --" << option.name;
    }
}

// ---- Numbers ------------------------------------------------------------------------------------

TEST_F(CommandLines, TakeNumbersAtTheirLimits) {
  std::vector<Words> all;
  for (const Command& command : commands())
    for (const Option& option : command.options) {
      std::vector<std::string> numbers;
      if (option.take == Take::integer)
        numbers = {fmt::format("{}", option.low), fmt::format("{}", option.high)};
      if (option.take == Take::real) numbers = {"0", "5e-324", "1e-30", "1e30", "1.7e308"};
      for (const std::string& number : numbers) all.push_back(line_with(command, option, number));
    }
  for (const ZooOption& option : kZooOptions)
    if (option.kind == ZooOption::Kind::integer)
      for (int64_t number : {option.low, option.high})
        for (const char* model : {"mlp", "lstm", "bert_tiny", "resnet18"})
          all.push_back({"inspect", fmt::format("zoo:{},{}={}", model, option.name, number)});
  EXPECT_GT(all.size(), 100u);
  std::erase_if(all, [number = 0](const Words&) mutable { return !tested::in_share(number++, 8); });
  expect_each(all, 2, [](const Words& words, const Ended& ended) {
    EXPECT_FALSE(ended.is_fault()) << "hone " << join(words, " ") << ": exit code " << ended.code
                                   << ", signal " << ended.signal << "\n"
                                   << ended.said;
  });
}

// A value outside of its limits is a mistake of the command line.
TEST_F(CommandLines, RefuseNumbersBehindTheirLimits) {
  for (const Command& command : commands())
    for (const Option& option : command.options) {
      std::vector<std::string> numbers;
      if (option.take == Take::integer) {
        numbers = {"9223372036854775808",    "-9223372036854775809", "1e3", "0x10", "",
                   "99999999999999999999999"};
        if (option.low > INT64_MIN) numbers.push_back(fmt::format("{}", option.low - 1));
        if (option.high < INT64_MAX) numbers.push_back(fmt::format("{}", option.high + 1));
      }
      if (option.take == Take::real) numbers = {"-1", "nan", "inf", "-inf", "1e309", "", "1e"};
      for (const std::string& number : numbers) {
        const Result<Arguments> parsed = parse_arguments(line_with(command, option, number));
        ASSERT_FALSE(parsed.ok()) << command.name << " --" << option.name << "=" << number;
        EXPECT_EQ(parsed.error().code(), ErrorCode::usage);
      }
    }
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
