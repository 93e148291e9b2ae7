#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "front/hlo/bodies.h"
#include "front/hlo/importer.h"

// Ops of several devices, and the op by which tests run programs on them.
//
// The languages number replicas and partitions apart; hone numbers devices. Partition p of replica
// r is device r * partitions + p.

namespace hone::hlo {
namespace {

// The meaning of the numbers of a group.
enum class Members : uint8_t {
  replicas,    // there is a group for each partition
  partitions,  // there is a group for each replica
  both,        // replicas, with all of their partitions
  devices,
};

bool has_flag(Node& n, std::string_view name) {
  const Attribute* found = n.find(name);
  return found != nullptr && (found->kind == Attribute::Kind::unit || found->integer != 0);
}

bool has_channel(Node& n) { return n.field("channel_handle", "handle|channel_id", int64_t{0}) > 0; }

Members members_of(Node& n) {
  if (!has_channel(n)) return Members::replicas;
  return has_flag(n, "use_global_device_ids") ? Members::devices : Members::both;
}

// The rows of a list of lists, or of a literal of two dims. -1 fills up rows that are shorter.
std::vector<Ints> rows_of(Node& n, std::string_view names) {
  std::vector<Ints> rows;
  const Attribute* found = n.find(names);
  if (found == nullptr) return rows;
  if (found->kind == Attribute::Kind::literal) {
    const Ints all = n.ints_of(*found);
    const Type type = found->type.type;
    if (type.rank() != 2) n.refuse(bad_input("groups of devices must be a list of lists"));
    const auto columns = static_cast<size_t>(type.static_dims()[1]);
    for (size_t i = 0; columns > 0 && i < all.size(); i += columns)
      rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                        all.begin() + static_cast<std::ptrdiff_t>(i + columns));
  } else {
    for (const Attribute& row : found->items) rows.push_back(n.ints_of(row));
  }
  for (Ints& row : rows) std::erase(row, -1);
  std::erase_if(rows, [](const Ints& row) { return row.empty(); });
  return rows;
}

// The groups as devices. Without any, all are one group.
std::vector<Ints> groups_of(Node& n, Members members) {
  const DeviceGrid grid = n.importer().grid;
  std::vector<Ints> rows = rows_of(n, "replica_groups");
  if (rows.empty()) {
    const int64_t count = members == Members::partitions ? grid.partitions
                          : members == Members::devices  ? grid.devices()
                                                         : grid.replicas;
    rows.emplace_back(count);
    std::iota(rows[0].begin(), rows[0].end(), 0);
  }
  for (const Ints& row : rows)
    for (const int64_t id : row)
      if (id < 0 || id >= kMostDevices) n.refuse(bad_input("there can be no device {}", id));
  std::vector<Ints> groups;
  switch (members) {
    case Members::devices: return rows;
    case Members::replicas:
      for (int64_t p = 0; p < grid.partitions; ++p)
        for (const Ints& row : rows) {
          Ints& group = groups.emplace_back();
          for (const int64_t r : row) group.push_back(r * grid.partitions + p);
        }
      return groups;
    case Members::partitions:
      for (int64_t r = 0; r < grid.replicas; ++r)
        for (const Ints& row : rows) {
          Ints& group = groups.emplace_back();
          for (const int64_t p : row) group.push_back(r * grid.partitions + p);
        }
      return groups;
    case Members::both:
      for (const Ints& row : rows) {
        Ints& group = groups.emplace_back();
        for (int64_t p = 0; p < grid.partitions; ++p)
          for (const int64_t r : row) group.push_back(r * grid.partitions + p);
      }
      return groups;
  }
  return groups;
}

// The attributes of hone's collectives.
struct EqualGroups {
  int64_t size = 1;
  Ints devices = {};

