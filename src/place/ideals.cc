#include <algorithm>
#include <limits>
#include <unordered_map>

#include "place/blocks.h"
#include "place/placer.h"

// The least load of all contiguous splits. An ideal is a set of blocks that has all that lead to
// its own. A device gets the difference of two ideals, so a split is a chain of them.
//
// Only splits below a threshold are looked for, which rises until there is one. A tensor that costs
// more than the threshold wherever it crosses holds its blocks together, so few ideals are left.

namespace hone {
namespace {

constexpr size_t kMostIdeals = 60'000;
constexpr size_t kMostStates = size_t{1} << 25;  // ideals times numbers of devices that are left
constexpr double kFirstThreshold = 1.1;          // by the bound
constexpr double kRise = 1.3;
constexpr double kLeastSeconds = 1;
constexpr double kSlack =
    1e-9;  // of the threshold: sums are taken in other orders than the judge's

// Devices that are alike.
struct DeviceGroup {
  std::vector<uint32_t> devices;
  double port = 0;
  double memory = 0;
};

std::vector<DeviceGroup> device_groups(const PlaceRun& run) {
  const std::vector<PlaceDevice>& devices = run.judge().devices();
  std::vector<bool> has_pin(devices.size());
  for (const PlaceNode& node : run.problem().nodes)
    if (node.pinned != kAnywhere) has_pin[static_cast<size_t>(node.pinned)] = true;
  std::vector<DeviceGroup> groups;
  for (uint32_t d = 0; d < devices.size(); ++d) {
    const auto alike = std::ranges::find_if(groups, [&](const DeviceGroup& group) {
      const uint32_t first = group.devices[0];
      return !has_pin[first] && !has_pin[d] && devices[first] == devices[d];
    });
    if (alike != groups.end())
      alike->devices.push_back(d);
    else
      groups.push_back({{d}, devices[d].port, static_cast<double>(devices[d].memory)});
  }
  return groups;
}

// A block as the program sees it.
struct Piece {
  struct Use {
    uint32_t tensor;
    uint32_t users;
    bool makes;
  };
  std::vector<uint32_t> units;
  std::vector<double> seconds;  // by group; kCannotRun: not there
  double bytes = 0;
  std::vector<Use> uses;
};

class Ideals {
 public:
  Ideals(PlaceRun& run, double share)
      : run_(run),
        groups_(device_groups(run)),
        share_(share),
        block_of_(run.units().units().size()) {
    const auto& blocks = run.units().blocks();
    for (uint32_t b = 0; b < blocks.size(); ++b)
      for (const uint32_t u : blocks[b]) block_of_[u] = b;
  }

  enum class End : uint8_t { found, none, too_many, no_time };

  // A split whose load is below the threshold, the least one.
  End solve(double threshold, std::vector<uint32_t>& device_of_unit) {
    threshold_ = threshold * (1 - kSlack);
    make_pieces();
    if (const End end = enumerate(); end != End::found) return end;
    if (const End end = fill_table(); end != End::found) return end;
    return trace(device_of_unit) ? End::found : End::none;
  }

 private:
  // ---- Pieces ----------------------------------------------------------------------------------

  // No device but one, at most, can have it cross.
  bool is_too_dear(const PlaceTensor& tensor) const {
    size_t can = 0;
    for (const DeviceGroup& group : groups_)
      if (group.port * tensor.bytes < threshold_) can += group.devices.size();
    return can <= 1;
  }

  void make_pieces() {
    const auto& blocks = run_.units().blocks();
    std::vector<std::vector<uint32_t>> next(blocks.size());
    for (uint32_t b = 0; b < blocks.size(); ++b)
      for (const uint32_t before : run_.units().before()[b]) next[before].push_back(b);
    const auto join = [&](uint32_t a, uint32_t b) {
      next[a].push_back(b);
      next[b].push_back(a);
    };
    for (const PlaceTensor& tensor : run_.problem().tensors)
      if (is_too_dear(tensor))
        for (const uint32_t user : tensor.users)
          join(block_of_[run_.units().of(tensor.maker)], block_of_[run_.units().of(user)]);
    join_idle(next, join);
    const OrderedBlocks made = ordered_blocks(next);
    before_ = made.before;
    pieces_.assign(made.members.size(), {});
    for (size_t p = 0; p < pieces_.size(); ++p) {
      Piece& piece = pieces_[p];
      piece.seconds.assign(groups_.size(), 0);
      for (const uint32_t b : made.members[p])
        for (const uint32_t u : blocks[b]) add_unit(piece, u);
    }
    add_uses();
  }

