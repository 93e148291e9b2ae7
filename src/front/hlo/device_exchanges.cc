#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "base/text.h"
#include "front/hlo/device_dims.h"

// Ops of several devices, where each value has the elements of all of them: device_dims.h.

namespace hone::hlo {
namespace {

// The coordinate of a device along an axis.
int64_t coordinate(const Mesh& mesh, int64_t device, size_t axis) {
  for (size_t i = mesh.axes.size(); i-- > axis + 1;) device /= mesh.axes[i].size;
  return device % mesh.axes[axis].size;
}

// How far apart the numbers of neighbours along an axis are.
int64_t distance(const Mesh& mesh, size_t axis) {
  int64_t made = 1;
  for (size_t i = axis + 1; i < mesh.axes.size(); ++i) made *= mesh.axes[i].size;
  return made;
}

// The axes along which the first group lies. None: it has a part of an axis.
std::optional<Members> along(const Mesh& mesh, std::span<const int64_t> group) {
  Members made;
  for (size_t step = 1; step < group.size();) {
    size_t axis = 0;
    while (axis < mesh.axes.size() && group[step] - group[0] != distance(mesh, axis)) ++axis;
    if (axis == mesh.axes.size() || (made.axes >> axis & 1) != 0) return std::nullopt;
    made.axes |= AxisSet{1} << axis;
    made.order.insert(made.order.begin(), axis);
    step *= static_cast<size_t>(mesh.axes[axis].size);
  }
  return made;
}

// The devices of the group of one, in order.
Ints group_of(const Mesh& mesh, const Members& members, int64_t device) {
  Ints all = {device};
  for (const size_t axis : members.order)
    all[0] -= coordinate(mesh, device, axis) * distance(mesh, axis);
  for (const size_t axis : members.order) {
    Ints next;
    for (const int64_t one : all)
      for (int64_t i = 0; i < mesh.axes[axis].size; ++i)
        next.push_back(one + i * distance(mesh, axis));
    all = std::move(next);
  }
  return all;
}

// Devices that differ along the axis alone get their values from devices that do, too.
bool is_alike_along(const Mesh& mesh, size_t axis, const Ints& sources) {
  for (int64_t d = 0; d < std::ssize(sources); ++d) {
    const int64_t place = coordinate(mesh, d, axis), step = place * distance(mesh, axis);
    const int64_t own = sources[static_cast<size_t>(d)];
    const int64_t of_first = sources[static_cast<size_t>(d - step)];
    if ((own < 0) != (of_first < 0)) return false;
    if (own >= 0 && (own != of_first + step || coordinate(mesh, own, axis) != place)) return false;
  }
  return true;
}

// Element i along the axis becomes that at from[i], or 0. Elements that move as far as each other
// are shifted together, which costs devices one exchange.
Value rearranged(Value x, int axis, const Ints& from) {
  Builder& b = x.builder();
  const Value zero = cast(b.scalar(DType::i64, 0), x.dtype());
  std::map<int64_t, Ints> moving;  // by the distance: 1 where such an element arrives
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0)
      moving.try_emplace(static_cast<int64_t>(i) - from[i], from.size(), 0).first->second[i] = 1;
  Value made = broadcast(zero, x.dims(), {});
  for (const auto& [places, arrives] : moving) {
    Dims low(static_cast<size_t>(x.rank()), 0), high = low;
    low[static_cast<size_t>(axis)] = places;
    high[static_cast<size_t>(axis)] = -places;
    const Value shifted =
        places == 0 ? x : b.op(Opcode::pad, {x, zero}, {{"low", low}, {"high", high}});
    const Value here = b.constant(Tensor::from_integers(
        Type::get(DType::boolean, {static_cast<int64_t>(from.size())}), arrives));
    made = select(broadcast(here, x.dims(), {axis}), shifted, made);
  }
  return made;
}

}  // namespace

