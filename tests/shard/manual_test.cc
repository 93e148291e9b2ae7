#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "front/hlo/reader.h"
#include "front/hlo/write/write.h"
#include "ir/graph_copy.h"
#include "ir/op_def.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "shard/partition.h"
#include "tests/base/says_testing.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/parts_testing.h"

// Programs of one device within one of all: sdy.manual_computation. The judge is the body alone,
// which the reference runs on several devices, with exchanges between them.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// ---- Written by hand ----------------------------------------------------------------------------

constexpr std::string_view kAll =
    "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
    "use_global_device_ids";

// A region with the axes a = 2, b = 2 on f32[8, 4], whose results are such, too.
Result<Model> region_of(std::string_view in, std::string_view out, std::string_view manual,
                        std::string_view local, std::string_view body) {
  return parse_hlo(fmt::format("sdy.mesh @m = <[\"a\"=2, \"b\"=2]>\n"
                               "func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {{\n"
                               "  %0 = sdy.manual_computation(%x) in_shardings=[<@m, {}>] "
                               "out_shardings=[<@m, {}>] manual_axes={} (%z: tensor<{}xf32>) {{\n{}"
                               "  }} : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
                               "  return %0 : tensor<8x4xf32>\n}}\n",
                               in, out, manual, local, body),
                   "p");
}

std::vector<double> computed(const Result<Model>& model) {
  if (!model.ok()) {
    ADD_FAILURE() << model.error().to_string();
    return {};
  }
  const Graph& graph = *single_graph(*model);
  std::vector<double> numbers(32);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor x = Tensor::from_reals(graph.type(graph.inputs()[0]), numbers);
  const Result<Partition> made = partition_graph(graph);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  if (made.ok()) EXPECT_EQ(tested::judge_mesh(graph, *made, {{x}}), "") << print(graph);
  const Tensor result = evaluate(graph, {{x}}).value()[0];
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = result.real_at(static_cast<int64_t>(i));
  return numbers;
}

TEST(ManualComputation, SumsOverTheDevices) {
  // The order of summands has no meaning.
  for (const std::string_view groups : {"[[0, 2], [1, 3]]", "[[2, 0], [1, 3]]"}) {
    // Rows i and i + 4 are those of two devices; both get the sum.
    const std::vector<double> made = computed(
        region_of("[{\"a\"}, {}]", "[{\"a\"}, {}]", "{\"a\", \"b\"}", "4x4",
                  fmt::format("    %1 = \"stablehlo.all_reduce\"(%z) ({{\n"
                              "      ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
                              "        %2 = stablehlo.add %p, %q : tensor<f32>\n"
                              "        stablehlo.return %2 : tensor<f32>\n"
                              "    }}) {{replica_groups = dense<{}> : tensor<2x2xi64>, {}}} : "
                              "(tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                              "    sdy.return %1 : tensor<4x4xf32>\n",
                              groups, kAll)));
    ASSERT_EQ(made.size(), 32u);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(made[i], static_cast<double>(2 * i + 16));
      EXPECT_EQ(made[i + 16], made[i]);
    }
  }
}

// Each group lies along `a` alone, so that `b` need not be manual.
TEST(ManualComputation, BroadcastsAmongManualAxesAlone) {
  const auto broadcast = [](std::string_view groups) {
    return region_of(
        "[{\"a\"}, {}]", "[{\"a\"}, {}]", "{\"a\"}", "4x4",
        fmt::format("    %1 = \"stablehlo.collective_broadcast\"(%z) {{replica_groups = "
                    "dense<{}> : tensor<2x2xi64>, channel_handle = "
                    "#stablehlo.channel_handle<handle = 1, type = 0>}} : "
                    "(tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                    "    sdy.return %1 : tensor<4x4xf32>\n",
                    groups));
  };
  const std::vector<double> of_first = computed(broadcast("[[0, 2], [1, 3]]"));
  const std::vector<double> of_second = computed(broadcast("[[2, 0], [3, 1]]"));
  ASSERT_EQ(of_first.size(), 32u);
  ASSERT_EQ(of_second.size(), 32u);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(of_first[i], static_cast<double>(i % 16));
    EXPECT_EQ(of_second[i], static_cast<double>(i % 16 + 16));
  }
}

