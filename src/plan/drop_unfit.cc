#include "plan/drop_unfit.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace hone {
namespace {

using Check = std::function<Status(const Plan&)>;

// ---- Taking an entry out ------------------------------------------------------------------------
// Keyed by the text behind the decision's name: "%h", "@k0", "0x0123456789abcdef" or nothing.
// False: there is no such entry.

bool take_out(std::optional<int64_t>& number, std::string_view) {
  return std::exchange(number, std::nullopt).has_value();
}

// Rewrites build on each other, so all go.
template <class T>
bool take_out(std::vector<T>& list, std::string_view) {
  return !std::exchange(list, {}).empty();
}

bool take_out(std::vector<Group>& groups, std::string_view key) {
  if (!consume_prefix(key, "@")) return false;
  return std::erase_if(groups, [&](const Group& group) { return group.kernel == key; }) > 0;
}

template <class T>
bool take_out(std::map<std::string, T>& entries, std::string_view key) {
  return consume_prefix(key, "%") && entries.erase(std::string(key)) > 0;
}

bool take_out(std::map<uint64_t, Schedule>& schedules, std::string_view key) {
  uint64_t hash = 0;
  if (!consume_prefix(key, "0x")) return false;
  const char* end = key.data() + key.size();
  return std::from_chars(key.data(), end, hash, 16).ptr == end && schedules.erase(hash) > 0;
}

struct Place {
  std::string_view decision, key;
};

// "layout %h"
Place place_of(std::string_view part) {
  const size_t blank = std::min(part.find(' '), part.size());
  return {part.substr(0, blank), trim(part.substr(blank))};
}

bool take_out(Plan& plan, Place place) {
#define HONE_DECISION(member, ...) \
  if (place.decision == #member) return take_out(plan.member, place.key);
#include "plan/decisions.def"
  return false;
}

// ---- Groups that wait for each other ------------------------------------------------------------

// The first group with which those before it are refused. Such an error names no group: each of
// several would end it.
std::optional<size_t> first_refused(const Plan& plan, const Check& check) {
  const auto is_refused = [&](size_t groups) {
    Plan part = plan;
    part.fuse.resize(groups);
    return !check(part).ok();
  };
  if (plan.fuse.empty() || is_refused(0)) return std::nullopt;
  size_t good = 0, bad = plan.fuse.size();
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    (is_refused(middle) ? bad : good) = middle;
  }
  return good;
}

// The name of the entry that is gone; empty: the error names none.
std::string take_out_refused(Plan& whole, const Error& error, const Check& check) {
  // "region %loop.body, fuse @k0": the path to the entry, and perhaps more.
  Plan* plan = &whole;
  std::string path;
  for (std::string_view rest = error.where(); !rest.empty();) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(rest.size(), comma + 2));
    const Place place = place_of(part);
    path += fmt::format("{}{}", path.empty() ? "" : ", ", part);
    const auto region = plan->region.find(std::string(place.key.substr(place.key.empty() ? 0 : 1)));
    if (place.decision == "region" && region != plan->region.end() && !rest.empty()) {
      plan = &region->second;
      continue;
    }
    if (take_out(*plan, place)) return path;
    if (place.decision != "fuse" || plan != &whole) break;
    const std::optional<size_t> group = first_refused(whole, check);
    if (!group) break;
    path = fmt::format("fuse @{}", whole.fuse[*group].kernel);
    whole.fuse.erase(whole.fuse.begin() + static_cast<std::ptrdiff_t>(*group));
    return path;
  }
  return "";
}

}  // namespace

Result<std::vector<DroppedEntry>> drop_unfit(Plan& plan, const Check& check) {
  std::vector<DroppedEntry> dropped;
  while (true) {
    const Status good = check(plan);
    if (good.ok()) return dropped;
    std::string entry = take_out_refused(plan, good.error(), check);
    if (entry.empty()) return good.error();
    dropped.push_back({std::move(entry), good.error().what()});
  }
}

}  // namespace hone
