#include "front/hlo/device_dims.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/text.h"
#include "ir/application.h"
#include "ir/op_facts.h"

namespace hone::hlo {
namespace {

int64_t count_of(AxisSet axes) { return std::popcount(axes); }
bool has(AxisSet axes, size_t axis) { return (axes >> axis & 1) != 0; }
// The device dim of an axis, among those of all.
int64_t dim_of(AxisSet axes, size_t axis) {
  return std::popcount(axes & ((AxisSet{1} << axis) - 1));
}

// ---- Attributes that speak of dims --------------------------------------------------------------

// How an attribute changes where all operands get device dims in front.
enum class Shift : uint8_t {
  axis,   // a dim, or dims: others stand there now
  batch,  // dims that are alike in all operands: the device dims are such, too
  zeros,  // a number for each dim; of a device dim it is 0
  ones,   // 1
  sizes,  // all of it
};

struct DimAttr {
  Opcode opcode;
  std::string_view name;
  Shift shift;
};

constexpr DimAttr kDimAttrs[] = {
    {Opcode::broadcast, "dims", Shift::sizes},
    {Opcode::broadcast, "map", Shift::batch},
    {Opcode::reshape, "dims", Shift::sizes},
    {Opcode::transpose, "permutation", Shift::batch},
    {Opcode::slice, "start", Shift::zeros},
    {Opcode::slice, "limit", Shift::sizes},
    {Opcode::slice, "stride", Shift::ones},
    {Opcode::pad, "low", Shift::zeros},
    {Opcode::pad, "high", Shift::zeros},
    {Opcode::pad, "interior", Shift::zeros},
    {Opcode::concat, "axis", Shift::axis},
    {Opcode::reverse, "axes", Shift::axis},
    {Opcode::dot, "lhs_batch", Shift::batch},
    {Opcode::dot, "rhs_batch", Shift::batch},
    {Opcode::dot, "lhs_contract", Shift::axis},
    {Opcode::dot, "rhs_contract", Shift::axis},
    {Opcode::gather, "offset_dims", Shift::axis},
    {Opcode::gather, "collapsed_dims", Shift::axis},
    {Opcode::gather, "operand_batch_dims", Shift::batch},
    {Opcode::gather, "index_batch_dims", Shift::batch},
    {Opcode::gather, "index_map", Shift::axis},
    {Opcode::gather, "index_vector_dim", Shift::axis},
    {Opcode::gather, "sizes", Shift::ones},
    {Opcode::scatter, "window_dims", Shift::axis},
    {Opcode::scatter, "inserted_dims", Shift::axis},
    {Opcode::scatter, "operand_batch_dims", Shift::batch},
    {Opcode::scatter, "index_batch_dims", Shift::batch},
    {Opcode::scatter, "index_map", Shift::axis},
    {Opcode::scatter, "index_vector_dim", Shift::axis},
    {Opcode::reduce, "axes", Shift::axis},
    {Opcode::arg_reduce, "axis", Shift::axis},
    {Opcode::cumulative, "axis", Shift::axis},
    {Opcode::window_reduce, "window", Shift::ones},
    {Opcode::window_reduce, "stride", Shift::ones},
    {Opcode::window_reduce, "pad_low", Shift::zeros},
    {Opcode::window_reduce, "pad_high", Shift::zeros},
    {Opcode::window_reduce, "input_dilation", Shift::ones},
    {Opcode::window_reduce, "window_dilation", Shift::ones},
    {Opcode::sort, "axis", Shift::axis},
};

// Its elements are those of the operands alone, whatever dims stand in front.
bool is_regular(Opcode opcode) {
  return is_elementwise(opcode) ||
         std::ranges::find(kDimAttrs, opcode, &DimAttr::opcode) != std::ranges::end(kDimAttrs);
}

// The list with entries for device dims in front.
template <class List>
List shifted(const List& list, Shift shift, const Dims& sizes) {
  using Item = List::value_type;
  const auto n = static_cast<int64_t>(sizes.size());
  const bool is_of_dims = shift == Shift::axis || shift == Shift::batch;
  List made;
  for (int64_t i = 0; i < n && shift != Shift::axis; ++i) switch (shift) {
      case Shift::batch: made.push_back(Item(i)); break;
      case Shift::zeros: made.push_back(Item(0)); break;
      case Shift::ones: made.push_back(Item(1)); break;
      default:
        if constexpr (std::is_same_v<Item, Dim>) made.push_back(sizes[static_cast<size_t>(i)]);
        break;
    }
  for (const Item& one : list) made.push_back(is_of_dims ? one + Item(n) : one);
  return made;
}

Attrs shifted(Op op, const Dims& sizes) {
  Attrs made;
  for (size_t i = 0; i < op.attrs().size(); ++i) {
    const std::string_view name = op.def().attrs[i].name;
    AttrValue value = op.attrs()[i];
    for (const DimAttr& one : kDimAttrs) {
      if (one.opcode != op.opcode() || one.name != name) continue;
      // An empty list of strides and the like says that nothing is unusual.
      const bool is_optional = one.shift == Shift::ones || one.shift == Shift::zeros;
      if (is_optional && value == AttrValue(Ints()) && op.def().attrs[i].default_text == "[]")
        continue;
      if (auto* axis = std::get_if<int64_t>(&value)) *axis += static_cast<int64_t>(sizes.size());
      if (auto* ints = std::get_if<Ints>(&value)) *ints = shifted(*ints, one.shift, sizes);
      if (auto* dims = std::get_if<Dims>(&value)) *dims = shifted(*dims, one.shift, sizes);
    }
    made.emplace_back(name, std::move(value));
  }
  return made;
}

// All rows along the dim are equal.
bool is_alike_along(const Tensor& tensor, size_t dim) {
  const int64_t elements = tensor.elements();
  if (elements == 0 || tensor.byte_size() % elements != 0) return false;
  size_t inner = static_cast<size_t>(tensor.byte_size() / elements);
  const Ints& dims = tensor.type().static_dims();
  for (size_t i = dim + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  const auto size = static_cast<size_t>(dims[dim]);
  const std::span<const std::byte> bytes = tensor.bytes();
  for (size_t at = 0; at < bytes.size(); at += inner) {
    const size_t first = at - at / inner % size * inner;
    if (!std::ranges::equal(bytes.subspan(at, inner), bytes.subspan(first, inner))) return false;
  }
  return true;
}

std::vector<Differing> all_of(std::span<const Value> values, AxisSet axes) {
  std::vector<Differing> made;
  for (const Value& one : values) made.push_back({one, axes});
  return made;
}

}  // namespace

// ---- Values -------------------------------------------------------------------------------------

void Teller::refuse(Error error) const {
  importer.refuse(offset, op.empty() ? std::move(error) : std::move(error).about(op));
}

AxisSet DeviceDims::Application::axes() const {
  AxisSet all = 0;
  for (const Differing& one : operands) all |= one.axes;
  return all;
}

void DeviceDims::refuse(const Application& at, Error error) const {
  teller_.refuse(std::move(error).within(at.graph.describe(at.n)));
}

Dims DeviceDims::sizes(AxisSet axes) const {
  Dims made;
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (has(axes, i)) made.push_back(mesh_->axes[i].size);
  return made;
}

Members DeviceDims::members(AxisSet axes) const {
  Members made = {axes};
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (has(axes, i)) made.order.push_back(i);
  return made;
}

Members DeviceDims::manual_members(const DimSharding& dim) const {
  Members made;
  bool is_behind = false;
  for (const AxisPart& part : dim.axes) {
    const auto axis = static_cast<size_t>(
        std::ranges::find(mesh_->axes, part.axis, &MeshAxis::name) - mesh_->axes.begin());
    if (!has(manual_, axis)) {
      is_behind = true;
      continue;
    }
    if (part.size != 0 || is_behind)
      teller_.refuse(bad_input(
          "the manual axis '{}' must divide a dim as a whole, and before others", part.axis));
    if (mesh_->axes[axis].size == 1) continue;
    made.axes |= AxisSet{1} << axis;
    made.order.push_back(axis);
  }
  return made;
}

Type DeviceDims::local_type(const Differing& part) const {
  const Type type = part.value.type();
  return type.with_dims(type.dims().subspan(static_cast<size_t>(count_of(part.axes))));
}

Type DeviceDims::with_device_dims(Type local, AxisSet axes) const {
  Dims dims = sizes(axes);
  dims.insert(dims.end(), local.dims().begin(), local.dims().end());
  return local.with_dims(dims);
}

Differing DeviceDims::aligned(Differing v, AxisSet axes) {
  axes |= v.axes;
  if (axes == v.axes || !v.value) return v;
  const int64_t n = count_of(axes), own = count_of(v.axes);
  Ints map;
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (has(v.axes, i)) map.push_back(dim_of(axes, i));
  for (int64_t i = own; i < v.value.rank(); ++i) map.push_back(n + i - own);
  const Type wanted = with_device_dims(local_type(v), axes);
  return {broadcast(v.value, {wanted.dims().begin(), wanted.dims().end()}, map), axes};
}

std::vector<Value> DeviceDims::aligned(std::span<const Differing> all, AxisSet axes) {
  std::vector<Value> made;
  for (const Differing& one : all) made.push_back(aligned(one, axes).value);
  return made;
}

Differing DeviceDims::moved(Differing v, const Members& members, std::optional<int64_t> split,
                            std::optional<int64_t> join) {
  if (join) v = aligned(v, members.axes);
  const int64_t own = count_of(v.axes), count = std::ssize(members.order);
  const int64_t rank = v.value.rank() - own;
  const auto size_of = [&](size_t axis) { return mesh_->axes[axis].size; };
  if (split) {
    Dims dims = v.value.dims();
    Dim& cut = dims[static_cast<size_t>(own + *split)];
    for (const size_t axis : members.order) {
      const std::optional<Dim> rest = cut.divided_by(size_of(axis));
      if (!rest)
        teller_.refuse(unsupported("dim {} of a value of {} does not divide by the axis '{}' of {}",
                                   *split, local_type(v).to_string(), mesh_->axes[axis].name,
                                   size_of(axis)));
      cut = *rest;
    }
    Dims parts;
    for (const size_t axis : members.order) parts.push_back(size_of(axis));
    dims.insert(dims.begin() + own + *split, parts.begin(), parts.end());
    v.value = reshape(v.value, dims);
  }
  AxisSet axes = join ? v.axes & ~members.axes : v.axes;
  if (split) axes |= members.axes;
  Ints order;
  for (size_t i = 0; i < mesh_->axes.size(); ++i) {
    if (!has(axes, i)) continue;
    const auto part = std::ranges::find(members.order, i);
    const bool is_new = split && part != members.order.end();
    order.push_back(is_new ? own + *split + (part - members.order.begin()) : dim_of(v.axes, i));
  }
  Dims dims = sizes(axes);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t at = own + i + (split && i >= *split ? count : 0);
    Dim size = v.value.dim(static_cast<int>(at));
    for (const size_t axis : members.order) {
      if (join != i) break;
      order.push_back(dim_of(v.axes, axis));
      size *= size_of(axis);
    }
    order.push_back(at);
    dims.push_back(size);
  }
  v.value = transpose(v.value, order);
  return {join ? reshape(v.value, dims) : v.value, axes};
}

Differing DeviceDims::of_place(Differing v, AxisSet axes, int64_t place) {
  for (size_t i = mesh_->axes.size(); i-- > 0;) {
    const int64_t own = place % mesh_->axes[i].size;
    place /= mesh_->axes[i].size;
    if (!has(axes & v.axes, i)) continue;
    const auto at = static_cast<int>(dim_of(v.axes, i));
    v = {squeeze(slice(v.value, at, own, own + 1), at), v.axes & ~(AxisSet{1} << i)};
  }
  return v;
}

int64_t DeviceDims::place_of(const Mesh& single) const {
  const int64_t device = *single.single_device();
  const std::vector<int64_t>& devices = mesh_->devices;
  const int64_t place =
      devices.empty() ? device : std::ranges::find(devices, device) - devices.begin();
  if (place >= mesh_->device_count())
    teller_.refuse(bad_input("the device {} of the mesh '{}' is none of the mesh '{}' {}", device,
                             single.name, mesh_->name, axes_text(*mesh_)));
  return place;
}

std::optional<int64_t> DeviceDims::place_of(const Graph& program, NodeId n) const {
  std::optional<int64_t> place;
  for (const ValueId v : program.results(n)) {
    const std::optional<int64_t> own = place_of(program, v);
    if (!own || (place && *place != *own)) return std::nullopt;
    place = own;
  }
  return place;
}

std::optional<int64_t> DeviceDims::place_of(const Graph& program, ValueId v) const {
  if (program.shardings() == nullptr) return std::nullopt;
  for (const Sharding* one : program.shardings()->of(v))
    if (one->mesh->single_device()) return place_of(*one->mesh);
  return std::nullopt;
}

// Along axes that are not manual a value differs until it is that of one device, or is found to
// be alike. The index of a device along a manual axis is: it follows from its number along all.
Differing DeviceDims::without_open_axes(Differing v, std::optional<int64_t> place,
                                        Contents& contents) {
  AxisSet open = v.axes & ~manual_;
  if (open == 0) return v;
  if (place) return of_place(v, open, *place);
  const std::optional<Tensor> known = contents.constant(v.value.id());
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (has(open, i) && (!known || !is_alike_along(*known, static_cast<size_t>(dim_of(v.axes, i)))))
      open &= ~(AxisSet{1} << i);
  return of_place(v, open, 0);
}

Differing DeviceDims::parts_of(Value whole, const Sharding& divided) {
  Differing made = {whole};
  for (size_t i = 0; i < divided.dims.size(); ++i)
    if (const Members along = manual_members(divided.dims[i]); !along.order.empty())
      made = moved(made, along, static_cast<int64_t>(i), std::nullopt);
  return made;
}

Value DeviceDims::whole_of(Differing part, const Sharding& divided) {
  AxisSet kept = 0;
  for (const DimSharding& dim : divided.dims) kept |= manual_members(dim).axes;
  for (size_t i = 0; i < mesh_->axes.size(); ++i)
    if (has(part.axes & ~manual_, i))
      teller_.refuse(unsupported("a result depends on the number of a device along the axis '{}', "
                                 "which is not manual here",
                                 mesh_->axes[i].name)
                         .with_hint("make the axis manual, or state which device has the value: a "
                                    "mesh with device_ids=[0]"));
  part = of_place(part, ~kept, 0);
  for (size_t i = 0; i < divided.dims.size(); ++i)
    if (const Members along = manual_members(divided.dims[i]); !along.order.empty())
      part = moved(part, along, std::nullopt, static_cast<int64_t>(i));
  return part.value;
}

// ---- Shardings ----------------------------------------------------------------------------------

Sharding DeviceDims::with_device_dims(const Sharding& own, AxisSet axes) const {
  Sharding made = own;
  std::vector<DimSharding> front;
  for (const size_t axis : members(axes).order) {
    DimSharding& dim = front.emplace_back();
    if (has(manual_, axis)) dim.axes = {{.axis = mesh_->axes[axis].name}};
    dim.is_open = !has(manual_, axis);
  }
  made.dims.insert(made.dims.begin(), front.begin(), front.end());
  return made;
}

Sharding DeviceDims::of_part(const Sharding& divided, AxisSet axes) const {
  Sharding own = divided;
  const auto is_manual = [&](const AxisPart& part) {
    for (size_t i = 0; i < mesh_->axes.size(); ++i)
      if (has(manual_, i) && mesh_->axes[i].name == part.axis) return true;
    return false;
  };
  for (DimSharding& dim : own.dims) std::erase_if(dim.axes, is_manual);
  std::erase_if(own.replicated, is_manual);
  return with_device_dims(own, axes);
}

// ---- Nodes --------------------------------------------------------------------------------------

std::vector<Differing> DeviceDims::run(Builder& to, const Graph& program,
                                       std::span<const Differing> arguments, Shardings& said) {
  std::vector<Differing> values(program.value_count());
  for (size_t i = 0; i < arguments.size(); ++i) values[program.inputs()[i].index] = arguments[i];
  Contents contents(to.graph());
  for (const NodeId n : program.nodes()) {
    if (is_parameter(program.opcode(n))) continue;
    Application at = {to, program, n, {}};
    const std::optional<int64_t> place = place_of(program, n);
    for (const ValueId v : program.operands(n)) {
      Differing& own = at.operands.emplace_back(v.is_none() ? Differing() : values[v.index]);
      if (place) own = of_place(own, ~manual_, *place);  // one device computes it
    }
    const std::vector<Differing> results = node(std::move(at));
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = program.result(n, i);
      values[v.index] = without_open_axes(results[i], place_of(program, v), contents);
    }
  }
  if (program.shardings() != nullptr)
    for (const auto& [v, sharding] : program.shardings()->values) {
      if (manual_ != 0 && sharding.mesh->single_device())
        teller_.refuse(unsupported("{} is on a single device, within a program of each device",
                                   program.label(v)));
      for (const DimSharding& dim : sharding.dims)
        if (!manual_members(dim).order.empty())
          teller_.refuse(bad_input("{} is divided by an axis that is manual here: {}",
                                   program.label(v), dims_text(sharding)));
      said.add(values[v.index].value.id(), with_device_dims(sharding, values[v.index].axes));
    }
  std::vector<Differing> results;
  for (const ValueId v : program.outputs()) results.push_back(values[v.index]);
  return results;
}

