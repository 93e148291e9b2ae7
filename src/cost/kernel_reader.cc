#include "cost/kernel_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op_def.h"
#include "kernel/update.h"

namespace hone {
namespace {

double size(Dim dim) { return static_cast<double>(std::max<int64_t>(dim.range().high, 0)); }

// Slots of one vector instruction or what stands for it: 2 in a cycle.
double slots_of(Op op, DType dtype) {
  switch (op.opcode()) {
    case Opcode::div:
    case Opcode::sqrt:
    case Opcode::rsqrt: return is_real(dtype) ? 16 : 100;
    case Opcode::rem: return 100;
    case Opcode::exp:
    case Opcode::expm1:
    case Opcode::log:
    case Opcode::log1p:
    case Opcode::tanh:
    case Opcode::logistic:
    case Opcode::erf:
    case Opcode::sin:
    case Opcode::cos: return 30;
    case Opcode::tan:
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::atan:
    case Opcode::sinh:
    case Opcode::cosh:
    case Opcode::asinh:
    case Opcode::acosh:
    case Opcode::atanh:
    case Opcode::atan2:
    case Opcode::pow:
    case Opcode::rng_bits: return 60;
    case Opcode::cast: return 2;
    case Opcode::broadcast:
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::slice:
    case Opcode::reverse: return 0;
    default: return 1;
  }
}

}  // namespace

KernelReader::KernelReader(const KernelBody& body, KernelPrice& price)
    : body_(body), graph_(body.graph), space_(space_of(body)), price_(price) {}

void KernelReader::run() {
  price_.parallel_ = space_.parallel;
  for (size_t d = 0; d < space_.dims.size() && d < KernelPrice::kMaxLoops; ++d)
    price_.loops_.push_back(
        {size(space_.dims[d].extent), d < static_cast<size_t>(space_.parallel), 0});
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId output = graph_.outputs()[i];
    const ValueId points = body_.in_place ? updates_of(graph_, graph_.producer(output)) : output;
    const Visit visit{identity_index(graph_.type(points).rank())};
    access(output, body_.outputs[i], body_.in_place ? updated(output, visit) : visit, true);
    add(points, visit);
  }
  for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) node(NodeId{i});
  keep_largest();
}

// Where the element of an update goes. A window lies as well as if it began at 0; what a scatter
// looks up may be anywhere.
KernelReader::Visit KernelReader::updated(ValueId output, Visit visit) const {
  if (graph_.opcode(graph_.producer(output)) != Opcode::scatter) return visit;
  visit.data = loops_of(visit);
  visit.index.assign(static_cast<size_t>(graph_.type(output).rank()), 0);
  return visit;
}

void KernelReader::keep_largest() {
  auto& accesses = price_.accesses_;
  if (accesses.size() <= KernelPrice::kMaxAccesses) return;
  std::vector<double> bytes;
  for (const KernelPrice::Access& access : accesses) bytes.push_back(access.bytes);
  std::ranges::sort(bytes, std::greater<>());
  const double least = bytes[KernelPrice::kMaxAccesses - 1];
  std::erase_if(accesses, [&](const auto& access) { return access.bytes < least; });
  accesses.resize(KernelPrice::kMaxAccesses);
}

void KernelReader::work(uint32_t loops, double slots, bool is_sum) {
  if (slots == 0) return;
  for (KernelPrice::Work& known : price_.work_) {
    if (known.loops != loops || known.is_sum || is_sum) continue;
    known.slots += slots;
    return;
  }
  price_.work_.push_back({loops, slots, is_sum});
}

void KernelReader::add(ValueId value, Visit visit) {
  std::vector<Visit>& visits = visits_[value.index];
  if (std::ranges::find(visits, visit) == visits.end()) visits.push_back(std::move(visit));
}

uint32_t KernelReader::loops_of(const IndexExpr& expr) const {
  uint32_t loops = 0;
  for (size_t l = 0; l < price_.loops_.size(); ++l)
    if (expr.mentions(static_cast<int>(l))) loops |= 1U << l;
  return loops;
}

uint32_t KernelReader::loops_of(const Visit& visit) const {
  uint32_t loops = visit.guards | visit.data;
  for (const IndexExpr& expr : visit.index) loops |= loops_of(expr);
  return loops;
}

// The loop of a reduction's dim.
size_t KernelReader::open(NodeId n, size_t reduction, Dim extent) {
  const size_t anchors = static_cast<size_t>(space_.parallel) + reduction;
  if (n == space_.anchor && anchors < price_.loops_.size()) return anchors;
  if (price_.loops_.size() == KernelPrice::kMaxLoops) return KernelPrice::kMaxLoops - 1;
  price_.loops_.push_back({size(extent), false, 0});
  return price_.loops_.size() - 1;
}

