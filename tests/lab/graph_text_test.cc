#include "lab/models/graph_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;
using testing::Not;

GraphVerdict verdict(std::string program, std::string sort, double tau) {
  GraphVerdict verdict;
  verdict.program = std::move(program);
  verdict.sort = std::move(sort);
  verdict.runs = 20;
  verdict.tau = tau;
  verdict.top10 = 0.01;
  verdict.area = 0.5;
  verdict.random = 0.2;
  return verdict;
}

TEST(GraphText, TellsRandomLayoutsFromThoseNearTheDefault) {
  std::vector<GraphVerdict> all = {verdict("zoo:a", "random", 0.8),
                                   verdict("zoo:a", "default", 0.2),
                                   verdict("zoo:b", "random", 0.6)};
  all[0].priced = OrderVerdict{.tau = 0.5, .top1 = 0.03, .whole = 0.4};
  all[0].whole = 0.6;
  all[0].whole_runs = 12;
  all[0].ceiling = 0.8;
  all[0].planned = 0.07;
  const std::string text = graph_verdicts_text(all, true);
  EXPECT_THAT(text, HasSubstr("\nrandom   model         2  0.700    0.00    0.00     1.00"
                              "              0.600               75.00\n"));
  EXPECT_THAT(text, HasSubstr("\nrandom   price         2  0.500    3.00"));
  EXPECT_THAT(text, HasSubstr("\nrandom   random        2          20.00\n"));
  EXPECT_THAT(text, HasSubstr("\nrandom   default       2           7.00\n"));
  EXPECT_THAT(text, HasSubstr("\ndefault  model         1  0.200"));
  EXPECT_THAT(text, Not(HasSubstr("\ndefault  price")));
  EXPECT_THAT(text, HasSubstr("\narea under the curve, slow against fast: model 0.500"));
  all[0].summed = OrderVerdict{.tau = 0.9, .area = 0.75, .whole = {}};
  const std::string with_sums = graph_verdicts_text(all, true);
  EXPECT_THAT(with_sums, HasSubstr("\nrandom   layouts       2  0.900"));
  EXPECT_THAT(with_sums, HasSubstr(", sums of layouts 0.750\n"));

  const auto json = nlohmann::json::parse(graph_verdicts_json(all));
  EXPECT_EQ(json["graphs"][0]["sort"], "random");
  EXPECT_EQ(json["graphs"][0]["priced"]["tau_of_whole"], 0.4);
  EXPECT_EQ(json["graphs"][0]["ceiling"], 0.8);
  EXPECT_EQ(json["graphs"][0]["sums_of_layouts"]["area"], 0.75);
  EXPECT_EQ(json["means"]["random"]["sums_of_layouts"]["tau"], 0.9);
  EXPECT_EQ(json["graphs"][1]["top10"], 0.01);
  EXPECT_FALSE(json["graphs"][1].contains("priced"));
  EXPECT_NEAR(json["means"]["random"]["share_of_ceiling"].get<double>(), 0.75, 1e-9);
  EXPECT_NEAR(json["means"]["default"]["tau"].get<double>(), 0.2, 1e-9);
  EXPECT_EQ(json["mean"]["graphs"], 3);
}

TEST(GraphText, TellsGraphsWithManyRuns) {
  std::vector<GraphVerdict> kernels = {verdict("k0", "", 1), verdict("k1", "", 0)};
  kernels[1].runs = 3;
  const std::string text = graph_verdicts_text(kernels, false);
  EXPECT_THAT(text, HasSubstr("\nall               model        2  0.500"));
  EXPECT_THAT(text, HasSubstr("\n10 runs and more  model        1  1.000"));
  EXPECT_THAT(text, Not(HasSubstr("area")));
}

}  // namespace
}  // namespace hone::HONE_FILE
