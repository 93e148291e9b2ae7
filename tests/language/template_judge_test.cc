#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/rng.h"
#include "base/subprocess.h"
#include "language/chat/chat_template.h"
#include "tests/base/share_testing.h"

// Random templates write what they write with the library jinja2, where Python has it.

namespace hone::HONE_FILE {
namespace {

constexpr std::string_view kVariables =
    R"({"messages": [{"role": "system", "content": " Be brief. "},
  {"role": "user", "content": "Why?\n世so \"so\""}, {"role": "assistant", "content": "a-b-a"}],
  "n": 3, "f": 2.5, "t": "some Text", "flag": true, "nothing": null, "list": [3, 1, 2],
  "d": {"a": 1, "b": [1, "x"], "c": {"x": null}}})";

// Templates by a small grammar. Most of what they say means something.
class TemplateMaker {
 public:
  explicit TemplateMaker(uint64_t seed) : rng_(seed) {}

  std::string body(int depth) {
    std::string text;
    for (uint64_t n = 1 + rng_.below(3); n > 0; --n) text += statement(depth);
    return text;
  }

 private:
  template <size_t size>
  std::string one_of(const char* const (&all)[size]) {
    return all[rng_.below(size)];
  }
  std::string begin() { return one_of({"{% ", "{%- ", "\n  {% ", "  {%- "}); }
  std::string end() { return one_of({" %}", " -%}", " %}\n", " -%}\n  "}); }
  std::string block(const std::string& inner) { return begin() + inner + end(); }

  std::string statement(int depth) {
    if (depth == 0 || rng_.chance(0.4))
      return one_of({"{{ ", "{{- "}) + any(3) + one_of({" }}", " -}}", " }}\n"});
    switch (rng_.below(6)) {
      case 0: return block("if " + any(2)) + body(depth - 1) + block("endif");
      case 1:
        return block("if " + any(2)) + body(depth - 1) + block("else") + body(depth - 1) +
               block("endif");
      case 2:
        return block("for i in " + (rng_.chance(0.2) ? "range(3)" : list(2))) + body(depth - 1) +
               "{{ loop.index0 }}" + block("endfor");
      case 3:
        return block("for m in messages" + std::string(rng_.chance(0.3) ? "[1:]" : "")) +
               "{{ m.role ~ m['content'] }}" + body(depth - 1) + block("endfor");
      case 4: return block("set x = " + any(2)) + "{{ x }}";
      default: return one_of({"words\n", " and ", "{# no #}\n", "  \n", "<|x|>"});
    }
  }

