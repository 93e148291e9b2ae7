#include "oracle/decision_counts.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "base/text_table.h"
#include "kernel/algorithms/algorithm.h"

namespace hone {
namespace {

using Values = std::vector<std::string>;

// At most `most` is told apart.
std::string count(int64_t n, int64_t most) {
  return n < most ? fmt::format("{}", n) : fmt::format("{} and more", most);
}

// Numbers up to 4, then ranges up to the powers of two, which alone make lanes.
std::string size(int64_t n) {
  if (n <= 4 || n > 32) return count(n, 33);
  const auto high = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  return fmt::format("{}-{}", high / 2 + 1, high);
}

// ---- What is counted of a decision, by its type: values_of() for one that was made, known() for
// ---- what must come up.

std::string in_schedule(std::string_view field) { return fmt::format("schedule.{}", field); }

Values values_of(bool flag) { return {flag ? "yes" : "no"}; }
Values values_of(Algorithm algorithm) { return {std::string(name(algorithm))}; }
Values values_of(Packing packing) { return {std::string(name(packing))}; }
Values values_of(Products products) { return {std::string(name(products))}; }
Values values_of(const std::optional<int64_t>& n) { return {count(*n, 9)}; }
Values values_of(int n) { return {count(n, 3)}; }
Values values_of(const Copy& copy) { return {copy.readers.size() < 2 ? "for one" : "for several"}; }
Values values_of(const Group& group) { return {count(std::ssize(group.nodes), 9)}; }

Values values_of(const CollectiveSchedule& schedule) {
  return {std::string(name(schedule.algorithm)), schedule.pieces > 1 ? "in pieces" : "whole"};
}

Values values_of(const std::vector<int>& order) {
  if (order.empty()) return {"none"};
  return {std::ranges::is_sorted(order) ? "in order" : "permuted"};
}

Values values_of(const std::vector<Tile>& tiles) {
  if (tiles.empty()) return {"none"};
  Values values;
  for (const Tile& tile : tiles) values.push_back(size(tile.count));
  if (tiles.size() > 1) values.push_back("several");
  return values;
}

Values values_of(const std::vector<int64_t>& kept) {
  return {kept.size() == 1 ? "one" : "several"};
}
Values values_of(const std::vector<Schedule>& stages) { return {count(std::ssize(stages), 3)}; }

Values values_of(const Layout& layout) {
  bool is_blocked = false;
  for (const Layout::Part& part : layout.parts) is_blocked = is_blocked || part.block > 1;
  if (is_blocked) return {"blocked"};
  return {layout == Layout::row_major(static_cast<int>(layout.parts.size())) ? "row-major"
                                                                             : "permuted"};
}

Values values_of(int64_t offset) { return {offset == 0 ? "0" : "above 0"}; }
Values values_of(const Plan&) { return {"planned"}; }
Values values_of(const std::vector<std::string>& order) {
  return {order.size() < 2 ? "of one" : "of several"};
}

Values values_of(const std::vector<Rewrite>& all) { return {all.size() == 1 ? "one" : "several"}; }

Values known(std::string_view, bool) { return {"yes", "no"}; }
Values known(std::string_view, Algorithm) {
  Values names;
  for (Algorithm each : kAlgorithms)
    if (!def_of(each).is_for_gpu()) names.emplace_back(name(each));
  return names;
}
Values known(std::string_view, Packing) {
  return {
#define HONE_PACKING(member, doc) #member,
#include "kernel/algorithms.def"
  };
}
// Decisions that only a plan asks for do not come up by themselves.
Values known(std::string_view, Products) { return {std::string(name(Products::plain))}; }
Values known(std::string_view decision, int) {
  if (decision == in_schedule("points")) return {"2", "3 and more"};      // of transforms
  if (decision == in_schedule("parts")) return {"0", "2", "3 and more"};  // of its features
  return {"0", "1", "2", "3 and more"};
}
Values known(std::string_view, const std::optional<int64_t>&) { return {}; }
Values known(std::string_view, const Copy&) { return {"for one", "for several"}; }
// Graphs of several devices have them.
Values known(std::string_view, const CollectiveSchedule&) { return {}; }
Values known(std::string_view, const Group&) {
  return {"1", "2", "3", "4", "5", "6", "7", "8", "9 and more"};
}
Values known(std::string_view, const std::vector<int>&) { return {"none", "in order", "permuted"}; }
Values known(std::string_view decision, const std::vector<Tile>&) {
  Values values = {"none", "2", "4", "5-8", "9-16", "17-32", "33 and more"};
  if (decision != in_schedule("lanes")) values.insert(values.end(), {"1", "3", "several"});
  return values;
}
Values known(std::string_view, const std::vector<int64_t>&) { return {"one", "several"}; }
Values known(std::string_view, const std::vector<Schedule>&) { return {"2", "3 and more"}; }
Values known(std::string_view, const Layout&) { return {"row-major", "permuted", "blocked"}; }
Values known(std::string_view, const std::vector<Rewrite>&) { return {}; }  // searches find them
Values known(std::string_view, int64_t) { return {"0", "above 0"}; }
Values known(std::string_view, const Plan&) { return {"planned"}; }
Values known(std::string_view, const std::vector<std::string>&) { return {"of one", "of several"}; }

// Calls f(decision, value of its type) for each kind of decision.
template <class F>
void each_kind(const F& f) {
  const auto plain = [&](std::string_view what, auto value) { f(what, value); };
  const auto unwrap = [&]<class T>(std::string_view what, const T& member) {
    if constexpr (std::is_same_v<T, std::vector<Group>>)
      plain(what, Group());
    else if constexpr (requires { typename T::mapped_type; })
      plain(what, typename T::mapped_type());
    else
      plain(what, member);
  };
  const Plan plan;
#define HONE_DECISION(member, ...) unwrap(#member, plan.member);
#include "plan/decisions.def"
  f(in_schedule("algorithm"), Algorithm());
  for (Algorithm algorithm : kAlgorithms) {
    if (def_of(algorithm).is_for_gpu()) continue;
    const Schedule schedule = {.own = fields_of(algorithm)};
    each_field(schedule,
               [&](std::string_view field, const auto& value) { f(in_schedule(field), value); });
  }
}

}  // namespace

// Schedules are counted field by field.
DecisionCounts::DecisionCounts(int64_t cores) {
  for (int64_t threads = 1; threads <= cores; ++threads)
    for (const std::string& one : values_of(std::optional(threads))) row("threads", one);
  each_kind([&]<class T>(std::string_view decision, const T& value) {
    if constexpr (!std::is_same_v<T, Schedule>)
      for (const std::string& one : known(decision, value)) row(decision, one);
  });
}

void DecisionCounts::add(const Plan& plan) {
  const auto add_values = [&](std::string_view decision, const auto& value) {
    for (const std::string& one : values_of(value)) add(decision, one);
  };
  const auto add_fields = [&](const Schedule& schedule) {
    add_values(in_schedule("algorithm"), schedule.algorithm());
    each_field(schedule, [&](std::string_view field, const auto& value) {
      add_values(in_schedule(field), value);
    });
  };
  const auto add_schedule = [&](const Schedule& schedule) {
    add_fields(schedule);
    if (const auto* chain = schedule.if_is<ChainFields>())
      for (const Schedule& stage : chain->stages) add_fields(stage);
  };
  const auto add_decision = [&]<class T>(std::string_view what, const T& member) {
    if constexpr (std::is_same_v<T, std::vector<Group>>) {
      for (const Group& group : member) add_values(what, group);
    } else if constexpr (requires { typename T::mapped_type; }) {
      for (const auto& [key, value] : member) {
        if constexpr (std::is_same_v<typename T::mapped_type, Schedule>)
          add_schedule(value);
        else
          add_values(what, value);
        if constexpr (std::is_same_v<typename T::mapped_type, Plan>) add(value);
      }
    } else if constexpr (requires { member.has_value(); }) {
      if (member) add_values(what, member);
    } else if (!member.empty()) {
      add_values(what, member);
    }
  };
#define HONE_DECISION(member, ...) add_decision(#member, plan.member);
#include "plan/decisions.def"
}

void DecisionCounts::add(std::string_view decision, std::string_view value, int64_t times) {
  row(decision, value).times += times;
}

namespace {

// 0 for words.
int64_t leading_number(std::string_view text) {
  const Result<int64_t> number = parse_int(text.substr(0, text.find_first_not_of("0123456789")));
  return number.ok() ? *number : 0;
}

}  // namespace

// New values of a decision stand among those that it has, numbers in order.
DecisionCounts::Row& DecisionCounts::row(std::string_view decision, std::string_view value) {
  const int64_t number = leading_number(value);
  auto place = rows_.end();
  for (auto at = rows_.begin(); at != rows_.end(); ++at) {
    if (at->decision != decision) continue;
    if (at->value == value) return *at;
    if (place == rows_.end() || leading_number(at->value) <= number) place = at + 1;
  }
  return *rows_.insert(place, {std::string(decision), std::string(value), 0});
}

std::string DecisionCounts::to_string() const {
  TextTable table("llr", {"decision", "value", "times"});
  std::string_view before;
  for (const Row& row : rows_) {
    table.add_row(
        {row.decision == before ? "" : row.decision, row.value, fmt::format("{}", row.times)});
    before = row.decision;
  }
  return table.to_string();
}

}  // namespace hone
