#include "shard/reshard.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/checked_math.h"

namespace hone {
namespace {

constexpr std::string_view kKindNames[] = {
    "slice", "resize", "all_gather", "all_to_all", "reduce_scatter", "all_reduce", "permute"};

// The sizes with the padding of the last parts.
std::vector<int64_t> padded_sizes(const ShardLayout& layout, std::vector<int64_t> sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t count = count_of(layout.dims[d]);
    sizes[d] = ceil_div(sizes[d], count) * count;
  }
  return sizes;
}

// Cuts axes where one of the layouts cuts them, so that steps move whole parts.
class CutAxes {
 public:
  void look(const ShardLayout& layout) {
    for (const MeshParts& dim : layout.dims) look(dim);
    look(layout.partial);
  }
  ShardLayout cut(const ShardLayout& layout) const {
    ShardLayout made;
    for (const MeshParts& dim : layout.dims) made.dims.push_back(cut(dim));
    made.partial = cut(layout.partial);
    return made;
  }

 private:
  void look(const MeshParts& parts) {
    for (const MeshPart& part : parts) {
      ends_[part.axis].insert(part.before);
      ends_[part.axis].insert(part.end());
    }
  }
  MeshParts cut(const MeshParts& parts) const {
    MeshParts made;
    for (const MeshPart& part : parts) {
      MeshPart rest = part;
      for (const int64_t end : ends_.at(part.axis)) {
        if (end <= rest.before || end >= part.end()) continue;
        if (end % rest.before != 0 || part.end() % end != 0) continue;
        made.push_back({part.axis, rest.before, end / rest.before});
        rest = {part.axis, end, part.end() / end};
      }
      made.push_back(rest);
    }
    return made;
  }
  std::map<size_t, std::set<int64_t>> ends_;
};

// The search has layouts as short texts: the numbers of the parts of each dim, and of the partial
// ones behind them. An end stands behind each list. Last come the dims that have the padding of the
// given layout still, where the wanted one has another.
//
// It goes on from the layout whose way so far, with the least price of the rest, is the cheapest.
// Devices that differ in their place along a part alone get data of each other by exchanges along
// this part, or by a permute. So the rest takes at least one permute, or the sum over all parts of
// one exchange each. Its bytes are those that have to come from other places along the part.
class ReshardSearch {
 public:
  ReshardSearch(const ShardLayout& from, ShardLayout target, const std::vector<int64_t>& sizes,
                int64_t element_bytes, const ReshardPrice& price)
      : from_(from),
        target_(std::move(target)),
        given_sizes_(padded_sizes(from, sizes)),
        sizes_(padded_sizes(target_, sizes)),
        element_bytes_(element_bytes),
        price_(price) {}

  std::vector<ReshardStep> find() {
    number_parts(from_);
    number_parts(target_);
    if (parts_.size() > kMostParts) return through_whole();
    wanted_ = text_of(target_);
    wanted_lists_ = lists_of(wanted_);
    prepare_least();
    std::string given = text_of(from_);
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (given_sizes_[d] != sizes_[d]) given += letter_of_dim(d);
    reach(std::move(given), 0, std::nullopt, -1);
    while (!waiting_.empty() && best_.size() < kMostLayouts) {
      const size_t number = std::get<size_t>(waiting_.top());
      waiting_.pop();
      if (found_[number].is_done) continue;
      found_[number].is_done = true;
      if (found_[number].is_guessed)
        price(number);
      else if (found_[number].layout == wanted_)
        return path(number);
      else
        extend(number);
    }
    return through_whole();
  }

 private:
  // More layouts than this come of many axes and dims; then any way will do.
  static constexpr size_t kMostLayouts = 2000;
  static constexpr size_t kMostParts = 200;
  static constexpr char kEnd = 0;

  void number_parts(const ShardLayout& layout) {
    const auto number = [&](const MeshParts& parts) {
      for (const MeshPart& part : parts)
        if (std::ranges::find(parts_, part) == parts_.end()) parts_.push_back(part);
    };
    for (const MeshParts& dim : layout.dims) number(dim);
    number(layout.partial);
  }

  std::string text_of(const ShardLayout& layout) const {
    std::string text;
    const auto add = [&](const MeshParts& parts) {
      for (const MeshPart& part : parts)
        text += static_cast<char>(1 + (std::ranges::find(parts_, part) - parts_.begin()));
      text += kEnd;
    };
    for (const MeshParts& dim : layout.dims) add(dim);
    add(layout.partial);
    return text;
  }

  static char letter_of_dim(size_t d) { return static_cast<char>(1 + d); }