  // A block that takes no time and has one neighbour is nowhere better than with it, unless memory
  // keeps it away.
  template <class Join>
  void join_idle(const std::vector<std::vector<uint32_t>>& next, const Join& join) {
    constexpr uint32_t kNone = UINT32_MAX, kSeveral = UINT32_MAX - 1;
    std::vector<uint32_t> neighbour(next.size(), kNone);
    const auto meet = [&](uint32_t a, uint32_t b) {
      if (a == b) return;
      neighbour[a] = neighbour[a] == kNone || neighbour[a] == b ? b : kSeveral;
    };
    for (const PlaceTensor& tensor : run_.problem().tensors)
      for (const uint32_t user : tensor.users) {
        const uint32_t a = block_of_[run_.units().of(tensor.maker)];
        const uint32_t b = block_of_[run_.units().of(user)];
        meet(a, b);
        meet(b, a);
      }
    double all = 0, least = std::numeric_limits<double>::infinity();
    for (const PlaceUnit& unit : run_.units().units()) all += unit.bytes(share_);
    for (const DeviceGroup& group : groups_) least = std::min(least, group.memory);
    const bool has_room_for_all = all <= least;
    for (uint32_t b = 0; b < next.size(); ++b) {
      if (neighbour[b] == kNone || neighbour[b] == kSeveral) continue;
      const bool is_idle = std::ranges::all_of(run_.units().blocks()[b], [&](uint32_t u) {
        const PlaceUnit& unit = run_.units().units()[u];
        return (has_room_for_all || unit.most == 0) &&
               std::ranges::all_of(unit.seconds, [](double seconds) { return seconds == 0; });
      });
      if (is_idle) join(b, neighbour[b]);
    }
  }

  void add_unit(Piece& piece, uint32_t u) {
    const PlaceUnit& unit = run_.units().units()[u];
    piece.units.push_back(u);
    piece.bytes += unit.bytes(share_);
    for (size_t g = 0; g < groups_.size(); ++g)
      piece.seconds[g] += unit.seconds[groups_[g].devices[0]];
  }

  void add_uses() {
    std::vector<uint32_t> piece_of(block_of_.size());
    for (uint32_t p = 0; p < pieces_.size(); ++p)
      for (const uint32_t u : pieces_[p].units) piece_of[u] = p;
    const std::vector<PlaceTensor>& tensors = run_.problem().tensors;
    for (uint32_t t = 0; t < tensors.size(); ++t) {
      std::unordered_map<uint32_t, uint32_t> users;
      for (const uint32_t user : tensors[t].users) ++users[piece_of[run_.units().of(user)]];
      const uint32_t maker = piece_of[run_.units().of(tensors[t].maker)];
      if (users.size() == 1 && users.contains(maker)) continue;  // it never crosses
      users.try_emplace(maker, 0);
      for (const auto& [piece, count] : users)
        pieces_[piece].uses.push_back({t, count, piece == maker});
    }
  }

  // ---- Ideals ----------------------------------------------------------------------------------

  struct Link {
    uint32_t piece;
    uint32_t smaller;  // the ideal without it
  };

