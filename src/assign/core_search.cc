#include "assign/core_search.h"

#include "base/text.h"

namespace hone {

void CoreSearch::start(std::vector<uint32_t> options) {
  state_.set(std::move(options));
  keep_best();
}

void CoreSearch::keep_best() {
  if (!best_.empty() && (state_.full_times() > best_full_ ||
                         (state_.full_times() == best_full_ && state_.cost() >= best_cost_)))
    return;
  best_ = state_.options();
  best_cost_ = state_.cost();
  best_full_ = state_.full_times();
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