  const MeshPart& part_of(char letter) const {
    return parts_[static_cast<size_t>(static_cast<uint8_t>(letter) - 1)];
  }

  // Makes the value whole, then takes the parts.
  std::vector<ReshardStep> through_whole() const {
    ShardLayout at = from_;
    const auto held = [&] { return part_bytes(at, given_sizes_, element_bytes_); };
    std::vector<ReshardStep> steps;
    while (!at.partial.empty()) {
      const MeshPart part = at.partial.back();
      at.partial.pop_back();
      steps.push_back({.kind = ReshardKind::all_reduce,
                       .part = part,
                       .bytes = 2 * (held() / part.size * (part.size - 1))});
    }
    for (size_t d = 0; d < sizes_.size(); ++d)
      for (MeshParts& parts = at.dims[d]; !parts.empty(); parts.pop_back())
        steps.push_back({.kind = ReshardKind::all_gather,
                         .part = parts.back(),
                         .from = d,
                         .bytes = held() * (parts.back().size - 1)});
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (given_sizes_[d] != sizes_[d]) steps.push_back(resized(d));
      for (const MeshPart& part : target_.dims[d])
        steps.push_back({.kind = ReshardKind::slice, .part = part, .to = d});
    }
    return steps;
  }

  ReshardStep resized(size_t d) const {
    return {.kind = ReshardKind::resize, .part = {}, .to = d, .size = sizes_[d]};
  }

  struct Found {
    std::string layout;
    double price;
    int depth;
    std::optional<ReshardStep> step;
    int before;
    bool is_done = false;
    bool is_guessed = false;  // the price is that before the step: its own takes long to tell
  };

  std::vector<ReshardStep> path(size_t number) const {
    std::vector<ReshardStep> steps;
    for (int at = static_cast<int>(number); at >= 0; at = found_[static_cast<size_t>(at)].before)
      if (const auto& step = found_[static_cast<size_t>(at)].step) steps.push_back(*step);
    std::ranges::reverse(steps);
    return steps;
  }

  void reach(std::string layout, double price, std::optional<ReshardStep> step, int before) {
    const int depth = before < 0 ? 0 : found_[static_cast<size_t>(before)].depth + 1;
    const auto [best, is_new] = best_.try_emplace(layout, found_.size());
    if (!is_new) {
      Found& one = found_[best->second];
      if (one.is_done || std::pair(one.price, one.depth) <= std::pair(price, depth)) return;
      one.is_done = true;  // a dearer way
      best->second = found_.size();
    }
    waiting_.emplace(price + least_rest(layout), depth, found_.size());
    found_.push_back({std::move(layout), price, depth, step, before});
  }

  double price_of(const ReshardStep& step) const {
    return hone::price_of(step, element_bytes_, price_);
  }

  // No exchange gives each device these bytes from others along the part for less. Powers of two
  // are asked for, so that few have to be priced.
  double least_along(const MeshPart& part, int64_t bytes) {
    if (!price_) return static_cast<double>(bytes);
    const auto fewer = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
    const auto number = static_cast<size_t>(std::ranges::find(parts_, part) - parts_.begin());
    const auto [known, is_new] = least_.try_emplace({number, fewer}, 0.0);
    if (!is_new) return known->second;
    const double gathered =
        price_of({.kind = ReshardKind::all_gather, .part = part, .bytes = fewer});
    return known->second = std::min(
               gathered, price_of({.kind = ReshardKind::all_to_all, .part = part, .bytes = fewer}));
  }

