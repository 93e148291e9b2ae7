#include "tests/prove/rules_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "ir/text.h"
#include "prove/prove.h"
#include "rules/checker/checker.h"
#include "rules/statement.h"

namespace hone {

std::vector<Rule> committed_rules() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(HONE_TEST_DIR "/../rules"))
    if (file.path().extension() == ".rules") files.push_back(file.path());
  std::ranges::sort(files);
  std::vector<Rule> all;
  for (const auto& file : files) {
    std::vector<Rule> rules =
        parse_rules(read_file(file, 1 << 24).value(), {.file = file.string()}).value();
    std::ranges::move(rules, std::back_inserter(all));
  }
  return all;
}

void expect_proved(const Rule& rule) {
  const Proof proof = prove(rule);
  ASSERT_TRUE(proof.proved) << proof.stopped << "\n" << print(rule);
  const Status good =
      check_certificate(rule, parse_certificates(proof.certificate, "c").value()[0]);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
}

Status checked(const Rule& rule, std::vector<std::string> steps) {
  return check_certificate(
      rule,
      {.rule = rule.name, .statement = statement_hash(rule), .line = 1, .steps = std::move(steps)});
}

Graph GraphText::graph() const {
  return parse_graph(fmt::format("graph @g({}) {{{}}}", inputs, body)).value();
}

GraphText one_row_wanted(int64_t rows, int64_t width, int64_t hidden) {
  return {.inputs = fmt::format("%x: f32[1, {0}, {1}], %v: f32[{2}, {1}], %w: f32[{1}, {2}], "
                                "%b: f32[{2}]",
                                rows, width, hidden),
          .body = fmt::format(R"(
  %h = dot %x, %v {{lhs_contract = [2], rhs_contract = [1]}}
  %bb = broadcast %b {{dims = [1, {0}, {2}], map = [2]}}
  %a = add %h, %bb
  %e = erf %a
  %m = mul %a, %e
  %o = dot %m, %w {{lhs_contract = [2], rhs_contract = [1]}}
  %r = add %x, %o
  %y = slice %r {{start = [0, 2, 0], limit = [1, 3, {1}]}}
  return %y
)",
                              rows, width, hidden)};
}

}  // namespace hone
