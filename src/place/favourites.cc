#include <algorithm>
#include <map>

#include "base/text.h"
#include "place/solver_program.h"

// Favourite children as m-SCT finds them (Hanen and Munier 1995; Baechi 2020). x of an edge is 0 if
// the child stays on its parent's device, so that nothing crosses. At most one edge out of a node
// may be 0, and at most one into it. The least end of the whole decides; x is rounded.

namespace hone {
namespace {

constexpr size_t kMostEdges = 20'000;
constexpr double kRounded = 0.5;     // below is 0
constexpr double kWholePath = 1000;  // the program's unit: its tolerances are absolute

struct FavouriteEdge {
  uint32_t from, to;
  double crossing;  // seconds of the message
};

std::vector<FavouriteEdge> edges_of(const PlaceRun& run) {
  double port = 0;
  for (const PlaceDevice& device : run.judge().devices()) port = std::max(port, device.port);
  std::map<std::pair<uint32_t, uint32_t>, double> crossing;
  for (const PlaceTensor& tensor : run.problem().tensors)
    for (const uint32_t user : tensor.users) {
      double& seconds = crossing[{tensor.maker, user}];
      seconds = std::max(seconds, tensor.bytes * port);
    }
  std::vector<FavouriteEdge> edges;
  for (const auto& [pair, seconds] : crossing) edges.push_back({pair.first, pair.second, seconds});
  return edges;
}

std::string sum_row(const std::vector<size_t>& edges) {
  if (edges.size() < 2) return "";
  std::string row;
  for (const size_t e : edges) row += fmt::format(" + x_{}", e);
  return row + fmt::format(" >= {}\n", edges.size() - 1);
}

std::string favourites_text(const PlaceRun& run, const std::vector<FavouriteEdge>& edges) {
  const PlaceProblem& problem = run.problem();
  const std::vector<double> urgency = run.judge().urgency();
  const double longest = std::max(std::ranges::max(urgency), 1e-300);
  const double scale = kWholePath / longest;
  std::vector<double> takes;
  for (const PlaceNode& node : problem.nodes)
    takes.push_back(scale * std::ranges::min(node.seconds));
  std::string text = "Minimize\n obj: w\nSubject To\n";
  std::vector<std::vector<size_t>> out(problem.nodes.size()), in(problem.nodes.size());
  for (size_t e = 0; e < edges.size(); ++e) {
    out[edges[e].from].push_back(e);
    in[edges[e].to].push_back(e);
    text += fmt::format(" s_{} - s_{}", edges[e].to, edges[e].from);
    if (edges[e].crossing > 0)
      text += fmt::format(" - {} x_{}", format_double(scale * edges[e].crossing), e);
    text += fmt::format(" >= {}\n", format_double(takes[edges[e].from]));
  }
  for (size_t i = 0; i < takes.size(); ++i)
    text += fmt::format(" w - s_{} >= {}\n", i, format_double(takes[i])) + sum_row(out[i]) +
            sum_row(in[i]);
  text += "Bounds\n";
  for (size_t e = 0; e < edges.size(); ++e) text += fmt::format(" 0 <= x_{} <= 1\n", e);
  return text + "End\n";
}

}  // namespace

Result<std::vector<uint32_t>> favourites_by_program(PlaceRun& run) {
  const std::vector<FavouriteEdge> edges = edges_of(run);
  if (edges.size() > kMostEdges)
    return over_limit("{} edges are more than {}", edges.size(), kMostEdges);
  const std::string solution = HONE_TRY(solved_by_cbc(run, favourites_text(run, edges)));
  if (!solution.starts_with("Optimal")) return over_limit("the linear program was not solved");
  std::vector<double> apart(edges.size());  // those that are 0 are not told
  for (const SolvedValue& one : solved_values(solution)) {
    if (!one.name.starts_with("x_")) continue;
    const Result<int64_t> edge = parse_int(one.name.substr(2));
    if (edge.ok() && *edge >= 0 && std::cmp_less(*edge, edges.size()))
      apart[static_cast<size_t>(*edge)] = one.value;
  }
  std::vector<uint32_t> child(run.problem().nodes.size(), UINT32_MAX);
  for (size_t e = 0; e < edges.size(); ++e)
    if (apart[e] < kRounded) child[edges[e].from] = edges[e].to;
  return child;
}

}  // namespace hone
