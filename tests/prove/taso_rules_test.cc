#include "prove/taso_rules.h"

#include <gtest/gtest.h>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
std::string message(int field, const std::string& content) {
  return varint((static_cast<uint64_t>(field) << 3) | 2) + varint(content.size()) + content;
}
std::string tensor(int64_t op, int64_t result) { return number(1, op) + number(2, result); }

Result<std::vector<TasoRule>> parse(const std::string& file) {
  return parse_taso_rules(std::as_bytes(std::span(file)), "file.pb");
}

TEST(TasoRules, AreReadAsTheyStandThere) {
  const std::string op = number(1, 18) + message(2, tensor(-1, 0)) + message(2, tensor(-4, 0)) +
                         message(3, number(1, 9) + number(2, 0));
  const std::string output = number(1, 0) + number(2, 1) + number(3, 2) + number(4, 3);
  const auto rules = parse(message(1, message(1, op) + message(2, op) + message(3, output)) +
                           message(7, "later") + message(1, ""));
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  ASSERT_EQ(rules->size(), 2u);
  const TasoRule& rule = (*rules)[0];
  ASSERT_EQ(rule.source.size(), 1u);
  EXPECT_EQ(rule.source[0].type, 18);
  ASSERT_EQ(rule.source[0].inputs.size(), 2u);
  EXPECT_EQ(rule.source[0].inputs[1].op, -4);
  EXPECT_EQ(rule.source[0].parameters.at(9), 0);
  ASSERT_EQ(rule.outputs.size(), 1u);
  EXPECT_EQ(rule.outputs[0].target_op, 1);
  EXPECT_EQ(rule.outputs[0].source_result, 2);
  EXPECT_EQ(rule.outputs[0].target_result, 3);
  EXPECT_TRUE(parse("").value().empty());
}

TEST(TasoRules, ThatAreDamagedAreRefusedWithTheirPlace) {
  const auto error = [](const std::string& file) {
    const auto rules = parse(file);
    return rules.ok() ? std::string("none") : rules.error().to_string();
  };
  EXPECT_NE(error("\x0a\x05").find("claims 5 bytes"), std::string::npos);
  EXPECT_THAT(error(number(1, 3)), says("field 1 ... message"));
  EXPECT_NE(error(message(1, message(1, ""))).find("has no type"), std::string::npos);
  EXPECT_THAT(error(message(1, message(1, message(1, "x")))), says("field ... byte ... number"));
  EXPECT_NE(error(message(1, message(3, number(1, 0)))).find("lacks field 2"), std::string::npos);
  EXPECT_NE(
      error(message(1, message(1, number(1, 18) + message(2, number(1, 0))))).find("lacks field 2"),
      std::string::npos);
  EXPECT_NE(error("\x0b").find("group"), std::string::npos);
  std::string many;
  for (int i = 0; i < (1 << 20) + 2; ++i) many += message(1, "");
  EXPECT_NE(error(many).find("more than 1048576 fields"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
