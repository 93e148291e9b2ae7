#include "rewrite/prepare.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph_copy.h"
#include "ir/loop_state.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

// ---- Splats -------------------------------------------------------------------------------------

// What folding makes at most; larger constants are not looked at, since that may read a file.
constexpr int64_t kMaxSplatBytes = 64 * 1024;

// The element that all others equal, if there are several.
std::optional<Tensor> splat_element(const Tensor& tensor) {
  const int bits_each = bits(tensor.dtype());
  if (tensor.elements() < 2 || bits_each % 8 != 0 || tensor.byte_size() > kMaxSplatBytes)
    return std::nullopt;
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = tensor.bytes_once(scratch);
  const size_t size = static_cast<size_t>(bits_each) / 8;
  // Equal to itself moved by one element.
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0) return std::nullopt;
  return Tensor::copy_of(Type::scalar(tensor.dtype()), bytes.first(size));
}

Result<Graph> splats_as_broadcasts(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::optional<Tensor> element;
    if (graph.opcode(n) == Opcode::constant) element = splat_element(graph.constant(n));
    if (!element) {
      HONE_TRY(
          copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, splats_as_broadcasts))));
      continue;
    }
    const ValueId scalar = copy.target().add_constant(std::move(*element));
    const std::span<const Dim> dims = graph.type(graph.result(n)).dims();
    const Op broadcast =
        Op::get(Opcode::broadcast, {{"dims", Dims(dims.begin(), dims.end())}, {"map", Ints{}}});
    const NodeId made = HONE_TRY(copy.target().append(broadcast, {&scalar, 1}));
    copy.replace(graph.result(n), copy.target().result(made));
  }
  return copy.finish();
}

// ---- Readers ------------------------------------------------------------------------------------

constexpr int kMaxRepeated = 4;  // nodes of a chain

// Gives each reader of broadcasts and iotas nodes of its own: kernels then compute them where they
// are read, and nothing is written to memory.
class Unsharing {
 public:
  explicit Unsharing(const Graph& graph)
      : graph_(graph), copy_(graph), is_read_(graph.value_count()) {}

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      for (ValueId v : graph_.operands(n)) HONE_TRY(repeat(v));
      HONE_TRY(copy_.node(n, graph_.op(n), HONE_TRY(transform_regions(graph_, n, unshared))));
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) is_read_[v.index] = true;
      for (; !replaced_.empty(); replaced_.pop_back())
        copy_.replace(replaced_.back().first, replaced_.back().second);
    }
    return copy_.finish();
  }

 private:
  static Result<Graph> unshared(const Graph& graph) { return Unsharing(graph).run(); }

  // Lets another node stand for a value that has been read, for the reader at hand.
  Status repeat(ValueId v, int depth = 0) {
    const auto is_replaced = [&](const auto& entry) { return entry.first == v; };
    if (v.is_none() || !is_read_[v.index] || depth == kMaxRepeated) return {};
    if (std::ranges::any_of(replaced_, is_replaced)) return {};
    const NodeId n = graph_.producer(v);
    if (graph_.opcode(n) != Opcode::broadcast && graph_.opcode(n) != Opcode::iota) return {};
    for (ValueId operand : graph_.operands(n)) HONE_TRY(repeat(operand, depth + 1));
    const NodeId again = HONE_TRY(copy_.target().append(graph_.op(n), copy_(graph_.operands(n))));
    replaced_.emplace_back(v, copy_(v));
    copy_.replace(v, copy_.target().result(again));
    copy_.target().set_name(copy_.target().result(again), "");
    return {};
  }

  const Graph& graph_;
  GraphCopy copy_;
  std::vector<bool> is_read_;                          // by value, by a node before the one at hand
  std::vector<std::pair<ValueId, ValueId>> replaced_;  // and what stood for them
};

// ---- Names --------------------------------------------------------------------------------------

constexpr size_t kMaxStem = 1000;  // bytes; names in a graph are at most 65,535 long

