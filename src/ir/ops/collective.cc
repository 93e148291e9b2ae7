#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/derivatives/rules.h"
#include "ir/op_def.h"
#include "ir/reference/elementwise.h"
#include "ir/reference/scalar_functions.h"

// Ops of several devices that run one program. A group is a list of devices that exchange data;
// position in the list is the member's place.

namespace hone {

namespace {

// ---- Attributes ---------------------------------------------------------------------------------

constexpr AttrSpec kGroupSize = {.name = "group_size",
                                 .kind = AttrKind::integer,
                                 .default_text = "",
                                 .doc = "Members per group."};
constexpr AttrSpec kGroups = {
    .name = "groups",
    .kind = AttrKind::ints,
    .default_text = "[]",
    .doc = "Device ids, group after group; every device is in one. Empty: consecutive ids."};
constexpr AttrSpec kKind = {.name = "kind",
                            .kind = AttrKind::word,
                            .default_text = "",
                            .doc = "How members' elements are combined.",
                            .words = "sum|product|max|min|and|or"};
constexpr AttrSpec kAxis = {.name = "axis",
                            .kind = AttrKind::integer,
                            .default_text = "",
                            .doc = "The split or joined dim."};

constexpr AttrSpec kAllReduceAttrs[] = {kKind, kGroupSize, kGroups};
constexpr AttrSpec kAllGatherAttrs[] = {kAxis, kGroupSize, kGroups};
constexpr AttrSpec kReduceScatterAttrs[] = {kKind, kAxis, kGroupSize, kGroups};
constexpr AttrSpec kAllToAllAttrs[] = {
    {.name = "split_axis",
     .kind = AttrKind::integer,
     .default_text = "",
     .doc = "The dim whose equal parts go to the members."},
    {.name = "concat_axis",
     .kind = AttrKind::integer,
     .default_text = "",
     .doc = "The dim along which the received parts are joined."},
    kGroupSize,
    kGroups};
constexpr AttrSpec kPermuteAttrs[] = {
    {.name = "pairs",
     .kind = AttrKind::ints,
     .default_text = "",
     .doc = "source, target, source, target, ...: device ids, or members of each group."},
    {.name = "group_size",
     .kind = AttrKind::integer,
     .default_text = "0",
     .doc = "Members per group, at least 2. 0: all devices are one group.",
     .came_later = true},
    {.name = "groups",
     .kind = AttrKind::ints,
     .default_text = "[]",
     .doc = kGroups.doc,
     .came_later = true},
};

// ---- Inference ----------------------------------------------------------------------------------

Status check_ids(std::span<const int64_t> ids, std::string_view what) {
  std::set<int64_t> seen;
  for (int64_t id : ids) {
    if (id < 0) return bad_input("{} names the device {}", what, id);
    if (!seen.insert(id).second) return bad_input("{} names the device {} twice", what, id);
  }
  return {};
}

Status check_groups(const Application& app) {
  int64_t size = app.op.integer("group_size");
  const Ints& groups = app.op.ints("groups");
  if (size < 1) return bad_input("group_size is {}", size);
  if (static_cast<int64_t>(groups.size()) % size != 0) {
    return bad_input("{} devices do not divide into groups of {}", groups.size(), size);
  }
  return check_ids(groups, "groups");
}

Status check_kind(const Application& app) {
  const std::string& kind = app.op.word("kind");
  DTypeSet allowed = kind == "and" || kind == "or" ? kInteger | kBool : kNumber;
  DType dtype = app.operand(0).dtype();
  if (allowed.contains(dtype)) return {};
  return bad_input("cannot combine {} by {}", name(dtype), kind);
}

Result<int> axis_of(const Application& app, std::string_view attr) {
  int64_t axis = app.op.integer(attr);
  int rank = app.operand(0).rank();
  if (axis >= 0 && axis < rank) return static_cast<int>(axis);
  return bad_input("{} {} is outside rank {}", attr, axis, rank);
}

// The dim of each of group_size equal parts.
Result<Dim> divided(const Application& app, int axis) {
  int64_t size = app.op.integer("group_size");
  Dim dim = app.operand(0).dim(axis);
  if (std::optional<Dim> part = dim.divided_by(size)) return *part;
  return bad_input("dim {} of {} does not divide into {} equal parts", axis,
                   app.operand(0).to_string(), size);
}

Result<std::vector<Type>> with_dims(const Application& app, const Dims& dims) {
  return std::vector<Type>{HONE_TRY(Type::make(app.operand(0).dtype(), dims))};
}

Dims dims_of(const Application& app) {
  return {app.operand(0).dims().begin(), app.operand(0).dims().end()};
}

Result<std::vector<Type>> infer_device_index(const Application&) {
  return std::vector<Type>{Type::scalar(DType::i64)};
}

Result<std::vector<Type>> infer_all_reduce(const Application& app) {
  HONE_TRY(check_groups(app));
  HONE_TRY(check_kind(app));
  return std::vector<Type>{app.operand(0)};
}

Result<std::vector<Type>> infer_all_gather(const Application& app) {
  HONE_TRY(check_groups(app));
  size_t axis = static_cast<size_t>(HONE_TRY(axis_of(app, "axis")));
  Dims dims = dims_of(app);
  dims[axis] *= app.op.integer("group_size");
  return with_dims(app, dims);
}

Result<std::vector<Type>> infer_reduce_scatter(const Application& app) {
  HONE_TRY(check_groups(app));
  HONE_TRY(check_kind(app));
  int axis = HONE_TRY(axis_of(app, "axis"));
  Dims dims = dims_of(app);
  dims[static_cast<size_t>(axis)] = HONE_TRY(divided(app, axis));
  return with_dims(app, dims);
}

Result<std::vector<Type>> infer_all_to_all(const Application& app) {
  HONE_TRY(check_groups(app));
  int split = HONE_TRY(axis_of(app, "split_axis"));
  int concat = HONE_TRY(axis_of(app, "concat_axis"));
  Dims dims = dims_of(app);
  dims[static_cast<size_t>(split)] = HONE_TRY(divided(app, split));
  dims[static_cast<size_t>(concat)] *= app.op.integer("group_size");
  return with_dims(app, dims);
}

Result<std::vector<Type>> infer_permute(const Application& app) {
  const Ints& pairs = app.op.ints("pairs");
  if (pairs.size() % 2 != 0) return bad_input("pairs has {} entries, an odd number", pairs.size());
  Ints sources;
  Ints targets;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    sources.push_back(pairs[i]);
    targets.push_back(pairs[i + 1]);
  }
  HONE_TRY(check_ids(sources, "the list of sources"));
  HONE_TRY(check_ids(targets, "the list of targets"));
  const int64_t size = app.op.integer("group_size");
  if (size == 0 && app.op.ints("groups").empty()) return std::vector<Type>{app.operand(0)};
  if (size < 2) return bad_input("a permute in groups of {}; they have at least 2 members", size);
  HONE_TRY(check_groups(app));
  for (const int64_t member : pairs)
    if (member >= size) return bad_input("pairs names member {} of groups of {}", member, size);
  return std::vector<Type>{app.operand(0)};
}

// ---- Evaluation ---------------------------------------------------------------------------------

template <class D>
using Group = std::vector<EvalCall<D>*>;

template <class D>
EvalCall<D>* find_call(std::span<EvalCall<D>> calls, int64_t device) {
  for (EvalCall<D>& call : calls) {
    if (call.device == device) return &call;
  }
  return nullptr;
}

Status check_device(int64_t device, int device_count) {
  if (device < device_count) return {};
  return bad_input("device {} does not exist: the program runs on {}", device, device_count);
}

Error did_not_come(int64_t absent, int64_t present) {
  return bad_input("device {} waits for device {}, which took another branch and never arrives",
                   present, absent);
}

// The groups of those devices that came here, each complete.
template <class D>
Result<std::vector<Group<D>>> groups_of(std::span<EvalCall<D>> calls) {
  Op op = calls[0].op;
  int device_count = calls[0].context.device_count;
  size_t size = static_cast<size_t>(op.integer("group_size"));
  Ints ids = op.ints("groups");
  if (ids.empty()) {
    for (int d = 0; d < device_count; ++d) ids.push_back(d);
  }
  if (ids.size() % size != 0) {
    return bad_input("{} devices do not divide into groups of {}", ids.size(), size)
        .with_hint(fmt::format("run the graph on a multiple of {} devices", size));
  }
  for (int64_t id : ids) HONE_TRY(check_device(id, device_count));
  for (EvalCall<D>& call : calls) {
    if (std::ranges::find(ids, call.device) == ids.end()) {
      return bad_input("device {} is not in any group", call.device);
    }
  }
  std::vector<Group<D>> groups;
  for (size_t begin = 0; begin < ids.size(); begin += size) {
    Group<D> group;
    for (size_t i = begin; i < begin + size; ++i) group.push_back(find_call(calls, ids[i]));
    size_t present = 0;
    while (present < size && group[present] == nullptr) ++present;
    if (present == size) continue;
    for (size_t i = 0; i < size; ++i) {
      if (group[i] == nullptr) return did_not_come(ids[begin + i], ids[begin + present]);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// A tensor as [outer, dims[axis] * inner]: a range of the axis is one stretch per row.
template <class D>
struct Rows {
  Rows(const Buffer<D>& buffer, int64_t axis) {
    Ints dims = buffer.dims();
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) < axis)
        rows *= dims[i];
      else
        width *= dims[i];
    }
  }
  int64_t rows = 1;
  int64_t width = 1;
};

// Copies the stretch [from_part * n, + n) of each row of `from` to stretch [to_part * n, + n) of
// the row of `to`; n is the narrower one's width.
template <class D>
void copy_part(const Buffer<D>& from, int64_t from_part, Buffer<D>& to, int64_t to_part,
               int64_t axis) {
  Rows<D> source(from, axis);
  Rows<D> target(to, axis);
  int64_t count = std::min(source.width, target.width);
  with_elements(from, [&]<class T>(std::type_identity<T>) {
    std::span<const T> in = from.template as<T>();
    std::span<T> out = to.template as<T>();
    for (int64_t row = 0; row < source.rows; ++row) {
      std::copy_n(in.begin() + row * source.width + from_part * count, count,
                  out.begin() + row * target.width + to_part * count);
    }
  });
}

// total = total (kind) more
template <class D>
Status combine(Op op, ThreadPool& pool, Buffer<D>& total, const Buffer<D>& more) {
  const std::string& kind = op.word("kind");
  if (kind == "sum") return map_function<scalar::Add>(op, pool, total, total, more);
  if (kind == "product") return map_function<scalar::Mul>(op, pool, total, total, more);
  if (kind == "max") return map_function<scalar::Max>(op, pool, total, total, more);
  if (kind == "min") return map_function<scalar::Min>(op, pool, total, total, more);
  if (kind == "and") return map_function<scalar::And>(op, pool, total, total, more);
  return map_function<scalar::Or>(op, pool, total, total, more);
}

template <class D>
Result<Buffer<D>> combined(const Group<D>& group) {
  Buffer<D> total = group[0]->operand(0);
  for (size_t i = 1; i < group.size(); ++i) {
    HONE_TRY(combine(group[i]->op, group[i]->context.pool, total, group[i]->operand(0)));
  }
  return total;
}

struct EvalDeviceIndex {
  template <class D>
  static Status run(EvalCall<D>& call) {
    call.result().ints()[0] = typename D::Int(call.device);
    return {};
  }
};

struct EvalAllReduce {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    for (const Group<D>& group : HONE_TRY(groups_of(calls))) {
      Buffer<D> total = HONE_TRY(combined(group));
      for (EvalCall<D>* member : group) member->result() = total;
    }
    return {};
  }
};