  void prepare_least() {
    devices_ = given_sizes_ == sizes_ ? 1 : 0;  // with the padding of two layouts, nothing is known
    for (const MeshPart& part : parts_) devices_ *= part.size;
    for (size_t i = 0; i < parts_.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (clashes(parts_[i], parts_[k])) devices_ = 0;  // nor then
    least_permute_ = 0;
    if (devices_ == 0) return;
    for (const int64_t size : sizes_) elements_ *= size;
    places_.resize(parts_.size());
    for_each_place(wanted_, [&](char letter, Place place) { places_[index_of(letter)] = place; });
    least_permute_ = std::numeric_limits<double>::infinity();
    if (!wanted_lists_.is_empty(sizes_.size())) return;  // no permute makes sums
    for (const MeshPart& part : parts_)
      least_permute_ = std::min(least_permute_, least_along(part, wanted_lists_.held));
  }

  // Where a list has a part, and how many parts those before it make.
  struct Place {
    size_t list = SIZE_MAX;
    int64_t before = 1;
  };
  static size_t index_of(char letter) {
    return static_cast<size_t>(static_cast<uint8_t>(letter) - 1);
  }

  template <class Each>
  void for_each_place(const std::string& layout, const Each& each) const {
    Place place = {.list = 0};
    for (const char letter : layout) {
      if (letter == kEnd) {
        place = {.list = place.list + 1};
        continue;
      }
      each(letter, place);
      place.before *= part_of(letter).size;
    }
  }

  // How many elements the devices at one place along a part need and do not have.
  int64_t missing(size_t part, const Place& have) const {
    const Place& want = places_[part];
    const size_t partial = sizes_.size();
    const int64_t size = parts_[part].size;
    if (want.list == partial) return 0;
    const int64_t needed = want.list == SIZE_MAX ? elements_ : elements_ / size;
    if (have.list == partial) return needed;
    const bool is_known = want.list != have.list || have.before % (want.before * size) == 0 ||
                          want.before % (have.before * size) == 0;
    return is_known ? needed / size * (size - 1) : 0;
  }

  // The least price of the way from the layout to the target.
  double least_rest(const std::string& layout) {
    if (devices_ == 0 || layout == wanted_) return 0;
    double sum = 0;
    for_each_place(layout, [&](char letter, const Place& place) {
      const size_t part = index_of(letter);
      // As many devices are at a place.
      const int64_t each = missing(part, place) * parts_[part].size / devices_;
      if (each > 0) sum += least_along(parts_[part], each * element_bytes_);
    });
    return std::min(sum, least_permute_);
  }

  // Where the lists of a layout end, and the parts of each dim.
  struct Lists {
    std::vector<size_t> ends = {};
    std::vector<int64_t> counts = {};
    std::vector<int64_t> sizes = {};  // of the dims, with padding
    int64_t held = 0;                 // bytes of a device

    size_t begin(size_t d) const { return d == 0 ? 0 : ends[d - 1] + 1; }
    bool is_empty(size_t d) const { return begin(d) == ends[d]; }
  };

  Lists lists_of(const std::string& layout) const {
    Lists made = {.ends = {}, .counts = {}, .sizes = sizes_, .held = element_bytes_};
    int64_t count = 1;
    size_t at = 0;
    for (; made.ends.size() <= sizes_.size(); ++at) {
      if (layout[at] != kEnd) {
        count *= part_of(layout[at]).size;
        continue;
      }
      made.ends.push_back(at);
      made.counts.push_back(count);
      count = 1;
    }
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (layout.find(letter_of_dim(d), at) != std::string::npos) made.sizes[d] = given_sizes_[d];
      made.held *= made.sizes[d] / made.counts[d];
    }
    return made;
  }

  bool is_free(const std::string& layout, const Lists& lists, const MeshPart& part) const {
    const std::string_view parts = std::string_view(layout).substr(0, lists.ends.back());
    return std::ranges::none_of(
        parts, [&](char letter) { return letter != kEnd && clashes(part, part_of(letter)); });
  }

  static bool fits(const Lists& lists, size_t d, const MeshPart& part) {
    return lists.sizes[d] % (lists.counts[d] * part.size) == 0;
  }

  // Each part that is wanted is one that some device has.
  bool has_parts_of_target(const Lists& lists) const {
    const size_t partial = sizes_.size();
    return lists.is_empty(partial) && wanted_lists_.is_empty(partial) &&
           lists.counts == wanted_lists_.counts && lists.sizes == sizes_;
  }

  std::vector<MeshParts> dims_of(const std::string& layout, const Lists& lists) const {
    std::vector<MeshParts> dims(sizes_.size());
    for (size_t d = 0; d < dims.size(); ++d)
      for (size_t at = lists.begin(d); at < lists.ends[d]; ++at)
        dims[d].push_back(part_of(layout[at]));
    return dims;
  }

  // Goes on by a step from a layout. It is priced when no other way may be cheaper.
  void go(std::string layout, ReshardStep step, size_t number) {
    const double so_far = found_[number].price;
    const int depth = found_[number].depth + 1, before = static_cast<int>(number);
    if (!price_ || !is_exchange(step.kind))
      return reach(std::move(layout), so_far + price_of(step), std::move(step), before);
    const double least =
        so_far +
        (step.kind == ReshardKind::permute ? least_permute_ : least_along(step.part, step.bytes));
    const auto known = best_.find(layout);
    if (known != best_.end() && found_[known->second].price <= least) return;
    waiting_.emplace(least + least_rest(layout), depth, found_.size());
    found_.push_back({std::move(layout), so_far, depth, std::move(step), before, false, true});
  }