// JAX computes the index along an axis from the number of the device. It is one for all devices
// along the others, as long as nothing but this index is used.
TEST(ManualComputation, FindsTheIndexAlongAManualAxis) {
  const auto index = [](std::string_view manual, std::string_view of_number) {
    return region_of("[{\"a\"}, {}]", "[{\"a\"}, {}]", manual, "4x4",
                     fmt::format("    %1 = stablehlo.partition_id : tensor<ui32>\n"
                                 "    %2 = stablehlo.constant dense<2> : tensor<ui32>\n"
                                 "    %3 = stablehlo.{} %1, %2 : tensor<ui32>\n"
                                 "    %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<f32>\n"
                                 "    %5 = stablehlo.broadcast_in_dim %4, dims = [] : "
                                 "(tensor<f32>) -> tensor<4x4xf32>\n"
                                 "    %6 = stablehlo.add %5, %z : tensor<4x4xf32>\n"
                                 "    sdy.return %6 : tensor<4x4xf32>\n",
                                 of_number));
  };
  const std::vector<double> made = computed(index("{\"a\"}", "divide"));
  ASSERT_EQ(made.size(), 32u);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(made[i], static_cast<double>(i + i / 16));
  EXPECT_THAT(index("{\"a\"}", "remainder"),
              refuses(ErrorCode::unsupported, "p:3:8 ... the axis 'b', which is not manual"));
}

TEST(ManualComputation, NamesOtherWordsOfAShardMap) {
  for (const std::string_view edge : {"SPMDFullToShardShape", "SPMDShardToFullShape",
                                      "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"})
    EXPECT_THAT(parse_hlo(fmt::format("func.func @main(%x: tensor<8xf32>) -> tensor<4xf32> {{\n"
                                      "  %0 = stablehlo.custom_call @{}(%x) : (tensor<8xf32>) -> "
                                      "tensor<4xf32>\n"
                                      "  return %0 : tensor<4xf32>\n}}\n",
                                      edge),
                          "p"),
                refuses(ErrorCode::unsupported, fmt::format("p:2:8 ... '{}' ... shard_map", edge)));
}

TEST(ManualComputation, LeavesAxesThatAreNotManualToThePropagation) {
  const Result<Model> model =
      region_of("[{\"a\", ?}, {?}]", "[{\"a\", ?}, {?}]", "{\"a\"}", "4x4",
                "    %1 = stablehlo.negate %z {sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}, "
                "{\"b\", ?}]>]>} : tensor<4x4xf32>\n"
                "    sdy.return %1 : tensor<4x4xf32>\n");
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const Partition made = tested::partitioned(*single_graph(*model));
  EXPECT_EQ(made.graph.input_types()[0].to_string(), "f32[4, 2]");
  EXPECT_TRUE(made.messages.empty()) << print(made.graph);
}

// A ring: three devices send to the next one, and the last one to the first.
TEST(ManualComputation, SendsWhatAPermuteSends) {
  const Result<Model> model = region_of(
      "[{\"a\", \"b\"}, {}]", "[{\"a\", \"b\"}, {}]", "{\"a\", \"b\"}", "2x4",
      "    %1 = \"stablehlo.collective_permute\"(%z) {source_target_pairs = dense<[[0, 1], [1, 2], "
      "[2, 3], [3, 0]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, "
      "type = 0>} : (tensor<2x4xf32>) -> tensor<2x4xf32>\n"
      "    sdy.return %1 : tensor<2x4xf32>\n");
  const std::vector<double> made = computed(model);
  ASSERT_EQ(made.size(), 32u);
  EXPECT_EQ(made[0], 24);
  EXPECT_EQ(made[8], 0);
  const Partition part = tested::partitioned(*single_graph(*model));
  EXPECT_EQ(part.messages.size(), 2u);
  for (const ShardMessage& one : part.messages) {
    EXPECT_EQ(one.kind, ReshardKind::permute);
    EXPECT_EQ(one.bytes, 2 * 4 * 4);
  }
}

