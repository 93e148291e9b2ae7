#include "shard/sharded_op.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace hone {
namespace {

// A factor in one tensor.
struct FactorPlace {
  size_t dim = 0;
  bool is_last = true;      // the innermost of its dim
  bool is_blocked = false;  // axes behind it do not fit the factors: nothing can follow
  MeshParts axes = {};
};

// One tensor, its axes dealt out to factors.
class FactoredTensor {
 public:
  FactoredTensor(const ShardingRule& rule, const TensorFactors& factors, DividedValue* value,
                 bool is_result)
      : rule_(rule), factors_(factors), value_(value), is_result_(is_result) {
    places_.resize(rule.factors.size());
    for (size_t d = 0; d < factors.size(); ++d) deal_out(d);
  }

  bool is_result() const { return is_result_; }
  int64_t elements() const { return value_->elements; }
  const FactorPlace* find(size_t f) const { return places_[f] ? &*places_[f] : nullptr; }

  // As many of the axes, which begin with those that the factor has, as this tensor can take.
  // Tensors without the factor can still forbid an axis.
  MeshParts fitting(size_t f, const MeshParts& wanted) const {
    const FactorPlace* place = find(f);
    const MeshParts have = place == nullptr ? MeshParts() : place->axes;
    if (place != nullptr && !is_prefix(have, wanted)) return have;
    if (place != nullptr && (!value_->dims[place->dim].is_open || place->is_blocked)) return have;
    MeshParts made = have;
    int64_t left =
        place == nullptr ? 0 : rule_.factors[f].size / std::max<int64_t>(1, count_of(have));
    for (MeshPart part : behind(have, wanted)) {
      const MeshPart asked = part;
      part = without_clash(f, part);
      if (place != nullptr && !place->is_last && part.size > 1) {
        part.size = left < 1 ? 0 : std::gcd(left, part.size);
        if (part.size == 1) part.size = 0;
        left /= std::max<int64_t>(1, part.size);
      }
      if (part.size > 0) made.push_back(part);
      if (part != asked) break;
    }
    return merged(made);
  }

  bool has_room(size_t f, const MeshParts& wanted) const {
    return find(f) != nullptr && find(f)->axes != wanted && is_prefix(find(f)->axes, wanted);
  }

  // The value gets the axes, as far as the factors before it in its dim are full.
  bool take(size_t f, const MeshParts& axes, int32_t number) {
    FactorPlace& place = *places_[f];
    place.axes = axes;
    MeshParts all;
    for (const int g : factors_[place.dim]) {
      const FactorPlace& one = *places_[static_cast<size_t>(g)];
      all.insert(all.end(), one.axes.begin(), one.axes.end());
      if (one.is_blocked) return false;
      if (count_of(one.axes) != rule_.factors[static_cast<size_t>(g)].size) break;
    }
    all = merged(all);
    DividedDim& dim = value_->dims[place.dim];
    if (all == dim.axes || !is_prefix(dim.axes, all)) return false;
    dim.axes = all;
    dim.brought_by = number;
    return true;
  }

 private:
  void deal_out(size_t d) {
    const DimFactors& list = factors_[d];
    MeshParts left = value_->dims[d].axes;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto f = static_cast<size_t>(list[i]);
      FactorPlace place = {.dim = d, .is_last = i + 1 == list.size()};
      if (place.is_last) {
        place.axes = left;
        left.clear();
      } else {
        int64_t room = rule_.factors[f].size;
        while (!left.empty() && room >= 1) {
          MeshPart& part = left.front();
          const int64_t taken = std::gcd(room, part.size);
          if (taken == 1 && part.size != 1) break;
          place.axes.push_back({part.axis, part.before, taken});
          room /= taken;
          if (taken == part.size) {
            left.erase(left.begin());
            continue;
          }
          part = {part.axis, part.end() / part.size * taken, part.size / taken};
          break;
        }
        place.is_blocked = room > 1 && !left.empty();
        if (place.is_blocked) left.clear();
      }
      places_[f] = std::move(place);
    }
  }

  MeshPart without_clash(size_t f, MeshPart part) const {
    const auto avoid = [&](const MeshParts& others) {
      for (const MeshPart& other : others)
        if (part.size > 0) part = cut_short(part, other);
    };
    avoid(value_->never);
    const FactorPlace* place = find(f);
    for (size_t d = 0; d < value_->dims.size(); ++d)
      if (place == nullptr || d != place->dim) avoid(value_->dims[d].axes);
    // Within its own dim, axes of other factors, and those that fit none.
    if (place == nullptr) return part;
    for (size_t g = 0; g < places_.size(); ++g)
      if (g != f && places_[g] && places_[g]->dim == place->dim) avoid(places_[g]->axes);
    return part;
  }

  const ShardingRule& rule_;
  const TensorFactors& factors_;
  DividedValue* value_;
  bool is_result_;
  std::vector<std::optional<FactorPlace>> places_;
};

std::vector<FactoredTensor> tensors_of(const ShardedOp& op) {
  std::vector<FactoredTensor> tensors;
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (op.operands[i] != nullptr)
      tensors.emplace_back(op.rule, op.rule.operands[i], op.operands[i], false);
  for (size_t i = 0; i < op.results.size(); ++i)
    tensors.emplace_back(op.rule, op.rule.results[i], op.results[i], true);
  return tensors;
}

