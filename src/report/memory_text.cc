#include "report/memory_text.h"

#include "alloc/uses.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ranges>
#include <tuple>

namespace hone {
namespace {

constexpr size_t kMostNames = 20;

std::string_view verdict_name(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::placed: return "placed";
    case MemoryVerdict::infeasible: return "infeasible";
    case MemoryVerdict::limit: return "limit";
  }
  return "unknown";
}

// Where no placement was found the height is 0.
bool has_height(const MemoryBounds& bounds) { return bounds.height >= bounds.bound; }

// Follows aliases to the buffer in whose memory a buffer lies, and remembers the answers.
class Roots {
 public:
  explicit Roots(const MemoryProblem& problem)
      : buffers_(problem.buffers), roots_(problem.buffers.size()) {}

  MemoryAlias of(uint32_t index) {  // and how far behind its begin
    std::vector<uint32_t> path;
    for (; !roots_[index] && buffers_[index].alias; index = buffers_[index].alias->of)
      path.push_back(index);
    MemoryAlias root = roots_[index].value_or(MemoryAlias{index, 0});
    for (uint32_t i : std::views::reverse(path)) {
      root.shift += buffers_[i].alias->shift;
      roots_[i] = root;
    }
    return root;
  }

 private:
  const std::vector<MemoryBuffer>& buffers_;
  std::vector<std::optional<MemoryAlias>> roots_;  // of aliases that were asked for
};

std::vector<MemoryUse> uses_at(const MemoryBuffer& buffer, int64_t moment) {
  std::vector<MemoryUse> uses = uses_of(buffer);
  std::erase_if(uses,
                [&](const MemoryUse& use) { return moment < use.begin || use.end <= moment; });
  return uses;
}

// Bytes that several aliases use count once.
int64_t bytes_at(const MemoryProblem& problem, std::span<const uint32_t> buffers, int64_t moment) {
  Roots roots(problem);
  std::vector<std::tuple<uint32_t, int64_t, int64_t>> used;  // root, from, to
  for (uint32_t index : buffers) {
    const auto [root, shift] = roots.of(index);
    for (const MemoryUse& use : uses_at(problem.buffers[index], moment))
      used.emplace_back(root, shift + use.low, shift + use.high);
  }
  std::ranges::sort(used);
  int64_t bytes = 0;
  std::tuple<uint32_t, int64_t> counted = {UINT32_MAX, 0};  // so far, of this root
  for (const auto& [root, from, to] : used) {
    const int64_t begin =
        std::get<0>(counted) == root ? std::max(from, std::get<1>(counted)) : from;
    bytes += std::max<int64_t>(to - begin, 0);
    counted = {root, std::max(to, begin)};
  }
  return bytes;
}

// If there are many, the largest.
std::string names_of(const MemoryProblem& problem, std::vector<uint32_t> buffers,
                     std::span<const std::string_view> ids) {
  const size_t more = buffers.size() - std::min(buffers.size(), kMostNames);
  if (more > 0) {
    std::ranges::partial_sort(buffers, buffers.begin() + kMostNames, {},
                              [&](uint32_t i) { return std::pair(-problem.buffers[i].size, i); });
    buffers.resize(kMostNames);
  }
  std::vector<std::string> names;
  for (uint32_t i : buffers) names.push_back(excerpt(ids[i]));
  return join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string capacity_text(int64_t capacity) {
  return capacity == kNoCapacity ? "" : fmt::format(", capacity {}", capacity);
}

}  // namespace

std::vector<std::string> memory_lines(const MemoryProblem& problem, const MemoryPlan& plan) {
  std::vector<int64_t> counts(plan.spaces.size());
  for (const MemoryBuffer& buffer : problem.buffers) ++counts.at(buffer.space);
  std::vector<std::string> lines;
  for (uint32_t space = 0; space < plan.spaces.size(); ++space) {
    const auto [height, bound] = plan.spaces[space];
    std::string line = fmt::format(
        "{}{} buffers: ", plan.spaces.size() > 1 ? fmt::format("space {}, ", space) : "",
        counts[space]);
    if (has_height(plan.spaces[space])) {
      line += fmt::format("height {}, bound {}, gap {}", height, bound, height - bound);
      if (height > bound && bound > 0)
        line += fmt::format(" ({:.2g}%)",
                            100 * static_cast<double>(height - bound) / static_cast<double>(bound));
    } else {
      line += fmt::format("no placement was found, bound {}", bound);
    }
    lines.push_back(line + capacity_text(problem.capacity_of(space)));
  }
  return lines;
}

std::string witness_text(const MemoryProblem& problem, const MemoryPlan& plan,
                         std::span<const std::string_view> ids) {
  HONE_CHECK(!plan.witness.empty(), "there is no witness");
  const uint32_t space = problem.buffers[plan.witness.front()].space;
  const int64_t bytes = bytes_at(problem, plan.witness, plan.witness_moment);
  const int64_t capacity = problem.capacity_of(space);
  std::vector<uint32_t> buffers = plan.witness;
  // Where one moment says it all, aliases that are not in use then have no part in it.
  if (bytes > capacity)
    std::erase_if(buffers, [&](uint32_t i) {
      return uses_at(problem.buffers[i], plan.witness_moment).empty();
    });
  const bool is_one = buffers.size() == 1;
  std::string text = fmt::format(
      "{} {} not fit{}{}: {}; at moment {} {} {} bytes",
      is_one ? "a buffer" : fmt::format("{} buffers", buffers.size()), is_one ? "does" : "do",
      is_one ? "" : " together",
      capacity == kNoCapacity ? "" : fmt::format(" into the capacity {}", capacity),
      names_of(problem, buffers, ids), plan.witness_moment, is_one ? "it uses" : "they use", bytes);
  if (space_count(problem) > 1) text += fmt::format(" of space {}", space);
  if (bytes <= capacity)
    text += ", but none of the placements that are allowed is without overlaps";
  return text;
}

std::string memory_json(const MemoryProblem& problem, const MemoryPlan& plan, double seconds,
                        std::span<const std::string_view> ids) {
  nlohmann::ordered_json object;
  object["verdict"] = verdict_name(plan.verdict);
  object["buffers"] = problem.buffers.size();
  object["spaces"] = nlohmann::ordered_json::array();
  for (uint32_t space = 0; space < plan.spaces.size(); ++space) {
    nlohmann::ordered_json row;
    if (plan.verdict != MemoryVerdict::infeasible && has_height(plan.spaces[space]))
      row["height"] = plan.spaces[space].height;
    row["bound"] = plan.spaces[space].bound;
    if (problem.capacity_of(space) != kNoCapacity) row["capacity"] = problem.capacity_of(space);
    object["spaces"].push_back(std::move(row));
  }
  if (plan.verdict == MemoryVerdict::infeasible) {
    object["witness"] = nlohmann::ordered_json::array();
    for (uint32_t i : plan.witness) object["witness"].push_back(ids[i]);
    object["witness_moment"] = plan.witness_moment;
  }
  object["nodes"] = plan.counts.nodes;
  object["backtracks"] = plan.counts.backtracks;
  object["restarts"] = plan.counts.restarts;
  object["seconds"] = seconds;
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace hone