TEST(ManualComputation, IsReadInItsGenericForm) {
  const Result<Model> model = parse_hlo(
      "sdy.mesh @m = <[\"a\"=2, \"b\"=2]>\n"
      "func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {\n"
      "  %0 = \"sdy.manual_computation\"(%x) <{in_shardings = #sdy.sharding_per_value<[<@m, "
      "[{\"a\"}, {}]>]>, manual_axes = #sdy<manual_axes{\"a\"}>, out_shardings = "
      "#sdy.sharding_per_value<[<@m, [{\"a\"}, {}]>]>}> ({\n"
      "  ^bb0(%z: tensor<4x4xf32>):\n"
      "    %1 = stablehlo.reverse %z, dims = [0] : tensor<4x4xf32>\n"
      "    \"sdy.return\"(%1) : (tensor<4x4xf32>) -> ()\n"
      "  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
      "  return %0 : tensor<8x4xf32>\n}\n",
      "p");
  const std::vector<double> made = computed(model);
  ASSERT_EQ(made.size(), 32u);
  EXPECT_EQ(made[0], 12);  // the last row of the first half
  EXPECT_EQ(made[16], 28);
}

// A device along `a` halves rows, and within it one along `b` halves columns.
TEST(ManualComputation, NestsAlongOtherAxes) {
  const auto nested = [](std::string_view axis, std::string_view local) {
    return region_of(
        "[{\"a\"}, {}]", "[{\"a\"}, {}]", "{\"a\"}", "4x4",
        fmt::format("    %1 = sdy.manual_computation(%z) in_shardings=[<@m, [{{}}, {{\"{0}\"}}]>] "
                    "out_shardings=[<@m, [{{}}, {{\"{0}\"}}]>] manual_axes={{\"{0}\"}} "
                    "(%y: tensor<{1}xf32>) {{\n"
                    "      %2 = stablehlo.reverse %y, dims = [1] : tensor<{1}xf32>\n"
                    "      sdy.return %2 : tensor<{1}xf32>\n"
                    "    }} : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                    "    sdy.return %1 : tensor<4x4xf32>\n",
                    axis, local));
  };
  const std::vector<double> made = computed(nested("b", "4x2"));
  ASSERT_EQ(made.size(), 32u);
  EXPECT_EQ(made[0], 1);
  EXPECT_EQ(made[2], 3);
  EXPECT_THAT(nested("a", "4x2"), refuses(ErrorCode::bad_input, "p:4:10 ... 'a' is manual around"));
}

