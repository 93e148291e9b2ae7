#include "rules/saturate.h"

#include <chrono>
#include <optional>

namespace hone {
namespace {

class Saturation {
 public:
  Saturation(EGraph& egraph, std::span<const RuleMatcher> rules, const SaturateLimits& limits,
             const CancelToken* cancel, const Ranges* ranges)
      : egraph_(egraph), rules_(rules), limits_(limits), cancel_(cancel), ranges_(ranges) {}

  Result<Saturated> run() {
    while (result_.end = SaturateEnd::rounds, result_.rounds < limits_.rounds) {
      const Result<bool> changed = round();
      if (!changed.ok()) return changed.error();
      egraph_.rebuild();
      if (over_) {
        result_.end = *over_;
        break;
      }
      ++result_.rounds;
      if (!*changed) {
        result_.end = SaturateEnd::saturated;
        break;
      }
    }
    return std::move(result_);
  }

 private:
  struct Found {
    uint32_t rule;
    RuleMatch match;
  };

  // True if it was new.
  Result<bool> round() {
    std::vector<Found> found;
    std::optional<KnownRanges> known;
    if (ranges_ != nullptr) known.emplace(egraph_, *ranges_);
    for (uint32_t r = 0; r < rules_.size() && !is_over(); ++r) {
      const Graph& left = rules_[r].rule().left;
      if (left.outputs().size() > 1 && result_.rounds >= limits_.rounds_of_merges) continue;
      size_t count = 0;
      rules_[r].find(egraph_, [&](RuleMatch match) {
        if (!merges_one_with_itself(left, match) &&
            (!known || known->suffice(rules_[r].rule(), match)))
          found.push_back({r, std::move(match)}), ++count;
        return count < limits_.matches && !is_over();
      });
    }
    bool changed = false;
    for (const Found& each : found) {
      if (is_over()) break;
      const auto origin = static_cast<uint32_t>(result_.rule_of.size());
      result_.rule_of.push_back(each.rule);
      result_.values_of.push_back(each.match.values);
      ++result_.matches;
      changed |= HONE_TRY(egraph_.apply(rules_[each.rule].rule(), each.match, origin));
    }
    return changed;
  }

  static bool merges_one_with_itself(const Graph& left, const RuleMatch& match) {
    const auto outputs = left.outputs();
    for (size_t o = 1; o < outputs.size(); ++o)
      for (size_t p = 0; p < o; ++p)
        if (match.values[outputs[o].index] == match.values[outputs[p].index]) return true;
    return false;
  }

  bool is_over() {
    if (over_) return true;
    if (cancel_ != nullptr && cancel_->cancelled())
      over_ = SaturateEnd::cancelled;
    else if (egraph_.alive_nodes() >= limits_.nodes)
      over_ = SaturateEnd::nodes;
    else if (egraph_.memory_bytes() >= limits_.bytes)
      over_ = SaturateEnd::bytes;
    else if (elapsed() >= limits_.seconds)
      over_ = SaturateEnd::seconds;
    return over_.has_value();
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  EGraph& egraph_;
  const std::span<const RuleMatcher> rules_;
  const SaturateLimits& limits_;
  const CancelToken* cancel_;
  const Ranges* ranges_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Saturated result_;
  std::optional<SaturateEnd> over_;
};

}  // namespace

std::string_view name(SaturateEnd end) {
  switch (end) {
    case SaturateEnd::saturated: return "saturated";
    case SaturateEnd::rounds: return "rounds";
    case SaturateEnd::nodes: return "nodes";
    case SaturateEnd::bytes: return "memory";
    case SaturateEnd::seconds: return "time";
    case SaturateEnd::cancelled: return "cancelled";
  }
  return "";
}

Result<Saturated> saturate(EGraph& egraph, std::span<const RuleMatcher> rules,
                           const SaturateLimits& limits, const CancelToken* cancel,
                           const Ranges* ranges) {
  return Saturation(egraph, rules, limits, cancel, ranges).run();
}

}  // namespace hone
