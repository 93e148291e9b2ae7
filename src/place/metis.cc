#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "place/solver_program.h"
#include "place/sort_by.h"

// Parts by METIS (Karypis and Kumar 1998), with its program gpmetis. A vertex is a unit and has two
// weights: its time, of which each part gets its device's share, and its bytes. The imbalance of
// bytes that METIS may leave is what memory leaves. It knows no pins, so units move afterwards: to
// devices that can have them, and from devices that are too full.

namespace hone {
namespace {

constexpr size_t kMostVertices = 200'000;
constexpr double kWholeWeight = 1 << 28;  // METIS counts in 32 bits
constexpr double kTimeImbalance = 1.1;
constexpr double kLeastShare = 1e-6;   // METIS refuses a share of 0
constexpr double kSpareMemory = 0.97;  // METIS keeps to its limits about

class MetisGraph {
 public:
  explicit MetisGraph(PlaceRun& run) : run_(run), units_(run.units().units()) {
    double all = 0;
    for (const PlaceUnit& unit : units_) {
      double least = kCannotRun;
      for (const uint32_t d : unit.devices) least = std::min(least, unit.seconds[d]);
      seconds_.push_back(least);
      all += least;
      held_ += static_cast<double>(unit.held);
    }
    for (double& one : seconds_)
      one = all > 0 ? one / all : 1.0 / static_cast<double>(seconds_.size());
    for (const PlaceDevice& device : run.judge().devices()) memory_ += room_of(device);
    find_edges();
  }

  bool has_edges() const { return edge_count_ > 0; }

  // In the form of METIS's manual: fmt 011, vertex weights and edge weights.
  std::string text() const {
    std::string out =
        fmt::format("{} {} 011 {}\n", units_.size(), edge_count_, has_memory() ? 2 : 1);
    for (size_t u = 0; u < units_.size(); ++u) {
      out += std::to_string(weight(seconds_[u]));
      if (has_memory())
        out += fmt::format(" {}", weight(static_cast<double>(units_[u].held) / held_));
      for (const auto& [to, seconds] : edges_[u])
        out += fmt::format(" {} {}", to + 1, std::max<int64_t>(1, weight(seconds / crossing_)));
      out += "\n";
    }
    return out;
  }

  // The share of each part of each weight.
  std::string shares() const {
    std::vector<double> speed = speeds();
    std::string out;
    for (size_t d = 0; d < speed.size(); ++d) {
      out += fmt::format("{} : 0 = {:.9f}\n", d, speed[d]);
      if (has_memory())
        out += fmt::format("{} : 1 = {:.9f}\n", d,
                           std::max(room_of(run_.judge().devices()[d]) / memory_, kLeastShare));
    }
    return out;
  }

  std::string imbalance() const {
    if (!has_memory()) return fmt::format("{}", kTimeImbalance);
    const double room = std::clamp(kSpareMemory * memory_ / held_, 1.001, 1000.0);
    return fmt::format("{} {:.4f}", kTimeImbalance, room);
  }

  // A line for each unit; none: the lines name no parts.
  std::optional<std::vector<uint32_t>> read(std::string_view parts) const {
    std::vector<uint32_t> part;
    for (const std::string_view line : split_lines(parts)) {
      if (trim(line).empty()) continue;
      const Result<int64_t> one = parse_int(trim(line));
      if (!one.ok() || *one < 0 || std::cmp_greater_equal(*one, run_.problem().devices()))
        return std::nullopt;
      part.push_back(static_cast<uint32_t>(*one));
    }
    if (part.size() != units_.size()) return std::nullopt;
    return part;
  }

  // Units that are where they cannot be move, then the largest ones of what is too full.
  void mend(std::vector<uint32_t>& part, double share) const {
    std::vector<double> room;
    for (const PlaceDevice& device : run_.judge().devices())
      room.push_back(static_cast<double>(device.memory));
    const auto roomiest = [&](size_t u) {
      return *std::ranges::max_element(units_[u].devices, {}, [&](uint32_t d) { return room[d]; });
    };
    for (size_t u = 0; u < units_.size(); ++u) {
      if (!std::ranges::binary_search(units_[u].devices, part[u])) part[u] = roomiest(u);
      room[part[u]] -= units_[u].bytes(share);
    }
    std::vector<uint32_t> order(units_.size());
    std::iota(order.begin(), order.end(), 0);
    sort_by(order, [&](uint32_t u) { return -units_[u].bytes(share); });
    for (const uint32_t u : order) {
      const uint32_t to = roomiest(u);
      const double bytes = units_[u].bytes(share);
      if (room[part[u]] >= 0 || bytes <= 0 || room[to] < bytes) continue;
      room[part[u]] += bytes;
      room[to] -= bytes;
      part[u] = to;
    }
  }