void KernelReader::node(NodeId n) {
  const Op op = graph_.op(n);
  if (op.opcode() == Opcode::parameter) {
    const ValueId v = graph_.result(n);
    const auto at = std::ranges::find(graph_.inputs(), v) - graph_.inputs().begin();
    for (const Visit& visit : visits_[v.index])
      access(v, body_.inputs[static_cast<size_t>(at)], visit, false);
    return;
  }
  if (op.opcode() == Opcode::constant) return;
  const std::vector<Type> operands = graph_.operand_types(n);
  const AccessRelation relation = access_of({op, operands}, graph_.result_types(n));
  const DType dtype = graph_.type(graph_.result(n)).dtype();
  const double slots = slots_of(op, dtype) * price_.slots_in(dtype);
  for (ValueId result : graph_.results(n)) {
    const std::vector<Visit> visits = visits_[result.index];
    for (const Visit& visit : visits) {
      std::vector<IndexExpr> iters = visit.index;
      uint32_t loops = loops_of(visit);
      bool is_sum = false;
      for (size_t d = iters.size(); d < relation.dims.size(); ++d) {
        const size_t loop = open(n, d - visit.index.size(), relation.dims[d].extent);
        iters.push_back(IndexExpr::iter(static_cast<int>(loop)));
        price_.loops_[loop].around |= loops_of(visit);
        loops |= 1U << loop;
        is_sum = true;
      }
      work(loops, slots, is_sum);
      for (size_t i = 0; i < relation.operands.size(); ++i) {
        const ValueId operand = graph_.operands(n)[i];
        if (operand.is_none()) continue;
        for (const Access& piece : relation.operands[i]) {
          Visit next{.index = {}, .guards = visit.guards, .data = visit.data, .side = visit.side};
          if (n == space_.anchor) next.side = static_cast<int>(i);
          // A conv multiplies zeros where it meets padding, so its kernel is read everywhere.
          if (op.opcode() != Opcode::conv || i == 0)
            for (const Guard& guard : piece.guards)
              next.guards |= loops_of(guard.value.substitute(iters));
          for (size_t d = 0; d < piece.index.size(); ++d) {
            const bool is_data = piece.is_data_dependent(static_cast<int>(d));
            if (is_data) next.data |= loops;
            next.index.push_back(is_data ? IndexExpr(0) : piece.index[d].substitute(iters));
          }
          add(operand, std::move(next));
        }
      }
    }
  }
}

// How far an index goes along a part of the layout with each trip of a loop. Within blocks, blocks
// count as if they went on.
double KernelReader::steps(const Layout::Part& part, const IndexExpr& index, size_t loop) {
  const std::optional<int64_t> factor = index.coefficient(static_cast<int>(loop));
  if (!factor) return std::numeric_limits<double>::quiet_NaN();
  const bool is_by_block = *factor % part.block == 0;
  if (part.is_inner) return is_by_block ? 0 : static_cast<double>(*factor);
  return is_by_block ? static_cast<double>(*factor / part.block) : 0;
}

// Where a vector's elements lie, at the loops' beginning.
void KernelReader::look_along(size_t loop, const Layout& layout, Type stored, const Visit& visit,
                              KernelPrice::Access& access) const {
  const double count = std::min(price_.vector_, price_.loops_[loop].extent);
  access.repeat[loop] = 1;
  access.span[loop] = std::abs(access.stride[loop]) * (count - 1) + 1;
  if (!std::isnan(access.stride[loop])) return;
  access.span[loop] = std::numeric_limits<double>::infinity();
  if (visit.data != 0) return;
  std::vector<double> offsets;
  std::vector<IndexExpr> point(price_.loops_.size(), 0);
  const std::vector<IndexExpr> index = stored_index(layout, visit.index);
  for (int64_t at = 0; static_cast<double>(at) < count; ++at) {
    point[loop] = at;
    offsets.push_back(0);
    for (int d = 0; d < stored.rank(); ++d) {
      const std::optional<Dim> place =
          index[static_cast<size_t>(d)].substitute(point).as_constant();
      if (!place || !place->is_static()) return;
      offsets.back() = offsets.back() * size(stored.dim(d)) + static_cast<double>(place->value());
    }
  }
  const auto [low, high] = std::ranges::minmax(offsets);
  access.span[loop] = high - low + 1;
  const auto other = std::ranges::find_if(offsets, [&](double at) { return at != offsets[0]; });
  access.repeat[loop] = static_cast<double>(other - offsets.begin());
}

void KernelReader::access(ValueId value, const Layout& layout, const Visit& visit, bool is_store) {
  const Type type = graph_.type(value), stored = stored_type(layout, type);
  KernelPrice::Access access;
  access.loops = loops_of(visit);
  access.element = static_cast<double>(bits(type.dtype())) / 8;
  access.bytes = access.element;
  for (Dim dim : type.dims()) access.bytes *= size(dim);
  access.is_store = is_store;
  access.side = visit.side;
  double elements = 1;
  for (int d = stored.rank(); d-- > 0;) {
    const Layout::Part& part = layout.parts[static_cast<size_t>(d)];
    for (size_t l = 0; l < price_.loops_.size(); ++l)
      access.stride[l] += elements * steps(part, visit.index[static_cast<size_t>(part.dim)], l);
    elements *= size(stored.dim(d));
  }
  if (!layout.parts.empty() && layout.parts.back().is_inner)
    access.run = static_cast<double>(layout.parts.back().block);
  if (access.side >= 0) {
    for (const IndexExpr& expr : visit.index) {
      access.steps.emplace_back();
      for (size_t l = 0; l < price_.loops_.size(); ++l)
        if (const std::optional<int64_t> step = expr.coefficient(static_cast<int>(l));
            step && *step != 0)
          access.steps.back().emplace_back(static_cast<int>(l), static_cast<double>(*step));
    }
  }
  for (size_t l = 0; l < price_.loops_.size(); ++l) look_along(l, layout, stored, visit, access);
  access.guards = visit.guards;
  for (size_t l = 0; l < price_.loops_.size(); ++l)
    if ((visit.data >> l & 1) != 0 && access.stride[l] == 0)
      access.stride[l] = std::numeric_limits<double>::quiet_NaN();
  price_.accesses_.push_back(access);
}

}  // namespace hone
