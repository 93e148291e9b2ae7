#include <algorithm>

#include "base/text.h"
#include "ir/text_printer.h"
#include "kernel/schedule_text.h"
#include "plan/plan.h"

// docs/formats/plan-text.md describes the language.

namespace hone {

std::span<const DecisionInfo> decisions() {
  static constexpr DecisionInfo rows[] = {
#define HONE_DECISION(member, key, values, fallback, doc) {#member, key, values, fallback, doc},
#include "plan/decisions.def"
  };
  return rows;
}

namespace {

std::string labelled(char sigil, std::string_view name) {
  std::string text;
  append_label(text, sigil, name);
  return text;
}

// ---- Values ------------------------------------------------------------------------------------

std::string text_of(bool flag) { return flag ? "yes" : "no"; }
std::string text_of(int64_t number) { return fmt::format("{}", number); }
std::string text_of(const Layout& layout) { return print(layout); }

std::string text_of(const CollectiveSchedule& schedule) { return to_string(schedule); }

std::string text_of(const Copy& copy) {
  std::string text = labelled('%', copy.of) + " for [";
  for (size_t i = 0; i < copy.readers.size(); ++i)
    text += (i > 0 ? ", " : "") + labelled('%', copy.readers[i]);
  return text + "]";
}

// ---- Entries -----------------------------------------------------------------------------------

// "layout %h" and "[0, 1]".
struct Entry {
  std::string key;
  std::string value;
  bool operator==(const Entry&) const = default;
};

class Entries {
 public:
  explicit Entries(const Plan& plan) : plan_(plan) {
#define HONE_DECISION(member, ...) add(#member, plan.member);
#include "plan/decisions.def"
  }
  std::vector<Entry> take() { return std::move(list_); }

 private:
  void add(std::string_view what, const std::optional<int64_t>& number) {
    if (number) list_.push_back({std::string(what), text_of(*number)});
  }
  void add(std::string_view what, const std::vector<Group>& groups) {
    for (const Group& group : groups) {
      std::string text = "{";
      for (const std::string& node : group.nodes)
        text += (text.size() > 1 ? ", " : "") + labelled('%', node);
      list_.push_back({fmt::format("{} {}", what, labelled('@', group.kernel)), text + "}"});
    }
  }
  void add(std::string_view what, const std::vector<Rewrite>& rewrites) {
    for (size_t i = 0; i < rewrites.size(); ++i)
      list_.push_back({fmt::format("{} {}", what, i + 1), hone::print(rewrites[i])});
  }
  void add(std::string_view what, const std::vector<std::string>& order) {
    if (order.empty()) return;
    std::vector<std::string_view> kernels;
    for (const Group& group : plan_.fuse) kernels.push_back(group.kernel);
    std::ranges::sort(kernels);
    std::string text = "[";
    for (const std::string& step : order) {
      const bool is_kernel = std::ranges::binary_search(kernels, std::string_view(step));
      text += (text.size() > 1 ? ", " : "") + labelled(is_kernel ? '@' : '%', step);
    }
    list_.push_back({std::string(what), text + "]"});
  }
  template <class T>
  void add(std::string_view what, const std::map<std::string, T>& map) {
    for (const auto& [key, value] : map)
      list_.push_back({fmt::format("{} {}", what, labelled('%', key)), text_of(value)});
  }
  void add(std::string_view what, const std::map<uint64_t, Schedule>& map) {
    for (const auto& [hash, schedule] : map)
      list_.push_back({fmt::format("{} 0x{:016x}", what, hash), hone::print(schedule)});
  }
  // Nested entries have the region's name in front; so print() writes them, not text_of().
  void add(std::string_view, const std::map<std::string, Plan>&) {}

  const Plan& plan_;
  std::vector<Entry> list_;
};

void print_body(const Plan& plan, size_t indent, std::string& out) {
  out += "{\n";
  for (const Entry& entry : Entries(plan).take())
    out.append(indent + 2, ' ').append(fmt::format("{} = {}\n", entry.key, entry.value));
  for (const auto& [region, inner] : plan.region) {
    out.append(indent + 2, ' ').append("region " + labelled('%', region) + " ");
    print_body(inner, indent + 2, out);
  }
  out.append(indent, ' ') += "}\n";
}

std::string header(const Plan& plan) {
  std::string out = "plan " + labelled('@', plan.graph);
  if (plan.graph_hash != 0) out += fmt::format(" hash 0x{:016x}", plan.graph_hash);
  if (!plan.target.empty()) out += " on " + hone::quoted(plan.target);
  return out;
}

void flatten(const Plan& plan, const std::string& prefix, std::vector<Entry>& out) {
  for (Entry& entry : Entries(plan).take())
    out.push_back({prefix + entry.key, std::move(entry.value)});
  for (const auto& [region, inner] : plan.region)
    flatten(inner, fmt::format("{}{} ", prefix, labelled('%', region)), out);
}

std::map<std::string, std::string> flat_entries(const Plan& plan) {
  std::vector<Entry> list{{header(plan), ""}};
  flatten(plan, "", list);
  std::map<std::string, std::string> entries;
  for (Entry& entry : list) {
    std::string line = entry.value.empty() ? entry.key : entry.key + " = " + entry.value;
    entries.emplace(std::move(entry.key), std::move(line));
  }
  return entries;
}

}  // namespace

std::string print(const Rewrite& rewrite) {
  std::string text = labelled('@', rewrite.rule) + "(";
  for (size_t i = 0; i < rewrite.results.size(); ++i)
    text += (i > 0 ? ", " : "") + labelled('%', rewrite.results[i]);
  text += ")";
  if (rewrite.match != 1) text += fmt::format(" match {}", rewrite.match);
  if (rewrite.range != 0) text += fmt::format(" range {}", rewrite.range);
  return text;
}

std::string print(const Plan& plan) {
  std::string out = header(plan) + " ";
  print_body(plan, 0, out);
  return out;
}

std::string diff(const Plan& before, const Plan& after) {
  const std::map<std::string, std::string> old = flat_entries(before), now = flat_entries(after);
  std::string out;
  auto a = old.begin();
  auto b = now.begin();
  while (a != old.end() || b != now.end()) {
    const bool takes_a = b == now.end() || (a != old.end() && a->first <= b->first);
    const bool takes_b = a == old.end() || (b != now.end() && b->first <= a->first);
    if (!(takes_a && takes_b && a->second == b->second)) {
      if (takes_a) out += "- " + a->second + "\n";
      if (takes_b) out += "+ " + b->second + "\n";
    }
    if (takes_a) ++a;
    if (takes_b) ++b;
  }
  return out;
}

}  // namespace hone
