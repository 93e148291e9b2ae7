#include "shard/batch_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/text.h"

namespace hone {

namespace {

struct Chosen {
  size_t input;
  int dim;
};

// "x" or "x:1". A name may have a colon of its own.
Result<Chosen> parse_chosen(const Graph& graph, const std::string& text) {
  std::vector<std::string> names;
  for (ValueId v : graph.inputs()) names.emplace_back(graph.name(v));
  const auto find = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
  };
  if (const size_t whole = find(text); whole < names.size()) return Chosen{whole, 0};
  const size_t colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  const size_t input = find(name);
  if (input == names.size())
    return usage_error("no input is called '{}'", escape(name))
        .with_hint(names.size() <= 20 ? fmt::format("the inputs are {}", join(names, ", "))
                                      : did_you_mean(name, names));
  const Result<int64_t> dim = parse_int(std::string_view(text).substr(colon + 1));
  if (!dim.ok() || *dim < 0)
    return usage_error("'{}' is no dim of input '{}'", excerpt(text.substr(colon + 1)), name);
  return Chosen{input, static_cast<int>(std::min<int64_t>(*dim, kMaxRank))};
}

Result<BatchInputs> as_chosen(const Graph& graph, std::span<const Type> types,
                              std::span<const std::string> chosen) {
  BatchInputs batch{.rows = INT64_MAX, .dims = std::vector<int>(types.size(), kWhole)};
  for (const std::string& text : chosen) {
    const auto [input, dim] = HONE_TRY(parse_chosen(graph, text));
    const Type type = types[input];
    if (dim >= type.rank())
      return usage_error("input '{}' is {}, which has no dim {}", graph.name(graph.inputs()[input]),
                         type.to_string(), dim);
    batch.dims[input] = dim;
    batch.rows = std::min(batch.rows, type.dim(dim).value());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (batch.dims[i] == kWhole || batch.rows == 0) continue;
    const int64_t size = types[i].dim(batch.dims[i]).value();
    if (size % batch.rows != 0)
      return usage_error("dim {} of input '{}' has {} elements, no multiple of the {} rows",
                         batch.dims[i], graph.name(graph.inputs()[i]), size, batch.rows);
  }
  return batch;
}

}  // namespace

Result<BatchInputs> batch_inputs(const Graph& graph, std::span<const Type> types,
                                 std::span<const std::string> chosen) {
  if (!chosen.empty()) return as_chosen(graph, types, chosen);
  BatchInputs batch{.dims = std::vector<int>(types.size(), kWhole)};
  std::optional<Dim> rows;
  for (size_t i = 0; i < types.size(); ++i) {
    const Type open = graph.type(graph.inputs()[i]);
    if (open.rank() == 0 || (rows && open.dim(0) != *rows)) continue;
    rows = open.dim(0);
    batch.rows = types[i].dim(0).value();
    batch.dims[i] = 0;
  }
  if (!rows)
    return unsupported("graph '{}' has no input with a dim, so it has no batch to divide",
                       graph.name());
  return batch;
}

std::vector<BatchShare> batch_shares(int64_t rows, int64_t devices) {
  return batch_shares(rows, std::vector<RowTimes>(static_cast<size_t>(devices)));
}

namespace {

// The rows that devices do by then, but one at least.
std::vector<int64_t> counts_at(double end, std::span<const RowTimes> times) {
  std::vector<int64_t> counts;
  for (const RowTimes& one : times)
    counts.push_back(static_cast<int64_t>(std::max(1.0, (end - one.start) / one.row)));
  return counts;
}

int64_t sum_of(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Finds the last end by which no row too many is done. Rows that are left go, one by one, to
// whoever is done with one more the soonest.
std::vector<int64_t> counts_by_speed(int64_t rows, std::span<const RowTimes> times) {
  double now = 0, later = INFINITY;
  for (const RowTimes& one : times)
    later = std::min(later, one.start + one.row * static_cast<double>(rows));
  constexpr int kHalvings = 100;  // more than a double has bits
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (now + later) / 2;
    (sum_of(counts_at(middle, times)) <= rows ? now : later) = middle;
  }
  std::vector<int64_t> counts = counts_at(now, times);
  for (int64_t left = rows - sum_of(counts); left > 0; --left) {
    const auto end_of_one_more = [&](size_t i) {
      return times[i].start + times[i].row * static_cast<double>(counts[i] + 1);
    };
    size_t soonest = 0;
    for (size_t i = 1; i < counts.size(); ++i)
      if (end_of_one_more(i) < end_of_one_more(soonest)) soonest = i;
    ++counts[soonest];
  }
  return counts;
}

}  // namespace

std::vector<BatchShare> batch_shares(int64_t rows, std::span<const RowTimes> times) {
  const auto used = static_cast<size_t>(std::clamp<int64_t>(rows, 1, std::ssize(times)));
  const std::vector<int64_t> counts =
      rows == 0 ? std::vector<int64_t>{0} : counts_by_speed(rows, times.first(used));
  std::vector<BatchShare> shares;
  int64_t first = 0;
  for (int64_t count : counts) {
    shares.push_back({rows, first, count, std::ssize(counts)});
    first += count;
  }
  return shares;
}

}  // namespace hone
