#include "ir/summary.h"

#include "base/text.h"
#include "ir/access.h"
#include "ir/application.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

namespace hone {
namespace {

struct Work {
  double flops = 0;
  double macs = 0;
  double bytes = 0;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    macs += other.macs;
    bytes += other.bytes;
    return *this;
  }
  Work times(double count) const { return {flops * count, macs * count, bytes * count}; }
};

// Work of static graphs. Equal applications are asked once: unrolled models repeat them
// ten thousand times.
class WorkCounter {
 public:
  Work of(const Graph& graph) {
    Work total;
    for (NodeId n : graph.nodes()) total += of(graph, n);
    return total;
  }

 private:
  Work of(const Graph& graph, NodeId n) {
    const Opcode opcode = graph.opcode(n);
    if (opcode == Opcode::parameter || opcode == Opcode::constant) return {};
    if (!graph.regions(n).empty()) return of_regions(graph, n);
    ApplicationKey key{graph.op(n), graph.operand_types(n)};
    const auto known = works_.find(key);
    if (known != works_.end()) return known->second;

    const std::vector<Type> results = graph.result_types(n);
    const Application application{key.op, key.operands};
    Work work{flops(application, results), 0, bytes(application, results)};
    if (is_composite(opcode)) {
      const Result<Graph> expanded = expansion(key.op, key.operands);
      if (expanded.ok()) work.macs = of(*expanded).macs;
    } else if (opcode == Opcode::dot || opcode == Opcode::conv) {
      work.macs = work.flops / 2;
    }
    works_.emplace(std::move(key), work);
    return work;
  }

  // Bodies by how often they run: a scan's once per step, a while's once, of an if the costlier.
  Work of_regions(const Graph& graph, NodeId n) {
    Work sum;
    Work most;
    for (const GraphRef& region : graph.regions(n)) {
      const Work one = of(*region);
      sum += one;
      if (one.flops >= most.flops) most = one;
    }
    const Op op = graph.op(n);
    if (op.opcode() == Opcode::if_) return most;
    if (op.opcode() != Opcode::scan) return sum;
    const Dims& length = op.dims("length");
    const Dim steps =
        length.empty() ? graph.operand_types(n)[static_cast<size_t>(op.integer("carried"))].dim(0)
                       : length[0];
    return sum.times(static_cast<double>(steps.value()));
  }

  std::unordered_map<ApplicationKey, Work, ApplicationHash> works_;
};

// Results that are alive at once when the nodes run in their order. Elements are those of
// constants, too, from the first node that reads one to the last.
struct Peak {
  int64_t bytes = 0;
  int64_t elements = 0;
};

Peak peak_of(const Graph& graph) {
  std::vector<uint32_t> last_use(graph.value_count(), 0);
  for (NodeId n : graph.nodes())
    for (ValueId v : graph.operands(n))
      if (!v.is_none()) last_use[v.index] = n.index;
  for (ValueId v : graph.outputs()) last_use[v.index] = UINT32_MAX;

  Peak now;
  Peak peak;
  const auto is_constant = [&](ValueId v) {
    return graph.opcode(graph.producer(v)) == Opcode::constant;
  };
  const auto count = [&](ValueId v, int64_t sign) {
    if (!is_constant(v)) now.bytes += sign * graph.type(v).static_bytes();
    now.elements += sign * graph.type(v).static_elements();
  };
  std::vector<std::vector<ValueId>> dying(graph.node_count());
  const auto begin = [&](ValueId v, NodeId n) {
    count(v, 1);
    // A value that no node reads dies at once.
    const uint32_t end = std::max(last_use[v.index], n.index);
    if (end < graph.node_count()) dying[end].push_back(v);
  };
  std::vector<bool> is_read(graph.value_count());
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::constant) continue;
    for (ValueId v : graph.operands(n)) {
      if (v.is_none() || !is_constant(v) || is_read[v.index]) continue;
      is_read[v.index] = true;
      begin(v, n);
    }
    for (ValueId v : graph.results(n)) begin(v, n);
    Peak inner;
    for (const GraphRef& region : graph.regions(n)) {
      const Peak one = peak_of(*region);
      inner = {std::max(inner.bytes, one.bytes), std::max(inner.elements, one.elements)};
    }
    peak.bytes = std::max(peak.bytes, now.bytes + inner.bytes);
    peak.elements = std::max(peak.elements, now.elements + inner.elements);
    for (ValueId v : dying[n.index]) count(v, -1);
  }
  return peak;
}

std::string label_of(const Graph& graph, ValueId v) {
  const std::string_view name = graph.name(v);
  return name.empty() ? graph.label(v) : std::string(name);
}

class Counter {
 public:
  Counter(GraphSummary& summary, size_t largest) : summary_(summary), largest_(largest) {}

