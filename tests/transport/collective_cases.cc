#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <thread>

#include "tensor/real_format.h"
#include "tensor/special_numbers.h"
#include "tests/transport/collective_cases.h"
#include "transport/run_steps.h"

namespace hone::tested {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f16, DType::bf16, DType::f64,
                            DType::i64, DType::i32, DType::i16, DType::u8,   DType::u32};

Bytes bytes_of_tensor(const Tensor& tensor) {
  return {tensor.bytes().begin(), tensor.bytes().end()};
}

Bytes draw_input(Rng& rng, DType dtype, int64_t count, const Specials& specials) {
  return bytes_of_tensor(with_specials(
      Type::get(dtype, {count}), specials, rng,
      [&] { return static_cast<double>(rng.between(-8, 8)); },
      [&] { return rng.between(-99, 99); }));
}

double real_at(DType dtype, const Bytes& bytes, int64_t i) {
  uint64_t pattern = 0;
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  std::memcpy(&pattern, bytes.data() + static_cast<size_t>(i) * size, size);
  return decode_real(dtype, pattern);
}

int64_t integer_at(DType dtype, const Bytes& bytes, int64_t i) {
  int64_t pattern = 0;
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  std::memcpy(&pattern, bytes.data() + static_cast<size_t>(i) * size, size);
  return wrap_to(dtype, pattern);
}

// The element of the sum of all inputs.
std::string judge_sum(const CollectiveCase& drawn, int64_t element, const Bytes& output,
                      int64_t at) {
  const DType dtype = drawn.dtype;
  if (!is_real(dtype)) {
    uint64_t sum = 0;
    for (const Bytes& input : drawn.inputs)
      sum += static_cast<uint64_t>(integer_at(dtype, input, element));
    const int64_t expected = wrap_to(dtype, static_cast<int64_t>(sum));
    const int64_t got = integer_at(dtype, output, at);
    return got == expected ? "" : fmt::format("element {}: {} for {}", at, got, expected);
  }
  long double sum = 0, size = 0;
  for (const Bytes& input : drawn.inputs) {
    const double x = real_at(dtype, input, element);
    sum += x;
    if (std::isfinite(x)) size += std::fabs(x);
  }
  const double got = real_at(dtype, output, at);
  const auto expected = static_cast<double>(sum);
  // Where partial sums may overflow, the order decides.
  if (size > static_cast<long double>(highest_finite(dtype))) return "";
  if (std::isnan(expected) ? std::isnan(got) : got == expected) return "";
  const double unit = dtype == DType::f64    ? 0x1p-52
                      : dtype == DType::f32  ? 0x1p-23
                      : dtype == DType::bf16 ? 0x1p-7
                                             : 0x1p-10;
  const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
  const auto members = static_cast<double>(drawn.inputs.size());
  const double bound = drawn.is_exact ? 0 : members * (static_cast<double>(size) * unit + least);
  if (std::isfinite(expected) && std::fabs(got - expected) <= bound) return "";
  return fmt::format("element {}: {} for {}", at, got, expected);
}

struct Origin {         // where an element of an output comes from
  int64_t member = -1;  // -1: zero; -2: it is a sum
  int64_t element = 0;
};

Origin origin_of(const Collective& collective, int64_t member, int64_t i) {
  const auto members = static_cast<int64_t>(collective.devices.size());
  const int64_t shard = (collective.elements + members - 1) / members;
  switch (collective.kind) {
    case CollectiveKind::all_reduce: return {-2, i};
    case CollectiveKind::reduce_scatter: return {-2, member * shard + i};
    case CollectiveKind::all_gather: return {i / shard, i % shard};
    case CollectiveKind::broadcast: return {collective.root, i};
    case CollectiveKind::all_to_all: {
      const int64_t own = std::max<int64_t>(
          0, std::min((member + 1) * shard, collective.elements) - member * shard);
      return {i / own, member * shard + i % own};
    }
    case CollectiveKind::permute:
      for (const auto& [from, to] : collective.pairs)
        if (to == member) return {from, i};
      return {-1, 0};
  }
  return {};
}

}  // namespace

