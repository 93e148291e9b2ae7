#include "runtime/mesh_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "base/forked.h"
#include "compile/mesh_division.h"
#include "compile/spmd_programs.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/node_division.h"
#include "target/target.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/parts_testing.h"
#include "tests/transport/processes.h"
#include "transport/threads.h"
#include "worker/crew.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Tensor counted(Type type) {
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::from_integers(type, numbers);
}

// Four devices, 2 * x + y.
const MeshPort::Part kX = {2, 2}, kY = {1, 2};
using Dims2 = std::vector<std::vector<MeshPort::Part>>;

Tensor parts_in(const Tensor& whole, const Dims2& dims) {
  return parts_of_all(whole, {.whole = {"x", whole.type()}, .dims = dims}, 4);
}

std::vector<int64_t> numbers_of(const Tensor& tensor) {
  std::vector<int64_t> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_integers(0, numbers);
  return numbers;
}

TEST(MeshModel, CutsTensorsIntoThePartsOfDevices) {
  const Tensor whole = counted(*Type::make(DType::i32, Dims{2, 4}));
  // Device 2 * x + y has row x and half y of the columns.
  const Tensor parts = parts_in(whole, {{kX}, {kY}});
  EXPECT_EQ(parts.type().to_string(), "i32[4, 2]");
  EXPECT_THAT(numbers_of(parts), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // The columns in four parts, y outermost: devices 0, 1, 2, 3 have parts 0, 2, 1, 3.
  const Tensor columns = parts_in(whole, {{}, {kY, kX}});
  EXPECT_EQ(columns.type().to_string(), "i32[8, 1]");
  EXPECT_THAT(numbers_of(columns), testing::ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  // Along x alone: devices of one row have the same.
  const Tensor rows = parts_in(whole, {{kX}, {}});
  EXPECT_THAT(numbers_of(rows),
              testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7));
}

TEST(MeshModel, JoinsThePartsOfDevices) {
  const std::vector<Dims2> layouts = {
      {{}, {}, {}}, {{kX}, {}, {kY}}, {{kY, kX}, {}, {}}, {{}, {kY}, {kX}}, {{}, {}, {kX, kY}}};
  for (const DType dtype : {DType::i8, DType::f32, DType::i64, DType::i4, DType::boolean}) {
    const Tensor whole = counted(*Type::make(dtype, Dims{4, 2, 4}));
    for (const Dims2& dims : layouts) {
      const MeshPort port = {.whole = {"x", whole.type()}, .dims = dims};
      const Tensor back = whole_of_parts(parts_of_all(whole, port, 4), port, 4);
      EXPECT_TRUE(back.same_bytes(whole)) << whole.type().to_string();
    }
  }
  const Tensor scalar = counted(*Type::make(DType::f32, Dims{}));
  const MeshPort port = {.whole = {"x", scalar.type()}};
  EXPECT_TRUE(whole_of_parts(parts_of_all(scalar, port, 4), port, 4).same_bytes(scalar));
}

TEST(MeshModel, ChecksWhatIsDivided) {
  const auto checked = [](int64_t devices, const Dims2& dims) {
    MeshDivision made = {.axes = {{"x", devices}}};
    made.inputs.push_back({.whole = {"x", *Type::make(DType::f32, Dims{4, 2})}, .dims = dims});
    return check(made);
  };
  EXPECT_TRUE(checked(4, {{kX}, {kY}}).ok());
  EXPECT_TRUE(checked(4, {{kY, kX}, {}}).ok());
  EXPECT_THAT(checked(0, {{}, {}}), refuses(ErrorCode::bad_input, "0 devices"));
  EXPECT_THAT(checked(257, {{}, {}}), refuses(ErrorCode::bad_input, "257 devices"));
  EXPECT_THAT(checked(4, {{kX}}), refuses(ErrorCode::bad_input, "'x' ... 1 dims"));
  // A part twice, of too many devices, and across the digits of another one.
  EXPECT_THAT(checked(4, {{kX}, {kX}}), refuses(ErrorCode::bad_input, "no part 2 of 2"));
  EXPECT_THAT(checked(4, {{{4, 2}}, {}}), refuses(ErrorCode::bad_input, "no part 4 of 2"));
  EXPECT_THAT(checked(4, {{{1, 3}}, {}}), refuses(ErrorCode::bad_input, "no part 1 of 3"));
  EXPECT_THAT(checked(4, {{{1, 0}}, {}}), refuses(ErrorCode::bad_input, "no part 1 of 0"));
  EXPECT_THAT(checked(8, {{{INT64_MAX, INT64_MAX}}, {}}), refuses(ErrorCode::bad_input, "no part"));
  EXPECT_THAT(checked(8, {{{1, 4}}, {{4, 2}}}).ok(), true);
  EXPECT_THAT(checked(4, {{}, {{1, 4}}}), refuses(ErrorCode::bad_input, "4 parts of dim 1"));
}

// ---- Native code on threads ---------------------------------------------------------------------

struct Divided {
  ShardSubject subject = {};
  Partition partition = {};
};

Result<std::vector<Tensor>> run_native(Crew& crew, const Graph& given, const Divided& model,
                                       std::span<const Tensor> inputs) {
  CompileOptions options;
  options.plan.threads = 1;
  const DividedCode code =
      HONE_TRY(spmd_programs(model.partition.graph, *host_target(), std::move(options),
                             crew.devices(), divided_inputs(model.partition)));
  const std::shared_ptr<const ManyDevices> loaded = HONE_TRY(crew.load(code));
  const std::shared_ptr<const MeshModel> whole = HONE_TRY(MeshModel::make(
      mesh_division(given, model.subject, model.partition), model.subject.constants, loaded));
  return whole->run(inputs);
}

Result<std::vector<Tensor>> run_on_threads(const Graph& given, const Divided& model,
                                           std::span<const Tensor> inputs) {
  const auto devices = static_cast<int32_t>(model.partition.mesh->device_count());
  const std::shared_ptr<Crew> crew =
      HONE_TRY(Crew::lead(HONE_TRY(make_thread_transport(devices)), "test", {.version = "test"}));
  return run_native(*crew, given, model, inputs);
}

// Copies of this process, of one device each, that this one leads.
class Processes {
 public:
  Processes(int32_t devices, bool by_tcp) {
    const std::vector<int32_t> owned(static_cast<size_t>(devices), 1);
    const tested::JoinGroup join = by_tcp ? tested::by_tcp(owned) : tested::by_shared_memory(owned);
    copies_ = std::thread([this, join, devices] { run_copies(join, devices); });
    are_made_.wait();  // a copy has no lock that this process takes from here on
    const auto lead = [own = join]() -> Result<std::shared_ptr<Crew>> {
      return Crew::lead(HONE_TRY(own(0)), "rank", {.version = "test"});
    };
    const Result<std::shared_ptr<Crew>> crew = lead();
    EXPECT_TRUE(crew.ok()) << crew.error().to_string();
    if (crew.ok()) crew_ = *crew;
  }
  ~Processes() {
    crew_ = nullptr;  // it lets the others go
    copies_.join();
  }
  Processes(const Processes&) = delete;

  Crew* crew() const { return crew_.get(); }

 private:
  void run_copies(const tested::JoinGroup& join, int32_t devices) {
    static constexpr std::string_view kMade = "made";
    std::vector<ForkedWork> works;
    for (int32_t i = 1; i < devices; ++i)
      works.emplace_back([&join, i](const Tell& tell) {
        tell(kMade);
        const Result<std::unique_ptr<Transport>> group = join(i);
        if (!group.ok()) return tell(group.error().to_string());
        const Status served = serve_rank(**group, {.version = "test"});
        if (!served.ok()) tell(served.error().to_string());
      });
    size_t made = 0;
    const Result<std::vector<ForkEnd>> ends =
        run_forked(works, {}, [&](size_t i, std::string_view message) {
          if (message != kMade) ADD_FAILURE() << "rank " << i + 1 << ": " << message;
          if (message == kMade && ++made == works.size()) are_made_.count_down();
        });
    if (made < works.size() || works.empty()) are_made_.count_down();
    ASSERT_TRUE(ends.ok()) << ends.error().to_string();
    for (size_t i = 0; i < ends->size(); ++i)
      EXPECT_TRUE((*ends)[i].is_done()) << "rank " << i + 1 << " by signal " << (*ends)[i].signal;
  }

  std::latch are_made_{1};
  std::thread copies_;
  std::shared_ptr<Crew> crew_;
};

double tolerance_of(DType dtype) { return bits(dtype) > 16 ? 1e-4 : bits(dtype) > 8 ? 0.02 : 0.3; }

// Per output. It is as exact as the least exact number on the way. A fused kernel may keep an f32
// where the reference rounds to bf16, and an f32 that is made of it shows this.
std::vector<double> tolerances_of(const Graph& graph) {
  std::map<uint32_t, double> of_value;
  for (NodeId n : graph.nodes()) {
    double most = 0;
    for (ValueId operand : graph.operands(n)) most = std::max(most, of_value[operand.index]);
    for (ValueId result : graph.results(n)) {
      const DType dtype = graph.type(result).dtype();
      of_value[result.index] = is_real(dtype) ? std::max(most, tolerance_of(dtype)) : most;
    }
  }
  std::vector<double> tolerances;
  for (ValueId output : graph.outputs())
    tolerances.push_back(
        std::max(of_value[output.index], tolerance_of(graph.type(output).dtype())));
  return tolerances;
}

// A random graph or a derivative. In one half of the cases each node is divided at random. In the
// other half a few values say how they are divided, and the rest follows: with halos, parts of axes
// and open dims.
struct RandomCase {
  uint64_t seed = 0;
  Graph given;
  Divided model;
  std::vector<Tensor> inputs, want;
};

Result<RandomCase> random_case(uint64_t seed) {
  RandomCase made;
  made.seed = seed;
  made.given = tested::random_graph_or_derivative({.seed = seed,
                                                   .min_steps = 3,
                                                   .max_steps = 8,
                                                   .max_elements = 2048,
                                                   .max_dim = 8,
                                                   .continuous = true});
  if (!made.given.is_static()) return unsupported("sizes are open");
  Rng rng(seed);
  const MeshRef mesh = tested::random_mesh(rng);
  HONE_TRY(check_can_partition(made.given, *mesh));
  made.inputs = random_graph_inputs(made.given, seed);
  made.want = HONE_TRY(evaluate(made.given, made.inputs));
  made.model.subject = HONE_TRY(shard_subject(made.given, 16));
  Graph& graph = made.model.subject.graph;
  if (rng.below(2) == 0) {
    graph = tested::randomly_divided(graph, mesh, rng);
    made.model.partition = HONE_TRY(partition_exactly(graph, mesh));
  } else {
    graph = tested::randomly_stated(graph, mesh, rng);
    made.model.partition = HONE_TRY(partition_graph(graph));
  }
  return made;
}

// This number of cases, of the first seeds that have one. Others have a reason that is known.
std::vector<RandomCase> random_cases(uint64_t& seed, size_t count) {
  std::vector<RandomCase> cases;
  for (const uint64_t end = seed + 4 * count + 20; cases.size() < count && seed < end; ++seed) {
    Result<RandomCase> one = random_case(seed);
    if (one.ok())
      cases.push_back(std::move(*one));
    else
      EXPECT_THAT(one.error().to_string(),
                  testing::ContainsRegex("sizes are open|talks to devices|in another order|"
                                         "nothing is said of how"))
          << "seed " << seed;
  }
  EXPECT_EQ(cases.size(), count);
  return cases;
}

// The most by which an output changes if each node is rounded to its type, over its largest number
// and over 1. Where numbers cancel, their last digits are all that is left.
double change_by_rounding(const Tensor& wide, const Tensor& rounded) {
  double most = 0, scale = 1;
  for (int64_t e = 0; is_real(wide.dtype()) && e < wide.elements(); ++e) {
    const double x = wide.real_at(e), change = std::abs(rounded.real_at(e) - x);
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
    if (std::isfinite(change)) most = std::max(most, change);
  }
  return most / scale;
}

// Native code gives what the whole graph gives.
void judge(const RandomCase& one, const Result<std::vector<Tensor>>& have) {
  ASSERT_TRUE(have.ok()) << "seed " << one.seed << ": " << have.error().to_string()
                         << print(one.model.partition.graph);
  ASSERT_EQ(have->size(), one.want.size());
  const std::vector<double> tolerances = tolerances_of(one.given);
  const auto differs = [&](size_t i, double tolerance) {
    return tested::difference({&(*have)[i], 1}, {&one.want[i], 1}, tolerance);
  };
  for (size_t i = 0; i < have->size(); ++i) {
    if (differs(i, tolerances[i]).empty()) continue;
    const std::vector<Tensor> rounded =
        evaluate(one.given, one.inputs, {.numerics = Numerics::rounded}).value();
    const double change = change_by_rounding(one.want[i], rounded[i]);
    EXPECT_EQ(differs(i, tolerances[i] + 4 * change), "")
        << "seed " << one.seed << print(one.given);
  }
}

// Each judges this number of cases, and gives the seed behind the last one.
uint64_t judge_random_on_threads(uint64_t seed, size_t count) {
  for (const RandomCase& one : random_cases(seed, count))
    judge(one, run_on_threads(one.given, one.model, one.inputs));
  return seed;
}

// Cases of one number of devices use the same processes.
uint64_t judge_random_on_processes(uint64_t seed, size_t count, bool by_tcp) {
  std::map<int64_t, std::vector<RandomCase>> by_devices;
  for (RandomCase& one : random_cases(seed, count))
    by_devices[one.model.partition.mesh->device_count()].push_back(std::move(one));
  for (const auto& [devices, cases] : by_devices) {
    const Processes processes(static_cast<int32_t>(devices), by_tcp);
    if (processes.crew() == nullptr) break;  // which has failed
    for (const RandomCase& one : cases)
      judge(one, run_native(*processes.crew(), one.given, one.model, one.inputs));
  }
  return seed;
}

// Parts of 3 elements and of 1, which devices gather, deal out and ask neighbours for.
TEST(MeshModel, ExchangesElementsThatDoNotFillBytes) {
  for (const std::string_view type : {"i4", "u4", "i2", "u2", "f4e2m1"}) {
    const std::string text = fmt::format(
        "graph @g(%x: {0}[6, 1] on @m [x, -], %y: {0}[6, 2] on @m [x, -]) ->\n"
        "    ({0}[6], {0}[2, 6], {0}[4, 1]) mesh @m = [x = 2] {{\n"
        "  %a = reshape %x {{dims = [6]}} : {0}[6] on @m [x]\n"
        "  %t = transpose %y {{permutation = [1, 0]}} : {0}[2, 6] on @m [-, x]\n"
        "  %s = slice %x {{start = [2, 0], limit = [6, 1]}} : {0}[4, 1] on @m [x, -]\n"
        "  return %a on @m [-], %t on @m [x, -], %s on @m [x, -]\n"
        "}}\n",
        type);
    const Graph given = parse_graph(text).value();
    const Divided model = {.subject = shard_subject(given).value(),
                           .partition = partition_graph(given).value()};
    std::set<ReshardKind> kinds;
    for (const ShardMessage& one : model.partition.messages) kinds.insert(one.kind);
    EXPECT_EQ(kinds,
              std::set({ReshardKind::all_gather, ReshardKind::all_to_all, ReshardKind::permute}));
    const std::vector<Tensor> inputs = random_graph_inputs(given, 1);
    const Result<std::vector<Tensor>> have = run_on_threads(given, model, inputs);
    ASSERT_TRUE(have.ok()) << type << ": " << have.error().to_string();
    EXPECT_EQ(tested::difference(*have, evaluate(given, inputs).value(), 0), "") << type;
  }
}

// Two numbers that differ by little: a mean that is rounded to bf16 would leave a tenth of it
// wrong.
TEST(MeshModel, RoundsACompositeOfShortNumbersOnce) {
  const Graph given =
      parse_graph(
          "graph @g(%x: bf16[4, 1, 2] on @m [x, -, -], %one: bf16[1]) -> bf16[4, 1, 2]\n"
          "    mesh @m = [x = 2] {\n"
          "  %y = instance_norm %x, %one, %one {epsilon = 0.0078125}\n"
          "  return %y\n"
          "}\n")
          .value();
  const std::vector<double> numbers = {1.75, 0.75, 1.5, 1, 0.25, -1.5, -1.15625, -1.2265625};
  const std::vector<Tensor> inputs = {Tensor::from_reals(given.input_types()[0], numbers),
                                      Tensor::from_reals(given.input_types()[1], {{1.0}})};
  const Divided model = {.subject = shard_subject(given).value(),
                         .partition = partition_graph(given).value()};
  const Result<std::vector<Tensor>> have = run_on_threads(given, model, inputs);
  ASSERT_TRUE(have.ok()) << have.error().to_string();
  EXPECT_EQ(tested::difference(*have, evaluate(given, inputs).value(), 1.0 / 256), "");
}

TEST(MeshModel, IsJudgedWithHalosAndPartsOfAxes) {
  uint64_t seed = 0;
  int halos = 0, parts = 0, open = 0;
  for (const RandomCase& one : random_cases(seed, 60)) {
    halos += std::ranges::any_of(one.model.partition.messages, [](const ShardMessage& message) {
      return message.kind == ReshardKind::permute;
    });
    const auto has_dim = [&](const auto& is_it) {
      return std::ranges::any_of(
          one.model.subject.graph.shardings()->values,
          [&](const auto& value) { return std::ranges::any_of(value.second.dims, is_it); });
    };
    parts += has_dim([](const DimSharding& dim) {
      return std::ranges::any_of(dim.axes, [](const AxisPart& part) { return part.size > 0; });
    });
    open += has_dim([](const DimSharding& dim) { return dim.is_open; });
  }
  EXPECT_GT(halos, 0);
  EXPECT_GT(parts, 3);
  EXPECT_GT(open, 15);
}

TEST(MeshModel, ComputesRandomGraphsAsOneDeviceDoes) {
  judge_random_on_threads(0, tested::share_of(40, 4));
}

TEST(MeshModel, ComputesRandomGraphsOnProcesses) {
  const uint64_t count = tested::share_of(24, 4);
  judge_random_on_processes(200, count, false);
  judge_random_on_processes(301, count, true);
}

constexpr size_t kSweep = 5000, kBlock = 100;  // cases
TEST(MeshModel, DISABLED_SweepOfRandomGraphs) {
  uint64_t seed = 1000;
  for (size_t done = 0; done < kSweep; done += kBlock) seed = judge_random_on_threads(seed, kBlock);
}
TEST(MeshModel, DISABLED_SweepOfRandomGraphsOnProcesses) {
  uint64_t seed = 10'000;
  for (size_t done = 0; done < kSweep; done += kBlock)
    seed = judge_random_on_processes(seed, kBlock, done / kBlock % 2 == 1);
}

}  // namespace
}  // namespace hone::HONE_FILE