std::vector<Differing> DeviceDims::node(Application at) {
  const Opcode opcode = at.op().opcode();
  if (is_constant(opcode)) return {{at.to.constant(at.graph.constant(at.n))}};
  if (class_of(opcode) == OpClass::collective) return collective(at);
  if (is_composite(opcode) && at.axes() != 0) {
    std::vector<Differing> present;
    for (const Differing& one : at.operands)
      if (one.value) present.push_back(one);
    Result<Graph> spelled = expansion(at.op(), at.graph.operand_types(at.n));
    if (!spelled.ok()) refuse(at, std::move(spelled).error());
    Shardings none;
    return run(at.to, *spelled, present, none);
  }
  switch (opcode) {
    case Opcode::call: {
      Shardings none;
      return run(at.to, *at.graph.regions(at.n)[0], at.operands, none);
    }
    case Opcode::if_: return branch(at);
    case Opcode::while_: return loop(at);
    case Opcode::scan: return scan(at);
    default: break;
  }
  if (at.axes() == 0) return all_of(at.to.ops(at.op(), aligned(at.operands, 0)), 0);
  switch (opcode) {
    case Opcode::conv: return {convolution(at)};
    case Opcode::dynamic_slice: return {dynamic_slice(at)};
    case Opcode::dynamic_update: return {dynamic_update(at)};
    case Opcode::pad: return at.operands[1].axes == 0 ? regular(at) : in_turn(at);
    default: return is_regular(opcode) ? regular(at) : in_turn(at);
  }
}

