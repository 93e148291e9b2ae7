#include "assign/core_search.h"

#include <numeric>

#include "base/text.h"

namespace hone {

void CoreSearch::start(std::vector<uint32_t> options) {
  state_.set(std::move(options));
  changed_.resize(core_.nodes.size());
  std::iota(changed_.begin(), changed_.end(), 0);
  is_changed_.assign(core_.nodes.size(), true);
  keep_best();
}

void CoreSearch::take(uint32_t node, uint32_t option) {
  state_.take(node, option);
  if (is_changed_[node]) return;
  is_changed_[node] = true;
  changed_.push_back(node);
}

void CoreSearch::keep_best() {
  if (best_cost_ < kNever && (state_.full_times() > best_full_ ||
                              (state_.full_times() == best_full_ && state_.cost() >= best_cost_)))
    return;
  best_.resize(core_.nodes.size());
  for (const uint32_t node : changed_) {
    best_[node] = state_.options()[node];
    is_changed_[node] = false;
  }
  changed_.clear();
  best_cost_ = state_.cost();
  best_full_ = state_.full_times();
}

void CoreSearch::go_back() {
  for (const uint32_t node : changed_) {
    if (state_.options()[node] != best_[node]) state_.take(node, best_[node]);
    is_changed_[node] = false;
  }
  changed_.clear();
}

// ---- The table ----------------------------------------------------------------------------------

#define HONE_CORE_SEARCH(name, doc)                                                            \
  std::unique_ptr<CoreSearch> make_##name##_search(const Core& core, const CoreTables& tables, \
                                                   uint64_t seed);
#include "assign/searches.def"
#undef HONE_CORE_SEARCH

std::span<const CoreSearchRow> core_searches() {
  static constexpr CoreSearchRow kSearches[] = {
#define HONE_CORE_SEARCH(name, doc) {#name, doc, &make_##name##_search},
#include "assign/searches.def"
#undef HONE_CORE_SEARCH
  };
  return kSearches;
}

Result<const CoreSearchRow*> find_core_search(std::string_view name) {
  std::vector<std::string_view> known;
  for (const CoreSearchRow& row : core_searches()) {
    if (row.name == name) return &row;
    known.push_back(row.name);
  }
  return usage_error("there is no search '{}'", excerpt(name))
      .with_hint(fmt::format("the searches are {}", join(known, ", ")));
}

}  // namespace hone
