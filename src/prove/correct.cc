#include "prove/correct.h"

#include <algorithm>
#include <numeric>

#include "rewrite/expand.h"
#include "rules/sizes.h"

namespace hone {
namespace {

constexpr int64_t kMaxEdge = 4;
constexpr size_t kSizesTried = 6;

// Where one result is wrong at some sizes.
struct Wrong {
  Ints dims;
  std::vector<bool> at;  // in row-major order

  bool all() const { return std::ranges::find(at, false) == at.end(); }
  // Calls `take` with the coordinate along a dim of each element, the place of its line, and
  // whether it is wrong.
  template <class Take>
  void for_each(size_t dim, const Take& take) const {
    int64_t inner = 1;
    for (size_t i = dim + 1; i < dims.size(); ++i) inner *= dims[i];
    for (size_t e = 0; e < at.size(); ++e) {
      const int64_t place = static_cast<int64_t>(e);
      const int64_t line = place / (inner * dims[dim]) * inner + place % inner;
      take(place / inner % dims[dim], line, at[e]);
    }
  }
};

// The positions along a dim fall into `before` first ones, `behind` last ones, and those between.
struct Edges {
  int64_t before = 0, behind = 0;
  int64_t classes() const { return before + 1 + behind; }
  bool is_whole() const { return before == 0 && behind == 0; }

  DimSpan span(int64_t first, int64_t last, Dim size) const {
    return {begin(first, size), begin(last + 1, size)};
  }
  // A position of the class.
  int64_t position(int64_t one, int64_t size) const {
    return one <= before ? one : size - behind + (one - before - 1);
  }

 private:
  Dim begin(int64_t one, Dim size) const {
    return one <= before ? Dim(one) : size - (behind - (one - before - 1));
  }
};

// The answer of all tested sizes about one result.
class Pattern {
 public:
  explicit Pattern(std::vector<Wrong> tested) : tested_(std::move(tested)) {}

  bool is_wrong_all_over() const { return std::ranges::all_of(tested_, &Wrong::all); }
  // Nothing: the wrong places are not told by a few edges.
  std::optional<std::vector<Edges>> edges() const {
    const size_t rank = tested_[0].dims.size();
    std::vector<Edges> all(rank);
    std::optional<size_t> best;
    std::vector<Edges> slabs(rank);
    for (size_t d = 0; d < rank; ++d) {
      const std::optional<Edges> found = slabs_along(d);
      if (!found) continue;
      slabs[d] = *found;
      if (!best || share(d, *found) < share(*best, slabs[*best])) best = d;
    }
    if (best) {
      all[*best] = slabs[*best];
      return all;
    }
    for (size_t d = 0; d < rank; ++d) {
      const std::optional<Edges> found = edges_along(d);
      if (!found) return std::nullopt;
      all[d] = *found;
    }
    return all;
  }

  // True if something is wrong in this box of classes at any size.
  bool is_wrong(const std::vector<Edges>& edges, const Ints& classes) const {
    return std::ranges::any_of(tested_, [&](const Wrong& wrong) {
      for (size_t e = 0; e < wrong.at.size(); ++e) {
        if (!wrong.at[e]) continue;
        int64_t rest = static_cast<int64_t>(e);
        bool is_inside = true;
        for (size_t d = classes.size(); d-- > 0; rest /= wrong.dims[d])
          is_inside &=
              class_of_position(edges[d], rest % wrong.dims[d], wrong.dims[d]) == classes[d];
        if (is_inside) return true;
      }
      return false;
    });
  }

 private:
  static int64_t class_of_position(const Edges& edges, int64_t at, int64_t size) {
    if (at < edges.before) return at;
    if (at < size - edges.behind) return edges.before;
    return edges.before + 1 + at - (size - edges.behind);
  }

  double share(size_t d, const Edges& edges) const {
    return static_cast<double>(edges.before + edges.behind) /
           static_cast<double>(tested_.back().dims[d]);
  }