TEST(ManualComputation, RefusesWhatContradictsItself) {
  constexpr std::string_view kHalf = "[{\"a\"}, {}]",
                             kSame = "    sdy.return %z : tensor<4x4xf32>\n";
  const auto is = [](std::string_view what) {
    return refuses(ErrorCode::bad_input, fmt::format("p:3:8 ... {}", what));
  };
  const auto lacks = [](std::string_view what) {
    return refuses(ErrorCode::unsupported, fmt::format("p:3:8 ... {}", what));
  };
  EXPECT_THAT(region_of(kHalf, kHalf, "{\"c\"}", "4x4", kSame),
              is("'c' ... mesh 'm' [a = 2, b = 2]"));
  EXPECT_THAT(region_of(kHalf, kHalf, "{\"a\", \"a\"}", "4x4", kSame), is("'a' is named twice"));
  EXPECT_THAT(region_of(kHalf, kHalf, "{\"a\"}", "2x4", "    sdy.return %z : tensor<2x4xf32>\n"),
              is("parameter 0 ... tensor<2x4xf32> ... f32[4, 4]"));
  EXPECT_THAT(region_of("[{\"b\", \"a\"}, {}]", kHalf, "{\"a\"}", "4x4", kSame),
              is("'a' must divide a dim as a whole, and before others"));
  EXPECT_THAT(region_of(kHalf, "[{}, {}]", "{\"a\"}", "4x4", kSame),
              is("f32[4, 4], but the text states f32[8, 4]"));
  EXPECT_THAT(
      region_of(kHalf, kHalf, "{\"a\"}", "4x4",
                "    %1 = stablehlo.negate %z {sdy.sharding = #sdy.sharding_per_value<[<@m, "
                "[{\"a\"}, {}]>]>} : tensor<4x4xf32>\n"
                "    sdy.return %1 : tensor<4x4xf32>\n"),
      is("manual here ... [a, -]"));
  const auto gathers = [&](std::string_view groups) {
    return region_of(
        kHalf, kHalf, "{\"a\"}", "4x4",
        fmt::format(
            "    %1 = stablehlo.slice %z [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>\n"
            "    %2 = \"stablehlo.all_gather\"(%1) {{all_gather_dim = 0 : i64, "
            "replica_groups = dense<{}> : tensor<2x2xi64>, {}}} : (tensor<2x4xf32>) -> "
            "tensor<4x4xf32>\n"
            "    sdy.return %2 : tensor<4x4xf32>\n",
            groups, kAll));
  };
  EXPECT_TRUE(gathers("[[0, 2], [1, 3]]").ok());
  EXPECT_THAT(gathers("[[0, 1], [2, 3]]"), lacks("along the axis 'b', which is not manual"));
  EXPECT_THAT(gathers("[[0, 3], [1, 2]]"), lacks("groups of 2 ... [a = 2, b = 2]"));
  EXPECT_THAT(parse_hlo("sdy.mesh @m = <[\"a\"=2]>\n"
                        "func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {\n"
                        "  %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{\"a\"}]>] "
                        "out_shardings=[<@m, [{\"a\"}]>] manual_axes={\"a\"} "
                        "(%z: tensor<4xf32>) {\n"
                        "    sdy.return %z : tensor<4xf32>\n"
                        "  } : (tensor<7xf32>) -> tensor<7xf32>\n"
                        "  return %0 : tensor<7xf32>\n}\n",
                        "p"),
              lacks("dim 0 ... f32[7] ... 'a' of 2"));
}

// ---- Drawn at random ----------------------------------------------------------------------------

// How a value of the region lies among all devices: [2, -1] is axis 0 in dim 2, axis 1 in none.
using AxisDims = Ints;

// Axes along which the region is the program of one device, and those of them along which groups of
// devices exchange values, the outermost first.
struct RegionAxes {
  std::vector<size_t> manual, grouped;

  bool is_manual(size_t axis) const { return std::ranges::find(manual, axis) != manual.end(); }
};

// In half of the cases all are manual.
RegionAxes random_axes(Rng& rng, size_t axes) {
  RegionAxes made;
  made.manual.resize(axes);
  std::iota(made.manual.begin(), made.manual.end(), size_t{0});
  rng.shuffle(made.manual);
  if (rng.below(2) == 0) made.manual.resize(1 + rng.below(axes));
  made.grouped = made.manual;
  made.grouped.resize(1 + rng.below(made.manual.size()));
  return made;
}

int64_t coordinate(const Mesh& mesh, int64_t device, size_t axis) {
  for (size_t i = mesh.axes.size(); i-- > axis + 1;) device /= mesh.axes[i].size;
  return device % mesh.axes[axis].size;
}

