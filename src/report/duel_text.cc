#include "report/duel_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
#include "report/bench_text.h"

namespace hone {
namespace {

// "surely faster", "surely slower" or "neither".
std::string_view verdict(const PlanDuel& duel) {
  if (duel.is_faster()) return "surely faster";
  return duel.is_slower() ? "surely slower" : "neither is known to be faster";
}

nlohmann::ordered_json json_of(std::string_view name, const Timing& timing) {
  return {{"plan", name},
          {"runs", timing.seconds.size()},
          {"min", timing.min()},
          {"median", timing.median()}};
}

}  // namespace

std::string gain_interval_text(const Duel& times) {
  if (!times.interval) return "";
  return fmt::format(" ({:.3f} to {:.3f})", 1 / times.interval->high, 1 / times.interval->low);
}

std::string duel_text(const PlanDuel& duel, std::string_view first, std::string_view second) {
  TextTable table("ll");
  table.add_row({excerpt(first), timing_text(duel.times.a)});
  table.add_row({excerpt(second), timing_text(duel.times.b)});
  return table.to_string() + fmt::format("{} is {:.3f}x{} as fast as {}: {}\n", excerpt(second),
                                         duel.gain(), gain_interval_text(duel.times),
                                         excerpt(first), verdict(duel));
}

std::string duel_json(const PlanDuel& duel, std::string_view first, std::string_view second) {
  nlohmann::ordered_json json = {{"outcome", name(duel.outcome)}};
  if (duel.outcome != Outcome::measured) {
    json["detail"] = escape(duel.detail);
    return json.dump(1) + "\n";
  }
  json["first"] = json_of(escape(first), duel.times.a);
  json["second"] = json_of(escape(second), duel.times.b);
  json["gain"] = duel.gain();
  if (duel.times.interval)
    json["interval"] = {1 / duel.times.interval->high, 1 / duel.times.interval->low};
  json["verdict"] = verdict(duel);
  nlohmann::ordered_json rounds = nlohmann::ordered_json::array();
  for (const Duel::Round& round : duel.times.rounds) rounds.push_back({round.a, round.b});
  json["rounds"] = std::move(rounds);
  return json.dump(1) + "\n";
}

}  // namespace hone
