#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "compile/honec.h"
#include "compile/mesh_division.h"
#include "compile/spmd_programs.h"
#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "runtime/honec_layout.h"
#include "runtime/loaded_model.h"
#include "shard/node_division.h"
#include "tests/base/says_testing.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/parts_testing.h"
#include "zoo/inputs.h"

// Compiled files whose values the devices of a mesh divide.

namespace hone::HONE_FILE {
namespace {

using tested::difference;
using tested::refuses;

// A constant that is divided.
Graph two() {
  Builder b("two");
  const Value x = b.parameter("x", DType::f32, {6, 5});
  std::vector<double> numbers;
  Rng rng(1);
  for (int i = 0; i < 20; ++i) numbers.push_back(rng.uniform(-1, 1));
  const Value w = b.constant(Tensor::from_reals(Type::get(DType::f32, {5, 4}), numbers));
  const Value y = tanh(matmul(x, w));
  return b.finish({y.named("y"), reduce_sum(y, {0}).named("s")}).value();
}

struct Made {
  HonecModel model;
  DividedCode code;

  std::string bytes() const {
    const HonecProgram program = {.image = &code.images[0]};
    return honec_bytes(model, {&program, 1}, "1.2.3").value().joined();
  }
};

Made made(uint64_t seed) {
  Rng rng(seed);
  const MeshRef mesh = tested::random_mesh(rng);
  ShardSubject subject = shard_subject(two(), 16).value();
  subject.graph = tested::randomly_divided(subject.graph, mesh, rng);
  const Partition part = partition_exactly(subject.graph, mesh).value();
  Made one;
  CompileOptions options;
  options.plan.threads = 1;
  one.code = spmd_programs(part.graph, host_target().value(), options, mesh->device_count(),
                           divided_inputs(part))
                 .value();
  const MeshDivision division = mesh_division(two(), subject, part);
  one.model = {.name = "two", .inputs = {division.inputs[0].whole}, .outputs = {}};
  for (const MeshPort& port : division.outputs) one.model.outputs.push_back(port.whole);
  one.model.division = one.code.division;
  one.model.mesh = division;
  one.model.constants = subject.constants;
  return one;
}

Result<HonecFile> parsed(const std::string& bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  return HonecFile::parse(owner, std::as_bytes(std::span(*owner)));
}

TEST(MeshFile, TakesAndGivesWholeTensors) {
  const std::vector<Tensor> inputs = random_inputs(two(), 1).value();
  const std::vector<Tensor> expected = evaluate(two(), inputs).value();
  size_t divided = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Made one = made(seed);
    const Result<HonecFile> file = parsed(one.bytes());
    ASSERT_TRUE(file.ok()) << seed << ": " << file.error().to_string();
    ASSERT_NE(file->mesh(), nullptr);
    EXPECT_EQ(file->inputs().size(), 1u);
    EXPECT_EQ(file->mesh()->inputs.size(), 2u);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(file->mesh()->inputs[i].dims, one.model.mesh->inputs[i].dims);
    divided += file->mesh()->inputs[1].is_divided() ? 1 : 0;
    const auto model = LoadedModel::load(*file, {.threads = 1});
    ASSERT_TRUE(model.ok()) << seed << ": " << model.error().to_string();
    EXPECT_EQ(difference((*model)->run(inputs).value(), expected, 1e-5), "") << seed;
  }
  EXPECT_GT(divided, 0u);
}

// A hone that knows no meshes refuses the version, and does not take the file for damaged.
TEST(MeshFile, HasAVersionOfItsOwn) {
  Made one = made(0);
  EXPECT_EQ(parsed(one.bytes()).value().version(), honec::kMeshVersion);
  one.model.mesh.reset();
  one.model.constants.clear();
  one.model.inputs.assign(one.code.inputs.begin(), one.code.inputs.end());
  one.model.outputs.assign(one.code.outputs.begin(), one.code.outputs.end());
  EXPECT_EQ(parsed(one.bytes()).value().version(), honec::kVersion);
}

// One weight that many constants name is small in the file, and large when devices have parts.
TEST(MeshFile, KeepsPartsOfConstantsWithinTheLimit) {
  Made one;
  int64_t held = 0;
  for (uint64_t seed = 0; held == 0; ++seed) {
    one = made(seed);
    const MeshPort& constant = one.model.mesh->inputs[1];
    if (constant.is_divided()) held = constant.part().static_bytes() * one.model.mesh->devices();
  }
  const HonecFile file = parsed(one.bytes()).value();
  EXPECT_TRUE(LoadedModel::load(file, {.threads = 1, .memory_limit = held}).ok());
  EXPECT_THAT(LoadedModel::load(file, {.threads = 1, .memory_limit = held - 1}),
              refuses(ErrorCode::limit, "parts of constants"));
}

TEST(MeshFile, RefusesWhatDoesNotFit) {
  struct Case {
    std::string_view says;
    std::function<void(Made&)> change;
  };
  const Case cases[] = {
      {"dims", [](Made& m) { m.model.mesh->inputs[0].dims.pop_back(); }},
      {"no part 1 of 99", [](Made& m) { m.model.mesh->inputs[0].dims = {{{1, 99}}, {}}; }},
      {"a part", [](Made& m) { m.model.mesh->inputs[0].dims = {{{1, 999}}, {}}; }},
      {"devices, and", [](Made& m) { m.model.mesh->axes.push_back({"more", 2}); }},
      {"all have 256 at most", [](Made& m) { m.model.mesh->axes.assign(9, {"more", 256}); }},
      {"a divisor", [](Made& m) { m.model.mesh->inputs[0].dims = {{{0, 2}}, {}}; }},
      {"no part", [](Made& m) { m.model.mesh->inputs[0].dims = {{{1, 2}}, {{1, 2}}}; }},
      {"ends inside of a number", [](Made& m) { m.model.mesh->outputs.pop_back(); }},
      {"2 dims of f32[4]", [](Made& m) { m.model.constants.clear(); }},
      {"rows of device 0", [](Made& m) { m.model.mesh->inputs[1].dims = {{}, {{1, 2}}}; }},
      {"rows of device 0",
       [](Made& m) { m.model.constants[0] = Tensor::zeros(Type::get(DType::f32, {5, 5})); }},
  };
  const Made good = made(0);
  for (const Case& one : cases) {
    Made changed = good;
    one.change(changed);
    EXPECT_THAT(parsed(changed.bytes()), refuses(ErrorCode::bad_input, std::string(one.says)))
        << one.says;
  }
}

// Checksums are of the sections, so the bytes of the mesh are changed before they are made.
TEST(MeshFile, IsReadOrRefusedWhateverItsNumbers) {
  int refused = 0;
  const Made good = made(0);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Made changed = good;
    auto& ports = rng.chance(0.5) ? changed.model.mesh->inputs : changed.model.mesh->outputs;
    auto& dims = ports[rng.below(ports.size())].dims;
    if (dims.empty()) continue;
    auto& parts = dims[rng.below(dims.size())];
    const auto drawn = [&] { return rng.chance(0.2) ? INT64_MAX : rng.between(-1, 9); };
    parts.assign(rng.below(3), {});
    for (MeshPort::Part& part : parts) part = {drawn(), drawn()};
    const Result<HonecFile> file = parsed(changed.bytes());
    if (!file.ok() || !LoadedModel::load(*file, {.threads = 1}).ok()) ++refused;
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace hone::HONE_FILE
