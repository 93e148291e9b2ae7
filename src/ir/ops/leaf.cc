#include <array>
#include <cstdint>

#include "base/rng.h"
#include "ir/op_def.h"
#include "ir/reference/elementwise.h"

namespace hone {

namespace {

constexpr AttrSpec kTypeAttrs[] = {
    {.name = "dtype", .kind = AttrKind::dtype, .default_text = "", .doc = "The element type."},
    {.name = "dims", .kind = AttrKind::dims, .default_text = "", .doc = "The shape."},
};

Result<Type> attr_type(Op op) { return Type::make(op.dtype("dtype"), op.dims("dims")); }

Result<std::vector<Type>> infer_leaf(const Application& app) {
  return std::vector<Type>{HONE_TRY(attr_type(app.op))};
}

// Every result element is a point of its own; operands are scalars that all points read.
AccessRelation access_leaf(const Application& app, std::span<const Type> results) {
  static constexpr std::array<std::string_view, kMaxRank> kNames = {
      "d0", "d1", "d2",  "d3",  "d4",  "d5",  "d6",  "d7",
      "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15"};
  AccessRelation relation;
  Access result;
  for (int d = 0; d < results[0].rank(); ++d) {
    relation.dims.push_back({kNames[static_cast<size_t>(d)], results[0].dim(d)});
    result.index.push_back(IndexExpr::iter(d));
  }
  relation.results.push_back(result);
  relation.operands.assign(app.operands.size(), {Access{.index = {}}});
  return relation;
}

// ---- iota ---------------------------------------------------------------------------------------

constexpr AttrSpec kIotaAttrs[] = {
    kTypeAttrs[0],
    kTypeAttrs[1],
    {.name = "axis", .kind = AttrKind::integer, .default_text = "", .doc = "Where it counts."},
};

Result<std::vector<Type>> infer_iota(const Application& app) {
  Type type = HONE_TRY(attr_type(app.op));
  int64_t axis = app.op.integer("axis");
  if (!kNumber.contains(type.dtype())) {
    return bad_input("cannot count in element type {}", name(type.dtype()));
  }
  if (axis < 0 || axis >= type.rank()) {
    return bad_input("axis {} is outside rank {}", axis, type.rank());
  }
  return std::vector<Type>{type};
}

struct EvalIota {
  template <class D>
  static Status run(EvalCall<D>& call) {
    Buffer<D>& out = call.result();
    size_t axis = static_cast<size_t>(call.op.integer("axis"));
    Ints dims = out.dims();
    int64_t stride = row_major_strides(dims)[axis];
    with_elements(out, [&]<class T>(std::type_identity<T>) {
      std::span<T> numbers = out.template as<T>();
      for (size_t i = 0; i < numbers.size(); ++i) {
        int64_t index = static_cast<int64_t>(i) / stride % dims[axis];
        if (out.holds_reals()) {
          numbers[i] = real_from_integer<T>(index);
        } else {
          numbers[i] = T(wrap_to(out.dtype(), index));
        }
      }
    });
    return {};
  }

 private:
  template <class T>
  static T real_from_integer(int64_t index) {
    if constexpr (is_tracked<T>) {
      return T(static_cast<decltype(T::value)>(index));
    } else {
      return static_cast<T>(index);
    }
  }
};
constexpr EvalTable kEvalIota = local_eval<EvalIota>();

// ---- rng_bits -----------------------------------------------------------------------------------

Result<std::vector<Type>> infer_rng_bits(const Application& app) {
  Type type = HONE_TRY(attr_type(app.op));
  if (type.dtype() != DType::u32 && type.dtype() != DType::u64) {
    return bad_input("random bits are u32 or u64, not {}", name(type.dtype()));
  }
  for (int i = 0; i < 2; ++i) {
    if (app.operand(i) != Type::scalar(DType::u64)) {
      return bad_input("{} must be u64[], not {}", i == 0 ? "key" : "counter",
                       app.operand(i).to_string());
    }
  }
  return std::vector<Type>{type};
}

struct EvalRngBits {
  template <class D>
  static Status run(EvalCall<D>& call) {
    using Int = typename D::Int;
    const Int& key = call.operand(0).ints()[0];
    const Int& counter = call.operand(1).ints()[0];
    std::span<Int> out = call.result().ints();
    bool narrow = call.result().dtype() == DType::u32;
    call.context.pool.parallel_for(
        0, static_cast<int64_t>(out.size()), kElementGrain, [&](int64_t from, int64_t to) {
          for (int64_t i = from; i < to; ++i) {
            uint64_t bits =
                word(static_cast<uint64_t>(plain(key)),
                     static_cast<uint64_t>(plain(counter)) + static_cast<uint64_t>(i / 2),
                     static_cast<size_t>(i % 2), narrow);
            out[static_cast<size_t>(i)] =
                depending_on(depending_on(Int(static_cast<int64_t>(bits)), key), counter);
          }
        });
    return {};
  }

 private:
  static uint64_t word(uint64_t key, uint64_t counter, size_t which, bool narrow) {
    if (!narrow) return threefry2x64({key, 0}, {counter, 0})[which];
    auto halves = [](uint64_t x) {
      return std::array<uint32_t, 2>{static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
    };
    return threefry2x32(halves(key), halves(counter))[which];
  }
};
constexpr EvalTable kEvalRngBits = local_eval<EvalRngBits>();

}  // namespace

extern const OpDef op_def_parameter;
const OpDef op_def_parameter = {.opcode = Opcode::parameter,
                                .summary = "an input of the graph",
                                .operands = "",
                                .attrs = kTypeAttrs,
                                .dtypes = kAny,
                                .infer = &infer_leaf};

extern const OpDef op_def_constant;
const OpDef op_def_constant = {.opcode = Opcode::constant,
                               .summary = "a tensor that is part of the graph",
                               .operands = "",
                               .attrs = kTypeAttrs,
                               .dtypes = kAny,
                               .infer = &infer_leaf};

extern const OpDef op_def_iota;
const OpDef op_def_iota = {
    .opcode = Opcode::iota,
    .summary = "each element is its index along the axis",
    .semantics = "An integer type too narrow for the index wraps; a real type rounds.",
    .operands = "",
    .attrs = kIotaAttrs,
    .dtypes = kNumber,
    .infer = &infer_iota,
    .access = &access_leaf,
    .flops_per_point = 1,
    .eval = &kEvalIota};

extern const OpDef op_def_rng_bits;
const OpDef op_def_rng_bits = {
    .opcode = Opcode::rng_bits,
    .summary = "random bits as a pure function of key and counter (Threefry, 20 rounds)",
    .semantics =
        "Each block gives two elements: element i, in row-major order, is word i mod 2 of block "
        "number counter + i/2, which wraps. u32 takes Threefry2x32 with the low and the high half "
        "of "
        "the key and of the block number; u64 takes Threefry2x64 with (key, 0) and (block number, "
        "0).",
    .operands = "key, counter",
    .attrs = kTypeAttrs,
    .dtypes = {DType::u64},
    .infer = &infer_rng_bits,
    .access = &access_leaf,
    .flops_per_point = 20,
    .eval = &kEvalRngBits};

}  // namespace hone