  Attrs attrs(Attrs more) const {
    more.emplace_back("group_size", size);
    more.emplace_back("groups", devices);
    return more;
  }
};

EqualGroups equal_groups(Node& n, const std::vector<Ints>& groups) {
  EqualGroups made = {static_cast<int64_t>(groups[0].size())};
  for (const Ints& group : groups) {
    if (static_cast<int64_t>(group.size()) != made.size)
      n.refuse(unsupported("among groups of {} and of {} devices is not handled", made.size,
                           group.size()));
    made.devices.insert(made.devices.end(), group.begin(), group.end());
  }
  return made;
}

Value device_index(Node& n) { return n.builder().op(Opcode::device_index, {}); }

// The number that the table has for the device.
Value by_device(Node& n, const Ints& table) {
  const Type type = Type::get(DType::i64, {static_cast<int64_t>(table.size())});
  return take(n.builder().constant(Tensor::from_integers(type, table)), device_index(n));
}

// [members, ...]
Value gathered(Node& n, Value x, const EqualGroups& groups) {
  return n.builder().op(Opcode::all_gather, {unsqueeze(x, 0)},
                        groups.attrs({{"axis", int64_t{0}}}));
}

Value member(Value gathered, int64_t i) { return squeeze(slice(gathered, 0, i, i + 1), 0); }

// A body that hone has no op for: all values are gathered, and combined in their order.
Value combined(Node& n, const Body& body, Value x, const EqualGroups& groups) {
  const Value all = gathered(n, x, groups);
  const Dims dims = x.dims();
  Value total = member(all, 0);
  for (int64_t i = 1; i < groups.size; ++i) {
    const std::vector<Value> made = n.apply(body, std::vector<Value>{total, member(all, i)}, &dims);
    if (made.size() != 1 || made[0].type() != x.type())
      n.refuse(bad_input("the body must give one value of the type of its operands"));
    total = made[0];
  }
  return total;
}

// The place of the first device of a group among its devices in order, if it is the same in all
// groups, and they are all devices.
std::optional<int64_t> common_root(const std::vector<Ints>& groups, int64_t devices) {
  Ints all;
  std::optional<int64_t> place;
  for (const Ints& group : groups) {
    const int64_t own = std::ranges::count_if(group, [&](int64_t d) { return d < group[0]; });
    if (group.size() != groups[0].size() || own != place.value_or(own)) return std::nullopt;
    place = own;
    all.insert(all.end(), group.begin(), group.end());
  }
  Ints wanted(static_cast<size_t>(devices));
  std::iota(wanted.begin(), wanted.end(), 0);
  std::ranges::sort(all);
  return all == wanted ? place : std::nullopt;
}

int64_t axis_of_one(Node& n, std::string_view names, Value x) {
  const Ints axes = n.ints(names);
  if (axes.size() != 1 || axes[0] < 0 || axes[0] >= x.rank())
    n.refuse(
        bad_input("the dims {} are not one dim of {}", join(axes, ", "), x.type().to_string()));
  return axes[0];
}

}  // namespace

std::vector<Value> map_partition_id(Node& n) {
  n.need(0);
  const DeviceGrid grid = n.importer().grid;
  const Value device = device_index(n);
  const auto partitions = static_cast<double>(grid.partitions);
  return {cast(grid.replicas == 1 ? device : binary(Opcode::rem, device, partitions), DType::u32)};
}

std::vector<Value> map_replica_id(Node& n) {
  n.need(0);
  const auto partitions = static_cast<double>(n.importer().grid.partitions);
  return {cast(partitions == 1 ? device_index(n) : device_index(n) / partitions, DType::u32)};
}

std::vector<Value> map_collective_permute(Node& n) {
  const DeviceGrid grid = n.importer().grid;
  const bool of_partitions = has_channel(n);
  const Ints stated = n.ints("source_target_pairs", Ints());
  for (const int64_t id : stated)
    if (id < 0 || id >= kMostDevices) n.refuse(bad_input("there can be no device {}", id));
  Ints pairs;
  for (int64_t k = 0; k < (of_partitions ? grid.replicas : grid.partitions); ++k)
    for (const int64_t id : stated)
      pairs.push_back(of_partitions ? k * grid.partitions + id : id * grid.partitions + k);
  std::vector<Value> results;
  for (const Value& x : n.operands())
    results.push_back(n.builder().op(Opcode::permute, {x}, {{"pairs", pairs}}));
  return results;
}

std::vector<Value> map_all_gather(Node& n) {
  const EqualGroups groups = equal_groups(n, groups_of(n, members_of(n)));
  std::vector<Value> results;
  for (const Value& x : n.operands())
    results.push_back(
        n.builder().op(Opcode::all_gather, {x},
                       groups.attrs({{"axis", axis_of_one(n, "all_gather_dim|dimensions", x)}})));
  return results;
}

