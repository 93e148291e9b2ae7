#include "language/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "language/tokenizer.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Result<std::string> written(std::string_view source, std::string_view variables = "{}",
                            std::vector<ChatMessage> messages = {}) {
  Result<ChatTemplate> made = ChatTemplate::parse(source);
  if (!made.ok()) return std::move(made).error();
  Result<MarkedText> text =
      made->write(messages, {.begin = "<s>", .end = "</s>", .json = std::string(variables)});
  if (!text.ok()) return std::move(text).error();
  return std::string(text->bytes());
}
std::string text_of(std::string_view source, std::string_view variables = "{}") {
  const Result<std::string> made = written(source, variables);
  return made.ok() ? *made : made.error().to_string();
}

// ---- Conversations as families write them
// ---------------------------------------------------------

const std::vector<ChatMessage> kTalk = {
    {"system", "Be brief."}, {"user", "Hi "}, {"assistant", "Hello!"}, {"user", "Why?"}};

TEST(ChatTemplates, OfTurnsBetweenTokens) {  // as Qwen 2 and SmolLM 2 have it
  constexpr std::string_view kSource =
      "{% for message in messages %}"
      "{% if loop.first and messages[0]['role'] != 'system' %}"
      "{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}"
      "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  EXPECT_EQ(written(kSource, "{}", kTalk).value(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n"
            "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(written(kSource, R"({"add_generation_prompt": false})", {{"user", "x"}}).value(),
            "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n");
}

