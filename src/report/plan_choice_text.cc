#include "report/plan_choice_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text_table.h"

namespace hone {
namespace {

double times(double logarithm) { return std::exp(logarithm); }

bool is_taken(const PlanChoice& choice, const PlanModel& model) {
  return model.gains() && choice.lead > model.lead;
}

std::string share_of(int64_t part, int64_t all) {
  return all == 0 ? "-"
                  : fmt::format("{:.0f} %",
                                100.0 * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

std::string trained_plans_text(const TrainedPlans& trained) {
  const PlanModel& model = trained.model;
  TextTable table("lrrrrrr", {"program, not seen", "plans", "in order: price", "learned", "lead",
                              "its choice", "fastest"});
  int64_t ordered = 0, by_price = 0, sure = 0;
  for (const PlanChoice& choice : trained.choices) {
    ordered += choice.ordered;
    by_price += choice.by_price;
    sure += choice.sure;
    table.add_row({choice.program, std::to_string(choice.plans),
                   share_of(choice.by_price, choice.sure), share_of(choice.ordered, choice.sure),
                   fmt::format("{:.3f}", choice.lead),
                   is_taken(choice, model) ? fmt::format("{:.3f}x", times(choice.gain)) : "usual",
                   fmt::format("{:.3f}x", times(choice.most))});
  }
  table.add_rule();
  table.add_row({"all", std::to_string(model.pairs), share_of(by_price, sure),
                 share_of(ordered, sure), "", fmt::format("{:.3f}x", times(model.gain)), ""});
  std::string text = table.to_string();
  if (model.gains())
    text += fmt::format("a plan is taken if it is faster by {:.1f} %: {:.3f}x on average\n",
                        100 * (times(model.lead) - 1), times(model.gain));
  else
    text += "no choice gained: plans stay as they are without this model\n";
  return text;
}

std::string trained_plans_json(const TrainedPlans& trained) {
  using Json = nlohmann::ordered_json;
  Json programs = Json::array();
  for (const PlanChoice& choice : trained.choices)
    programs.push_back({{"program", choice.program},
                        {"plans", choice.plans},
                        {"lead", choice.lead},
                        {"is_taken", is_taken(choice, trained.model)},
                        {"gain", times(choice.gain)},
                        {"fastest", times(choice.most)},
                        {"pairs", choice.sure},
                        {"ordered_by_price", choice.by_price},
                        {"ordered", choice.ordered}});
  const Json json = {{"gains", trained.model.gains()},
                     {"lead", trained.model.lead},
                     {"gain", times(trained.model.gain)},
                     {"pairs", trained.model.pairs},
                     {"programs", std::move(programs)}};
  return json.dump(1) + "\n";
}

}  // namespace hone