struct EvalAllGather {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    int64_t axis = calls[0].op.integer("axis");
    for (const Group<D>& group : HONE_TRY(groups_of(calls))) {
      for (EvalCall<D>* member : group) {
        for (size_t i = 0; i < group.size(); ++i) {
          copy_part(group[i]->operand(0), 0, member->result(), static_cast<int64_t>(i), axis);
        }
      }
    }
    return {};
  }
};

struct EvalReduceScatter {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    int64_t axis = calls[0].op.integer("axis");
    for (const Group<D>& group : HONE_TRY(groups_of(calls))) {
      Buffer<D> total = HONE_TRY(combined(group));
      for (size_t i = 0; i < group.size(); ++i) {
        copy_part(total, static_cast<int64_t>(i), group[i]->result(), 0, axis);
      }
    }
    return {};
  }
};

struct EvalAllToAll {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    int64_t split = calls[0].op.integer("split_axis");
    int64_t concat = calls[0].op.integer("concat_axis");
    Type whole = calls[0].operand(0).type();
    Dims dims(whole.dims().begin(), whole.dims().end());
    Dim& dim = dims[static_cast<size_t>(split)];
    dim = dim.value() / calls[0].op.integer("group_size");
    Buffer<D> part(whole.with_dims(dims));
    for (const Group<D>& group : HONE_TRY(groups_of(calls))) {
      for (size_t to = 0; to < group.size(); ++to) {
        for (size_t from = 0; from < group.size(); ++from) {
          copy_part(group[from]->operand(0), static_cast<int64_t>(to), part, 0, split);
          copy_part(part, 0, group[to]->result(), static_cast<int64_t>(from), concat);
        }
      }
    }
    return {};
  }
};

