#include "tests/shard/parts_testing.h"

#include <algorithm>
#include <cmath>

#include "ir/functional.h"
#include "ir/graph_copy.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/batch_inputs.h"

namespace hone::tested {

namespace {

Tensor evaluated(const Graph& graph, std::span<const Tensor> inputs) {
  return (*evaluate(graph, inputs))[0];
}

Result<Tensor> joined(std::span<const Tensor> parts, int dim) {
  if (dim == kWhole) {
    for (const Tensor& part : parts)
      if (const std::string text = difference({&part, 1}, parts.first(1), 1e-5); !text.empty())
        return fault("a whole output differs between devices: {}", text);
    return parts[0];
  }
  Builder b;
  std::vector<Value> values;
  for (const Tensor& part : parts) values.push_back(b.parameter("", part.type()));
  return evaluated(*b.finish({concat(values, dim)}), parts);
}

// A sum of all devices: graphs may have groups of one device, too.
bool is_sum(const Graph& graph, NodeId n) {
  return graph.opcode(n) == Opcode::all_reduce && graph.op(n).integer("group_size") > 1;
}

// The part that a device adds to a sum is an output behind the others, and the sum an input.
struct Cut {
  Graph graph;
  std::vector<ValueId> sums;

  std::vector<Tensor> inputs(std::span<const Tensor> given, std::span<const Tensor> known) const {
    std::vector<Tensor> all;
    for (ValueId v : graph.inputs()) {
      const auto sum = std::ranges::find(sums, v);
      if (sum != sums.end()) {
        all.push_back(known[static_cast<size_t>(sum - sums.begin())]);
      } else {
        all.push_back(given.front());
        given = given.subspan(1);
      }
    }
    return all;
  }
};

Result<Cut> cut_at_sums(const Graph& graph) {
  GraphCopy copy(graph);
  std::vector<ValueId> added, sums;
  for (NodeId n : graph.nodes()) {
    if (!is_sum(graph, n)) {
      if (!graph.regions(n).empty() && has_effect(graph, n)) return fault("a sum in a region");
      HONE_TRY(copy.node(n));
      continue;
    }
    added.push_back(copy(graph.operands(n)[0]));
    sums.push_back(copy.target().add_parameter(graph.type(graph.result(n))));
    copy.replace(graph.result(n), sums.back());
  }
  Graph made = copy.finish();
  std::vector<ValueId> outputs(made.outputs().begin(), made.outputs().end());
  outputs.insert(outputs.end(), added.begin(), added.end());
  made.set_outputs(std::move(outputs));
  return Cut{std::move(made), std::move(sums)};
}

Tensor sum_of(std::span<const Tensor> parts) {
  const Type type = parts[0].type();
  std::vector<double> reals(static_cast<size_t>(type.static_elements()));
  std::vector<int64_t> integers(reals.size());
  for (const Tensor& part : parts)
    for (size_t i = 0; i < reals.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (is_real(type.dtype()))
        reals[i] += part.real_at(at);
      else
        integers[i] += part.integer_at(at);
    }
  return is_real(type.dtype()) ? Tensor::from_reals(type, reals)
                               : Tensor::from_integers(type, integers);
}

using DeviceTensors = std::vector<std::vector<Tensor>>;

// All devices together; the graphs of devices may differ in sizes.
Result<DeviceTensors> together(std::span<const BatchPart> parts, const DeviceTensors& inputs) {
  std::vector<Cut> cuts;
  for (const BatchPart& part : parts) cuts.push_back(HONE_TRY(cut_at_sums(part.graph)));
  const size_t outputs = parts[0].graph.outputs().size();
  const size_t sums = cuts[0].sums.size();
  std::vector<Tensor> known;
  for (size_t k = 0; k < sums; ++k)
    known.push_back(Tensor::zeros(cuts[0].graph.type(cuts[0].sums[k])));
  DeviceTensors made(parts.size());
  for (size_t k = 0; k <= sums; ++k) {
    for (size_t d = 0; d < parts.size(); ++d) {
      if (cuts[d].sums.size() != sums) return fault("devices have other sums");
      made[d] = HONE_TRY(evaluate(cuts[d].graph, cuts[d].inputs(inputs[d], known)));
    }
    if (k == sums) break;
    std::vector<Tensor> added;
    for (const std::vector<Tensor>& one : made) {
      if (one[outputs + k].type() != known[k].type()) return fault("devices have other sums");
      added.push_back(one[outputs + k]);
    }
    known[k] = sum_of(added);
  }
  for (std::vector<Tensor>& one : made) one.resize(outputs);
  return made;
}

bool have_sums_in_regions(const Graph& graph) {
  for (NodeId n : graph.nodes())
    if (!graph.regions(n).empty() && has_effect(graph, n)) return true;
  return false;
}

// Where sums lie in loops, all devices must have one graph.
Result<DeviceTensors> in_lockstep(std::span<const BatchPart> parts, const DeviceTensors& inputs) {
  for (const BatchPart& part : parts)
    if (structural_hash(part.graph) != structural_hash(parts[0].graph))
      return unsupported("sums in loops of devices with other rows have no judge");
  return evaluate_spmd(parts[0].graph, inputs);
}

}  // namespace

Tensor rows_of(const Tensor& whole, int dim, const BatchShare& share) {
  if (dim == kWhole) return whole;
  Builder b;
  const Value x = b.parameter("x", whole.type());
  const int64_t each = x.dim(dim).value() / share.rows;
  const Value part = slice(x, dim, share.first * each, (share.first + share.count) * each);
  return evaluated(*b.finish({part}), {{whole}});
}

Result<FromParts> by_parts(const Graph& graph, std::span<const Tensor> inputs,
                           const std::vector<int>& dims, int64_t rows, int64_t devices) {
  std::vector<BatchPart> parts;
  DeviceTensors given;
  for (const BatchShare& share : batch_shares(rows, devices)) {
    parts.push_back(HONE_TRY(batch_part(graph, dims, share)));
    if (const Status good = verify(parts.back().graph); !good.ok())
      return fault("{}", good.error().to_string());
    given.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i)
      given.back().push_back(rows_of(inputs[i], parts.back().inputs[i], share));
  }
  const bool have_loops = have_sums_in_regions(parts[0].graph);
  const auto run = have_loops ? in_lockstep : together;
  const DeviceTensors made = HONE_TRY(run(parts, given));
  FromParts all = {.outputs = {}, .has_sums = parts[0].has_sums};
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    std::vector<Tensor> pieces;
    for (const std::vector<Tensor>& one : made) pieces.push_back(one[i]);
    all.outputs.push_back(HONE_TRY(joined(pieces, parts[0].outputs[i])));
  }
  return all;
}