std::vector<Differing> DeviceDims::regular(Application& at) {
  const AxisSet axes = at.axes();
  const Opcode opcode = at.op().opcode();
  std::vector<Value> operands = aligned(at.operands, axes);
  if (opcode == Opcode::pad) operands[1] = at.operands[1].value;  // one number for all
  return all_of(at.to.ops(opcode, operands, shifted(at.op(), sizes(axes))), axes);
}

// Device dims become part of the batch. If kernels differ, they are groups of their own.
Differing DeviceDims::convolution(Application& at) {
  const std::string& order = at.op().word("order");
  const auto place = [&](char letter, size_t part) -> int64_t {
    if (order.empty()) return letter == 'f' ? 1 : 0;
    const size_t begin = part == 0 ? 0 : part == 1 ? order.find('_') + 1 : order.find('>') + 1;
    return static_cast<int64_t>(order.find(letter, begin) - begin);
  };
  const bool differs = at.operands[1].axes != 0;
  const Members all = members(at.axes());
  const Differing input = moved(at.operands[0], all, std::nullopt, place(differs ? 'f' : 'b', 0));
  Differing kernel = at.operands[1];
  Attrs attrs = shifted(at.op(), {});
  if (differs) {
    kernel = moved(kernel, all, std::nullopt, place('o', 1));
    int64_t devices = 1;
    for (const size_t axis : all.order) devices *= mesh_->axes[axis].size;
    for (auto& [name, value] : attrs)
      if (name == "groups") value = devices * at.op().integer("groups");
  }
  const Value made = at.to.op(Opcode::conv, {input.value, kernel.value}, std::move(attrs));
  return moved({made}, all, place(differs ? 'f' : 'b', 2), std::nullopt);
}