  std::string any(int depth) {
    switch (rng_.below(4)) {
      case 0: return number(depth);
      case 1: return text(depth);
      case 2: return truth(depth);
      default: return depth > 0 ? list(depth) : "d";
    }
  }
  std::string number(int depth) {
    if (depth == 0) return one_of({"n", "f", "0", "7", "2.0", "flag"});
    switch (rng_.below(6)) {
      case 0: return text(depth - 1) + " | length";
      case 1: return list(depth - 1) + " | count";
      case 2:
        return "(" + number(depth - 1) + one_of({" + ", " - ", " * ", " // ", " % "}) +
               number(depth - 1) + ")";
      case 3: return "-" + number(0);
      case 4: return "list[" + one_of({"0", "-1", "1", "5"}) + "]";
      default: return "(" + text(0) + " | int)";
    }
  }
  std::string text(int depth) {
    if (depth == 0) return one_of({"t", "'a'", "\"q'\"", "'12'", "messages[1].content", "'\\n'"});
    const std::string inner = "(" + text(depth - 1) + ")";
    switch (rng_.below(8)) {
      case 0: return inner + " + " + text(depth - 1);
      case 1: return inner + " ~ " + any(depth - 1);
      case 2:
        return inner + one_of({" | trim", " | upper", " | lower", " | capitalize", " | tojson",
                               " | string", " | first", " | last", " | reverse"});
      case 3:
        return inner +
               one_of({".strip()", ".rstrip('a')", ".upper()", ".title()", ".replace('a', 'bb')",
                       ".split('-')[0]", ".split()[-1]", ".lstrip()", ".removeprefix('a')"});
      case 4: return inner + one_of({"[1:]", "[:2]", "[::-1]", "[-1]", "[:-1]", "[1:5:2]"});
      case 5: return list(depth - 1) + " | join(" + text(0) + ")";
      case 6: return any(depth - 1) + " | tojson" + one_of({"", "(indent=2)", "(sort_keys=true)"});
      default: return "(" + text(depth - 1) + " if " + truth(depth - 1) + " else 'no')";
    }
  }
  std::string truth(int depth) {
    if (depth == 0) return one_of({"flag", "false", "nothing", "missing", "t"});
    switch (rng_.below(6)) {
      case 0: return "not " + truth(depth - 1);
      case 1: return "(" + truth(depth - 1) + one_of({" and ", " or "}) + truth(depth - 1) + ")";
      case 2:
        return "(" + number(depth - 1) + one_of({" < ", " == ", " >= ", " != "}) +
               number(depth - 1) + ")";
      case 3:
        return "(" + text(depth - 1) + one_of({" in ", " not in ", " == ", " < "}) +
               text(depth - 1) + ")";
      case 4:
        return "(" + any(depth - 1) +
               one_of({") is string", ") is none", ") is defined", ") is not mapping",
                       ") is sequence", ") is number", ") is iterable", ") is true",
                       ") is boolean"});
      default: return "(" + text(depth - 1) + ").startswith(" + text(0) + ")";
    }
  }
  std::string list(int depth) {
    if (depth == 0) return one_of({"list", "[]", "d", "messages", "'ab'"});
    switch (rng_.below(7)) {
      case 0: return "[" + any(depth - 1) + ", " + any(depth - 1) + "]";
      case 1: return "list" + std::string(one_of({"[1:]", "[::-1]", "[:-1]", " + [4]"}));
      case 2: return "(d.items() | list)";
      case 3: return "(" + text(depth - 1) + ").split('a')";
      case 4: return "(list | sort | map('string') | list)";
      case 5:
        return "(messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | "
               "list)";
      default: return "d" + std::string(one_of({".b", "['b']", ".get('b')", ".keys() | list"}));
    }
  }

  Rng rng_;
};

void judge(uint64_t first, uint64_t count) {
  const nlohmann::ordered_json variables = nlohmann::ordered_json::parse(kVariables);
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string source = TemplateMaker(seed).body(3);
    nlohmann::ordered_json one = {
        {"template", source}, {"variables", variables}, {"text", nullptr}};
    const Result<ChatTemplate> made = ChatTemplate::parse(source);
    Result<MarkedText> text = made.ok() ? made->write({}, {.json = std::string(kVariables)})
                                        : Result<MarkedText>(made.error());
    if (text.ok())
      one["text"] = std::string(text->bytes());
    else
      one["error"] = text.error().to_string();
    cases.push_back(std::move(one));
  }
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const std::string path = (folder.path() / "cases.json").native();
  ASSERT_TRUE(write_file_atomic(path, cases.dump()).ok());
  const ProcessResult judged =
      run_process("/usr/bin/env", {"python3", HONE_TEST_DIR "/language/judge_templates.py", path},
                  {.wall_seconds = 300})
          .value();
  if (judged.exit_code == 77 || judged.exit_code == 127) GTEST_SKIP() << "Python has no jinja2";
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
}

TEST(ChatTemplates, WriteWhatJinja2Writes) { judge(1, tested::share_of(2000, 16)); }
TEST(ChatTemplates, DISABLED_SweepAgainstJinja2) { judge(1'000'000, 50'000); }

}  // namespace
}  // namespace hone::HONE_FILE