// The devices of each group, one group behind the other.
Ints groups_along(const Mesh& mesh, const std::vector<size_t>& axes) {
  std::vector<std::pair<Ints, int64_t>> devices;
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    Ints key;
    for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (std::ranges::find(axes, axis) == axes.end()) key.push_back(coordinate(mesh, d, axis));
    for (const size_t axis : axes) key.push_back(coordinate(mesh, d, axis));
    devices.emplace_back(std::move(key), d);
  }
  std::ranges::sort(devices);
  Ints made;
  for (const auto& [key, device] : devices) made.push_back(device);
  return made;
}

// A dim without elements is not divided.
AxisDims random_dims(Rng& rng, Type type, size_t axes, const RegionAxes& drawn_axes) {
  AxisDims made(axes, -1);
  for (size_t axis = 0; axis < axes; ++axis) {
    if (type.rank() == 0 || rng.below(3) == 0 || !drawn_axes.is_manual(axis)) continue;
    const auto drawn = static_cast<int>(rng.below(static_cast<uint64_t>(type.rank())));
    if (!type.dim(drawn).is(0)) made[axis] = drawn;
  }
  return made;
}

std::string tensor_text(Type type) {
  std::string text = "tensor<";
  for (const Dim dim : type.dims()) text += fmt::format("{}x", dim.value());
  return text + fmt::format("{}>", hlo::stablehlo_element_name(type.dtype()));
}

ShardLayout layout_of(Type local, const Mesh& mesh, const AxisDims& at) {
  ShardLayout made = {.dims = std::vector<MeshParts>(static_cast<size_t>(local.rank()))};
  for (size_t axis = 0; axis < at.size(); ++axis)
    if (at[axis] >= 0)
      made.dims[static_cast<size_t>(at[axis])].push_back({axis, 1, mesh.axes[axis].size});
  return made;
}

Type whole_type(Type local, const ShardLayout& layout) {
  Dims dims(local.dims().begin(), local.dims().end());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] *= count_of(layout.dims[i]);
  return local.with_dims(dims);
}

struct DrawnRegion {
  MeshRef mesh;
  Graph body;  // as one device runs it
  std::vector<ShardLayout> inputs, outputs;
  std::string text;
};

// Axes that are not manual may divide dims further.
std::string sharding_text(Rng& rng, const MeshRef& mesh, const ShardLayout& layout,
                          const RegionAxes& drawn_axes) {
  std::vector<std::vector<std::string>> axes(layout.dims.size());
  for (size_t d = 0; d < axes.size(); ++d)
    for (const MeshPart& part : layout.dims[d])
      axes[d].push_back(fmt::format("\"{}\"", mesh->axes[part.axis].name));
  for (size_t axis = 0; axis < mesh->axes.size() && !axes.empty(); ++axis)
    if (!drawn_axes.is_manual(axis) && rng.below(2) == 0)
      axes[rng.below(axes.size())].push_back(fmt::format("\"{}\"", mesh->axes[axis].name));
  std::vector<std::string> dims;
  for (const std::vector<std::string>& one : axes)
    dims.push_back(fmt::format("{{{}}}", join(one, ", ")));
  return fmt::format("<@m, [{}]>", join(dims, ", "));
}

// The text names the devices of each group. Summands come in any order.
Graph with_named_groups(const Graph& graph, const Ints& groups, int64_t size, Rng& rng) {
  GraphCopy copy(graph);
  for (const NodeId n : graph.nodes()) {
    const Op op = graph.op(n);
    Ints own = groups;
    if (op.opcode() == Opcode::all_reduce)
      for (auto at = own.begin(); at != own.end(); at += size)
        rng.shuffle(std::span(at, at + size));
    Attrs attrs;
    for (size_t i = 0; i < op.attrs().size(); ++i) {
      const std::string_view name = op.def().attrs[i].name;
      const bool is_exchange = class_of(op.opcode()) == OpClass::collective;
      attrs.emplace_back(name, is_exchange && name == "groups"       ? AttrValue(own)
                               : is_exchange && name == "group_size" ? AttrValue(size)
                                                                     : op.attrs()[i]);
    }
    std::vector<GraphRef> regions =
        transform_regions(graph, n, [&](const Graph& region) -> Result<Graph> {
          return with_named_groups(region, groups, size, rng);
        }).value();
    EXPECT_TRUE(copy.node(n, Op::get(op.opcode(), std::move(attrs)), std::move(regions)).ok());
  }
  return copy.finish();
}