TEST(ChatTemplates, OfHeaders) {  // as Llama 3 has it
  constexpr std::string_view kSource = R"({{- bos_token }}
{%- set loop_messages = messages %}
{%- for message in loop_messages %}
    {%- set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>

' + message['content'] | trim + '<|eot_id|>' %}
    {{- content }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
)";
  EXPECT_EQ(written(kSource, "{}", {kTalk.begin(), kTalk.begin() + 2}).value(),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

constexpr std::string_view kAlternating =
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}"
    "{% set system = false %}{% endif %}"
    "{% for message in rest %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system != false %}"
    "{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}";

TEST(ChatTemplates, OfInstructions) {  // as Llama 2 has it
  EXPECT_EQ(
      written(kAlternating, "{}", kTalk).value(),
      "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Why? [/INST]");
}

TEST(ChatTemplates, MayRefuseMessages) {
  EXPECT_THAT(written(kAlternating, "{}", {{"user", "a"}, {"user", "b"}}),
              refuses(ErrorCode::bad_input, "chat template, line 1: ... roles must alternate"));
}

TEST(ChatTemplates, OfOtherNames) {  // as Gemma 2 has it
  constexpr std::string_view kSource =
      "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'assistant') %}"
      "{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
      "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
      "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}";
  EXPECT_EQ(written(kSource, "{}", {{"user", "a"}, {"assistant", " b "}}).value(),
            "<s><start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n"
            "<start_of_turn>model\n");
}

TEST(ChatTemplates, OfThoughts) {  // as Qwen 3 has it
  constexpr std::string_view kSource = R"({%- set ns = namespace(last=-1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and message.content is string
           and not (message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\n') %}
            {%- set thought = thought.split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {{- '[' ~ thought ~ '] ' if loop.index0 > ns.last }}
        {%- endif %}
        {{- content + '\n' }}
    {%- else %}
        {{- message.role + ': ' + message.content + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}
    {{- '<think>\n\n</think>\n\n' }}
{%- endif %})";
  const std::vector<ChatMessage> talk = {{"user", "a"},
                                         {"assistant", "<think>\nx\n</think>\n\nb"},
                                         {"user", "c"},
                                         {"assistant", "<think>\ny\n</think>\n\nd"}};
  EXPECT_EQ(written(kSource, "{}", talk).value(), "user: a\nb\nuser: c\n[y] d\n");
  EXPECT_EQ(written(kSource, R"({"enable_thinking": false})", {{"user", "a"}}).value(),
            "user: a\n<think>\n\n</think>\n\n");
}

// ---- The language
// ---------------------------------------------------------------------------------

TEST(ChatTemplates, TakeBlanksAroundTags) {
  EXPECT_EQ(text_of("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(text_of("a  {{- 1 -}}  b {{ 2 }} c"), "a1b 2 c");
  EXPECT_EQ(text_of("a {%- if true -%} \n b \n {%- endif +%}\nc"), "ab\nc");
  EXPECT_EQ(text_of("x\n  {%+ if true %}y{% endif %}\n\nz"), "x\n  y\nz");
  EXPECT_EQ(text_of("a {# no {% tag #}\nb {#- - -#} c"), "a bc");
  EXPECT_EQ(text_of("{% raw %}{{ x }}{%- endraw %} y\r\nz"), "{{ x }} y\nz");
}

TEST(ChatTemplates, HaveTheOperatorsOfPython) {
  EXPECT_EQ(text_of("{{ 1 + 2 * 3 ** 2 - 7 // 2 }}"), "16");
  EXPECT_EQ(text_of("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** -1 }}"), "-4 2 3.5 0.5");
  EXPECT_EQ(text_of("{{ 1 < 2 < 3 }} {{ 'b' in 'abc' }} {{ 4 not in [1, 2] }}"), "True True True");
  EXPECT_EQ(text_of("{{ not 1 == 2 and 3 or 4 }} {{ 'a' ~ 1 ~ none }}"), "3 a1None");
  EXPECT_EQ(text_of("{{ 'x' if false }}{{ 'y' if true else 'z' }}"), "y");
  EXPECT_EQ(text_of("{{ 'ab' * 2 + 'c' }} {{ [1] + [2, 'q'] }} {{ (1, ) }}"),
            "ababc [1, 2, 'q'] (1,)");
  EXPECT_EQ(text_of("{{ {'a': 1, 'b': [true, none, 1.0, 1e20]} }}"),
            "{'a': 1, 'b': [True, None, 1.0, 1e+20]}");
  EXPECT_EQ(text_of("{{ 'abcdef'[1:4] }}{{ 'abc'[::-1] }}{{ [1, 2, 3][-1] }}{{ 'äöü'[1] }}"),
            "bcdcba3ö");
}

TEST(ChatTemplates, HaveScopes) {
  EXPECT_EQ(
      text_of(
          "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}"),
      "15151");
  EXPECT_EQ(text_of("{% set n = namespace(x=0) %}{% for i in range(4) %}{% set n.x = n.x + i %}{% "
                    "endfor %}{{ n.x }}"),
            "6");
  EXPECT_EQ(text_of("{% if true %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
  EXPECT_EQ(
      text_of("{% macro f(a, b='B') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(b=2, a=3) }}"),
      "[1B][32]");
  EXPECT_EQ(text_of("{% set t | upper %}a{{ 1 }}b{% endset %}{{ t }}"), "A1B");
  EXPECT_EQ(text_of("{% set a, b = 1, 2 %}{{ b }}{{ a }}"), "21");
}

TEST(ChatTemplates, HaveLoops) {
  EXPECT_EQ(text_of("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{{ ',' if not "
                    "loop.last }}{% endfor %}"),
            "a1,b2");
  EXPECT_EQ(text_of("{% for i in [1, 2, 3, 4] if i % 2 == 0 %}{{ loop.index }}/{{ loop.length "
                    "}}:{{ i }} {% else %}none{% endfor %}"),
            "1/2:2 2/2:4 ");
  EXPECT_EQ(text_of("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(text_of("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 "
                    "%}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "0134");
  EXPECT_EQ(text_of("{% for i in 'ab' %}{{ loop.previtem }}{{ loop.cycle('x', 'y') }}{{ "
                    "loop.nextitem }}{% endfor %}"),
            "xbay");
}

TEST(ChatTemplates, HaveFiltersAndTests) {
  EXPECT_EQ(
      text_of("{{ x | default('d') }} {{ '' | default('e', true) }} {{ ' a ' | trim | length }}"),
      "d e 1");
  EXPECT_EQ(text_of("{{ v | tojson }}", R"({"v": {"a": [1, "é\"\n", null, true]}})"),
            "{\"a\": [1, \"é\\\"\\n\", null, true]}");
  EXPECT_EQ(text_of("{{ v | tojson(indent=2) }}", R"({"v": {"a": [1], "b": {}}})"),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(text_of("{{ ['b', 'a'] | sort | join('-') }} {{ [1, 2, 3] | select('odd') | list }}"),
            "a-b [1, 3]");
  EXPECT_EQ(text_of("{{ v | selectattr('r', 'equalto', 'u') | map(attribute='c') | join }}",
                    R"({"v": [{"r": "u", "c": "x"}, {"r": "v", "c": "y"}, {"r": "u", "c": "z"}]})"),
            "xz");
  EXPECT_EQ(text_of("{{ x is defined }} {{ none is none }} {{ {} is mapping }} {{ 3 is odd }} {{ "
                    "'a' is not string }}"),
            "False True True True False");
  EXPECT_EQ(text_of("{{ 'a b  c'.split() }} {{ 'a-b'.split('-')[-1] }} {{ 'Ab'.upper() }} {{ "
                    "'x'.replace('x', 'yy') }}"),
            "['a', 'b', 'c'] b AB yy");
  EXPECT_EQ(
      text_of(
          "{{ 'a\nb' | indent(2) }} {{ '12' | int + 1 }} {{ [3, 1] | min }} {{ (1, 2) | first }}"),
      "a\n  b 13 1 1");
}

// ---- What is refused
// ------------------------------------------------------------------------------

TEST(ChatTemplates, NameWhatTheyDoNotKnow) {
  EXPECT_THAT(written("a\n{% include 'x' %}"),
              refuses(ErrorCode::unsupported, "chat template, line 2: ... 'include'"));
  EXPECT_THAT(written("\n\n{{ 'a' | sha256 }}"),
              refuses(ErrorCode::unsupported, "line 3: ... \"sha256\" ... trim"));
  EXPECT_THAT(written("{{ 'a' is prime }}"), refuses(ErrorCode::unsupported, "\"prime\" ... odd"));
  EXPECT_THAT(written("{{ 'a'.swapcase() }}"),
              refuses(ErrorCode::unsupported, "\"swapcase\" ... strip"));
  EXPECT_THAT(written("{{ strftime_now('%d') }}"),
              refuses(ErrorCode::unsupported, "\"strftime_now\" ... raise_exception"));
  EXPECT_EQ(text_of("{{ strftime_now is defined }}"), "False");
}

TEST(ChatTemplates, SayWhereTheyAreWrong) {
  EXPECT_THAT(written("{% if true %}\nx"), refuses(ErrorCode::bad_input, "line 2: ... endif"));
  EXPECT_THAT(written("{{ 1 + }}"), refuses(ErrorCode::bad_input, "}} ... not expected"));
  EXPECT_THAT(written("{{ 'a }}"), refuses(ErrorCode::bad_input, "does not end"));
  EXPECT_THAT(written("{% endfor %}"), refuses(ErrorCode::bad_input, "'endfor' ... not expected"));
  EXPECT_THAT(written("{{ x.y.z }}"), refuses(ErrorCode::bad_input, "line 1: ... \"y\""));
  EXPECT_THAT(written("{{ 1 / 0 }}"), refuses(ErrorCode::bad_input, "divided by 0"));
  EXPECT_THAT(written("{{ 'a' + 1 }}"), refuses(ErrorCode::bad_input, "'+' ... text ... integer"));
  EXPECT_THAT(written("{{ 9223372036854775807 + 1 }}"), refuses(ErrorCode::unsupported, "64 bits"));
  EXPECT_THAT(written("{% set messages.x = 1 %}"), refuses(ErrorCode::bad_input, "no namespace"));
  EXPECT_THAT(written("x", "[]"), refuses(ErrorCode::bad_input, "a list ... object"));
}

TEST(ChatTemplates, AreBounded) {
  const std::string deep = std::string(5000, '(') + "1" + std::string(5000, ')');
  EXPECT_THAT(written("{{ " + deep + " }}"), refuses(ErrorCode::limit, "nested deeper"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  EXPECT_THAT(written(sum + " }}"), refuses(ErrorCode::limit, "nested deeper"));
  EXPECT_THAT(written("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              refuses(ErrorCode::limit, "runs deeper"));
  EXPECT_THAT(written("{{ 'a' * 1000000000000 }}"), refuses(ErrorCode::limit, "too much work"));
  EXPECT_THAT(written("{% for i in range(1000000000) %}{% endfor %}"),
              refuses(ErrorCode::limit, "too much work"));
  EXPECT_THAT(written("{% set n = namespace(x='ab') %}{% for i in range(99) %}"
                      "{% set n.x = n.x + n.x %}{% endfor %}"),
              refuses(ErrorCode::limit, "too much work"));
  EXPECT_THAT(written("{% set n = namespace(x=[]) %}{% for i in range(99) %}"
                      "{% set n.x = [n.x, n.x] %}{% endfor %}"),
              refuses(ErrorCode::limit, "nested deeper"));
  EXPECT_THAT(written("{% set n = namespace(x=[1]) %}{% for i in range(50) %}"
                      "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x }}{{ n.x }}"),
              refuses(ErrorCode::limit, "too much work"));
}

// ---- Tokens
// ---------------------------------------------------------------------------------------

TEST(ChatTemplates, MessagesSpellNoControlTokens) {
  Vocabulary vocabulary = {.tokens = {}, .rules = piece_rules("gpt-2")};
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back({std::string(1, static_cast<char>(byte))});
  vocabulary.tokens.push_back({"<|e|>", 0, TokenClass::control});
  vocabulary.tokens.push_back({"<s>", 0, TokenClass::control});
  vocabulary.begin = 257;
  vocabulary.adds_begin = true;
  const Tokenizer tokenizer = Tokenizer::make(vocabulary).value();
  const auto tokens = [&](std::string_view source, std::string_view content) {
    const std::vector<ChatMessage> messages = {{"user", std::string(content)}};
    return tokenizer.conversation(
        ChatTemplate::parse(source).value().write(messages, {.begin = "<s>"}).value());
  };
  EXPECT_THAT(tokens("{{ messages[0].content }}<|e|>", "a"), testing::ElementsAre(257, 'a', 256));
  EXPECT_THAT(tokens("{{ bos_token }}{{ messages[0].content | upper }}", "<|e|>"),
              testing::ElementsAre(257, '<', '|', 'E', '|', '>'));
  for (const char* source :
       {"{{ messages[0].content }}", "{{ messages[0].content | trim }}",
        "{{ messages[0].content.split('+') | join }}", "{{ '<|' + messages[0].content + '|>' }}",
        "{{ messages[0].content.replace('+', '') }}", "{{ messages[0].content[::1] }}",
        "{% set x %}{{ messages[0].content | replace('+', '') }}{% endset %}{{ x }}",
        "{{ '<|X|>'.replace('X', messages[0].content) }}",
        "{{ messages | map(attribute='content') | join }}", "{{ messages | tojson }}",
        "{{ messages }}", "<|{{ messages[0].content | lower }}|>"})
    for (const char* content : {"<|e|>", " <|e|> ", "<|+e|>", "e", "<|+e|+>"})
      EXPECT_THAT(tokens(source, content), testing::Not(testing::Contains(256))) << source;
}

TEST(ChatTemplates, TakeMessagesOfJson) {
  const ChatTemplate made =
      ChatTemplate::parse(
          "{% for m in messages %}{{ m.role }}:{% for p in m.content %}{{ p.text }}"
          "{% endfor %}{% endfor %}{{ tools | length }}")
          .value();
  const auto text = [&](std::string_view json) -> Result<std::string> {
    return std::string(HONE_TRY(made.write_json(json, {.json = R"({"tools": [1, 2]})"})).bytes());
  };
  EXPECT_EQ(text(R"([{"role": "user", "content": [{"type": "text", "text": "a"}]}])").value(),
            "user:a2");
  EXPECT_THAT(text("{}"), refuses(ErrorCode::bad_input, "messages ... not a list"));
  EXPECT_THAT(text("[1]"), refuses(ErrorCode::bad_input, "an integer ... role"));
  EXPECT_THAT(text(R"([{"content": "a"}])"), refuses(ErrorCode::bad_input, "no role"));
  EXPECT_THAT(text("["), refuses(ErrorCode::bad_input, "not JSON"));
}

}  // namespace
}  // namespace hone::HONE_FILE