std::vector<Value> map_all_reduce(Node& n) {
  const EqualGroups groups = equal_groups(n, groups_of(n, members_of(n)));
  const Body body = n.body(0, "to_apply");
  const std::optional<std::string_view> kind = combiner(body);
  std::vector<Value> results;
  for (const Value& x : n.operands()) {
    if (kind && has_op(*kind, x.dtype()))
      results.push_back(
          n.builder().op(Opcode::all_reduce, {x}, groups.attrs({{"kind", std::string(*kind)}})));
    else
      results.push_back(combined(n, body, x, groups));
  }
  return results;
}

std::vector<Value> map_reduce_scatter(Node& n) {
  n.need(1);
  const EqualGroups groups = equal_groups(n, groups_of(n, members_of(n)));
  const Body body = n.body(0, "to_apply");
  const Value x = n.in();
  const int64_t axis = axis_of_one(n, "scatter_dimension|dimensions", x);
  const std::optional<std::string_view> kind = combiner(body);
  if (kind && has_op(*kind, x.dtype()))
    return {n.builder().op(Opcode::reduce_scatter, {x},
                           groups.attrs({{"kind", std::string(*kind)}, {"axis", axis}}))};
  const std::optional<Dim> part = x.dim(static_cast<int>(axis)).divided_by(groups.size);
  if (!part || !part->is_static())
    n.refuse(bad_input("dim {} of {} does not divide into {} parts", axis, x.type().to_string(),
                       groups.size));
  // The part of each device.
  Ints places(1 + static_cast<size_t>(*std::ranges::max_element(groups.devices)), 0);
  for (size_t i = 0; i < groups.devices.size(); ++i)
    places[static_cast<size_t>(groups.devices[i])] = static_cast<int64_t>(i) % groups.size;
  Dims apart = x.dims();
  apart[static_cast<size_t>(axis)] = *part;
  apart.insert(apart.begin() + axis, groups.size);
  const Value parts = reshape(combined(n, body, x, groups), apart);
  return {take(parts, by_device(n, places), static_cast<int>(axis))};
}

std::vector<Value> map_all_to_all(Node& n) {
  const EqualGroups groups =
      equal_groups(n, groups_of(n, has_channel(n) ? Members::partitions : Members::replicas));
  if (n.find("split_dimension|dimensions") == nullptr)
    n.refuse(unsupported("of an operand for each device is not handled"));
  std::vector<Value> results;
  for (const Value& x : n.operands())
    results.push_back(n.builder().op(
        Opcode::all_to_all, {x},
        groups.attrs({{"split_axis", axis_of_one(n, "split_dimension|dimensions", x)},
                      {"concat_axis", axis_of_one(n, "concat_dimension|dimensions", x)}})));
  return results;
}

// Each group gets the value of its first device, or of the one that the last operand names. Devices
// of no group get zeros.
std::vector<Value> map_collective_broadcast(Node& n) {
  std::vector<Ints> groups = groups_of(n, has_channel(n) ? Members::partitions : Members::replicas);
  int64_t devices = n.importer().grid.devices();
  const bool has_roots = has_flag(n, "has_dynamic_root");
  if (const std::optional<int64_t> place = common_root(groups, devices); place && !has_roots) {
    for (Ints& group : groups) std::ranges::sort(group);
    const EqualGroups all = equal_groups(n, groups);
    std::vector<Value> results;
    for (const Value& x : n.operands()) results.push_back(member(gathered(n, x, all), *place));
    return results;
  }
  size_t width = 1;
  for (const Ints& group : groups) {
    width = std::max(width, group.size());
    for (const int64_t id : group) devices = std::max(devices, id + 1);
  }
  // The group of each device. Behind the last device stand zeros.
  Ints table(static_cast<size_t>(devices) * width, devices);
  for (const Ints& group : groups)
    for (const int64_t id : group)
      std::ranges::copy(
          group, table.begin() + static_cast<std::ptrdiff_t>(id * std::ssize(table) / devices));
  const Type type = Type::get(DType::i64, {devices, static_cast<int64_t>(width)});
  const Value own = take(n.builder().constant(Tensor::from_integers(type, table)), device_index(n));
  std::vector<Value> sources = n.operands();
  Value roots;
  if (has_roots && !sources.empty()) {
    roots = sources.back();
    sources.pop_back();
    if (roots.rank() != 1 || !is_integer(roots.dtype()) ||
        !roots.dim(0).is(static_cast<int64_t>(sources.size())))
      n.refuse(
          bad_input("the last operand must name a root for each of {} values", sources.size()));
  }
  std::vector<Value> results;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Value x = sources[i];
    const Value all = gathered(n, x, {devices});
    const Value zeros = cast(n.builder().full(DType::i64, unsqueeze(x, 0).dims(), 0), x.dtype());
    const Value root =
        roots ? member(roots, static_cast<int64_t>(i)) : n.builder().full(DType::i64, {}, 0);
    results.push_back(take(concat({all, zeros}, 0), take(own, root)));
  }
  return results;
}

