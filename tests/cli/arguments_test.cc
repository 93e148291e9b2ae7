#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/base/says_testing.h"

namespace hone::cli::HONE_FILE {
namespace {

using tested::says;

Result<Arguments> parse(std::vector<std::string> words) { return parse_arguments(words); }

void expect_error(std::vector<std::string> words, std::string_view text) {
  const Result<Arguments> result = parse(std::move(words));
  ASSERT_FALSE(result.ok()) << text;
  EXPECT_EQ(result.error().code(), ErrorCode::usage);
  EXPECT_THAT(result.error().to_string(), says(std::string(text)));
}

TEST(Arguments, OptionsStandBeforeAndAfterAndInThreeForms) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "m", "--output", "a", "--seed", "3"},
        {"run", "--seed=3", "-o", "a", "m"},
        {"run", "-oa", "--seed", "3", "--", "m"}}) {
    const Result<Arguments> result = parse(words);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->command().name, "run");
    EXPECT_EQ(result->text("MODEL"), "m");
    EXPECT_EQ(result->text("output"), "a");
    EXPECT_EQ(result->integer("seed"), 3);
  }
}

TEST(Arguments, WhatIsNotGivenHasItsFallback) {
  const Result<Arguments> result = parse({"run", "m"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->text("numerics"), "wide");
  EXPECT_EQ(result->integer("seed"), 0);
  EXPECT_FALSE(result->given("seed"));
  EXPECT_TRUE(result->list("input").empty());
}

TEST(Arguments, RepeatedOptionsKeepTheirOrder) {
  const Result<Arguments> result = parse({"run", "m", "--input", "a=1", "--input=b=2"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->list("input"), (std::vector<std::string>{"a=1", "b=2"}));
}

TEST(Arguments, OptionalOnesLeaveWordsToThoseThatAreNeeded) {
  const Result<Arguments> one = parse({"rules", "show", "a"});
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  EXPECT_FALSE(one->given("FILE"));
  EXPECT_EQ(one->text("NAME"), "a");
  const Result<Arguments> two = parse({"rules", "show", "a", "b"});
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  EXPECT_EQ(two->list("FILE"), std::vector<std::string>{"a"});
  EXPECT_EQ(two->text("NAME"), "b");
  expect_error({"rules", "show"}, "needs NAME");
  expect_error({"rules", "show", "a", "b", "c"}, "argument 'c'");
  EXPECT_EQ(parse({"rules", "list", "a", "b"})->list("FILE"), (std::vector<std::string>{"a", "b"}));
}

TEST(Arguments, NothingMeansTheDemo) { EXPECT_EQ(parse({})->command().name, ""); }

TEST(Arguments, CommonOptionsMayStandBeforeTheCommand) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--color", "always", "run", "m", "--seed", "3"},
        {"--color=always", "--progress", "none", "run", "m", "--seed", "3"}}) {
    const Result<Arguments> result = parse(words);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->command().name, "run");
    EXPECT_EQ(result->text("color"), "always");
    EXPECT_EQ(result->integer("seed"), 3);
  }
  EXPECT_EQ(parse({"--color", "never"})->command().name, "");
  EXPECT_EQ(parse({"--color", "never", "zoo", "list"})->command().name, "zoo list");
  expect_error({"--color", "never", "run", "m", "--color", "always"}, "--color is given twice");
  expect_error({"--color"}, "--color needs a value");
  expect_error({"--color", "blue", "run", "m"}, "blue");
  expect_error({"--seed", "3", "run", "m"}, "'hone' has no option --seed");
}

TEST(Arguments, AnEmptyWordIsNoCommand) {
  expect_error({""}, "the command is empty");
  expect_error({"--color", "never", ""}, "the command is empty");
}