std::string CollectiveCase::text() const {
  return fmt::format("{} of {} {} on {} devices, {}", name(collective.kind), collective.elements,
                     name(dtype), collective.devices.size(), to_string(schedule));
}

CollectiveCase draw_case(Rng& rng, int32_t members) {
  CollectiveCase drawn;
  Collective& collective = drawn.collective;
  collective.kind = static_cast<CollectiveKind>(rng.below(kCollectiveKinds));
  collective.devices.resize(1 + rng.below(static_cast<uint64_t>(members)));
  std::iota(collective.devices.begin(), collective.devices.end(), 0);
  rng.shuffle(collective.devices);
  const auto count = static_cast<int32_t>(collective.devices.size());
  collective.elements = rng.between(0, rng.chance(0.5) ? 12 : 200);
  collective.root = static_cast<int32_t>(rng.below(collective.devices.size()));
  if (collective.kind == CollectiveKind::permute) {
    std::vector<int32_t> to(collective.devices.size());
    std::iota(to.begin(), to.end(), 0);
    rng.shuffle(to);
    for (int32_t i = 0; i < count; ++i)
      if (rng.chance(0.7)) collective.pairs.emplace_back(i, to[static_cast<size_t>(i)]);
  }
  const std::vector<CollectiveSchedule> schedules = schedules_of(collective);
  drawn.schedule = schedules[rng.below(schedules.size())];
  drawn.schedule.pieces = rng.chance(0.5) ? 1 : static_cast<int32_t>(rng.between(2, 7));
  drawn.dtype = kTypes[rng.below(std::size(kTypes))];
  const Specials specials = rng.chance(0.4) ? Specials::drawn(rng) : Specials();
  drawn.is_exact = !specials.any();
  for (int32_t i = 0; i < count; ++i)
    drawn.inputs.push_back(draw_input(rng, drawn.dtype, input_elements(collective, i), specials));
  return drawn;
}

std::string judge(const CollectiveCase& drawn, const std::vector<Bytes>& outputs) {
  const auto size = static_cast<size_t>(bits(drawn.dtype) / 8);
  for (size_t member = 0; member < outputs.size(); ++member) {
    const Bytes& output = outputs[member];
    for (int64_t i = 0; i < static_cast<int64_t>(output.size() / size); ++i) {
      const Origin origin = origin_of(drawn.collective, static_cast<int64_t>(member), i);
      std::string fault;
      if (origin.member == -2) {
        fault = judge_sum(drawn, origin.element, output, i);
      } else {
        const Bytes zero(size, std::byte{0});
        const std::byte* expected = origin.member < 0
                                        ? zero.data()
                                        : drawn.inputs[static_cast<size_t>(origin.member)].data() +
                                              static_cast<size_t>(origin.element) * size;
        if (std::memcmp(expected, output.data() + static_cast<size_t>(i) * size, size) != 0)
          fault = fmt::format("element {} is not that of member {}", i, origin.member);
      }
      if (!fault.empty()) return fmt::format("{}: member {}, {}", drawn.text(), member, fault);
    }
  }
  return "";
}

std::vector<Bytes> run_case(const CollectiveCase& drawn,
                            const std::function<Transport&(int32_t device)>& transport_of) {
  const Result<std::vector<DeviceProgram>> programs =
      step_programs(drawn.collective, drawn.schedule, 7);
  EXPECT_TRUE(programs.ok()) << drawn.text() << programs.error().to_string();
  std::vector<Bytes> outputs;
  const auto size = static_cast<size_t>(bits(drawn.dtype) / 8);
  for (const DeviceProgram& program : *programs)
    outputs.emplace_back(static_cast<size_t>(program.output) * size, std::byte{0x5a});
  std::vector<std::string> faults(programs->size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < programs->size(); ++i)
    threads.emplace_back([&, i] {
      const DeviceProgram& program = (*programs)[i];
      if (!transport_of(program.device).owns(program.device)) return;
      const Status status = run_steps(program, transport_of(program.device), drawn.dtype,
                                      drawn.inputs[i], outputs[i], "a case");
      if (!status.ok()) faults[i] = status.error().to_string();
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) EXPECT_EQ(fault, "") << drawn.text();
  return outputs;
}

}  // namespace hone::tested
