#include "runtime/mesh_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
#include "zoo/random/random_graph.h"

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
    // They are made before this process goes on: it waits until all have joined.
    copies_ = std::thread([join, devices] {
      std::vector<ForkedWork> works;
      for (int32_t i = 1; i < devices; ++i)
        works.emplace_back([&, i](const Tell&) {
          const Result<std::unique_ptr<Transport>> group = join(i);
          if (group.ok()) (void)serve_rank(**group, {.version = "test"});
        });
      EXPECT_TRUE(run_forked(works, {}, [](size_t, std::string_view) {}).ok());
    });
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
  std::thread copies_;
  std::shared_ptr<Crew> crew_;
};

// Composites are spelled out, so what they keep at higher precision is rounded.
double tolerance_of(DType dtype) { return bits(dtype) > 16 ? 1e-4 : bits(dtype) > 8 ? 0.02 : 0.3; }

// A random graph, or one in eight times a derivative, each node of which is divided at random.
struct RandomCase {
  uint64_t seed = 0;
  Graph given;
  Divided model;
  std::vector<Tensor> inputs, want;
};

std::optional<RandomCase> random_case(uint64_t seed) {
  RandomCase made;
  made.seed = seed;
  made.given = seed % 8 == 7 ? tested::derivative(seed / 8)
                             : random_graph({.seed = seed,
                                             .min_steps = 3,
                                             .max_steps = 8,
                                             .max_elements = 2048,
                                             .max_dim = 8,
                                             .continuous = true});
  if (!made.given.is_static()) return std::nullopt;
  Rng rng(seed);
  const MeshRef mesh = tested::random_mesh(rng);
  if (!check_can_partition(made.given, *mesh).ok()) return std::nullopt;
  made.inputs = random_graph_inputs(made.given, seed);
  Result<std::vector<Tensor>> want = evaluate(made.given, made.inputs);
  if (!want.ok()) return std::nullopt;
  made.want = std::move(*want);
  made.model.subject = shard_subject(made.given, 16).value();
  made.model.subject.graph = tested::randomly_divided(made.model.subject.graph, mesh, rng);
  made.model.partition = partition_exactly(made.model.subject.graph, mesh).value();
  return made;
}

// Native code gives what the whole graph gives.
void judge(const RandomCase& one, const Result<std::vector<Tensor>>& have) {
  ASSERT_TRUE(have.ok()) << "seed " << one.seed << ": " << have.error().to_string()
                         << print(one.model.partition.graph);
  ASSERT_EQ(have->size(), one.want.size());
  for (size_t i = 0; i < have->size(); ++i)
    EXPECT_EQ(
        tested::difference({&(*have)[i], 1}, {&one.want[i], 1}, tolerance_of(one.want[i].dtype())),
        "")
        << "seed " << one.seed << print(one.given);
}

int judge_random_on_threads(uint64_t first, uint64_t count) {
  int judged = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::optional<RandomCase> one = random_case(seed);
    if (!one) continue;
    judge(*one, run_on_threads(one->given, one->model, one->inputs));
    ++judged;
  }
  return judged;
}

// Cases of one number of devices use the same processes.
int judge_random_on_processes(uint64_t first, uint64_t count) {
  std::map<int64_t, std::vector<RandomCase>> by_devices;
  for (uint64_t seed = first; seed < first + count; ++seed)
    if (std::optional<RandomCase> one = random_case(seed))
      by_devices[one->model.partition.mesh->device_count()].push_back(std::move(*one));
  int judged = 0;
  for (const auto& [devices, cases] : by_devices) {
    const Processes processes(static_cast<int32_t>(devices), first % 2 == 1);
    if (processes.crew() == nullptr) return judged;
    for (const RandomCase& one : cases)
      judge(one, run_native(*processes.crew(), one.given, one.model, one.inputs));
    judged += static_cast<int>(cases.size());
  }
  return judged;
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

TEST(MeshModel, ComputesRandomGraphsAsOneDeviceDoes) {
  const uint64_t count = tested::share_of(40, 4);
  EXPECT_GT(judge_random_on_threads(0, count), 0);
}

// Processes share memory from an even seed on, and speak TCP from an odd one.
TEST(MeshModel, ComputesRandomGraphsOnProcesses) {
  const uint64_t count = tested::share_of(24, 4);
  EXPECT_GT(judge_random_on_processes(200, count), 0);
  EXPECT_GT(judge_random_on_processes(301, count), 0);
}

TEST(MeshModel, DISABLED_SweepOfRandomGraphs) { judge_random_on_threads(1000, 5000); }
TEST(MeshModel, DISABLED_SweepOfRandomGraphsOnProcesses) {
  for (uint64_t first = 10'000; first < 15'000; first += 99) judge_random_on_processes(first, 99);
}

}  // namespace
}  // namespace hone::HONE_FILE