// The starts of a window as one vector: [device dims, dims]
Value DeviceDims::starts(Application& at, size_t first, AxisSet axes) {
  std::vector<Value> parts;
  for (size_t i = first; i < at.operands.size(); ++i) {
    const Value one = aligned(at.operands[i], axes).value;
    const DType wide = one.dtype() == DType::u64 ? DType::u64 : DType::i64;
    parts.push_back(unsqueeze(cast(one, wide), one.rank()));
  }
  return concat(parts, static_cast<int>(count_of(axes)));
}

// If all devices have the same starts: with those of device dims, which are 0. None: they differ.
std::optional<std::vector<Value>> DeviceDims::common_starts(Application& at, size_t first) {
  std::vector<Value> made;
  for (size_t i = first; i < at.operands.size(); ++i) {
    if (at.operands[i].axes != 0) return std::nullopt;
    made.push_back(at.operands[i].value);
  }
  const DType dtype = made.empty() ? DType::i64 : made[0].dtype();
  made.insert(made.begin(), static_cast<size_t>(count_of(at.axes())), at.to.scalar(dtype, 0));
  return made;
}

Differing DeviceDims::dynamic_slice(Application& at) {
  const Dims& window = at.op().dims("sizes");
  const AxisSet axes = at.axes();
  if (std::optional<std::vector<Value>> operands = common_starts(at, 1)) {
    operands->insert(operands->begin(), at.operands[0].value);
    return {at.to.op(Opcode::dynamic_slice, *operands,
                     {{"sizes", shifted(window, Shift::sizes, sizes(axes))}}),
            axes};
  }
  const int64_t n = count_of(axes), rank = std::ssize(window);
  Ints front(static_cast<size_t>(n)), dims(static_cast<size_t>(rank));
  std::iota(front.begin(), front.end(), 0);
  std::iota(dims.begin(), dims.end(), n);
  return {at.to.op(Opcode::gather, {aligned(at.operands[0], axes).value, starts(at, 1, axes)},
                   {{"offset_dims", dims},
                    {"collapsed_dims", Ints{}},
                    {"operand_batch_dims", front},
                    {"index_batch_dims", front},
                    {"index_map", dims},
                    {"index_vector_dim", n},
                    {"sizes", shifted(window, Shift::ones, sizes(axes))}}),
          axes};
}