// Empty: the body has something that the language does not say.
std::optional<DrawnRegion> draw(uint64_t seed) {
  Rng rng(seed);
  DrawnRegion made = {
      .mesh = tested::random_mesh(rng), .body = Graph(), .inputs = {}, .outputs = {}, .text = {}};
  const std::vector<MeshAxis>& axes = made.mesh->axes;
  const RegionAxes drawn_axes = random_axes(rng, axes.size());
  int64_t group = 1;
  for (const size_t axis : drawn_axes.grouped) group *= axes[axis].size;
  made.body = with_named_groups(random_graph({.seed = seed,
                                              .min_steps = 3,
                                              .max_steps = 9,
                                              .max_elements = 256,
                                              .max_dim = 4,
                                              .continuous = true,
                                              .devices = static_cast<int>(group)}),
                                groups_along(*made.mesh, drawn_axes.grouped), group, rng);
  const Result<std::string> printed = print_stablehlo(model_of(made.body));
  if (!printed.ok()) return std::nullopt;
  std::string functions = *printed;
  const size_t head = functions.find("func.func public @main");
  functions = functions.substr(head, functions.rfind('}') - head);
  functions.replace(0, 22, "func.func private @body");
  std::vector<std::string> in, out, wholes, results, parameters, names, locals, local_results;
  for (const ValueId v : made.body.inputs()) {
    const Type local = made.body.type(v);
    made.inputs.push_back(
        layout_of(local, *made.mesh, random_dims(rng, local, axes.size(), drawn_axes)));
    const std::string whole = tensor_text(whole_type(local, made.inputs.back()));
    names.push_back(fmt::format("%z{}", names.size()));
    wholes.push_back(fmt::format("%x{}: {}", wholes.size(), whole));
    parameters.push_back(fmt::format("{}: {}", names.back(), tensor_text(local)));
    locals.push_back(tensor_text(local));
    in.push_back(sharding_text(rng, made.mesh, made.inputs.back(), drawn_axes));
  }
  for (const ValueId v : made.body.outputs()) {
    const Type local = made.body.type(v);
    made.outputs.push_back(
        layout_of(local, *made.mesh, random_dims(rng, local, axes.size(), drawn_axes)));
    results.push_back(tensor_text(whole_type(local, made.outputs.back())));
    local_results.push_back(tensor_text(local));
    out.push_back(sharding_text(rng, made.mesh, made.outputs.back(), drawn_axes));
  }
  std::vector<std::string> mesh_axes, manual, given, types;
  for (const MeshAxis& axis : axes)
    mesh_axes.push_back(fmt::format("\"{}\"={}", axis.name, axis.size));
  for (const size_t axis : drawn_axes.manual)
    manual.push_back(fmt::format("\"{}\"", axes[axis].name));
  for (size_t i = 0; i < wholes.size(); ++i) {
    given.push_back(fmt::format("%x{}", i));
    types.push_back(wholes[i].substr(wholes[i].find(':') + 2));
  }
  const auto listed = [&](std::string_view name) {
    std::vector<std::string> all;
    for (size_t i = 0; i < results.size(); ++i) all.push_back(fmt::format("{}#{}", name, i));
    return join(all, ", ");
  };
  made.text = fmt::format(
      "module {{\nsdy.mesh @m = <[{0}]>\nfunc.func public @main({1}) -> ({2}) {{\n"
      "  %r:{3} = sdy.manual_computation({4}) in_shardings=[{5}] out_shardings=[{6}] "
      "manual_axes={{{7}}} ({8}) {{\n"
      "    %b:{3} = call @body({9}) : ({10}) -> ({11})\n"
      "    sdy.return {12} : {11}\n  }} : ({13}) -> ({2})\n  return {14} : {2}\n}}\n{15}\n}}\n",
      join(mesh_axes, ", "), join(wholes, ", "), join(results, ", "), results.size(),
      join(given, ", "), join(in, ", "), join(out, ", "), join(manual, ", "),
      join(parameters, ", "), join(names, ", "), join(locals, ", "), join(local_results, ", "),
      listed("%b"), join(types, ", "), listed("%r"), functions);
  return made;
}

