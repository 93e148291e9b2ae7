#include "tests/program/spmd_testing.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "transport/threads.h"

namespace hone::tested {

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32,
                            DType::i64, DType::i8,  DType::u16, DType::f32,  DType::boolean};

class SpmdGenerator {
 public:
  SpmdGenerator(Rng& rng, int32_t devices, bool is_exact)
      : rng_(rng), devices_(devices), is_exact_(is_exact) {}

  Graph graph() {
    dtype_ = rng_.pick(kTypes);
    Builder b("main");
    std::vector<Value> values;
    const int64_t inputs = rng_.between(1, 3);
    for (int64_t i = 0; i < inputs; ++i)
      values.push_back(b.parameter(fmt::format("x{}", i), Type::get(dtype_, random_dims())));
    const int64_t steps = rng_.between(2, 8);
    for (int64_t i = 0; i < steps; ++i) values.push_back(step(b, rng_.pick(values), true));
    std::vector<Value> outputs = {values.back()};
    if (rng_.chance(0.5)) outputs.push_back(rng_.pick(values));
    Result<Graph> graph = b.finish(outputs);
    HONE_CHECK(graph.ok(), "{}", graph.ok() ? "" : graph.error().to_string());
    return *std::move(graph);
  }

 private:
  // Some dims divide into any group.
  Dims random_dims() {
    Dims dims;
    for (int64_t rank = rng_.between(0, 3); rank > 0; --rank)
      dims.push_back(rng_.chance(0.6) ? devices_ * rng_.between(1, 2) : rng_.between(1, 3));
    return dims;
  }

  Value step(Builder& b, Value x, bool is_outermost) {
    const int64_t kind = rng_.between(0, 13);
    if (kind <= 5) return tame(collective(b, x));
    if (kind == 6) return with_index(b, x);
    if (kind == 7 && is_outermost) return called(b, x);
    if (kind == 8 && is_outermost) return scanned(b, x);
    if (kind == 9 && is_outermost) return branched(b, x);
    if (kind == 10 && is_outermost) return looped(b, x);
    return local(x);
  }

  bool is_bool() const { return dtype_ == DType::boolean; }

  // Sums of all devices' numbers stay small.
  Value tame(Value x) {
    if (!is_exact_ || is_bool()) return x;
    return minimum(dtype_ == DType::u16 ? x : maximum(x, -2), 2);
  }

  Value local(Value x) {
    if (is_bool()) return rng_.chance(0.5) ? unary(Opcode::not_, x) : binary(Opcode::xor_, x, x);
    if (rng_.chance(0.3)) return tame(x + x);
    if (rng_.chance(0.3)) return tame(x * x);
    if (x.rank() > 0 && rng_.chance(0.4)) return reverse(x, {rng_.between(0, x.rank() - 1)});
    return tame(x + 1);
  }

  // The device's number changes what it has.
  Value with_index(Builder& b, Value x) {
    const Value index = b.op(Opcode::device_index, std::span<const Value>());
    if (is_bool()) return binary(Opcode::xor_, x, compare("eq", index, 0));
    return tame(x + cast(index, dtype_));
  }

  Value called(Builder& b, Value x) {
    const Type types[] = {x.type()};
    const GraphRef callee = b.region("callee", types, [&](Builder& in, std::span<const Value> y) {
      return std::vector<Value>{step(in, step(in, y[0], false), false)};
    });
    return b.ops(Opcode::call, {{x}}, {}, {callee})[0];
  }

  // Rounds with a sum of all devices in each.
  Value scanned(Builder& b, Value x) {
    const Value rows = broadcast_to(unsqueeze(x, 0), with_first(3, x.dims()));
    const std::vector<Value> made =
        scan({{x}}, {{rows}}, [&](Builder& in, std::span<const Value> y) {
          const Value sum = tame(all_reduce(in, y[0]));
          const Value next = is_bool() ? binary(Opcode::xor_, sum, y[1]) : tame(sum + y[1]);
          return std::vector<Value>{next, sum};
        });
    (void)b;
    return rng_.chance(0.5) ? made[0] : made[1];
  }

  // A truth on which all devices agree: it follows from a sum or an extreme over all of them.
  Value agreed(Builder& b, Value x) {
    Ints axes;
    for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
    const Value own = reduce_sum(cast(x, DType::f32), axes);
    const std::vector<std::string> kinds = {"sum", "max", "min"};
    const Attrs attrs = {{"kind", rng_.pick(kinds)}, {"group_size", int64_t{devices_}}};
    return compare("gt", b.op(Opcode::all_reduce, {own}, attrs), 0);
  }