// A scatter drops what is out of range, so that starts are brought into it before.
Differing DeviceDims::dynamic_update(Application& at) {
  const AxisSet axes = at.axes();
  const Value x = aligned(at.operands[0], axes).value, update = aligned(at.operands[1], axes).value;
  if (std::optional<std::vector<Value>> operands = common_starts(at, 2)) {
    operands->insert(operands->begin(), {x, update});
    return {at.to.op(Opcode::dynamic_update, *operands), axes};
  }
  const int64_t n = count_of(axes), rank = x.rank() - n;
  Ints front(static_cast<size_t>(n)), dims(static_cast<size_t>(rank)), last;
  std::iota(front.begin(), front.end(), 0);
  std::iota(dims.begin(), dims.end(), n);
  for (const int64_t i : dims)
    last.push_back(x.type().static_dims()[static_cast<size_t>(i)] -
                   update.type().static_dims()[static_cast<size_t>(i)]);
  const Value begin = starts(at, 2, axes);
  const Value most = at.to.constant(Tensor::from_integers(Type::get(begin.dtype(), {rank}), last));
  const Value within = maximum(minimum(begin, most), 0);
  return {at.to.op(Opcode::scatter, {x, within, update},
                   {{"window_dims", dims},
                    {"inserted_dims", Ints{}},
                    {"operand_batch_dims", front},
                    {"index_batch_dims", front},
                    {"index_map", dims},
                    {"index_vector_dim", n},
                    {"combine", std::string("replace")}}),
          axes};
}

}  // namespace hone::hlo