class Namer {
 public:
  explicit Namer(Graph& graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph.value_count(); ++i)
      if (const std::string_view name = graph.name({i}); !name.empty()) taken_.emplace(name);
  }

  void run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      name_if_unnamed(graph_.inputs()[i], fmt::format("input{}", i));
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      name_if_unnamed(graph_.outputs()[i], fmt::format("output{}", i));
    const std::vector<uint32_t> heads = cluster_heads();
    for (NodeId n : graph_.nodes()) {
      const ValueRange results = graph_.results(n);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!graph_.name(results[i]).empty()) continue;
        const uint32_t head = heads[n.index];
        std::string stem(graph_.op(n).name());
        const std::string_view whole = graph_.name(graph_.result({head}));
        if (head != n.index && whole.size() <= kMaxStem) stem = fmt::format("{}.{}", whole, stem);
        if (i > 0) stem = fmt::format("{}.{}", graph_.name(results[0]), i);
        name_if_unnamed(results[i], stem);
      }
    }
  }

 private:
  // Per node: the first node that is named and computed from it; itself, if there is none.
  std::vector<uint32_t> cluster_heads() const {
    const Users users(graph_);
    std::vector<uint32_t> heads(graph_.node_count());
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) {
      heads[i] = i;
      const ValueRange results = graph_.results({i});
      if (results.size() == 0 || !graph_.name(results[0]).empty()) continue;
      uint32_t first = UINT32_MAX;
      for (ValueId v : results)
        if (!users.of(v).empty()) first = std::min(first, users.of(v)[0].index);
      if (first == UINT32_MAX) continue;
      const uint32_t head = heads[first];
      if (!graph_.name(graph_.result({head})).empty()) heads[i] = head;
    }
    return heads;
  }

  void name_if_unnamed(ValueId v, const std::string& stem) {
    if (!graph_.name(v).empty()) return;
    std::string name = stem;
    for (int64_t& count = counts_[stem]; !taken_.insert(name).second;)
      name = fmt::format("{}_{}", stem, ++count + 1);
    graph_.set_name(v, name);
  }

  Graph& graph_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> counts_;  // names that were made from the stem
};

Result<Graph> named(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes())
    HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, named))));
  Graph result = copy.finish();
  Namer(result).run();
  return result;
}

// ---- Loops --------------------------------------------------------------------------------------

// The bodies of loops may store each new state where the old one is.
Result<Graph> donated(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes()) {
    std::vector<GraphRef> regions = HONE_TRY(transform_regions(graph, n, donated));
    const std::vector<bool> unchanged = unchanged_state(graph, n);
    if (!unchanged.empty()) {
      Graph body = *regions.back();
      std::set<uint32_t> inputs, outputs;
      for (const Donation& donation : body.donations()) {
        inputs.insert(donation.input);
        outputs.insert(donation.output);
      }
      for (uint32_t i = 0; i < unchanged.size(); ++i)
        if (!unchanged[i] && !inputs.contains(i) && !outputs.contains(i)) body.add_donation(i, i);
      regions.back() = std::make_shared<const Graph>(std::move(body));
    }
    HONE_TRY(copy.node(n, graph.op(n), std::move(regions)));
  }
  return copy.finish();
}

}  // namespace

Result<Graph> prepare(const Graph& graph) {
  Graph spelled = HONE_TRY(expand_composites(HONE_TRY(widen_composites(graph))));
  Graph folded = HONE_TRY(fold_constants(spelled));
  folded = HONE_TRY(fold_constants(HONE_TRY(sink_constants(folded))));
  Graph merged = HONE_TRY(merge_common_subexpressions(HONE_TRY(splats_as_broadcasts(folded))));
  // Named twice, so that the new nodes are called after their readers.
  return donated(HONE_TRY(named(HONE_TRY(Unsharing(HONE_TRY(named(merged))).run()))));
}

}  // namespace hone
