#include <algorithm>
#include <cmath>

#include "front/onnx/ops/indices.h"
#include "front/onnx/registry.h"

// The bias of T5's attention: it goes with how far a key is from its query, by buckets that are the
// wider the farther they are.

namespace hone::onnx_io {
namespace {

constexpr int64_t kMostDistance = int64_t{1} << 20;

// The bucket of each distance up to the one from which all are in the last bucket. Half of the
// buckets have one distance each; the rest are even on a logarithmic scale. In floats, as ONNX
// Runtime computes it.
Ints buckets_of(int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  const auto scale = static_cast<float>(buckets - exact);
  const float whole = std::log(static_cast<float>(max_distance) / static_cast<float>(exact));
  Ints table;
  for (int64_t distance = 0; distance <= max_distance; ++distance) {
    if (distance < exact) {
      table.push_back(distance);
      continue;
    }
    const float part = std::log(static_cast<float>(distance) / static_cast<float>(exact));
    const auto beyond = static_cast<int64_t>(part / whole * scale);
    table.push_back(std::min(exact + beyond, buckets - 1));
  }
  return table;
}

}  // namespace

// The table is declared [buckets, heads], but holds the buckets of a head one after the other.
void map_relative_position_bias(Node& n) {
  Value table = n.in(0);
  n.require_rank(table, "bias_table", 2, 2);
  if (!table.type().is_static())
    n.unsupported("bias_table is {}, its sizes must be known", table.type().to_string());
  const int64_t all = table.dim(0).value(), heads = table.dim(1).value();
  const int64_t max_distance = n.integer("max_distance");
  const bool both_ways = n.flag("is_bidirectional");
  const int64_t buckets = both_ways ? all / 2 : all;
  if (buckets < 2 || all > kMostDistance) n.bad("bias_table has {} buckets", all);
  if (max_distance <= buckets / 2 || max_distance > kMostDistance)
    n.bad("max_distance is {}, for {} buckets", max_distance, buckets);
  const Dims queries = n.sizes(1), keys = n.sizes(2);
  if (queries.size() != 1 || keys.size() != 1) n.bad("a length must be one number");
  if (!(queries[0] == keys[0]))
    n.unsupported("{} queries and {} keys: their numbers must be the same", queries[0].to_string(),
                  keys[0].to_string());
  Builder& b = n.builder();
  const Dims square = {queries[0], keys[0]};
  Value away = iota(b, DType::i64, square, 1) - iota(b, DType::i64, square, 0);
  Value back = maximum(-away, 0);  // keys behind a query
  Value distance = both_ways ? unary(Opcode::abs, away) : back;
  distance = minimum(distance, static_cast<double>(max_distance));
  Value bucket = take(integers(b, buckets_of(buckets, max_distance)), distance);
  if (both_ways)
    bucket = bucket + cast(compare("gt", away, 0), DType::i64) * static_cast<double>(buckets);
  n.out(unsqueeze(take(reshape(table, {heads, all}), bucket, 1), 0));
}

}  // namespace hone::onnx_io