  Value branched(Builder& b, Value x) {
    const auto some = [&](Builder& in, std::span<const Value> y) {
      return std::vector<Value>{rng_.chance(0.7) ? tame(all_reduce(in, y[0])) : local(y[0])};
    };
    return if_else(agreed(b, x), {{x}}, some, some)[0];
  }

  // At most 3 rounds.
  Value looped(Builder& b, Value x) {
    const bool asks = rng_.chance(0.5);
    const Value zero = b.scalar(DType::i32, 0);
    return while_loop(
        {{zero, x}},
        [&](Builder& in, std::span<const Value> state) {
          const Value goes_on = compare("lt", state[0], 3);
          return std::vector<Value>{asks ? binary(Opcode::and_, goes_on, agreed(in, state[1]))
                                         : goes_on};
        },
        [&](Builder& in, std::span<const Value> state) {
          return std::vector<Value>{state[0] + 1, tame(all_reduce(in, state[1]))};
        })[1];
  }

  static Dims with_first(Dim first, const Dims& dims) {
    Dims all = {first};
    all.insert(all.end(), dims.begin(), dims.end());
    return all;
  }

  // ---- Collectives ------------------------------------------------------------------------------

  // A size that divides the devices, and groups in any order or consecutive ones.
  Attrs groups() {
    std::vector<int64_t> sizes;
    for (int64_t size = 1; size <= devices_; ++size)
      if (devices_ % size == 0) sizes.push_back(size);
    size_ = rng_.chance(0.5) ? devices_ : rng_.pick(sizes);
    Attrs attrs = {{"group_size", size_}};
    if (rng_.chance(0.5)) return attrs;
    Ints ids(static_cast<size_t>(devices_));
    std::iota(ids.begin(), ids.end(), 0);
    rng_.shuffle(ids);
    attrs.emplace_back("groups", ids);
    return attrs;
  }

  std::string combine() {
    std::vector<std::string> kinds = {"sum", "product", "max", "min"};
    if (is_bool()) kinds = {"and", "or"};
    if (is_integer(dtype_) && rng_.chance(0.3)) kinds = {"and", "or"};
    return rng_.pick(kinds);
  }

  Value all_reduce(Builder& b, Value x) {
    Attrs attrs = groups();
    attrs.emplace_back("kind", combine());
    return b.op(Opcode::all_reduce, {x}, attrs);
  }

  std::optional<int64_t> divisible_axis(Value x) {
    std::vector<int64_t> axes;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (x.dim(axis).value() % size_ == 0) axes.push_back(axis);
    if (axes.empty()) return std::nullopt;
    return rng_.pick(axes);
  }

  Value collective(Builder& b, Value x) {
    const int64_t kind = rng_.between(0, 5);
    if (kind == 0) return permuted(b, x);
    if (kind == 1 || x.rank() == 0) return all_reduce(b, x);
    Attrs attrs = groups();
    const std::optional<int64_t> split = divisible_axis(x);
    const int64_t any = rng_.between(0, x.rank() - 1);
    if (kind <= 3 && x.type().static_elements() * size_ <= 600) {
      attrs.emplace_back("axis", any);
      return b.op(Opcode::all_gather, {x}, attrs);
    }
    if (!split) return all_reduce(b, x);
    if (kind == 4) {
      attrs.emplace_back("kind", combine());
      attrs.emplace_back("axis", *split);
      return b.op(Opcode::reduce_scatter, {x}, attrs);
    }
    attrs.emplace_back("split_axis", *split);
    attrs.emplace_back("concat_axis", any);
    return b.op(Opcode::all_to_all, {x}, attrs);
  }

  // Pairs of all devices, or of the members of each group.
  Value permuted(Builder& b, Value x) {
    Attrs attrs = groups();
    const bool in_groups = size_ > 1 && rng_.chance(0.5);
    if (!in_groups) attrs.clear();
    Ints from(static_cast<size_t>(in_groups ? size_ : devices_)), pairs;
    std::iota(from.begin(), from.end(), 0);
    Ints to = from;
    rng_.shuffle(from);
    rng_.shuffle(to);
    for (size_t i = 0; i < from.size(); ++i)
      if (rng_.chance(0.7)) pairs.insert(pairs.end(), {from[i], to[i]});
    attrs.emplace_back("pairs", pairs);
    return b.op(Opcode::permute, {x}, attrs);
  }