  void add(const Graph& graph) {
    for (NodeId n : graph.nodes()) {
      ++summary_.nodes;
      const Opcode opcode = graph.opcode(n);
      if (opcode == Opcode::constant) add_constant(graph.constant(n));
      if (opcode != Opcode::constant && opcode != Opcode::parameter)
        ++(is_composite(opcode) ? summary_.composite_counts : summary_.op_counts)[name(opcode)];
      for (ValueId v : graph.results(n)) add_large(label_of(graph, v), graph.type(v));
      for (const GraphRef& region : graph.regions(n)) add(*region);
    }
  }

 private:
  void add_constant(const Tensor& tensor) {
    ++summary_.constants;
    summary_.constant_bytes += tensor.byte_size();
    if (tensor.type().rank() > 0 && !is_bool(tensor.dtype()))
      summary_.parameters += tensor.elements();
  }

  void add_large(std::string name, Type type) {
    std::vector<NamedType>& rows = summary_.largest;
    const auto place = std::find_if(rows.begin(), rows.end(), [&](const NamedType& row) {
      return row.type.static_bytes() < type.static_bytes();
    });
    if (static_cast<size_t>(place - rows.begin()) >= largest_) return;
    rows.insert(place, {std::move(name), type});
    if (rows.size() > largest_) rows.pop_back();
  }

  GraphSummary& summary_;
  size_t largest_;
};

}  // namespace

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> taken;
  for (ValueId v : graph.outputs()) {
    const std::string wanted =
        graph.name(v).empty() ? fmt::format("output{}", names.size()) : std::string(graph.name(v));
    std::string name = wanted;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    names.push_back(std::move(name));
  }
  return names;
}

TensorStatistics statistics(const Tensor& tensor) {
  TensorStatistics result;
  double sum = 0;
  int64_t numbers = 0;
  constexpr int64_t kPiece = 1 << 16;
  std::vector<double> values;
  for (int64_t begin = 0; begin < tensor.elements(); begin += kPiece) {
    values.resize(static_cast<size_t>(std::min(kPiece, tensor.elements() - begin)));
    tensor.read_reals(begin, values);
    for (double value : values) {
      if (std::isnan(value)) {
        ++result.nans;
        continue;
      }
      if (std::isinf(value)) ++result.infinities;
      result.min = numbers == 0 ? value : std::min(result.min, value);
      result.max = numbers == 0 ? value : std::max(result.max, value);
      sum += value;
      ++numbers;
    }
  }
  if (numbers > 0) result.mean = sum / static_cast<double>(numbers);
  return result;
}

std::string first_elements(const Tensor& tensor, int64_t count) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(count, tensor.elements()); ++i) {
    if (is_bool(tensor.dtype()))
      texts.emplace_back(tensor.integer_at(i) != 0 ? "true" : "false");
    else if (kind(tensor.dtype()) == DTypeKind::uint)
      texts.push_back(std::to_string(static_cast<uint64_t>(tensor.integer_at(i))));
    else if (is_integer(tensor.dtype()))
      texts.push_back(std::to_string(tensor.integer_at(i)));
    else
      texts.push_back(fmt::format("{:.6g}", tensor.real_at(i)));
  }
  if (tensor.elements() > count) texts.emplace_back("...");
  return join(texts, ", ");
}

Bindings smallest_bindings(const Graph& graph, const Bindings& bindings) {
  Bindings all = bindings;
  for (const Symbol& symbol : graph.symbols()) {
    const int64_t step = symbol.multiple_of();
    const int64_t least = std::max<int64_t>(symbol.min(), std::min<int64_t>(1, symbol.max()));
    // Rounded up to a multiple; a legal symbol has one within its bounds.
    const int64_t number = (least + step - 1) / step * step;
    all.emplace(symbol.name(), std::min(number, symbol.max()));
  }
  return all;
}

Result<GraphSummary> summarize(const Graph& graph, const Bindings& bindings, size_t largest) {
  GraphSummary summary;
  summary.name = graph.name();
  for (ValueId v : graph.inputs()) summary.inputs.push_back({label_of(graph, v), graph.type(v)});
  const std::vector<std::string> names = output_names(graph);
  for (size_t i = 0; i < names.size(); ++i)
    summary.outputs.push_back({names[i], graph.type(graph.outputs()[i])});
  summary.symbols = graph.symbols();
  summary.donations.assign(graph.donations().begin(), graph.donations().end());

  std::optional<Graph> bound;
  if (!summary.symbols.empty()) {
    summary.work_at = smallest_bindings(graph, bindings);
    bound = HONE_TRY(specialize(graph, summary.work_at));
  }
  const Graph& fixed = bound ? *bound : graph;
  Counter(summary, largest).add(fixed);
  const Work work = WorkCounter().of(fixed);
  summary.flops = work.flops;
  summary.macs = work.macs;
  summary.bytes = work.bytes;
  const Peak peak = peak_of(fixed);
  summary.peak_bytes = peak.bytes;
  summary.peak_elements = peak.elements;
  return summary;
}

}  // namespace hone