// How far the next number of the type is from 1.
double step_of(DType dtype) {
  double step = 1;
  while (round_to(dtype, 1 + step / 2) != 1) step /= 2;
  return step;
}

// Sums of another order are rounded otherwise, in small types by whole steps.
std::string difference(std::span<const Tensor> actual, std::span<const Tensor> expected,
                       double tolerance) {
  if (actual.size() != expected.size()) return "another number of outputs";
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor &a = actual[i], &b = expected[i];
    if (a.type() != b.type()) return fmt::format("output {} has another type", i);
    if (a.same_bytes(b)) continue;
    if (!is_real(a.dtype()) || tolerance == 0) return fmt::format("output {} has other bits", i);
    const double allowed = std::max(tolerance, 2 * step_of(a.dtype()));
    double scale = 1;
    for (int64_t e = 0; e < b.elements(); ++e)
      if (std::isfinite(b.real_at(e))) scale = std::max(scale, std::abs(b.real_at(e)));
    for (int64_t e = 0; e < a.elements(); ++e) {
      const double x = a.real_at(e), y = b.real_at(e);
      const bool are_special = !std::isfinite(x) || !std::isfinite(y);
      const bool is_alike = are_special ? x == y || (std::isnan(x) && std::isnan(y))
                                        : std::abs(x - y) <= scale * allowed;
      if (!is_alike) return fmt::format("output {}, element {}: {}, not {}", i, e, x, y);
    }
  }
  return "";
}

std::string judge_parts(const Graph& graph, std::span<const Tensor> inputs,
                        const std::vector<int>& dims, int64_t rows, int64_t devices,
                        bool& is_refused) {
  const Result<FromParts> parts = by_parts(graph, inputs, dims, rows, devices);
  is_refused = !parts.ok() && parts.error().code() == ErrorCode::unsupported;
  if (is_refused) return "";
  const std::string place = fmt::format(" on {} devices\n{}", devices, print(graph));
  if (!parts.ok()) return parts.error().to_string() + place;
  const Result<std::vector<Tensor>> whole = evaluate(graph, inputs);
  if (!whole.ok()) return whole.error().to_string() + place;
  const std::string text = difference(parts->outputs, *whole, parts->has_sums ? 1e-5 : 0);
  return text.empty() ? "" : text + place;
}

}  // namespace hone::tested