  void price(size_t number) {
    Found guessed = std::move(found_[number]);
    const double price = guessed.price + price_of(*guessed.step);
    reach(std::move(guessed.layout), price, std::move(guessed.step), guessed.before);
  }

  void extend(size_t number) {
    const std::string at = found_[number].layout;
    const Lists lists = lists_of(at);
    const auto step = [&](std::string layout, ReshardStep one) {
      go(std::move(layout), std::move(one), number);
    };
    // The innermost part of a list goes; `to` gets it, if there is one.
    const auto moved = [&](size_t from, std::optional<size_t> to) {
      std::string made = at;
      const char letter = made[lists.ends[from] - 1];
      made.erase(lists.ends[from] - 1, 1);
      if (to) made.insert(lists.ends[*to] - (*to > from ? 1 : 0), 1, letter);
      return made;
    };
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const size_t has = lists.ends[d] - lists.begin(d);
      if (wanted_lists_.begin(d) + has < wanted_lists_.ends[d]) {
        const char letter = wanted_[wanted_lists_.begin(d) + has];
        const MeshPart& part = part_of(letter);
        if (lists.sizes[d] == sizes_[d] && is_free(at, lists, part) && fits(lists, d, part)) {
          std::string next = at;
          next.insert(lists.ends[d], 1, letter);
          step(std::move(next), {.kind = ReshardKind::slice, .part = part, .to = d});
        }
      }
      if (lists.is_empty(d)) {
        if (lists.sizes[d] == sizes_[d]) continue;
        std::string next = at;
        next.erase(next.find(letter_of_dim(d), lists.ends.back() + 1), 1);
        step(std::move(next), resized(d));
        continue;
      }
      const MeshPart part = part_of(at[lists.ends[d] - 1]);
      step(moved(d, std::nullopt), {.kind = ReshardKind::all_gather,
                                    .part = part,
                                    .from = d,
                                    .bytes = lists.held * (part.size - 1)});
      for (size_t e = 0; e < sizes_.size(); ++e)
        if (e != d && fits(lists, e, part))
          step(moved(d, e), {.kind = ReshardKind::all_to_all,
                             .part = part,
                             .from = d,
                             .to = e,
                             .bytes = lists.held / part.size * (part.size - 1)});
    }
    if (has_parts_of_target(lists))
      step(wanted_, {.kind = ReshardKind::permute,
                     .part = {},
                     .bytes = lists.held,
                     .have = dims_of(at, lists),
                     .want = target_.dims});
    const size_t partial = sizes_.size();
    if (lists.is_empty(partial)) return;
    const MeshPart part = part_of(at[lists.ends[partial] - 1]);
    const int64_t share = lists.held / part.size * (part.size - 1);
    step(moved(partial, std::nullopt),
         {.kind = ReshardKind::all_reduce, .part = part, .bytes = 2 * share});
    for (size_t d = 0; d < sizes_.size(); ++d)
      if (fits(lists, d, part))
        step(moved(partial, d),
             {.kind = ReshardKind::reduce_scatter, .part = part, .to = d, .bytes = share});
  }

  const ShardLayout from_, target_;
  const std::vector<int64_t> given_sizes_, sizes_;  // with the padding of each layout
  const int64_t element_bytes_;
  const ReshardPrice& price_;
  MeshParts parts_;
  std::string wanted_;
  Lists wanted_lists_;
  int64_t devices_ = 0;  // along all parts; 0: no least prices are known
  int64_t elements_ = 1;
  std::vector<Place> places_;                           // of the parts in the target
  std::map<std::pair<size_t, int64_t>, double> least_;  // by part and bytes
  double least_permute_ = 0;
  std::vector<Found> found_;
  std::unordered_map<std::string, size_t> best_;  // of those found
  using Waiting = std::tuple<double, int, size_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace

std::string_view name(ReshardKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

double price_of(const ReshardStep& step, int64_t element_bytes, const ReshardPrice& price) {
  return price ? price(step, element_bytes) : static_cast<double>(step.bytes);
}

std::vector<ReshardStep> reshard_steps(const ShardLayout& from, const ShardLayout& to,
                                       const std::vector<int64_t>& sizes, int64_t element_bytes,
                                       const ReshardPrice& price) {
  CutAxes axes;
  axes.look(from);
  axes.look(to);
  return ReshardSearch(axes.cut(from), axes.cut(to), sizes, element_bytes, price).find();
}

int64_t part_bytes(const ShardLayout& layout, const std::vector<int64_t>& sizes,
                   int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (size_t d = 0; d < sizes.size(); ++d) bytes *= ceil_div(sizes[d], count_of(layout.dims[d]));
  return bytes;
}

}  // namespace hone