TEST(Arguments, HelpWinsOverWhatElseIsWrong) {
  const Result<Arguments> result = parse({"zoo", "export", "--nonsense", "--help"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->command().name, "help");
  EXPECT_EQ(result->list("COMMAND"), (std::vector<std::string>{"zoo", "export"}));
  // After -- it is an argument like others.
  EXPECT_EQ(parse({"run", "--", "--help"})->command().name, "run");
}

TEST(Arguments, SaysWhatIsWrong) {
  expect_error({"runn"}, "did you mean 'run'?");
  expect_error({"zoo", "lst"}, "did you mean 'zoo list'?");
  expect_error({"zoo"}, "'hone zoo' needs one of list, export");
  expect_error({"run"}, "'hone run' needs MODEL");
  expect_error({"run", "a", "b"}, "argument 'b'");
  expect_error({"run", "m", "--sede", "1"}, "did you mean '--seed'?");
  expect_error({"run", "m", "-x"}, "'hone run' has no option -x");
  expect_error({"run", "m", "--seed"}, "--seed needs a value");
  expect_error({"run", "m", "-o", "--seed"}, "-o ... value ... --seed");
  expect_error({"run", "m", "--seed", "x"}, "--seed: 'x' is not an integer");
  expect_error({"run", "m", "--seed", "9223372036854775808"},
               "'9223372036854775808' ... integer ... 0..9223372036854775807");
  expect_error({"run", "m", "--seed", "-1"}, "--seed: -1 is less than 0");
  expect_error({"run", "m", "--seed=1", "--seed=1"}, "--seed is given twice");
  expect_error({"run", "m", "--rtol", "nan"}, "number ... 0");
  expect_error({"run", "m", "--numerics", "wid"}, "did you mean 'wide'?");
  expect_error({"run", ""}, "MODEL: the value is empty");
  expect_error({"zoo", "export", "mlp", "--batch", "70000"}, "70000 is outside 1..65536");
  expect_error({"zoo", "export", "mlp", "--unroll=yes"}, "--unroll takes no value");
  expect_error({"inspect", "m", "--color", "blue"}, "not one of auto, always, never");
}

TEST(Commands, RowsAreComplete) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    EXPECT_NE(command.run, nullptr);
    EXPECT_FALSE(command.summary.empty());
    EXPECT_FALSE(command.summary.ends_with('.'));
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Option& option : options_of(command)) {
      SCOPED_TRACE(option.name);
      EXPECT_TRUE(names.insert(option.name).second);
      EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second);
      EXPECT_FALSE(option.doc.empty());
      EXPECT_FALSE(option.doc.ends_with('.'));
      EXPECT_EQ(option.take == Take::nothing, option.value.empty());
      EXPECT_EQ(option.take == Take::word, !option.words.empty());
      if (!option.fallback.empty()) EXPECT_TRUE(check_value(option, option.fallback).ok());
    }
    // Only the last positional may repeat.
    for (size_t i = 0; i + 1 < command.positionals.size(); ++i)
      EXPECT_FALSE(command.positionals[i].repeats);
  }
}

TEST(Commands, ExamplesParse) {
  for (const Command& command : commands()) {
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const Example& example : command.examples) {
      std::vector<std::string> words;
      std::string word;
      for (char c : fmt::format("{} ", example.line)) {
        if (c != ' ') {
          word += c;
        } else if (word == "|" || word == ">") {
          break;  // what follows is the shell's
        } else {
          if (word.ends_with(')')) word.pop_back();
          if (!word.empty()) words.push_back(std::exchange(word, ""));
          word.clear();
        }
      }
      while (!words.empty() && !words[0].ends_with("hone")) words.erase(words.begin());
      ASSERT_FALSE(words.empty()) << example.line;
      words.erase(words.begin());
      const Result<Arguments> result = parse(words);
      ASSERT_TRUE(result.ok()) << example.line << ": " << result.error().to_string();
      // Options of hone itself are of several commands.
      if (!command.name.empty()) EXPECT_EQ(result->command().name, command.name);
    }
  }
}

}  // namespace
}  // namespace hone::cli::HONE_FILE