  uint64_t* bits(size_t ideal) { return bits_.data() + ideal * words_; }
  bool has(size_t ideal, uint32_t piece) {
    return (bits(ideal)[piece / 64] >> (piece % 64) & 1) != 0;
  }
  static uint64_t mixed(uint32_t piece) {
    uint64_t x = (piece + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 31;
  }

  // The ideals by size, each with those that are smaller by one piece.
  End enumerate() {
    if (pieces_.size() >= kMostIdeals) return End::too_many;  // there are more ideals than pieces
    words_ = (pieces_.size() + 63) / 64;
    bits_.assign(words_, 0);
    links_.assign(1, {});
    std::vector<uint64_t> hashes = {0};
    std::unordered_multimap<uint64_t, uint32_t> known = {{0, 0}};
    for (uint32_t ideal = 0; ideal < links_.size(); ++ideal) {
      if (ideal % 1024 == 0 && has_no_time()) return End::no_time;
      for (uint32_t p = 0; p < pieces_.size(); ++p) {
        if (has(ideal, p) ||
            !std::ranges::all_of(before_[p], [&](uint32_t b) { return has(ideal, b); }))
          continue;
        const uint64_t hash = hashes[ideal] + mixed(p);
        const uint32_t larger = find_or_add(ideal, p, hash, known, hashes);
        if (links_.size() > kMostIdeals) return End::too_many;
        links_[larger].push_back({p, ideal});
      }
    }
    return End::found;
  }

  uint32_t find_or_add(uint32_t ideal, uint32_t piece, uint64_t hash,
                       std::unordered_multimap<uint64_t, uint32_t>& known,
                       std::vector<uint64_t>& hashes) {
    std::vector<uint64_t> wanted(bits(ideal), bits(ideal) + words_);
    wanted[piece / 64] |= uint64_t{1} << (piece % 64);
    const auto [first, last] = known.equal_range(hash);
    for (auto at = first; at != last; ++at)
      if (std::equal(wanted.begin(), wanted.end(), bits(at->second))) return at->second;
    const auto added = static_cast<uint32_t>(links_.size());
    bits_.insert(bits_.end(), wanted.begin(), wanted.end());
    links_.emplace_back();
    hashes.push_back(hash);
    known.emplace(hash, added);
    return added;
  }

  bool has_no_time() const {
    if (run_.options().cancel != nullptr && run_.options().cancel->cancelled()) return true;
    // With others behind it, it leaves them half. Trials do not count here, so that the same of
    // them give the same.
    const PlaceOptions& options = run_.options();
    const double share = options.by.empty() && options.trials == 0 ? 0.5 : 1;
    return run_.seconds_here() > std::max(kLeastSeconds, share * options.seconds);
  }

  // ---- The table -------------------------------------------------------------------------------

  // The nodes that one device would have, piece by piece.
  struct Set {
    std::vector<double> seconds;   // by group
    std::vector<uint32_t> cannot;  // by group: pieces that do not run there
    double bytes = 0;              // of memory
    double moved = 0;
    std::vector<uint32_t> users;  // by tensor
    std::vector<bool> makes;
  };

  bool crosses(const Set& set, uint32_t t) const {
    return set.makes[t] ? set.users[t] < run_.problem().tensors[t].users.size() : set.users[t] > 0;
  }

  void change(Set& set, uint32_t p, bool adds) const {
    const Piece& piece = pieces_[p];
    const double sign = adds ? 1 : -1;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (piece.seconds[g] == kCannotRun)
        set.cannot[g] += adds ? 1 : UINT32_MAX;
      else
        set.seconds[g] += sign * piece.seconds[g];
    }
    set.bytes += sign * piece.bytes;
    for (const Piece::Use& use : piece.uses) {
      const double bytes = run_.problem().tensors[use.tensor].bytes;
      if (crosses(set, use.tensor)) set.moved -= bytes;
      set.users[use.tensor] += adds ? use.users : -use.users;
      if (use.makes) set.makes[use.tensor] = adds;
      if (crosses(set, use.tensor)) set.moved += bytes;
    }
  }

  // The load on a device of each group; a group that cannot have it: kCannotRun. False: no larger
  // set can be on any, either.
  bool loads(const Set& set, std::vector<double>& loads) const {
    bool may_grow = false;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const bool can =
          set.cannot[g] == 0 && set.bytes <= groups_[g].memory && set.seconds[g] < threshold_;
      may_grow |= can;
      loads[g] = can ? set.seconds[g] + groups_[g].port * set.moved : kCannotRun;
    }
    return may_grow;
  }

  struct Cell {
    double least = kCannotRun;
    uint32_t smaller = 0;
    uint32_t group = 0;
  };

  End fill_table() {
    states_ = 1;
    strides_.clear();
    for (const DeviceGroup& group : groups_) {
      strides_.push_back(states_);
      states_ *= group.devices.size() + 1;
      if (states_ * links_.size() > kMostStates) return End::too_many;
    }
    cells_.assign(states_ * links_.size(), {});
    for (size_t s = 0; s < states_; ++s) cells_[s].least = 0;
    Set set = {std::vector<double>(groups_.size()),
               std::vector<uint32_t>(groups_.size()),
               0,
               0,
               std::vector<uint32_t>(run_.problem().tensors.size()),
               std::vector<bool>(run_.problem().tensors.size())};
    std::vector<uint32_t> seen(links_.size(), 0);
    for (uint32_t ideal = 1; ideal < links_.size(); ++ideal) {
      if (ideal % 64 == 0 && has_no_time()) return End::no_time;
      walk_below(ideal, set, seen);
    }
    return End::found;
  }