struct EvalPermute {
  template <class D>
  static Status run(std::span<EvalCall<D>> calls) {
    if (calls[0].op.integer("group_size") != 0) return run_groups(calls);
    const Ints& pairs = calls[0].op.ints("pairs");
    for (size_t i = 0; i < pairs.size(); i += 2) {
      HONE_TRY(check_device(pairs[i], calls[0].context.device_count));
      HONE_TRY(check_device(pairs[i + 1], calls[0].context.device_count));
      EvalCall<D>* source = find_call(calls, pairs[i]);
      EvalCall<D>* target = find_call(calls, pairs[i + 1]);
      if (source == nullptr && target == nullptr) continue;
      if (source == nullptr) return did_not_come(pairs[i], pairs[i + 1]);
      if (target == nullptr) return did_not_come(pairs[i + 1], pairs[i]);
      target->result() = source->operand(0);
    }
    return {};
  }

 private:
  template <class D>
  static Status run_groups(std::span<EvalCall<D>> calls) {
    const Ints& pairs = calls[0].op.ints("pairs");
    for (const Group<D>& group : HONE_TRY(groups_of(calls)))
      for (size_t i = 0; i < pairs.size(); i += 2)
        group[static_cast<size_t>(pairs[i + 1])]->result() =
            group[static_cast<size_t>(pairs[i])]->operand(0);
    return {};
  }
};

