#include "prove/guard.h"

#include <algorithm>

#include "prove/guard_atoms.h"
#include "rules/sizes.h"

namespace hone {
namespace {

constexpr size_t kMaxSizes = 512;

// How many values of each symbol are tested.
int64_t values_of(size_t symbols) {
  return symbols <= 2 ? 9 : symbols == 3 ? 7 : symbols == 4 ? 4 : 3;
}

class Inference {
 public:
  Inference(const Rule& rule, const GuardOptions& options) : rule_(rule), options_(options) {}

  Result<GuardSearch> run() {
    HONE_TRY(check(rule_));
    GuardSearch search;
    Rule tried = rule_;
    search.verdict = HONE_TRY(verify(tried, options_.verify));
    if (!search.verdict.refuted()) {
      search.rule = shown(tried, search.verdict);
      return search;
    }
    search.counterexample = search.verdict.identity.counterexample;
    HONE_TRY(sort_sizes());
    bad_.push_back(search.counterexample->sizes);
    std::vector<Condition> atoms = guard_atoms(rule_);
    for (int round = 0; round < options_.rounds; ++round) {
      const std::vector<Condition> guard = AtomTable(atoms, good_, bad_).weakest();
      if (guard.empty()) {
        if (!search.why.empty()) break;
        search.why = good_.empty() ? "it is false at all tested sizes"
                                   : "no condition tells where it is true";
        break;
      }
      tried.guard = rule_.guard;
      tried.guard.insert(tried.guard.end(), guard.begin(), guard.end());
      const Result<RuleVerdict> verdict = verify(tried, options_.verify);
      if (!verdict.ok()) {
        search.why = verdict.error().what();
        break;
      }
      search.verdict = *verdict;
      if (!verdict->refuted()) {
        if (verdict->rung == Rung::all_sizes) {
          search.rule = shown(tried, *verdict);
          break;
        }
        // Perhaps another one is.
        search.why = "the guard is not proved: " + verdict->stopped;
        std::erase(atoms, guard.back());
        continue;
      }
      bad_.push_back(verdict->identity.counterexample->sizes);
    }
    search.true_sizes = good_.size();
    search.false_sizes = bad_.size();
    if (!search.rule && search.why.empty()) search.why = "each guard was refuted";
    return search;
  }

 private:
  static Rule shown(Rule rule, const RuleVerdict& verdict) {
    say(rule, verdict);
    return rule;
  }

  // Where both sides agree, and where they do not.
  Status sort_sizes() {
    for (Bindings& sizes : small_sizes(rule_, values_of(rule_.symbols().size()), kMaxSizes)) {
      const Result<std::optional<Counterexample>> found =
          test_at(rule_, sizes, options_.verify.seed);
      if (!found.ok()) return std::move(found).error();
      (*found ? bad_ : good_).push_back(std::move(sizes));
    }
    return {};
  }

  const Rule& rule_;
  const GuardOptions& options_;
  std::vector<Bindings> good_, bad_;
};

}  // namespace

Result<GuardSearch> infer_guard(const Rule& rule, const GuardOptions& options) {
  return Inference(rule, options).run();
}

}  // namespace hone