Members DeviceDims::members_of(Application& at) {
  const int64_t devices = mesh_->device_count(), size = at.op().integer("group_size");
  Ints all = at.op().ints("groups");
  if (all.empty()) {
    all.resize(static_cast<size_t>(devices));
    std::iota(all.begin(), all.end(), 0);
  }
  const auto no_axes = [&] {
    return unsupported("groups of {} devices that do not lie along axes of the mesh {}", size,
                       axes_text(*mesh_))
        .with_hint("each group must be all devices along some axes, in the order of the mesh");
  };
  const auto count = static_cast<size_t>(size);
  if (std::ssize(all) != devices || devices % size != 0) refuse(at, no_axes());
  // The order of summands has no meaning.
  if (at.op().opcode() == Opcode::all_reduce)
    for (size_t i = 0; i < all.size(); i += count)
      std::ranges::sort(std::span(all).subspan(i, count));
  const std::optional<Members> made = along(*mesh_, std::span(all).first(count));
  if (!made) refuse(at, no_axes());
  for (size_t i = 0; i < all.size(); i += count) {
    if (all[i] >= devices) refuse(at, no_axes());
    const Ints group = group_of(*mesh_, *made, all[i]);
    if (!std::ranges::equal(group, std::span(all).subspan(i, count))) refuse(at, no_axes());
  }
  for (const size_t axis : made->order)
    if ((manual_ >> axis & 1) == 0)
      refuse(at,
             unsupported("devices exchange values along the axis '{}', which is not manual here",
                         mesh_->axes[axis].name));
  return *made;
}

Differing DeviceDims::device_index(Application& at) {
  AxisSet axes = 0;
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (mesh_->axes[i].size > 1) axes |= AxisSet{1} << i;
  Ints numbers = mesh_->devices;
  if (numbers.empty()) {
    numbers.resize(static_cast<size_t>(mesh_->device_count()));
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  const Type type = Type::get(DType::i64, {std::ssize(numbers)});
  return {reshape(at.to.constant(Tensor::from_integers(type, numbers)), sizes(axes)), axes};
}

// Parts of the operand in another order, along the axes along which values move.
Differing DeviceDims::permute(Application& at) {
  Ints sources(static_cast<size_t>(mesh_->device_count()), -1);
  const Ints& pairs = at.op().ints("pairs");
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (std::max(pairs[i], pairs[i + 1]) >= std::ssize(sources))
      refuse(at, bad_input("there is no device {} in the mesh {}", std::max(pairs[i], pairs[i + 1]),
                           axes_text(*mesh_)));
    sources[static_cast<size_t>(pairs[i + 1])] = pairs[i];
  }
  AxisSet moving = 0;
  for (size_t i = 0; i < mesh_->axes.size(); ++i) {
    if (mesh_->axes[i].size == 1 || is_alike_along(*mesh_, i, sources)) continue;
    if ((manual_ >> i & 1) == 0)
      refuse(at,
             unsupported("devices exchange values along the axis '{}', which is not manual here",
                         mesh_->axes[i].name));
    moving |= AxisSet{1} << i;
  }
  const Members members = this->members(moving);
  // All parts one behind the other.
  Differing v = aligned(at.operands[0], moving);
  const int64_t own = std::popcount(v.axes);
  Dims dims = v.value.dims();
  dims.insert(dims.begin() + own, 1);
  const Differing whole = moved({reshape(v.value, dims), v.axes}, members, std::nullopt, 0);
  const Ints devices = group_of(*mesh_, members, 0);
  Ints from(devices.size(), -1);  // by the place of who receives
  for (size_t i = 0; i < devices.size(); ++i)
    if (const int64_t source = sources[static_cast<size_t>(devices[i])]; source >= 0)
      from[i] = std::ranges::find(devices, source) - devices.begin();
  const auto axis = static_cast<int>(std::popcount(whole.axes));
  v = moved({rearranged(whole.value, axis, from), whole.axes}, members, 0, std::nullopt);
  return {squeeze(v.value, static_cast<int>(std::popcount(v.axes))), v.axes};
}

std::vector<Differing> DeviceDims::collective(Application& at) {
  const Op op = at.op();
  if (op.opcode() == Opcode::device_index) return {device_index(at)};
  if (op.opcode() == Opcode::permute) return {permute(at)};
  const Members members = members_of(at);
  Differing x = at.operands[0];
  if (op.opcode() == Opcode::all_gather)
    return {moved(x, members, std::nullopt, op.integer("axis"))};
  if (op.opcode() == Opcode::all_to_all)
    return {moved(x, members, op.integer("split_axis"), op.integer("concat_axis"))};
  HONE_CHECK(op.opcode() == Opcode::all_reduce || op.opcode() == Opcode::reduce_scatter,
             "'{}' is no exchange of programs", op.name());
  if (members.order.empty()) return {x};
  x = aligned(x, members.axes);
  Ints axes;
  for (const size_t axis : this->members(members.axes).order)
    axes.push_back(std::popcount(x.axes & ((AxisSet{1} << axis) - 1)));
  x = {reduce(op.word("kind"), x.value, axes), x.axes & ~members.axes};
  return {op.opcode() == Opcode::all_reduce ? x
                                            : moved(x, members, op.integer("axis"), std::nullopt)};
}

}  // namespace hone::hlo