  // Slabs along a dim that have all that is wrong, and leave something between.
  std::optional<Edges> slabs_along(size_t d) const {
    Edges edges;
    for (const Wrong& wrong : tested_) {
      wrong.for_each(d, [&](int64_t at, int64_t, bool is_wrong) {
        if (!is_wrong) return;
        const int64_t from_end = wrong.dims[d] - at;
        if (at < from_end)
          edges.before = std::max(edges.before, at + 1);
        else
          edges.behind = std::max(edges.behind, from_end);
      });
    }
    const bool leaves = std::ranges::any_of(
        tested_, [&](const Wrong& wrong) { return wrong.dims[d] > edges.before + edges.behind; });
    if (edges.before > kMaxEdge || edges.behind > kMaxEdge || !leaves) return std::nullopt;
    return edges;
  }

  // The least edges between which each line is wrong all along, or nowhere.
  std::optional<Edges> edges_along(size_t d) const {
    for (int64_t sum = 0; sum <= 2 * kMaxEdge; ++sum)
      for (int64_t before = std::max<int64_t>(0, sum - kMaxEdge); before <= std::min(sum, kMaxEdge);
           ++before) {
        const Edges edges = {before, sum - before};
        if (std::ranges::all_of(tested_, [&](const Wrong& w) { return is_even(w, d, edges); }))
          return edges;
      }
    return std::nullopt;
  }

  static bool is_even(const Wrong& wrong, size_t d, const Edges& edges) {
    const int64_t lines =
        static_cast<int64_t>(wrong.at.size()) / std::max<int64_t>(1, wrong.dims[d]);
    std::vector<int8_t> seen(static_cast<size_t>(lines), -1);
    bool even = true;
    wrong.for_each(d, [&](int64_t at, int64_t line, bool is_wrong) {
      if (at < edges.before || at >= wrong.dims[d] - edges.behind) return;
      int8_t& first = seen[static_cast<size_t>(line)];
      if (first < 0) first = is_wrong;
      even = even && first == static_cast<int8_t>(is_wrong);
    });
    return even;
  }

  std::vector<Wrong> tested_;
};

// Puts the right side together with corrections.
class Assembly {
 public:
  Assembly(const Graph& left, Graph& right, const Pattern& pattern, std::vector<Edges> edges,
           size_t output, std::vector<std::string>& boxes)
      : right_(right),
        pattern_(pattern),
        edges_(std::move(edges)),
        restriction_(left, right, {right.inputs().begin(), right.inputs().end()}),
        wanted_(left.outputs()[output]),
        given_(right.outputs()[output]),
        boxes_(boxes),
        box_(edges_.size()) {}

  Result<ValueId> run() { return along(0, Ints(edges_.size(), 0)); }

 private:
  enum class Part : uint8_t { right, wrong, mixed };

  // The known classes when those of the first dims are chosen.
  void collect(size_t d, Ints classes, std::vector<bool>& wrong) const {
    if (d == edges_.size()) {
      wrong.push_back(pattern_.is_wrong(edges_, classes));
      return;
    }
    for (classes[d] = 0; classes[d] < edges_[d].classes(); ++classes[d])
      collect(d + 1, classes, wrong);
  }

  Result<ValueId> along(size_t d, Ints classes) {
    std::vector<bool> wrong;
    collect(d, classes, wrong);
    const bool is_mixed = std::ranges::find(wrong, !wrong[0]) != wrong.end();
    if (!is_mixed) return leaf(d, wrong[0]);
    const Dim size = right_.type(given_).dims()[d];
    std::vector<ValueId> parts;
    for (int64_t first = 0; first < edges_[d].classes();) {
      int64_t last = first;
      classes[d] = first;
      std::vector<bool> own;
      collect(d + 1, classes, own);
      for (; last + 1 < edges_[d].classes(); ++last) {
        Ints next_classes = classes;
        next_classes[d] = last + 1;
        std::vector<bool> next;
        collect(d + 1, next_classes, next);
        if (next != own) break;
      }
      box_[d] = edges_[d].span(first, last, size);
      parts.push_back(HONE_TRY(along(d + 1, classes)));
      first = last + 1;
    }
    if (parts.size() == 1) return parts[0];
    return right_.result(HONE_TRY(right_.append(
        Op::get(Opcode::concat, {{"axis", static_cast<int64_t>(d)}}).canonical(), parts)));
  }