// The elements of the devices; where several have the same place, those of the first one.
std::string judge_region(const DrawnRegion& drawn, const Graph& graph, uint64_t seed) {
  const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
  const int64_t devices = drawn.mesh->device_count();
  std::vector<std::vector<Tensor>> parts(static_cast<size_t>(devices));
  for (int64_t d = 0; d < devices; ++d)
    for (size_t i = 0; i < inputs.size(); ++i)
      parts[static_cast<size_t>(d)].push_back(
          tested::part_of(inputs[i], *drawn.mesh, drawn.inputs[i], d));
  const Result<std::vector<std::vector<Tensor>>> want = evaluate_spmd(drawn.body, parts);
  if (!want.ok()) return "";  // the body itself cannot run
  const Result<std::vector<Tensor>> have = evaluate(graph, inputs);
  if (!have.ok()) return have.error().to_string();
  for (int64_t d = 0; d < devices; ++d)
    for (size_t i = 0; i < have->size(); ++i) {
      bool is_first = true;  // along the axes that do not divide the result
      int64_t place = d;
      for (size_t axis = drawn.mesh->axes.size(); axis-- > 0;) {
        const int64_t size = drawn.mesh->axes[axis].size;
        const bool divides = std::ranges::any_of(drawn.outputs[i].dims, [&](const MeshParts& dim) {
          return std::ranges::find(dim, axis, &MeshPart::axis) != dim.end();
        });
        is_first = is_first && (divides || place % size == 0);
        place /= size;
      }
      if (!is_first) continue;
      const Tensor own = tested::part_of((*have)[i], *drawn.mesh, drawn.outputs[i], d);
      const std::string text =
          tested::difference({&own, 1}, {&(*want)[static_cast<size_t>(d)][i], 1}, 1e-5);
      if (!text.empty()) return fmt::format("device {}, result {}: {}", d, i, text);
    }
  return "";
}

struct Judged {
  int right = 0, refused = 0;
};

Judged judge_random(uint64_t first, uint64_t count) {
  Judged total;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::optional<DrawnRegion> drawn = draw(seed);
    if (!drawn) continue;
    const Result<Model> model = parse_hlo(drawn->text, "drawn");
    if (!model.ok()) {
      // Some devices run an exchange, and others not.
      EXPECT_THAT(model, refuses(ErrorCode::unsupported, "drawn:4:")) << seed << drawn->text;
      ++total.refused;
      continue;
    }
    const Graph& graph = *single_graph(*model);
    EXPECT_EQ(judge_region(*drawn, graph, seed), "") << "seed " << seed << "\n"
                                                     << drawn->text << print(graph);
    const Result<Partition> made = partition_graph(graph);
    if (made.ok())
      EXPECT_EQ(tested::judge_mesh(graph, *made, seed), "") << "seed " << seed << "\n"
                                                            << drawn->text;
    else
      ADD_FAILURE() << seed << made.error().to_string();
    ++total.right;
  }
  return total;
}

TEST(ManualComputation, OfRandomProgramsIsThatOfTheDevices) {
  const Judged total = judge_random(0, 300);
  EXPECT_GT(total.right, 150);
  EXPECT_LT(total.refused, 10);
}

TEST(ManualComputation, DISABLED_SweepOfRandomPrograms) { judge_random(1000, 3000); }

}  // namespace
}  // namespace hone::HONE_FILE