  // Goes through the smaller ideals, each once; the set is what they lack.
  void walk_below(uint32_t ideal, Set& set, std::vector<uint32_t>& seen) {
    struct Step {
      uint32_t at;
      uint32_t piece;  // that led here
      size_t next = 0;
    };
    std::vector<double> load(groups_.size());
    std::vector<Step> path = {{ideal, UINT32_MAX}};
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next == links_[step.at].size()) {
        if (step.piece != UINT32_MAX) change(set, step.piece, false);
        path.pop_back();
        continue;
      }
      const Link link = links_[step.at][step.next++];
      if (seen[link.smaller] == ideal) continue;
      seen[link.smaller] = ideal;
      change(set, link.piece, true);
      if (!loads(set, load)) {
        change(set, link.piece, false);
        continue;
      }
      enter_cells(ideal, link.smaller, load);
      path.push_back({link.smaller, link.piece});
    }
    // Rounding does not add up.
    std::ranges::fill(set.seconds, 0);
    set.bytes = set.moved = 0;
  }

  void enter_cells(uint32_t ideal, uint32_t smaller, const std::vector<double>& load) {
    Cell* const here = cells_.data() + size_t{ideal} * states_;
    const Cell* const there = cells_.data() + size_t{smaller} * states_;
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      if (!(load[g] < threshold_)) continue;
      const size_t most = groups_[g].devices.size() + 1;
      for (size_t s = 0; s < states_; ++s) {
        if (s / strides_[g] % most == 0) continue;
        const double value = std::max(load[g], there[s - strides_[g]].least);
        if (value < here[s].least) here[s] = {value, smaller, g};
      }
    }
  }

  bool trace(std::vector<uint32_t>& device_of_unit) {
    device_of_unit.assign(block_of_.size(), 0);
    size_t state = states_ - 1, ideal = links_.size() - 1;
    if (cells_[ideal * states_ + state].least == kCannotRun) return false;
    std::vector<size_t> used(groups_.size());
    while (ideal != 0) {
      const Cell& cell = cells_[ideal * states_ + state];
      const std::vector<uint32_t>& devices = groups_[cell.group].devices;
      // The first devices get what comes first.
      const uint32_t device = devices[devices.size() - 1 - used[cell.group]++];
      for (uint32_t p = 0; p < pieces_.size(); ++p)
        if (has(ideal, p) && !has(cell.smaller, p))
          for (const uint32_t u : pieces_[p].units) device_of_unit[u] = device;
      ideal = cell.smaller;
      state -= strides_[cell.group];
    }
    return true;
  }

  PlaceRun& run_;
  std::vector<DeviceGroup> groups_;
  double share_;
  double threshold_ = 0;
  std::vector<uint32_t> block_of_;  // by unit
  std::vector<Piece> pieces_;
  std::vector<std::vector<uint32_t>> before_;
  size_t words_ = 0;
  std::vector<uint64_t> bits_;            // of ideals: words_ each
  std::vector<std::vector<Link>> links_;  // of ideals
  size_t states_ = 0;                     // numbers of devices of each group that are left
  std::vector<size_t> strides_;
  std::vector<Cell> cells_;  // by ideal and state
};

// No placement has a greater load.
double greatest_load(const PlaceRun& run) {
  double sum = 0, port = 0;
  for (const PlaceUnit& unit : run.units().units()) {
    double most = 0;
    for (const double seconds : unit.seconds)
      if (seconds != kCannotRun) most = std::max(most, seconds);
    sum += most;
  }
  for (const PlaceDevice& device : run.judge().devices()) port = std::max(port, device.port);
  for (const PlaceTensor& tensor : run.problem().tensors) sum += 2 * port * tensor.bytes;
  return 1.001 * sum + 1e-15;
}

}  // namespace

void place_ideals(PlaceRun& run) {
  const double greatest = greatest_load(run);
  const double best =
      run.goal() == PlaceGoal::load && run.has_best() ? run.best_value() : kCannotRun;
  const double first = kFirstThreshold * place_bounds(run.judge()).of(PlaceGoal::load);
  for (const double share : {1.0, 0.0}) {
    Ideals ideals(run, share);
    for (double threshold = std::max(first, 1e-3 * greatest);; threshold *= kRise) {
      std::vector<uint32_t> device_of_unit;
      const Ideals::End end = ideals.solve(std::min({threshold, best, greatest}), device_of_unit);
      if (end == Ideals::End::too_many)
        return run.note(fmt::format("not exact: more than {} ideals", kMostIdeals));
      if (end == Ideals::End::no_time) return run.note("not exact: there was no time");
      if (end == Ideals::End::found) {
        if (run.offer(device_of_unit) != kCannotRun) return run.note("exact");
        break;  // memory over time: once more with less of it counted
      }
      if (threshold >= best) return run.note("exact: no contiguous split is better");
      if (threshold >= greatest) break;
    }
  }
  run.note("no contiguous split was found that fits the memory");
}

}  // namespace hone