  Result<ValueId> leaf(size_t d, bool is_wrong) {
    const std::span<const Dim> dims = right_.type(given_).dims();
    for (; d < box_.size(); ++d) box_[d] = {0, dims[d]};
    if (is_wrong) {
      boxes_.push_back(to_string(box_));
      return restriction_.part(wanted_, box_);
    }
    Dims start, limit;
    for (const DimSpan& span : box_) start.push_back(span.start), limit.push_back(span.limit);
    return right_.result(HONE_TRY(
        right_.append(Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}).canonical(),
                      std::vector{given_})));
  }

  Graph& right_;
  const Pattern& pattern_;
  const std::vector<Edges> edges_;
  Restriction restriction_;
  const ValueId wanted_, given_;
  std::vector<std::string>& boxes_;
  DimBox box_;
};

// The patterns of all results.
Result<std::vector<Pattern>> patterns_of(const Rule& rule, const Bindings& known, uint64_t seed) {
  Rng rng(seed);
  std::vector<Bindings> sizes = distinct_sizes(rule, kSizesTried, rng);
  for (Bindings& small : small_sizes(rule, 3, 64)) sizes.push_back(std::move(small));
  sizes.push_back(known);
  std::vector<std::vector<Wrong>> tested(rule.left.outputs().size());
  for (const Bindings& at : sizes) {
    const std::vector<Differences> found = HONE_TRY(differences_at(rule, at, seed));
    for (size_t o = 0; o < found.size(); ++o) tested[o].push_back({found[o].dims, found[o].at});
  }
  return std::vector<Pattern>(tested.begin(), tested.end());
}

}  // namespace

Result<Correction> infer_correction(const Rule& rule, const VerifyOptions& options) {
  Correction correction;
  correction.verdict = HONE_TRY(verify(rule, options));
  if (!correction.verdict.refuted()) return correction;
  correction.counterexample = correction.verdict.identity.counterexample;
  const auto every = [](Opcode) { return true; };
  const Graph left = HONE_TRY(expand_composites(rule.left, every));
  Rule corrected = rule;
  const std::vector<Pattern> patterns =
      HONE_TRY(patterns_of(rule, correction.counterexample->sizes, options.seed));
  std::vector<ValueId> outputs;
  for (size_t o = 0; o < patterns.size(); ++o) {
    if (patterns[o].is_wrong_all_over()) {
      correction.why = fmt::format("all of result {} is wrong", o);
      return correction;
    }
    std::optional<std::vector<Edges>> edges = patterns[o].edges();
    if (!edges) {
      correction.why = fmt::format("a few boxes do not hold all wrong elements of result {}", o);
      return correction;
    }
    outputs.push_back(HONE_TRY(
        Assembly(left, corrected.right, patterns[o], std::move(*edges), o, correction.boxes)
            .run()));
  }
  corrected.right.set_outputs(outputs);
  correction.verdict = HONE_TRY(verify(corrected, options));
  if (correction.verdict.refuted()) {
    correction.why = "with corrections, " + correction.verdict.identity.counterexample->to_string();
  } else if (correction.verdict.rung != Rung::all_sizes) {
    correction.why = "with corrections it is not proved: " + correction.verdict.stopped;
  } else {
    say(corrected, correction.verdict);
    correction.rule = std::move(corrected);
  }
  return correction;
}

}  // namespace hone
