#include "session/mesh_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "compile/spmd_programs.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/node_division.h"
#include "target/target.h"
#include "tests/base/share_testing.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/parts_testing.h"
#include "transport/threads.h"
#include "worker/crew.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

Tensor counted(Type type) {
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::from_integers(type, numbers);
}

const Mesh kMesh = {"m", {{"x", 2}, {"y", 2}}};
const MeshPart kX = {0, 1, 2}, kY = {1, 1, 2};

std::vector<int64_t> numbers_of(const Tensor& tensor) {
  std::vector<int64_t> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_integers(0, numbers);
  return numbers;
}

TEST(MeshModel, CutsTensorsIntoThePartsOfDevices) {
  const Tensor whole = counted(*Type::make(DType::i32, Dims{2, 4}));
  // Device 2 * x + y has row x and half y of the columns.
  const Tensor parts = parts_of_all(whole, {.dims = {{kX}, {kY}}}, kMesh);
  EXPECT_EQ(parts.type().to_string(), "i32[4, 2]");
  EXPECT_THAT(numbers_of(parts), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // The columns in four parts, y outermost: devices 0, 1, 2, 3 have parts 0, 2, 1, 3.
  const Tensor columns = parts_of_all(whole, {.dims = {{}, {kY, kX}}}, kMesh);
  EXPECT_EQ(columns.type().to_string(), "i32[8, 1]");
  EXPECT_THAT(numbers_of(columns), testing::ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  // Along x alone: devices of one row have the same.
  const Tensor rows = parts_of_all(whole, {.dims = {{kX}, {}}}, kMesh);
  EXPECT_THAT(numbers_of(rows),
              testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7));
}

TEST(MeshModel, JoinsThePartsOfDevices) {
  const std::vector<ShardLayout> layouts = {{.dims = {{}, {}, {}}},
                                            {.dims = {{kX}, {}, {kY}}},
                                            {.dims = {{kY, kX}, {}, {}}},
                                            {.dims = {{}, {kY}, {kX}}},
                                            {.dims = {{}, {}, {kX, kY}}}};
  for (const DType dtype : {DType::i8, DType::f32, DType::i64, DType::i4, DType::boolean}) {
    const Tensor whole = counted(*Type::make(dtype, Dims{4, 2, 4}));
    for (const ShardLayout& layout : layouts) {
      const Tensor back =
          whole_of_parts(parts_of_all(whole, layout, kMesh), whole.type(), layout, kMesh);
      EXPECT_TRUE(back.same_bytes(whole)) << whole.type().to_string();
    }
  }
  const Tensor scalar = counted(*Type::make(DType::f32, Dims{}));
  EXPECT_TRUE(
      whole_of_parts(parts_of_all(scalar, {}, kMesh), scalar.type(), {}, kMesh).same_bytes(scalar));
}

// ---- Native code on threads ---------------------------------------------------------------------

Result<std::vector<Tensor>> run_native(const Graph& given, const ShardedModel& model,
                                       std::span<const Tensor> inputs) {
  const int64_t devices = model.partition.mesh->device_count();
  CompileOptions options;
  options.plan.threads = 1;
  const DividedCode code =
      HONE_TRY(spmd_programs(model.partition.graph, *host_target(), std::move(options), devices,
                             divided_inputs(model.partition)));
  const std::shared_ptr<Crew> crew = HONE_TRY(Crew::lead(
      HONE_TRY(make_thread_transport(static_cast<int32_t>(devices))), "test", {.version = "test"}));
  const std::shared_ptr<const ManyDevices> loaded = HONE_TRY(crew->load(code));
  return MeshModel(given, model, loaded).run(inputs);
}

// Composites are spelled out, so what they keep at higher precision is rounded.
double tolerance_of(DType dtype) { return bits(dtype) > 16 ? 1e-4 : bits(dtype) > 8 ? 0.02 : 0.3; }

// Random graphs, each node divided at random: native code gives what the whole graph gives.
int judge_random_native(uint64_t first, uint64_t count) {
  int right = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph given = random_graph({.seed = seed,
                                      .min_steps = 3,
                                      .max_steps = 8,
                                      .max_elements = 2048,
                                      .max_dim = 8,
                                      .continuous = true});
    if (!given.is_static()) continue;
    Rng rng(seed);
    const MeshRef mesh = tested::random_mesh(rng);
    if (!check_can_partition(given, *mesh).ok()) continue;
    const std::vector<Tensor> inputs = random_graph_inputs(given, seed);
    const Result<std::vector<Tensor>> want = evaluate(given, inputs);
    if (!want.ok()) continue;
    ShardedModel model = {.subject = shard_subject(given, 16).value()};
    model.subject.graph = tested::randomly_divided(model.subject.graph, mesh, rng);
    model.partition = partition_exactly(model.subject.graph, mesh).value();
    const Result<std::vector<Tensor>> have = run_native(given, model, inputs);
    if (!have.ok()) {
      ADD_FAILURE() << "seed " << seed << ": " << have.error().to_string()
                    << print(model.partition.graph);
      continue;
    }
    EXPECT_EQ(have->size(), want->size());
    for (size_t i = 0; i < std::min(have->size(), want->size()); ++i)
      EXPECT_EQ(
          tested::difference({&(*have)[i], 1}, {&(*want)[i], 1}, tolerance_of((*want)[i].dtype())),
          "")
          << "seed " << seed << print(given);
    ++right;
  }
  return right;
}

TEST(MeshModel, ComputesRandomGraphsAsOneDeviceDoes) {
  const uint64_t count = tested::share_of(40, 4);
  EXPECT_GT(judge_random_native(0, count), 0);
}

TEST(MeshModel, DISABLED_SweepOfRandomGraphs) { judge_random_native(1000, 5000); }

}  // namespace
}  // namespace hone::HONE_FILE
