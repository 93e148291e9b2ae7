#include <algorithm>

#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

struct Grams {
  int64_t length;
  Ints pool;      // one gram after the other
  int64_t first;  // the number of the first gram among all
  int64_t count() const { return static_cast<int64_t>(pool.size()) / length; }
};

// The pool's grams by their length, as the starts in ngram_counts cut it.
std::vector<Grams> grams_of(Node& n, const Ints& pool, const Ints& starts) {
  std::vector<Grams> all;
  int64_t number = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    auto length = static_cast<int64_t>(i) + 1;
    int64_t begin = starts[i];
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
        (end - begin) % length != 0)
      n.bad("the grams of length {} are {} to {} of {} numbers", length, begin, end, pool.size());
    all.push_back({length, Ints(pool.begin() + begin, pool.begin() + end), number});
    number += all.back().count();
  }
  return all;
}

// How often each gram stands in each row, its elements `distance` apart: [rows, grams].
Value count_grams(Node& n, Value rows, const Grams& grams, int64_t distance) {
  int64_t span = (grams.length - 1) * distance;
  int64_t columns = rows.dim(1).value(), places = columns - span;
  if (places <= 0) return {};
  Value found;
  for (int64_t j = 0; j < grams.length; ++j) {
    Ints wanted;
    for (int64_t g = 0; g < grams.count(); ++g)
      wanted.push_back(grams.pool[static_cast<size_t>(g * grams.length + j)]);
    Type type = Type::get(rows.dtype(), {grams.count()});
    Value part = unsqueeze(slice(rows, 1, j * distance, j * distance + places), 2);
    Value same = compare("eq", part, n.builder().constant(Tensor::from_integers(type, wanted)));
    found = found ? binary(Opcode::and_, found, same) : same;
  }
  return reduce_sum(cast(found, DType::f32), {1});
}

// Column i of the result is the gram whose index says i; columns of no gram are 0.
Value placed(Node& n, Value counts, const Ints& indexes) {
  int64_t width = *std::max_element(indexes.begin(), indexes.end()) + 1;
  auto grams = static_cast<int64_t>(indexes.size());
  Ints source(static_cast<size_t>(width), grams);
  for (int64_t g = 0; g < grams; ++g)
    source[static_cast<size_t>(indexes[static_cast<size_t>(g)])] = g;
  Value with_none = pad(counts, {0, 0}, {0, 1});
  Type type = Type::get(DType::i64, {width});
  return take(with_none, n.builder().constant(Tensor::from_integers(type, source)), 1);
}

}  // namespace

// Only pools of integers: hone has no strings.
void map_tf_idf_vectorizer(Node& n) {
  if (n.has_attribute("pool_strings")) n.unsupported("its pool holds strings");
  std::string mode = n.word("mode", "TF");
  int64_t shortest = n.integer("min_gram_length"), longest = n.integer("max_gram_length");
  int64_t skips = n.integer("max_skip_count");
  Ints indexes = n.ints("ngram_indexes");
  std::vector<double> weights = n.reals("weights");
  std::vector<Grams> grams = grams_of(n, n.ints("pool_int64s"), n.ints("ngram_counts"));
  Value x = n.in(0);
  n.require_rank(x, "the operand", 1, 2);
  int64_t total = grams.empty() ? 0 : grams.back().first + grams.back().count();
  if (total == 0 || static_cast<int64_t>(indexes.size()) != total)
    n.bad("{} grams have {} indexes", total, indexes.size());
  for (int64_t index : indexes)
    if (index < 0 || index >= kMaxElements / 2) n.bad("index {} of a gram", index);
  if (skips < 0 || skips > 1000) n.bad("a skip count of {}", skips);
  if (!x.type().dims().back().is_static()) n.unsupported("rows of unknown length");
  Value rows = cast(x.rank() == 1 ? unsqueeze(x, 0) : x, DType::i64);

  std::vector<Value> parts;
  for (const Grams& group : grams) {
    if (group.count() == 0) continue;
    Value sum = n.builder().full(DType::f32, {rows.dim(0), group.count()}, 0);
    bool is_counted = group.length >= shortest && group.length <= longest;
    // Single elements have nothing to skip.
    int64_t last = group.length == 1 ? 0 : skips;
    for (int64_t skip = 0; is_counted && skip <= last; ++skip)
      if (Value more = count_grams(n, rows, group, skip + 1)) sum = sum + more;
    parts.push_back(sum);
  }
  Value counts = concat(parts, 1);
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") n.bad("mode '{}'", mode);
  if (mode == "IDF") counts = cast(compare("gt", counts, 0), DType::f32);
  if (mode != "TF" && !weights.empty()) {
    if (weights.size() != indexes.size())
      n.bad("{} grams have {} weights", indexes.size(), weights.size());
    Type type = Type::get(DType::f32, {static_cast<int64_t>(weights.size())});
    counts = counts * n.builder().constant(Tensor::from_reals(type, weights));
  }
  Value result = placed(n, counts, indexes);
  n.out(x.rank() == 1 ? squeeze(result, 0) : result);
}

}  // namespace hone::onnx_io