 private:
  bool has_memory() const { return held_ > 0; }
  // A host may have far more memory than all nodes need; what is beyond that gives no share.
  double room_of(const PlaceDevice& device) const {
    return std::clamp(static_cast<double>(device.memory), 1.0, std::max(held_, 1.0));
  }
  static int64_t weight(double share) { return std::llround(share * kWholeWeight); }

  // The part of the work per second that each device does.
  std::vector<double> speeds() const {
    std::vector<double> own(run_.problem().devices()), least = own;
    for (size_t u = 0; u < units_.size(); ++u)
      for (const uint32_t d : units_[u].devices) {
        own[d] += units_[u].seconds[d];
        least[d] += *std::ranges::min_element(units_[u].seconds);
      }
    double sum = 0;
    for (size_t d = 0; d < own.size(); ++d)
      sum += own[d] =
          own[d] > 0 && least[d] > 0 ? std::max(least[d] / own[d], kLeastShare) : kLeastShare;
    for (double& one : own) one /= sum;
    return own;
  }

  void find_edges() {
    edges_.resize(units_.size());
    for (const PlaceTensor& tensor : run_.problem().tensors) {
      const uint32_t from = run_.units().of(tensor.maker);
      for (const uint32_t user : tensor.users) {
        const uint32_t to = run_.units().of(user);
        if (from == to) continue;
        const double share = tensor.bytes / static_cast<double>(tensor.users.size());
        edges_[from][to] += share;
        edges_[to][from] += share;
        crossing_ += 2 * share;
      }
    }
    for (const auto& edges : edges_) edge_count_ += edges.size();
    edge_count_ /= 2;
    crossing_ = std::max(crossing_, 1e-300);
  }

  PlaceRun& run_;
  const std::vector<PlaceUnit>& units_;
  std::vector<double> seconds_;
  std::vector<std::map<uint32_t, double>> edges_;  // of each unit: bytes to others
  size_t edge_count_ = 0;
  double held_ = 0, memory_ = 0, crossing_ = 0;
};

Result<std::vector<uint32_t>> divided_by_metis(PlaceRun& run, const MetisGraph& graph) {
  const PlaceSolver& solver = run.options().solver;
  const TempDir folder = HONE_TRY(TempDir::create(solver.scratch));
  const std::filesystem::path file = folder.path() / "place.graph",
                              shares = folder.path() / "place.shares";
  const uint32_t parts = run.problem().devices();
  HONE_TRY(write_file_atomic(file, graph.text()));
  HONE_TRY(write_file_atomic(shares, graph.shares()));
  const double left =
      std::clamp(run.options().seconds - run.seconds_here(), 1.0, kMostSolverSeconds);
  const ProcessResult done =
      HONE_TRY(run_process(solver.metis.string(),
                           {"-tpwgts=" + shares.string(), "-ubvec=" + graph.imbalance(), "-ncuts=4",
                            fmt::format("-seed={}", run.options().seed % 1'000'000), file.string(),
                            std::to_string(parts)},
                           {.wall_seconds = left}, run.options().cancel));
  const Result<std::string> text =
      read_file(folder.path() / fmt::format("place.graph.part.{}", parts), int64_t{1} << 26);
  const std::optional<std::vector<uint32_t>> part = text.ok() ? graph.read(*text) : std::nullopt;
  if (!part)
    return over_limit("gpmetis gave no parts: {}",
                      excerpt(done.timed_out ? "it took too long" : trim(done.err + done.out)));
  return *part;
}

}  // namespace

void place_metis(PlaceRun& run) {
  if (run.options().solver.metis.empty()) return run.note("skipped: there is no program 'gpmetis'");
  const size_t count = run.units().units().size();
  if (count > kMostVertices || run.problem().devices() < 2)
    return run.note(fmt::format(
        "skipped: METIS divides among several devices, and at most {} units", kMostVertices));
  const MetisGraph graph(run);
  if (!graph.has_edges()) return run.note("skipped: METIS takes no graph without edges");
  const Result<std::vector<uint32_t>> part = divided_by_metis(run, graph);
  if (!part.ok()) return run.note(fmt::format("skipped: {}", part.error().what()));
  for (const double share : {1.0, 0.5, 0.25, 0.1, 0.0}) {
    std::vector<uint32_t> mended = *part;
    graph.mend(mended, share);
    if (run.offer(mended) != kCannotRun) return;
  }
  run.note("its parts do not fit the memory of the devices");
}

}  // namespace hone