// A test sends to a queue that nobody reads.
std::vector<Value> map_outfeed(Node& n) {
  if (n.importer().checks == nullptr)
    n.refuse(unsupported("to a host, which is not part of the program"));
  return {};
}

// Each device runs `main`, and here a program of its own. The number of a device chooses its
// arguments. Every device gets the results of all programs.
std::vector<Value> map_run_parallel(Node& n) {
  Importer& importer = n.importer();
  if (importer.checks == nullptr)
    n.refuse(unsupported("a model runs one program")
                 .with_hint("'hone conformance FILE' runs programs that contain their answers"));
  if (n.find("infeed") != nullptr) n.refuse(unsupported("with queues of inputs is not handled"));
  const Attribute* programs = n.find("programs");
  if (programs == nullptr || programs->items.empty() || programs->items[0].items.empty())
    n.refuse(bad_input("it names no programs"));
  const DeviceGrid grid = {static_cast<int64_t>(programs->items.size()),
                           static_cast<int64_t>(programs->items[0].items.size())};
  const std::string_view name = programs->items[0].items[0].text;
  for (const Attribute& row : programs->items) {
    if (static_cast<int64_t>(row.items.size()) != grid.partitions)
      n.refuse(
          bad_input("the replicas have {} and {} partitions", grid.partitions, row.items.size()));
    for (const Attribute& one : row.items)
      if (one.kind != Attribute::Kind::symbol || one.text != name)
        n.refuse(unsupported("devices with different programs are not handled"));
  }
  const int64_t devices = grid.devices();
  if (devices > 1 && importer.devices > 1 && importer.devices != devices)
    n.refuse(unsupported("first on {} devices, then on {}", importer.devices, devices));
  importer.devices = std::max(importer.devices, devices);
  const Function& function = importer.function_named(name, n.instruction().offset);
  const size_t count = function.body.parameters.size();
  if (n.instruction().operands.size() != count * static_cast<size_t>(devices))
    n.refuse(bad_input("there are {} operands for {} programs of {} parameters",
                       n.instruction().operands.size(), devices, count));
  std::vector<Held> arguments;
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::vector<Value>> leaves(static_cast<size_t>(devices));
    for (size_t d = 0; d < leaves.size(); ++d) append_leaves(n.held(d * count + i), leaves[d]);
    std::vector<Value> own;
    for (size_t k = 0; k < leaves[0].size(); ++k) {
      std::vector<Value> of_all;
      for (const std::vector<Value>& each : leaves) {
        if (each.size() != leaves[0].size() || each[k].type() != leaves[0][k].type())
          n.refuse(bad_input("parameter {} has different types on different devices", i));
        of_all.push_back(unsqueeze(each[k], 0));
      }
      own.push_back(devices == 1 ? leaves[0][k] : take(concat(of_all, 0), device_index(n)));
    }
    std::span<const Value> rest = own;
    arguments.push_back(from_leaves(n.held(i), rest));
  }
  const DeviceGrid outer = std::exchange(importer.grid, grid);
  const std::vector<Held> results =
      importer.call(n.frame(), {&function, &function.body}, std::move(arguments));
  importer.grid = outer;
  std::vector<Value> own;
  for (const Held& one : results) append_leaves(one, own);
  if (devices == 1) return own;
  std::vector<Value> of_all;
  for (const Value& each : own) of_all.push_back(gathered(n, each, {devices}));
  std::vector<Value> made;
  for (int64_t d = 0; d < devices; ++d)
    for (const Value& each : of_all) made.push_back(member(each, d));
  return made;
}

}  // namespace hone::hlo