bool may_change(const FactoredTensor& tensor, const OpDirections& directions) {
  return tensor.is_result() ? directions.to_results : directions.to_operands;
}

// If axes go to results alone, they come from operands alone.
bool may_give(const FactoredTensor& tensor, const OpDirections& directions) {
  return tensor.is_result() ? directions.to_operands
                            : directions.to_results || directions.to_operands;
}

bool is_along(const Factor& factor, const OpDirections& directions) {
  return !factor.is_blocked && (directions.along_permutations || factor.kind == FactorKind::pass);
}

// The longest list that no tensor contradicts.
MeshParts agreed(const std::vector<FactoredTensor>& tensors, size_t f,
                 const OpDirections& directions) {
  MeshParts found;
  bool is_cut = false;
  for (const FactoredTensor& tensor : tensors) {
    const FactorPlace* place = tensor.find(f);
    if (place == nullptr || place->axes.empty() || !may_give(tensor, directions)) continue;
    if (is_prefix(found, place->axes)) {
      if (!is_cut) found = place->axes;
    } else if (!is_prefix(place->axes, found)) {
      found = common_prefix(found, place->axes);
      is_cut = true;
    }
  }
  return found;
}

// The axes that no tensor of the op forbids.
MeshParts allowed(const std::vector<FactoredTensor>& tensors, size_t f, MeshParts wanted) {
  for (const FactoredTensor& tensor : tensors) {
    const FactorPlace* place = tensor.find(f);
    if (place != nullptr && is_prefix(wanted, place->axes)) continue;  // it has them all
    const MeshParts fit = tensor.fitting(f, wanted);
    if (place == nullptr || is_prefix(place->axes, wanted)) wanted = fit;
  }
  return wanted;
}

bool cautiously(const ShardedOp& op, std::vector<FactoredTensor>& tensors,
                const OpDirections& directions, int32_t number) {
  bool changed = false;
  for (size_t f = 0; f < op.rule.factors.size(); ++f) {
    if (!is_along(op.rule.factors[f], directions)) continue;
    const MeshParts axes = allowed(tensors, f, agreed(tensors, f, directions));
    for (FactoredTensor& tensor : tensors)
      if (may_change(tensor, directions) && tensor.has_room(f, axes))
        changed = tensor.take(f, axes, number) || changed;
  }
  return changed;
}

struct Source {
  size_t factor;
  size_t tensor;
  int64_t elements;
  int64_t count;
};

// Larger values first; where all are of one size, what is divided more often.
std::vector<Source> sources(const ShardedOp& op, const std::vector<FactoredTensor>& tensors,
                            const OpDirections& directions) {
  std::vector<Source> found;
  for (size_t f = 0; f < op.rule.factors.size(); ++f) {
    if (!is_along(op.rule.factors[f], directions)) continue;
    std::optional<Source> best;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const FactorPlace* place = tensors[t].find(f);
      if (place == nullptr || place->axes.empty() || !may_give(tensors[t], directions)) continue;
      const Source one = {f, t, tensors[t].elements(), count_of(place->axes)};
      if (!best || one.count > best->count ||
          (one.count == best->count && one.elements > best->elements))
        best = one;
    }
    if (best) found.push_back(*best);
  }
  std::ranges::sort(found, [&](const Source& a, const Source& b) {
    if (a.elements != b.elements) return a.elements > b.elements;
    if (op.is_elementwise && a.count != b.count) return a.count > b.count;
    return std::pair(a.tensor, a.factor) < std::pair(b.tensor, b.factor);
  });
  return found;
}

bool boldly(const ShardedOp& op, std::vector<FactoredTensor>& tensors,
            const OpDirections& directions, int32_t number) {
  bool changed = false;
  for (const Source& source : sources(op, tensors, directions)) {
    const MeshParts axes = tensors[source.tensor].find(source.factor)->axes;
    for (FactoredTensor& tensor : tensors) {
      if (!may_change(tensor, directions) || tensor.find(source.factor) == nullptr) continue;
      const MeshParts fit = tensor.fitting(source.factor, axes);
      if (tensor.has_room(source.factor, fit))
        changed = tensor.take(source.factor, fit, number) || changed;
    }
  }
  return changed;
}

}  // namespace

bool propagate_through(const ShardedOp& op, const OpDirections& directions, bool is_cautious,
                       int32_t number) {
  if (!directions.to_operands && !directions.to_results) return false;
  std::vector<FactoredTensor> tensors = tensors_of(op);
  return is_cautious ? cautiously(op, tensors, directions, number)
                     : boldly(op, tensors, directions, number);
}

std::vector<std::vector<MeshParts>> axes_of_factors(const ShardedOp& op) {
  std::vector<std::vector<MeshParts>> all;
  for (const FactoredTensor& tensor : tensors_of(op)) {
    std::vector<MeshParts>& axes = all.emplace_back(op.rule.factors.size());
    for (size_t f = 0; f < axes.size(); ++f)
      if (const FactorPlace* place = tensor.find(f)) axes[f] = place->axes;
  }
  return all;
}

}  // namespace hone