  Rng& rng_;
  const int32_t devices_;
  const bool is_exact_;
  DType dtype_ = DType::f32;
  int64_t size_ = 1;  // of the groups that were drawn last
};

double number(Rng& rng, bool is_exact) {
  if (is_exact) return static_cast<double>(rng.between(-2, 2));
  const int64_t kind = rng.between(0, 19);
  if (kind == 0) return std::numeric_limits<double>::quiet_NaN();
  if (kind == 1) return rng.chance(0.5) ? HUGE_VAL : -HUGE_VAL;
  if (kind == 2) return rng.chance(0.5) ? 0.0 : -0.0;
  return static_cast<double>(rng.between(-1000, 1000)) / 37;
}

}  // namespace

Tensor draw_tensor(Rng& rng, Type type, bool is_exact) {
  const int64_t elements = type.static_elements();
  if (is_real(type.dtype())) {
    std::vector<double> reals;
    for (int64_t i = 0; i < elements; ++i) reals.push_back(number(rng, is_exact));
    return Tensor::from_reals(type, reals);
  }
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < elements; ++i)
    integers.push_back(wrap_to(type.dtype(), rng.between(is_signed(type.dtype()) ? -2 : 0, 2)));
  return Tensor::from_integers(type, integers);
}

SpmdCase draw_spmd(uint64_t seed, int32_t devices, bool is_exact) {
  Rng rng(seed);
  SpmdCase drawn;
  drawn.devices = static_cast<int32_t>(rng.between(1, devices));
  drawn.is_exact = is_exact;
  drawn.graph = SpmdGenerator(rng, drawn.devices, is_exact).graph();
  for (int32_t d = 0; d < drawn.devices; ++d) {
    std::vector<Tensor>& own = drawn.inputs.emplace_back();
    for (Type type : drawn.graph.input_types()) own.push_back(draw_tensor(rng, type, is_exact));
  }
  return drawn;
}

Result<DeviceTensors> run_devices(int32_t devices,
                                  const std::function<Transport&(int32_t device)>& transport_of,
                                  const RunDevice& run) {
  std::vector<std::optional<Result<std::vector<Tensor>>>> results(static_cast<size_t>(devices));
  std::vector<std::thread> threads;
  for (int32_t d = 0; d < devices; ++d)
    threads.emplace_back(
        [&, d] { results[static_cast<size_t>(d)] = run(DevicePlace{d, &transport_of(d)}); });
  for (std::thread& thread : threads) thread.join();
  DeviceTensors outputs;
  for (auto& result : results) outputs.push_back(HONE_TRY(*std::move(result)));
  return outputs;
}

Result<DeviceTensors> run_by_threads(int32_t devices, const RunDevice& run) {
  const std::unique_ptr<Transport> transport = HONE_TRY(make_thread_transport(devices));
  return run_devices(devices, [&](int32_t) -> Transport& { return *transport; }, run);
}

std::string judge(const SpmdCase& drawn, const DeviceTensors& outputs) {
  const Result<DeviceTensors> expected =
      evaluate_spmd(drawn.graph, drawn.inputs, {.numerics = Numerics::rounded});
  if (!expected.ok()) return expected.error().to_string();
  for (size_t d = 0; d < outputs.size(); ++d)
    for (size_t i = 0; i < outputs[d].size(); ++i) {
      const Tensor &made = outputs[d][i], &wanted = (*expected)[d][i];
      if (made.type() != wanted.type()) return fmt::format("device {}: another type", d);
      for (int64_t e = 0; e < made.elements(); ++e)
        if (made.real_at(e) != wanted.real_at(e))
          return fmt::format("device {}, output {}, element {}: {} is not {}\n{}", d, i, e,
                             made.real_at(e), wanted.real_at(e), print(drawn.graph));
    }
  return "";
}

std::string same_bits(const DeviceTensors& a, const DeviceTensors& b) {
  if (a.size() != b.size()) return "another number of devices";
  for (size_t d = 0; d < a.size(); ++d)
    for (size_t i = 0; i < a[d].size(); ++i)
      if (!a[d][i].same_bytes(b[d][i]))
        return fmt::format("output {} of device {} has other bits", i, d);
  return "";
}

}  // namespace hone::tested