constexpr EvalTable kEvalDeviceIndex = local_eval<EvalDeviceIndex>();
constexpr EvalTable kEvalAllReduce = joint_eval<EvalAllReduce>();
constexpr EvalTable kEvalAllGather = joint_eval<EvalAllGather>();
constexpr EvalTable kEvalReduceScatter = joint_eval<EvalReduceScatter>();
constexpr EvalTable kEvalAllToAll = joint_eval<EvalAllToAll>();
constexpr EvalTable kEvalPermute = joint_eval<EvalPermute>();

constexpr OpTraits kExchanges = {.has_effect = true};
constexpr OpTraits kMovesBetweenDevices = {.moves_data = true, .has_effect = true};

}  // namespace

extern const OpDef op_def_device_index;
const OpDef op_def_device_index = {.opcode = Opcode::device_index,
                                   .summary = "the number of the device that evaluates it, from 0",
                                   .operands = "",
                                   .dtypes = {DType::i64},
                                   .traits = kExchanges,  // no constant, though it has no operand
                                   .infer = &infer_device_index,
                                   .eval = &kEvalDeviceIndex};

extern const OpDef op_def_all_reduce;
const OpDef op_def_all_reduce = {
    .opcode = Opcode::all_reduce,
    .summary = "combines the members' tensors element by element; every member gets the result",
    .semantics =
        "The reference combines in the order of the group. Integers wrap; max and min give "
        "NaN if any member has NaN; and, or are logical for bool, bitwise for integers.",
    .operands = "x",
    .attrs = kAllReduceAttrs,
    .traits = kExchanges,
    .infer = &infer_all_reduce,
    .flops_per_point = 1,
    .eval = &kEvalAllReduce,
    .derivative = &derivative_all_reduce};

extern const OpDef op_def_all_gather;
const OpDef op_def_all_gather = {
    .opcode = Opcode::all_gather,
    .summary = "joins the members' tensors along an axis; every member gets the result",
    .semantics = "In the order of the group.",
    .operands = "x",
    .attrs = kAllGatherAttrs,
    .dtypes = kAny,
    .traits = kMovesBetweenDevices,
    .infer = &infer_all_gather,
    .eval = &kEvalAllGather,
    .derivative = &derivative_all_gather};

extern const OpDef op_def_reduce_scatter;
const OpDef op_def_reduce_scatter = {
    .opcode = Opcode::reduce_scatter,
    .summary = "all_reduce of which member i gets the i-th part along an axis",
    .semantics = "The axis must divide into group_size equal parts. Combines as all_reduce does.",
    .operands = "x",
    .attrs = kReduceScatterAttrs,
    .traits = kExchanges,
    .infer = &infer_reduce_scatter,
    .flops_per_point = 1,
    .eval = &kEvalReduceScatter,
    .derivative = &derivative_reduce_scatter};

extern const OpDef op_def_all_to_all;
const OpDef op_def_all_to_all = {
    .opcode = Opcode::all_to_all,
    .summary = "member i sends its j-th part to member j, which joins what it gets",
    .semantics =
        "split_axis is cut into group_size equal parts; parts are joined along concat_axis "
        "in the order of the group.",
    .operands = "x",
    .attrs = kAllToAllAttrs,
    .dtypes = kAny,
    .traits = kMovesBetweenDevices,
    .infer = &infer_all_to_all,
    .eval = &kEvalAllToAll,
    .derivative = &derivative_all_to_all};

extern const OpDef op_def_permute;
const OpDef op_def_permute = {
    .opcode = Opcode::permute,
    .summary = "sends whole tensors between pairs of devices",
    .semantics =
        "No device is the source or the target of two pairs. A device that is not a target gets "
        "zeros. With group_size, the pairs are members, and every group does so.",
    .operands = "x",
    .attrs = kPermuteAttrs,
    .dtypes = kAny,
    .traits = kMovesBetweenDevices,
    .infer = &infer_permute,
    .eval = &kEvalPermute,
    .derivative = &derivative_permute};

}  // namespace hone
